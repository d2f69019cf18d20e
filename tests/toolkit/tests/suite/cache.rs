//! A value is loaded once for all who ask, and an old one never comes back.

use russet::cache::filter::{Completed, Filter, Presence, Size};
use russet::cache::{
    Cache, Format, Invalidation, LoadError, Loaded, Lookup, Outage, Policy, Stored,
};
use russet::key::{Family, Scope};
use russet::{Error, Kit, ManualTime, Options, Request};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use tokio::sync::oneshot;

russet_toolkit_tests::on_every_backend! {
    many_callers_load_once
    many_processes_load_once
    a_slow_loader_can_not_store_an_old_value
    what_does_not_exist_is_remembered
    an_entry_expires_in_real_time
    a_stale_value_is_served_while_one_loads_it_anew
    a_rejected_rebuild_leaves_no_lock
    a_corrupt_value_is_loaded_anew_and_counted
    a_failed_load_fails_for_all_and_is_tried_again
    a_dropped_caller_leaves_no_lock
    an_older_version_is_never_stored
    a_tag_invalidates_all_its_entries
    who_asks_after_an_invalidation_does_not_join_a_load_from_before
    formats_are_read_whoever_wrote_them
    a_filter_knows_what_does_not_exist
    a_filter_that_was_lost_does_not_know
    the_keys_of_an_entry_share_a_slot
}

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Profile {
    name: String,
    age: u32,
}

fn ann(age: u32) -> Option<Profile> {
    Some(Profile { name: "Ann".into(), age })
}

fn profiles(kit: &Kit, policy: Policy) -> Cache<Profile> {
    Cache::new(kit, "profiles", policy).unwrap()
}

type Load<T> = Result<Option<T>, LoadError>;

/// A loader that counts.
fn counted(loads: &Arc<AtomicU32>) -> impl FnOnce() -> std::future::Ready<Load<Profile>> + use<> {
    let loads = loads.clone();
    move || std::future::ready(Ok(ann(loads.fetch_add(1, SeqCst) + 1)))
}

/// A loader that says that it has begun, and goes on when it is told to.
fn held(age: u32) -> (oneshot::Receiver<()>, oneshot::Sender<()>, impl FnOnce() -> Held) {
    let (begun, has_begun) = oneshot::channel();
    let (go_on, may_go_on) = oneshot::channel();
    let load = move || -> Held {
        Box::pin(async move {
            let _ = begun.send(());
            let _ = may_go_on.await;
            Ok(ann(age))
        })
    };
    (has_begun, go_on, load)
}

type Held = std::pin::Pin<Box<dyn Future<Output = Load<Profile>> + Send>>;

async fn many_callers_load_once(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let loads = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (cache, loads) = (cache.clone(), loads.clone());
            tokio::spawn(async move { cache.fetch("ann", counted(&loads)).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), ann(1));
    }
    assert_eq!((loads.load(SeqCst), cache.stats().loads), (1, 1));
    assert_eq!(cache.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
    assert!(cache.stats().hits > 0);
}

/// Each cache is one process. S3: who got the lock after another did not look whether the value was
/// there by now, and loaded it again.
async fn many_processes_load_once(kit: Kit) {
    let loads = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (cache, loads) = (profiles(&kit, Policy::new(MINUTE)), loads.clone());
            let load = move || async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok::<_, LoadError>(ann(loads.fetch_add(1, SeqCst) + 1))
            };
            tokio::spawn(async move { cache.fetch("ann", load).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), ann(1));
    }
    assert_eq!(loads.load(SeqCst), 1);
}

/// Guava issue 1881, lettuce issue 3481: a load that began before an invalidation stored what it
/// had read, and the old value stayed.
async fn a_slow_loader_can_not_store_an_old_value(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let (has_begun, go_on, load) = held(1);
    let slow = tokio::spawn({
        let cache = cache.clone();
        async move { cache.fetch("ann", load).await.unwrap() }
    });
    has_begun.await.unwrap();
    assert_eq!(cache.invalidate("ann").await, Ok(Invalidation::Done));
    // Who asks after the invalidation does not get what was read before it.
    let fresh = cache.fetch("ann", || async { Ok::<_, LoadError>(ann(2)) }).await;
    assert_eq!(fresh.unwrap(), ann(2));
    go_on.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), ann(1));
    let stored = cache.get("ann", &[]).await.unwrap();
    assert!(matches!(stored, Lookup::Found { value, .. } if Some(&value) == ann(2).as_ref()));
    assert_eq!(cache.stats().stale_writes, 1);
}

