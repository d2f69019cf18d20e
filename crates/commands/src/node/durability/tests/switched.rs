//! A log that is rewritten, switched on and off by calls, and what is there after a crash.

use crate::node::config::{Directive, Requester};
use crate::node::snapshot::EndOptions;
use crate::testing::TestServer;
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::{Fault, Loss, SimulatedDisk};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(20);
/// `enable-protected-configs yes`, as it is kept.
const PROTECTED_FOR_ALL: i64 = 1;

/// A server without a log that may begin one.
fn server_on(disk: &SimulatedDisk) -> TestServer {
    let server = TestServer::with_disk(Arc::new(disk.clone()), 7);
    let node = &server.worker.node;
    let dir = node.config.string(Directive::Dir);
    disk.create_dir(Path::new(&dir)).unwrap();
    node.open_files().unwrap();
    node.load_files().unwrap();
    server
}

pub(super) fn server_with_log(disk: &SimulatedDisk) -> TestServer {
    let mut server = server_on(disk);
    assert_eq!(server.say("CONFIG SET appendfsync always appendonly yes"), "+OK");
    server
}

pub(super) fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_MAX, "{what}");
        std::thread::yield_now();
    }
}

/// Waits until the log has all that was written, and no rewrite is under way.
pub(super) fn await_log(server: &TestServer) {
    let node = &server.worker.node;
    let journal = node.keyspace.journal();
    await_that("the log does not settle", || {
        let status = node.durability.log_status().unwrap();
        !status.is_rewriting && journal.durable() == journal.offset()
    });
}

/// A server that starts with the log that the power has left on the disk.
pub(super) fn after_crash(disk: &SimulatedDisk) -> TestServer {
    start_after_crash(disk).unwrap()
}

/// The same, if it does start.
pub(super) fn start_after_crash(disk: &SimulatedDisk) -> Result<TestServer, String> {
    let disk = disk.after_power_loss(Loss::All, 1);
    let server = TestServer::with_disk(Arc::new(disk), 99);
    let node = &server.worker.node;
    let pair: (&[u8], &[u8]) = (b"appendonly", b"yes");
    node.config.set(&[pair], Requester::Local, &mut |_| Ok(())).unwrap();
    node.open_files()?;
    node.load_files()?;
    Ok(server)
}

fn transaction(server: &mut TestServer, calls: &[&str], exec: &str) -> String {
    server.say("MULTI");
    calls.iter().for_each(|call| assert_eq!(server.say(call), "+QUEUED"));
    server.say(exec)
}

/// The new base held what the transaction had written so far, and its records followed it in the
/// log: after a restart they were carried out twice.
#[test]
fn a_rewrite_inside_a_transaction_is_done_at_its_end() {
    for exec in ["EXEC", "ONCE id PX 60000 EXEC"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        let calls = ["INCR n", "RPUSH l x", "BGREWRITEAOF", "INFO persistence", "INCR n"];
        let reply = transaction(&mut server, &calls, exec);
        assert!(reply.contains("+Background append only file rewriting scheduled"), "{reply}");
        assert!(reply.contains("aof_rewrite_scheduled:1"), "{reply}");
        await_log(&server);
        assert_eq!(server.worker.node.durability.log_status().unwrap().rewrites, 1, "{exec}");
        assert!(server.say("INFO persistence").contains("aof_rewrite_scheduled:0"));
        let mut after = after_crash(&disk);
        assert_eq!(after.say("GET n"), "\"2\"", "{exec}");
        assert_eq!(after.say("LRANGE l 0 -1"), "[\"x\"]", "{exec}");
    }
}

/// A log that was switched on inside a transaction lacked what the transaction wrote after that,
/// for its calls went unrecorded; one that was switched off and on had its writes twice.
#[test]
fn a_switch_inside_a_transaction_is_done_at_its_end() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk);
    server.say("CONFIG SET appendfsync always");
    let on = "CONFIG SET appendonly yes";
    transaction(&mut server, &["INCR n", on, "INCR n"], "EXEC");
    await_log(&server);
    assert_eq!(after_crash(&disk).say("GET n"), "\"2\"");
    let off = "CONFIG SET appendonly no";
    transaction(&mut server, &["INCR n", off, "INCR n", on, "INCR n"], "EXEC");
    await_log(&server);
    assert_eq!(after_crash(&disk).say("GET n"), "\"5\"");
    transaction(&mut server, &["INCR n", off, "INCR n"], "EXEC");
    assert!(server.worker.node.durability.log().is_none());
    assert_eq!(after_crash(&disk).say("GET n"), "\"7\"", "all of it, or nothing");
    assert_eq!(server.say("GET n"), "\"7\"");
}

