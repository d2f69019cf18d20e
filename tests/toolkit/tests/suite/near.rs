//! Copies in the process: they save the way to the store, and none outlives what it is a copy of.

use russet::cache::{Cache, Invalidation, LoadError, Loaded, Lookup, Near, Policy, Stored};
use russet::{Error, Kit, Request};
use russet_tests::server::{Kind, Server, skip_without};
use russet_toolkit_tests::{Proxy, TestBackend, kit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use crate::eventually;

russet_toolkit_tests::on_backend!(run on_russet Russet
    a_copy_is_served_until_another_process_writes
    own_changes_are_seen_at_once
    a_tag_ends_copies_and_needs_no_round_trip
    what_does_not_exist_is_copied_too
    versions_are_obeyed_whatever_is_copied
    a_copy_is_not_served_longer_than_it_is_fresh
    a_stale_value_is_no_copy
    early_refresh_happens_though_there_is_a_copy
    copies_are_bounded
    what_can_not_be_read_is_loaded_anew
    no_old_copy_stays_under_load
    caches_share_one_connection
);
russet_toolkit_tests::on_backend!(run on_redis Redis
    a_copy_is_served_until_another_process_writes
    own_changes_are_seen_at_once
    a_tag_ends_copies_and_needs_no_round_trip
    what_does_not_exist_is_copied_too
    versions_are_obeyed_whatever_is_copied
    a_copy_is_not_served_longer_than_it_is_fresh
    a_stale_value_is_no_copy
    early_refresh_happens_though_there_is_a_copy
    copies_are_bounded
    what_can_not_be_read_is_loaded_anew
    no_old_copy_stays_under_load
    caches_share_one_connection
);
russet_toolkit_tests::on_backend!(run on_valkey Valkey
    a_copy_is_served_until_another_process_writes
    own_changes_are_seen_at_once
    a_tag_ends_copies_and_needs_no_round_trip
    what_does_not_exist_is_copied_too
    versions_are_obeyed_whatever_is_copied
    a_copy_is_not_served_longer_than_it_is_fresh
    a_stale_value_is_no_copy
    early_refresh_happens_though_there_is_a_copy
    copies_are_bounded
    what_can_not_be_read_is_loaded_anew
    no_old_copy_stays_under_load
    caches_share_one_connection
);

mod behind_a_proxy {
    use super::{copies_go_with_the_connection, silence_ends_copies};

    russet_toolkit_tests::behind_a_proxy! {
        copies_go_with_the_connection
        silence_ends_copies
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// As a process that keeps copies, and one that does not and changes things.
fn both(kit: &Kit, policy: Policy) -> (Cache<u32>, Cache<u32>) {
    // A copy that is wrong shall be seen, not end by itself.
    let near = Near::new().ttl_at_most(HOUR);
    let copying = Cache::new(kit, "numbers", policy.near(near)).unwrap();
    (copying, Cache::new(kit, "numbers", policy).unwrap())
}

fn long() -> Policy {
    Policy::new(HOUR).jitter(0.0)
}

async fn found(cache: &Cache<u32>, id: &str) -> Option<u32> {
    match cache.get(id, &[]).await.unwrap() {
        Lookup::Found { value, .. } => Some(value),
        Lookup::Null | Lookup::Missing => None,
    }
}

async fn put(cache: &Cache<u32>, id: &str, value: u32) {
    assert_eq!(cache.put(id, Some(value), &[]).await, Ok(Stored::Stored));
}

/// Reads until a copy is served.
async fn until_copied(cache: &Cache<u32>, id: &str) {
    let before = cache.stats().near_hits;
    eventually(async || {
        let _ = cache.get(id, &[]).await.unwrap();
        cache.stats().near_hits > before
    })
    .await;
}

async fn a_copy_is_served_until_another_process_writes(kit: Kit) {
    let (copying, other) = both(&kit, long());
    put(&other, "a", 1).await;
    until_copied(&copying, "a").await;
    assert_eq!(found(&copying, "a").await, Some(1));
    for value in 2..20 {
        put(&other, "a", value).await;
        eventually(async || found(&copying, "a").await == Some(value)).await;
        until_copied(&copying, "a").await;
        assert_eq!(found(&copying, "a").await, Some(value));
    }
    assert_eq!(other.invalidate("a").await, Ok(Invalidation::Done));
    eventually(async || found(&copying, "a").await.is_none()).await;
    let stats = copying.stats();
    assert!(stats.near_invalidations > 0 && stats.near_hits > 0, "{stats:?}");
    assert!(stats.near_hits <= stats.hits, "{stats:?}");
    assert_eq!(other.stats().near_hits, 0);
}

async fn own_changes_are_seen_at_once(kit: Kit) {
    let (copying, _) = both(&kit, long());
    put(&copying, "a", 0).await;
    for value in 1..50 {
        until_copied(&copying, "a").await;
        put(&copying, "a", value).await;
        assert_eq!(found(&copying, "a").await, Some(value));
        if value % 5 == 0 {
            until_copied(&copying, "a").await;
            assert_eq!(copying.invalidate("a").await, Ok(Invalidation::Done));
            assert_eq!(found(&copying, "a").await, None);
            put(&copying, "a", value).await;
        }
    }
}

async fn a_tag_ends_copies_and_needs_no_round_trip(kit: Kit) {
    let (copying, other) = both(&kit, long());
    let loads = Arc::new(AtomicU32::new(0));
    let fetch = async |cache: &Cache<u32>| {
        let loads = loads.clone();
        let load = move || async move { Ok::<_, LoadError>(Some(loads.fetch_add(1, SeqCst) + 1)) };
        cache.fetch_tagged("a", &["red", "blue"], load).await.unwrap()
    };
    eventually(async || {
        assert_eq!(fetch(&copying).await, Some(1));
        copying.stats().near_hits > 0
    })
    .await;
    // Two tokens and the entry.
    assert_eq!(copying.stats().near_entries, 3);
    assert_eq!(other.invalidate_tag("blue").await, Ok(Invalidation::Done));
    eventually(async || fetch(&copying).await == Some(2)).await;
    // The own one at once.
    assert_eq!(copying.invalidate_tag("red").await, Ok(Invalidation::Done));
    assert_eq!(fetch(&copying).await, Some(3));
}

async fn what_does_not_exist_is_copied_too(kit: Kit) {
    let (copying, other) = both(&kit, long().null_for(HOUR));
    assert_eq!(other.put("a", None, &[]).await, Ok(Stored::Stored));
    until_copied(&copying, "a").await;
    assert_eq!(copying.get("a", &[]).await, Ok(Lookup::Null));
    put(&other, "a", 1).await;
    eventually(async || found(&copying, "a").await == Some(1)).await;
}

async fn versions_are_obeyed_whatever_is_copied(kit: Kit) {
    let (copying, other) = both(&kit, long());
    let at = |value, version| Loaded::at_version(Some(value), version);
    assert_eq!(other.put("a", at(5, 5), &[]).await, Ok(Stored::Stored));
    until_copied(&copying, "a").await;
    assert_eq!(copying.put("a", at(4, 4), &[]).await, Ok(Stored::Stale));
    assert_eq!(found(&copying, "a").await, Some(5));
    assert_eq!(other.put("a", at(6, 6), &[]).await, Ok(Stored::Stored));
    eventually(async || found(&copying, "a").await == Some(6)).await;
    until_copied(&copying, "a").await;
    assert_eq!(copying.invalidate_older_than("a", 5).await, Ok(Invalidation::Done));
    assert_eq!(found(&copying, "a").await, Some(6));
}

/// Its end is that of the entry, as the store has it.
async fn a_copy_is_not_served_longer_than_it_is_fresh(kit: Kit) {
    let (copying, other) = both(&kit, long());
    put(&other, "other", 1).await;
    until_copied(&copying, "other").await;
    crate::given_time(Duration::from_millis(300), async |ttl| {
        let brief: Cache<u32> = Cache::new(&kit, "numbers", Policy::new(ttl).jitter(0.0)).unwrap();
        put(&brief, "a", 1).await;
        let stored_at = tokio::time::Instant::now();
        let hits = copying.stats().near_hits;
        let (_first, _second) = (found(&copying, "a").await, found(&copying, "a").await);
        let was_copied = copying.stats().near_hits > hits;
        tokio::time::sleep_until(stored_at + ttl + Duration::from_millis(10)).await;
        assert_eq!(found(&copying, "a").await, None);
        was_copied
    })
    .await;
}

async fn a_stale_value_is_no_copy(kit: Kit) {
    let policy = Policy::new(Duration::from_millis(1)).jitter(0.0).stale_for(HOUR);
    let (copying, other) = both(&kit, policy);
    // Another entry shows when copies are kept.
    put(&Cache::new(&kit, "numbers", long()).unwrap(), "fresh", 1).await;
    until_copied(&copying, "fresh").await;
    put(&other, "a", 1).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let hits = copying.stats().near_hits;
    for _ in 0..10 {
        let stale = copying.get("a", &[]).await;
        assert_eq!(stale, Ok(Lookup::Found { value: 1, is_stale: true }));
    }
    assert_eq!((copying.stats().near_hits, copying.stats().near_entries), (hits, 1));
    // One caller loads it anew, as without copies.
    let load = || async { Ok::<_, LoadError>(Some(2)) };
    assert_eq!(copying.fetch("a", load).await.unwrap(), Some(1));
    eventually(async || found(&copying, "a").await == Some(2)).await;
}

/// The lot that says that a copy is due goes to the store, which elects.
async fn early_refresh_happens_though_there_is_a_copy(kit: Kit) {
    let (copying, other) = both(&kit, long().early(100.0));
    put(&other, "a", 1).await;
    // A load of a second, and 100 s to live: with a factor of 100 one in three look-ups is due.
    let now = kit.call(&Request::new("TIME")).await.unwrap();
    let seconds: u64 = text(&now.as_list().unwrap()[0]).parse().unwrap();
    let set = Request::new("HSET").key(&entry_a(&kit)).arg("load_ms").arg("1000");
    let set = set.arg("fresh_until_ms").arg((seconds + 100) * 1000);
    kit.call(&set).await.unwrap();
    until_copied(&copying, "a").await;
    let load = || async { Ok::<_, LoadError>(Some(2)) };
    eventually(async || copying.fetch("a", load).await.unwrap() == Some(2)).await;
    assert_eq!((copying.stats().loads, copying.stats().misses), (1, 0));
}

/// Where the entry of `a` is.
fn entry_a(kit: &Kit) -> russet::key::Key {
    let family = russet::key::Family { purpose: "cache", version: 1 };
    kit.keys(family, russet::key::Scope::from("numbers").and("a")).unwrap().key("entry")
}

fn text(reply: &russet::Reply) -> String {
    String::from_utf8(reply.as_bytes().unwrap().to_vec()).unwrap()
}

async fn copies_are_bounded(kit: Kit) {
    let (_, other) = both(&kit, long());
    let few = Near::new().entries_at_most(7);
    let small = Near::new().bytes_at_most(2_000);
    for near in [few, small] {
        let copying: Cache<u32> = Cache::new(&kit, "numbers", long().near(near)).unwrap();
        put(&other, "0", 0).await;
        until_copied(&copying, "0").await;
        for value in 0..40 {
            let id = value.to_string();
            put(&other, &id, value).await;
            assert_eq!(found(&copying, &id).await, Some(value));
            let stats = copying.stats();
            assert!(stats.near_entries <= 7 || near == small, "{stats:?}");
            assert!(stats.near_bytes <= 2_000 || near == few, "{stats:?}");
        }
        assert!(copying.stats().near_entries > 0);
    }
    let nothing = Near::new().entries_at_most(0);
    let refused = Cache::<u32>::new(&kit, "numbers", long().near(nothing));
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

async fn what_can_not_be_read_is_loaded_anew(kit: Kit) {
    let (copying, other) = both(&kit, long());
    put(&other, "a", 1).await;
    until_copied(&copying, "a").await;
    let entry = entry_a(&kit);
    let spoilt = Request::new("HSET").key(&entry).arg("payload").arg("no number");
    kit.call(&spoilt).await.unwrap();
    eventually(async || found(&copying, "a").await.is_none()).await;
    // From the store or from a copy of it.
    until_copied(&copying, "a").await;
    assert_eq!(copying.get("a", &[]).await, Ok(Lookup::Missing));
    let load = || async { Ok::<_, LoadError>(Some(2)) };
    assert_eq!(copying.fetch("a", load).await.unwrap(), Some(2));
    assert_eq!(found(&copying, "a").await, Some(2));
    assert!(copying.stats().corrupt > 1);
    // Of another type, and with times that make no sense.
    kit.call(&Request::new("HSET").key(&entry).arg("load_ms").arg("-1")).await.unwrap();
    eventually(async || copying.stats().near_entries == 0).await;
    assert_eq!(found(&copying, "a").await, Some(2));
    assert_eq!(copying.stats().near_entries, 0);
    kit.call(&Request::new("SET").key(&entry).arg("x").arg("PX").arg("60000")).await.unwrap();
    assert_eq!(found(&copying, "a").await, None);
}

/// Readers that copy while another process writes; when it has ended all see its last value.
async fn no_old_copy_stays_under_load(kit: Kit) {
    let (copying, other) = both(&kit, long());
    put(&other, "a", 0).await;
    until_copied(&copying, "a").await;
    let last = Arc::new(AtomicU32::new(0));
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (copying, last) = (copying.clone(), last.clone());
            tokio::spawn(async move {
                while last.load(SeqCst) == 0 {
                    let _ = found(&copying, "a").await;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for value in 1..=300 {
        put(&other, "a", value).await;
    }
    last.store(300, SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    eventually(async || found(&copying, "a").await == Some(300)).await;
    until_copied(&copying, "a").await;
    assert_eq!(found(&copying, "a").await, Some(300));
}

async fn caches_share_one_connection(kit: Kit) {
    let caches: Vec<Cache<u32>> = ["one", "two", "three", "two"]
        .iter()
        .map(|name| Cache::new(&kit, name, long().near(Near::new())).unwrap())
        .collect();
    for (index, cache) in (0..).zip(&caches) {
        put(cache, "a", index).await;
    }
    for (expected, cache) in [0, 3, 2, 3].into_iter().zip(&caches) {
        eventually(async || found(cache, "a").await == Some(expected)).await;
        until_copied(cache, "a").await;
        assert_eq!(found(cache, "a").await, Some(expected));
    }
    put(&caches[1], "a", 7).await;
    assert_eq!(found(&caches[1], "a").await, Some(7));
    eventually(async || found(&caches[3], "a").await == Some(7)).await;
    assert_eq!(found(&caches[2], "a").await, Some(2));
}

async fn copies_go_with_the_connection(kit: Kit, proxy: Arc<Proxy>) {
    let (copying, other) = both(&kit, long());
    put(&other, "a", 1).await;
    for round in 1..5 {
        until_copied(&copying, "a").await;
        let clears = copying.stats().near_clears;
        proxy.cut_all();
        eventually(async || copying.stats().near_clears > clears).await;
        put(&other, "a", round).await;
        eventually(async || found(&copying, "a").await == Some(round)).await;
        until_copied(&copying, "a").await;
        assert_eq!(found(&copying, "a").await, Some(round));
    }
}

/// Nothing came any more, and nobody had said so: after two seconds nothing is taken for true.
async fn silence_ends_copies(kit: Kit, proxy: Arc<Proxy>) {
    let (copying, other) = both(&kit, long());
    put(&other, "a", 1).await;
    until_copied(&copying, "a").await;
    proxy.silence_trackers(true);
    put(&other, "a", 2).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(found(&copying, "a").await, Some(2));
    eventually(async || copying.stats().near_clears > 0).await;
    let hits = copying.stats().near_hits;
    assert_eq!(found(&copying, "a").await, Some(2));
    assert_eq!(copying.stats().near_hits, hits);
    proxy.silence_trackers(false);
    until_copied(&copying, "a").await;
    assert_eq!(found(&copying, "a").await, Some(2));
}

/// On servers of their own: others' keys go too.
async fn a_flush_ends_all_copies(kind: Kind) {
    let server = match Server::start(kind, &[]) {
        Ok(server) => server,
        Err(why) => return skip_without(kind, &why),
    };
    let kit = Kit::connect(&format!("redis://{}", server.address())).await.unwrap();
    let (copying, other) = both(&kit, long());
    for flush in ["FLUSHALL", "FLUSHDB"] {
        put(&other, "a", 1).await;
        put(&other, "b", 2).await;
        until_copied(&copying, "a").await;
        until_copied(&copying, "b").await;
        let clears = copying.stats().near_clears;
        kit.call(&Request::new(flush)).await.unwrap();
        eventually(async || found(&copying, "a").await.is_none()).await;
        assert!(copying.stats().near_clears > clears);
        assert_eq!((found(&copying, "b").await, copying.stats().near_entries), (None, 0));
    }
}

#[tokio::test]
async fn a_flush_of_russet_ends_all_copies() {
    a_flush_ends_all_copies(Kind::Russet).await;
}

#[tokio::test]
async fn a_flush_of_redis_ends_all_copies() {
    a_flush_ends_all_copies(Kind::Redis).await;
}

#[tokio::test]
async fn a_flush_of_valkey_ends_all_copies() {
    a_flush_ends_all_copies(Kind::Valkey).await;
}

/// The store is in the process: nothing is copied, and all is as before.
#[tokio::test]
async fn an_embedded_engine_needs_no_copies() {
    let kit = kit(TestBackend::Embedded).await.unwrap();
    let (copying, other) = both(&kit, long());
    for value in 0..10 {
        put(&other, "a", value).await;
        assert_eq!(found(&copying, "a").await, Some(value));
    }
    let stats = copying.stats();
    assert_eq!((stats.hits, stats.near_hits, stats.near_entries), (10, 0, 0));
}

#[tokio::test]
async fn a_cluster_refuses_copies() {
    let kit = match kit(TestBackend::Cluster).await {
        Ok(kit) => kit,
        Err(why) => return skip_without(Kind::Redis, &why),
    };
    let refused = Cache::<u32>::new(&kit, "numbers", long().near(Near::new()));
    assert!(matches!(&refused, Err(Error::Invalid(text)) if text.contains("cluster")));
}
