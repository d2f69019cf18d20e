//! Commands, pipelines, transactions and scripts of one client, and of several threads.

use russet_embedded::{Client, Engine, Error, Options, Script, Value, cmd};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;

fn open() -> (Engine, Client) {
    let engine = Engine::open(Options::new()).unwrap();
    let client = engine.client();
    (engine, client)
}

#[test]
fn a_value_is_read_back() {
    let (_engine, mut client) = open();
    assert_eq!(client.call(["SET", "k", "v"]).unwrap(), Value::status("OK"));
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Value::bulk("v"));
    assert_eq!(client.query::<Vec<u8>>([b"GET".as_slice(), b"k"]).unwrap(), b"v");
    assert_eq!(client.query::<Option<String>>(vec!["GET", "none"]).unwrap(), None);
    let id: u64 = client.query(["CLIENT", "ID"]).unwrap();
    assert_eq!(id, client.id());
}

#[test]
fn errors_say_what_they_are() {
    let (_engine, mut client) = open();
    client.call(["SET", "k", "v"]).unwrap();
    let refused = client.call(["INCR", "k"]).unwrap_err();
    assert_eq!(refused.code(), Some("ERR"));
    assert_eq!(refused.to_string(), "ERR value is not an integer or out of range");
    let unknown = client.call(["NOSUCH"]).unwrap_err();
    assert!(matches!(unknown, Error::Reply(ref reply) if reply.text().contains("unknown command")));
    assert!(matches!(client.query::<i64>(["GET", "k"]), Err(Error::Conversion(_))));
    let nothing: [&str; 0] = [];
    assert_eq!(client.call(nothing), Err(Error::Request("a command has a name")));
    assert_eq!(client.query::<String>(["GET", "k"]).unwrap(), "v", "it goes on after errors");
}

#[test]
fn replies_keep_their_types() {
    let (_engine, mut client) = open();
    cmd("HSET").arg("h").args(["a", "1", "b", "2"]).run(&mut client).unwrap();
    let hash: BTreeMap<String, i64> = client.query(["HGETALL", "h"]).unwrap();
    assert_eq!(hash, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
    cmd("ZADD").arg("z").arg(1.5).arg("one").arg(i64::MAX).arg("max").run(&mut client).unwrap();
    let scores: Vec<(String, f64)> =
        cmd("ZRANGE").arg("z").arg(0).arg(-1).arg("WITHSCORES").query(&mut client).unwrap();
    assert_eq!(scores, [("one".to_owned(), 1.5), ("max".to_owned(), i64::MAX as f64)]);
    assert!(cmd("SET").arg("n").arg(1).arg("NX").query::<bool>(&mut client).unwrap());
    assert!(!cmd("SET").arg("n").arg(1).arg("NX").query::<bool>(&mut client).unwrap());
}

/// Long arguments and replies go by buffers of their own.
#[test]
fn long_values_come_back_whole() {
    let (_engine, mut client) = open();
    for len in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
        let value: Vec<u8> = (0..len).map(|at: u32| at as u8).collect();
        cmd("SET").arg("long").arg(&value).run(&mut client).unwrap();
        assert!(client.query::<Vec<u8>>(["GET", "long"]).unwrap() == value, "{len} bytes");
        let both: (Vec<u8>, Vec<u8>) = client
            .pipeline()
            .cmd("GETRANGE")
            .arg("long")
            .arg(0)
            .arg(9)
            .cmd("GET")
            .arg("long")
            .query()
            .unwrap();
        assert!(both.0 == value[..value.len().min(10)] && both.1 == value);
    }
}

#[test]
fn an_argument_beyond_the_limit_is_refused_before_it_runs() {
    let options = Options::new().set("proto-max-bulk-len", "1mb").unwrap();
    let engine = Engine::open(options).unwrap();
    let mut client = engine.client();
    let refused = cmd("SET").arg("k").arg(vec![0_u8; 2_000_000]).run(&mut client);
    assert!(matches!(refused, Err(Error::Request(_))));
    assert_eq!(client.query::<i64>(["EXISTS", "k"]).unwrap(), 0);
}

