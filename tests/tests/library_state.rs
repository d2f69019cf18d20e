//! Variables of function libraries: one for all calls, whichever connection and thread they come
//! from, as in Redis.
//!
//! Each interpreter had its own copy of a library, so that a function that counted in a variable
//! gave any number: as many counters as threads had run it. What is expected here was answered by
//! Valkey, and is asked again if this machine has one.

use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Kind, Server};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CLIENTS: usize = 8;
const CALLS: usize = 60;

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn several_loops(extra: &[&str]) -> Server {
    let threads = ["--threads", "4", "--threads-min", "4"];
    Server::start(Kind::Russet, &[&threads, extra].concat()).unwrap()
}

fn library(name: &str, load: &str, body: &str) -> String {
    format!(
        "#!lua name={name}\n{load} redis.register_function('{name}', function(keys, args) {body} \
         end)"
    )
}

/// Ways to count in something that outlives the call.
const COUNTERS: &[(&str, &str)] = &[
    ("local n = 0", "n = n + 1 return n"),
    ("local n = 0", "redis.call('INCR', keys[1]) n = n + 1 redis.call('INCR', keys[1]) return n"),
    ("local t = {n = 0}", "t.n = t.n + 1 return t.n"),
    ("local t = {}", "table.insert(t, args[1]) return #t"),
    ("local t = {}", "t[args[1] .. #t] = true t[#t + 1] = keys return #t"),
    ("local t = {a = {b = {}}}", "local b = t.a.b b[#b + 1] = {} return #b"),
    (
        "local function counter() local n = 0 return function() n = n + 1 return n end end \
         local count = counter()",
        "return count()",
    ),
    (
        "local step",
        "step = step or coroutine.wrap(function() local n = 0 \
         while true do n = n + 1 coroutine.yield(n) end end) return step()",
    ),
    ("local each", "each = each or string.gmatch(string.rep('x', 2000), '()x') return each()"),
    (
        "local C, c = {} C.__index = C function C:add() self.n = self.n + 1 return self.n end",
        "c = c or setmetatable({n = 0}, C) return c:add()",
    ),
    // Wide: it holds all shards.
    ("local n = 0", "redis.call('INCR', 'k' .. args[1]) n = n + 1 return n"),
];

#[test]
fn a_counter_in_a_library_counts_exactly() {
    let server = several_loops(&[]);
    for (number, (load, body)) in COUNTERS.iter().enumerate() {
        let name = format!("count{number}");
        let loaded = connect(&server).call(&["FUNCTION", "LOAD", &library(&name, load, body)]);
        assert_eq!(loaded.unwrap(), Reply::Bulk(name.clone().into_bytes()));
        let mut seen = BTreeSet::new();
        thread::scope(|scope| {
            let counting = |client: usize| {
                let (mut connection, name) = (connect(&server), &name);
                move || -> Vec<i64> {
                    let key = format!("key{client}");
                    let call = ["FCALL", name, "1", &key, &key];
                    let reply = |_| match connection.call(&call).unwrap() {
                        Reply::Int(number) => number,
                        other => panic!("{name}: {other:?}"),
                    };
                    (0..CALLS).map(reply).collect()
                }
            };
            let threads: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(counting(n))).collect();
            for counted in threads {
                let counted = counted.join().unwrap();
                assert!(counted.is_sorted(), "{body}: a client saw the counter go back");
                seen.extend(counted);
            }
        });
        let wanted: BTreeSet<i64> = (1..=(CLIENTS * CALLS) as i64).collect();
        assert!(seen == wanted, "{load} {body}: {} of {} numbers", seen.len(), wanted.len());
    }
}

/// What happens to the variables of a library, on one connection.
fn life() -> Vec<(Vec<String>, &'static str)> {
    let mut steps = Vec::new();
    let mut step = |call: &[&str], wanted| {
        steps.push((call.iter().map(|arg| (*arg).to_owned()).collect(), wanted));
    };
    let count =
        library("count", "local n = 0", "n = n + 1 if args[1] then error('x') end return n");
    let other = library("other", "local n = 40", "n = n + 1 return n");
    step(&["FUNCTION", "LOAD", &count], "count");
    step(&["FUNCTION", "LOAD", &other], "other");
    step(&["FCALL", "count", "0"], "1");
    step(&["FCALL", "count", "1", "k"], "2");
    step(&["FCALL", "other", "0"], "41");
    // An error takes nothing back.
    step(&["FCALL", "count", "0", "fail"], "error");
    step(&["FCALL", "count", "0"], "4");
    // Scripts are another matter.
    step(&["EVAL", "return 1", "0"], "1");
    step(&["SCRIPT", "FLUSH"], "OK");
    step(&["FCALL", "count", "0"], "5");
    // A library that does not load leaves the old one with its variables.
    step(&["FUNCTION", "LOAD", "REPLACE", "#!lua name=count\nerror('no')"], "error");
    step(&["FUNCTION", "LOAD", &count], "error");
    step(&["FCALL", "count", "0"], "6");
    step(&["FUNCTION", "LOAD", "REPLACE", &count], "count");
    step(&["FCALL", "count", "0"], "1");
    step(&["FCALL", "other", "0"], "42");
    step(&["FUNCTION", "DELETE", "other"], "OK");
    step(&["FUNCTION", "LOAD", &other], "other");
    step(&["FCALL", "other", "0"], "41");
    step(&["FCALL", "count", "0"], "2");
    step(&["MULTI"], "OK");
    step(&["FCALL", "count", "0"], "QUEUED");
    step(&["FCALL", "count", "1", "k"], "QUEUED");
    step(&["EXEC"], "[3|4]");
    step(&["MULTI"], "OK");
    step(&["FCALL", "count", "0"], "QUEUED");
    step(&["FUNCTION", "LOAD", "REPLACE", &count], "QUEUED");
    step(&["FCALL", "count", "0"], "QUEUED");
    step(&["EXEC"], "[5|count|1]");
    step(&["FCALL_RO", "count", "0"], "error");
    step(&["FUNCTION", "FLUSH"], "OK");
    step(&["FUNCTION", "LOAD", &count], "count");
    step(&["FCALL", "count", "0"], "1");
    steps
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Int(number) => number.to_string(),
        Reply::Array(parts) => {
            format!("[{}]", parts.iter().map(shown).collect::<Vec<_>>().join("|"))
        }
        reply if reply.is_error() => "error".to_owned(),
        reply => String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned(),
    }
}

