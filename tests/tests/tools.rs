//! `russet check`, `convert` and `export`, on files of real servers and on damaged ones.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, run_russet, run_russet_with, skip};

/// How the tools end.
const GOOD: Option<i32> = Some(0);
const DAMAGED: Option<i32> = Some(1);
const TORN: Option<i32> = Some(2);
const FAILED: Option<i32> = Some(3);

/// A directory for one test, removed with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("russet-tools-{name}-{}", std::process::id()));
        let _removed = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server in it.
    fn start(&self, kind: Kind, extra: &[&str]) -> Option<(Server, Client)> {
        let mut options = vec!["--dir", self.0.to_str().unwrap()];
        if kind != Kind::Russet {
            options.extend(["--enable-debug-command", "yes"]);
        }
        options.extend(extra);
        let server = Server::start_if_there(kind, &options)?;
        let client = Client::connect(server.address()).unwrap();
        Some((server, client))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.0);
    }
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rdb").join(name)
}

/// The kept files and their digests by a real server.
fn kept_digests() -> Vec<(PathBuf, String)> {
    let text = fs::read_to_string(kept("digests.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, sum) = line.split_once(' ').expect("a name and a digest");
        (kept(&format!("{name}.rdb")), sum.to_owned())
    };
    lines.map(pair).collect()
}

fn tool(args: &[&str]) -> Output {
    run_russet(args).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_ends(output: &Output, code: Option<i32>, what: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), code, "{what}\n{}\n{errors}", stdout(output));
}