/// There is nobody left to be told that the log can't be begun: the directive tells.
#[test]
fn a_switch_that_fails_at_the_end_of_a_transaction_is_taken_back() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk);
    disk.fail_at(disk.operations(), Fault::Error);
    transaction(&mut server, &["CONFIG SET appendonly yes"], "EXEC");
    assert!(server.worker.node.durability.log().is_none());
    assert_eq!(server.say("CONFIG GET appendonly"), "[\"appendonly\", \"no\"]");
}

/// With `always`, a log that failed refused the very calls that help: to switch it off, to have it
/// less strict, to save. And one that was switched off nevertheless left every reply waiting.
#[test]
fn a_log_that_failed_can_be_switched_off() {
    for cure in ["CONFIG SET appendonly no", "CONFIG SET appendfsync no"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        let node = server.worker.node.clone();
        let journal = node.keyspace.journal();
        write_and_fail(&mut server, &disk);
        assert!(server.say("GET k").contains("MISCONF"));
        assert!(!journal.is_released(server.session.depends_on));
        server.session.depends_on = 0;
        let reply = server.say("SAVE");
        assert!(reply.contains("ERR") && !reply.contains("MISCONF"), "{reply}");
        assert!(journal.is_released(server.session.depends_on), "SAVE is answered");
        assert_eq!(server.say(cure), "+OK");
        assert!(journal.is_released(server.session.depends_on), "{cure} is answered");
        assert_eq!(server.say("GET k"), "\"v\"");
        assert!(journal.is_released(server.session.depends_on));
        disk.mend();
        if node.durability.log().is_none() {
            assert_eq!(journal.backlog_bytes(), 0);
            assert_eq!(server.say("SET other v"), "+OK");
            assert_eq!(server.say("CONFIG SET appendonly yes"), "+OK");
        }
        await_that("it can be written", || !node.durability.log_status().unwrap().is_failed);
        server.say("CONFIG SET appendfsync always");
        assert_eq!(server.say("RPUSH l x"), "1");
        await_log(&server);
        let mut after = after_crash(&disk);
        assert_eq!(after.say("GET k"), "\"v\"", "{cure}");
        assert_eq!(after.say("LRANGE l 0 -1"), "[\"x\"]", "{cure}");
    }
}

/// A write whose record the disk does not take.
fn write_and_fail(server: &mut TestServer, disk: &SimulatedDisk) {
    disk.fail_at(disk.operations(), Fault::PowerOff);
    server.say("SET k v");
    let durability = &server.worker.node.durability;
    await_that("it does not fail", || {
        let status = durability.log_status().unwrap();
        status.is_failed && status.unsynced_bytes > 0
    });
}

/// The process ended as if all were well, and writes that had been answered were lost.
#[test]
fn an_end_that_would_lose_writes_is_refused_unless_it_is_forced() {
    for forced in ["SHUTDOWN FORCE", "SHUTDOWN NOSAVE"] {
        let disk = SimulatedDisk::new();
        let mut server = server_with_log(&disk);
        let reply = server.run(&["CONFIG", "SET", "appendfsync", "everysec", "save", ""]);
        assert_eq!(reply.to_string(), "+OK");
        write_and_fail(&mut server, &disk);
        let node = server.worker.node.clone();
        for call in ["SHUTDOWN", "SHUTDOWN SAVE"] {
            assert_eq!(server.say(call), "-ERR Errors trying to SHUTDOWN. Check logs.");
            assert!(!server.session.is_closing);
        }
        assert!(node.save_at_end(EndOptions::default()).is_err(), "nor by a signal");
        assert_eq!(node.save_at_end(EndOptions::parse("force")), Ok(()));
        server.try_run(&forced.split(' ').collect::<Vec<_>>());
        assert!(server.session.is_closing, "{forced}");
        node.close_files();
        assert!(node.durability.is_cut(), "the exit status tells");
    }
    let mut server = server_with_log(&SimulatedDisk::new());
    server.say("SET k v");
    server.worker.node.close_files();
    assert!(!server.worker.node.durability.is_cut());
}

