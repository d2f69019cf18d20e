//! What a reader who meant it ill has found: records that are none, replies that are lost, callers
//! that go away, keys that are lost at the wrong moment.

mod calls;
mod clock;
mod connections;
mod queues;
mod steps;
mod types;

use russet::key::{Family, Key};
use russet::{Kit, Reply, Request};

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// Keys of one slot, for steps that are called by hand.
fn keys<const N: usize>(kit: &Kit, parts: [&'static str; N]) -> [Key; N] {
    let keys = kit.keys(Family { purpose: "robust", version: 1 }, "a").unwrap();
    parts.map(|part| keys.key(part))
}

/// A reply as one text.
fn flat(reply: &Reply) -> String {
    match reply.as_list() {
        Some(items) => items.iter().map(flat).collect::<Vec<_>>().join(" "),
        None => match (reply.as_int(), reply.as_bytes()) {
            (_, Some(text)) => String::from_utf8_lossy(text).into_owned(),
            (Some(number), None) => number.to_string(),
            (None, None) => "nil".into(),
        },
    }
}

/// Runs a command on one key.
async fn command(kit: &Kit, name: &str, key: &Key, args: &[&str]) -> Reply {
    let call = Request::new(name).key(key);
    kit.call(&args.iter().fold(call, |call, arg| call.arg(*arg))).await.unwrap()
}
