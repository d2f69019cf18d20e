//! Snapshots of a server under load: each is of one moment, whatever is moved between shards
//! meanwhile; a log that is rewritten under load holds what the server holds; Valkey and Redis load
//! what was saved beside writes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use russet_base::random::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

const ACCOUNTS: u64 = 400;
const AMOUNT: i64 = 1000;
const LISTS: u64 = 40;
const WRITERS: u64 = 4;
const SNAPSHOTS: usize = 4;
const WAIT_MAX: Duration = Duration::from_secs(60);

fn number(client: &mut Client, args: &[&str]) -> i64 {
    match client.call(args).unwrap() {
        Reply::Int(number) => number,
        reply => reply.text().map_or(0, |it| String::from_utf8_lossy(it).parse().unwrap()),
    }
}

fn new_home(name: &str) -> PathBuf {
    let home = std::env::temp_dir().join(format!("russet-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    home
}

fn fill(client: &mut Client) {
    for at in 0..ACCOUNTS {
        client.call(&["SET", &format!("account:{at}"), &AMOUNT.to_string()]).unwrap();
        client.call(&["SET", &format!("filler:{at}"), &"x".repeat(200)]).unwrap();
    }
    for at in 0..LISTS {
        let (list, set, hash) = (format!("list:{at}"), format!("set:{at}"), format!("hash:{at}"));
        for element in 0..300 {
            let member = format!("{at}-{element}");
            client.call(&["RPUSH", &list, &member]).unwrap();
            client.call(&["SADD", &set, &member]).unwrap();
        }
        client.call(&["HSET", &hash, "f", "0"]).unwrap();
        client.call(&["ZADD", &format!("zset:{at}"), "0", "m"]).unwrap();
    }
}

/// Moves things about, so that sums stay what they are.
fn load(address: SocketAddr, seed: u64, is_over: &AtomicBool) {
    let mut random = Random::from_seed(seed);
    let mut client = Client::connect(address).unwrap();
    let narrow = "redis.call('DECRBY',KEYS[1],ARGV[1]) redis.call('INCRBY',KEYS[2],ARGV[1])";
    let wide = "redis.call('DECRBY','account:'..ARGV[2],ARGV[1]) \
                redis.call('INCRBY','account:'..ARGV[3],ARGV[1])";
    while !is_over.load(Ordering::Relaxed) {
        let (one, other) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let (from, to) = (format!("account:{one}"), format!("account:{other}"));
        let amount = random.below(50).to_string();
        let (first, second) = (random.below(LISTS), random.below(LISTS));
        let name = |kind: &str, at: u64| format!("{kind}:{at}");
        let calls: Vec<Vec<String>> = match random.below(6) {
            0 | 1 => vec![
                vec!["MULTI".into()],
                vec!["DECRBY".into(), from, amount.clone()],
                vec!["INCRBY".into(), to, amount],
                vec!["EXEC".into()],
            ],
            2 => vec![vec!["EVAL".into(), narrow.into(), "2".into(), from, to, amount]],
            3 => {
                let databases = [one.to_string(), other.to_string()];
                let mut call = vec!["EVAL".into(), wide.into(), "0".into(), amount];
                call.extend(databases);
                vec![call]
            }
            4 => vec![
                vec![
                    "LMOVE".into(),
                    name("list", first),
                    name("list", second),
                    "LEFT".into(),
                    "RIGHT".into(),
                ],
                vec!["MULTI".into()],
                vec!["HINCRBY".into(), name("hash", first), "f".into(), amount.clone()],
                vec!["ZINCRBY".into(), name("zset", second), format!("-{amount}"), "m".into()],
                vec!["EXEC".into()],
            ],
            _ => {
                let member = format!("{first}-{}", random.below(300));
                vec![vec!["SMOVE".into(), name("set", first), name("set", second), member]]
            }
        };
        for call in calls {
            let reply = client.call(&call).unwrap();
            assert!(!reply.is_error(), "{call:?}: {reply:?}");
        }
    }
}

/// What is the same at every moment.
fn check(address: SocketAddr) {
    let mut client = Client::connect(address).unwrap();
    let mut sum = |kind: &str, count: u64, call: &[&str]| -> i64 {
        let one = |at: u64| {
            let key = format!("{kind}:{at}");
            let call: Vec<&str> =
                call.iter().map(|arg| if *arg == "KEY" { key.as_str() } else { *arg }).collect();
            number(&mut client, &call)
        };
        (0..count).map(one).sum()
    };
    assert_eq!(sum("account", ACCOUNTS, &["GET", "KEY"]), ACCOUNTS as i64 * AMOUNT);
    assert_eq!(sum("filler", ACCOUNTS, &["STRLEN", "KEY"]), ACCOUNTS as i64 * 200);
    assert_eq!(sum("list", LISTS, &["LLEN", "KEY"]), LISTS as i64 * 300);
    assert_eq!(sum("set", LISTS, &["SCARD", "KEY"]), LISTS as i64 * 300);
    let fields = sum("hash", LISTS, &["HGET", "KEY", "f"]);
    assert_eq!(fields + sum("zset", LISTS, &["ZSCORE", "KEY", "m"]), 0);
}

fn await_info(client: &mut Client, what: &str) {
    let started = Instant::now();
    loop {
        let info = client.call(&["INFO", "persistence"]).unwrap();
        let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
        if info.contains(what) {
            return;
        }
        assert!(started.elapsed() < WAIT_MAX, "{what}: {info}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `act` beside writers.
fn under_load(address: SocketAddr, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..WRITERS {
            let is_over = &is_over;
            scope.spawn(move || load(address, seed, is_over));
        }
        act();
        is_over.store(true, Ordering::Relaxed);
    });
}

fn load_copy(kind: Kind, file: &Path, home: &Path) {
    let dir = home.join("loaded");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(file, dir.join("dump.rdb")).unwrap();
    if let Some(server) = Server::start_if_there(kind, &["--dir", &dir.display().to_string()]) {
        check(server.address());
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn each_snapshot_under_load_is_of_one_moment() {
    let home = new_home("snapshots");
    let dir = home.display().to_string();
    let server = Server::start(Kind::Russet, &["--dir", &dir, "--save", ""]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    fill(&mut client);
    let mut files = Vec::new();
    under_load(server.address(), || {
        for at in 0..SNAPSHOTS {
            // So slow that much is changed meanwhile.
            client.call(&["CONFIG", "SET", "rdb-key-save-delay", "200"]).unwrap();
            client.call(&["BGSAVE"]).unwrap();
            await_info(&mut client, "rdb_bgsave_in_progress:0");
            await_info(&mut client, "rdb_last_bgsave_status:ok");
            let file = home.join(format!("kept-{at}.rdb"));
            std::fs::copy(home.join("dump.rdb"), &file).unwrap();
            files.push(file);
        }
    });
    check(server.address());
    drop(server);
    for file in &files {
        load_copy(Kind::Russet, file, &home);
    }
    load_copy(Kind::Valkey, &files[0], &home);
    load_copy(Kind::Redis, &files[0], &home);
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_log_that_is_rewritten_under_load_holds_what_the_server_holds() {
    let home = new_home("rewrites");
    let dir = home.display().to_string();
    let extra =
        ["--dir", &dir, "--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(Kind::Russet, &extra).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    fill(&mut client);
    under_load(server.address(), || {
        for at in 0..SNAPSHOTS {
            let delay = if at % 2 == 0 { "0" } else { "100" };
            client.call(&["CONFIG", "SET", "rdb-key-save-delay", delay]).unwrap();
            let reply = client.call(&["BGREWRITEAOF"]).unwrap();
            assert!(!reply.is_error(), "{reply:?}");
            await_info(&mut client, "aof_rewrite_in_progress:0");
            await_info(&mut client, &format!("aof_rewrites:{}\r", at + 1));
        }
    });
    let digest = |client: &mut Client| {
        let reply = client.call(&["DEBUG", "DIGEST", "FULL", "1"]).unwrap();
        reply.text().unwrap().to_vec()
    };
    assert!(number(&mut client, &["INCR", "last"]) == 1);
    client.call(&["WAITAOF", "1", "0", "0"]).unwrap();
    let expected = digest(&mut client);
    server.signal("KILL").unwrap();
    drop(server);
    let server = Server::start(Kind::Russet, &extra).unwrap();
    check(server.address());
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(digest(&mut client), expected);
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

fn status(text: &str) -> Reply {
    Reply::Status(text.as_bytes().to_vec())
}

fn send(client: &mut Client, line: &str) {
    let args: Vec<Vec<u8>> = line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
    client.send(&args).unwrap();
}

/// A server on some directory whose saves do not end before [`GO_ON`], and two clients.
fn start_saving_slowly(home: &Path) -> (Server, Client, Client) {
    let server = Server::start(Kind::Russet, &["--dir", home.to_str().unwrap()]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    client.call(&["SET", "k", "old"]).unwrap();
    client.call(&["CONFIG", "SET", "rdb-key-save-delay", "1000000000"]).unwrap();
    let other = Client::connect(server.address()).unwrap();
    (server, client, other)
}

const GO_ON: [&str; 4] = ["CONFIG", "SET", "rdb-key-save-delay", "0"];
const IS_SAVING: &str = "current_save_keys_processed:1";

/// SAVE held all keys while it wrote.
#[test]
fn others_go_on_while_a_client_waits_for_save() {
    let home = new_home("awaited-save");
    let (server, mut saving, mut other) = start_saving_slowly(&home);
    send(&mut saving, "SAVE");
    await_info(&mut other, IS_SAVING);
    assert_eq!(other.call(&["SET", "k", "new"]).unwrap(), status("OK"));
    assert_eq!(saving.glance().unwrap(), None, "it waits");
    for call in ["SAVE", "BGSAVE", "BGSAVE CANCEL"] {
        let args: Vec<&str> = call.split(' ').collect();
        assert!(
            other.call(&args).unwrap().is_error(),
            "{call}: one at a time, and it is a client's"
        );
    }
    assert_eq!(other.call(&["FLUSHALL"]).unwrap(), status("OK"));
    assert_eq!(other.call(&GO_ON).unwrap(), status("OK"));
    assert_eq!(saving.read(WAIT_MAX).unwrap(), status("OK"), "it has what there was");
    drop(server);
    let server = Server::start(Kind::Russet, &["--dir", home.to_str().unwrap()]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"old".to_vec()));
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

/// So did the end. Now reads go on while it saves; writes wait, and go on if the end is called off.
/// It is not if its client goes.
#[test]
fn reads_go_on_while_the_end_saves() {
    let home = new_home("awaited-end");
    let (mut server, mut ending, mut other) = start_saving_slowly(&home);
    let mut writer = Client::connect(server.address()).unwrap();
    send(&mut ending, "SHUTDOWN SAVE");
    await_info(&mut other, IS_SAVING);
    send(&mut writer, "SET k new");
    assert_eq!(other.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"old".to_vec()));
    assert_eq!(writer.glance().unwrap(), None, "it waits");
    assert_eq!(other.call(&["SHUTDOWN", "ABORT"]).unwrap(), status("OK"));
    assert!(ending.read(WAIT_MAX).unwrap().is_error());
    assert_eq!(writer.read(WAIT_MAX).unwrap(), status("OK"), "the end is off");
    assert!(other.call(&["SHUTDOWN", "ABORT"]).unwrap().is_error());

    send(&mut ending, "SHUTDOWN SAVE");
    await_info(&mut other, IS_SAVING);
    let address = ending.local_address().unwrap().to_string();
    assert_eq!(number(&mut other, &["CLIENT", "KILL", "ADDR", &address]), 1);
    send(&mut writer, "SET k newer");
    assert_eq!(other.call(&GO_ON).unwrap(), status("OK"));
    assert_eq!(server.exit_code(WAIT_MAX), Some(0));
    assert!(writer.read(WAIT_MAX).is_err(), "it was never answered");
    drop(server);
    let server = Server::start(Kind::Russet, &["--dir", home.to_str().unwrap()]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"new".to_vec()));
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

/// A signal waits for the end that a client has begun, and does not save a second time.
#[test]
fn a_signal_joins_an_end_that_is_saving() {
    let home = new_home("joined-end");
    let (mut server, mut ending, mut other) = start_saving_slowly(&home);
    send(&mut ending, "SHUTDOWN SAVE");
    await_info(&mut other, IS_SAVING);
    server.signal("TERM").unwrap();
    assert_eq!(other.call(&GO_ON).unwrap(), status("OK"));
    assert_eq!(server.exit_code(WAIT_MAX), Some(0));
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

/// An end that a signal has begun is aborted like one of SHUTDOWN, however many signals have asked
/// for it; a second SIGINT does not wait for what is being saved.
#[test]
fn an_end_by_a_signal_is_aborted_or_insisted_on() {
    let home = new_home("signalled-end");
    let (mut server, mut client, mut other) = start_saving_slowly(&home);
    for name in ["shutdown-on-sigterm", "shutdown-on-sigint"] {
        assert_eq!(client.call(&["CONFIG", "SET", name, "save"]).unwrap(), status("OK"));
    }
    server.signal("TERM").unwrap();
    await_info(&mut other, IS_SAVING);
    server.signal("TERM").unwrap();
    // One that is seen after the abort begins another end.
    let seen = |line: String| line.ends_with("about to stop already");
    while !server.next_line(WAIT_MAX).is_some_and(seen) {}
    send(&mut client, "SET k new");
    assert_eq!(client.glance().unwrap(), None, "it waits");
    assert_eq!(other.call(&["SHUTDOWN", "ABORT"]).unwrap(), status("OK"));
    assert_eq!(client.read(WAIT_MAX).unwrap(), status("OK"), "the end is off");
    let aborted = |line: String| line.ends_with("Not stopping: the end was aborted");
    while !server.next_line(WAIT_MAX).is_some_and(aborted) {}
    await_info(&mut other, "rdb_bgsave_in_progress:0");
    assert!(other.call(&["SHUTDOWN", "ABORT"]).unwrap().is_error());

    server.signal("INT").unwrap();
    await_info(&mut other, IS_SAVING);
    server.signal("INT").unwrap();
    assert_eq!(server.exit_code(WAIT_MAX), Some(1));
    assert!(!home.join("dump.rdb").exists());
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

/// `shutdown-on-sigint` and `shutdown-on-sigterm` are the options of SHUTDOWN.
#[test]
fn a_signal_ends_as_its_directive_says() {
    let ends = [
        ("", "default", Some(0), false),
        ("3600 1", "default", Some(0), true),
        ("3600 1", "nosave now", Some(0), false),
        ("", "save", Some(0), true),
        ("", "save force", Some(0), true),
    ];
    for (number, (points, options, code, is_saved)) in ends.into_iter().enumerate() {
        let (signal, name) = match number % 2 {
            0 => ("TERM", "shutdown-on-sigterm"),
            _ => ("INT", "shutdown-on-sigint"),
        };
        let home = new_home(&format!("signal-{number}"));
        let mut server = Server::start(Kind::Russet, &["--dir", home.to_str().unwrap()]).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        let set = ["CONFIG", "SET", "save", points, name, options];
        assert_eq!(client.call(&set).unwrap(), status("OK"));
        client.call(&["SET", "k", "v"]).unwrap();
        server.signal(signal).unwrap();
        assert_eq!(server.exit_code(WAIT_MAX), code);
        assert_eq!(home.join("dump.rdb").exists(), is_saved, "{points} {options}");
        drop(server);
        std::fs::remove_dir_all(&home).unwrap();
    }
}

/// A save that fails keeps the process from ending, unless it is forced.
#[test]
fn a_signal_that_forces_ends_without_having_saved() {
    let home = new_home("forced-end");
    // What is to be replaced is a directory.
    std::fs::create_dir(home.join("dump.rdb")).unwrap();
    let dir = home.to_str().unwrap();
    let save = ["--shutdown-on-sigterm", "save", "--enable-protected-configs", "yes"];
    let args = [["--dir", dir, "--dbfilename", "other.rdb"], save].concat();
    let mut server = Server::start(Kind::Russet, &args).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["CONFIG", "SET", "dbfilename", "dump.rdb"]).unwrap(), status("OK"));
    server.signal("TERM").unwrap();
    let refused = |line: String| line.contains("Not stopping: ");
    while !server.next_line(WAIT_MAX).is_some_and(refused) {}
    let force = ["CONFIG", "SET", "shutdown-on-sigterm", "save force"];
    assert_eq!(client.call(&force).unwrap(), status("OK"));
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(WAIT_MAX), Some(0));
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}

/// A log that was switched on held all keys until its base was written.
#[test]
fn others_write_while_a_log_begins() {
    let home = new_home("begun-log");
    let (mut server, mut switching, mut other) = start_saving_slowly(&home);
    let is_on = ["CONFIG", "GET", "appendonly"];
    let shown = |value: &str| ["appendonly", value].map(|it| Reply::Bulk(it.into())).to_vec();
    // Its client is killed: there is no log.
    let mut gone = Client::connect(server.address()).unwrap();
    send(&mut gone, "CONFIG SET appendonly yes");
    await_info(&mut other, "aof_rewrite_in_progress:1");
    let address = gone.local_address().unwrap().to_string();
    assert_eq!(number(&mut other, &["CLIENT", "KILL", "ADDR", &address]), 1);
    await_info(&mut other, "aof_rewrite_in_progress:0");
    assert_eq!(other.call(&is_on).unwrap(), Reply::Array(shown("no")));

    send(&mut switching, "CONFIG SET appendonly yes appendfsync always");
    await_info(&mut other, IS_SAVING);
    assert_eq!(other.call(&["SET", "k", "new"]).unwrap(), status("OK"));
    assert_eq!(other.call(&["SELECT", "3"]).unwrap(), status("OK"));
    assert_eq!(other.call(&["SET", "there", "1"]).unwrap(), status("OK"));
    assert_eq!(switching.glance().unwrap(), None, "it waits");
    assert_eq!(other.call(&GO_ON).unwrap(), status("OK"));
    assert_eq!(switching.read(WAIT_MAX).unwrap(), status("OK"));
    assert_eq!(switching.call(&is_on).unwrap(), Reply::Array(shown("yes")));
    assert_eq!(switching.call(&["SET", "behind", "1"]).unwrap(), status("OK"));
    server.signal("KILL").unwrap();
    server.exit_code(WAIT_MAX);
    drop(server);
    let options = ["--dir", home.to_str().unwrap(), "--appendonly", "yes"];
    let server = Server::start(Kind::Russet, &options).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"new".to_vec()));
    assert_eq!(number(&mut client, &["DBSIZE"]), 2);
    client.call(&["SELECT", "3"]).unwrap();
    assert_eq!(number(&mut client, &["GET", "there"]), 1);
    drop(server);
    std::fs::remove_dir_all(&home).unwrap();
}