fn call(client: &mut Client, line: &str) -> Reply {
    let reply = client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn text(reply: Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

fn digest(client: &mut Client) -> String {
    text(call(client, "DEBUG DIGEST"))
}

/// Data of every type, with what commands can say of it.
const DATA: &[&str] = &[
    "SET plain value",
    "SET number 12345678901",
    "SET expiring v PXAT 9999999999999",
    "RPUSH list a b 1 -5",
    "SADD ints 1 2 3",
    "SADD set a b c",
    "ZADD zset 1.5 a inf b -2 c",
    "HSET hash f v g 7",
    "SETBIT bits 7 1",
    "PFADD hll a b c",
    "XADD stream 1-1 f v",
    "XADD stream 2-1 f v g w",
    "XADD stream 3-1 h x",
    "XGROUP CREATE stream group 0",
    "XREADGROUP GROUP group alice COUNT 2 STREAMS stream >",
    "XGROUP CREATECONSUMER stream group bob",
    "XDEL stream 3-1",
    "XADD emptied 5-5 f v",
    "XDEL emptied 5-5",
    "XGROUP CREATE emptied group $",
    "SELECT 3",
    "SET elsewhere v",
    "EXPIREAT elsewhere 9999999999",
    "SELECT 0",
];

fn fill(client: &mut Client) {
    for line in DATA {
        call(client, line);
    }
    // Collections that take more than one command.
    for index in 0..200 {
        call(client, &format!("RPUSH long element-{index}"));
        call(client, &format!("HSET wide field-{index} {index}"));
        call(client, &format!("ZADD tall {index}.25 member-{index}"));
        call(client, &format!("SADD broad member-{index}"));
    }
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    assert!(!client.call(&["FUNCTION", "LOAD", library]).unwrap().is_error());
    let binary: [&[u8]; 3] = [b"SET", b"binary\xff\0\r\n", b"\x80\xfe\xff"];
    assert!(!client.call(&binary).unwrap().is_error());
}

/// What is not in a digest: groups, what is pending, deadlines.
fn beside(client: &mut Client) -> Vec<Reply> {
    let asked = [
        "XINFO GROUPS stream",
        "XPENDING stream group - + 10 alice",
        "XINFO GROUPS emptied",
        "PEXPIRETIME expiring",
        "FUNCTION LIST",
        "DBSIZE",
    ];
    let mut replies: Vec<Reply> = asked.iter().map(|line| call(client, line)).collect();
    // How long it is idle is nobody's business.
    let Reply::Array(pending) = &mut replies[1] else { panic!("no entries are pending") };
    for entry in pending {
        let Reply::Array(facts) = entry else { panic!("no facts of an entry") };
        facts.remove(2);
    }
    let Reply::Array(stream) = call(client, "XINFO STREAM stream") else { panic!("no stream") };
    let names = ["length", "last-generated-id", "max-deleted-entry-id", "entries-added"];
    let facts = stream.chunks(2);
    let wanted = |name: &Reply| names.iter().any(|one| name.text() == Some(one.as_bytes()));
    replies.extend(facts.filter(|pair| wanted(&pair[0])).map(|pair| pair[1].clone()));
    replies
}

/// `redis-cli --pipe` with this file; false if there is none on this machine.
fn pipe(server: &Server, file: &str) -> bool {
    let port = server.address().port().to_string();
    let ran = Command::new("redis-cli")
        .args(["-p", &port, "--pipe"])
        .stdin(File::open(file).unwrap())
        .output();
    let Ok(output) = ran else {
        skip("there is no redis-cli");
        return false;
    };
    let said = stdout(&output);
    assert!(output.status.success() && said.contains("errors: 0"), "{said}");
    true
}

#[test]
fn files_of_all_times_are_good_and_stay_as_they_are() {
    for (path, _) in kept_digests() {
        let before = fs::read(&path).unwrap();
        let shown = path.to_str().unwrap();
        let checked = tool(&["check", shown]);
        assert_ends(&checked, GOOD, shown);
        let said = stdout(&checked);
        assert!(said.starts_with(&format!("{shown}: good\n")), "{said}");
        // As many keys as lines of them.
        let exported = tool(&["export", shown]);
        assert_ends(&exported, GOOD, shown);
        let lines = stdout(&exported);
        let keys = lines.lines().filter(|line| line.starts_with("{\"db\":")).count();
        let total: usize =
            said.lines().find_map(|line| line.split_once(" keys: ")).unwrap().0.parse().unwrap();
        let over = said.lines().find_map(|line| line.split_once(" of them over")).unwrap().0;
        let over: usize = over.rsplit('(').next().unwrap().parse().unwrap();
        assert_eq!(keys, total - over, "{shown}");
        assert_eq!(fs::read(&path).unwrap(), before, "{shown} was changed");
    }
}

/// What a server saved is summed up by number and type, with the largest key.
#[test]
fn a_check_tells_what_there_is() {
    let home = Home::new("tells");
    let (server, mut client) = home.start(Kind::Russet, &[]).unwrap();
    call(&mut client, "SET a v");
    call(&mut client, "SET b v PX 100000000");
    call(&mut client, "SELECT 2");
    call(&mut client, "RPUSH l x y z");
    let long = "v".repeat(100_000);
    call(&mut client, &format!("HSET large field {long}"));
    call(&mut client, "SAVE");
    let file = home.path("dump.rdb");
    let checked = tool(&["check", "--largest", "1", &file]);
    assert_ends(&checked, GOOD, "check");
    let said = stdout(&checked);
    for part in ["4 keys: 1 with an expiry (0 of them over), 3 without", "db2: 2 keys"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let row = |name: &str| -> Vec<String> {
        let line = said.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("string")[1..4], ["2", "1", "-"]);
    assert_eq!(row("list")[1..4], ["1", "0", "3"]);
    let (_, largest) = said.split_once("Largest keys:\n").unwrap();
    assert_eq!(largest.lines().count(), 1);
    assert!(largest.contains("large (db2, hash, 1 elements)"), "{said}");
    drop(server);
}

#[test]
fn exported_commands_make_the_same_data_in_other_servers() {
    for (path, expected) in kept_digests() {
        let home = Home::new("kept");
        let file = home.path("commands");
        let shown = path.to_str().unwrap();
        assert_ends(&tool(&["export", "--commands", "--output", &file, shown]), GOOD, shown);
        // Only Valkey has deadlines of fields.
        let kinds: &[Kind] = match shown.ends_with("valkey-9.rdb") {
            true => &[Kind::Valkey],
            false => &[Kind::Valkey, Kind::Redis],
        };
        for kind in kinds {
            let Some((server, mut client)) = home.start(*kind, &[]) else { continue };
            if pipe(&server, &file) {
                assert_eq!(digest(&mut client), expected, "{shown} in {kind:?}");
            }
        }
    }
}

#[test]
fn groups_of_streams_deadlines_and_functions_are_exported_too() {
    let home = Home::new("exported");
    let (server, mut ours) = home.start(Kind::Russet, &[]).unwrap();
    fill(&mut ours);
    call(&mut ours, "SAVE");
    let (dump, commands) = (home.path("dump.rdb"), home.path("commands"));
    assert_ends(&tool(&["export", "--commands", "--output", &commands, &dump]), GOOD, "export");
    let again = tool(&["export", "--commands", "--output", &commands, &dump]);
    assert_ends(&again, FAILED, "nothing is overwritten");
    let (expected, facts) = (digest(&mut ours), beside(&mut ours));
    for kind in [Kind::Russet, Kind::Valkey, Kind::Redis] {
        let other = Home::new(&format!("exported-{kind:?}"));
        let Some((server, mut client)) = other.start(kind, &[]) else { continue };
        if !pipe(&server, &commands) {
            continue;
        }
        assert_eq!(digest(&mut client), expected, "{kind:?}");
        assert_eq!(beside(&mut client), facts, "{kind:?}");
        // Once more, over what is there.
        let replacing = other.path("replacing");
        let args = ["export", "--commands", "--replace", "--output", &replacing, &dump];
        assert_ends(&tool(&args), GOOD, "export --replace");
        pipe(&server, &replacing);
        assert_eq!(digest(&mut client), expected, "{kind:?}, replaced");
        assert_eq!(beside(&mut client), facts, "{kind:?}, replaced");
    }
    drop(server);
}

/// An export that could not be written left a file that was cut off, under the name of a whole one.
#[test]
fn an_export_that_fails_leaves_nothing() {
    let home = Home::new("full");
    let (server, mut ours) = home.start(Kind::Russet, &[]).unwrap();
    let long = "x".repeat(1000);
    (0..200).for_each(|at| drop(call(&mut ours, &format!("SET key:{at} {long}"))));
    call(&mut ours, "SAVE");
    drop(server);
    let (dump, to) = (home.path("dump.rdb"), home.path("exported"));
    // A file may have no more than some blocks: what comes then can't be written.
    let limited = |args: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 8; exec \"$0\" {args}");
        let russet = russet_tests::server::russet_binary().unwrap();
        Command::new("sh").arg("-c").arg(script).arg(russet).output().unwrap()
    };
    for form in ["--json", "--commands"] {
        let failed = limited(&format!("export {form} --output {to} {dump}"));
        assert_ends(&failed, FAILED, form);
        assert!(!failed.stderr.is_empty(), "{form}: it says why");
        let left: Vec<_> = fs::read_dir(&home.0).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left, [PathBuf::from(&dump)], "{form}");
        assert_ends(&tool(&["export", form, "--output", &to, &dump]), GOOD, form);
        fs::remove_file(&to).unwrap();
    }
}

