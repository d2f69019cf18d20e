//! What is known of calls that fail, on the embedded engine, and of what no replica has.

use super::HOUR;
use crate::eventually;
use russet::backend::{Backend, Connection, Pending};
use russet::cache::{Cache, Invalidation, Policy};
use russet::counter::{WindowCounter, Windows};
use russet::flag::{Definition, FlagTerms, Flags, LocalFlags, Subject};
use russet::idempotency::{Failure, Idempotency, IdempotencyKey, Run, Ttls};
use russet::queue::{Bounds, Jobs, NewJob};
use russet::retry::RetryPolicy;
use russet::{Error, Kit, Options, Reply, Request, RequestId};
use russet_tests::server::{Kind, Server};
use russet_toolkit_tests::{Fault, faulty};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BOUNDS: Bounds = Bounds { capacity: 100, ttl: HOUR };

fn embedded() -> Kit {
    Kit::embedded(Options::default()).unwrap()
}

/// The first attempt ran and its reply was lost; the others found no server. The caller was told
/// that nothing had run.
#[tokio::test]
async fn a_call_that_may_have_run_is_unknown_whatever_fails_after_it() {
    let (kit, faults) = faulty(&embedded());
    let counter = WindowCounter::new(&kit, "visits", Windows::of(HOUR).unwrap()).unwrap();
    // The store has the script then.
    counter.add("a", 1, Some(&RequestId::random())).await.unwrap();
    faults.set(|number| if number == 0 { Fault::ReplyLost } else { Fault::NotRun });
    let id = RequestId::random();
    let failed = counter.add("a", 1, Some(&id)).await;
    assert!(matches!(failed, Err(Error::Unknown(_))), "{failed:?}");
    faults.set(|_number| Fault::None);
    assert_eq!(counter.add("a", 1, Some(&id)).await.unwrap().count, 2);
}

/// The work was done, its end could not be stored: the caller was told that nothing had happened,
/// and what the work gave was gone.
#[tokio::test]
async fn what_can_not_be_recorded_is_still_given() {
    let (kit, faults) = faulty(&embedded());
    let ttls = Ttls { claim: Duration::from_secs(30), result: HOUR };
    let store = Idempotency::new(&kit, "pay", ttls).unwrap();
    let key = |text: &str| IdempotencyKey::new("acme", text);
    let done = || async {
        faults.set(|_number| Fault::NotRun);
        Ok::<u32, Failure>(7)
    };
    let run = store.idempotent(&key("a"), "pay", done).await.unwrap();
    assert!(
        matches!(run, Run::Unrecorded { outcome: Ok(7), error: Error::Unavailable(_) }),
        "{run:?}"
    );
    faults.set(|_number| Fault::None);
    let failed = || async {
        faults.set(|_number| Fault::NotRun);
        Err::<u32, _>(Failure::terminal("no money"))
    };
    let run = store.idempotent(&key("b"), "pay", failed).await.unwrap();
    assert!(matches!(run, Run::Unrecorded { outcome: Err(_), .. }), "{run:?}");
}

/// In an outage all callers of local flags asked the store, one after the other, and waited seconds
/// for what they had already.
#[tokio::test]
async fn local_flags_ask_a_store_in_trouble_once() {
    let (kit, faults) = faulty(&embedded());
    let flags = Flags::new(&kit, "acme", FlagTerms::new(HOUR)).unwrap();
    flags.define("f", &Definition::on(), "ops").await.unwrap();
    let age_max = Duration::from_millis(5);
    let local = LocalFlags::new(&flags, age_max, HOUR).unwrap();
    let ann = Subject::new("ann");
    assert!(local.evaluate("f", &ann).await.unwrap().is_on);
    faults.set(|_number| Fault::NotRun);
    tokio::time::sleep(age_max * 2).await;
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let (local, ann) = (local.clone(), ann.clone());
            tokio::spawn(async move { local.evaluate("f", &ann).await.unwrap().is_on })
        })
        .collect();
    for caller in callers {
        assert!(caller.await.unwrap());
    }
    let attempts = RetryPolicy::default().attempts_max as usize;
    assert!(faults.calls() <= 2 * attempts, "{} calls for 50 callers", faults.calls());
    faults.set(|_number| Fault::None);
    flags.kill("f", "ops").await.unwrap();
    eventually(async || !local.evaluate("f", &ann).await.unwrap().is_on).await;
}

