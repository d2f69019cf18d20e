//! Loading at a start: in pieces, on all cores, while clients are answered that it loads.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server};

/// A directory for one test, removed with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("russet-load-{name}-{}", std::process::id()));
        let _removed = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn start(&self, extra: &[&str]) -> (Server, Client) {
        let mut args = vec!["--dir", self.0.to_str().unwrap()];
        args.extend(extra);
        let server = Server::start(Kind::Russet, &args).unwrap();
        let client = Client::connect(server.address()).unwrap();
        (server, client)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(client: &mut Client, line: &str) -> Reply {
    client.call(&line.split(' ').collect::<Vec<_>>()).unwrap()
}

fn call(client: &mut Client, line: &str) -> Reply {
    let reply = ask(client, line);
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn text(reply: Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

const LOG: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// While data was loaded from a snapshot nobody could connect, and nothing showed the progress.
#[test]
fn a_server_that_loads_says_so_and_how_far_it_is() {
    for is_log in [false, true] {
        let home = Home::new(&format!("told-{is_log}"));
        let log: &[&str] = if is_log { &LOG } else { &[] };
        let (server, mut client) = home.start(log);
        for index in 0..300 {
            call(&mut client, &format!("SET key:{index} {}", "v".repeat(1000)));
        }
        if !is_log {
            call(&mut client, "SAVE");
        }
        drop(server);
        let mut args = vec!["--dir", home.0.to_str().unwrap(), "--key-load-delay", "1000000"];
        args.extend(log);
        let server = Server::start_loading(&args).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        let refused = "LOADING Redis is loading the dataset in memory";
        assert_eq!(text(ask(&mut client, "GET key:1")), refused);
        assert_eq!(text(ask(&mut client, "PING")), refused);
        // It listens a moment before it opens the file, and reads its head a moment later.
        let started = Instant::now();
        let info = loop {
            let info = text(call(&mut client, "INFO persistence"));
            let is_open = !info.contains("loading_total_bytes:0\r");
            if is_open && (is_log || !info.contains("loading_rdb_used_mem:0\r")) {
                break info;
            }
            assert!(started.elapsed() < Duration::from_secs(30), "{info}");
        };
        let field = |name: &str| -> u64 {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let found = found.unwrap_or_else(|| panic!("{name} is missing:\n{info}"));
            found.trim().split('.').next().unwrap().parse().unwrap()
        };
        assert_eq!(field("loading"), 1);
        let (total, loaded) = (field("loading_total_bytes"), field("loading_loaded_bytes"));
        assert!(total > 3000 && loaded <= total, "{info}");
        assert!(field("loading_loaded_perc") <= 100 && field("loading_start_time") > 0);
        field("loading_eta_seconds");
        assert_eq!(field("loading_rdb_used_mem") > 0, !is_log);
        call(&mut client, "CONFIG SET key-load-delay 0");
        let started = Instant::now();
        while ask(&mut client, "PING").is_error() {
            assert!(started.elapsed() < Duration::from_secs(30), "it never ends");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(call(&mut client, "DBSIZE"), Reply::Int(300));
        assert!(!text(call(&mut client, "INFO persistence")).contains("loading_total_bytes"));
    }
}

/// An end while the data was loaded saved what had come so far, in place of the file that it came
/// from.
#[test]
fn an_end_while_data_is_loaded_leaves_the_file_alone() {
    let home = Home::new("ended");
    let (server, mut client) = home.start(&[]);
    (0..300).for_each(|index| _ = call(&mut client, &format!("SET key:{index} v")));
    call(&mut client, "SAVE");
    drop(server);
    let file = home.0.join("dump.rdb");
    let before = std::fs::read(&file).unwrap();
    let args = ["--dir", home.0.to_str().unwrap(), "--key-load-delay", "100000", "--save", "60 1"];
    for end in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOSAVE", "TERM"] {
        let mut server = Server::start_loading(&args).unwrap();
        let mut client = Client::connect(server.address()).unwrap();
        assert!(ask(&mut client, "PING").is_error(), "it loads");
        match end {
            "TERM" => server.signal(end).unwrap(),
            _ => {
                let args: Vec<Vec<u8>> = end.split(' ').map(|arg| arg.into()).collect();
                client.send(&args).unwrap();
            }
        }
        assert_eq!(server.exit_code(Duration::from_secs(20)), Some(0), "{end}");
        assert!(std::fs::read(&file).unwrap() == before, "{end}");
    }
}

/// A generator of choices, the same every time.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// Commands of one key and of several, in transactions and alone, on few keys in several databases:
/// what they came to must be the same after a load, in which threads share them out.
#[test]
fn what_happens_to_a_key_happens_in_the_order_of_the_log() {
    let home = Home::new("order");
    let (server, mut client) = home.start(&LOG);
    let mut choices = Choices(11);
    let mut transaction = 0;
    for _ in 0..4000 {
        let (key, other) = (choices.below(60), choices.below(60));
        let line = match choices.below(24) {
            0..=5 => format!("APPEND s:{key} {other},"),
            6..=9 => format!("RPUSH l:{key} {other}"),
            10 => format!("LPOP l:{key}"),
            11 => format!("RENAME s:{key} s:{other}"),
            12 => format!("COPY l:{key} l:{other} REPLACE"),
            13 => format!("LMOVE l:{key} l:{other} LEFT RIGHT"),
            14 => format!("MSET m:{key} {other} m:{other} {key}"),
            15 => format!("DEL s:{key} l:{other}"),
            16 => format!("SELECT {}", choices.below(3)),
            17 if transaction == 0 => {
                transaction = 1 + choices.below(6);
                "MULTI".to_owned()
            }
            18 if choices.below(40) == 0 => "FLUSHDB".to_owned(),
            19 if choices.below(20) == 0 => "SWAPDB 0 1".to_owned(),
            20 => format!("HINCRBY h:{key} f {other}"),
            21 => format!("EXPIRE s:{key} 100000"),
            22 => format!("PERSIST s:{key}"),
            _ => format!("SET s:{key} {other}"),
        };
        // Some find no key, or one of another type.
        let _reply = ask(&mut client, &line);
        if transaction > 0 && line != "MULTI" {
            transaction -= 1;
            if transaction == 0 {
                ask(&mut client, "EXEC");
            }
        }
    }
    ask(&mut client, "EXEC");
    let digest = |client: &mut Client| text(call(client, "DEBUG DIGEST FULL 1700000000000"));
    let before = digest(&mut client);
    drop(server);
    for _ in 0..3 {
        let (_server, mut client) = home.start(&LOG);
        assert_eq!(digest(&mut client), before);
    }
}

/// Everything is there that was, of every type, from a file of many batches.
#[test]
fn a_snapshot_of_many_keys_is_loaded_whole() {
    let home = Home::new("many");
    let (server, mut client) = home.start(&[]);
    call(&mut client, "DEBUG POPULATE 20000 key 20");
    for index in 0..300 {
        call(&mut client, &format!("SET expiring:{index} v PX 100000000"));
        call(&mut client, &format!("HSET hash:{index} a 1 b {}", "x".repeat(index)));
        call(&mut client, &format!("RPUSH list:{index} 1 2 {}", "y".repeat(5 * index)));
        call(&mut client, &format!("ZADD zset:{index} 1 a 2 b{index}"));
        call(&mut client, &format!("SADD set:{index} 1 2 c{index}"));
        call(&mut client, &format!("XADD stream:{index} 1-1 f v"));
        call(&mut client, &format!("ONCE id-{index} PX 100000000 INCR counter:{index}"));
    }
    call(&mut client, "SELECT 5");
    call(&mut client, &format!("SET large {}", "z".repeat(3_000_000)));
    call(&mut client, "BF.ADD bloom item");
    call(&mut client, "SAVE");
    let digest = |client: &mut Client| text(call(client, "DEBUG DIGEST FULL 1700000000000"));
    let before = digest(&mut client);
    drop(server);
    let (_server, mut client) = home.start(&[]);
    assert_eq!(digest(&mut client), before);
    let info = text(call(&mut client, "INFO persistence"));
    assert!(info.contains("rdb_last_load_keys_loaded:22102"), "{info}");
}