#[test]
fn lines_of_json_have_every_type() {
    let home = Home::new("json");
    let (server, mut client) = home.start(Kind::Russet, &[]).unwrap();
    for line in DATA.iter().filter(|line| !line.starts_with("PFADD")) {
        call(&mut client, line);
    }
    let binary: [&[u8]; 3] = [b"SET", b"quote\"", b"\xff\xfe"];
    assert!(!client.call(&binary).unwrap().is_error());
    call(&mut client, "HPEXPIREAT hash 9999999999999 FIELDS 1 g");
    call(&mut client, "SAVE");
    drop(server);
    let exported = tool(&["export", "--json", &home.path("dump.rdb")]);
    assert_ends(&exported, GOOD, "export");
    let said = stdout(&exported);
    let expected = [
        r#"{"db":0,"key":"plain","type":"string","value":"value"}"#,
        r#"{"db":0,"key":"number","type":"string","value":"12345678901"}"#,
        r#"{"db":0,"key":"quote\"","type":"string","value":{"base64":"//4="}}"#,
        r#"{"db":0,"key":"expiring","type":"string","expires_at_ms":9999999999999,"value":"v"}"#,
        r#"{"db":0,"key":"list","type":"list","value":["a","b","1","-5"]}"#,
        r#"{"db":3,"key":"elsewhere","type":"string","expires_at_ms":9999999999000,"value":"v"}"#,
        concat!(
            r#"{"db":0,"key":"zset","type":"zset","value":[{"member":"c","score":-2},"#,
            r#"{"member":"a","score":1.5},{"member":"b","score":"inf"}]}"#
        ),
        concat!(
            r#"{"db":0,"key":"hash","type":"hash","value":[{"field":"f","value":"v"},"#,
            r#"{"field":"g","value":"7","expires_at_ms":9999999999999}]}"#
        ),
    ];
    for line in expected {
        assert!(said.lines().any(|found| found == line), "{line}\n{said}");
    }
    let stream = said.lines().find(|line| line.contains("\"key\":\"stream\"")).unwrap();
    for part in [
        r#""last_id":"3-1","max_deleted_id":"3-1","entries_added":3,"#,
        r#"{"id":"2-1","fields":[["f","v"],["g","w"]]}"#,
        r#""name":"group","last_delivered_id":"2-1""#,
        r#""pending":[{"id":"1-1","consumer":"alice","delivered_at_ms":"#,
    ] {
        assert!(stream.contains(part), "{part}\n{stream}");
    }
}

