//! A store that evicts loses one key of several: what is left is repaired or refused. Nothing is
//! stuck, nothing is sold twice, and no key stays for ever (the recorder looks at every TTL).

use crate::raw_step;
use russet::cache::filter::{Completed, Filter, Presence, Size};
use russet::key::{Family, Key, Keys, Scope};
use russet::lease::{FairLease, FairTerms};
use russet::object::{DraftSettings, Drafts, LineItem};
use russet::queue::{Acked, Bounds, Due, Jobs, NewJob, Reliable, Requeued};
use russet::sale::{Bought, OrderId, Paid, Sale, Terms, Window};
use russet::session::{Created, NewSession, Policy, Revoked, Sessions, Timeouts, User};
use russet::state::{Indexed, Object};
use russet::{Error, Kit, Reply, Request};
use std::collections::BTreeSet;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    jobs_are_not_stuck_whatever_key_is_lost
    jobs_whose_content_is_lost_are_counted
    an_acknowledgement_without_meta_leaves_no_key_for_ever
    jobs_of_a_list_are_not_stuck_whatever_key_is_lost
    dead_letters_are_listed_again
    a_sale_sells_no_more_than_its_stock_whatever_key_is_lost
    a_filter_lost_while_it_is_filled_is_not_complete
    a_session_that_its_list_has_lost_is_revoked_with_all
    an_index_finds_what_is_there_whatever_key_is_lost
    a_draft_without_its_items_is_corrupt
    a_fair_lease_is_not_stuck_behind_the_unknown
    a_leaderboard_has_each_member_once
    a_number_that_was_lost_does_not_become_nothing
    states_without_deadlines_are_forgotten
}

const HOUR: Duration = Duration::from_secs(3600);
const BOUNDS: Bounds = Bounds { capacity: 100, ttl: HOUR };
/// How long a claim holds where it has to run out.
const SHORT: Duration = Duration::from_millis(60);

async fn lose(kit: &Kit, key: &Key) {
    kit.call(&Request::new("UNLINK").key(key)).await.unwrap();
}

fn keys(kit: &Kit, purpose: &'static str, scope: impl Into<Scope>) -> Keys {
    kit.keys(Family { purpose, version: 1 }, scope).unwrap()
}

