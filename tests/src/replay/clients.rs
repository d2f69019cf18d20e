//! Several connections that work on the same keys at the same time, while somebody looks: records
//! must come in an order that happened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use russet_base::random::Random;

use super::{Look, Pair, seasoning};
use crate::client::Client;

/// Connections, each on a thread of its own.
pub const CLIENTS: usize = 6;
/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

const LIBRARY: &str = "#!lua name=lib\nlocal step = VERSION\n\
    redis.register_function('bump', function(keys) \
    redis.call('RPUSH', keys[1], redis.call('INCRBY', keys[2], step)) end)";

/// What one client has done.
#[derive(Default)]
pub struct Work {
    pub calls: usize,
    /// Calls that waited and were given something.
    pub served: usize,
}

/// Lets all clients make `count` calls each. The looks show what was recorded, in order.
pub fn run(pair: &mut Pair, seed: u64, count: usize) -> Result<(Vec<Look>, Work), String> {
    let address = pair.recorder();
    let mut observer = pair.observer()?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = |number: u64| {
            let mut random = Random::from_seed(seed.wrapping_add(number));
            let mut client = Client::connect(address).map_err(|error| error.to_string())?;
            let mut work = Work::default();
            while work.calls < count {
                one(&mut client, &mut random, &mut work)?;
            }
            Ok(work)
        };
        let looking = scope.spawn(|| {
            let mut looks = Vec::new();
            while !is_over.load(Ordering::Acquire) {
                looks.push(observer.look()?);
                std::thread::sleep(LOOK_PAUSE);
            }
            looks.push(observer.look()?);
            Ok::<_, String>(looks)
        });
        let handles: Vec<_> =
            (0..CLIENTS as u64).map(|number| scope.spawn(move || work(number))).collect();
        let mut total = Work::default();
        let mut failure = None;
        for handle in handles {
            match handle.join().unwrap_or_else(|_| Err("a client panicked".to_owned())) {
                Ok(work) => {
                    total.calls += work.calls;
                    total.served += work.served;
                }
                Err(why) => failure = Some(why),
            }
        }
        is_over.store(true, Ordering::Release);
        let looks = looking.join().unwrap_or_else(|_| Err("the observer panicked".to_owned()))?;
        failure.map_or(Ok((looks, total)), Err)
    })
}

/// One call, or the calls of one transaction.
fn one(client: &mut Client, random: &mut Random, work: &mut Work) -> Result<(), String> {
    work.calls += 1;
    match random.index(20) {
        0..=2 => {
            let reply = client.call(&waiting(random)).map_err(|error| error.to_string())?;
            work.served += usize::from(reply.text().is_some() || is_given(&reply));
            Ok(())
        }
        3..=5 => many(client, &transaction(random)),
        6 => many(client, &[library(random)]),
        7 => many(client, &[args("FCALL bump 2 q1 v1")]),
        8 if random.chance(0.1) => {
            let whole = ["FLUSHDB", "SWAPDB 0 1", "FUNCTION FLUSH", "FLUSHALL ASYNC"];
            many(client, &[args(whole[random.index(whole.len())])])
        }
        8..=9 => many(client, &[pushing(random)]),
        _ => many(client, &[seasoning::call(random)]),
    }
}

fn is_given(reply: &crate::client::Reply) -> bool {
    matches!(reply, crate::client::Reply::Array(items) if !items.is_empty())
}

fn args(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

fn many(client: &mut Client, calls: &[Vec<Vec<u8>>]) -> Result<(), String> {
    calls.iter().try_for_each(|call| {
        client.call(call).map(drop).map_err(|error| format!("{}: {error}", super::show(call)))
    })
}

/// A call that waits a few milliseconds for what another client may bring.
fn waiting(random: &mut Random) -> Vec<Vec<u8>> {
    const CALLS: [&str; 9] = [
        "BLPOP q1 q2 k3 0.004",
        "BRPOP k3 q1 0.004",
        "BLMOVE q1 q2 LEFT RIGHT 0.004",
        "BLMPOP 0.004 2 q1 q2 RIGHT COUNT 2",
        "BRPOPLPUSH q2 q1 0.004",
        "BZPOPMIN z1 z2 0.004",
        "BZMPOP 0.004 2 z2 z1 MAX COUNT 2",
        "XREADGROUP GROUP g alice BLOCK 4 COUNT 2 STREAMS x1 x2 > >",
        "XREADGROUP GROUP g bob BLOCK 4 NOACK STREAMS x1 >",
    ];
    args(CALLS[random.index(CALLS.len())])
}

fn pushing(random: &mut Random) -> Vec<Vec<u8>> {
    const CALLS: [&str; 5] = [
        "RPUSH q1 a b c",
        "LPUSH q2 d",
        "RPUSH k3 e f",
        "ZADD z1 1 one 2 two 3 three",
        "XADD x1 * f v",
    ];
    args(CALLS[random.index(CALLS.len())])
}

/// WATCH at times, MULTI, some calls, EXEC, under a request id at times.
fn transaction(random: &mut Random) -> Vec<Vec<Vec<u8>>> {
    let mut calls = Vec::new();
    if random.chance(0.3) {
        calls.push(args("WATCH v1 q1"));
    }
    calls.push(args("MULTI"));
    for _ in 0..=random.index(4) {
        calls.push(match random.index(3) {
            0 => pushing(random),
            1 => waiting(random),
            _ => seasoning::call(random),
        });
    }
    calls.push(match random.index(3) {
        0 => args(&format!("ONCE e{} PX {} EXEC", random.index(20), 1 + random.index(200))),
        _ => args("EXEC"),
    });
    calls
}

fn library(random: &mut Random) -> Vec<Vec<u8>> {
    let source = LIBRARY.replace("VERSION", &random.index(3).to_string());
    ["FUNCTION", "LOAD", "REPLACE", &source].iter().map(|arg| arg.as_bytes().to_vec()).collect()
}
