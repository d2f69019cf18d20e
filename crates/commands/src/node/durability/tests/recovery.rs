//! A log that can't be written, and what makes it good again; bases of commands; DEBUG LOADAOF.

use super::switched::{after_crash, await_log, await_that, server_with_log};
use crate::node::config::Directive;
use crate::node::snapshot::EndOptions;
use crate::testing::TestServer;
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::{Fault, SimulatedDisk};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A log that had filled the disk could not be rewritten: BGREWRITEAOF was given up while the log
/// could not be written, and writes were refused until someone else made room.
#[test]
fn a_full_disk_recovers_by_a_rewrite() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    let set = format!("SET k {}", "v".repeat(4000));
    server.say(&set);
    await_log(&server);
    // Room for a base, in which the value is compressed, but not for the record.
    disk.set_bytes_max(Some(disk.bytes() + 2000));
    server.say(&set);
    let node = server.worker.node.clone();
    await_that("it does not fail", || node.durability.log_status().unwrap().is_failed);
    let refused = server.say(&set);
    assert!(refused.contains("MISCONF Errors writing to the AOF file"), "{refused}");
    server.session.depends_on = 0;
    assert!(server.say("BGREWRITEAOF").contains("started"));
    await_log(&server);
    assert_eq!(server.say("SET other v"), "+OK");
    await_log(&server);
    let mut after = after_crash(&disk);
    assert_eq!(after.say("STRLEN k"), "4000");
    assert_eq!(after.say("GET other"), "\"v\"");
}

/// The directory of the log was emptied by someone: the log went on in files that nobody could
/// load, until the next BGREWRITEAOF.
#[test]
fn housekeeping_rewrites_a_log_whose_files_are_gone() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    server.say("SET k v");
    await_log(&server);
    let node = server.worker.node.clone();
    let dir = Path::new(&node.config.string(Directive::Dir)).join("appendonlydir");
    disk.list(&dir).unwrap().iter().for_each(|name| disk.remove(&dir.join(name)).unwrap());
    disk.fail_at(disk.operations(), Fault::Error);
    server.say("SET k w");
    await_that("it does not miss its files", || node.durability.log_status().unwrap().needs_base);
    assert!(node.durability.log_status().unwrap().is_failed);
    await_that("it is not rewritten", || {
        node.tick();
        !node.durability.log_status().unwrap().is_failed
    });
    await_log(&server);
    assert_eq!(after_crash(&disk).say("GET k"), "\"w\"");
}

/// Someone removed the log right before the end, which did not look: the process said goodbye as if
/// all were well, and the data was gone.
#[test]
fn the_end_misses_files_of_the_log_and_writes_a_new_base() {
    for is_full in [false, true] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        server.say("CONFIG SET appendfsync everysec");
        server.say("SET k v");
        let node = server.worker.node.clone();
        let dir = log_dir(&server);
        disk.list(&dir).unwrap().iter().for_each(|name| disk.remove(&dir.join(name)).unwrap());
        if is_full {
            disk.set_bytes_max(Some(disk.bytes()));
        }
        node.close_files();
        assert_eq!(node.durability.is_cut(), is_full, "the exit status tells");
        if !is_full {
            assert_eq!(after_crash(&disk).say("GET k"), "\"v\"");
        }
    }
}

/// An end that could have waited for room for a new base lost everything.
#[test]
fn an_end_is_refused_while_a_new_base_can_not_be_written() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    server.say("SET k v");
    await_log(&server);
    let node = server.worker.node.clone();
    let dir = log_dir(&server);
    disk.list(&dir).unwrap().iter().for_each(|name| disk.remove(&dir.join(name)).unwrap());
    disk.set_bytes_max(Some(disk.bytes()));
    await_that("no base is tried", || {
        node.tick();
        node.durability.log_status().unwrap().is_rewrite_bad
    });
    assert!(node.save_at_end(EndOptions::parse("nosave force")).is_ok());
    assert!(node.check_log_at_end(EndOptions::default()).is_err());
    disk.set_bytes_max(None);
    node.close_files();
    assert!(!node.durability.is_cut());
    assert_eq!(after_crash(&disk).say("GET k"), "\"v\"");
}

fn log_dir(server: &TestServer) -> PathBuf {
    Path::new(&server.worker.node.config.string(Directive::Dir)).join("appendonlydir")
}

/// Calls of every type, in two databases.
fn fill(server: &mut TestServer) {
    let calls = [
        "SET s 1",
        "SET e v PX 10000000",
        "RPUSH l a b c",
        "SADD m a b c",
        "ZADD z 1 a 2.5 b",
        "HSET h f 1 g 2",
        "HPEXPIRE h 10000000 FIELDS 1 f",
        "XADD x 1-1 f 1",
        "XGROUP CREATE x g 0",
        "BF.ADD bloom item",
        "ONCE id PX 6000000 INCR n",
        "SELECT 3",
        "SET there 1",
        "SELECT 0",
    ];
    for call in calls {
        let reply = server.say(call);
        assert!(!reply.starts_with('-'), "{call}: {reply}");
    }
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert_eq!(server.run(&["FUNCTION", "LOAD", library]).to_string(), "\"lib\"");
}

