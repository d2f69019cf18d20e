//! Recent items, presence and deadlines.

use russet::activity::{
    Beat, ExpiryIndex, ExpirySettings, Presence, PresenceSettings, Put, Recent, RecentSettings,
    RemovedDue, Renewed, Repeats,
};
use russet::{Error, Kit, ManualTime, Member, Options, RequestId};
use std::collections::BTreeSet;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_list_keeps_the_latest
    a_repeated_item_moves_or_stays
    a_request_is_pushed_once
    a_list_ends_without_new_items
    the_silent_are_gone
    a_full_room_says_so
    items_are_due_when_their_time_has_come
    each_due_item_goes_to_one
    an_index_has_a_bound
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn recent(items_max: u32, repeats: Repeats) -> RecentSettings {
    RecentSettings { items_max, ttl: 30 * DAY, repeats }
}

fn names(members: &[Member]) -> Vec<&str> {
    members.iter().map(|it| it.as_str().unwrap()).collect()
}

/// S2 §5: a maximum of 0 keeps everything.
async fn a_list_keeps_the_latest(kit: Kit) {
    let bad = recent(0, Repeats::Keep);
    assert!(matches!(Recent::new(&kit, bad), Err(Error::Invalid(_))));
    let recent = Recent::new(&kit, recent(5, Repeats::Keep)).unwrap();
    for item in 0..20_u64 {
        assert_eq!(recent.push("ann", item, None).await, Ok((item + 1).min(5)));
    }
    assert_eq!(names(&recent.list("ann", 3).await.unwrap()), ["19", "18", "17"]);
    assert_eq!(recent.list("ann", 100).await.unwrap().len(), 5);
    assert_eq!(recent.list("ann", 0).await, Ok(Vec::new()));
    assert_eq!(recent.list("ben", 5).await, Ok(Vec::new()));
    assert_eq!(recent.remove("ann", 18_u64).await, Ok(true));
    assert_eq!(recent.remove("ann", 18_u64).await, Ok(false));
    assert_eq!(recent.clear("ann").await, Ok(4));
}

async fn a_repeated_item_moves_or_stays(kit: Kit) {
    for (repeats, wanted) in [(Repeats::Keep, vec!["a", "b", "a"]), (Repeats::Move, vec!["a", "b"])]
    {
        let list = Recent::new(&kit, recent(5, repeats)).unwrap();
        let of = format!("ann-{repeats:?}");
        for item in ["a", "b", "a"] {
            list.push(&of, item, None).await.unwrap();
        }
        assert_eq!(names(&list.list(&of, 5).await.unwrap()), wanted);
    }
}

async fn a_request_is_pushed_once(kit: Kit) {
    let list = Recent::new(&kit, recent(5, Repeats::Keep)).unwrap();
    let request = RequestId::random();
    for _ in 0..3 {
        assert_eq!(list.push("ann", "a", Some(&request)).await, Ok(1));
    }
}

/// S2 §5: no EXPIRE.
async fn a_list_ends_without_new_items(kit: Kit) {
    let settings = RecentSettings { ttl: Duration::from_millis(100), ..recent(5, Repeats::Keep) };
    let list = Recent::new(&kit, settings).unwrap();
    list.push("ann", "a", None).await.unwrap();
    crate::eventually(async || list.list("ann", 5).await.unwrap().is_empty()).await;
}

/// S2 §15: connections without TTL: they go without a word.
async fn the_silent_are_gone(kit: Kit) {
    let timeout = Duration::from_millis(200);
    let settings = PresenceSettings { timeout, members_max: 100, shards: 2 };
    let rooms = Presence::new(&kit, settings).unwrap();
    let _beat = rooms.beat("lobby", "gone").await.unwrap();
    crate::eventually(async || rooms.count("lobby").await.unwrap() == 0).await;
    assert!(!rooms.is_present("lobby", "gone").await.unwrap());
    // To one who waits for a day it is gone when the key is, up to a millisecond later.
    let rooms = Presence::new(&kit, PresenceSettings { timeout: DAY, ..settings }).unwrap();
    crate::eventually(async || rooms.count("lobby").await.unwrap() == 0).await;
    assert_eq!(rooms.beat("lobby", "gone").await, Ok(Beat::Joined));
    assert_eq!(rooms.leave("lobby", "gone").await, Ok(true));
    assert_eq!(rooms.list("lobby", 10).await, Ok(Vec::new()));
}

/// S2 §15: a global, unbounded read.
async fn a_full_room_says_so(kit: Kit) {
    let settings = PresenceSettings { timeout: DAY, members_max: 4, shards: 1 };
    let rooms = Presence::new(&kit, settings).unwrap();
    for member in 0..4_u64 {
        assert_eq!(rooms.beat("lobby", member).await, Ok(Beat::Joined));
    }
    assert_eq!(rooms.beat("lobby", "late").await, Ok(Beat::Full));
    assert_eq!(rooms.beat("lobby", 2_u64).await, Ok(Beat::Refreshed));
    assert_eq!(rooms.leave("lobby", 0_u64).await, Ok(true));
    assert_eq!(rooms.leave("lobby", 0_u64).await, Ok(false));
    assert_eq!(rooms.beat("lobby", "late").await, Ok(Beat::Joined));
    assert_eq!(rooms.list("lobby", 2).await.unwrap().len(), 2);
    assert_eq!(rooms.count("lobby").await, Ok(4));
    assert!(matches!(rooms.list("lobby", 1001).await, Err(Error::Invalid(_))));
}

