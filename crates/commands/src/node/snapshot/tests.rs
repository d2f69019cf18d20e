//! Saving on a disk that fails, and loading what it leaves.

mod background;
mod reload;

use crate::node::config::Directive;
use crate::testing::TestServer;
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::{Fault, Loss, SimulatedDisk};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// A server on a disk that has its directory.
fn server_on(disk: &SimulatedDisk, seed: u64) -> TestServer {
    let server = TestServer::with_disk(Arc::new(disk.clone()), seed);
    disk.create_dir(&dir_of(&server)).unwrap();
    server
}

fn dir_of(server: &TestServer) -> PathBuf {
    OsStr::from_bytes(&server.worker.node.config.text(Directive::Dir)).into()
}

/// What a server that starts on this disk has under `k`; an error if it does not start.
fn found(disk: &SimulatedDisk) -> Result<String, String> {
    let mut server = server_on(disk, 99);
    server.worker.node.load_snapshot()?;
    Ok(server.say("GET k"))
}

fn fill(server: &mut TestServer) {
    server.say("SET k old");
    for at in 0..50 {
        server.say(&format!("HSET hash:{at} field value{at}"));
    }
    assert_eq!(server.say("SAVE"), "+OK");
}

#[test]
fn without_a_disk_nothing_is_saved() {
    let mut server = TestServer::new();
    assert_eq!(server.say("SAVE"), "-ERR there is no directory to save to");
    assert_eq!(server.worker.node.load_snapshot().unwrap(), None);
}

/// Whatever operation fails, and whenever the power goes, the file that is found is a whole one:
/// the old or the new, and once SAVE has said so the new one.
#[test]
fn the_old_file_stays_until_the_new_one_is_complete() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    fill(&mut server);
    let first = disk.operations();
    server.say("SET k new");
    assert_eq!(server.say("SAVE"), "+OK");
    let operations = disk.operations() - first;
    for at in 0..operations {
        for fault in [Fault::Error, Fault::Short, Fault::PowerOff] {
            let disk = SimulatedDisk::new();
            let mut server = server_on(&disk, 1);
            fill(&mut server);
            server.say("SET k new");
            disk.fail_at(disk.operations() + at, fault);
            let is_saved = server.say("SAVE") == "+OK";
            for seed in 0..4 {
                for loss in [Loss::All, Loss::Tail, Loss::Any] {
                    let after = disk.after_power_loss(loss, seed);
                    let found = found(&after).unwrap();
                    let what = format!("{fault:?} at {at}, {loss:?} {seed}");
                    assert!(found == "\"new\"" || (!is_saved && found == "\"old\""), "{what}");
                }
            }
            disk.mend();
            assert_eq!(server.say("SAVE"), "+OK", "{fault:?} at {at}");
            let dir = dir_of(&server);
            assert_eq!(disk.list(&dir).unwrap(), ["dump.rdb"], "{fault:?} at {at}");
            assert_eq!(found(&disk.after_power_loss(Loss::All, 0)).unwrap(), "\"new\"");
        }
    }
}

/// A key's shard depends on the seed of the process; so does that of a request's id.
#[test]
fn a_request_is_known_after_a_restart_under_another_seed() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    for id in 0..30 {
        server.say(&format!("ONCE id{id} PX 100000 INCR key{id}"));
    }
    assert_eq!(server.say("SAVE"), "+OK");
    let digest = server.say("DEBUG DIGEST FULL");
    let mut server = server_on(&disk, 2);
    server.worker.node.load_snapshot().unwrap();
    assert_eq!(server.say("DEBUG DIGEST FULL"), digest);
    for id in 0..30 {
        assert_eq!(server.say(&format!("ONCE id{id} PX 100000 INCR key{id}")), "1");
        assert_eq!(server.say(&format!("GET key{id}")), "\"1\"");
        let other = server.say(&format!("ONCE id{id} PX 100000 INCR other"));
        assert!(other.starts_with("-ONCEMISMATCH"), "{other}");
    }
}

#[test]
fn what_is_over_is_not_loaded() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    server.say("SET gone v PX 10");
    server.say("SET stays v PX 100000");
    server.say("HSET h f 1 g 2");
    server.say("HPEXPIRE h 10 FIELDS 1 f");
    server.say("HSET all f 1");
    server.say("HPEXPIRE all 10 FIELDS 1 f");
    assert_eq!(server.say("SAVE"), "+OK");
    let mut server = server_on(&disk, 2);
    server.clock.advance_ms(50);
    let report = server.worker.node.load_snapshot().unwrap().unwrap();
    assert_eq!((report.keys_loaded, report.keys_expired), (2, 2));
    assert_eq!(server.say("DBSIZE"), "2");
    assert_eq!(server.say("HGETALL h"), server.say("HGETALL h"));
    assert_eq!(server.say("HLEN h"), "1");
    assert_eq!(server.say("PTTL stays"), "99950");
    let info = server.say("INFO persistence");
    assert!(info.contains("rdb_last_load_keys_loaded:2"), "{info}");
}

#[test]
fn a_reload_brings_back_what_was_saved_or_merges_it() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    server.say("SET k before");
    assert_eq!(server.say("SAVE"), "+OK");
    let found = |others: &str| ("\"before\"".to_owned(), others.to_owned());
    let change = |server: &mut TestServer| {
        server.say("SET k after");
        server.say("SET other 1");
    };
    change(&mut server);
    assert_eq!(server.say("DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!((server.say("GET k"), server.say("EXISTS other")), found("0"));
    change(&mut server);
    assert_eq!(server.say("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK");
    assert_eq!((server.say("GET k"), server.say("EXISTS other")), found("1"));
    let refused = server.say("DEBUG RELOAD NOSAVE NOFLUSH");
    assert!(refused.contains("a key that is there twice"), "{refused}");
}

/// A server that was killed while it saved left a file of the size of its data, and the next one
/// another: nobody ever removed them.
#[test]
fn what_a_killed_save_has_left_is_removed_at_the_start() {
    let disk = SimulatedDisk::new();
    let server = server_on(&disk, 1);
    let dir = dir_of(&server);
    let files = ["temp-russet-7-0.rdb", "temp-russet-7-1.rdb", "temp-7.rdb", "temp-russet.rdb"];
    files.iter().for_each(|name| drop(disk.create(&dir.join(name)).unwrap()));
    let by_another = disk.lock(&dir.join(files[1])).unwrap();
    server.worker.node.open_files().unwrap();
    assert_eq!(disk.list(&dir).unwrap(), [files[2], files[1], files[3]]);
    drop(by_another);
    server.worker.node.open_files().unwrap();
    assert_eq!(disk.list(&dir).unwrap(), [files[2], files[3]], "others' files stay");
}

/// A file that is being written belongs to someone.
#[test]
fn a_save_keeps_its_file_locked_until_it_has_its_name() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    server.say("SET k v");
    let count = disk.operations();
    // The renaming fails, and so does the removal: the file stays.
    assert_eq!(server.say("SAVE"), "+OK");
    let operations = disk.operations() - count;
    let last = disk.operations() + operations;
    (last - 2..last).for_each(|at| disk.fail_at(at, Fault::Error));
    assert!(server.say("SAVE").contains("cannot save"));
    let left: Vec<String> = disk.list(&dir_of(&server)).unwrap();
    assert!(left.iter().any(|name| name.starts_with("temp-russet-")), "{left:?}");
    disk.mend();
    server.worker.node.open_files().unwrap();
    assert_eq!(disk.list(&dir_of(&server)).unwrap(), ["dump.rdb"]);
}
