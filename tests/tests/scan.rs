//! SCAN's guarantee: a key that is there from beginning to end is returned, whatever else comes and
//! goes and however the table grows or shrinks meanwhile.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use russet_tests::client::{Client, REPLY_WAIT, Reply, encode};
use russet_tests::server::{Kind, Server};

const STAYING: usize = 3_000;

fn write_many(client: &mut Client, requests: impl Iterator<Item = [String; 3]>) {
    let mut count = 0;
    let mut bytes = Vec::new();
    for words in requests {
        let words: Vec<Vec<u8>> =
            words.into_iter().filter(|w| !w.is_empty()).map(String::into_bytes).collect();
        bytes.extend(encode(&words));
        count += 1;
    }
    client.send_raw(&bytes).unwrap();
    for _ in 0..count {
        assert!(!client.read(REPLY_WAIT).unwrap().is_error());
    }
}

fn set(prefix: &str, n: usize) -> [String; 3] {
    ["SET".to_owned(), format!("{prefix}:{n}"), "v".to_owned()]
}

fn del(prefix: &str, n: usize) -> [String; 3] {
    ["DEL".to_owned(), format!("{prefix}:{n}"), String::new()]
}

/// Walks the whole keyspace; which of the staying keys came up.
fn walk(client: &mut Client, count: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.call(&["SCAN", &cursor, "MATCH", "stay:*", "COUNT", count]).unwrap();
        let Reply::Array(parts) = reply else { panic!("not an array") };
        let [next, Reply::Array(keys)] = parts.as_slice() else { panic!("not a page") };
        let text = |reply: &Reply| String::from_utf8(reply.text().unwrap().to_vec()).unwrap();
        found.extend(keys.iter().map(text));
        cursor = text(next);
        if cursor == "0" {
            return found;
        }
    }
}

#[test]
fn keys_that_stay_are_all_returned() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    write_many(&mut client, (0..STAYING).map(|n| set("stay", n)));

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = Client::connect(server.address()).unwrap();
            // Each round grows the table several times over and empties it again.
            while !done.load(Ordering::Relaxed) {
                write_many(&mut other, (0..20_000).map(|n| set("pass", n)));
                write_many(&mut other, (0..20_000).map(|n| del("pass", n)));
            }
        });
        for count in ["1", "10", "1000", "10", "100"] {
            let found = walk(&mut client, count);
            let missing: Vec<usize> =
                (0..STAYING).filter(|n| !found.contains(&format!("stay:{n}"))).collect();
            if !missing.is_empty() {
                done.store(true, Ordering::Relaxed);
            }
            assert!(missing.is_empty(), "COUNT {count}: {} keys missing", missing.len());
        }
        done.store(true, Ordering::Relaxed);
    });
}