#[test]
fn a_pipeline_gives_every_reply_in_order() {
    let (_engine, mut client) = open();
    let mut pipeline = client.pipeline();
    for at in 0..100 {
        pipeline =
            pipeline.cmd("SET").arg(format!("k{at}")).arg(at).cmd("GET").arg(format!("k{at}"));
    }
    let replies = pipeline.cmd("INCR").arg("k1").arg("too many").cmd("PING").run().unwrap();
    assert_eq!(replies.len(), 202);
    for at in 0..100 {
        assert_eq!(replies[2 * at], Value::status("OK"));
        assert_eq!(replies[2 * at + 1], Value::bulk(at.to_string()));
    }
    assert!(replies[200].is_error());
    assert_eq!(replies[201], Value::status("PONG"));
    let failed =
        client.pipeline().cmd("SET").arg("s").arg("x").cmd("INCR").arg("s").query::<Value>();
    assert!(matches!(failed, Err(Error::Reply(_))));
    assert!(client.pipeline().run().unwrap().is_empty());
    assert!(client.pipeline().atomic().run().unwrap().is_empty());
}

#[test]
fn an_atomic_pipeline_is_a_transaction() {
    let (_engine, mut client) = open();
    let (a, b): (i64, Vec<String>) = client
        .pipeline()
        .atomic()
        .cmd("INCR")
        .arg("a")
        .push(&cmd("LRANGE").arg("l").arg(0).arg(-1))
        .query()
        .unwrap();
    assert_eq!((a, b), (1, vec![]));
    let refused = client.pipeline().atomic().cmd("INCR").arg("a").cmd("NOSUCH").run().unwrap_err();
    assert_eq!(refused.code(), Some("EXECABORT"));
    assert_eq!(client.query::<i64>(["GET", "a"]).unwrap(), 1);
    client.call(["WATCH", "a"]).unwrap();
    client.call(["SET", "a", "9"]).unwrap();
    let aborted = client.pipeline().atomic().cmd("INCR").arg("a").run();
    assert_eq!(aborted, Err(Error::Aborted));
}

/// Every increment of every thread is kept, though each reads first and writes then.
#[test]
fn transactions_of_several_threads_lose_no_update() {
    const THREADS: usize = 4;
    const TURNS: usize = 200;
    let (engine, mut client) = open();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let mut client = engine.client();
            scope.spawn(move || {
                for _ in 0..TURNS {
                    let result = client.transaction(["n"], |transaction| {
                        let n: Option<i64> = transaction.query(["GET", "n"])?;
                        transaction.queue(cmd("SET").arg("n").arg(n.unwrap_or(0) + 1));
                        transaction.queue(cmd("GET").arg("n"));
                        Ok(n.unwrap_or(0) + 1)
                    });
                    let (n, replies) = result.unwrap();
                    assert_eq!(replies, [Value::status("OK"), Value::bulk(n.to_string())]);
                }
            });
        }
    });
    assert_eq!(client.query::<usize>(["GET", "n"]).unwrap(), THREADS * TURNS);
}

#[test]
fn a_transaction_that_fails_leaves_nothing_open() {
    let (_engine, mut client) = open();
    let failed = client.transaction(["k"], |transaction| {
        transaction.queue(cmd("SET").arg("k").arg("queued"));
        transaction.call(["NOSUCH"])
    });
    assert!(matches!(failed, Err(Error::Reply(_))));
    let info: String = client.query(["CLIENT", "INFO"]).unwrap();
    assert!(info.contains(" watch=0 ") && info.contains(" multi=-1 "), "{info}");
    let (seen, replies) =
        client.transaction(["k"], |it| it.query::<bool>(["EXISTS", "k"])).unwrap();
    assert!(!seen && replies.is_empty());
    let info: String = client.query(["CLIENT", "INFO"]).unwrap();
    assert!(info.contains(" watch=0 "), "{info}");
}

#[test]
fn scripts_run_by_their_digest() {
    let (_engine, mut client) = open();
    let script = Script::new("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1])}");
    for turn in 1..=2 {
        let reply: (String, String, i64) =
            script.call().key("n").arg("x").query(&mut client).unwrap();
        assert_eq!(reply, ("n".to_owned(), "x".to_owned(), turn));
    }
    let known: Vec<bool> = client.query(["SCRIPT", "EXISTS", script.digest()]).unwrap();
    assert_eq!(known, [true]);
    client
        .call([
            "FUNCTION",
            "LOAD",
            "#!lua name=lib\nredis.register_function('two', function() return 2 end)",
        ])
        .unwrap();
    assert_eq!(client.query::<i64>(["FCALL", "two", "0"]).unwrap(), 2);
}

