//! Scripts and functions over sockets, by many clients at once: narrow and wide runs never mix,
//! libraries change as a whole, and what scripts log and reach for can be watched.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use russet_base::Random;
use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Kind, Server};

const ACCOUNTS: u64 = 16;
const EACH: i64 = 100;

fn server(extra: &[&str]) -> Server {
    let args: Vec<&str> =
        ["--threads", "4", "--threads-min", "4"].iter().chain(extra).copied().collect();
    Server::start(Kind::Russet, &args).unwrap()
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Int(number) => *number,
        other => panic!("not a number: {other:?}"),
    }
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// A field of INFO.
fn info(client: &mut Client, section: &str, field: &str) -> u64 {
    let report = text(&client.call(&["INFO", section]).unwrap());
    let line = report.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field}: {report}"))
}

/// Reaches its keys through KEYS only.
const NARROW: &str = "redis.call('DECRBY', KEYS[1], ARGV[1]) \
                      return redis.call('INCRBY', KEYS[2], ARGV[1])";
/// Makes the names of its keys.
const WIDE: &str = "redis.call('DECRBY', 'acc:' .. ARGV[1], ARGV[3]) \
                    return redis.call('INCRBY', 'acc:' .. ARGV[2], ARGV[3])";
/// Hides what it calls, and which keys.
const DEVIOUS: &str = "local names = {redis} local keys = {KEYS} \
                       for i, amount in ipairs({-ARGV[1], ARGV[1]}) do \
                       names[1]['ca' .. 'll']('INCRBY', keys[1][i], amount) end return 1";
/// Finds all accounts by itself.
const SUM: &str = "local sum = 0 for _, key in ipairs(redis.call('KEYS', 'acc:*')) do \
                   sum = sum + redis.call('GET', key) end return sum";

/// Money moves between accounts by narrow scripts, wide ones and transactions. Whoever adds it up
/// finds all of it, always.
#[test]
fn narrow_and_wide_scripts_never_mix() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let keys: Vec<String> = (0..ACCOUNTS).map(|n| format!("acc:{n}")).collect();
    for key in &keys {
        client.call(&["SET", key, &EACH.to_string()]).unwrap();
    }
    let (done, moves) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let (mut client, keys, done, moves) = (connect(&server), &keys, &done, &moves);
            scope.spawn(move || {
                let mut random = Random::from_seed(worker);
                for _ in 0..400 {
                    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                    let (one, two) = (&keys[from as usize], &keys[to as usize]);
                    let (from, to) = (from.to_string(), to.to_string());
                    let reply = match random.below(3) {
                        0 => client.call(&["EVAL", NARROW, "2", one, two, "3"]),
                        1 => client.call(&["EVAL", WIDE, "0", &from, &to, "3"]),
                        _ => client.call(&["EVAL", DEVIOUS, "2", one, two, "3"]),
                    };
                    assert!(!reply.as_ref().unwrap().is_error(), "{reply:?}");
                    moves.fetch_add(1, Ordering::Relaxed);
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        let (mut client, done) = (connect(&server), &done);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let sum = number(&client.call(&["EVAL", SUM, "0"]).unwrap());
                assert_eq!(sum, ACCOUNTS as i64 * EACH);
            }
        });
    });
    assert_eq!(moves.into_inner(), 2_400);
    assert_eq!(number(&client.call(&["EVAL", SUM, "0"]).unwrap()), ACCOUNTS as i64 * EACH);
    assert!(info(client, "stats", "script_runs_wide") > 0);
    assert!(info(client, "stats", "script_runs_narrow") > 0);
}

