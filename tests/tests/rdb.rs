//! RDB files and payloads: those of real servers, old and new, and ours in real servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, skip_without};

fn kept_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rdb")
}

/// The kept files, each with the digest that a real server has for it.
fn kept() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(kept_files().join("digests.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| line.split_once(' ').map(|(name, sum)| (name.into(), sum.into()));
    lines.map(|line| pair(line).expect("a name and a digest")).collect()
}

/// A directory of its own for each test, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("russet-rdb-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    fn with_file(name: &str, file: &Path) -> Self {
        let dir = Dir::new(name);
        std::fs::copy(file, dir.dump()).unwrap();
        dir
    }

    fn dump(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }

    fn start(&self, kind: Kind, extra: &[&str]) -> Result<Server, String> {
        let dir = self.0.to_str().unwrap();
        let mut options = vec!["--dir", dir];
        if kind != Kind::Russet {
            options.extend(["--enable-debug-command", "yes"]);
        }
        options.extend(extra);
        Server::start(kind, &options)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn client(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn call<W: AsRef<[u8]>>(client: &mut Client, args: &[W]) -> Reply {
    client.call(args).unwrap()
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

fn digest(client: &mut Client) -> String {
    text(&call(client, &["DEBUG", "DIGEST"]))
}

/// A peer that loads the file, unless there is none on this machine.
fn peer(dir: &Dir, kind: Kind) -> Option<Server> {
    dir.start(kind, &[]).map_err(|why| skip_without(kind, &why)).ok()
}

#[test]
fn files_of_all_times_are_loaded_and_saved_again() {
    for (name, expected) in kept() {
        let dir = Dir::with_file(&name, &kept_files().join(format!("{name}.rdb")));
        let server = dir.start(Kind::Russet, &[]).unwrap();
        let mut ours = client(&server);
        assert_eq!(digest(&mut ours), expected, "{name}");
        let full = text(&call(&mut ours, &["DEBUG", "DIGEST", "FULL"]));
        assert_eq!(text(&call(&mut ours, &["DEBUG", "RELOAD"])), "OK", "{name}");
        assert_eq!(text(&call(&mut ours, &["DEBUG", "DIGEST", "FULL"])), full, "{name}");
        drop(server);
        // Only Valkey reads deadlines of fields in our default format.
        let kinds: &[Kind] =
            if name == "valkey-9" { &[Kind::Valkey] } else { &[Kind::Valkey, Kind::Redis] };
        for kind in kinds {
            let Some(server) = peer(&dir, *kind) else { continue };
            assert_eq!(digest(&mut client(&server)), expected, "{name} of ours in {kind:?}");
        }
    }
}

fn keys(client: &mut Client) -> Vec<Vec<u8>> {
    let Reply::Array(keys) = call(client, &["KEYS", "*"]) else { panic!("no keys") };
    keys.iter().map(|key| key.text().unwrap().to_vec()).collect()
}

/// Copies each key of one server to another by DUMP and RESTORE.
fn exchange(from: &mut Client, to: &mut Client, what: &str) {
    call(to, &["FLUSHALL"]);
    for key in keys(from) {
        let shown = String::from_utf8_lossy(&key).into_owned();
        let payload = call(from, &[&b"DUMP"[..], &*key]).text().unwrap().to_vec();
        let restored = call(to, &[&b"RESTORE"[..], &*key, b"0", &payload]);
        assert_eq!(text(&restored), "OK", "{what}: {shown}: {restored:?}");
        let value = |client: &mut Client| {
            call(client, &[&b"PERSIST"[..], &*key]);
            format!("{:?}", call(client, &[&b"DEBUG"[..], b"DIGEST-VALUE", &*key]))
        };
        assert_eq!(value(from), value(to), "{what}: {shown}");
        let encoding =
            |client: &mut Client| text(&call(client, &[&b"OBJECT"[..], b"ENCODING", &*key]));
        // Redis 7.0 knows no small lists and sets of texts but these.
        if what.contains("Valkey") {
            assert_eq!(encoding(from), encoding(to), "{what}: {shown}");
        }
    }
}

#[test]
fn payloads_are_exchanged_with_real_servers() {
    for (name, kind) in [("redis-7.0", Kind::Redis), ("valkey-9", Kind::Valkey)] {
        let file = kept_files().join(format!("{name}.rdb"));
        let theirs = Dir::with_file(&format!("{name}-theirs"), &file);
        let ours = Dir::new(&format!("{name}-ours"));
        let Some(their_server) = peer(&theirs, kind) else { continue };
        let our_server = ours.start(Kind::Russet, &[]).unwrap();
        let (mut their, mut our) = (client(&their_server), client(&our_server));
        exchange(&mut their, &mut our, &format!("from {kind:?}"));
        exchange(&mut our, &mut their, &format!("to {kind:?}"));
        let functions = call(&mut our, &["FUNCTION", "DUMP"]).text().unwrap().to_vec();
        let loaded = call(&mut their, &[&b"FUNCTION"[..], b"RESTORE", &*functions, b"FLUSH"]);
        assert_eq!(text(&loaded), "OK");
    }
}

/// What has no place in the version of RDB that others read stands beside it, and comes back.
#[test]
fn our_own_facts_survive_a_restart() {
    let dir = Dir::new("facts");
    let server = dir.start(Kind::Russet, &[]).unwrap();
    let mut ours = client(&server);
    let lib = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    for line in [
        &["ONCE", "id", "PX", "1000000", "INCR", "counter"][..],
        &["ONCE", "other", "PX", "1000000", "SET", "counter:other", "1"],
        &["FUNCTION", "LOAD", lib],
        &["XADD", "s", "1-1", "a", "b"],
        &["XADD", "s", "IDMP", "producer", "message", "*", "a", "b"],
        &["XGROUP", "CREATE", "s", "g", "0"],
        &["XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">"],
        &["XNACK", "s", "g", "FAIL", "IDS", "1", "1-1"],
        &["HSET", "h", "f", "1"],
        &["HPEXPIRE", "h", "1000000", "FIELDS", "1", "f"],
        &["BF.RESERVE", "filter", "0.01", "10"],
        &["BF.ADD", "filter", "x"],
        &["SAVE"],
    ] {
        let reply = call(&mut ours, line);
        assert!(!reply.is_error(), "{line:?}: {reply:?}");
    }
    let full = |client: &mut Client| text(&call(client, &["DEBUG", "DIGEST", "FULL"]));
    let before = full(&mut ours);
    let consumers = call(&mut ours, &["XINFO", "CONSUMERS", "s", "g"]);
    drop(server);
    let server = dir.start(Kind::Russet, &[]).unwrap();
    let mut ours = client(&server);
    assert_eq!(full(&mut ours), before);
    let again = call(&mut ours, &["ONCE", "id", "PX", "1000000", "INCR", "counter"]);
    assert_eq!(format!("{again:?}"), format!("{:?}", Reply::Int(1)));
    assert_eq!(text(&call(&mut ours, &["GET", "counter"])), "1");
    let Reply::Array(found) = call(&mut ours, &["XINFO", "CONSUMERS", "s", "g"]) else { panic!() };
    let Reply::Array(known) = consumers else { panic!() };
    assert_eq!(found.len(), known.len());
    assert_eq!(format!("{:?}", call(&mut ours, &["FCALL", "f", "0"])), "Int(7)");
}

/// Deadlines of fields in the format of Redis 7.4, for files and payloads.
#[test]
fn deadlines_of_fields_come_back_in_either_format() {
    for format in ["valkey", "redis"] {
        let dir = Dir::new(&format!("fields-{format}"));
        let server = dir.start(Kind::Russet, &["--rdb-field-ttl-format", format]).unwrap();
        let mut ours = client(&server);
        call(&mut ours, &["HSET", "h", "a", "1", "b", "2", "c", "3"]);
        call(&mut ours, &["HPEXPIREAT", "h", "4102444800000", "FIELDS", "1", "a"]);
        call(&mut ours, &["HPEXPIREAT", "h", "4102444800007", "FIELDS", "1", "b"]);
        let payload = call(&mut ours, &["DUMP", "h"]).text().unwrap().to_vec();
        assert_eq!(text(&call(&mut ours, &[&b"RESTORE"[..], b"copy", b"0", &payload])), "OK");
        assert_eq!(text(&call(&mut ours, &["DEBUG", "RELOAD"])), "OK");
        for key in ["h", "copy"] {
            let times = call(&mut ours, &["HPEXPIRETIME", key, "FIELDS", "3", "a", "b", "c"]);
            let times = format!("{times:?}");
            for at in ["4102444800000", "4102444800007", "-1"] {
                assert!(times.contains(at), "{format} {key}: {times}");
            }
        }
        let head = std::fs::read(dir.dump()).unwrap();
        let expected: &[u8] = if format == "valkey" { b"VALKEY080" } else { b"REDIS0012" };
        assert_eq!(&head[..9], expected);
    }
}

#[test]
fn the_end_saves_as_configured() {
    let dir = Dir::new("end");
    let wait = Duration::from_secs(20);
    let start = |extra: &[&str]| dir.start(Kind::Russet, extra).unwrap();
    let set = |server: &Server, value: &str| {
        assert_eq!(text(&call(&mut client(server), &["SET", "k", value])), "OK");
    };
    let found = |server: &Server| text(&call(&mut client(server), &["GET", "k"]));
    // With save points SIGTERM saves.
    let mut server = start(&["--save", "3600 1"]);
    set(&server, "one");
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(wait), Some(0));
    // Without them it does not.
    let mut server = start(&[]);
    assert_eq!(found(&server), "one");
    set(&server, "two");
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(wait), Some(0));
    // Unless it is told to.
    let mut server = start(&["--shutdown-on-sigterm", "save"]);
    assert_eq!(found(&server), "one");
    set(&server, "three");
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(wait), Some(0));
    // SHUTDOWN is decided by its options.
    for (value, option, kept) in [("four", "NOSAVE", "three"), ("five", "SAVE", "five")] {
        let mut server = start(&["--save", "3600 1"]);
        set(&server, value);
        let _closed = client(&server).call(&["SHUTDOWN", option]);
        assert_eq!(server.exit_code(wait), Some(0));
        assert_eq!(found(&start(&[])), kept);
    }
}

/// A server whose file is broken does not start with less than the file holds, and leaves it alone.
#[test]
fn a_broken_file_is_refused_with_where_and_why() {
    let whole = std::fs::read(kept_files().join("redis-7.0.rdb")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    for (name, bytes) in [("cut", &whole[..whole.len() - 100]), ("flipped", &flipped)] {
        let dir = Dir::new(name);
        std::fs::write(dir.dump(), bytes).unwrap();
        let args = ["--dir", dir.0.to_str().unwrap(), "--port", "0"];
        let output = russet_tests::server::run_russet(&args).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("dump.rdb") && said.contains("byte "), "{name}: {said}");
        assert_eq!(std::fs::read(dir.dump()).unwrap(), bytes);
    }
}