/// From one kind of file to the other, and back: each server finds the same data in it.
#[test]
fn files_are_converted_both_ways() {
    let home = Home::new("converted");
    let (server, mut ours) = home.start(Kind::Russet, &[]).unwrap();
    fill(&mut ours);
    call(&mut ours, "SAVE");
    let expected = digest(&mut ours);
    let full = text(call(&mut ours, "DEBUG DIGEST FULL 1700000000000"));
    drop(server);
    let other = Home::new("converted-to");
    let dump = home.path("dump.rdb");
    let steps: [(&[&str], &str, &str); 4] = [
        (&["--commands"], dump.as_str(), "commands"),
        (&[], dump.as_str(), "appendonlydir"),
        (&[], "appendonlydir", "appendonly.aof"),
        (&[], "appendonlydir", "again.rdb"),
    ];
    for (options, from, to) in steps {
        let from = if from == dump { dump.clone() } else { other.path(from) };
        let to = other.path(to);
        let mut args = vec!["convert"];
        args.extend(options);
        args.extend([from.as_str(), to.as_str()]);
        assert_ends(&tool(&args), GOOD, &to);
        assert_ends(&tool(&["check", &to]), GOOD, &to);
        assert_ends(&tool(&args), FAILED, "what is there is not overwritten");
    }
    let left: Vec<_> = fs::read_dir(&other.0).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(left.len(), 4, "nothing else is left: {left:?}");
    for kind in [Kind::Russet, Kind::Valkey, Kind::Redis] {
        let starts: [(&str, &[&str]); 3] = [
            ("again.rdb", &["--dbfilename", "again.rdb"]),
            ("commands", &["--appendonly", "yes", "--appenddirname", "commands"]),
            ("appendonlydir", &["--appendonly", "yes"]),
        ];
        for (what, extra) in starts {
            // Servers add to what they load.
            let copy = Home::new("converted-copy");
            let copied =
                Command::new("cp").args(["-r", &other.path(what), &copy.path("")]).status();
            assert!(copied.unwrap().success());
            let Some((_server, mut client)) = copy.start(kind, extra) else { continue };
            assert_eq!(digest(&mut client), expected, "{what} in {kind:?}");
            let is_exact = kind == Kind::Russet && what != "commands";
            if is_exact {
                let found = text(call(&mut client, "DEBUG DIGEST FULL 1700000000000"));
                assert_eq!(found, full, "{what}");
            }
        }
    }
}

/// The log of another server, its old form included, is good, and becomes an RDB file.
#[test]
fn logs_of_other_servers_are_checked_and_converted() {
    for kind in [Kind::Valkey, Kind::Redis] {
        let home = Home::new(&format!("foreign-{kind:?}"));
        let log = ["--appendonly", "yes", "--appendfsync", "always"];
        let Some((server, mut client)) = home.start(kind, &log) else { continue };
        fill(&mut client);
        call(&mut client, "BGREWRITEAOF");
        client.await_rewrite();
        call(&mut client, "SET after rewrite");
        let expected = digest(&mut client);
        drop(server);
        let (dir, dump) = (home.path("appendonlydir"), home.path("made.rdb"));
        assert_ends(&tool(&["check", &dir]), GOOD, &dir);
        assert_ends(&tool(&["convert", &dir, &dump]), GOOD, &dir);
        let other = Home::new(&format!("foreign-to-{kind:?}"));
        fs::copy(&dump, other.0.join("dump.rdb")).unwrap();
        let (_server, mut ours) = other.start(Kind::Russet, &[]).unwrap();
        assert_eq!(digest(&mut ours), expected, "{kind:?}");
        // A base and an increment in one file, as before Redis 7.
        let mut names: Vec<_> =
            fs::read_dir(&dir).unwrap().map(|one| one.unwrap().path()).collect();
        names.sort();
        let parts = names.iter().filter(|path| !path.to_string_lossy().ends_with("manifest"));
        let old: Vec<u8> = parts.flat_map(|path| fs::read(path).unwrap()).collect();
        let file = home.path("appendonly.aof");
        fs::write(&file, &old).unwrap();
        let checked = tool(&["check", &file]);
        assert_ends(&checked, GOOD, "one file with an RDB preamble");
        let keys = stdout(&tool(&["check", &dir]));
        // What they take in memory depends on how they came there.
        let count = |said: &str| {
            let line = said.lines().find(|line| line.contains(" keys: "));
            line.and_then(|line| line.split(';').next()).map(str::to_owned)
        };
        assert_eq!(count(&stdout(&checked)), count(&keys));
    }
}

