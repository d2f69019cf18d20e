//! Snapshots that are taken while calls go on. The tests stop the walk where they like, with
//! `rdb-key-save-delay`.

use super::{dir_of, found, server_on};
use crate::call::pause::PauseKind;
use crate::node::config::Requester;
use crate::node::snapshot::EndOptions;
use crate::testing::TestServer;
use russet_base::UnixMillis;
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::{Fault, Loss, SimulatedDisk};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(60);
/// No test waits for this to be over.
const STOP: &str = "CONFIG SET rdb-key-save-delay 1000000000";
const GO_ON: &str = "CONFIG SET rdb-key-save-delay 0";
/// Keys of each kind.
const EACH: usize = 12;
const ELEMENTS: usize = 400;

fn await_info(server: &mut TestServer, what: &str) {
    let started = Instant::now();
    while !server.say("INFO persistence").contains(what) {
        assert!(started.elapsed() < WAIT_MAX, "{what}: {}", server.say("INFO persistence"));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start(disk: &SimulatedDisk) -> TestServer {
    let mut server = server_on(disk, 1);
    server.worker.node.open_files().unwrap();
    server.worker.node.load_files().unwrap();
    configure(&mut server, "save", "3600 1");
    server
}

fn configure(server: &mut TestServer, name: &str, value: &str) {
    assert_eq!(server.run(&["CONFIG", "SET", name, value]).to_string(), "+OK");
}

/// Keys of every type, small and large, in several databases, with expiries, groups and functions.
fn fill(server: &mut TestServer) {
    for db in [0, 1, 2] {
        server.say(&format!("SELECT {db}"));
        for at in 0..EACH {
            server.say(&format!("SET int:{at} {at}"));
            server.say(&format!("SET text:{at} text{at}"));
            server.say(&format!("SET long:{at} {}", "x".repeat(70_000)));
            server.say(&format!("SET soon:{at} v PX 5000"));
            server.say(&format!("BF.RESERVE bloom:{at} 0.01 100"));
            server.say(&format!("BF.ADD bloom:{at} x"));
            server.say(&format!("PFADD hll:{at} a b c"));
            for count in [3, ELEMENTS] {
                fill_collections(server, &format!("{count}:{at}"), count);
            }
        }
    }
    server.say("SELECT 0");
    (0..EACH).for_each(|at| _ = server.say(&format!("ONCE before:{at} PX 100000 INCR counted")));
    function(server, "old", "1");
}

fn fill_collections(server: &mut TestServer, name: &str, count: usize) {
    let elements: String = (0..count).map(|at| format!(" element:{at}")).collect();
    let pairs: String = (0..count).map(|at| format!(" f:{at} v{at}")).collect();
    let scored: String = (0..count).map(|at| format!(" {at} m:{at}")).collect();
    server.say(&format!("RPUSH list:{name}{elements}"));
    server.say(&format!("SADD set:{name}{elements}"));
    server.say(&format!("HSET hash:{name}{pairs}"));
    server.say(&format!("HSET leased:{name}{pairs}"));
    server.say(&format!("HPEXPIRE leased:{name} 5000 FIELDS 2 f:0 f:1"));
    server.say(&format!("ZADD zset:{name}{scored}"));
    for at in 1..=count / 4 + 2 {
        server.say(&format!("XADD stream:{name} {at}-1 f v"));
    }
    server.say(&format!("XGROUP CREATE stream:{name} g 0"));
    server.say(&format!("XREADGROUP GROUP g c COUNT 2 STREAMS stream:{name} >"));
}

fn function(server: &mut TestServer, name: &str, result: &str) {
    let body = format!("redis.register_function('{name}', function() return {result} end)");
    let code = format!("#!lua name={name}\n{body}");
    let reply = server.run(&["FUNCTION", "LOAD", "REPLACE", &code]).to_string();
    assert_eq!(reply, format!("\"{name}\""));
}

/// Changes every key there is, in every way there is.
fn change(server: &mut TestServer) {
    for at in 0..EACH {
        let calls = match at % 6 {
            0 => "INCR int|APPEND text x|SETRANGE long 9 y|PERSIST soon|BF.ADD bloom y|PFADD hll z",
            1 => "DEL int|UNLINK text|DEL long|DEL soon|DEL bloom|DEL hll",
            2 => "SET int x|SET text 7|SET long s|SET soon w KEEPTTL|SET bloom s|SETBIT hll 9 1",
            3 => {
                "RENAME int a|RENAME text b|RENAME long c|RENAME soon d|RENAME bloom e|RENAME hll f"
            }
            4 => {
                "EXPIRE int 9|GETDEL text|MOVE long 5|GETEX soon PERSIST|COPY bloom g|INCRBY int 5"
            }
            _ => "SETBIT int 3 1|BITOP NOT text text|SETRANGE long 70100 z|EXPIRE soon 1|SORT int",
        };
        run_each(server, calls, |key| format!("{key}:{at}"));
        for count in [3, ELEMENTS] {
            change_collections(server, (at, count));
        }
    }
    server.say("ONCE after PX 100000 INCR counted");
    server.say("INCR counted");
    function(server, "old", "2");
    function(server, "new", "3");
    server.say("SET added v");
    server.say("EVAL redis.call('SET',KEYS[1],'v')redis.call('DEL',KEYS[2]) 2 added2 list:3:0");
    server.say("MULTI");
    server.say("SET set:3:0 x");
    server.say("INCR added3");
    server.say("EXEC");
}

fn change_collections(server: &mut TestServer, (at, count): (usize, usize)) {
    let calls = match at % 6 {
        0 => {
            "LPUSH list x|SADD set x|HSET hash f:1 w|HPERSIST leased FIELDS 1 f:0|\
             ZINCRBY zset 9 m:1|XADD stream 900-1 g w"
        }
        1 => {
            "LSET list 1 y|SREM set element:1|HDEL hash f:2|HDEL leased f:0|ZREM zset m:2|\
             XDEL stream 1-1"
        }
        2 => "RPOP list|SPOP set|HINCRBY hash n 1|DEL leased|ZPOPMIN zset|XACK stream g 1-1",
        3 => {
            "LTRIM list 1 1|SUNIONSTORE set set|RENAME hash h|HPEXPIRE leased 9 FIELDS 1 f:2|\
             ZRANGESTORE zset zset 0 1|XTRIM stream MAXLEN 1"
        }
        4 => "LINSERT list BEFORE element:1 q|DEL set|DEL hash|RENAME leased l|DEL zset|DEL stream",
        _ => {
            "LREM list 0 element:2|RENAME set s|COPY hash c REPLACE|EXPIRE leased 1|\
             ZADD zset 4 m:0|XGROUP DESTROY stream g"
        }
    };
    run_each(server, calls, |key| format!("{key}:{count}:{at}"));
}

/// Runs calls whose keys get a number.
fn run_each(server: &mut TestServer, calls: &str, name: impl Fn(&str) -> String) {
    for call in calls.split('|') {
        let mut args: Vec<String> = call.split(' ').map(str::to_owned).collect();
        let first = if ["BITOP", "XGROUP"].contains(&args[0].as_str()) { 2 } else { 1 };
        let has_two = ["RENAME", "COPY", "SUNIONSTORE", "ZRANGESTORE", "BITOP"];
        let last = first + usize::from(has_two.contains(&args[0].as_str()));
        args[first..=last].iter_mut().for_each(|arg| *arg = name(arg));
        let reply = server.run(&args).to_string();
        assert!(!reply.starts_with("-ERR unknown"), "{call}: {reply}");
    }
}

/// What a server has that loads the file.
fn digest_of_file(disk: &SimulatedDisk, moment: &str) -> String {
    let mut loaded = server_on(disk, 77);
    loaded.worker.node.load_snapshot().unwrap();
    loaded.say(&format!("DEBUG DIGEST FULL {moment}"))
}

fn moment(server: &TestServer) -> String {
    server.worker.node.clock.now().0.to_string()
}

/// A snapshot was a moment at which all shards were held; now each path by which data can change
/// while it is taken hands the old state over first.
#[test]
fn whatever_changes_meanwhile_the_file_has_the_data_of_the_cut() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    fill(&mut server);
    let cut = moment(&server);
    let digest = server.say(&format!("DEBUG DIGEST FULL {cut}"));
    server.say(STOP);
    assert_eq!(server.say("BGSAVE"), "+Background saving started");
    change(&mut server);
    server.say("SELECT 1");
    change(&mut server);
    server.say("SWAPDB 0 2");
    server.say("SWAPDB 1 5");
    server.say("SELECT 2");
    change(&mut server);
    server.say("FLUSHDB");
    server.say("SET text:0 again");
    server.clock.advance_ms(6000);
    for db in 0..6 {
        server.say(&format!("SELECT {db}"));
        (0..EACH).for_each(|at| _ = server.say(&format!("EXISTS soon:{at} leased:3:{at}")));
    }
    let now = server.worker.node.clock.now();
    (0..64).for_each(|shard| _ = server.worker.expire(shard, (now, 1000)));
    server.say("CONFIG SET maxmemory-policy allkeys-random");
    server.say("CONFIG SET maxmemory 1");
    server.worker.evict();
    server.say("CONFIG SET maxmemory 0");
    let info = server.say("INFO persistence");
    assert!(info.contains("rdb_bgsave_in_progress:1"), "the walk was stopped: {info}");
    assert!(!info.contains("current_cow_size:0\r"), "copies are counted: {info}");
    server.say(GO_ON);
    await_info(&mut server, "rdb_bgsave_in_progress:0");
    assert!(server.say("INFO persistence").contains("rdb_last_bgsave_status:ok"));
    assert_eq!(digest_of_file(&disk, &cut), digest);
}

/// The base of a rewritten log and what was appended since are the data as it is.
#[test]
fn base_and_increments_are_the_data_as_it_is() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    configure(&mut server, "appendonly", "yes");
    fill(&mut server);
    server.say(STOP);
    assert_eq!(server.say("BGREWRITEAOF"), "+Background append only file rewriting started");
    change(&mut server);
    assert!(server.say("BGREWRITEAOF").contains("already in progress"));
    assert!(server.say("BGSAVE").starts_with("-ERR Another child process is active"));
    assert_eq!(server.say("BGSAVE SCHEDULE"), "+Background saving scheduled");
    assert_eq!(server.say("BGSAVE CANCEL"), "+Scheduled background saving cancelled");
    server.say("FLUSHDB");
    change(&mut server);
    server.say("SWAPDB 0 1");
    change(&mut server);
    assert!(server.say("INFO persistence").contains("aof_rewrite_in_progress:1"));
    server.say(GO_ON);
    await_info(&mut server, "aof_rewrite_in_progress:0");
    let info = server.say("INFO persistence");
    assert!(info.contains("aof_rewrites:1") && info.contains("aof_last_bgrewrite_status:ok"));
    function(&mut server, "last", "4");
    let journal = server.worker.node.keyspace.journal().clone();
    let started = Instant::now();
    while journal.durable() < journal.offset() {
        assert!(started.elapsed() < WAIT_MAX);
        std::thread::sleep(Duration::from_millis(1));
    }
    let now = moment(&server);
    let digest = server.say(&format!("DEBUG DIGEST FULL {now}"));
    let left = disk.after_power_loss(Loss::All, 1);
    let mut loaded = server_on(&left, 5);
    let node = loaded.worker.node.clone();
    node.config
        .set(&[(&b"appendonly"[..], &b"yes"[..])], Requester::Local, &mut |_| Ok(()))
        .unwrap();
    node.open_files().unwrap();
    node.load_files().unwrap();
    assert_eq!(loaded.say(&format!("DEBUG DIGEST FULL {now}")), digest);
    assert_eq!(loaded.say("FCALL last 0"), "4");
}

