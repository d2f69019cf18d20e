//! Servers that are killed and come back, and servers that become replicas.

use super::{PATIENCE, counter, join_all, start_all, until_done};
use russet::{Error, Request, RequestId};
use russet_tests::server::{Kind, Server};
use russet_toolkit_tests::{Proxy, builder};
use std::time::{Duration, Instant};

/// How often a server is killed, each time after so many more requests.
const KILLS: usize = 2;
const REQUESTS: usize = 400;
/// How long so many requests may take.
const REQUESTS_WAIT: Duration = Duration::from_secs(90);
/// How long a killed server may take to be gone.
const EXIT_WAIT: Duration = Duration::from_secs(30);
/// What survives a crash.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_russet_that_is_killed_loses_and_doubles_nothing() {
    killed_and_restarted(Kind::Russet).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_killed_loses_and_doubles_nothing() {
    killed_and_restarted(Kind::Redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valkey_that_is_killed_loses_and_doubles_nothing() {
    killed_and_restarted(Kind::Valkey).await;
}

/// All workloads at once. Whatever was replied is there after the crash; whatever was not is sent
/// again.
async fn killed_and_restarted(kind: Kind) {
    let Some(first) = Server::start_if_there(kind, &DURABLE) else { return };
    let dir = first.dir().to_str().unwrap().to_owned();
    let options = [DURABLE.as_slice(), &["--dir", &dir]].concat();
    let proxy = Proxy::start(first.address()).await.unwrap();
    let builder = builder().timeout(Duration::from_secs(5)).retry(PATIENCE);
    let kit = builder.connect(&proxy.url()).await.unwrap();
    let tasks = start_all(&kit);
    let mut servers = vec![first];
    for kill in 1..=KILLS {
        let deadline = Instant::now() + REQUESTS_WAIT;
        while proxy.requests() < kill * REQUESTS {
            assert!(Instant::now() < deadline, "{} requests only", proxy.requests());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let server = servers.last_mut().unwrap();
        server.signal("KILL").unwrap();
        // The code of one that was killed is none; what matters is that it is gone.
        let _ = server.exit_code(EXIT_WAIT);
        servers.push(Server::start_if_there(kind, &options).unwrap());
        proxy.lead_to(servers.last().unwrap().address());
        proxy.cut_all();
    }
    join_all(tasks).await;
    assert!(proxy.requests() > KILLS * REQUESTS, "it was killed when all was done");
}

/// A server may forget its scripts at any time.
#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    for kind in [Kind::Russet, Kind::Redis, Kind::Valkey] {
        let Some(server) = Server::start_if_there(kind, &[]) else { continue };
        let kit = builder().connect(&format!("redis://{}", server.address())).await.unwrap();
        let counter = counter(&kit);
        for done in 1..=5 {
            kit.call(&Request::new("SCRIPT").arg("FLUSH")).await.unwrap();
            assert_eq!(counter.add("a", 1, Some(&RequestId::random())).await.unwrap().count, done);
        }
    }
}

/// A primary that was demoted refuses writes: nothing has run, and it may be called again.
#[tokio::test]
async fn a_server_that_becomes_a_replica_is_unavailable() {
    let Some(primary) = Server::start_if_there(Kind::Redis, &[]) else { return };
    let Some(server) = Server::start_if_there(Kind::Redis, &[]) else { return };
    let kit = builder().connect(&format!("redis://{}", server.address())).await.unwrap();
    let counter = counter(&kit);
    assert_eq!(until_done(|| counter.add("a", 1, None)).await.count, 1);
    let port = primary.address().port();
    let demote = Request::new("REPLICAOF").arg("127.0.0.1").arg(port);
    kit.call(&demote).await.unwrap();
    let refused = counter.add("a", 1, None).await;
    assert!(matches!(&refused, Err(Error::Unavailable(_))), "{refused:?}");
    // It may be loading what it got from its primary.
    let promote = Request::new("REPLICAOF").arg("NO").arg("ONE");
    until_done(|| kit.call(&promote)).await;
    until_done(|| counter.add("a", 1, None)).await;
}
