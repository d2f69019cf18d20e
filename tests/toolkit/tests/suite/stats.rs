//! What each workflow counts of itself: a program could see what its cache and its limits did, and
//! nothing of its sessions, tokens, states, flags, records, leases, counters, boards and feeds.

use russet::activity::{
    Dedupe, DedupeSettings, DedupeStats, ExpiryIndex, ExpirySettings, ExpiryStats, Presence,
    PresenceSettings, PresenceStats, Recent, RecentSettings, RecentStats, Repeats, SignInSettings,
    SignInStats, SignIns, VisitorSettings, VisitorStats, Visitors,
};
use russet::cache::filter::{Filter, FilterStats, Size};
use russet::counter::{
    CounterStats, IdStats, Ids, Overflow, PackedCounters, ShardedCounter, Width, WindowCounter,
    Windows,
};
use russet::flag::{Definition, FlagStats, FlagTerms, Flags, LocalFlags, Subject};
use russet::lease::{
    Fenced, FencedStats, Lease, LeaseStats, ManyLeaseStats, MultiLease, QuorumLease,
};
use russet::limit::policy::{Login, LoginThrottle, OtpAttempts};
use russet::limit::{WatchQuota, WatchQuotaStats};
use russet::object::{
    DraftSettings, DraftStats, Drafts, Expected, Index, IndexSettings, IndexStats, LineItem,
    ObjectSettings, ObjectStats, Objects, Record,
};
use russet::queue::{Bounds, List, ListStats, OnFull};
use russet::ranking::{Leaderboard, LeaderboardStats, Settings};
use russet::session::{
    Authorization, Created, NewSession, Policy, Rotated, SessionId, SessionStats, Sessions,
    Timeouts, User, WhenFull,
};
use russet::social::{
    Feed, FeedSettings, FeedStats, FollowSettings, FollowStats, Follows, LikeSettings, LikeStats,
    Likes, Nearby, NearbySettings, NearbyStats, Point,
};
use russet::state::{
    Change, Condition, Current, Decision, Escalations, Indexed, IndexedStats, Machine,
    MachineStats, Marker, MarkerStats, Object, Optimistic, OptimisticStats, Writes,
};
use russet::token::reset::{ResetStats, ResetTokens};
use russet::token::{self, Issued, NewToken, TokenStats, Tokens};
use russet::{Kit, Period, RequestId};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

russet_toolkit_tests::on_every_backend! {
    sessions_are_counted
    second_factors_are_counted
    tokens_are_counted
    transitions_are_counted
    swaps_and_updates_are_counted
    flags_are_counted
    records_are_counted
    drafts_and_indexes_are_counted
    leases_are_counted
    fenced_writes_are_counted
    quotas_are_counted
    lists_are_counted
    filters_are_counted
    counters_are_counted
    scores_are_counted
    likes_and_follows_are_counted
    feeds_and_places_are_counted
    activity_is_counted
    lists_of_activity_are_counted
}

russet::machine! {
    pub enum Lamp { Dark, Lit }
    Light: Dark => Lit;
}

#[derive(Record, Debug, PartialEq)]
#[record(purpose = "counted", schema = 1)]
struct Counted {
    visits: u64,
}

async fn log_in(sessions: &Sessions, user: &User) -> Option<SessionId> {
    match sessions.create(&NewSession::of(user)).await.unwrap() {
        Created::Created(id) => Some(id),
        Created::Full => None,
    }
}

async fn sessions_are_counted(kit: Kit) {
    let timeouts = Timeouts { idle: HOUR, absolute: HOUR };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 2)).unwrap();
    let user = User::new("acme", "ann");
    assert_eq!(sessions.stats(), SessionStats::default());
    let first = log_in(&sessions, &user).await.unwrap();
    let second = log_in(&sessions, &user).await.unwrap();
    // Clones count for each other.
    let third = log_in(&sessions.clone(), &user).await.unwrap();
    let mut left = None;
    for id in [first, second] {
        match sessions.authorize(&id).await.unwrap() {
            Authorization::Granted(_) => left = Some(id),
            other => assert_eq!(other, Authorization::Missing),
        }
    }
    let _ = sessions.find(&third).await.unwrap();
    let rotated = sessions.rotate(&third).await.unwrap();
    assert!(matches!(rotated, Rotated::Rotated(_)));
    sessions.revoke_all(&user, "test").await.unwrap();
    let _ = sessions.touch(&left.unwrap()).await.unwrap();
    let wanted = SessionStats {
        created: 3,
        evicted: 1,
        found: 2,
        missing: 1,
        refused: 1,
        rotated: 1,
        revoked: 2,
        ..SessionStats::default()
    };
    assert_eq!(sessions.stats(), wanted);

    let strict = Policy::new(timeouts, 1).when_full(WhenFull::Reject);
    let strict = Sessions::new(&kit, strict).unwrap();
    assert!(log_in(&strict, &user).await.is_some());
    assert!(log_in(&strict, &user).await.is_none());
    assert_eq!(strict.stats(), SessionStats { created: 1, rejected: 1, ..SessionStats::default() });
}