/// S3: an id that does not exist went to the database each time (penetration). Redisson issue 1170:
/// the second look at one hung.
async fn what_does_not_exist_is_remembered(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE).null_for(MINUTE));
    let none = || async { Ok::<_, LoadError>(None::<Profile>) };
    assert_eq!(cache.fetch("bob", none).await.unwrap(), None);
    assert_eq!(cache.fetch("bob", none).await.unwrap(), None);
    assert_eq!(cache.stats().loads, 1);
    assert_eq!(cache.get("bob", &[]).await, Ok(Lookup::Null));
    let forgetful = Cache::<Profile>::new(&kit, "others", Policy::new(MINUTE)).unwrap();
    assert_eq!(forgetful.fetch("bob", none).await.unwrap(), None);
    assert_eq!(forgetful.fetch("bob", none).await.unwrap(), None);
    assert_eq!(forgetful.stats().loads, 2);
}

/// S3: entries without a physical TTL stay for ever.
async fn an_entry_expires_in_real_time(kit: Kit) {
    let cache = profiles(&kit, Policy::new(Duration::from_millis(100)));
    assert_eq!(cache.put("ann", ann(1), &[]).await, Ok(Stored::Stored));
    while cache.get("ann", &[]).await != Ok(Lookup::Missing) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// S3: a key that is missing under logical expiry returned null for ever; a rebuild that fails must
/// not leave the lock for good.
async fn a_stale_value_is_served_while_one_loads_it_anew(kit: Kit) {
    let policy = Policy::new(Duration::from_millis(20)).stale_for(MINUTE);
    let cache = profiles(&kit, policy.lock_for(Duration::from_millis(100)));
    let loads = Arc::new(AtomicU32::new(0));
    assert_eq!(cache.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
    tokio::time::sleep(Duration::from_millis(30)).await;
    // One that fails: the value stays, and the next may try once the lock has ended.
    let fails = || async { Err::<Option<Profile>, _>("no database") };
    assert_eq!(cache.fetch("ann", fails).await.unwrap(), ann(1));
    // A machine may be too busy to carry it out before the lock is over.
    crate::eventually(async || cache.stats().load_failures == 1).await;
    let mut last = 1;
    while last == 1 {
        last = cache.fetch("ann", counted(&loads)).await.unwrap().unwrap().age;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(cache.stats().stale_hits >= 2);
    assert_eq!(cache.stats().load_failures, 1);
}

/// S3: a rebuild that was never carried out, because the pool of threads took no more, left its
/// lock. Here its task ends without a word: the next caller loads the value long before the
/// lock is over.
async fn a_rejected_rebuild_leaves_no_lock(kit: Kit) {
    let policy = Policy::new(Duration::from_millis(20)).stale_for(10 * MINUTE);
    let cache = profiles(&kit, policy.lock_for(10 * MINUTE));
    assert_eq!(cache.put("ann", ann(1), &[]).await, Ok(Stored::Stored));
    tokio::time::sleep(Duration::from_millis(30)).await;
    let load = || -> Held { Box::pin(async { panic!("a fault of the test") }) };
    assert_eq!(cache.fetch("ann", load).await.unwrap(), ann(1));
    crate::eventually(async || {
        let load = || async { Ok::<_, LoadError>(ann(2)) };
        cache.fetch("ann", load).await.unwrap() == ann(2)
    })
    .await;
}

/// S4 §18: a value that can't be read is neither an error for ever nor silently a miss.
async fn a_corrupt_value_is_loaded_anew_and_counted(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let numbers: Cache<u32> = Cache::new(&kit, "profiles", Policy::new(MINUTE)).unwrap();
    assert_eq!(numbers.put("ann", Some(7), &[]).await, Ok(Stored::Stored));
    let loads = Arc::new(AtomicU32::new(0));
    assert_eq!(cache.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
    assert_eq!((cache.stats().corrupt, cache.stats().loads), (1, 1));
    // A key of another type.
    let family = Family { purpose: "cache", version: 1 };
    let entry = kit.keys(family, Scope::from("profiles").and("bob")).unwrap().key("entry");
    let set = Request::new("SET").key(&entry).arg("x").arg("PX").arg(MINUTE);
    kit.call(&set).await.unwrap();
    assert_eq!(cache.fetch("bob", counted(&loads)).await.unwrap(), ann(2));
    assert_eq!(cache.stats().corrupt, 2);
    // A newer program has another schema.
    let newer = profiles(&kit, Policy::new(MINUTE).schema_version(2));
    assert_eq!(newer.fetch("ann", counted(&loads)).await.unwrap(), ann(3));
    assert_eq!(newer.stats().old_schema, 1);
}

/// Redisson issue 1658: with the database down, a read through the cache blocked for ever.
async fn a_failed_load_fails_for_all_and_is_tried_again(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let failed = cache.fetch("ann", || async { Err::<Option<Profile>, _>("down") }).await;
    assert!(matches!(failed, Err(LoadError::Loader(error)) if error.to_string() == "down"));
    // The lock is free again.
    let loads = Arc::new(AtomicU32::new(0));
    assert_eq!(cache.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
}

/// A caller that goes away while it loads: others go on without waiting for the lock to end.
async fn a_dropped_caller_leaves_no_lock(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE).lock_for(MINUTE).wait_at_most(MINUTE));
    let (has_begun, _go_on, load) = held(1);
    let gone = tokio::spawn({
        let cache = cache.clone();
        async move { cache.fetch("ann", load).await }
    });
    has_begun.await.unwrap();
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let loads = Arc::new(AtomicU32::new(0));
    assert_eq!(cache.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
}

async fn an_older_version_is_never_stored(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let put = async |age, version| {
        cache.put("ann", Loaded::at_version(ann(age), version), &[]).await.unwrap()
    };
    assert_eq!(put(2, 2).await, Stored::Stored);
    assert_eq!(put(1, 1).await, Stored::Stale);
    assert_eq!(put(2, 2).await, Stored::Stored);
    // An invalidation does not forget what is too old.
    assert_eq!(cache.invalidate_older_than("ann", 3).await, Ok(Invalidation::Done));
    assert_eq!(put(2, 2).await, Stored::Stale);
    let loaded =
        cache.fetch("ann", || async { Ok::<_, LoadError>(Loaded::at_version(ann(2), 2)) }).await;
    assert_eq!(loaded.unwrap(), ann(2));
    assert_eq!(cache.get("ann", &[]).await, Ok(Lookup::Missing));
    assert_eq!(put(3, 3).await, Stored::Stored);
    assert_eq!(cache.invalidate_older_than("ann", 2).await, Ok(Invalidation::Done));
    assert!(matches!(cache.get("ann", &[]).await, Ok(Lookup::Found { .. })));
}

async fn a_tag_invalidates_all_its_entries(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let loads = Arc::new(AtomicU32::new(0));
    let load = async |id: &str, tags: &[&str]| {
        cache.fetch_tagged(id, tags, counted(&loads)).await.unwrap().unwrap().age
    };
    assert_eq!(load("ann", &["team-1", "office-1"]).await, 1);
    assert_eq!(load("bob", &["team-1"]).await, 2);
    assert_eq!(load("eve", &["team-2"]).await, 3);
    assert_eq!(load("ann", &["office-1", "team-1"]).await, 1);
    assert_eq!(cache.invalidate_tag("team-1").await, Ok(Invalidation::Done));
    assert_eq!(load("ann", &["team-1", "office-1"]).await, 4);
    assert_eq!(load("bob", &["team-1"]).await, 5);
    assert_eq!(load("eve", &["team-2"]).await, 3);
    // A load that began before the tag was invalidated does not count after it.
    let (has_begun, go_on, slow) = held(9);
    let late = tokio::spawn({
        let cache = cache.clone();
        async move { cache.fetch_tagged("joe", &["team-1"], slow).await }
    });
    has_begun.await.unwrap();
    assert_eq!(cache.invalidate_tag("team-1").await, Ok(Invalidation::Done));
    go_on.send(()).unwrap();
    assert_eq!(late.await.unwrap().unwrap(), ann(9));
    assert_eq!(load("joe", &["team-1"]).await, 6);
    let too_many = cache.get("ann", &["t"; 9]).await;
    assert!(matches!(too_many, Err(Error::Invalid(_))));
}

/// The load from before was joined by its token, and its value given to those who came after.
async fn who_asks_after_an_invalidation_does_not_join_a_load_from_before(kit: Kit) {
    let cache = profiles(&kit, Policy::new(MINUTE));
    let fetch = |load, tags: &'static [&'static str]| {
        let cache = cache.clone();
        tokio::spawn(async move { cache.fetch_tagged("joe", tags, load).await.unwrap() })
    };
    let (has_begun, go_on, slow) = held(1);
    let early = fetch(slow, &["team"]);
    has_begun.await.unwrap();
    assert_eq!(cache.invalidate_tag("team").await, Ok(Invalidation::Done));
    let (_has_begun, also_go_on, fresh) = held(2);
    let late = fetch(fresh, &["team"]);
    let (_has_begun, last_go_on, others) = held(3);
    let other = fetch(others, &["team", "office"]);
    for go_on in [also_go_on, last_go_on] {
        go_on.send(()).unwrap();
    }
    // Time to join.
    tokio::time::sleep(Duration::from_millis(50)).await;
    go_on.send(()).unwrap();
    assert_eq!(early.await.unwrap(), ann(1));
    assert_eq!((late.await.unwrap(), other.await.unwrap()), (ann(2), ann(3)));
}

async fn formats_are_read_whoever_wrote_them(kit: Kit) {
    let packed = profiles(&kit, Policy::new(MINUTE).format(Format::MessagePack));
    assert_eq!(packed.put("ann", ann(1), &[]).await, Ok(Stored::Stored));
    let json = profiles(&kit, Policy::new(MINUTE));
    let found = json.get("ann", &[]).await.unwrap();
    assert!(
        matches!(found, Lookup::Found { value, is_stale: false } if Some(&value) == ann(1).as_ref())
    );
}

fn users(kit: &Kit) -> Filter {
    Filter::new(kit, "users", Size { items_max: 1000, error_rate: 0.01 }, MINUTE).unwrap()
}

/// S3: the Bloom filter is what keeps ids that do not exist away from the database.
async fn a_filter_knows_what_does_not_exist(kit: Kit) {
    let filter = users(&kit);
    let ids: Vec<String> = (0..1000).map(|number| format!("user-{number}")).collect();
    filter.add_all(ids.iter().map(String::as_str)).await.unwrap();
    // It is not known yet whether these are all.
    assert_eq!(filter.presence("nobody").await, Ok(Presence::Possible));
    assert_eq!(filter.complete().await, Ok(Completed::Complete));
    for id in ids.iter().step_by(50) {
        assert_eq!(filter.presence(id.as_str()).await, Ok(Presence::Possible));
    }
    let mut mistaken = 0;
    for number in 0..200 {
        let presence = filter.presence(format!("nobody-{number}")).await.unwrap();
        mistaken += u32::from(presence == Presence::Possible);
    }
    assert!(mistaken <= 20, "{mistaken} of 200 at an error rate of 1 %");

    let cache = profiles(&kit, Policy::new(MINUTE)).guarded_by(&filter);
    let loads = Arc::new(AtomicU32::new(0));
    assert_eq!(cache.fetch("user-1", counted(&loads)).await.unwrap(), ann(1));
    let absent = format!("nobody-{}", {
        let mut number = 0;
        while filter.presence(format!("nobody-{number}")).await == Ok(Presence::Possible) {
            number += 1;
        }
        number
    });
    assert_eq!(cache.fetch(absent, counted(&loads)).await.unwrap(), None);
    assert_eq!((cache.stats().filtered, loads.load(SeqCst)), (1, 1));
}

/// A filter that lost its bits, by eviction for example, must not say that nothing exists.
async fn a_filter_that_was_lost_does_not_know(kit: Kit) {
    let filter = users(&kit);
    filter.add("user-1").await.unwrap();
    assert_eq!(filter.complete().await, Ok(Completed::Complete));
    assert_eq!(filter.presence("user-2").await, Ok(Presence::Absent));
    let family = Family { purpose: "filter", version: 1 };
    let keys = kit.keys(family, Scope::from("users").shard(0)).unwrap();
    for part in ["bits", "bloom"] {
        kit.call(&Request::new("DEL").key(&keys.key(part))).await.unwrap();
    }
    assert_eq!(filter.presence("user-1").await, Ok(Presence::Possible));
    filter.add("user-3").await.unwrap();
    assert_eq!(filter.presence("user-1").await, Ok(Presence::Possible));
}

/// S1 §4: keys of one step in different slots. Entries spread over slots.
async fn the_keys_of_an_entry_share_a_slot(kit: Kit) {
    let family = Family { purpose: "cache", version: 1 };
    let keys = |id: &str| kit.keys(family, Scope::from("profiles").and(id)).unwrap();
    let slots: HashSet<u16> =
        ["entry", "lock", "version"].map(|part| keys("ann").key(part).slot()).into_iter().collect();
    assert_eq!(slots.len(), 1);
    let spread: HashSet<u16> =
        (0..64).map(|number| keys(&number.to_string()).key("entry").slot()).collect();
    assert!(spread.len() > 32);
}

fn at(time: &ManualTime) -> Kit {
    Kit::builder().embedded_at(Options::default(), time).unwrap()
}

#[tokio::test]
async fn early_refresh_comes_before_the_end() {
    let time = ManualTime::new();
    let kit = at(&time);
    let cache = profiles(&kit, Policy::new(MINUTE).jitter(0.0).early(100.0));
    let slow = {
        let time = time.clone();
        move |age| async move {
            time.advance(Duration::from_secs(1));
            Ok::<_, LoadError>(ann(age))
        }
    };
    let first = slow.clone();
    assert_eq!(cache.fetch("ann", move || first(1)).await.unwrap(), ann(1));
    time.advance(Duration::from_secs(30));
    // A load takes a second, and beta is 100: with 29 seconds left one in four does not refresh.
    for _ in 0..100 {
        let next = slow.clone();
        let found = cache.fetch("ann", move || next(2)).await.unwrap();
        tokio::task::yield_now().await;
        if found == ann(2) {
            assert_eq!(cache.stats().stale_hits, 0);
            return;
        }
    }
    panic!("never refreshed");
}

/// S3: entries that were loaded at one time ended at one time (avalanche).
#[tokio::test]
async fn entries_do_not_end_at_the_same_time() {
    let time = ManualTime::new();
    let kit = at(&time);
    let cache = profiles(&kit, Policy::new(MINUTE).jitter(0.5));
    for number in 0..64 {
        assert_eq!(cache.put(format!("{number}"), ann(1), &[]).await, Ok(Stored::Stored));
    }
    time.advance(Duration::from_secs(45));
    let mut left = 0;
    for number in 0..64 {
        let found = cache.get(format!("{number}"), &[]).await.unwrap();
        left += u32::from(found != Lookup::Missing);
    }
    assert!((8..56).contains(&left), "{left} of 64 are left");
    time.advance(Duration::from_secs(15));
    assert_eq!(cache.get("0", &[]).await, Ok(Lookup::Missing));
}

/// S3: a load that takes longer than the lock let a second one begin, and removed its lock.
#[tokio::test]
async fn a_long_load_keeps_its_lock() {
    let time = ManualTime::new();
    let kit = at(&time);
    let cache = profiles(&kit, Policy::new(MINUTE).lock_for(Duration::from_secs(3)));
    let (has_begun, go_on, load) = held(1);
    let slow = tokio::spawn({
        let cache = cache.clone();
        async move { cache.fetch("ann", load).await.unwrap() }
    });
    has_begun.await.unwrap();
    for _ in 0..10 {
        time.advance(Duration::from_secs(1));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    go_on.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), ann(1));
    assert!(matches!(cache.get("ann", &[]).await, Ok(Lookup::Found { .. })));
}

/// A backend that can be switched off.
struct Switch {
    inner: Kit,
    is_off: Arc<AtomicBool>,
    is_refusing: Arc<AtomicBool>,
}

impl russet::backend::Backend for Switch {
    fn call<'a>(
        &'a self,
        request: &'a Request,
        _timeout: Duration,
    ) -> russet::backend::Pending<'a, russet::Reply> {
        Box::pin(async move {
            if self.is_off.load(SeqCst) {
                return Err(Error::Unavailable("switched off".into()));
            }
            if self.is_refusing.load(SeqCst) {
                return Err(Error::Refused { code: "NOPERM".into(), text: "no".into() });
            }
            self.inner.call(request).await
        })
    }

    fn connection(
        &self,
        slot: u16,
    ) -> russet::backend::Pending<'_, Box<dyn russet::backend::Connection>> {
        Box::pin(self.inner.connection(slot))
    }

    fn name(&self) -> &'static str {
        "switch"
    }
}

