//! What the server says about its memory, measured from outside.

use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Kind, Server};

fn figure(client: &mut Client, name: &str) -> u64 {
    let Ok(Reply::Bulk(text)) = client.call(&["INFO", "memory"]) else { panic!("no INFO") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Entries of one to 64 KB lie in the allocator's memory and were counted by the table as well:
/// 8,325 bytes for a value of 4,000.
#[test]
fn used_memory_counts_each_value_once() {
    const TOTAL_BYTES: usize = 8 << 20;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    for value_bytes in [1500, 4000, 30_000, 200_000] {
        let value = "x".repeat(value_bytes);
        let before = figure(&mut client, "used_memory");
        for at in 0..TOTAL_BYTES / value_bytes {
            let key = format!("{value_bytes}:{at}");
            client.send(&["SET", &key, &value].map(|word| word.as_bytes().to_vec())).unwrap();
        }
        for _ in 0..TOTAL_BYTES / value_bytes {
            assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()));
        }
        let grown = figure(&mut client, "used_memory") - before;
        // Keys, slots and what is lost by rounding take less than half as much again.
        let range = TOTAL_BYTES as u64..TOTAL_BYTES as u64 * 3 / 2;
        assert!(range.contains(&grown), "values of {value_bytes}: {grown} for {TOTAL_BYTES}");
    }
}
