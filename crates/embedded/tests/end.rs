//! What an engine leaves behind: nothing. One test, so that no other has threads meanwhile.

use russet_embedded::{Client, Engine, Options};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

fn open() -> (Engine, Client) {
    let engine = Engine::open(Options::new().shards(4).unwrap()).unwrap();
    let client = engine.client();
    (engine, client)
}

/// The threads of engines.
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.flatten().filter(|name| ["housekeeping", "reclaimer"].contains(&name.trim())).count()
}

#[test]
fn an_engine_leaves_neither_threads_nor_memory_behind() {
    assert_eq!(threads(), 0);
    let mut nodes = Vec::new();
    for turn in 0..100 {
        let (engine, mut client) = open();
        nodes.push(Arc::downgrade(engine.node()));
        client.call(["SET", "k", "v"]).unwrap();
        // A wait that was given up stays in a queue of the engine for a while, a subscription and a
        // timer until they end: none of them may keep the engine.
        let mut other = engine.client();
        let mut future = other.call_async(["BLPOP", "jobs", "1000"]);
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        match turn % 3 {
            0 => drop(future),
            _ => std::mem::forget(future),
        }
        let subscription = client.subscribe(["ch"]).unwrap();
        if turn % 2 == 0 {
            drop(engine);
            drop((client, other, subscription));
        } else {
            drop((client, other, subscription));
            drop(engine);
        }
    }
    assert!(nodes.iter().all(|node| Weak::upgrade(node).is_none()), "an engine is still in memory");
    // A thread that has been joined may be listed for a moment longer.
    while threads() > 0 {
        std::thread::yield_now();
    }
}
