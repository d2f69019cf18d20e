//! The backends, and a kit on each that shares no keys with other tests.

use crate::recorder::{Record, Recorder};
use crate::{Cluster, Proxy, ProxyFault};
use russet::retry::RetryPolicy;
use russet::{Builder, Kit};
use russet_tests::server::{Kind, Server, skip_without};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// No test takes longer.
const TEST_WAIT: Duration = Duration::from_secs(120);
/// How long a call may take on a busy machine, unless a test wants it to be late.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Under faults a reply that is late comes after its time, and one request of so many has a fault
/// of each kind.
const FAULTS_TIMEOUT: Duration = Duration::from_millis(250);
const LATE_BY: Duration = Duration::from_millis(400);
const FAULTS_ONE_IN: u32 = 10;

/// Where a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestBackend {
    Embedded,
    Russet,
    Redis,
    Valkey,
    Cluster,
}

/// Runs a test on a kit of its own, unless this machine has no such server.
pub async fn run<F: Future<Output = ()>>(backend: TestBackend, test: impl FnOnce(Kit) -> F) {
    match recorded(backend).await {
        Ok((kit, inner, record)) => {
            let ended = tokio::time::timeout(TEST_WAIT, test(kit)).await;
            assert!(ended.is_ok(), "not done within {TEST_WAIT:?}");
            record.check(&inner).await;
        }
        Err(why) => skip(backend, &why),
    }
}

/// Runs a test on a kit that reaches a server through a proxy.
pub async fn run_behind_proxy<F: Future<Output = ()>>(
    backend: TestBackend,
    test: impl FnOnce(Kit, Arc<Proxy>) -> F,
) {
    match address(backend) {
        Ok(address) => behind_proxy(address, test).await,
        Err(why) => skip(backend, &why),
    }
}

async fn behind_proxy<F: Future<Output = ()>>(
    address: SocketAddr,
    test: impl FnOnce(Kit, Arc<Proxy>) -> F,
) {
    let proxy = Arc::new(Proxy::start(address).await.unwrap());
    let builder = builder();
    let inner = builder.clone().connect(&format!("redis://{address}")).await.unwrap();
    let through = builder.clone().connect(&proxy.url()).await.unwrap();
    let (recorder, record) = Recorder::new(through, "server");
    let kit = builder.on(recorder).unwrap();
    let ended = tokio::time::timeout(TEST_WAIT, test(kit, proxy)).await;
    assert!(ended.is_ok(), "not done within {TEST_WAIT:?}");
    record.check(&inner).await;
}

/// Runs a test while requests are cut off before they run and after, delayed and repeated, and
/// the server forgets its scripts. The kit calls often enough that in the end every call has an
/// outcome.
pub async fn run_under_faults<F: Future<Output = ()>>(
    backend: TestBackend,
    test: impl FnOnce(Kit) -> F,
) {
    let patience = RetryPolicy {
        attempts_max: 40,
        pause_min: Duration::from_millis(2),
        pause_max: Duration::from_millis(50),
    };
    // Not the server of the other tests: some of them count on its scripts.
    static SERVERS: Servers = [const { OnceLock::new() }; 3];
    let address = match start_once(&SERVERS, backend) {
        Ok(address) => address,
        Err(why) => return skip(backend, &why),
    };
    behind_proxy(address, |kit, proxy| async move {
        proxy.plan_random(FAULTS_ONE_IN, LATE_BY);
        test(kit.with_timeout(FAULTS_TIMEOUT).with_retry(patience)).await;
        assert!(proxy.faults() > 0, "no faults in {} requests", proxy.requests());
        proxy.plan(|_call| ProxyFault::None);
    })
    .await;
}

/// What is ours is always there, and so is a peer that was found: only its absence is no failure.
#[track_caller]
fn skip(backend: TestBackend, why: &str) {
    match backend {
        TestBackend::Embedded => panic!("no engine: {why}"),
        TestBackend::Russet => skip_without(Kind::Russet, why),
        TestBackend::Valkey => skip_without(Kind::Valkey, why),
        TestBackend::Redis | TestBackend::Cluster => skip_without(Kind::Redis, why),
    }
}

/// A kit whose calls are looked at, one beside it whose calls are not, and what was seen.
async fn recorded(backend: TestBackend) -> Result<(Kit, Kit, Record), String> {
    let name = match backend {
        TestBackend::Embedded => "embedded",
        TestBackend::Cluster => "cluster",
        TestBackend::Russet | TestBackend::Redis | TestBackend::Valkey => "server",
    };
    let builder = builder();
    let inner = on(backend, builder.clone()).await?;
    let (recorder, record) = Recorder::new(inner.clone(), name);
    let kit = builder.on(recorder).map_err(|error| error.to_string())?;
    Ok((kit, inner, record))
}

/// A kit whose keys nobody else uses.
pub async fn kit(backend: TestBackend) -> Result<Kit, String> {
    on(backend, builder()).await
}

/// With a name of the application that nobody else has.
pub fn builder() -> Builder {
    let app = format!("test-{:016x}", rand::random::<u64>());
    Kit::builder().app(&app).secret("a secret of the tests").timeout(TIMEOUT)
}

async fn on(backend: TestBackend, builder: Builder) -> Result<Kit, String> {
    let kit = match backend {
        TestBackend::Embedded => builder.embedded(russet::Options::default()),
        TestBackend::Cluster => builder.cluster(cluster().await?.urls()).await,
        server => builder.connect(&url(server)?).await,
    };
    kit.map_err(|error| error.to_string())
}

fn url(backend: TestBackend) -> Result<String, String> {
    address(backend).map(|address| format!("redis://{address}"))
}

type Servers = [OnceLock<Result<SocketAddr, String>>; 3];

/// The address of a server that all tests share.
pub fn address(backend: TestBackend) -> Result<SocketAddr, String> {
    static SERVERS: Servers = [const { OnceLock::new() }; 3];
    start_once(&SERVERS, backend)
}

fn start_once(servers: &Servers, backend: TestBackend) -> Result<SocketAddr, String> {
    let (index, kind) = match backend {
        TestBackend::Redis => (0, Kind::Redis),
        TestBackend::Valkey => (1, Kind::Valkey),
        _ => (2, Kind::Russet),
    };
    let start = || {
        let server = Server::start(kind, &[])?.until_exit()?;
        Ok(server.address())
    };
    servers[index].get_or_init(start).clone()
}

async fn cluster() -> Result<&'static Cluster, String> {
    static CLUSTER: OnceLock<Result<Cluster, String>> = OnceLock::new();
    // Starting it blocks for seconds.
    let started = tokio::task::spawn_blocking(|| CLUSTER.get_or_init(Cluster::start));
    started.await.map_err(|error| error.to_string())?.as_ref().map_err(Clone::clone)
}
