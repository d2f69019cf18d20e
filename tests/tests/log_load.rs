//! What a log means that is loaded later, or that another server has written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

/// A directory for one test, removed with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("russet-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("appendonlydir")).unwrap();
        Home(path)
    }

    fn start(&self, extra: &[&str]) -> (Server, Client) {
        let dir = self.0.display().to_string();
        let log = ["--dir", &dir, "--appendonly", "yes", "--appendfsync", "always"];
        let args: Vec<&str> = log.iter().chain(extra).copied().collect();
        let server = Server::start(Kind::Russet, &args).unwrap();
        let client = Client::connect(server.address()).unwrap();
        (server, client)
    }

    /// Puts a log there as another server would write it: a command on each line.
    fn write_log(&self, lines: &[&str]) {
        let dir: &Path = &self.0.join("appendonlydir");
        let mut log = String::new();
        for line in lines {
            let args: Vec<&str> = line.split(' ').collect();
            log += &format!("*{}\r\n", args.len());
            args.iter().for_each(|arg| log += &format!("${}\r\n{arg}\r\n", arg.len()));
        }
        std::fs::write(dir.join("appendonly.aof.1.incr.aof"), log).unwrap();
        let manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n";
        std::fs::write(dir.join("appendonly.aof.manifest"), manifest).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn call(client: &mut Client, line: &str) -> Reply {
    let reply = client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn number(client: &mut Client, line: &str) -> i64 {
    match call(client, line) {
        Reply::Int(number) => number,
        reply => panic!("{line}: {reply:?}"),
    }
}

fn rewrite(client: &mut Client) {
    call(client, "BGREWRITEAOF");
    client.await_rewrite();
}

/// The base was loaded at the beginning of time, and what it says of the use of keys was lost: the
/// most used keys were the first to be evicted after a restart.
#[test]
fn the_use_of_keys_is_there_after_a_rewrite_and_a_restart() {
    for (policy, ask, low) in [("allkeys-lfu", "FREQ", 30), ("allkeys-lru", "IDLETIME", 1000)] {
        let home = Home::new(&format!("use-{policy}"));
        let before = {
            let (server, mut client) = home.start(&["--maxmemory-policy", policy]);
            call(&mut client, "SET source v");
            let payload = call(&mut client, "DUMP source").text().unwrap().to_vec();
            let noted = if ask == "FREQ" { "200" } else { "1000" };
            let restore: [&[u8]; 6] =
                [b"RESTORE", b"k", b"0", &payload, ask.as_bytes(), noted.as_bytes()];
            assert!(!client.call(&restore).unwrap().is_error());
            let before = number(&mut client, &format!("OBJECT {ask} k"));
            rewrite(&mut client);
            server.signal("KILL").unwrap();
            before
        };
        let (_server, mut client) = home.start(&["--maxmemory-policy", policy]);
        let after = number(&mut client, &format!("OBJECT {ask} k"));
        assert!(after >= low && after.abs_diff(before) <= 30, "{policy}: {before}, then {after}");
    }
}

/// After a restart each consumer looked as if it had been gone since 1970, and was removed by those
/// who clean up.
#[test]
fn consumers_have_not_been_idle_since_the_beginning_of_time() {
    let home = Home::new("consumers");
    {
        let (server, mut client) = home.start(&[]);
        call(&mut client, "XADD s 1-1 f v");
        call(&mut client, "XGROUP CREATE s g 0");
        call(&mut client, "XREADGROUP GROUP g c STREAMS s >");
        call(&mut client, "XGROUP CREATECONSUMER s g d");
        server.signal("KILL").unwrap();
    }
    let (_server, mut client) = home.start(&[]);
    let shown = format!("{:?}", call(&mut client, "XINFO CONSUMERS s g"));
    let idle: Vec<u64> = shown
        .split("Int(")
        .skip(1)
        .filter_map(|rest| rest.split(')').next()?.parse().ok())
        .collect();
    let minute_ms = 60_000;
    assert!(idle.len() >= 4 && idle.iter().all(|ms| *ms < minute_ms), "{shown}");
}

/// Logs of old servers have relative expiries. They were taken from 1970 on, so the keys were gone.
#[test]
fn a_relative_expiry_in_a_log_counts_from_the_load() {
    let home = Home::new("relative");
    let script = "EVAL redis.call('INCR',KEYS[1])redis.call('EXPIRE',KEYS[1],1000) 1 eval";
    home.write_log(&[
        "SELECT 0",
        "SETEX setex 1000 v",
        "PSETEX psetex 1000000 v",
        "SET ex v EX 1000",
        "SET expire v",
        "EXPIRE expire 1000",
        "SET getex v",
        "GETEX getex EX 1000",
        "HSET hash f v",
        "HEXPIRE hash 1000 FIELDS 1 f",
        script,
        "SET over v",
        "PEXPIREAT over 1000",
    ]);
    let (_server, mut client) = home.start(&[]);
    for key in ["setex", "psetex", "ex", "expire", "getex", "eval"] {
        let ttl = number(&mut client, &format!("TTL {key}"));
        assert!((900..=1000).contains(&ttl), "{key}: {ttl}");
    }
    let fields = call(&mut client, "HTTL hash FIELDS 1 f");
    assert!(!format!("{fields:?}").contains("(-"), "{fields:?}");
    assert_eq!(number(&mut client, "EXISTS over hash"), 1);
}

/// A rewrite that could not be written was begun again at once, with all data encoded and every
/// lock taken, ten times in a second.
#[test]
fn a_rewrite_that_fails_is_not_tried_again_at_once() {
    let home = Home::new("retry");
    // No base can have any of the next names.
    for number in 1..200 {
        let name = format!("appendonlydir/appendonly.aof.{number}.base.rdb");
        std::fs::create_dir(home.0.join(name)).unwrap();
    }
    let (server, mut client) = home.start(&["--auto-aof-rewrite-min-size", "1kb"]);
    call(&mut client, &format!("SET k {}", "v".repeat(10_000)));
    let warnings = || {
        let line = server.next_line(Duration::from_secs(2))?;
        Some(line.contains("was not rewritten"))
    };
    let count = std::iter::from_fn(warnings).filter(|is_warning| *is_warning).take(3).count();
    assert_eq!(count, 1);
    let info = call(&mut client, "INFO persistence");
    let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
    assert!(info.contains("aof_last_bgrewrite_status:err"), "{info}");
}

/// Other servers load logs with commands that fail, or that only read: so do we, with a warning.
/// What nobody knows is refused.
#[test]
fn commands_without_effect_in_a_log_of_another_server_are_passed_over() {
    let home = Home::new("foreign");
    let mut lines = vec!["SELECT 0", "SET s x", "INCR s", "LPUSH s 1", "PING", "GET s"];
    lines.extend(["MULTI", "SET a 1", "INCR s", "SET b 1", "EXEC"]);
    lines.extend(["INCR s"; 100]);
    lines.push("SET last 1");
    home.write_log(&lines);
    {
        let (server, mut client) = home.start(&[]);
        assert_eq!(number(&mut client, "DBSIZE"), 4);
        assert_eq!(number(&mut client, "EXISTS s a b last"), 4);
        let is_warning = |line: &&String| line.contains("no effect");
        let warnings = server.lines_before_ready().iter().filter(is_warning).count();
        assert!((5..=30).contains(&warnings), "{:?}", server.lines_before_ready());
    }
    home.write_log(&["SET s x", "NOSUCHCOMMAND"]);
    let dir = home.0.display().to_string();
    let args = ["--port", "0", "--dir", &dir, "--appendonly", "yes"];
    let refused = russet_tests::server::run_russet(&args).unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("unknown command"), "{message}");
}

/// What was over when a base was loaded was dropped before its increments were run, which had given
/// keys and fields other deadlines, or changed them: they were lost, or no log could be loaded.
#[test]
fn a_deadline_of_the_base_is_over_only_once_the_increments_are_loaded() {
    let home = Home::new("overdue");
    let millis = 300;
    {
        let (server, mut client) = home.start(&[]);
        for line in ["SET kept v", "SET later v", "SET over v", "RPUSH list a b", "SET renamed v"] {
            call(&mut client, line);
        }
        for key in ["kept", "later", "over", "list", "renamed"] {
            call(&mut client, &format!("PEXPIRE {key} {millis}"));
        }
        call(&mut client, "HSET hash f 1 g 2");
        call(&mut client, &format!("HPEXPIRE hash {millis} FIELDS 2 f g"));
        rewrite(&mut client);
        for line in ["PERSIST kept", "EXPIRE later 1000", "LSET list 0 z", "RPUSH list c"] {
            call(&mut client, line);
        }
        for line in ["PERSIST list", "RENAME renamed other", "PERSIST other"] {
            call(&mut client, line);
        }
        call(&mut client, "HPERSIST hash FIELDS 1 f");
        server.signal("KILL").unwrap();
    }
    std::thread::sleep(Duration::from_millis(2 * millis));
    for asks_again in [false, true] {
        let (_server, mut client) = home.start(&["--enable-debug-command", "yes"]);
        if asks_again {
            call(&mut client, "DEBUG LOADAOF");
        }
        assert_eq!(number(&mut client, "EXISTS kept later list other hash"), 5);
        assert_eq!(number(&mut client, "EXISTS over renamed"), 0);
        assert_eq!(number(&mut client, "LLEN list"), 3);
        assert_eq!(number(&mut client, "HEXISTS hash f"), 1);
        assert_eq!(number(&mut client, "HEXISTS hash g"), 0);
    }
}

/// WAITAOF that waited for replicas in vain said that nothing was durable here either.
#[test]
fn waitaof_says_what_is_durable_here_when_its_time_is_over() {
    let home = Home::new("waitaof");
    let (_server, mut client) = home.start(&[]);
    call(&mut client, "SET k v");
    for line in ["WAITAOF 1 1 20", "WAITAOF 0 1 20", "WAITAOF 0 0 20"] {
        let reply = call(&mut client, line);
        assert_eq!(reply, Reply::Array(vec![Reply::Int(1), Reply::Int(0)]), "{line}");
    }
}