/// While a library is replaced again and again, every call finds a whole one.
#[test]
fn a_library_is_replaced_as_a_whole() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let library = |version: usize| {
        format!(
            "#!lua name=lib\nlocal version = {version}\n\
             redis.register_function('one', function() return version end)\n\
             redis.register_function('two', function() return version end)"
        )
    };
    let load = |client: &mut Client, version: usize| {
        let reply = client.call(&["FUNCTION", "LOAD", "REPLACE", &library(version)]).unwrap();
        assert!(!reply.is_error(), "{reply:?}");
    };
    load(client, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (mut client, done) = (connect(&server), &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let one = number(&client.call(&["FCALL", "one", "0"]).unwrap());
                    let two = number(&client.call(&["FCALL", "two", "0"]).unwrap());
                    assert!(last <= one && one <= two, "{last}, {one}, {two}");
                    last = two;
                }
            });
        }
        for version in 1..100 {
            load(client, version);
            let bad = client.call(&["FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nx = 1"]);
            assert!(bad.unwrap().is_error());
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(info(client, "memory", "number_of_libraries"), 1);
    assert_eq!(info(client, "memory", "number_of_functions"), 2);
}

#[test]
fn undeclared_keys_are_counted_or_refused() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let script = "return redis.call('SET', 'user:42:name', ARGV[1])";
    let set = |client: &mut Client, mode: &str| {
        client.call(&["CONFIG", "SET", "script-undeclared-keys", mode]).unwrap();
    };
    assert_eq!(text(&client.call(&["EVAL", script, "0", "a"]).unwrap()), "OK");
    assert_eq!(info(client, "stats", "script_undeclared_keys"), 0);
    set(client, "warn");
    assert_eq!(text(&client.call(&["EVAL", script, "0", "b"]).unwrap()), "OK");
    assert_eq!(info(client, "stats", "script_undeclared_keys"), 1);
    set(client, "refuse");
    let refused = text(&client.call(&["EVAL", script, "0", "c"]).unwrap());
    assert!(refused.contains("user:42:name"), "{refused}");
    assert_eq!(text(&client.call(&["GET", "user:42:name"]).unwrap()), "b");
    let declared = client.call(&["EVAL", script, "1", "user:42:name", "d"]).unwrap();
    assert_eq!(text(&declared), "OK");
}

#[test]
fn what_scripts_log_is_one_line_each() {
    let server = server(&["--loglevel", "verbose"]);
    let client = &mut connect(&server);
    let say = |client: &mut Client, level: &str, args: &str| {
        let script = format!("redis.log(redis.LOG_{level}, {args})");
        assert!(!client.call(&["EVAL", &script, "0"]).unwrap().is_error());
    };
    say(client, "DEBUG", "'too quiet'");
    say(client, "VERBOSE", "'said', 'in', 3, 'words'");
    say(client, "WARNING", "'first\\r\\n1:M forged # line'");
    client.call(&["CONFIG", "SET", "loglevel", "warning"]).unwrap();
    say(client, "NOTICE", "'not any more'");
    say(client, "WARNING", "'the last'");
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.ends_with("# the last")) {
        seen.push(server.next_line(REPLY_WAIT).expect("the last line comes"));
    }
    let with = |end: &str| seen.iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((with("too quiet"), with("not any more")), (0, 0), "{seen:?}");
    assert_eq!(with("- said in 3 words"), 1, "{seen:?}");
    assert_eq!(with("# first  1:M forged # line"), 1, "{seen:?}");
}

/// EVAL remembers the newest 500 scripts; what SCRIPT LOAD brought stays.
#[test]
fn scripts_of_eval_make_room_for_newer_ones() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let loaded = text(&client.call(&["SCRIPT", "LOAD", "return 'kept'"]).unwrap());
    for n in 0..600 {
        client.call(&["EVAL", &format!("return {n}"), "0"]).unwrap();
    }
    assert_eq!(info(client, "memory", "number_of_cached_scripts"), 501);
    assert_eq!(info(client, "stats", "evicted_scripts"), 100);
    assert_eq!(text(&client.call(&["EVALSHA", &loaded, "0"]).unwrap()), "kept");
    client.call(&["SCRIPT", "FLUSH"]).unwrap();
    assert_eq!(info(client, "memory", "number_of_cached_scripts"), 0);
}

