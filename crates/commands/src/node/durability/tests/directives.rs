//! Directives of files that are seen in them, in what is durable when, in LATENCY and in RESTORE.

use super::switched::{after_crash, await_log, await_that, server_with_log};
use crate::node::config::Directive;
use crate::node::durability::Events;
use crate::testing::TestServer;
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::SimulatedDisk;
use russet_persistence::log::LogEvents;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The newest increment of the log.
fn increment(server: &TestServer, disk: &SimulatedDisk) -> String {
    let dir = Path::new(&server.worker.node.config.string(Directive::Dir)).join("appendonlydir");
    let names = disk.list(&dir).unwrap();
    let last = names.iter().rfind(|name| name.ends_with(".incr.aof")).unwrap();
    let mut text = String::new();
    disk.read(&dir.join(last)).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn times_stand_before_records_if_they_are_wanted() {
    for is_on in [false, true] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        let value = if is_on { "yes" } else { "no" };
        assert_eq!(server.say(&format!("CONFIG SET aof-timestamp-enabled {value}")), "+OK");
        server.say("SET k v");
        await_log(&server);
        let text = increment(&server, &disk);
        let (before, _) = text.split_once("SET").unwrap();
        let stamp = before.lines().find_map(|line| line.strip_prefix("#TS:"));
        assert_eq!(stamp.is_some(), is_on, "{text}");
        assert!(stamp.is_none_or(|seconds| seconds.parse::<u64>().unwrap() > 1_700_000_000));
        assert_eq!(after_crash(&disk).say("GET k"), "\"v\"", "{text}");
    }
}

/// With `no-appendfsync-on-rewrite` what is written while a base is written is the system's, and
/// becomes durable when the base is there.
#[test]
fn syncs_are_left_out_while_a_base_is_written_if_so_configured() {
    for is_spared in [false, true] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        let value = if is_spared { "yes" } else { "no" };
        let directives = ["appendfsync", "everysec", "no-appendfsync-on-rewrite", value];
        let call = [&["CONFIG", "SET"][..], &directives, &["rdb-key-save-delay", "100000000"]];
        assert_eq!(server.run(&call.concat()).to_string(), "+OK");
        server.say("SET k v");
        server.say("BGREWRITEAOF");
        let node = server.worker.node.clone();
        let journal = node.keyspace.journal();
        // The base has its only key, and waits.
        await_that("it does not begin", || {
            node.saves.figures().is_some_and(|figures| figures.keys_saved == 1)
        });
        server.say("SET k w");
        await_that("it is not written", || journal.backlog_bytes() == 0);
        assert!(node.durability.log_status().unwrap().is_rewriting);
        assert_eq!(journal.durable() < journal.offset(), is_spared);
        server.say("CONFIG SET rdb-key-save-delay 0");
        await_that("it does not become durable", || journal.durable() == journal.offset());
        await_log(&server);
        assert_eq!(after_crash(&disk).say("GET k"), "\"w\"");
    }
}

/// What the log's thread measures is shown by LATENCY, as of the threshold.
#[test]
fn latency_shows_what_the_log_took() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    let events = Events(Arc::downgrade(&server.worker.node));
    events.took("aof-write", Duration::from_millis(20));
    assert_eq!(server.say("LATENCY LATEST"), "[]", "it is off");
    server.say("CONFIG SET latency-monitor-threshold 10");
    events.took("aof-fsync-always", Duration::from_millis(9));
    events.took("aof-write", Duration::from_millis(20));
    events.took("aof-write", Duration::from_millis(30));
    let latest = server.say("LATENCY LATEST");
    assert!(latest.contains("\"aof-write\"") && latest.contains(", 30, 30"), "{latest}");
    assert!(!latest.contains("aof-fsync-always"), "{latest}");
    assert!(server.say("LATENCY HISTORY aof-write").contains("30"));
}

/// `rdb-version-check relaxed` was obeyed by files, but not by RESTORE.
#[test]
fn restore_tries_any_version_if_so_configured() {
    let mut server = TestServer::new();
    let mut payload = b"\x00\x03bar\xde\x00".to_vec();
    let sum = russet_base::crc64::crc64(&payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    let call: [&[u8]; 4] = [b"RESTORE", b"k", b"0", &payload];
    let refused = "-ERR DUMP payload version or checksum are wrong";
    assert_eq!(server.run(&call).to_string(), refused);
    assert_eq!(server.say("CONFIG SET rdb-version-check relaxed"), "+OK");
    assert_eq!(server.run(&call).to_string(), "+OK");
    assert_eq!(server.say("GET k"), "\"bar\"");
    payload[3] ^= 1;
    let damaged: [&[u8]; 4] = [b"RESTORE", b"other", b"0", &payload];
    assert_eq!(server.run(&damaged).to_string(), refused);
    assert_eq!(server.say("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1"), "+OK");
    assert_eq!(server.run(&damaged).to_string(), "+OK", "nobody looks at the sum");
}