fn switched() -> (Kit, Arc<AtomicBool>) {
    let (kit, is_off, _is_refusing) = switches();
    (kit, is_off)
}

/// A kit, and whether it is off, or is refused everything.
fn switches() -> (Kit, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (is_off, is_refusing) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let inner = Kit::embedded(Options::default()).unwrap();
    let switch = Switch { inner, is_off: is_off.clone(), is_refusing: Arc::clone(&is_refusing) };
    (Kit::builder().on(switch).unwrap(), is_off, is_refusing)
}

/// An invalidation that the store refuses was tried for ever.
#[tokio::test]
async fn an_invalidation_that_is_refused_is_given_up() {
    let (kit, is_off, is_refusing) = switches();
    let cache = profiles(&kit, Policy::new(MINUTE));
    is_off.store(true, SeqCst);
    assert_eq!(cache.invalidate("ann").await, Ok(Invalidation::Pending));
    assert_eq!(cache.invalidate_tag("team").await, Ok(Invalidation::Pending));
    is_refusing.store(true, SeqCst);
    is_off.store(false, SeqCst);
    cache.flush_invalidations().await;
    let refused = cache.invalidate("ann").await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    let stats = cache.stats();
    assert_eq!((stats.invalidations_pending, stats.invalidations_failed), (0, 3));
}