/// `aof-use-rdb-preamble no` was accepted and had no effect.
#[test]
fn a_base_may_be_commands() {
    for call in ["BGREWRITEAOF", "CONFIG SET appendonly yes"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        assert_eq!(server.say("CONFIG SET aof-use-rdb-preamble no"), "+OK");
        let is_stamped = call == "BGREWRITEAOF";
        if is_stamped {
            assert_eq!(server.say("CONFIG SET aof-timestamp-enabled yes"), "+OK");
        }
        fill(&mut server);
        if call.starts_with("CONFIG") {
            assert_eq!(server.say("CONFIG SET appendonly no"), "+OK");
        }
        assert!(!server.say(call).starts_with('-'), "{call}");
        await_log(&server);
        server.say("INCR s");
        await_log(&server);
        let dir = log_dir(&server);
        let bases = disk.list(&dir).unwrap().into_iter().filter(|name| name.contains(".base."));
        let bases: Vec<String> = bases.collect();
        assert!(bases.len() == 1 && bases[0].ends_with(".base.aof"), "{bases:?}");
        let mut text = Vec::new();
        disk.read(&dir.join(&bases[0])).unwrap().read_to_end(&mut text).unwrap();
        let begin: &[u8] = if is_stamped { b"#TS:" } else { b"*" };
        assert!(text.starts_with(begin), "{}", String::from_utf8_lossy(&text));
        let digest = server.say("DEBUG DIGEST FULL");
        let mut after = after_crash(&disk);
        assert_eq!(after.say("DEBUG DIGEST FULL"), digest, "{call}");
        assert_eq!(after.say("ONCE id PX 6000000 INCR n"), "1", "it has run already");
        assert_eq!(after.say("FCALL f 0"), "1");
        // A bit of it that is flipped is found.
        let at = text.len() / 2;
        text[at] ^= 1;
        let mut file = disk.create(&dir.join(&bases[0])).unwrap();
        std::io::Write::write_all(&mut *file, &text).unwrap();
        file.sync_data().unwrap();
        let node = after_crash_refused(&disk);
        assert!(node.contains(&bases[0]), "{node}");
    }
}

/// What a server that starts on this disk says of its log.
fn after_crash_refused(disk: &SimulatedDisk) -> String {
    super::switched::start_after_crash(disk).err().unwrap_or_default()
}

/// DEBUG LOADAOF was refused.
#[test]
fn the_log_can_be_loaded_again() {
    for policy in ["always", "everysec", "no"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        server.say(&format!("CONFIG SET appendfsync {policy}"));
        fill(&mut server);
        server.say("BGREWRITEAOF");
        let node = server.worker.node.clone();
        await_that("it is not rewritten", || !node.durability.log_status().unwrap().is_rewriting);
        let library = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
        server.run(&["FUNCTION", "LOAD", library]);
        server.say("INCR s");
        let digest = server.say("DEBUG DIGEST FULL");
        let offset = node.keyspace.journal().offset();
        // Of a server with another `appendfilename`.
        disk.create(&log_dir(&server).join("other.aof.manifest")).unwrap();
        for _ in 0..2 {
            assert_eq!(server.say("DEBUG LOADAOF"), "+OK", "{policy}");
            assert_eq!(server.say("DEBUG DIGEST FULL"), digest, "{policy}");
        }
        assert_eq!(node.keyspace.journal().offset(), offset, "nothing was recorded again");
        assert_eq!(server.say("INCR s"), "3");
        server.say("CONFIG SET appendfsync always");
        await_log(&server);
        assert_eq!(after_crash(&disk).say("GET s"), "\"3\"", "{policy}");
        server.say("MULTI");
        server.say("DEBUG LOADAOF");
        assert!(server.say("EXEC").contains("not inside a transaction"));
    }
}

/// What could be loaded of a damaged log was left in place of the data, and the next rewrite would
/// have made that the log.
#[test]
fn a_damaged_log_that_is_loaded_again_costs_nothing() {
    for kind in [".base.rdb", ".incr.aof"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        fill(&mut server);
        server.say("BGREWRITEAOF");
        let node = server.worker.node.clone();
        await_that("it is not rewritten", || !node.durability.log_status().unwrap().is_rewriting);
        fill_more(&mut server);
        await_log(&server);
        let names = disk.list(&log_dir(&server)).unwrap();
        let name = names.iter().find(|name| name.ends_with(kind)).unwrap();
        let path = log_dir(&server).join(name);
        let mut bytes = Vec::new();
        disk.read(&path).unwrap().read_to_end(&mut bytes).unwrap();
        let at = bytes.len() / 3;
        bytes[at] ^= 1;
        let mut file = disk.create(&path).unwrap();
        std::io::Write::write_all(&mut *file, &bytes).unwrap();
        let digest = server.say("DEBUG DIGEST FULL");
        let reply = server.say("DEBUG LOADAOF");
        assert!(reply.contains(name), "{reply}");
        assert_eq!(server.say("DEBUG DIGEST FULL"), digest, "{reply}");
        assert_eq!(server.say("ONCE id PX 6000000 INCR n"), "1", "it has run already");
    }
}

fn fill_more(server: &mut TestServer) {
    (0..50).for_each(|number| _ = server.say(&format!("SET more:{number} v")));
}
