//! Daily activity, streaks, visitors, duplicates, recent items, presence and deadlines.

mod collections;

use russet::activity::{
    DailyActive, DailySettings, Dedupe, DedupeSettings, Marked, Seen, SignIn, SignInSettings,
    SignIns, Visit, VisitorSettings, Visitors,
};
use russet::{Day, Error, Kit, ManualTime, Member, Options, RequestId};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    members_get_dense_indexes
    days_are_combined
    an_index_beyond_the_bound_is_refused
    marks_of_many_tasks_are_all_there
    visitors_are_counted_once
    an_id_is_new_once
    a_first_sight_can_be_asked_for_again
    a_full_window_says_so
    a_sign_in_counts_once
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn daily(shards: u32) -> DailySettings {
    DailySettings { members_max: 10_000, retention: 90 * DAY, shards }
}

/// The server's day: these tests may run at midnight.
async fn today(kit: &Kit) -> Day {
    let reply = kit.call(&russet::Request::new("TIME")).await.unwrap();
    Day::of_unix_ms(reply.as_list().unwrap()[0].as_int().unwrap() * 1000)
}

/// S0 §13, §26.3: a raw id as the offset of a bit takes as many bytes as the id is large.
async fn members_get_dense_indexes(kit: Kit) {
    for shards in [1, 4] {
        let active = DailyActive::new(&kit, format!("acme-{shards}"), daily(shards)).unwrap();
        let ids: Vec<u64> = (0..100).map(|n| n * 1_000_000_007).collect();
        let marked = active.mark(ids.iter().copied()).await.unwrap();
        assert_eq!(marked, Marked { new: 100, again: 0, refused: 0 });
        let marked = active.mark([ids[3], 5]).await.unwrap();
        assert_eq!(marked, Marked { new: 1, again: 1, refused: 0 });
        let stats = active.stats(today(&kit).await).await.unwrap();
        assert_eq!((stats.active, stats.indexes), (101, 101));
        assert!(stats.index_max <= 100 && stats.bitmap_bytes <= 13 + u64::from(shards));
        assert!(active.was_active(ids[7], today(&kit).await).await.unwrap());
        assert!(!active.was_active("nobody", today(&kit).await).await.unwrap());
    }
}

async fn days_are_combined(kit: Kit) {
    let active = DailyActive::new(&kit, "acme", daily(2)).unwrap();
    let _marked = active.mark(["ann", "ben"]).await.unwrap();
    let today = today(&kit).await;
    // Yesterday nobody was there.
    assert_eq!(active.count_any(today.minus(1), 2).await, Ok(2));
    assert_eq!(active.count_every(today.minus(1), 2).await, Ok(0));
    assert_eq!(active.count_every(today, 1).await, Ok(2));
    assert!(matches!(active.count_any(today, 0).await, Err(Error::Invalid(_))));
    assert!(matches!(active.count_any(today, 101).await, Err(Error::Invalid(_))));
    // Nothing is left of it.
    let keys = kit.keys(russet::key::Family { purpose: "activity.daily", version: 1 }, "acme");
    let key = keys.unwrap().key("scratch");
    let left = kit.call(&russet::Request::new("EXISTS").key(&key)).await.unwrap();
    assert_eq!(left.as_int(), Some(0));
}

/// S0 §30 Lab 3: validate the highest offset.
async fn an_index_beyond_the_bound_is_refused(kit: Kit) {
    let settings = DailySettings { members_max: 3, ..daily(1) };
    let active = DailyActive::new(&kit, "acme", settings).unwrap();
    let marked = active.mark(["a", "b", "c", "d", "a"]).await.unwrap();
    assert_eq!(marked, Marked { new: 3, again: 1, refused: 1 });
    assert_eq!(active.count(today(&kit).await).await, Ok(3));
    let bad = DailySettings { members_max: 0, ..daily(1) };
    assert!(matches!(DailyActive::new(&kit, "acme", bad), Err(Error::Invalid(_))));
    let bad = DailySettings { retention: Duration::ZERO, ..daily(1) };
    assert!(matches!(DailyActive::new(&kit, "acme", bad), Err(Error::Invalid(_))));
}