/// 150 functions, one in the other, each with 190 times `local x=x`: the server ended with an
/// overflow of the stack. So did a function whose name has 100,000 parts.
#[test]
fn a_deep_script_does_not_end_the_server() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let copies = format!("{} local function f() ", "local x=x ".repeat(190)).repeat(150);
    let ends = " end ".repeat(150);
    let script = format!("local x=KEYS[1] {copies} redis.call('GET', x) {ends} return 1");
    assert_eq!(client.call(&["EVAL", &script, "1", "k"]).unwrap(), Reply::Int(1));
    let name = ".x".repeat(100_000);
    let script = format!("function x{name}() end");
    assert!(client.call(&["EVAL", &script, "0"]).unwrap().is_error());
    assert!(client.call(&["EVAL", &format!("return x{name}"), "0"]).unwrap().is_error());
    assert_eq!(text(&client.call(&["PING"]).unwrap()), "PONG");
}

/// A text that takes long to compile could not be stopped: it was no running script.
#[test]
fn a_compilation_can_be_killed() {
    let server = server(&["--busy-reply-threshold", "1"]);
    let (mut caller, mut killer) = (connect(&server), connect(&server));
    let statements = "x = 1 ".repeat(400_000);
    for (kind, kill) in [("SCRIPT", "EVAL"), ("FUNCTION", "LOAD"), ("SCRIPT", "LOAD")] {
        // Another text each time: one that was compiled to its end is remembered.
        let killed = (0..20).any(|attempt| {
            let source = format!("#!lua name=lib\nreturn {attempt}, function() {statements} end");
            let call = match kill {
                "EVAL" => ["EVAL".to_owned(), source.replace(" name=lib", ""), "0".to_owned()],
                _ if kind == "SCRIPT" => {
                    ["SCRIPT".to_owned(), "LOAD".to_owned(), source.replace(" name=lib", "")]
                }
                _ => ["FUNCTION".to_owned(), "LOAD".to_owned(), source],
            };
            caller.send(&call.map(String::into_bytes)).unwrap();
            let reply = loop {
                killer.call(&[kind, "KILL"]).unwrap();
                if let Some(reply) = caller.glance().unwrap() {
                    break reply;
                }
            };
            text(&reply) == format!("ERR Script killed by user with {kind} KILL.")
        });
        assert!(killed, "{kind} {kill}");
        let idle = text(&killer.call(&[kind, "KILL"]).unwrap());
        assert!(idle.starts_with("NOTBUSY"), "{idle}");
    }
}

/// A function that another client replaced by one that needs more shards made a transaction fail
/// in the middle. It runs the functions that were there when it began.
#[test]
fn functions_are_replaced_between_transactions_and_never_inside() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let narrow = "#!lua name=lib\nredis.register_function('add', function(keys) \
                  return redis.call('INCR', keys[1]) end)";
    let wide = "#!lua name=lib\nredis.register_function('add', function(keys, args) \
                return redis.call('INCRBY', args[1], 1000) end)";
    client.call(&["FUNCTION", "LOAD", narrow]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (mut client, done) = (connect(&server), &done);
            scope.spawn(move || {
                let key = format!("k{worker}");
                while !done.load(Ordering::Relaxed) {
                    client.call(&["SET", &key, "0"]).unwrap();
                    client.call(&["MULTI"]).unwrap();
                    for _ in 0..3 {
                        client.call(&["FCALL", "add", "1", &key, &key]).unwrap();
                    }
                    let reply = client.call(&["EXEC"]).unwrap();
                    let all = |by: i64| Reply::Array((1..=3).map(|n| Reply::Int(n * by)).collect());
                    assert!(reply == all(1) || reply == all(1000), "{reply:?}");
                }
            });
        }
        for turn in 0..300 {
            let library = if turn % 2 == 0 { wide } else { narrow };
            let reply = client.call(&["FUNCTION", "LOAD", "REPLACE", library]).unwrap();
            assert!(!reply.is_error(), "{reply:?}");
        }
        done.store(true, Ordering::Relaxed);
    });
}