fn expiry(shards: u32) -> ExpirySettings {
    ExpirySettings { items_max: 1000, state_bytes_max: 64, grace: DAY, shards }
}

async fn items_are_due_when_their_time_has_come(kit: Kit) {
    let index = ExpiryIndex::new(&kit, "drafts", expiry(3)).unwrap();
    let _put = index.put("slow", "s", DAY).await.unwrap();
    let _put = index.put("fast", "f", Duration::from_millis(50)).await.unwrap();
    crate::eventually(async || !index.due(10).await.unwrap().is_empty()).await;
    let due = index.due(10).await.unwrap();
    assert_eq!((due.len(), due[0].id.as_str(), &due[0].state[..]), (1, Some("fast"), &b"f"[..]));
    assert_eq!(index.renew("fast", DAY).await, Ok(Renewed::Missing));
    assert_eq!(index.remove_due(&due[0]).await, Ok(RemovedDue::Removed));
    assert_eq!(index.remove_due(&due[0]).await, Ok(RemovedDue::Missing));
    assert_eq!(index.get("fast").await, Ok(None));
    assert_eq!(index.get("slow").await.unwrap().unwrap().state, b"s");
    assert_eq!(index.len().await, Ok(1));
    assert_eq!(index.remove("slow").await, Ok(true));
}

async fn each_due_item_goes_to_one(kit: Kit) {
    let index = std::sync::Arc::new(ExpiryIndex::new(&kit, "drafts", expiry(2)).unwrap());
    for item in 0..200_u64 {
        let _put = index.put(item, "s", Duration::from_millis(1)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let index = index.clone();
        tasks.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let items = index.take_due(7).await.unwrap();
                if items.is_empty() {
                    return taken;
                }
                taken.extend(items.into_iter().map(|it| it.id));
            }
        });
    }
    let mut all = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        all.extend(ended.unwrap());
    }
    assert_eq!(all.len(), 200);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 200);
    assert!(index.is_empty().await.unwrap());
}

async fn an_index_has_a_bound(kit: Kit) {
    let settings = ExpirySettings { items_max: 2, ..expiry(1) };
    let index = ExpiryIndex::new(&kit, "drafts", settings).unwrap();
    assert!(matches!(index.put("a", "1", DAY).await, Ok(Put::New { .. })));
    assert!(matches!(index.put("b", "1", DAY).await, Ok(Put::New { .. })));
    assert_eq!(index.put("c", "1", DAY).await, Ok(Put::Full));
    assert!(matches!(index.put("a", "2", DAY).await, Ok(Put::Replaced { .. })));
    let long = [0; 65];
    assert!(matches!(index.put("a", long, DAY).await, Err(Error::Invalid(_))));
    assert!(matches!(index.put("a", "1", Duration::ZERO).await, Err(Error::Invalid(_))));
    assert_eq!(index.get("a").await.unwrap().unwrap().state, b"2");
}

/// S2 §14: an item that was renewed between the scan and the removal is deleted.
#[tokio::test]
async fn what_was_renewed_after_the_scan_stays() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let index = ExpiryIndex::new(&kit, "drafts", expiry(1)).unwrap();
    let minute = Duration::from_secs(60);
    let _put = index.put("a", "old", minute).await.unwrap();
    time.advance(minute);
    let due = index.due(10).await.unwrap();
    assert_eq!(due.len(), 1);
    // Its user comes back.
    assert!(matches!(index.put("a", "new", minute).await, Ok(Put::Replaced { .. })));
    assert_eq!(index.remove_due(&due[0]).await, Ok(RemovedDue::Renewed));
    assert_eq!(index.get("a").await.unwrap().unwrap().state, b"new");
    assert!(index.due(10).await.unwrap().is_empty());
    // A renewal never shortens.
    let long = index.renew("a", DAY).await.unwrap();
    assert_eq!(index.renew("a", minute).await, Ok(long));
    // What nobody handles ends after the grace.
    time.advance(2 * DAY + minute);
    assert!(index.is_empty().await.unwrap());
}

/// S1 §10: a fast clock of a client purges what others have written. Here no client says the time.
#[tokio::test]
async fn presence_goes_by_the_servers_clock() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let timeout = Duration::from_secs(30);
    let settings = PresenceSettings { timeout, members_max: 100, shards: 1 };
    let rooms = Presence::new(&kit, settings).unwrap();
    let _beat = rooms.beat("lobby", "ann").await.unwrap();
    time.advance(Duration::from_secs(20));
    let _beat = rooms.beat("lobby", "ben").await.unwrap();
    time.advance(Duration::from_secs(10));
    let present = rooms.list("lobby", 10).await.unwrap();
    assert_eq!(present.len(), 1);
    assert_eq!(present[0].last_seen_ms, time.now_ms() - 10_000);
    time.advance(Duration::from_secs(20));
    assert_eq!(rooms.count("lobby").await, Ok(0));
}