async fn second_factors_are_counted(kit: Kit) {
    let timeouts = Timeouts { idle: HOUR, absolute: HOUR };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 2)).unwrap();
    let user = User::new("acme", "ann");
    let id = log_in(&sessions, &user).await.unwrap();
    let _ = sessions.begin_mfa(&id, "123456").await.unwrap();
    let _ = sessions.authorize(&id).await.unwrap();
    let _ = sessions.verify_mfa(&id, "654321", None).await.unwrap();
    let _ = sessions.verify_mfa(&id, "123456", None).await.unwrap();
    let wanted = SessionStats {
        created: 1,
        refused: 1,
        mfa_failed: 1,
        mfa_verified: 1,
        ..SessionStats::default()
    };
    assert_eq!(sessions.stats(), wanted);
}

async fn tokens_are_counted(kit: Kit) {
    let tokens = Tokens::new(&kit, token::Policy { tokens_max: 1, safety: HOUR }).unwrap();
    let user = User::new("acme", "ann");
    let new = NewToken { kind: "api", scopes: "read", ttl: HOUR };
    let Issued::Issued(issued) = tokens.issue(&user, &new).await.unwrap() else { panic!("full") };
    let _ = tokens.issue(&user, &new).await.unwrap();
    let _ = tokens.check(&issued).await.unwrap();
    tokens.revoke(&issued, "lost").await.unwrap();
    let _ = tokens.check(&issued).await.unwrap();
    let foreign = tokens.external(&user, "jti-1").unwrap();
    let _ = tokens.check_handle(&foreign).await.unwrap();
    tokens.deny(&foreign, HOUR, "lost").await.unwrap();
    let wanted =
        TokenStats { issued: 1, rejected: 1, valid: 1, refused: 2, corrupt: 0, revoked: 2 };
    assert_eq!(tokens.stats(), wanted);

    let resets = ResetTokens::new(&kit, "password", HOUR).unwrap();
    let reset = resets.issue(&user).await.unwrap();
    let _ = resets.consume(&reset, None).await.unwrap();
    let _ = resets.consume(&reset, None).await.unwrap();
    assert_eq!(resets.stats(), ResetStats { issued: 1, consumed: 1, refused: 1 });
}

async fn transitions_are_counted(kit: Kit) {
    let lamps = Machine::<Lamp>::new(&kit, HOUR).unwrap();
    const NONE: [(&str, &str); 0] = [];
    for _ in 0..2 {
        let _ = lamps.open("l1", Lamp::Dark, NONE, None).await.unwrap();
    }
    let bright = Change::new(Light).require(Condition::present("bulb"));
    let _ = lamps.apply("l1", bright, None).await.unwrap();
    let _ = lamps.apply("l1", Change::new(Light).at_version(9), None).await.unwrap();
    let _ = lamps.apply("l1", Change::new(Light), None).await.unwrap();
    let _ = lamps.apply("l1", Change::new(Light), None).await.unwrap();
    let _ = lamps.apply("l2", Change::new(Light), None).await.unwrap();
    let once_each = MachineStats {
        opened: 1,
        exists: 1,
        moved: 1,
        wrong_state: 1,
        wrong_version: 1,
        condition_failed: 1,
        missing: 1,
    };
    assert_eq!(lamps.stats(), once_each);

    let cases = Escalations::new(&kit, 1, HOUR).unwrap();
    let _ = cases.open("case", None).await.unwrap();
    for _ in 0..2 {
        let _ = cases.escalate("case", None, None).await.unwrap();
    }
    let stats = cases.stats();
    assert_eq!((stats.opened, stats.moved, stats.condition_failed), (1, 1, 1));
}