/// The log went on with records of other data than it held: after a restart, what DEBUG RELOAD had
/// taken away was back.
#[test]
fn what_debug_reload_has_loaded_is_the_base_of_the_log() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    server.say("SET saved 1");
    assert_eq!(server.say("SAVE"), "+OK");
    server.say("INCR saved");
    server.say("SET gone 1");
    assert_eq!(server.say("DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!(after_crash(&disk).say("GET gone"), "nil", "before anyone goes on");
    assert_eq!(server.say("INCR saved"), "2");
    await_log(&server);
    let mut after = after_crash(&disk);
    assert_eq!(after.say("GET gone"), "nil");
    assert_eq!(after.say("GET saved"), "\"2\"");
}

/// A rewrite that was under way when the data was replaced: another follows it.
#[test]
fn a_rewrite_that_can_not_begin_yet_is_done_by_housekeeping() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    server.say("SET saved 1");
    server.say("SAVE");
    server.say("SET gone 1");
    let node = server.worker.node.clone();
    let log = node.durability.log().unwrap();
    assert!(log.claim_rewrite());
    assert_eq!(server.say("DEBUG RELOAD NOSAVE"), "+OK");
    node.tick();
    assert!(node.durability.scheduled.has_rewrite());
    log.give_up_rewrite();
    node.tick();
    assert!(!node.durability.scheduled.has_rewrite());
    await_log(&server);
    assert_eq!(after_crash(&disk).say("KEYS *"), "[\"saved\"]");
}

/// The log had ended when another directive of the call was refused, and `appendonly` was yes again
/// without one.
#[test]
fn a_call_that_is_refused_does_not_end_the_log() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    let node = server.worker.node.clone();
    let pairs: [(&[u8], &[u8]); 2] = [(b"appendonly", b"no"), (b"hz", b"11")];
    let refused = node.config.set(&pairs, Requester::Local, &mut |directive| match directive {
        Directive::Hz => Err("not now".to_owned()),
        _ => node.directive_changed(directive),
    });
    assert!(refused.is_err_and(|why| why.contains("'hz'")));
    assert_eq!(server.say("CONFIG GET appendonly"), "[\"appendonly\", \"yes\"]");
    server.say("SET k v");
    await_log(&server);
    assert_eq!(after_crash(&disk).say("GET k"), "\"v\"");
}

fn files(disk: &SimulatedDisk, dir: &str) -> Vec<String> {
    let mut names = disk.list(&Path::new(dir).join("appendonlydir")).unwrap_or_default();
    names.sort();
    names
}

/// A call that was refused for another of its directives had replaced the log that lay there by
/// that time: what it held was gone.
#[test]
fn a_call_that_is_refused_leaves_a_log_on_the_disk_as_it_is() {
    let disk = SimulatedDisk::new();
    let mut server = server_with_log(&disk);
    let dir = server.worker.node.config.string(Directive::Dir);
    server.say("SET k v");
    await_log(&server);
    assert_eq!(server.say("CONFIG SET appendonly no"), "+OK");
    let before = files(&disk, &dir);
    assert!(!before.is_empty());
    server.say("FLUSHALL");
    for others in ["nosuch 1", "appendonly yes", "hz x", "dir /data", "databases 3"] {
        let reply = server.say(&format!("CONFIG SET appendonly yes {others}"));
        assert!(reply.contains("ERR"), "{others}: {reply}");
        assert_eq!(files(&disk, &dir), before, "{others}");
        assert!(server.worker.node.durability.log().is_none(), "{others}");
    }
    assert_eq!(after_crash(&disk).say("GET k"), "\"v\"");
}

