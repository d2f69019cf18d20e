//! Workloads of daily activity, first sights, sign-ins, recent items, presence and deadlines.

use super::{HOUR, TASKS, at_once};
use russet::activity::{
    DailyActive, DailySettings, Dedupe, DedupeSettings, ExpiryIndex, ExpirySettings, Presence,
    PresenceSettings, Recent, RecentSettings, Repeats, Seen, SignInSettings, SignIns,
    VisitorSettings, Visitors,
};
use russet::{Day, Kit, Member, Request, RequestId};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The server's.
async fn today(kit: &Kit) -> Day {
    let time = Request::new("TIME");
    let now = super::until_done(|| kit.call(&time)).await;
    Day::of_unix_ms(now.as_list().unwrap()[0].as_int().unwrap() * 1000)
}

/// An index that is given out twice, or for nothing, makes the bitmap less dense.
pub(super) async fn members_have_one_index_each(kit: Kit) {
    let settings = DailySettings { members_max: 1000, retention: DAY, shards: 2 };
    let active = Arc::new(DailyActive::new(&kit, "acme", settings).unwrap());
    at_once(|task| {
        let active = active.clone();
        async move {
            for number in 0..5 {
                // Neighbours overlap by half.
                let first = (task * 5 + number) as u64 * 10;
                let _marked = active.mark(first..first + 20).await.unwrap();
            }
        }
    })
    .await;
    let stats = active.stats(today(&kit).await).await.unwrap();
    assert_eq!((stats.active, stats.indexes), (410, 410));
}

pub(super) async fn an_event_is_first_seen_once(kit: Kit) {
    let settings = DedupeSettings { window: HOUR, ids_max: 1000, shards: 4 };
    let events = Arc::new(Dedupe::new(&kit, "payments", settings).unwrap());
    let first = Arc::new(AtomicUsize::new(0));
    at_once(|_task| {
        let (events, first) = (events.clone(), first.clone());
        async move {
            for id in 0..15_u64 {
                let request = RequestId::random();
                if events.first_seen(id, Some(&request)).await.unwrap() == Seen::First {
                    first.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    })
    .await;
    assert_eq!(first.load(Ordering::SeqCst), 15);
}

pub(super) async fn a_day_is_signed_in_once(kit: Kit) {
    let settings = SignInSettings { utc_offset_minutes: 0, retention: 40 * DAY };
    let sign_ins = Arc::new(SignIns::new(&kit, settings).unwrap());
    at_once(|_task| {
        let sign_ins = sign_ins.clone();
        async move {
            for user in 0..5 {
                let _signed = sign_ins.sign_in(format!("user-{user}")).await.unwrap();
            }
        }
    })
    .await;
    for user in 0..5 {
        let streak = sign_ins.streak(format!("user-{user}")).await.unwrap();
        // Two at midnight.
        assert!((1..=2).contains(&streak.total) && streak.current == streak.total, "{streak:?}");
    }
}

pub(super) async fn each_item_is_pushed_once(kit: Kit) {
    let settings = RecentSettings { items_max: 100, ttl: HOUR, repeats: Repeats::Keep };
    let recent = Arc::new(Recent::new(&kit, settings).unwrap());
    at_once(|task| {
        let recent = recent.clone();
        async move {
            for number in 0..8 {
                let (item, request) = (format!("{task}-{number}"), RequestId::random());
                recent.push("ann", &item, Some(&request)).await.unwrap();
            }
        }
    })
    .await;
    let items = recent.list("ann", 100).await.unwrap();
    let distinct: BTreeSet<&Member> = items.iter().collect();
    assert_eq!((items.len(), distinct.len()), (TASKS * 8, TASKS * 8));
}

pub(super) async fn everyone_is_present_once(kit: Kit) {
    let settings = PresenceSettings { timeout: HOUR, members_max: 100, shards: 2 };
    let rooms = Arc::new(Presence::new(&kit, settings).unwrap());
    at_once(|task| {
        let rooms = rooms.clone();
        async move {
            for _ in 0..4 {
                let _beat = rooms.beat("lobby", task as u64).await.unwrap();
            }
        }
    })
    .await;
    let present = rooms.list("lobby", 100).await.unwrap();
    assert_eq!((present.len(), rooms.count("lobby").await), (TASKS, Ok(TASKS as u64)));
}

pub(super) async fn each_visitor_is_counted_once(kit: Kit) {
    let visitors = Arc::new(Visitors::new(&kit, VisitorSettings { retention: DAY }).unwrap());
    at_once(|_task| {
        let visitors = visitors.clone();
        async move {
            for visitor in 0..15_u64 {
                let _visit = visitors.visit("/home", visitor).await.unwrap();
            }
        }
    })
    .await;
    let count = visitors.count_over("/home", today(&kit).await.minus(1), 2).await.unwrap();
    assert!((14..=16).contains(&count), "{count} of 15");
}

/// Whoever looks and then removes loses nothing to a lost reply.
pub(super) async fn each_deadline_is_met(kit: Kit) {
    let settings = ExpirySettings { items_max: 1000, state_bytes_max: 64, grace: DAY, shards: 2 };
    let index = Arc::new(ExpiryIndex::new(&kit, "drafts", settings).unwrap());
    let met = Arc::new(Mutex::new(BTreeSet::new()));
    at_once(|task| {
        let (index, met) = (index.clone(), met.clone());
        async move {
            for number in 0..4 {
                let item = format!("{task}-{number}");
                let _put = index.put(&item, "s", Duration::from_millis(1)).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            loop {
                let due = index.due(5).await.unwrap();
                if due.is_empty() {
                    return;
                }
                for item in due {
                    let _removed = index.remove_due(&item).await.unwrap();
                    met.lock().unwrap().insert(item.id);
                }
            }
        }
    })
    .await;
    assert_eq!(met.lock().unwrap().len(), TASKS * 4);
}