async fn swaps_and_updates_are_counted(kit: Kit) {
    let marker = Marker::new(&kit, "import", HOUR).unwrap();
    let _ = marker.swap("A", "B", None).await.unwrap();
    for _ in 0..2 {
        let _ = marker.create("A", None).await.unwrap();
    }
    for (expected, next) in [("A", "B"), ("A", "B"), ("A", "C")] {
        let _ = marker.swap(expected, next, None).await.unwrap();
    }
    let once_each =
        MarkerStats { created: 1, exists: 1, swapped: 1, already: 1, differs: 1, missing: 1 };
    assert_eq!(marker.stats(), once_each);

    let seats = Optimistic::new(&kit, "hall", &["free"], HOUR).unwrap();
    let request = RequestId::random();
    for _ in 0..2 {
        let write = |_now: &Current| Decision::Write(Writes::new().set_int("free", 1), ());
        let _ = seats.update(Some(&request), write).await.unwrap();
    }
    let _ = seats.update(None, |_now| Decision::Leave(())).await.unwrap();
    let wanted = OptimisticStats { written: 1, left: 1, already: 1, ..OptimisticStats::default() };
    assert_eq!(seats.stats(), wanted);

    let exports = Indexed::new(&kit, "acme", HOUR, 1).unwrap();
    let _ = exports.put(Object::new("e1", "running"), None).await.unwrap();
    let _ = exports.put(Object::new("e1", "done").at_version(7), None).await.unwrap();
    let _ = exports.put(Object::new("e2", "running"), None).await.unwrap();
    assert!(exports.remove("e1").await.unwrap());
    assert!(!exports.remove("e1").await.unwrap());
    let wanted = IndexedStats { stored: 1, stale: 1, rejected: 1, removed: 1, swept: 0 };
    assert_eq!(exports.stats(), wanted);
}

async fn flags_are_counted(kit: Kit) {
    let flags = Flags::new(&kit, "acme", FlagTerms::new(HOUR)).unwrap();
    let ann = Subject::new("ann");
    let _ = flags.evaluate("dark", &ann).await.unwrap();
    for _ in 0..2 {
        let _ = flags.define("dark", &Definition::on(), "ops").await.unwrap();
    }
    let _ = flags.evaluate("dark", &ann).await.unwrap();
    let local = LocalFlags::new(&flags, HOUR, HOUR).unwrap();
    for _ in 0..2 {
        let _ = local.evaluate("dark", &ann).await.unwrap();
    }
    let wanted = FlagStats {
        evaluated: 2,
        evaluated_locally: 2,
        on: 3,
        unknown: 1,
        snapshots: 1,
        stale: 0,
        changed: 1,
    };
    assert_eq!(flags.stats(), wanted);
    assert_eq!(local.stats(), wanted);
}

async fn records_are_counted(kit: Kit) {
    let settings = ObjectSettings { ttl: HOUR, bytes_max: 1024 };
    let objects = Objects::<Counted>::new(&kit, settings).unwrap();
    let record = Counted { visits: 1 };
    let _ = objects.load("ann").await.unwrap();
    for _ in 0..2 {
        let _ = objects.create("ann", &record, None).await.unwrap();
    }
    let _ = objects.load("ann").await.unwrap();
    let _ = objects.update("ann", Expected::Version(9), &record, None).await.unwrap();
    let _ = objects.update("ann", Expected::Version(1), &record, None).await.unwrap();
    let _ = objects.increment("ann", Counted::VISITS, 1, None).await.unwrap();
    let _ = objects.put_newer("copy", &record, 5).await.unwrap();
    let _ = objects.put_newer("copy", &record, 4).await.unwrap();
    assert!(objects.remove("ann").await.unwrap());
    assert!(!objects.remove("ann").await.unwrap());
    let wanted = ObjectStats {
        found: 1,
        missing: 1,
        stored: 2,
        exists: 1,
        stale: 1,
        updated: 2,
        conflicts: 1,
        removed: 1,
        ..ObjectStats::default()
    };
    assert_eq!(objects.stats(), wanted);
}

