//! Users: random rules and calls against a peer, the file of users, and what a change does to open
//! connections of a real server.

#[path = "acl/verdicts.rs"]
mod verdicts;

use std::time::{Duration, Instant};

use russet_base::random::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, run_russet};

/// How long rules are compared, unless `RUSSET_DIFFER_SECONDS` says otherwise.
const SECONDS_DEFAULT: u64 = 3;
const WAIT: Duration = Duration::from_secs(10);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn say(client: &mut Client, line: &str) -> Reply {
    client.call(&line.split(' ').collect::<Vec<_>>()).unwrap()
}

fn text(client: &mut Client, line: &str) -> String {
    String::from_utf8_lossy(say(client, line).text().unwrap_or_default()).into_owned()
}

fn one<'a>(random: &mut Random, list: &[&'a str]) -> &'a str {
    list[random.index(list.len())]
}

/// Commands with arguments that name keys, channels and databases in each way there is.
const CALLS: &[&str] = &[
    "GET a1",
    "GET b1",
    "SET a1 x",
    "SET b1 x GET",
    "MGET a1 b1 c1",
    "MSET a1 1 b1 2",
    "DEL a1 c1",
    "EXISTS a1",
    "COPY a1 b1",
    "COPY a1 b1 DB 2",
    "COPY a1 b1 REPLACE DB 1",
    "RENAME a1 b1",
    "MOVE a1 1",
    "MOVE b1 3",
    "SWAPDB 0 1",
    "SELECT 0",
    "SELECT 1",
    "SELECT 3",
    "SELECT x",
    "FLUSHALL",
    "FLUSHDB",
    "DBSIZE",
    "KEYS *",
    "SCAN 0",
    "LPUSH a1 x",
    "LMPOP 2 a1 b1 LEFT",
    "BLPOP a1 b1 0",
    "SORT a1 BY x_* STORE b1",
    "SORT_RO a1",
    "ZUNIONSTORE a1 2 b1 c1",
    "ZRANGESTORE b1 a1 0 1",
    "XADD a1 * f v",
    "XREAD STREAMS a1 b1 0 0",
    "XREADGROUP GROUP g c STREAMS a1 >",
    "PFCOUNT a1 b1",
    "PFMERGE a1 b1",
    "BITOP AND a1 b1 c1",
    "GEORADIUS a1 0 0 1 m STORE b1",
    "GEOSEARCHSTORE a1 b1 FROMLONLAT 0 0 BYRADIUS 1 m",
    "EVAL x 1 a1",
    "EVAL x 0",
    "FCALL f 2 a1 b1",
    "OBJECT ENCODING a1",
    "OBJECT HELP",
    "MEMORY USAGE b1",
    "PUBLISH ch1 m",
    "SPUBLISH d m",
    "SUBSCRIBE ch1 d",
    "PSUBSCRIBE ch*",
    "PSUBSCRIBE ch1",
    "SSUBSCRIBE d",
    "UNSUBSCRIBE zz",
    "CONFIG GET x",
    "CONFIG SET x y",
    "CLIENT ID",
    "CLIENT KILL x",
    "ACL WHOAMI",
    "ACL LIST",
    "PING",
    "AUTH x",
    "HELLO",
    "RESET",
    "MULTI",
    "EXEC",
    "WATCH a1",
    "INFO",
    "COMMAND COUNT",
    "SCRIPT FLUSH",
    "FUNCTION LIST",
    "LATENCY RESET",
    "SLOWLOG GET",
    "DEBUG OBJECT a1",
    "TOUCH a1 b1",
    "HSET a1 f v",
    "HGETALL b1",
    "GETEX a1 EX 1",
    "GETDEL b1",
    "SINTERSTORE c1 a1 b1",
    "INCR a1",
    "APPEND b1 x",
    "TTL c1",
];

const COMMANDS: &[&str] = &[
    "get",
    "set",
    "mget",
    "del",
    "config",
    "config|get",
    "config|set",
    "client",
    "client|kill",
    "acl",
    "acl|whoami",
    "select",
    "publish",
    "subscribe",
    "eval",
    "object",
    "object|help",
    "xread",
    "flushall",
    "keys",
    "ping",
    "copy",
    "move",
    "hset",
    "nosuch",
    "config|nosuch",
    "select|0",
    "get|a1",
    "GET",
    "Config|Get",
    "set|A1",
    "",
    "get|",
    "config|get|x",
];

const CATEGORIES: &[&str] = &[
    "all",
    "read",
    "write",
    "keyspace",
    "string",
    "list",
    "hash",
    "set",
    "sortedset",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "geo",
    "bitmap",
    "hyperloglog",
    "nosuch",
    "READ",
];