/// Without `meta` a claim found nothing for ever, and the jobs of a set that was lost were
/// neither run nor accepted again.
async fn jobs_are_not_stuck_whatever_key_is_lost(kit: Kit) {
    for part in ["meta", "ready", "delayed", "taken", "parked"] {
        let builder = Jobs::builder(&kit, part, BOUNDS).group_limit(1).visibility(SHORT);
        let jobs = builder.attempts_max(1000).build().unwrap();
        // One runs, one waits for its group, one is ready, one is not due.
        for (id, group, due) in [
            ("a", "g", Due::Now),
            ("b", "g", Due::Now),
            ("c", "", Due::Now),
            ("d", "", Due::In(SHORT)),
        ] {
            let job = NewJob::new(id).id(id).group(group).due(due);
            let _ = jobs.schedule(&job, None).await.unwrap();
        }
        assert_eq!(jobs.claim_due(1, None).await.unwrap().jobs().len(), 1, "{part}");
        let second = jobs.claim_due(1, None).await.unwrap().jobs();
        assert_eq!(second.len(), 1, "{part}");
        lose(&kit, &keys(&kit, "jobs", part).key(part)).await;
        let mut done = BTreeSet::new();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while done.len() < 4 {
            assert!(std::time::Instant::now() < deadline, "without {part} only {done:?} ran");
            for job in jobs.claim_due(10, None).await.unwrap().jobs() {
                if jobs.ack(&job.receipt, None).await.unwrap() == Acked::Acked {
                    done.insert(job.payload);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The group has room again, and the ids are free.
        let again = NewJob::new("a").id("a").group("g");
        let _ = jobs.schedule(&again, None).await.unwrap();
        assert_eq!(jobs.claim_due(10, None).await.unwrap().jobs().len(), 1, "{part}");
    }
}

/// Ids without content are nobody's; those behind them in their group are not held up.
async fn jobs_whose_content_is_lost_are_counted(kit: Kit) {
    let jobs = Jobs::builder(&kit, "q", BOUNDS).group_limit(1).build().unwrap();
    for id in ["a", "b", "c"] {
        let _ = jobs.schedule(&NewJob::new(id).id(id).group("g"), None).await.unwrap();
    }
    let first = jobs.claim_due(10, None).await.unwrap().jobs().remove(0);
    lose(&kit, &keys(&kit, "jobs", "q").key("jobs")).await;
    let _ = jobs.schedule(&NewJob::new("d").id("d").group("g"), None).await.unwrap();
    assert_eq!(jobs.claim_due(10, None).await.unwrap().jobs().len(), 0);
    assert_eq!(jobs.ack(&first.receipt, None).await, Ok(Acked::Acked));
    let next = jobs.claim_due(10, None).await.unwrap().jobs().remove(0);
    assert_eq!(next.payload, b"d");
    assert_eq!(jobs.stats().await.unwrap().parked, 0);
}

/// A counter was raised in a hash that was not there any more, and stayed for ever.
async fn an_acknowledgement_without_meta_leaves_no_key_for_ever(kit: Kit) {
    for group in ["", "g"] {
        let name = format!("q{group}");
        let jobs = Jobs::builder(&kit, &name, BOUNDS).group_limit(1).build().unwrap();
        for id in ["a", "b"] {
            let _ = jobs.schedule(&NewJob::new(id).id(id).group(group), None).await.unwrap();
        }
        let job = jobs.claim_due(1, None).await.unwrap().jobs().remove(0);
        let _ = jobs.claim_due(1, None).await.unwrap();
        lose(&kit, &keys(&kit, "jobs", &name).key("meta")).await;
        assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
        for part in ["meta", "ready"] {
            let key = keys(&kit, "jobs", &name).key(part);
            let ttl_ms = kit.call(&Request::new("PTTL").key(&key)).await.unwrap().as_int();
            assert_ne!(ttl_ms, Some(-1), "{part} stays for ever");
        }
    }
}

async fn jobs_of_a_list_are_not_stuck_whatever_key_is_lost(kit: Kit) {
    for part in ["meta", "ready", "taken"] {
        let builder = Reliable::builder(&kit, part, BOUNDS).visibility(SHORT);
        let list = builder.attempts_max(1000).build().unwrap();
        for payload in ["a", "b", "c"] {
            let _ = list.push(payload, None).await.unwrap();
        }
        assert_eq!(list.take(1, None).await.unwrap().jobs().len(), 1);
        lose(&kit, &keys(&kit, "reliable", part).key(part)).await;
        let mut done = BTreeSet::new();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while done.len() < 3 {
            assert!(std::time::Instant::now() < deadline, "without {part} only {done:?} ran");
            for job in list.take(10, None).await.unwrap().jobs() {
                if list.ack(&job.receipt, None).await.unwrap() == Acked::Acked {
                    done.insert(job.payload);
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn dead_letters_are_listed_again(kit: Kit) {
    let jobs = Jobs::builder(&kit, "q", BOUNDS).build().unwrap();
    for id in ["a", "b"] {
        let _ = jobs.schedule(&NewJob::new(id).id(id), None).await.unwrap();
        let job = jobs.claim_due(1, None).await.unwrap().jobs().remove(0);
        let _ = jobs.dead_letter(&job.receipt, "no", None).await.unwrap();
        if id == "a" {
            lose(&kit, &keys(&kit, "jobs", "q").key("dead")).await;
        }
    }
    let letters = jobs.dead_letters(0, 10).await.unwrap();
    assert_eq!(letters.len(), 2);
    for letter in letters {
        assert_eq!(jobs.requeue(&letter.id, None).await, Ok(Requeued::Requeued));
    }
}

async fn buy(sale: &Sale, user: &str) -> Option<OrderId> {
    match sale.buy(user, None).await.unwrap() {
        Bought::Ordered { order, .. } => Some(order),
        _ => None,
    }
}

/// Without its hash a payment failed half way, and a sale that was opened again sold everything
/// twice; items of reservations that were lost never came back, or came back without being there.
async fn a_sale_sells_no_more_than_its_stock_whatever_key_is_lost(kit: Kit) {
    for part in ["sale", "orders", "holds", "outbox"] {
        // All that has to come before the first reservation is over comes before it.
        crate::given_time(Duration::from_secs(2), async |hold| {
            sells_no_more_without(&kit, part, hold).await
        })
        .await;
    }
}

/// Whether there was time enough.
async fn sells_no_more_without(kit: &Kit, part: &'static str, hold: Duration) -> bool {
    let begun = std::time::Instant::now();
    let name = format!("{part}-{}", hold.as_secs());
    let sale = Sale::new(kit, &name).unwrap();
    let window = Window::ForNext(HOUR);
    let terms = Terms { stock: 3, window, hold: Some(hold), keep: HOUR, outbox_max: 1000 };
    let _ = sale.open(&terms).await.unwrap();
    let (first, _second) = (buy(&sale, "u1").await.unwrap(), buy(&sale, "u2").await.unwrap());
    lose(kit, &keys(kit, "sale", &name).key(part)).await;
    if part == "sale" {
        let lost = sale.pay("u1", &first).await;
        assert!(matches!(lost, Err(Error::Corrupt(_))), "{lost:?}");
        assert_eq!(sale.buy("u3", None).await, Ok(Bought::Missing));
        assert_eq!(sale.reclaim().await, Ok(0));
    }
    let _ = sale.open(&terms).await.unwrap();
    // One is left, and when the reservations are over all are.
    let (third, fourth) = (buy(&sale, "u3").await, buy(&sale, "u4").await);
    if begun.elapsed() >= hold {
        return false;
    }
    assert!(third.is_some() && fourth.is_none(), "{part}");
    let mut sold = 0;
    let deadline = std::time::Instant::now() + hold + Duration::from_secs(30);
    while sold < 3 {
        assert!(std::time::Instant::now() < deadline, "without {part} only {sold} came back");
        let user = format!("later-{sold}");
        if let Some(order) = buy(&sale, &user).await {
            sold += u32::from(sale.pay(&user, &order).await == Ok(Paid::Paid));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(buy(&sale, "u5").await.is_none(), "{part}");
    let stats = sale.stats().await.unwrap().unwrap();
    assert_eq!((stats.stock, stats.held, stats.paid), (0, 0, 3), "{part}");
    true
}

/// Completed all the same, it said of everything from before that it does not exist.
async fn a_filter_lost_while_it_is_filled_is_not_complete(kit: Kit) {
    for adds_more in [false, true] {
        let name = format!("users-{adds_more}");
        let size = Size { items_max: 100, error_rate: 0.01 };
        let filter = Filter::new(&kit, &name, size, HOUR).unwrap();
        filter.add("ann").await.unwrap();
        let parts = keys(&kit, "filter", Scope::from(&name).shard(0));
        for part in ["bits", "bloom"] {
            lose(&kit, &parts.key(part)).await;
        }
        if adds_more {
            filter.add("bob").await.unwrap();
        }
        assert_eq!(filter.complete().await, Ok(Completed::Lost));
        assert_eq!(filter.presence("ann").await, Ok(Presence::Possible));
        filter.add_all(["ann", "bob"]).await.unwrap();
        assert_eq!(filter.complete().await, Ok(Completed::Complete));
        assert_eq!(filter.presence("ann").await, Ok(Presence::Possible));
        assert_eq!(filter.presence("carl").await, Ok(Presence::Absent));
    }
}

/// A user who ends all sessions ends those too that the list has forgotten, once they were used.
async fn a_session_that_its_list_has_lost_is_revoked_with_all(kit: Kit) {
    let timeouts = Timeouts { idle: HOUR, absolute: 2 * HOUR };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 5)).unwrap();
    let user = User::new("acme", "ann");
    let Ok(Created::Created(id)) = sessions.create(&NewSession::of(&user)).await else {
        panic!("not created");
    };
    // The tag of the user is the first part of the id.
    let tag = id.as_str().split('.').next().unwrap();
    lose(&kit, &keys(&kit, "session", Scope::from(tag.as_bytes())).key("index")).await;
    assert!(sessions.list(&user).await.unwrap().is_empty());
    let _ = sessions.touch(&id).await.unwrap();
    assert_eq!(sessions.revoke_all(&user, "stolen").await, Ok(Revoked { count: 1 }));
}

async fn an_index_finds_what_is_there_whatever_key_is_lost(kit: Kit) {
    for part in ["index", "values", "deadlines"] {
        let objects = Indexed::new(&kit, part, HOUR, 2).unwrap();
        for id in ["1", "2"] {
            let _ = objects.put(Object::new(id, "old"), None).await.unwrap();
        }
        lose(&kit, &keys(&kit, "state", part).key(part)).await;
        let _ = objects.put(Object::new("1", "new"), None).await.unwrap();
        assert_eq!(objects.find("old", None, 10).await.unwrap().ids, [b"2"], "{part}");
        assert_eq!(objects.find("new", None, 10).await.unwrap().ids, [b"1"], "{part}");
    }
}

/// Its total was that of items that nobody has any more.
async fn a_draft_without_its_items_is_corrupt(kit: Kit) {
    let carts = Drafts::new(&kit, DraftSettings { ttl: HOUR, items_max: 10 }).unwrap();
    let _ = carts.create("c", "ann", "EUR", None).await.unwrap();
    let item = LineItem { sku: "book".into(), quantity: 1, unit_minor: 100 };
    let _ = carts.set_item("c", &item, None, None).await.unwrap();
    lose(&kit, &keys(&kit, "object.draft", "c").key("items")).await;
    let refused = carts.set_item("c", &item, None, None).await;
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    let refused = carts.set_tax("c", 1, None, None).await;
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    assert_eq!(carts.remove("c").await, Ok(true));
}

/// A waiter that died was never passed over when nothing said until when it was alive.
async fn a_fair_lease_is_not_stuck_behind_the_unknown(kit: Kit) {
    let terms = FairTerms::new(HOUR).patience(HOUR);
    let lease = FairLease::new(&kit, "a", terms).unwrap();
    let parts = keys(&kit, "lease", "a");
    let dead = Request::new("ZADD").key(&parts.key("queue")).arg(1).arg("dead");
    kit.call(&dead).await.unwrap();
    kit.call(&Request::new("PEXPIRE").key(&parts.key("queue")).arg(HOUR)).await.unwrap();
    assert!(lease.acquire(Duration::from_secs(10)).await.unwrap().is_held());
}

/// A member whose entry nobody knew any more stood twice on the board.
async fn a_leaderboard_has_each_member_once(kit: Kit) {
    let parts = keys(&kit, "ranking", "a");
    let all = ["request", "board", "entries", "closed"].map(|part| parts.key(part));
    let add = async |member: &str| {
        let args = ["0", member, "5", "ADD", "0", "0", "60000", "100"];
        raw_step(&kit, "ranking_add", &all, &args).await.unwrap()
    };
    let size = async || kit.call(&Request::new("ZCARD").key(&all[1])).await.unwrap().as_int();
    for member in ["ann", "bob"] {
        add(member).await;
    }
    lose(&kit, &all[2]).await;
    let kept = add("ann").await;
    assert_eq!(kept.as_list().unwrap()[2].as_int(), Some(10));
    assert_eq!(size().await, Some(2));
    // Without the board its entries stand for nothing.
    lose(&kit, &all[1]).await;
    let near = ["bob", "", "", "1", "0", "0"];
    let missing = raw_step(&kit, "ranking_near", &all[1..3], &near).await.unwrap();
    assert_eq!(missing.as_list().unwrap()[0], Reply::Text(b"MISSING".to_vec()));
    let kept = add("carl").await;
    assert_eq!(kept.as_list().unwrap()[2].as_int(), Some(5));
    assert_eq!(size().await, Some(1));
}

/// A renewal after the number was lost gave 0 as the number of the holder.
async fn a_number_that_was_lost_does_not_become_nothing(kit: Kit) {
    let parts = keys(&kit, "lease", "a");
    let all = ["permits", "permits-fence"].map(|part| parts.key(part));
    let fence = async |step: &str, last: &str| {
        let reply = raw_step(&kit, step, &all, &["t", "60000", "60000", last]).await.unwrap();
        reply.as_list().unwrap()[2].as_int().unwrap()
    };
    let first = fence("lease_permit_acquire", "5").await;
    lose(&kit, &all[1]).await;
    assert!(fence("lease_permit_renew", "0").await > first);
    assert!(fence("lease_permit_acquire", "5").await > first);
}

/// They were kept for as long as others came, and counted as nothing.
async fn states_without_deadlines_are_forgotten(kit: Kit) {
    let parts = keys(&kit, "expiry", "a");
    let all = ["deadlines", "states"].map(|part| parts.key(part));
    let put = async |item: &str| {
        let args = [item, "state", "60000", "10", "60000"];
        raw_step(&kit, "expiry_put", &all, &args).await.unwrap()
    };
    put("old").await;
    lose(&kit, &all[0]).await;
    put("new").await;
    let states = kit.call(&Request::new("HKEYS").key(&all[1])).await.unwrap();
    assert_eq!(states.into_list().unwrap(), [Reply::Text(b"new".to_vec())]);
}
