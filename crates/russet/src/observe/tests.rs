//! Every metric that the requirements name is emitted, and is on its page.

use crate::activity::{Dedupe, DedupeSettings};
use crate::flag::{FlagTerms, Flags};
use crate::idempotency::{Idempotency, IdempotencyKey, Ttls};
use crate::key::Family;
use crate::kit::Kit;
use crate::queue::{Bounds, Jobs, List};
use crate::retry::RequestId;
use crate::session::{Created, NewSession, Policy, Sessions, Timeouts, User};
use crate::step::{Step, Takes, WithRequestId};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Keeps names.
#[derive(Default)]
struct Names(Mutex<BTreeSet<String>>);

impl Names {
    fn add(&self, key: &Key) {
        self.0.lock().unwrap().insert(key.name().to_owned());
    }
}

impl Recorder for Names {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.add(key);
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.add(key);
        for label in key.labels().filter(|label| label.key() == "pattern") {
            self.0.lock().unwrap().insert(format!("{} {}", key.name(), label.value()));
        }
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.add(key);
        Histogram::noop()
    }
}

async fn use_workflows() -> crate::Result<()> {
    let kit = Kit::embedded(crate::Options::default())?;
    let ttls = Ttls { claim: HOUR, result: HOUR };
    let mails = Idempotency::new(&kit, "mail", ttls)?;
    let key = IdempotencyKey::new("acme", "ann");
    let _ = mails.try_claim(&key, HOUR, None).await?;
    let mark = mails.key(&key, "mark")?;
    kit.call(&crate::Request::new("PERSIST").key(&mark)).await?;
    let _ = mails.try_claim(&key, HOUR, None).await?;
    let list = List::builder(&kit, "list", Bounds { capacity: 10, ttl: HOUR }).build()?;
    let _ = (list.push("a", None).await?, list.pop(None).await?);
    let jobs = Jobs::builder(&kit, "jobs", Bounds { capacity: 10, ttl: HOUR }).build()?;
    let _ = jobs.claim_due(1, None).await?;
    let settings = DedupeSettings { window: HOUR, shards: 1, ids_max: 10 };
    let seen = Dedupe::new(&kit, "events", settings)?;
    let _ = (seen.first_seen("a", None).await?, seen.has_seen("a").await?);
    let flags = Flags::new(&kit, "acme", FlagTerms::new(HOUR))?;
    let _ = flags.is_member("beta", "ann").await?;
    let timeouts = Timeouts { idle: HOUR, absolute: HOUR };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 3))?;
    if let Created::Created(id) = sessions.create(&NewSession::of(&User::new("a", "b"))).await? {
        let _ = (sessions.authorize(&id).await?, sessions.find(&id).await?);
    }
    Ok(())
}

/// Seven of the names had no metric.
#[test]
fn what_was_missing_is_emitted() {
    let (names, runtime) = (Names::default(), tokio::runtime::Builder::new_current_thread());
    let runtime = { runtime }.enable_all().build().unwrap();
    metrics::with_local_recorder(&names, || runtime.block_on(use_workflows())).unwrap();
    let names = names.0.into_inner().unwrap();
    for name in [
        "redis.atomic.marker.ttl_missing.count",
        "redis.key.cardinality",
        "redis.queue.pop.latency",
        "redis.zset.scheduler.claim.latency",
        "redis.set.membership.lookup.latency",
        "redis.session.hmget.latency",
        "redis.session.hgetall.payload.bytes",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    let others: Vec<_> = names.iter().filter(|name| !name.starts_with("redis.")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Steps that are called with a request id, as most that write are, had no part in the figure.
#[test]
fn keys_of_requests_are_counted() {
    static COUNT: Step<WithRequestId> = Step::declare(
        "test_counted",
        Takes { keys: &["n"], args: &[] },
        "return {'OK', 'n', redis.call('INCR', n)}",
    );
    let count = async || {
        let kit = Kit::embedded(crate::Options::default())?;
        let keys = kit.keys(Family { purpose: "counted", version: 1 }, "a")?;
        kit.dedup(&RequestId::random(), &COUNT, &keys).key(keys.key("n")).run().await
    };
    let (names, runtime) = (Names::default(), tokio::runtime::Builder::new_current_thread());
    let runtime = { runtime }.enable_all().build().unwrap();
    metrics::with_local_recorder(&names, || runtime.block_on(count())).unwrap();
    let names = names.0.into_inner().unwrap();
    let is_counted = |part: &str| {
        let of_family = |name: &&String| name.starts_with("redis.key.cardinality ");
        names.iter().filter(of_family).any(|name| name.contains(part))
    };
    assert!(is_counted("counted"), "{names:?}");
    assert!(!is_counted("request"), "{names:?}");
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.ends_with("observe/tests.rs") => {}
            false => found.push(path),
        }
    }
}

/// The names of metrics in the code: what stands in quotes and begins as they do.
fn names_in_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let quoted = text.split('"').filter(|it| it.starts_with("redis.") && !it.contains(' '));
        let is_name =
            |it: &&str| it.bytes().all(|it| it.is_ascii_lowercase() || b"._".contains(&it));
        names.extend(quoted.filter(is_name).map(str::to_owned));
    }
    names
}

/// Prefixes were mixed, and pages said what had another name in the code.
#[test]
fn the_page_has_each_name() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workflows/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let names = names_in_code();
    assert!(names.len() > 60, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|it| !page.contains(&format!("`{it}`"))).collect();
    assert!(missing.is_empty(), "not in docs/workflows/README.md: {missing:#?}");
    let said = page.split('`').filter(|it| it.starts_with("redis.") && !it.contains('*'));
    let unknown: Vec<_> = said.filter(|it| !names.contains(*it)).collect();
    assert!(unknown.is_empty(), "no code has {unknown:#?}");
}