async fn drafts_and_indexes_are_counted(kit: Kit) {
    let carts = Drafts::new(&kit, DraftSettings { ttl: HOUR, items_max: 1 }).unwrap();
    let item = |sku: &str| LineItem { sku: sku.into(), quantity: 1, unit_minor: 100 };
    let _ = carts.set_item("cart", &item("book"), None, None).await.unwrap();
    let _ = carts.create("cart", "ann", "EUR", None).await.unwrap();
    let _ = carts.set_item("cart", &item("book"), None, None).await.unwrap();
    let _ = carts.set_item("cart", &item("pen"), None, None).await.unwrap();
    let _ = carts.set_tax("cart", 1, Some(9), None).await.unwrap();
    assert!(carts.remove("cart").await.unwrap());
    let once_each =
        DraftStats { created: 1, changed: 1, conflicts: 1, missing: 1, rejected: 1, removed: 1 };
    assert_eq!(carts.stats(), once_each);

    let settings = IndexSettings { members_max: 1, ttl: HOUR };
    let index = Index::new(&kit, "acme", settings).unwrap();
    let _ = index.add("open", "o1").await.unwrap();
    let _ = index.add("open", "o2").await.unwrap();
    let _ = index.move_to("open", "closed", "o1").await.unwrap();
    assert!(index.remove("closed", "o1").await.unwrap());
    assert_eq!(index.stats(), IndexStats { added: 1, moved: 1, removed: 1, rejected: 1 });
}

async fn leases_are_counted(kit: Kit) {
    let lease = Lease::new(&kit, "report", HOUR).unwrap();
    let guard = lease.try_acquire().await.unwrap().held().unwrap();
    assert!(!lease.try_acquire().await.unwrap().is_held());
    let _ = guard.renew().await.unwrap();
    let _ = guard.release().await.unwrap();
    let wanted = LeaseStats { acquired: 1, busy: 1, rejected: 0, renewed: 1, released: 1, lost: 0 };
    assert_eq!(lease.clone().stats(), wanted);
}

async fn fenced_writes_are_counted(kit: Kit) {
    let value = Fenced::new(&kit, "config", HOUR).unwrap();
    let lease = Lease::new(&kit, "leader", HOUR).unwrap();
    let guard = lease.try_acquire().await.unwrap().held().unwrap();
    let late = guard.stamp();
    let _ = value.write(&guard, "new").await.unwrap();
    let _ = value.clone().write_at(late, Some(b"old")).await.unwrap();
    assert_eq!(value.stats(), FencedStats { written: 1, stale: 1 });
}

/// Leases of several servers said nothing of themselves.
#[tokio::test]
async fn leases_of_several_servers_are_counted() {
    let servers = [(); 3].map(|()| Kit::embedded(Default::default()).unwrap());
    let all = MultiLease::new(&servers, "all", HOUR).unwrap();
    let most = QuorumLease::new(&servers, "most", HOUR).unwrap();
    let held = all.try_acquire().await.unwrap();
    assert!(held.is_held() && !all.clone().try_acquire().await.unwrap().is_held());
    let held = most.try_acquire().await.unwrap();
    assert!(held.is_held() && !most.clone().try_acquire().await.unwrap().is_held());
    let wanted = ManyLeaseStats { acquired: 1, busy: 1, failed: 0 };
    assert_eq!((all.stats(), most.stats()), (wanted, wanted));
}

async fn quotas_are_counted(kit: Kit) {
    let quota = WatchQuota::new(&kit, "exports", 2, HOUR).unwrap();
    let request = RequestId::random();
    for (cost, request) in [(2, Some(&request)), (2, Some(&request)), (1, None)] {
        let _ = quota.spend("ann", cost, request).await.unwrap();
    }
    let WatchQuotaStats { within, already, exceeded, .. } = quota.clone().stats();
    assert_eq!((within, already, exceeded), (1, 1, 1));
}

/// The ready policies did not say what they had decided.
#[tokio::test]
async fn attempts_are_counted() {
    let kit = Kit::builder().secret("s").embedded(Default::default()).unwrap();
    let otp = OtpAttempts::new(&kit).unwrap();
    for _ in 0..6 {
        let _ = otp.attempt("acme", "+12025550143", None).await.unwrap();
    }
    assert_eq!((otp.stats().allowed, otp.stats().denied), (5, 1));
    let throttle = LoginThrottle::new(&kit).unwrap();
    let login = Login { tenant: "acme", account: "ann", address: "192.0.2.7" };
    for _ in 0..6 {
        let _ = throttle.attempt(&login, None).await.unwrap();
    }
    let stats = throttle.stats();
    assert_eq!((stats.accounts.allowed, stats.accounts.denied), (5, 1));
    assert_eq!((stats.addresses.allowed, stats.addresses.denied), (6, 0));
}