/// Flags that were lost and made anew had the version of those before, so that readers who knew
/// these kept them.
#[tokio::test]
async fn flags_made_anew_are_read_anew() {
    let kit = embedded();
    let flags = Flags::new(&kit, "acme", FlagTerms::new(HOUR)).unwrap();
    flags.define("old", &Definition::on(), "ops").await.unwrap();
    let local = LocalFlags::new(&flags, Duration::from_millis(1), HOUR).unwrap();
    let ann = Subject::new("ann");
    assert!(local.evaluate("old", &ann).await.unwrap().is_on);
    kit.call(&Request::new("FLUSHALL")).await.unwrap();
    // Versions are moments: another one.
    tokio::time::sleep(Duration::from_millis(2)).await;
    flags.define("new", &Definition::on(), "ops").await.unwrap();
    eventually(async || local.evaluate("new", &ann).await.unwrap().is_on).await;
    assert!(!local.evaluate("old", &ann).await.unwrap().is_on);
}

/// A backend that does not get through with what has this text in it.
struct Selective {
    kit: Kit,
    fails: Arc<Mutex<&'static str>>,
}

impl Backend for Selective {
    fn call<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        let fails = *self.fails.lock().unwrap();
        let has = |arg: &[u8]| String::from_utf8_lossy(arg).contains(fails);
        if request.args().any(has) {
            let error = Error::Unavailable("a fault of the test".into());
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(self.kit.call(request))
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(self.kit.connection(slot))
    }

    fn name(&self) -> &'static str {
        "selective"
    }
}

/// An invalidation that failed again and again was the first to be tried each time, and those
/// behind it were never.
#[tokio::test]
async fn invalidations_take_turns() {
    let fails = Arc::new(Mutex::new(""));
    let backend = Selective { kit: embedded(), fails: fails.clone() };
    let kit = Kit::builder().retry(RetryPolicy::NONE).on(backend).unwrap();
    let cache: Cache<u32> = Cache::new(&kit, "numbers", Policy::new(HOUR)).unwrap();
    for id in ["a-first", "b-second", "c-third"] {
        assert_eq!(cache.invalidate(id).await, Ok(Invalidation::Pending));
    }
    assert_eq!(cache.stats().invalidations_pending, 3);
    *fails.lock().unwrap() = "a-first";
    eventually(async || cache.stats().invalidations_pending == 1).await;
}

/// A request that is repeated finds its work done and writes nothing, and WAIT asks about what its
/// own connection has written: it confirmed what no replica had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_stands_still_confirms_nothing() {
    let Some(primary) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    let port = primary.address().port().to_string();
    let replica = Server::start(Kind::Valkey, &["--replicaof", "127.0.0.1", &port]).unwrap();
    let kit = Kit::connect(&format!("redis://{}", primary.address())).await.unwrap();
    eventually(async || {
        let info = kit.call(&Request::new("INFO").arg("replication")).await.unwrap();
        String::from_utf8_lossy(info.as_bytes().unwrap()).contains("state=online")
    })
    .await;
    let hasty = kit.with_timeout(Duration::from_millis(300)).with_retry(RetryPolicy::NONE);
    let jobs = Jobs::builder(&hasty, "jobs", BOUNDS).min_replicas(1).build().unwrap();
    let (job, id) = (NewJob::new("x").id("a"), RequestId::random());
    replica.signal("STOP").unwrap();
    let mut results = Vec::new();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while results.len() < 3 && std::time::Instant::now() < deadline {
        let result = jobs.schedule(&job, Some(&id)).await;
        // A busy machine may take longer to connect than it has: then nothing was sent.
        if !matches!(result, Err(Error::Unavailable(_))) {
            results.push(result);
        }
    }
    replica.signal("CONT").unwrap();
    assert_eq!(results.len(), 3, "it is never sent");
    assert!(results.iter().all(|it| matches!(it, Err(Error::Unknown(_)))), "{results:?}");
    eventually(async || jobs.schedule(&job, Some(&id)).await.is_ok()).await;
}
