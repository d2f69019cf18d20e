//! Updates by WATCH.

use super::{FAMILY, HOUR};
use russet::state::{Current, Decision, Optimistic, Updated, Writes};
use russet::{Error, Kit, Request, RequestId};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    no_update_is_lost
    contention_has_an_end
    a_change_of_any_value_undoes_the_decision
    a_watch_does_not_outlive_a_decision_to_leave
    a_watch_does_not_outlive_a_panic
    a_request_is_carried_out_once
    a_request_is_one_of_the_values_it_is_about
    values_end
    bounds_are_demanded
}

fn add_one(now: &Current) -> Decision<i64> {
    let next = now.int("n").unwrap_or(0) + 1;
    Decision::Write(Writes::new().set_int("n", next), next)
}

async fn set(kit: &Kit, part: &'static str, value: &str) {
    let key = kit.keys(FAMILY, "a").unwrap().key(part);
    kit.call(&Request::new("SET").key(&key).arg(value).arg("PX").arg(60_000)).await.unwrap();
}

/// Pattern 17, S1 §5: 8 tasks of 5 updates are 40.
async fn no_update_is_lost(kit: Kit) {
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
        let counter = counter.attempts_max(100).unwrap();
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                assert!(matches!(counter.update(None, add_one).await, Ok(Updated::Written(_))));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    let read = counter.update(None, |now| Decision::Leave(now.int("n"))).await.unwrap();
    assert_eq!(read, Updated::Left(Some(40)));
}

async fn contention_has_an_end(kit: Kit) {
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    let mut attempts = 0;
    let runtime = tokio::runtime::Handle::current();
    let result = counter
        .update(None, |now| {
            attempts += 1;
            // Another process is faster each time.
            let other = set(&kit, "n", "7");
            tokio::task::block_in_place(|| runtime.block_on(other));
            add_one(now)
        })
        .await;
    assert_eq!(result, Err(Error::Contention { attempts: 5 }));
    assert_eq!(attempts, 5);
}

/// S1 §5: all keys of the invariant are watched, those that are only read as well.
async fn a_change_of_any_value_undoes_the_decision(kit: Kit) {
    let both = Optimistic::new(&kit, "a", &["n", "limit"], HOUR).unwrap();
    set(&kit, "limit", "5").await;
    let mut limits = Vec::new();
    let runtime = tokio::runtime::Handle::current();
    let updated = both
        .update(None, |now| {
            limits.push(now.int("limit").unwrap());
            if limits.len() == 1 {
                let other = set(&kit, "limit", "9");
                tokio::task::block_in_place(|| runtime.block_on(other));
            }
            add_one(now)
        })
        .await;
    assert_eq!(updated, Ok(Updated::Written(1)));
    assert_eq!(limits, [5, 9]);
}

/// How often an update has to decide though nobody interferes.
async fn decisions(kit: &Kit) -> usize {
    // What an earlier user of the connection may still watch has changed.
    set(kit, "n", "1").await;
    let counter = Optimistic::new(kit, "a", &["other"], HOUR).unwrap();
    let mut count = 0;
    let updated = counter.update(None, |_now| {
        count += 1;
        Decision::Write(Writes::new().set("other", "x"), ())
    });
    assert_eq!(updated.await, Ok(Updated::Written(())));
    count
}

/// S1 §5: an early return leaves the connection watching.
async fn a_watch_does_not_outlive_a_decision_to_leave(kit: Kit) {
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    for _ in 0..4 {
        let left = counter.update(None, |_now| Decision::Leave(())).await;
        assert_eq!(left, Ok(Updated::Left(())));
        assert_eq!(decisions(&kit).await, 1);
    }
}

/// S1 §5: WATCH leaks on an exception.
async fn a_watch_does_not_outlive_a_panic(kit: Kit) {
    for _ in 0..4 {
        let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
        let task = tokio::spawn(async move {
            let decide = |_now: &Current| -> Decision<()> { panic!("a fault of the test") };
            let _ = counter.update(None, decide).await;
        });
        assert!(task.await.is_err());
        assert_eq!(decisions(&kit).await, 1);
    }
}

async fn a_request_is_carried_out_once(kit: Kit) {
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    let id = RequestId::random();
    assert_eq!(counter.update(Some(&id), add_one).await, Ok(Updated::Written(1)));
    assert_eq!(counter.update(Some(&id), add_one).await, Ok(Updated::Already));
    assert_eq!(counter.update(None, add_one).await, Ok(Updated::Written(2)));
    let mut tasks = Vec::new();
    let id = RequestId::random();
    for _ in 0..8 {
        let (counter, id) = (counter.clone().attempts_max(100).unwrap(), id.clone());
        tasks.push(tokio::spawn(async move { counter.update(Some(&id), add_one).await.unwrap() }));
    }
    let mut written = 0;
    for task in tasks {
        written += usize::from(task.await.unwrap() == Updated::Written(3));
    }
    assert_eq!(written, 1);
}

/// An update of some values was taken for done because the same request had changed others.
async fn a_request_is_one_of_the_values_it_is_about(kit: Kit) {
    let (one, other) = (
        Optimistic::new(&kit, "a", &["n"], HOUR).unwrap(),
        Optimistic::new(&kit, "a", &["n", "m"], HOUR).unwrap(),
    );
    let request = RequestId::random();
    assert_eq!(one.update(Some(&request), add_one).await, Ok(Updated::Written(1)));
    assert_eq!(other.update(Some(&request), add_one).await, Ok(Updated::Written(2)));
    assert_eq!(one.update(Some(&request), add_one).await, Ok(Updated::Already));
    assert_eq!(other.update(Some(&request), add_one).await, Ok(Updated::Already));
}

async fn values_end(kit: Kit) {
    let counter = Optimistic::new(&kit, "a", &["n"], Duration::from_millis(50)).unwrap();
    let _ = counter.update(None, add_one).await.unwrap();
    let read = |now: &Current| Decision::Leave(now.int("n"));
    while counter.update(None, read).await.unwrap() != Updated::Left(None) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _ = counter.update(None, add_one).await.unwrap();
    let removed = |_now: &Current| Decision::Write(Writes::new().remove("n"), ());
    assert_eq!(counter.update(None, removed).await, Ok(Updated::Written(())));
    assert_eq!(counter.update(None, read).await, Ok(Updated::Left(None)));
}

async fn bounds_are_demanded(kit: Kit) {
    assert!(matches!(Optimistic::new(&kit, "a", &[], HOUR), Err(Error::Invalid(_))));
    assert!(matches!(Optimistic::new(&kit, "a", &["n"], Duration::ZERO), Err(Error::Invalid(_))));
    let counter = Optimistic::new(&kit, "a", &["n"], HOUR).unwrap();
    let other = |_now: &Current| Decision::Write(Writes::new().set("m", "1"), ());
    assert!(matches!(counter.update(None, other).await, Err(Error::Invalid(_))));
    assert!(matches!(counter.attempts_max(0), Err(Error::Invalid(_))));
}