/// A byte of a file is changed, or its end is gone: that is found, with its place, and the file
/// stays as it is, even if it is to be fixed.
#[test]
fn damaged_rdb_files_are_found() {
    let home = Home::new("damaged");
    let good = fs::read(kept("redis-7.0.rdb")).unwrap();
    let file = home.path("dump.rdb");
    for at in (9..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let cut = &good[..at];
        for bytes in [&bytes[..], cut] {
            fs::write(&file, bytes).unwrap();
            let checked = tool(&["check", "--fix", "--yes", &file]);
            assert_ends(&checked, DAMAGED, &format!("byte {at}"));
            let said = stdout(&checked);
            let (_, offset) = said.split_once("First bad byte: ").expect("a place");
            let offset: usize = offset.lines().next().unwrap().parse().unwrap();
            assert!(offset <= bytes.len(), "{said}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    }
    let made = home.path("made.rdb");
    assert_ends(&tool(&["convert", &file, &made]), DAMAGED, "convert");
    assert!(!Path::new(&made).exists());
    assert_ends(&tool(&["export", &file]), DAMAGED, "export");
}

/// A log of ours with its last bytes gone, or a byte of it changed.
#[test]
fn torn_and_damaged_logs_differ_and_torn_ones_are_cut_on_demand() {
    let home = Home::new("torn");
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let (mut server, mut client) = home.start(Kind::Russet, &log).unwrap();
    for index in 0..50 {
        call(&mut client, &format!("SET key-{index} value-{index}"));
    }
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(std::time::Duration::from_secs(20)), Some(0));
    let dir = home.path("appendonlydir");
    assert_ends(&tool(&["check", &dir]), GOOD, "the log");
    let increment = home.0.join("appendonlydir/appendonly.aof.1.incr.aof");
    let good = fs::read(&increment).unwrap();

    let mut bytes = good.clone();
    bytes[good.len() / 3] ^= 1;
    fs::write(&increment, &bytes).unwrap();
    let checked = tool(&["check", "--fix", "--yes", &dir]);
    assert_ends(&checked, DAMAGED, "a changed byte");
    assert!(stdout(&checked).contains("First bad byte: "), "{}", stdout(&checked));
    assert_eq!(fs::read(&increment).unwrap(), bytes);

    let torn = [&good[..], b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nva"].concat();
    fs::write(&increment, &torn).unwrap();
    assert_ends(&tool(&["check", &dir]), TORN, "torn");
    let answer = |text: &str| run_russet_with(&["check", "--fix", &dir], text).unwrap();
    assert_ends(&answer("n\n"), TORN, "not cut");
    assert_ends(&answer(""), TORN, "not cut without an answer");
    assert_eq!(fs::read(&increment).unwrap(), torn);
    let one = increment.to_str().unwrap();
    assert_ends(&tool(&["check", one]), TORN, "the file alone");
    let made = home.path("made.rdb");
    assert_ends(&tool(&["convert", &dir, &made]), TORN, "convert leaves the torn end out");
    assert_ends(&answer("y\n"), GOOD, "cut");
    assert_eq!(fs::read(&increment).unwrap(), good);
    let copy = format!("{one}.torn-at-{}", good.len());
    assert_eq!(fs::read(copy).unwrap(), &torn[good.len()..]);
    assert_ends(&tool(&["check", &dir]), GOOD, "after the cut");
    let (_server, mut client) = home.start(Kind::Russet, &log).unwrap();
    assert_eq!(call(&mut client, "DBSIZE"), Reply::Int(50));
    // A server has the directory now.
    let mut file = fs::OpenOptions::new().append(true).open(&increment).unwrap();
    file.write_all(b"*1").unwrap();
    assert_ends(&tool(&["check", "--fix", "--yes", &dir]), DAMAGED, "no longer the last file");
}

#[test]
fn what_can_not_be_done_is_reported() {
    let home = Home::new("refused");
    let empty = home.path("");
    for args in [
        &["check"][..],
        &["check", "--nonsense", "x"],
        &["check", "nothing-of-this-name"],
        &["check", &empty],
        &["convert", "one"],
        &["export", "--replace", "x"],
        &["export", "--output"],
    ] {
        assert_ends(&tool(args), FAILED, &args.join(" "));
    }
    for name in ["check", "convert", "export"] {
        let help = tool(&[name, "--help"]);
        assert_ends(&help, GOOD, name);
        assert!(stdout(&help).starts_with(&format!("Usage: russet {name} ")));
    }
    assert!(stdout(&tool(&["--help"])).contains("export"));
}