async fn lists_are_counted(kit: Kit) {
    let bounds = Bounds { capacity: 1, ttl: HOUR };
    let list = List::builder(&kit, "strict", bounds).build().unwrap();
    for _ in 0..2 {
        let _ = list.push("item", None).await.unwrap();
    }
    for _ in 0..2 {
        let _ = list.clone().pop(None).await.unwrap();
    }
    let _ = list.pop_wait(Duration::from_millis(10)).await.unwrap();
    let wanted = ListStats { pushed: 1, rejected: 1, dropped: 0, popped: 1, empty: 2 };
    assert_eq!(list.stats(), wanted);
    let list = List::builder(&kit, "ring", bounds).on_full(OnFull::DropOldest).build().unwrap();
    for _ in 0..2 {
        let _ = list.push("item", None).await.unwrap();
    }
    assert!(list.pop_wait(HOUR).await.unwrap().is_some());
    assert_eq!(list.stats(), ListStats { pushed: 2, dropped: 1, popped: 1, ..Default::default() });
}

async fn filters_are_counted(kit: Kit) {
    let size = Size { items_max: 1000, error_rate: 0.0001 };
    let users = Filter::new(&kit, "users", size, HOUR).unwrap();
    users.add_all(["ann", "ben"]).await.unwrap();
    let _ = users.complete().await.unwrap();
    for user in ["ann", "eve"] {
        let _ = users.clone().presence(user).await.unwrap();
    }
    assert_eq!(users.stats(), FilterStats { added: 2, absent: 1, possible: 1, lost: 0 });
}

async fn counters_are_counted(kit: Kit) {
    let days = Windows::of(24 * HOUR).unwrap();
    let orders = WindowCounter::new(&kit, "orders", days).unwrap();
    let _ = orders.add("ann", 3, None).await.unwrap();
    let _ = orders.read("ann", 0).await.unwrap();
    let once_each = CounterStats { added: 1, read: 1, ..CounterStats::default() };
    assert_eq!(orders.stats(), once_each);

    let views = ShardedCounter::new(&kit, "views", days, 2).unwrap();
    views.add("page", 1, None).await.unwrap();
    for _ in 0..2 {
        let _ = views.fast("page", 0, HOUR).await.unwrap();
    }
    let wanted = CounterStats { added: 1, read: 2, read_fast: 1, overflowed: 0 };
    assert_eq!(views.stats(), wanted);

    let fields = [("warnings", Width::unsigned(2).unwrap())];
    let packed = PackedCounters::new(&kit, "profile", fields, Overflow::Refuse, HOUR).unwrap();
    for by in [1, 9] {
        let _ = packed.add("ann", &[("warnings", by)], None).await.unwrap();
    }
    let _ = packed.read("ann").await.unwrap();
    let wanted = CounterStats { added: 1, read: 1, read_fast: 0, overflowed: 1 };
    assert_eq!(packed.stats(), wanted);

    let ids = Ids::new(&kit, "orders", 100).unwrap();
    for _ in 0..3 {
        let _ = ids.next().await.unwrap();
    }
    // A machine that is very busy may need a second block.
    let IdStats { given_out, blocks } = ids.stats();
    assert_eq!((given_out, blocks > 0), (3, true));
}

async fn scores_are_counted(kit: Kit) {
    let settings = Settings { period: Period::Month, members_max: 1, ttl: HOUR, shards: 1 };
    let board = Leaderboard::new(&kit, "game", settings).unwrap();
    let _ = board.set("ann", 9).await.unwrap();
    let _ = board.set("ben", 1).await.unwrap();
    let _ = board.remove("ann").await.unwrap();
    let wanted = LeaderboardStats { kept: 1, below: 1, closed: 0, removed: 1 };
    assert_eq!(board.stats(), wanted);
}

async fn likes_and_follows_are_counted(kit: Kit) {
    let likes = Likes::new(&kit, LikeSettings { likers_max: 1, ttl: HOUR, shards: 1 }).unwrap();
    for user in ["ann", "ann", "ben"] {
        let _ = likes.like("post", user).await.unwrap();
    }
    let _ = likes.unlike("post", "ann").await.unwrap();
    let once_each = LikeStats { liked: 1, unliked: 1, unchanged: 1, rejected: 1 };
    assert_eq!(likes.stats(), once_each);

    let settings = FollowSettings { following_max: 1, followers_max: 10, ttl: HOUR };
    let follows = Follows::new(&kit, settings).unwrap();
    for other in ["ben", "ben", "eve"] {
        let _ = follows.follow("ann", other).await.unwrap();
    }
    let _ = follows.unfollow("ann", "ben").await.unwrap();
    let wanted = FollowStats { followed: 1, unfollowed: 1, unchanged: 1, rejected: 1, repaired: 0 };
    assert_eq!(follows.stats(), wanted);
}

