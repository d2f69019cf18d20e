//! The data that a sequence left behind, read back type by type.

use std::collections::BTreeMap;

use crate::client::{Client, REPLY_WAIT, Reply, encode};

/// The databases that sequences reach.
pub const DATABASES: &[&str] = &["0", "1", "2", "15"];

/// What is known of one key.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Reply,
    pub value: Reply,
    pub ttl_ms: Reply,
    pub encoding: Reply,
    /// What the value itself does not show: deadlines of a hash's fields, groups of a stream.
    pub beside: Reply,
}

/// By database and key.
pub type Dump = BTreeMap<(String, Vec<u8>), Entry>;

/// Reads everything on a connection of its own.
pub fn read(client: &mut Client) -> Result<Dump, String> {
    let mut dump = Dump::new();
    for database in DATABASES {
        call(client, &[b"SELECT", database.as_bytes()])?;
        let Reply::Array(keys) = call(client, &[b"KEYS", b"*"])? else {
            return Err("KEYS did not answer an array".to_owned());
        };
        for key in keys.iter().filter_map(Reply::text) {
            let kind = call(client, &[b"TYPE", key])?;
            let read: &[&[u8]] = match kind.text() {
                Some(b"list") => &[b"LRANGE", key, b"0", b"-1"],
                Some(b"zset") => &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
                Some(b"hash") => &[b"HGETALL", key],
                Some(b"set") => &[b"SMEMBERS", key],
                Some(b"stream") => &[b"XRANGE", key, b"-", b"+"],
                _ => &[b"GET", key],
            };
            let requests: [&[&[u8]]; 3] = [read, &[b"PTTL", key], &[b"OBJECT", b"ENCODING", key]];
            let [mut value, ttl_ms, encoding] = pipelined(client, requests)?;
            let mut beside = Reply::Null;
            if kind.text() == Some(b"hash") {
                value = in_order(value);
                beside = field_deadlines(client, key, &value)?;
            }
            if kind.text() == Some(b"stream") {
                beside = call(client, &[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"])?;
            }
            if let (Some(b"set"), Reply::Array(members)) = (kind.text(), &mut value) {
                members.sort_by(|a, b| a.text().cmp(&b.text()));
            }
            let entry = Entry { kind, value, ttl_ms, encoding, beside };
            dump.insert(((*database).to_owned(), key.to_vec()), entry);
        }
    }
    Ok(dump)
}

/// HPTTL of all fields, in the order of these pairs.
fn field_deadlines(client: &mut Client, key: &[u8], pairs: &Reply) -> Result<Reply, String> {
    let Reply::Array(items) = pairs else { return Ok(Reply::Null) };
    let fields: Vec<&[u8]> = items.chunks(2).filter_map(|pair| pair[0].text()).collect();
    let count = fields.len().to_string();
    let mut args: Vec<&[u8]> = vec![b"HPTTL", key, b"FIELDS", count.as_bytes()];
    args.extend(fields);
    call(client, &args)
}

/// The pairs of a hash, sorted: a hash table has its own order.
fn in_order(reply: Reply) -> Reply {
    let Reply::Array(items) = reply else { return reply };
    let mut pairs: Vec<&[Reply]> = items.chunks(2).collect();
    pairs.sort_by_key(|pair| pair[0].text().map(<[u8]>::to_vec));
    Reply::Array(pairs.concat())
}

pub fn call(client: &mut Client, args: &[&[u8]]) -> Result<Reply, String> {
    client.call(args).map_err(|error| format!("{}: {error}", args[0].escape_ascii()))
}

fn pipelined(client: &mut Client, requests: [&[&[u8]]; 3]) -> Result<[Reply; 3], String> {
    let owned = |args: &[&[u8]]| -> Vec<Vec<u8>> { args.iter().map(|w| w.to_vec()).collect() };
    let bytes: Vec<u8> = requests.iter().flat_map(|args| encode(&owned(args))).collect();
    client.send_raw(&bytes).map_err(|error| error.to_string())?;
    let mut read = || client.read(REPLY_WAIT).map_err(|error| error.to_string());
    Ok([read()?, read()?, read()?])
}