#[test]
fn a_save_is_cancelled_and_begun_again() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    server.say("SET k old");
    assert_eq!(server.say("SAVE"), "+OK");
    assert!(server.say("BGSAVE CANCEL").starts_with("-ERR Background saving is currently not"));
    server.say("SET k new");
    server.say(STOP);
    assert_eq!(server.say("BGSAVE"), "+Background saving started");
    assert_eq!(server.say("BGSAVE"), "-ERR Background save already in progress");
    assert_eq!(server.say("BGSAVE SCHEDULE"), "-ERR Background save already in progress");
    assert_eq!(server.say("SAVE"), "-ERR Background save already in progress");
    assert_eq!(server.say("BGSAVE CANCEL"), "+Background saving cancelled");
    assert!(server.say("INFO persistence").contains("rdb_bgsave_in_progress:0"));
    assert_eq!(found(&disk).unwrap(), "\"old\"");
    assert_eq!(server.say("BGSAVE"), "+Background saving started", "at once");
    await_info(&mut server, "current_save_keys_total:1");
    server.say("SET k newer");
    server.say(GO_ON);
    await_info(&mut server, "rdb_bgsave_in_progress:0");
    assert_eq!(found(&disk).unwrap(), "\"new\"");
    server.worker.node.close_files();
    assert_eq!(disk.list(&dir_of(&server)).unwrap(), ["dump.rdb"], "nothing is left over");
}

