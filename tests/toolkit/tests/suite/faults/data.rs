//! Workloads of caches, records, drafts, sets, states and packed counters.

use super::{HOUR, TASKS, at_once, until_done};
use russet::cache::{Cache, LoadError, Policy};
use russet::counter::{Overflow, PackedCounters, PackedOutcome, Width};
use russet::object::{
    Created, DraftChange, DraftSettings, Drafts, Incremented, Index, IndexSettings, LineItem,
    Loaded, ObjectSettings, Objects, Record,
};
use russet::state::{
    Current, Decision, Escalation, Escalations, Indexed, Marker, Object, Optimistic, Put, Swap,
    Updated, Writes,
};
use russet::{Kit, RequestId};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writers change the source and then invalidate; whoever asks after that sees the change.
pub(super) async fn what_was_invalidated_does_not_come_back(kit: Kit) {
    let cache: Cache<usize> = Cache::new(&kit, "numbers", Policy::new(HOUR)).unwrap();
    let source = Arc::new(AtomicUsize::new(0));
    at_once(|task| {
        let (cache, source) = (cache.clone(), source.clone());
        async move {
            for _ in 0..6 {
                let least = if task % 4 == 0 {
                    let changed = source.fetch_add(1, Ordering::SeqCst) + 1;
                    let _ = cache.invalidate("n").await.unwrap();
                    cache.flush_invalidations().await;
                    changed
                } else {
                    0
                };
                let source = source.clone();
                let load =
                    || async move { Ok::<_, LoadError>(Some(source.load(Ordering::SeqCst))) };
                let found = cache.fetch("n", load).await.unwrap().unwrap();
                assert!(found >= least, "{found} was changed to {least} before");
            }
        }
    })
    .await;
    // Another process.
    let other: Cache<usize> = Cache::new(&kit, "numbers", Policy::new(HOUR)).unwrap();
    let last = source.load(Ordering::SeqCst);
    let load = move || async move { Ok::<_, LoadError>(Some(last)) };
    assert_eq!(other.fetch("n", load).await.unwrap(), Some(last));
}

#[derive(Record, Clone, Debug, PartialEq)]
#[record(purpose = "visits", schema = 1)]
struct Account {
    owner: String,
    #[record(default)]
    visits: u32,
}

pub(super) async fn increments_of_a_record_count_once(kit: Kit) {
    let settings = ObjectSettings { ttl: HOUR, bytes_max: 1024 };
    let accounts = Arc::new(Objects::<Account>::new(&kit, settings).unwrap());
    let created = Arc::new(AtomicUsize::new(0));
    at_once(|task| {
        let (accounts, created) = (accounts.clone(), created.clone());
        async move {
            let account = Account { owner: format!("user {task}"), visits: 0 };
            let made = accounts.create("a", &account, Some(&RequestId::random())).await.unwrap();
            created.fetch_add(usize::from(made == Created::Created), Ordering::SeqCst);
            for _ in 0..6 {
                let request = RequestId::random();
                let done = accounts.increment("a", Account::VISITS, 2, Some(&request)).await;
                assert!(matches!(done, Ok(Incremented::Done { .. })), "{done:?}");
            }
        }
    })
    .await;
    assert_eq!(created.load(Ordering::SeqCst), 1);
    let Loaded::Found(found) = accounts.load("a").await.unwrap() else { panic!("not found") };
    let times = TASKS as u64 * 6;
    assert_eq!((u64::from(found.value.visits), found.version), (2 * times, times + 1));
}

pub(super) async fn the_sums_of_a_draft_agree(kit: Kit) {
    let carts = Arc::new(Drafts::new(&kit, DraftSettings { ttl: HOUR, items_max: 50 }).unwrap());
    let _ = carts.create("c", "ann", "EUR", Some(&RequestId::random())).await.unwrap();
    at_once(|task| {
        let carts = carts.clone();
        async move {
            for round in 0..4_u32 {
                let sku = format!("sku-{}", (task + round as usize) % 5).into();
                let item = LineItem { sku, quantity: 1 + round, unit_minor: 100 };
                let request = RequestId::random();
                let done = carts.set_item("c", &item, None, Some(&request)).await;
                assert!(matches!(done, Ok(DraftChange::Done { .. })), "{done:?}");
            }
        }
    })
    .await;
    let Loaded::Found(cart) = carts.load("c").await.unwrap() else { panic!("not found") };
    let items = carts.items("c").await.unwrap();
    let sum: i64 = items.iter().map(|it| i64::from(it.quantity) * it.unit_minor).sum();
    assert_eq!((cart.value.subtotal_minor, cart.value.item_count), (sum, 5));
    assert_eq!(cart.version, TASKS as u64 * 4 + 1, "each change is one version");
}

