//! Fair, reentrant, read-write leases and semaphores.

use super::{LONG, briefly, held, is_busy};
use russet::lease::{
    Attempt, FairLease, FairTerms, Owner, ReadWriteLease, ReentrantLease, Release, Semaphore,
};
use russet::{Error, Kit};
use russet_toolkit_tests::{Fault, faulty};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_fair_lease_is_given_in_order
    a_fair_lease_takes_no_more_waiters_than_it_may
    a_waiter_that_gives_up_leaves_the_queue
    many_take_a_fair_lease
    a_reentrant_lease_is_free_when_the_last_guard_is_gone
    many_owners_take_a_reentrant_lease
    a_repeated_attempt_does_not_count_twice
    readers_share_and_writers_do_not
    a_reader_keeps_its_time_when_others_come_with_less
    a_writer_that_waits_comes_before_new_readers
    many_read_and_write
    a_semaphore_admits_no_more_than_its_permits
    permits_of_the_dead_come_back
    several_permits_are_held_together
    bounds_are_demanded
}

async fn wait_for_waiters(lease: &FairLease, count: u64) {
    while lease.waiters().await.unwrap() < count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Nobody is passed over for a machine that is too busy to ask for three seconds.
fn patient() -> FairTerms {
    FairTerms::new(LONG).patience(LONG)
}

async fn a_fair_lease_is_given_in_order(kit: Kit) {
    let lease = FairLease::new(&kit, "a", patient()).unwrap();
    let first = held(lease.try_acquire().await.unwrap());
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..5_u64 {
        let (own, order) = (FairLease::new(&kit, "a", patient()).unwrap(), order.clone());
        tasks.push(tokio::spawn(async move {
            let guard = held(own.acquire(LONG).await.unwrap());
            order.lock().unwrap().push(number);
            let _ = guard.release().await.unwrap();
        }));
        wait_for_waiters(&lease, number + 1).await;
    }
    // Whoever does not wait does not push in.
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    let _ = first.release().await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

async fn a_fair_lease_takes_no_more_waiters_than_it_may(kit: Kit) {
    let terms = patient().waiters_max(1);
    let lease = FairLease::new(&kit, "a", terms).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    let waiting = tokio::spawn({
        let lease = lease.clone();
        async move { held(lease.acquire(LONG).await.unwrap()).release().await.unwrap() }
    });
    wait_for_waiters(&lease, 1).await;
    assert!(matches!(lease.acquire(LONG).await.unwrap(), Attempt::Full));
    let _ = guard.release().await.unwrap();
    assert_eq!(waiting.await.unwrap(), Release::Released);
}

async fn a_waiter_that_gives_up_leaves_the_queue(kit: Kit) {
    let lease = FairLease::new(&kit, "a", LONG).unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    assert!(is_busy(&lease.acquire(Duration::from_millis(20)).await.unwrap()));
    assert_eq!(lease.waiters().await.unwrap(), 0);
    let dropped = tokio::time::timeout(Duration::from_millis(50), lease.acquire(LONG)).await;
    assert!(dropped.is_err());
    let _ = guard.release().await.unwrap();
    assert!(lease.acquire(LONG).await.unwrap().is_held());
}

/// Redisson issues 2278 and 2883: under load all are stuck.
async fn many_take_a_fair_lease(kit: Kit) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..32 {
        let lease = FairLease::new(&kit, "a", LONG).unwrap();
        let inside = inside.clone();
        tasks.push(tokio::spawn(async move {
            let guard = held(lease.acquire(LONG).await.unwrap());
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(guard.release().await.unwrap(), Release::Released);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(FairLease::new(&kit, "a", LONG).unwrap().waiters().await.unwrap(), 0);
}

/// Pattern 14. S3, locks: the number of a thread is not unique across processes; an owner is.
async fn a_reentrant_lease_is_free_when_the_last_guard_is_gone(kit: Kit) {
    let lease = ReentrantLease::new(&kit, "a", LONG).unwrap();
    let (ann, ben) = (Owner::random(), Owner::named("job-17").unwrap());
    let outer = held(lease.try_acquire(&ann).await.unwrap());
    let inner = held(lease.try_acquire(&ann).await.unwrap());
    assert!(inner.fence() > outer.fence());
    assert_eq!(lease.depth().await.unwrap(), 2);
    assert_eq!(outer.release().await.unwrap(), Release::Released);
    assert!(is_busy(&lease.try_acquire(&ben).await.unwrap()));
    assert_eq!(inner.release().await.unwrap(), Release::Released);
    let next = held(lease.acquire(&ben, LONG).await.unwrap());
    assert!(is_busy(&lease.try_acquire(&ann).await.unwrap()));
    drop(next);
}

/// Pattern 14: 16 owners, each twice, one owner at a time.
async fn many_owners_take_a_reentrant_lease(kit: Kit) {
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let lease = ReentrantLease::new(&kit, "a", LONG).unwrap();
        let inside = inside.clone();
        tasks.push(tokio::spawn(async move {
            let owner = Owner::random();
            let outer = held(lease.acquire(&owner, LONG).await.unwrap());
            let inner = held(lease.acquire(&owner, LONG).await.unwrap());
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(inner.release().await.unwrap(), Release::Released);
            assert_eq!(outer.release().await.unwrap(), Release::Released);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(ReentrantLease::new(&kit, "a", LONG).unwrap().depth().await.unwrap(), 0);
}

/// A count of holds is not safe to repeat; holds with names are.
async fn a_repeated_attempt_does_not_count_twice(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let lease = ReentrantLease::new(&kit, "a", LONG).unwrap();
    let owner = Owner::random();
    let _ = held(lease.try_acquire(&owner).await.unwrap()).release().await.unwrap();
    faults.set(|number| if number == 0 { Fault::ReplyLost } else { Fault::None });
    let guard = held(lease.try_acquire(&owner).await.unwrap());
    assert_eq!(lease.depth().await.unwrap(), 1);
    let _ = guard.release().await.unwrap();
    assert_eq!(lease.depth().await.unwrap(), 0);
}

async fn readers_share_and_writers_do_not(kit: Kit) {
    let lease = ReadWriteLease::new(&kit, "a", LONG, 2).unwrap();
    let (ann, ben, eve) = (Owner::random(), Owner::random(), Owner::random());
    let reading = held(lease.try_read(&ann).await.unwrap());
    let also_reading = held(lease.try_read(&ben).await.unwrap());
    assert!(matches!(lease.try_read(&eve).await.unwrap(), Attempt::Full));
    assert_eq!(lease.readers().await.unwrap(), 2);
    // Redisson issue 4796: the only reader may write as well.
    assert!(is_busy(&lease.try_write(&ann).await.unwrap()));
    let _ = also_reading.release().await.unwrap();
    let writing = held(lease.try_write(&ann).await.unwrap());
    assert!(is_busy(&lease.try_read(&ben).await.unwrap()));
    assert!(is_busy(&lease.try_write(&ben).await.unwrap()));
    // Redisson issue 4217: the read side of a writer stays when it writes no more.
    let _ = writing.release().await.unwrap();
    assert!(matches!(reading.renew().await.unwrap(), russet::lease::Renewal::Renewed { .. }));
    assert!(is_busy(&lease.try_write(&ben).await.unwrap()));
    let _ = reading.release().await.unwrap();
    assert!(lease.try_write(&ben).await.unwrap().is_held());
}

/// Redisson issue 2144: a reader with a short time shortens that of all. Issue 1604: the watchdog
/// forgets readers.
async fn a_reader_keeps_its_time_when_others_come_with_less(kit: Kit) {
    let long = ReadWriteLease::new(&kit, "a", LONG, 10).unwrap();
    let short = ReadWriteLease::new(&kit, "a", Duration::from_millis(20), 10).unwrap();
    let (ann, ben, eve) = (Owner::random(), Owner::random(), Owner::random());
    let stays = held(long.try_read(&ann).await.unwrap());
    let goes = briefly(|| short.try_read(&ben)).await;
    goes.lost().await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(long.readers().await.unwrap(), 1);
    assert!(is_busy(&long.try_write(&eve).await.unwrap()));
    assert_eq!(goes.release().await.unwrap(), Release::NotHeld);
    assert_eq!(stays.release().await.unwrap(), Release::Released);
    assert!(long.try_write(&eve).await.unwrap().is_held());
}

async fn a_writer_that_waits_comes_before_new_readers(kit: Kit) {
    let lease = ReadWriteLease::new(&kit, "a", LONG, 10).unwrap();
    let (ann, ben, eve) = (Owner::random(), Owner::random(), Owner::random());
    let reading = held(lease.try_read(&ann).await.unwrap());
    let waiting = tokio::spawn({
        let (lease, ben) = (lease.clone(), ben.clone());
        async move { held(lease.write(&ben, LONG).await.unwrap()) }
    });
    while lease.try_read(&eve).await.unwrap().is_held() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Who reads already may read once more: it could not end otherwise.
    let again = held(lease.try_read(&ann).await.unwrap());
    let _ = again.release().await.unwrap();
    let _ = reading.release().await.unwrap();
    let writing = waiting.await.unwrap();
    let _ = writing.release().await.unwrap();
    assert!(lease.read(&eve, LONG).await.unwrap().is_held());
}

async fn many_read_and_write(kit: Kit) {
    let state = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for number in 0..24 {
        let lease = ReadWriteLease::new(&kit, "a", LONG, 100).unwrap();
        let state = state.clone();
        tasks.push(tokio::spawn(async move {
            let (readers, writers) = &*state;
            let owner = Owner::random();
            if number % 4 == 0 {
                let guard = held(lease.write(&owner, LONG).await.unwrap());
                assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0);
                assert_eq!(readers.load(Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                writers.fetch_sub(1, Ordering::SeqCst);
                let _ = guard.release().await.unwrap();
            } else {
                let guard = held(lease.read(&owner, LONG).await.unwrap());
                readers.fetch_add(1, Ordering::SeqCst);
                assert_eq!(writers.load(Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                readers.fetch_sub(1, Ordering::SeqCst);
                let _ = guard.release().await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// S1 §10: a fast clock of one client purges the entries of others, and 4 are admitted of 2.
async fn a_semaphore_admits_no_more_than_its_permits(kit: Kit) {
    let inside = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..32 {
        let semaphore = Semaphore::new(&kit, "a", LONG, 3).unwrap();
        let inside = inside.clone();
        tasks.push(tokio::spawn(async move {
            let guard = held(semaphore.acquire(LONG).await.unwrap());
            let now = inside.0.fetch_add(1, Ordering::SeqCst) + 1;
            inside.1.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            inside.0.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(guard.release().await.unwrap(), Release::Released);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(inside.1.load(Ordering::SeqCst) <= 3);
    let semaphore = Semaphore::new(&kit, "a", LONG, 3).unwrap();
    let guards = [
        semaphore.try_acquire().await.unwrap(),
        semaphore.try_acquire().await.unwrap(),
        semaphore.try_acquire().await.unwrap(),
    ];
    assert!(guards.iter().all(Attempt::is_held));
    assert!(is_busy(&semaphore.try_acquire().await.unwrap()));
}

/// Redisson issues 2045 and 2213: a permit whose holder died is gone for ever; issue 659: permits
/// that ran out count as in use; issue 4086: giving one back late looks like success; issues 4100
/// and 6302: the keys stay.
async fn permits_of_the_dead_come_back(kit: Kit) {
    let semaphore = Semaphore::new(&kit, "a", Duration::from_millis(60), 1).unwrap();
    let dead = briefly(|| semaphore.try_acquire()).await;
    dead.lost().await;
    let longer = Semaphore::new(&kit, "a", LONG, 1).unwrap();
    let next = held(longer.acquire(LONG).await.unwrap());
    assert_eq!(semaphore.stats().await.unwrap().in_use, 1);
    assert_eq!(dead.release().await.unwrap(), Release::NotHeld);
    assert_eq!(semaphore.stats().await.unwrap().available, 0);
    assert_eq!(next.release().await.unwrap(), Release::Released);
    let last = briefly(|| semaphore.try_acquire()).await;
    last.lost().await;
    while semaphore.stats().await.unwrap().in_use > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let family = russet::key::Family { purpose: "lease", version: 1 };
    let key = kit.keys(family, "a").unwrap().key("permits");
    // Its key goes a moment after the permit.
    let exists = russet::Request::new("EXISTS").key(&key);
    while kit.call(&exists).await.unwrap().as_int() != Some(0) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn several_permits_are_held_together(kit: Kit) {
    let semaphore = Semaphore::new(&kit, "s", LONG, 5).unwrap();
    let three = held(semaphore.try_acquire_many(3).await.unwrap());
    assert_eq!(semaphore.stats().await.unwrap().available, 2);
    assert!(is_busy(&semaphore.try_acquire_many(3).await.unwrap()));
    let two = held(semaphore.try_acquire_many(2).await.unwrap());
    assert!(is_busy(&semaphore.try_acquire().await.unwrap()));
    // Handed over, it is still three.
    let token = three.hand_over().unwrap();
    let three = held(semaphore.adopt(token).await.unwrap());
    assert_eq!(semaphore.stats().await.unwrap().in_use, 5);
    assert_eq!(three.release().await, Ok(Release::Released));
    assert_eq!(semaphore.stats().await.unwrap().in_use, 2);
    let waits = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire_many(5, LONG).await.unwrap().held().is_some() }
    });
    let _ = two.release().await.unwrap();
    assert!(waits.await.unwrap());
    for permits in [0, 6] {
        let refused = semaphore.try_acquire_many(permits).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

async fn bounds_are_demanded(kit: Kit) {
    let zero = Duration::ZERO;
    assert!(matches!(Semaphore::new(&kit, "a", LONG, 0), Err(Error::Invalid(_))));
    // redis-py issue 4279: a time of 0 deletes the lock at its first renewal.
    assert!(matches!(Semaphore::new(&kit, "a", zero, 1), Err(Error::Invalid(_))));
    assert!(matches!(ReadWriteLease::new(&kit, "a", LONG, 0), Err(Error::Invalid(_))));
    let none = FairTerms::new(LONG).waiters_max(0);
    assert!(matches!(FairLease::new(&kit, "a", none), Err(Error::Invalid(_))));
    let hasty = FairTerms::new(LONG).patience(zero);
    assert!(matches!(FairLease::new(&kit, "a", hasty), Err(Error::Invalid(_))));
    for name in ["", "a:b", "a b", &"a".repeat(65)] {
        assert!(matches!(Owner::named(name), Err(Error::Invalid(_))));
    }
}