/// In an outage each invalidation was a task of its own, however many there were.
#[tokio::test]
async fn pending_invalidations_are_bounded() {
    let (kit, is_off) = switched();
    let cache = profiles(&kit, Policy::new(MINUTE));
    is_off.store(true, SeqCst);
    for number in 0..10_001 {
        for _ in 0..2 {
            drop(cache.change(number.to_string()).unwrap());
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.invalidations_pending, stats.invalidations_rejected), (10_000, 2));
    is_off.store(false, SeqCst);
    cache.flush_invalidations().await;
    assert_eq!(cache.stats().invalidations, 10_000);
}

/// S3: "the cache deletion must succeed". It is tried until it does, and can be seen meanwhile.
#[tokio::test]
async fn an_invalidation_is_tried_until_it_is_done() {
    let (kit, is_off) = switched();
    let cache = profiles(&kit, Policy::new(MINUTE));
    assert_eq!(cache.put("ann", ann(1), &[]).await, Ok(Stored::Stored));
    is_off.store(true, SeqCst);
    assert_eq!(cache.invalidate("ann").await, Ok(Invalidation::Pending));
    assert_eq!(cache.stats().invalidations_pending, 1);
    is_off.store(false, SeqCst);
    cache.flush_invalidations().await;
    assert_eq!(cache.stats().invalidations_pending, 0);
    assert_eq!(cache.get("ann", &[]).await, Ok(Lookup::Missing));
    // A change that is given up, by an error or a cancelled caller, invalidates too.
    assert_eq!(cache.put("ann", ann(1), &[]).await, Ok(Stored::Stored));
    drop(cache.change("ann").unwrap());
    cache.flush_invalidations().await;
    assert_eq!(cache.get("ann", &[]).await, Ok(Lookup::Missing));
    assert_eq!(cache.change("ann").unwrap().done().await, Ok(Invalidation::Done));
}