fn rule(random: &mut Random) -> String {
    let sign = one(random, &["+", "+", "-"]);
    match random.index(10) {
        0..=2 => format!("{sign}{}", one(random, COMMANDS)),
        3..=4 => format!("{sign}@{}", one(random, CATEGORIES)),
        5 => {
            let pattern = one(random, &["a*", "b*", "*", "a1", "c?", "[ab]1", ""]);
            format!("{}{pattern}", one(random, &["~", "~", "%R~", "%W~", "%RW~", "%X~"]))
        }
        6 => format!("&{}", one(random, &["ch*", "ch1", "d", "*", ""])),
        7 => one(random, &["db=0", "db=0,1", "db=1,3,0", "db=2", "alldbs", "resetdbs", "db=x"])
            .into(),
        8 => one(random, &["allkeys", "allchannels", "resetkeys", "resetchannels", "nocommands"])
            .into(),
        _ => one(
            random,
            &[
                "on",
                "off",
                "nopass",
                "resetpass",
                ">p",
                ">q",
                "<p",
                "clearselectors",
                "reset",
                "foo",
            ],
        )
        .into(),
    }
}

/// ACL SETUSER with a few rules, some of them in selectors.
fn change(random: &mut Random) -> Vec<String> {
    let user = one(random, &["u", "v"]);
    let mut call: Vec<String> = ["ACL", "SETUSER", user].map(str::to_owned).to_vec();
    for _ in 0..1 + random.index(4) {
        if random.index(8) == 0 {
            let rules: Vec<String> = (0..random.index(4)).map(|_| rule(random)).collect();
            call.push(format!("({})", rules.join(" ")));
        } else {
            call.push(rule(random));
        }
    }
    call
}

/// Rules that were refused, and what rules came to, was checked by nothing but our own model.
#[test]
fn random_rules_come_to_what_a_peer_makes_of_them() {
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    let russet = Server::start(Kind::Russet, &[]).unwrap();
    let seed = number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64());
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::from_seed(seed);
    let mut both = [connect(&russet), connect(&peer)];
    let mut history: Vec<String> = Vec::new();
    let mut calls = 0;
    let mut same = |call: &[String], history: &[String]| {
        let [ours, theirs] = both.each_mut().map(|client| client.call(call).unwrap());
        assert_eq!(ours, theirs, "seed {seed}: {call:?}\nafter\n{}", history.join("\n"));
    };
    while Instant::now() < until {
        let call = change(&mut random);
        same(&call, &history);
        history.push(call.join(" "));
        let fixed = ["ACL LIST", "ACL GETUSER u", "ACL GETUSER v"];
        let asked = (0..12).map(|_| {
            let user = one(&mut random, &["u", "v"]);
            format!("ACL DRYRUN {user} {}", one(&mut random, CALLS))
        });
        let asked: Vec<String> = asked.chain(fixed.map(str::to_owned)).collect();
        for line in asked {
            let call: Vec<String> = line.split(' ').map(str::to_owned).collect();
            same(&call, &history);
            calls += 1;
        }
        if history.len() == 40 {
            same(&["ACL", "DELUSER", "u", "v"].map(str::to_owned), &history);
            history.clear();
        }
    }
    println!("{calls} calls from seed {seed}");
    assert!(calls > 0, "nothing was compared");
}