/// The log began where the directory was before the call, and a start looked for it in the new one.
#[test]
fn a_log_begins_in_the_directory_that_the_same_call_sets() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk);
    // Both exist on every machine; nothing is written to either.
    let (first, second) = (std::env::temp_dir().display().to_string(), "/".to_owned());
    for dir in [&first, &second] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    server.worker.node.config.replace_int(Directive::EnableProtectedConfigs, PROTECTED_FOR_ALL);
    server.say("SET k v");
    assert_eq!(server.say(&format!("CONFIG SET appendonly yes dir {first}")), "+OK");
    await_log(&server);
    assert!(!files(&disk, &first).is_empty());
    // It would stay there, and a start would look for it elsewhere.
    let refused = server.say(&format!("CONFIG SET dir {second}"));
    assert!(refused.contains("switch it off first"), "{refused}");
    assert_eq!(server.say(&format!("CONFIG SET dir {first}")), "+OK", "it is the same");
    assert_eq!(server.say("CONFIG SET appendonly no"), "+OK");
    assert_eq!(server.say(&format!("CONFIG SET dir {second}")), "+OK");
}

/// What else a call had set stayed when its client was closed before the log had begun.
#[test]
fn what_a_call_has_set_beside_a_log_is_put_back_if_its_client_is_gone() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk);
    let node = server.worker.node.clone();
    let hz = |server: &mut TestServer| server.say("CONFIG GET hz");
    let before = hz(&mut server);
    let set = || {
        let pair: (&[u8], &[u8]) = (b"hz", b"77");
        let undo = node.config.set(&[pair], Requester::Local, &mut |_| Ok(())).unwrap();
        node.set_beside(undo)
    };
    drop(set());
    node.tend_beginning();
    assert_eq!(hz(&mut server), before);
    // While another waits for the log it is not known yet.
    let begun = node.with_all_keys(|_| node.begin_log()).unwrap().unwrap();
    drop(set());
    node.tend_beginning();
    assert_ne!(hz(&mut server), before);
    drop(begun);
    node.tend_beginning();
    node.tend_beginning();
    assert_eq!(hz(&mut server), before);
    // What a log has begun with stays.
    assert_eq!(server.say("CONFIG SET appendonly yes"), "+OK");
    drop(set());
    node.tend_beginning();
    assert!(hz(&mut server).contains("77"));
}

/// A second call was answered as if there were a log, and `appendonly` stayed yes without one when
/// the first gave it up.
#[test]
fn who_switches_on_a_log_that_begins_waits_for_it_too() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk);
    let node = server.worker.node.clone();
    server.say("SET k v");
    let first = node.with_all_keys(|_| node.begin_log()).unwrap().unwrap();
    let second = node.with_all_keys(|_| node.begin_log()).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert!(server.say("DEBUG LOADAOF").contains("ERR"), "it would wait for what it keeps waiting");
    // The first is gone, the second still waits.
    drop(first);
    node.tend_beginning();
    assert!(node.durability.log().is_some());
    drop(second);
    node.tend_beginning();
    assert!(node.durability.log().is_none());
    // Who switches it off meanwhile tells those who wait.
    let begun = node.with_all_keys(|_| node.begin_log()).unwrap().unwrap();
    transaction(&mut server, &["CONFIG SET appendonly yes"], "EXEC");
    assert_eq!(server.say("CONFIG SET appendonly no"), "+OK");
    let outcome = begun.outcome_or_wait(&server.session.mailbox);
    assert!(outcome.is_some_and(|it| it.is_err_and(|why| why.contains("switched off"))));
    assert!(!node.is_log_beginning() && node.durability.log().is_none());
    // In a transaction the switch waits until that is decided.
    let begun = node.with_all_keys(|_| node.begin_log()).unwrap().unwrap();
    transaction(&mut server, &["CONFIG SET appendonly yes"], "EXEC");
    node.with_all_keys(|_| {
        assert!(node.end_beginning(&begun) && !node.end_beginning(&begun));
        node.give_up_log();
    });
    await_that("there is a log", || {
        node.tick();
        node.durability.log().is_some()
    });
    assert_eq!(server.say("CONFIG GET appendonly"), "[\"appendonly\", \"yes\"]");
    server.say("SET k w");
    await_log(&server);
    assert_eq!(after_crash(&disk).say("GET k"), "\"w\"");
}