/// That it has left the first set is not said: it may be added there once more by a request
/// that was late.
pub(super) async fn no_member_is_lost_on_its_way(kit: Kit) {
    let settings = IndexSettings { members_max: 100, ttl: HOUR };
    let orders = Arc::new(Index::new(&kit, "orders", settings).unwrap());
    at_once(|task| {
        let orders = orders.clone();
        async move {
            for number in 0..3 {
                let order = format!("{task}-{number}");
                let _ = orders.add("open", &order).await.unwrap();
                let _ = orders.move_to("open", "paid", &order).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(orders.len("paid").await, Ok(TASKS as u64 * 3));
}

/// A counter by compare-and-set: every swap that was made counts once.
pub(super) async fn swaps_lose_no_update(kit: Kit) {
    let marker = Marker::new(&kit, "swapped", HOUR).unwrap();
    let _ = marker.create("0", Some(&RequestId::random())).await.unwrap();
    at_once(|_task| {
        let marker = marker.clone();
        async move {
            for _ in 0..3 {
                loop {
                    let now = marker.read().await.unwrap().unwrap();
                    let next = String::from_utf8_lossy(&now).parse::<u32>().unwrap() + 1;
                    let request = RequestId::random();
                    let swapped = marker.swap(&now, next.to_string(), Some(&request)).await;
                    match swapped.unwrap() {
                        Swap::Swapped => break,
                        // Another has made the same step.
                        Swap::Already | Swap::Differs { .. } => {}
                        Swap::Missing => panic!("it is gone"),
                    }
                }
            }
        }
    })
    .await;
    let wanted = (TASKS * 3).to_string();
    assert_eq!(marker.read().await.unwrap(), Some(wanted.into_bytes()));
}

pub(super) async fn watched_updates_are_made_once(kit: Kit) {
    fn add_one(now: &Current) -> Decision<i64> {
        let next = now.int("n").unwrap_or(0) + 1;
        Decision::Write(Writes::new().set_int("n", next), next)
    }
    let counter = Optimistic::new(&kit, "watched", &["n"], HOUR).unwrap();
    let counter = counter.attempts_max(100).unwrap();
    at_once(|_task| {
        let counter = counter.clone();
        async move {
            for _ in 0..3 {
                let request = RequestId::random();
                let _ = until_done(|| counter.update(Some(&request), add_one)).await;
            }
        }
    })
    .await;
    let read = |now: &Current| Decision::Leave(now.int("n"));
    let read = until_done(|| counter.update(None, read)).await;
    assert_eq!(read, Updated::Left(Some(TASKS as i64 * 3)));
}

pub(super) async fn an_object_stands_once_in_its_index(kit: Kit) {
    let objects = Indexed::new(&kit, "indexed", HOUR, 100).unwrap();
    at_once(|task| {
        let objects = objects.clone();
        async move {
            for number in 0..4 {
                let value = format!("v{}", (task + number) % 3);
                let request = RequestId::random();
                let put = objects.put(Object::new("o", &value), Some(&request)).await;
                assert!(matches!(put, Ok(Put::Stored { .. })), "{put:?}");
            }
        }
    })
    .await;
    let mut found = 0;
    for number in 0..3 {
        found += objects.find(&format!("v{number}"), None, 10).await.unwrap().ids.len();
    }
    let (version, _fields) = objects.load("o").await.unwrap().unwrap();
    assert_eq!((found, version), (1, TASKS as u64 * 4));
}

pub(super) async fn every_level_is_reached_once(kit: Kit) {
    let cases = Escalations::new(&kit, 5, HOUR).unwrap();
    let _ = cases.open("c", Some(&RequestId::random())).await.unwrap();
    let risen = Arc::new(AtomicUsize::new(0));
    at_once(|_task| {
        let (cases, risen) = (cases.clone(), risen.clone());
        async move {
            for _ in 0..3 {
                let request = RequestId::random();
                match cases.escalate("c", None, Some(&request)).await.unwrap() {
                    Escalation::Escalated { .. } => risen.fetch_add(1, Ordering::SeqCst),
                    Escalation::AtTop => 0,
                    other => panic!("{other:?}"),
                };
            }
        }
    })
    .await;
    let case = cases.load("c").await.unwrap().unwrap();
    assert_eq!((risen.load(Ordering::SeqCst), case.level, case.version), (5, 5, 6));
}

pub(super) async fn packed_counters_count_once(kit: Kit) {
    let fields = [("a", Width::unsigned(16).unwrap()), ("b", Width::unsigned(16).unwrap())];
    let counters = PackedCounters::new(&kit, "packed", fields, Overflow::Refuse, HOUR).unwrap();
    let counters = Arc::new(counters);
    at_once(|_task| {
        let counters = counters.clone();
        async move {
            for _ in 0..6 {
                let request = RequestId::random();
                let added = counters.add("s", &[("a", 1), ("b", 2)], Some(&request)).await;
                assert!(matches!(added, Ok(PackedOutcome::Added(_))), "{added:?}");
            }
        }
    })
    .await;
    let times = TASKS as i64 * 6;
    assert_eq!(counters.read("s").await, Ok(vec![times, 2 * times]));
}