#[test]
fn users_are_kept_in_a_file() {
    let dir = std::env::temp_dir().join(format!("russet-acl-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("users.acl");
    let file = path.to_str().unwrap();
    std::fs::write(&path, "user alice on >pw ~* +@all\n\nuser bob on nopass +@all ~b\n").unwrap();
    let server = Server::start(Kind::Russet, &["--aclfile", file]).unwrap();
    let (mut admin, mut alice, mut bob) = (connect(&server), connect(&server), connect(&server));
    assert_eq!(text(&mut admin, "ACL WHOAMI"), "default");
    assert!(!say(&mut alice, "AUTH alice pw").is_error());
    assert!(!say(&mut bob, "AUTH bob x").is_error());
    say(&mut admin, "ACL SETUSER carl on");
    assert!(!say(&mut admin, "ACL SAVE").is_error());
    let saved = std::fs::read_to_string(&path).unwrap();
    assert!(saved.contains("user alice on #") && saved.contains("user carl on"), "{saved}");
    assert!(!saved.contains("pw"), "{saved}");
    // A file with a mistake changes nothing.
    std::fs::write(&path, "user alice on nonsense\n").unwrap();
    let refused = text(&mut admin, "ACL LOAD");
    assert!(refused.contains("users.acl:1: Syntax error. WARNING: ACL errors"), "{refused}");
    assert!(!say(&mut bob, "GET b").is_error());
    // Who is no longer in it is gone, the others have what it says.
    std::fs::write(&path, "user alice on nopass +get ~a\n").unwrap();
    assert!(!say(&mut admin, "ACL LOAD").is_error());
    assert!(bob.is_closed(WAIT));
    assert!(say(&mut alice, "SET a 1").is_error());
    assert!(!say(&mut alice, "GET a").is_error());
    assert!(!say(&mut admin, "ACL LIST").is_error(), "the default user is not in it");
    drop(server);
    std::fs::write(&path, "user alice on nonsense\n").unwrap();
    let output = run_russet(&["--port", "0", "--aclfile", file]).unwrap();
    assert_eq!(output.status.code(), Some(1));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Connections that subscribe, block or wait are ended with their user as any other.
#[test]
fn connections_of_a_deleted_user_are_closed() {
    let server = Server::start(Kind::Russet, &["--threads", "2"]).unwrap();
    let mut admin = connect(&server);
    assert!(!say(&mut admin, "ACL SETUSER u on nopass +@all ~* &*").is_error());
    let mut clients: Vec<Client> = (0..4).map(|_| connect(&server)).collect();
    for client in &mut clients {
        assert!(!say(client, "AUTH u x").is_error());
    }
    say(&mut clients[0], "SUBSCRIBE c");
    clients[1].send_raw(b"BLPOP k 0\r\n").unwrap();
    say(&mut clients[2], "MULTI");
    while !text(&mut admin, "INFO clients").contains("blocked_clients:1") {}
    assert!(!say(&mut admin, "ACL DELUSER u").is_error());
    say(&mut admin, "RPUSH k x");
    for client in &mut clients {
        assert!(client.is_closed(WAIT));
    }
    assert_eq!(say(&mut admin, "LLEN k"), Reply::Int(1), "nobody has taken it");
}

/// What a pipeline of a restricted user does is the same as if each command came alone.
#[test]
fn a_pipeline_is_looked_at_command_by_command() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut admin = connect(&server);
    say(&mut admin, "ACL SETUSER u on nopass +@all -incr ~a*");
    let mut client = connect(&server);
    say(&mut client, "AUTH u x");
    let lines = [
        "SET a1 1",
        "SET b1 1",
        "GET a1",
        "INCR a1",
        "MULTI",
        "SET a2 1",
        "GET b1",
        "EXEC",
        "MULTI",
        "SET a3 1",
        "EXEC",
        "ONCE i PX 1000 SET b2 1",
        "GET a3",
        "GET a1",
    ];
    client.send_raw(format!("{}\r\n", lines.join("\r\n")).as_bytes()).unwrap();
    let replies = lines.map(|line| (line, client.read(WAIT).unwrap().is_error()));
    let refused: Vec<&str> = replies.iter().filter(|(_, is)| *is).map(|(line, _)| *line).collect();
    let expected = ["SET b1 1", "INCR a1", "GET b1", "EXEC", "ONCE i PX 1000 SET b2 1"];
    assert_eq!(refused, expected);
    assert_eq!(say(&mut admin, "EXISTS b1 b2 a2"), Reply::Int(0));
}

/// A script went on with the rights that its user had when it began, however long it ran.
#[test]
fn a_script_loses_a_right_when_its_user_does() {
    let server = Server::start(Kind::Russet, &["--threads", "2"]).unwrap();
    let (mut admin, mut client, mut ear) = (connect(&server), connect(&server), connect(&server));
    say(&mut admin, "ACL SETUSER u on nopass +@all ~* &*");
    say(&mut client, "AUTH u x");
    say(&mut ear, "SUBSCRIBE begun");
    let script = "redis.call('publish', 'begun', '1') \
                  for at = 1, 100000000 do \
                      local reply = redis.pcall('exists', KEYS[1]) \
                      if type(reply) == 'table' then return reply.err end \
                  end \
                  return 'never'";
    client.send(&["EVAL", script, "1", "k"].map(|arg| arg.as_bytes().to_vec())).unwrap();
    assert!(!ear.read(WAIT).unwrap().is_error());
    assert!(!say(&mut admin, "ACL SETUSER u -exists").is_error());
    let reply = client.read(WAIT).unwrap();
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    assert!(text.contains("ACL failure in script"), "{text}");
}

/// Of a subscription and the end of the right to it one is always first: if a client still listens
/// when both are over, the end of the right was missed.
#[test]
fn no_subscription_outlives_the_right_to_it() {
    const ROUNDS: usize = 300;
    let server = Server::start(Kind::Russet, &["--threads", "2"]).unwrap();
    let mut admin = connect(&server);
    for _ in 0..ROUNDS {
        say(&mut admin, "ACL SETUSER u on nopass +@all resetchannels &c");
        let mut client = connect(&server);
        assert!(!say(&mut client, "AUTH u x").is_error());
        client.send_raw(b"SUBSCRIBE c\r\n").unwrap();
        say(&mut admin, "ACL SETUSER u resetchannels");
        // Refused, or closed: but not left with what it may not hear.
        let is_over = client.read(WAIT).map_or(true, |reply| reply.is_error());
        assert!(is_over || client.is_closed(WAIT));
        assert_eq!(say(&mut admin, "PUBLISH c m"), Reply::Int(0));
    }
}