#[test]
fn variables_live_as_long_as_their_library() {
    let peer = Server::start_if_there(Kind::Valkey, &[]);
    for server in [Some(several_loops(&[])), peer].into_iter().flatten() {
        let mut client = connect(&server);
        for (call, wanted) in life() {
            assert_eq!(shown(&client.call(&call).unwrap()), wanted, "{call:?}");
        }
    }
}

#[test]
fn a_function_that_is_killed_keeps_what_it_has_set() {
    let server = several_loops(&["--busy-reply-threshold", "1"]);
    let (mut client, mut other) = (connect(&server), connect(&server));
    let body = "n = n + 1 while args[1] do end return n";
    client.call(&["FUNCTION", "LOAD", &library("count", "local n = 0", body)]).unwrap();
    let endless = ["FCALL", "count", "1", "k", "x"].map(|arg| arg.as_bytes().to_vec());
    client.send(&endless).unwrap();
    // Others who want the library are told that it is busy, or wait for it.
    while other.call(&["FUNCTION", "KILL"]).unwrap().is_error() {}
    let killed = client.read(REPLY_WAIT).unwrap();
    assert!(killed.is_error(), "{killed:?}");
    assert_eq!(other.call(&["FCALL", "count", "0"]).unwrap(), Reply::Int(2));
}

#[test]
fn a_library_that_grows_is_bounded_and_given_back() {
    let server = several_loops(&["--script-memory-max", "2mb"]);
    let mut client = connect(&server);
    let held = |client: &mut Client| -> u64 {
        let info = client.call(&["INFO", "memory"]).unwrap();
        let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory_vm_functions:"));
        line.unwrap().parse().unwrap()
    };
    let body = "t[#t + 1] = string.rep(args[1], 100000) return #t";
    client.call(&["FUNCTION", "LOAD", &library("keep", "local t = {}", body)]).unwrap();
    let mut kept = 0;
    let failed = loop {
        match client.call(&["FCALL", "keep", "0", "x"]).unwrap() {
            Reply::Int(number) => kept = number,
            other => break other,
        }
    };
    assert!(kept > 10, "{kept}");
    let text = String::from_utf8_lossy(failed.text().unwrap_or_default()).into_owned();
    assert!(failed.is_error() && text.contains("not enough memory"), "{text}");
    assert!(held(&mut client) > 1_000_000);
    client.call(&["FUNCTION", "FLUSH"]).unwrap();
    assert!(held(&mut client) < 500_000, "{}", held(&mut client));
}

/// A transaction that loads a library and calls it could meet another client's version of it: who
/// changed functions held no lock that the transaction held, too.
#[test]
fn a_transaction_calls_the_function_that_it_has_loaded() {
    const TRIES: usize = 40;
    let server = several_loops(&[]);
    let source = |name: &str| {
        format!(
            "#!lua name=raced\nredis.register_function('raced', function() return '{name}' end)"
        )
    };
    let load = |client: &mut Client, name: &str| {
        client.call(&["FUNCTION", "LOAD", "REPLACE", &source(name)]).unwrap()
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = connect(&server);
            while !is_over.load(Ordering::Relaxed) {
                load(&mut other, "other");
            }
        });
        let mut client = connect(&server);
        let mut seen = Vec::new();
        for _ in 0..TRIES {
            client.call(&["MULTI"]).unwrap();
            load(&mut client, "own");
            client.call(&["EVAL", "for i = 1, 20000 do end", "0"]).unwrap();
            client.call(&["FCALL", "raced", "0"]).unwrap();
            let Reply::Array(replies) = client.call(&["EXEC"]).unwrap() else { break };
            seen.push(shown(&replies[2]));
        }
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(seen, vec!["own"; TRIES]);
    });
}