#[test]
fn lines_for_the_log_go_where_the_program_says() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let options = Options::new().on_log({
        let lines = lines.clone();
        move |level, line| lines.lock().unwrap().push(format!("{level:?}: {line}"))
    });
    let engine = Engine::open(options).unwrap();
    engine.client().call(["EVAL", "redis.log(redis.LOG_NOTICE, 'hello')", "0"]).unwrap();
    assert_eq!(*lines.lock().unwrap(), ["Notice: hello"]);
}

#[test]
fn options_are_directives() {
    let options = Options::new().databases(2).unwrap().shards(4).unwrap();
    let engine = Engine::open(options).unwrap();
    let mut client = engine.client();
    client.call(["SELECT", "1"]).unwrap();
    client.call(["SELECT", "2"]).unwrap_err();
    let shown: BTreeMap<String, i64> = client.query(["CONFIG", "GET", "shards"]).unwrap();
    assert_eq!(shown["shards"], 4);
    client.call(["CONFIG", "SET", "notify-keyspace-events", "KEA"]).unwrap();
    assert!(Options::new().set("databases", "none").is_err());
    assert!(Options::new().file("no/such/file").is_err());
}

#[test]
fn clients_of_many_threads_share_the_keys() {
    const THREADS: usize = 8;
    let (engine, mut client) = open();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = engine.clone();
            scope.spawn(move || {
                let mut clients: Vec<Client> = (0..50).map(|_| engine.client()).collect();
                for turn in 0..1000_usize {
                    let client = &mut clients[turn % 50];
                    client.call(["INCR", "shared"]).unwrap();
                    client.call([b"SADD".as_slice(), b"set", &[thread as u8, turn as u8]]).unwrap();
                }
            });
        }
    });
    assert_eq!(client.query::<usize>(["GET", "shared"]).unwrap(), THREADS * 1000);
    assert_eq!(client.query::<usize>(["SCARD", "set"]).unwrap(), THREADS * 256);
    let info: String = client.query(["INFO", "commandstats"]).unwrap();
    assert!(info.contains("cmdstat_incr:calls=8000,"), "{info}");
}

#[test]
fn what_a_program_holds_can_go_to_another_thread() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<Client>();
    is_send::<russet_embedded::Subscription>();
    is_send::<russet_embedded::ReplyFuture<'_, Value>>();
    is_shared::<Engine>();
    is_shared::<Error>();
}

/// Arguments of a call whose iterator panicked were taken for the beginning of the next call.
#[test]
fn a_call_that_broke_off_leaves_nothing_behind() {
    let (_engine, mut client) = open();
    client.call(["SET", "b", "1"]).unwrap();
    let args = ["DEL", "b", "-"].iter().map(|arg| if *arg == "-" { panic!("cut") } else { *arg });
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.call(args)));
    assert!(broken.is_err());
    assert_eq!(client.call(["PING"]).unwrap(), Value::status("PONG"));
    assert_eq!(client.call(["EXISTS", "b"]).unwrap(), Value::Integer(1));
}

/// SUBSCRIBE answers once for each channel: in a pipeline the replies behind it were out of step.
#[test]
fn a_pipeline_takes_no_subscriptions() {
    let (_engine, mut client) = open();
    let refused = client.pipeline().cmd("SUBSCRIBE").arg("a").arg("b").cmd("PING").run();
    assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    assert_eq!(client.call(["PING"]).unwrap(), Value::status("PONG"));
}

/// A function that gave up with the error of a lost race was called again and again; one that
/// panicked left its keys watched, and the next transaction failed.
#[test]
fn a_transaction_ends_as_its_function_does() {
    let (engine, mut client) = open();
    let mut calls = 0;
    let given_up = client.transaction(["k"], |_| {
        calls += 1;
        Err::<(), _>(Error::Aborted)
    });
    assert!(matches!(given_up, Err(Error::Aborted)));
    assert_eq!(calls, 1);
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        client.transaction(["k"], |_| -> Result<(), Error> { panic!("cut") })
    }));
    assert!(broken.is_err());
    engine.client().call(["SET", "k", "other"]).unwrap();
    let replies = client.pipeline().atomic().cmd("INCR").arg("n").run().unwrap();
    assert_eq!(replies, [Value::Integer(1)]);
}