/// S3: the store is down. What then happens was chosen beforehand.
#[tokio::test]
async fn an_outage_is_met_as_the_policy_says() {
    let (kit, is_off) = switched();
    is_off.store(true, SeqCst);
    let loads = Arc::new(AtomicU32::new(0));
    let open = profiles(&kit, Policy::new(MINUTE));
    assert_eq!(open.fetch("ann", counted(&loads)).await.unwrap(), ann(1));
    assert_eq!(open.stats().direct_loads, 1);
    let closed = profiles(&kit, Policy::new(MINUTE).on_outage(Outage::Fail));
    let failed = closed.fetch("ann", counted(&loads)).await;
    assert!(matches!(failed, Err(LoadError::Kit(Error::Unavailable(_)))));
    assert_eq!(loads.load(SeqCst), 1);
}

#[tokio::test]
async fn a_policy_without_sense_is_refused() {
    let kit = Kit::embedded(Options::default()).unwrap();
    let good = Policy::new(MINUTE);
    for policy in [
        Policy::new(Duration::ZERO),
        good.lock_for(Duration::ZERO),
        good.jitter(1.5),
        good.jitter(f64::NAN),
        good.early(-1.0),
    ] {
        assert!(matches!(Cache::<u32>::new(&kit, "numbers", policy), Err(Error::Invalid(_))));
    }
    assert!(matches!(Cache::<u32>::new(&kit, "", good), Err(Error::Invalid(_))));
}
