//! Leases over several servers.

use super::{LONG, held, is_busy};
use russet::lease::{Guard, Lease, MultiLease, QuorumLease, Release, Terms};
use russet::{Error, Kit, ManualTime, Options};
use russet_toolkit_tests::{Fault, Faults, faulty};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    all_servers_must_agree
    one_holder_over_all_servers
    one_holder_over_most_servers
}

fn embedded() -> Kit {
    Kit::embedded(Options::default()).unwrap()
}

/// Engines in this process whose calls can fail.
fn servers(count: usize) -> (Vec<Kit>, Vec<Faults>) {
    (0..count).map(|_| faulty(&embedded())).unzip()
}

async fn all_servers_must_agree(kit: Kit) {
    let servers = [kit.clone(), embedded()];
    let lease = MultiLease::new(&servers, "a", LONG).unwrap();
    let blocker = Lease::new(&servers[1], "a", LONG).unwrap();
    let blocking = held(blocker.try_acquire().await.unwrap());
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    // What was taken on the first server was given back.
    let first = Lease::new(&servers[0], "a", LONG).unwrap();
    let _ = held(first.try_acquire().await.unwrap()).release().await.unwrap();
    let _ = blocking.release().await.unwrap();
    let guard = held(lease.try_acquire().await.unwrap());
    assert!(is_busy(&first.try_acquire().await.unwrap()));
    assert!(matches!(guard.renew().await.unwrap(), russet::lease::Renewal::Renewed { .. }));
    assert_eq!(guard.release().await.unwrap(), Release::Released);
}

/// Redisson issue 4050: those who want all locks keep taking and giving back some, for ever.
async fn one_holder_over_all_servers(kit: Kit) {
    let servers = [kit, embedded(), embedded()];
    let lease = MultiLease::new(&servers, "a", LONG).unwrap();
    contend(move || {
        let lease = lease.clone();
        async move { lease.acquire(LONG).await.unwrap().held() }
    })
    .await;
}

async fn one_holder_over_most_servers(kit: Kit) {
    let servers = [kit, embedded(), embedded()];
    let lease = QuorumLease::new(&servers, "a", LONG).unwrap();
    contend(move || {
        let lease = lease.clone();
        async move { lease.acquire(LONG).await.unwrap().held() }
    })
    .await;
}

/// Eight tasks, one inside at a time, each with a higher number.
async fn contend<F>(acquire: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = Option<Guard>> + Send,
{
    let acquire = Arc::new(acquire);
    let inside = Arc::new((AtomicUsize::new(0), std::sync::Mutex::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (acquire, inside) = (acquire.clone(), inside.clone());
        tasks.push(tokio::spawn(async move {
            let guard = acquire().await.expect("its turn comes");
            assert_eq!(inside.0.fetch_add(1, Ordering::SeqCst), 0);
            {
                let mut last = inside.1.lock().unwrap();
                assert!(*last < guard.fence().number());
                *last = guard.fence().number();
            }
            inside.0.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(guard.release().await.unwrap(), Release::Released);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Redisson issues 533 and 5220: with one server down nobody gets the lock. That is what *all*
/// means; a quorum goes on.
#[tokio::test]
async fn a_quorum_goes_on_without_one_server_and_not_without_two() {
    let (servers, faults) = servers(3);
    let most = QuorumLease::new(&servers, "a", LONG).unwrap();
    let all = MultiLease::new(&servers, "b", LONG).unwrap();
    faults[0].set(|_number| Fault::NotRun);
    assert!(matches!(all.try_acquire().await, Err(Error::Unavailable(_))));
    let guard = held(most.try_acquire().await.unwrap());
    assert!(is_busy(&most.try_acquire().await.unwrap()));
    assert!(matches!(guard.renew().await.unwrap(), russet::lease::Renewal::Renewed { .. }));
    faults[1].set(|_number| Fault::NotRun);
    assert!(guard.renew().await.is_err());
    assert!(guard.is_held(), "until its time is over");
    assert!(matches!(most.try_acquire().await, Err(Error::Unavailable(_))));
}

/// Redisson issue 656: a lock is had though another has it on some of the servers.
#[tokio::test]
async fn a_minority_does_not_count() {
    let (servers, _faults) = servers(5);
    let lease = QuorumLease::new(&servers, "a", LONG).unwrap();
    let mut others = Vec::new();
    for server in &servers[..2] {
        let other = Lease::new(server, "a", LONG).unwrap();
        others.push(held(other.try_acquire().await.unwrap()));
    }
    let guard = held(lease.try_acquire().await.unwrap());
    let _ = guard.release().await.unwrap();
    let third = Lease::new(&servers[2], "a", LONG).unwrap();
    others.push(held(third.try_acquire().await.unwrap()));
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    // Nothing is left of the attempt on the others.
    let fourth = Lease::new(&servers[3], "a", LONG).unwrap();
    assert!(fourth.try_acquire().await.unwrap().is_held());
}

/// A server that is named twice must not count twice.
#[tokio::test]
async fn one_server_named_three_times_is_no_quorum() {
    let server = embedded();
    let lease = QuorumLease::new([&server, &server, &server], "a", LONG).unwrap();
    assert!(is_busy(&lease.try_acquire().await.unwrap()));
    assert!(matches!(QuorumLease::new([&server], "a", LONG), Err(Error::Invalid(_))));
    assert!(matches!(MultiLease::new([], "a", LONG), Err(Error::Invalid(_))));
}

/// Two majorities that share one server: the number rises whatever the clocks of the others say.
#[tokio::test]
async fn numbers_rise_though_clocks_differ() {
    let times = [ManualTime::new(), ManualTime::new(), ManualTime::new()];
    times[0].advance(Duration::from_secs(3600));
    let mut servers = Vec::new();
    let mut faults = Vec::new();
    for time in &times {
        let kit = Kit::builder().embedded_at(Options::default(), time).unwrap();
        let (kit, fault) = faulty(&kit);
        servers.push(kit);
        faults.push(fault);
    }
    let lease = QuorumLease::new(&servers, "a", LONG).unwrap();
    // The first holder has the server whose clock is ahead, and the second one.
    faults[2].set(|_number| Fault::NotRun);
    let guard = held(lease.try_acquire().await.unwrap());
    let first = guard.fence();
    let _ = guard.release().await.unwrap();
    // The second has the other two.
    faults[0].set(|_number| Fault::NotRun);
    faults[2].set(|_number| Fault::None);
    let guard = held(lease.try_acquire().await.unwrap());
    assert!(guard.fence() > first);
}

/// A lost reply may mean that the server holds it: it is given back there as well.
#[tokio::test]
async fn what_may_be_held_is_given_back() {
    let (servers, faults) = servers(3);
    let lease = MultiLease::new(&servers, "a", Terms::new(LONG)).unwrap();
    let _ = held(lease.try_acquire().await.unwrap()).release().await.unwrap();
    faults[2].set(|number| if number == 0 { Fault::ReplyLost } else { Fault::None });
    assert!(matches!(lease.try_acquire().await, Err(Error::Unknown(_))));
    assert!(lease.acquire(LONG).await.unwrap().is_held());
}