#[test]
fn save_points_are_obeyed() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    configure(&mut server, "save", "60 3");
    let node = server.worker.node.clone();
    let is_saved_after = |server: &mut TestServer, ms: u64| {
        server.clock.advance_ms(ms);
        node.tick();
        await_info(server, "rdb_bgsave_in_progress:0");
        server.say("INFO persistence").contains("rdb_saves:1")
    };
    (0..2).for_each(|_| _ = server.say("INCR k"));
    assert!(!is_saved_after(&mut server, 70_000), "too few changes");
    configure(&mut server, "save", "3600 1");
    server.say("INCR k");
    assert!(!is_saved_after(&mut server, 10_000), "too soon");
    configure(&mut server, "save", "60 3");
    assert!(is_saved_after(&mut server, 1000));
    assert!(server.say("INFO persistence").contains("rdb_changes_since_last_save:0"));
    assert_eq!(server.say("LASTSAVE"), (node.clock.now().0 / 1000).to_string());
    assert_eq!(found(&disk).unwrap(), "\"3\"");
}

/// While saves fail writes are refused, if so configured; the old file stays, and a save that works
/// ends it.
#[test]
fn a_save_that_fails_leaves_the_old_file_and_stops_writes() {
    for (fault, at) in [Fault::Error, Fault::Short].into_iter().flat_map(|f| [(f, 0), (f, 2)]) {
        let disk = SimulatedDisk::new();
        let mut server = start(&disk);
        server.say("SET k old");
        assert_eq!(server.say("SAVE"), "+OK");
        server.say("SET k new");
        disk.fail_at(disk.operations() + at, fault);
        server.say("BGSAVE");
        await_info(&mut server, "rdb_bgsave_in_progress:0");
        if server.say("INFO persistence").contains("rdb_last_bgsave_status:ok") {
            // A write that was cut short was continued.
            assert_eq!(fault, Fault::Short);
            continue;
        }
        let refused = server.say("SET k x");
        assert!(refused.starts_with("-MISCONF Redis is configured to save"), "{refused}");
        assert!(server.say("PING").starts_with("-MISCONF"));
        assert_eq!(server.say("GET k"), "\"new\"");
        disk.mend();
        assert_eq!(found(&disk).unwrap(), "\"old\"", "{fault:?} at {at}");
        configure(&mut server, "stop-writes-on-bgsave-error", "no");
        assert_eq!(server.say("SET k newer"), "+OK");
        configure(&mut server, "stop-writes-on-bgsave-error", "yes");
        assert!(server.say("SET k x").starts_with("-MISCONF"));
        server.say("BGSAVE");
        await_info(&mut server, "rdb_last_bgsave_status:ok");
        assert_eq!(server.say("SET k last"), "+OK");
        assert_eq!(found(&disk).unwrap(), "\"newer\"");
        server.worker.node.close_files();
        assert_eq!(disk.list(&dir_of(&server)).unwrap(), ["dump.rdb"], "{fault:?} at {at}");
    }
}