async fn feeds_and_places_are_counted(kit: Kit) {
    let settings = FollowSettings { following_max: 10, followers_max: 10, ttl: HOUR };
    let follows = Follows::new(&kit, settings).unwrap();
    for user in ["ann", "eve"] {
        let _ = follows.follow(user, "ben").await.unwrap();
    }
    let feed = Feed::new(&kit, &follows, FeedSettings { inbox_max: 10, ttl: HOUR }).unwrap();
    let _ = feed.publish("ben", "post").await.unwrap();
    let _ = feed.scroll("ann", None, 10).await.unwrap();
    assert_eq!(feed.stats(), FeedStats { published: 1, delivered: 2, busy: 0, pages: 1 });

    let shops = Nearby::new(&kit, NearbySettings { places_max: 1, ttl: HOUR }).unwrap();
    let berlin = Point::new(13.4, 52.5).unwrap();
    for shop in ["one", "one", "two"] {
        let _ = shops.put("coffee", shop, berlin).await.unwrap();
    }
    let _ = shops.search("coffee", berlin, 1000.0, None, 10).await.unwrap();
    assert!(shops.remove("coffee", "one").await.unwrap());
    let once_each = NearbyStats { placed: 1, moved: 1, removed: 1, rejected: 1, searched: 1 };
    assert_eq!(shops.stats(), once_each);
}

async fn activity_is_counted(kit: Kit) {
    // A window that does not end while this runs.
    let settings = DedupeSettings { window: 24 * 365 * HOUR, ids_max: 1, shards: 1 };
    let events = Dedupe::new(&kit, "payments", settings).unwrap();
    for id in ["e1", "e1", "e2"] {
        let _ = events.first_seen(id, None).await.unwrap();
    }
    assert_eq!(events.stats(), DedupeStats { first: 1, duplicates: 1, rejected: 1 });

    let settings = PresenceSettings { timeout: HOUR, members_max: 1, shards: 1 };
    let rooms = Presence::new(&kit, settings).unwrap();
    for member in ["ann", "ann", "ben"] {
        let _ = rooms.beat("lobby", member).await.unwrap();
    }
    assert!(rooms.leave("lobby", "ann").await.unwrap());
    let once_each = PresenceStats { joined: 1, refreshed: 1, left: 1, rejected: 1 };
    assert_eq!(rooms.stats(), once_each);

    let settings = SignInSettings { utc_offset_minutes: 0, retention: 1000 * HOUR };
    let sign_ins = SignIns::new(&kit, settings).unwrap();
    let visitors = Visitors::new(&kit, VisitorSettings { retention: 1000 * HOUR }).unwrap();
    for _ in 0..2 {
        let _ = sign_ins.sign_in("ann").await.unwrap();
        let _ = visitors.visit("/home", "ann").await.unwrap();
    }
    // Midnight may be in between.
    let SignInStats { first, again } = sign_ins.stats();
    assert_eq!((first + again, first > 0), (2, true));
    let VisitorStats { new, seen } = visitors.stats();
    assert_eq!((new + seen, new > 0), (2, true));
}

async fn lists_of_activity_are_counted(kit: Kit) {
    let settings = RecentSettings { items_max: 10, ttl: HOUR, repeats: Repeats::Keep };
    let searches = Recent::new(&kit, settings).unwrap();
    for item in ["a", "b"] {
        searches.push("ann", item, None).await.unwrap();
    }
    assert!(searches.remove("ann", "a").await.unwrap());
    searches.clear("ann").await.unwrap();
    assert_eq!(searches.stats(), RecentStats { pushed: 2, removed: 2 });

    let settings =
        ExpirySettings { items_max: 1, state_bytes_max: 100, grace: 24 * HOUR, shards: 1 };
    let drafts = ExpiryIndex::new(&kit, "quotes", settings).unwrap();
    for id in ["q1", "q1", "q2"] {
        let _ = drafts.put(id, "state", HOUR).await.unwrap();
    }
    let _ = drafts.renew("q1", 2 * HOUR).await.unwrap();
    assert!(drafts.take_due(10).await.unwrap().is_empty());
    assert!(drafts.remove("q1").await.unwrap());
    let wanted = ExpiryStats { put: 2, renewed: 1, rejected: 1, removed: 1, taken: 0 };
    assert_eq!(drafts.stats(), wanted);
}