async fn marks_of_many_tasks_are_all_there(kit: Kit) {
    let active = std::sync::Arc::new(DailyActive::new(&kit, "acme", daily(2)).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32_u64 {
        let active = active.clone();
        tasks.spawn(async move {
            // Neighbours overlap by half.
            active.mark((task * 10)..(task * 10 + 20)).await.unwrap().new
        });
    }
    let mut new = 0;
    while let Some(ended) = tasks.join_next().await {
        new += ended.unwrap();
    }
    assert_eq!(new, 330);
    let stats = active.stats(today(&kit).await).await.unwrap();
    assert_eq!((stats.active, stats.indexes), (330, 330));
}

async fn visitors_are_counted_once(kit: Kit) {
    let visitors = Visitors::new(&kit, VisitorSettings { retention: DAY }).unwrap();
    assert_eq!(visitors.visit("/home", "ann").await, Ok(Visit::New));
    assert_eq!(visitors.visit("/home", "ann").await, Ok(Visit::Seen));
    for visitor in 0..500_u64 {
        let _visit = visitors.visit("/home", visitor).await.unwrap();
    }
    let today = today(&kit).await;
    let count = visitors.count("/home", today).await.unwrap();
    assert!((480..=522).contains(&count), "{count}");
    assert_eq!(visitors.count_over("/home", today.minus(6), 7).await, Ok(count));
    assert_eq!(visitors.count("/other", today).await, Ok(0));
}

fn dedupe() -> DedupeSettings {
    DedupeSettings { window: Duration::from_secs(3600), ids_max: 1000, shards: 4 }
}

/// S2 §6: the check and the mark in two commands let two through.
async fn an_id_is_new_once(kit: Kit) {
    let events = std::sync::Arc::new(Dedupe::new(&kit, "payments", dedupe()).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let events = events.clone();
        tasks.spawn(async move {
            let mut first = 0;
            for id in 0..25_u64 {
                first += u32::from(events.first_seen(id, None).await.unwrap() == Seen::First);
            }
            first
        });
    }
    let mut first = 0;
    while let Some(ended) = tasks.join_next().await {
        first += ended.unwrap();
    }
    assert_eq!(first, 25);
    assert!(events.has_seen(7_u64).await.unwrap());
    assert!(!events.has_seen("other").await.unwrap());
}

async fn a_first_sight_can_be_asked_for_again(kit: Kit) {
    let events = Dedupe::new(&kit, "payments", dedupe()).unwrap();
    let request = RequestId::random();
    for _ in 0..3 {
        assert_eq!(events.first_seen("a", Some(&request)).await, Ok(Seen::First));
    }
    assert_eq!(events.first_seen("a", None).await, Ok(Seen::Duplicate));
    assert_eq!(events.first_seen("a", Some(&RequestId::random())).await, Ok(Seen::Duplicate));
}

async fn a_full_window_says_so(kit: Kit) {
    let settings = DedupeSettings { ids_max: 3, shards: 1, ..dedupe() };
    let events = Dedupe::new(&kit, "payments", settings).unwrap();
    for id in 0..3_u64 {
        assert_eq!(events.first_seen(id, None).await, Ok(Seen::First));
    }
    assert!(matches!(events.first_seen("d", None).await, Ok(Seen::Full { .. })));
    assert_eq!(events.first_seen(1_u64, None).await, Ok(Seen::Duplicate));
    assert_eq!(events.len().await, Ok(3));
}

async fn a_sign_in_counts_once(kit: Kit) {
    let settings = SignInSettings { utc_offset_minutes: 0, retention: 400 * DAY };
    let sign_ins = std::sync::Arc::new(SignIns::new(&kit, settings).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let sign_ins = sign_ins.clone();
        tasks.spawn(async move { sign_ins.sign_in("ann").await.unwrap() });
    }
    let mut first = 0;
    while let Some(ended) = tasks.join_next().await {
        first += u32::from(matches!(ended.unwrap(), SignIn::First(_)));
    }
    assert_eq!(first, 1);
    let streak = sign_ins.streak("ann").await.unwrap();
    assert_eq!((streak.current, streak.total, streak.is_signed_in_today), (1, 1, true));
    assert_eq!(sign_ins.streak("ben").await.unwrap().current, 0);
}

/// A kit whose server thinks that it is this moment of this day.
fn at(year: i32, month: u32, day: u32, hour: i64) -> (ManualTime, Kit) {
    let time = ManualTime::new();
    let day = Day::new(year, month, day).unwrap();
    time.set_ms(day.number() * 86_400_000 + hour * 3_600_000);
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    (time, kit)
}

/// S3 sign-in: the streak of the month's bitmap ends with the month, counts a day late, and is gone
/// in the morning before the user has signed in.
#[tokio::test]
async fn a_streak_goes_on_across_months_and_years() {
    let (time, kit) = at(2027, 12, 20, 12);
    let settings = SignInSettings { utc_offset_minutes: 0, retention: 400 * DAY };
    let sign_ins = SignIns::new(&kit, settings).unwrap();
    for day in 1..=30 {
        // Not signed in yet today: still that of yesterday.
        let before = sign_ins.streak("ann").await.unwrap();
        assert_eq!((before.current, before.is_signed_in_today), (day - 1, false));
        let SignIn::First(streak) = sign_ins.sign_in("ann").await.unwrap() else {
            panic!("signed in twice");
        };
        assert_eq!(streak.current, day);
        time.advance(DAY);
    }
    // A day missed.
    time.advance(DAY);
    assert_eq!(sign_ins.streak("ann").await.unwrap().current, 0);
    let streak = *sign_ins.sign_in("ann").await.unwrap().streak();
    assert_eq!((streak.current, streak.longest, streak.total), (1, 30, 31));
    let days = sign_ins.days("ann", 2027).await.unwrap();
    assert_eq!(days.len(), 12);
    assert_eq!(
        (days[0], days[11]),
        (Day::new(2027, 12, 20).unwrap(), Day::new(2027, 12, 31).unwrap())
    );
    assert_eq!(sign_ins.days("ann", 2028).await.unwrap().len(), 19);
}

/// S3 ids: local time taken for UTC. Here the zone is said.
#[tokio::test]
async fn the_users_day_is_meant() {
    let (time, kit) = at(2027, 3, 1, 20);
    let tokyo = SignInSettings { utc_offset_minutes: 9 * 60, retention: 40 * DAY };
    let sign_ins = SignIns::new(&kit, tokyo).unwrap();
    let _first = sign_ins.sign_in("ann").await.unwrap();
    // Already the 2nd there.
    assert_eq!(sign_ins.days("ann", 2027).await.unwrap(), [Day::new(2027, 3, 2).unwrap()]);
    time.advance(Duration::from_secs(5 * 3600));
    assert!(matches!(sign_ins.sign_in("ann").await, Ok(SignIn::Again(_))));
    // A clock that goes back signs nobody in twice.
    time.set_ms(time.now_ms() - 86_400_000);
    assert!(matches!(sign_ins.sign_in("ann").await, Ok(SignIn::Again(_))));
    // Forgotten after the retention.
    time.advance(43 * DAY);
    assert_eq!(sign_ins.streak("ann").await.unwrap().total, 0);
}

#[tokio::test]
async fn retention_over_days() {
    let (time, kit) = at(2027, 1, 30, 1);
    let active = DailyActive::new(&kit, "acme", daily(3)).unwrap();
    let first = Day::new(2027, 1, 30).unwrap();
    // Everyone on the first day; each day ten fewer.
    for day in 0..10_u64 {
        let marked = active.mark(0..(100 - day * 10)).await.unwrap();
        assert_eq!(marked.new, 100 - day * 10);
        time.advance(DAY);
    }
    let cohort = active.retention(first, &[1, 7, 9, 10]).await.unwrap();
    assert_eq!((cohort.size, cohort.retained), (100, vec![90, 30, 10, 0]));
    assert_eq!(active.count_every(first, 10).await, Ok(10));
    assert_eq!(active.count_any(first.plus(5), 5).await, Ok(50));
    assert_eq!(active.count(first.plus(3)).await, Ok(70));
}

/// S0 §16: SETBIT and then EXPIRE, so that a crash in between leaves a bitmap for ever. A
/// member keeps its index as long as a day is kept that has a bit of it; then all is gone.
#[tokio::test]
async fn days_end_with_their_retention() {
    let (time, kit) = at(2027, 1, 30, 1);
    let settings = DailySettings { retention: 2 * DAY, ..daily(1) };
    let active = DailyActive::new(&kit, "acme", settings).unwrap();
    let first = Day::new(2027, 1, 30).unwrap();
    let _marked = active.mark(["ann", "ben"]).await.unwrap();
    time.advance(2 * DAY);
    let _marked = active.mark(["cat"]).await.unwrap();
    assert_eq!(active.count(first).await, Ok(2));
    assert!(active.was_active("ann", first).await.unwrap());
    time.advance(DAY);
    assert_eq!(active.count(first).await, Ok(0));
    assert!(active.was_active("cat", first.plus(2)).await.unwrap());
    time.advance(10 * DAY);
    assert_eq!(active.stats(first.plus(2)).await.unwrap(), Default::default());
}

/// S2 §6: a duplicate just after the edge of the bucket passes; the TTL is shorter than the
/// bucket; each event prolongs the TTL.
#[tokio::test]
async fn duplicates_at_the_edge_of_a_bucket_do_not_pass() {
    let (time, kit) = at(2027, 1, 1, 10);
    let settings = DedupeSettings { window: Duration::from_secs(3600), ids_max: 100, shards: 1 };
    let events = Dedupe::new(&kit, "payments", settings).unwrap();
    time.advance(Duration::from_secs(3599));
    assert_eq!(events.first_seen("late", None).await, Ok(Seen::First));
    for _ in 0..59 {
        time.advance(Duration::from_secs(60));
        assert_eq!(events.first_seen("late", None).await, Ok(Seen::Duplicate));
    }
    time.advance(Duration::from_secs(61));
    // Two windows later it is new.
    assert_eq!(events.first_seen("late", None).await, Ok(Seen::First));
    // The bucket before last is gone, however often it was asked for.
    let keys = kit.keys(russet::key::Family { purpose: "activity.dedupe", version: 1 }, "payments");
    let number = time.now_ms() / 3_600_000 - 2;
    let key = keys.unwrap().item("bucket", number.to_string());
    let left = kit.call(&russet::Request::new("EXISTS").key(&key)).await.unwrap();
    assert_eq!(left.as_int(), Some(0));
}

/// S3 visitors: the sketches of all days stayed for ever.
#[tokio::test]
async fn visitors_of_a_day_end_with_their_retention() {
    let (time, kit) = at(2027, 1, 31, 23);
    let visitors = Visitors::new(&kit, VisitorSettings { retention: DAY }).unwrap();
    let first = Day::new(2027, 1, 31).unwrap();
    let _visit = visitors.visit("/", "ann").await.unwrap();
    time.advance(Duration::from_secs(2 * 3600));
    assert_eq!(visitors.visit("/", "ann").await, Ok(Visit::New));
    let _visit = visitors.visit("/", "ben").await.unwrap();
    assert_eq!(visitors.count_over("/", first, 2).await, Ok(2));
    time.advance(DAY);
    assert_eq!(visitors.count("/", first).await, Ok(0));
    assert_eq!(visitors.count("/", first.plus(1)).await, Ok(2));
}

/// Sharded collections lie in different slots: the seeds' own shards all carry one tag.
#[tokio::test]
async fn shards_are_in_different_slots() {
    let kit = Kit::embedded(Options::default()).unwrap();
    for purpose in ["activity.dedupe", "activity.daily", "activity.presence", "activity.expiry"] {
        let slots: std::collections::BTreeSet<u16> = (0..8)
            .map(|shard| {
                let scope = russet::key::Scope::from("x").shard(shard);
                let family = russet::key::Family { purpose, version: 1 };
                kit.keys(family, scope).unwrap().key("a").slot()
            })
            .collect();
        assert!(slots.len() > 6);
    }
    // What comes from users is in no log.
    assert_eq!(format!("{:?}", Member::from("ann@example.org")), "Member(15 bytes)");
}