/// A panic of the thread that took a snapshot left it under way for ever: every call kept what it
/// changed, and no other save could begin.
#[test]
fn a_save_that_panics_has_failed_and_is_over() {
    for at in 0..3 {
        let disk = SimulatedDisk::new();
        let mut server = start(&disk);
        server.say("SET k old");
        assert_eq!(server.say("SAVE"), "+OK");
        server.say("SET k new");
        disk.fail_at(disk.operations() + at, Fault::Panic);
        server.say("BGSAVE");
        await_info(&mut server, "rdb_bgsave_in_progress:0");
        assert!(server.say("INFO persistence").contains("rdb_last_bgsave_status:err"));
        assert!(server.say("SET k x").starts_with("-MISCONF"));
        assert_eq!(found(&disk).unwrap(), "\"old\"", "at {at}");
        configure(&mut server, "stop-writes-on-bgsave-error", "no");
        assert_eq!(server.say("SET k newer"), "+OK");
        assert_eq!(server.worker.node.keyspace.snapshots().copies_bytes(), (0, 0));
        server.say("BGSAVE");
        await_info(&mut server, "rdb_last_bgsave_status:ok");
        assert_eq!(found(&disk).unwrap(), "\"newer\"");
        server.worker.node.close_files();
        assert_eq!(disk.list(&dir_of(&server)).unwrap(), ["dump.rdb"], "at {at}");
    }
}

#[test]
fn flushall_ends_a_save_and_has_another_follow() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    server.say("SET k old");
    assert_eq!(server.say("SAVE"), "+OK");
    server.say(STOP);
    server.say("BGSAVE");
    server.say("FLUSHALL");
    assert!(server.say("INFO persistence").contains("rdb_bgsave_in_progress:0"));
    assert_eq!(found(&disk).unwrap(), "\"old\"");
    server.say(GO_ON);
    server.worker.node.tick();
    await_info(&mut server, "rdb_changes_since_last_save:0");
    await_info(&mut server, "rdb_bgsave_in_progress:0");
    assert_eq!(found(&disk).unwrap(), "nil");
}

/// Inside a transaction nothing begins, as the peers have it.
#[test]
fn a_save_in_a_transaction_is_scheduled() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    server.say("MULTI");
    server.say("SET k v");
    server.say("BGSAVE");
    assert_eq!(server.say("EXEC"), "[+OK, +Background saving scheduled]");
    // What a worker has changed is counted when it goes on.
    await_info(&mut server, "rdb_changes_since_last_save:1");
    server.worker.node.tick();
    await_info(&mut server, "rdb_changes_since_last_save:0");
    assert_eq!(found(&disk).unwrap(), "\"v\"");
    assert_eq!(server.say("BGSAVE FOO"), "-ERR syntax error");
    assert_eq!(TestServer::new().say("BGSAVE"), "-ERR there is no directory to save to");
}

/// The end does not wait for a save that is under way: it saves all data itself, and nothing is
/// left of the other.
#[test]
fn an_end_during_a_save_saves_what_is_there_then() {
    for end in ["SHUTDOWN", "SHUTDOWN SAVE", "a signal"] {
        let disk = SimulatedDisk::new();
        let mut server = start(&disk);
        server.say("SET k old");
        assert_eq!(server.say("SAVE"), "+OK");
        server.say(STOP);
        assert_eq!(server.say("BGSAVE"), "+Background saving started");
        server.say("SET k new");
        server.say(GO_ON);
        let node = server.worker.node.clone();
        match end {
            "a signal" => node.save_at_end(EndOptions::default()).unwrap(),
            _ => {
                server.try_run(&end.split(' ').collect::<Vec<_>>());
                assert!(server.session.is_closing, "{end}");
            }
        }
        node.close_files();
        assert_eq!(found(&disk).unwrap(), "\"new\"", "{end}");
        assert_eq!(disk.list(&dir_of(&server)).unwrap(), ["dump.rdb"], "{end}");
    }
}

/// A call that was let through before the end held writes back, and wrote after the cut, was
/// answered and lost.
#[test]
fn what_is_written_behind_the_cut_of_an_end_is_saved_too() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    server.say("SET k old");
    let node = server.worker.node.clone();
    assert!(node.save_late_writes(), "there is no end");
    assert_eq!(found(&disk).unwrap(), "nil");
    node.save_at_end(EndOptions::default()).unwrap();
    assert_eq!(found(&disk).unwrap(), "\"old\"");
    assert_eq!(server.say("CLIENT UNPAUSE"), "+OK");
    server.say("SET k late");
    assert!(node.save_late_writes());
    assert_eq!(found(&disk).unwrap(), "\"late\"");
    let operations = disk.operations();
    assert!(node.save_late_writes());
    assert_eq!(disk.operations(), operations, "nothing is to be saved");
}

/// An end that could not save lets writes go on, and a pause that there was before.
#[test]
fn an_end_that_fails_lets_writes_go_on() {
    let disk = SimulatedDisk::new();
    let mut server = start(&disk);
    server.say("SET k v");
    let node = server.worker.node.clone();
    disk.set_bytes_max(Some(disk.bytes()));
    assert_eq!(server.say("SHUTDOWN SAVE"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    assert!(!server.session.is_closing && node.pause.state().is_none());
    assert_eq!(server.say("SET k w"), "+OK");
    let pause = (PauseKind::All, UnixMillis(node.clock.now().0 + 1_000_000));
    node.pause.start(&node.keyspace, pause.0, pause.1);
    assert!(node.save_at_end(EndOptions::default()).is_err());
    assert_eq!(node.pause.state(), Some(pause));
    node.pause.end(&node.keyspace, || None);
    assert_eq!(node.save_at_end(EndOptions::parse("force")), Ok(()));
    assert!(node.pause.state().is_some(), "it ends all the same");
}
