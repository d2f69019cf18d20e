//! The list, and the reliable list.

use super::{BOUNDS, SHORT, is_new, until};
use russet::queue::{
    Acked, Bounds, Extended, List, OnFull, Order, Pushed, Reliable, Requeued, Returned, Scheduled,
};
use russet::{Error, Kit, Request, RequestId};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_list_is_a_queue_or_a_stack
    a_full_list_refuses_or_drops_its_oldest
    a_failed_push_loses_no_item
    a_pop_that_waits_blocks_nobody_else
    a_list_expires
    a_reliable_list_keeps_its_order
    a_crashed_worker_of_a_list_loses_no_job
    a_poisonous_job_does_not_block_a_list
    many_takers_share_a_list
}

const SMALL: Bounds = Bounds { capacity: 3, ttl: Duration::from_secs(60) };

async fn a_list_is_a_queue_or_a_stack(kit: Kit) {
    for (order, wanted) in [(Order::Fifo, ["a", "b", "c"]), (Order::Lifo, ["c", "b", "a"])] {
        let list = List::builder(&kit, format!("{order:?}"), BOUNDS).order(order).build().unwrap();
        for item in ["a", "b", "c"] {
            let _ = list.push(item, None).await.unwrap();
        }
        for item in wanted {
            assert_eq!(list.pop(None).await, Ok(Some(item.as_bytes().to_vec())));
        }
        assert_eq!(list.pop(None).await, Ok(None));
        assert_eq!(list.is_empty().await, Ok(true));
    }
}

async fn a_full_list_refuses_or_drops_its_oldest(kit: Kit) {
    let list = List::builder(&kit, "reject", SMALL).build().unwrap();
    for item in ["a", "b", "c"] {
        assert!(matches!(list.push(item, None).await, Ok(Pushed::Pushed { dropped: 0, .. })));
    }
    assert_eq!(list.push("d", None).await, Ok(Pushed::Full));
    let list = List::builder(&kit, "drop", SMALL).on_full(OnFull::DropOldest).build().unwrap();
    for item in ["a", "b", "c"] {
        let _ = list.push(item, None).await.unwrap();
    }
    assert_eq!(list.push("d", None).await, Ok(Pushed::Pushed { length: 3, dropped: 1 }));
    assert_eq!(list.pop(None).await, Ok(Some(b"b".to_vec())));
    assert!(List::builder(&kit, "x", Bounds { capacity: 0, ..SMALL }).build().is_err());
}

/// S2 §3: a push whose reply was lost was either not tried again, and the job lost, or tried again,
/// and the job doubled.
async fn a_failed_push_loses_no_item(kit: Kit) {
    let list = List::builder(&kit, "list", BOUNDS).build().unwrap();
    let [push, pop] = [RequestId::random(), RequestId::random()];
    for _ in 0..3 {
        let pushed = list.push("a", Some(&push)).await;
        assert_eq!(pushed, Ok(Pushed::Pushed { length: 1, dropped: 0 }));
    }
    for _ in 0..3 {
        assert_eq!(list.pop(Some(&pop)).await, Ok(Some(b"a".to_vec())));
    }
    assert_eq!(list.len().await, Ok(0));
}

/// S2 §3: workers that blocked on the connection of everybody else.
async fn a_pop_that_waits_blocks_nobody_else(kit: Kit) {
    let list = List::builder(&kit, "list", BOUNDS).build().unwrap();
    assert_eq!(list.pop_wait(Duration::from_millis(20)).await, Ok(None));
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let list = list.clone();
            tokio::spawn(async move { list.pop_wait(Duration::from_secs(60)).await })
        })
        .collect();
    for number in 0..8 {
        let _ = list.push(number.to_string(), None).await.unwrap();
    }
    let mut items = HashSet::new();
    for task in waiting {
        items.insert(task.await.unwrap().unwrap().unwrap());
    }
    assert_eq!(items.len(), 8);
}

async fn a_list_expires(kit: Kit) {
    let bounds = Bounds { capacity: 3, ttl: SHORT };
    let list = List::builder(&kit, "list", bounds).build().unwrap();
    let _ = list.push("a", None).await.unwrap();
    until(async || list.is_empty().await.unwrap().then_some(())).await;
}

async fn a_reliable_list_keeps_its_order(kit: Kit) {
    let list = Reliable::builder(&kit, "list", SMALL).build().unwrap();
    for item in ["a", "b", "c"] {
        assert!(is_new(&list.push(item, None).await.unwrap()));
    }
    assert_eq!(list.push("d", None).await, Ok(Scheduled::Full));
    let jobs = list.take(2, None).await.unwrap().jobs();
    let payloads: Vec<&[u8]> = jobs.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(payloads, [b"a", b"b"]);
    assert_eq!(list.ack(&jobs[0].receipt, None).await, Ok(Acked::Acked));
    assert_eq!(list.ack(&jobs[0].receipt, None).await, Ok(Acked::Gone));
    assert_eq!(list.extend(&jobs[1].receipt).await, Ok(Extended::Extended));
    let again = list.retry(&jobs[1].receipt, "down", None).await;
    assert_eq!(again, Ok(Returned::Retried { attempts: 1 }));
    let jobs = list.take(2, None).await.unwrap().jobs();
    let payloads: Vec<&[u8]> = jobs.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(payloads, [b"c", b"b"]);
    let unique = list.push_unique(&jobs[0].id, "c", None).await;
    assert_eq!(unique, Ok(Scheduled::Duplicate));
    let stats = list.stats().await.unwrap();
    assert_eq!((stats.ready, stats.running, stats.acked, stats.retried), (0, 2, 1, 1));
}

/// S2 §4: a popped job was lost with its worker; the list of those in work had no times, no counts
/// and no reaper.
async fn a_crashed_worker_of_a_list_loses_no_job(kit: Kit) {
    let builder = Reliable::builder(&kit, "list", BOUNDS).visibility(SHORT);
    let list = builder.attempts_max(2).build().unwrap();
    for item in ["a", "b", "c"] {
        let _ = list.push(item, None).await.unwrap();
    }
    let crashed = list.take(2, None).await.unwrap().jobs();
    // They come back before the third, in their order.
    let jobs = until(async || {
        (list.stats().await.unwrap().running > 0).then_some(())?;
        tokio::time::sleep(SHORT).await;
        let jobs = list.take(3, None).await.unwrap().jobs();
        Some(jobs).filter(|jobs| jobs.len() == 3)
    })
    .await;
    let seen: Vec<(&[u8], u32)> =
        jobs.iter().map(|job| (job.payload.as_slice(), job.attempt)).collect();
    assert_eq!(seen, [(&b"a"[..], 2), (b"b", 2), (b"c", 1)]);
    assert_eq!(list.ack(&crashed[0].receipt, None).await, Ok(Acked::Stale));
    // The second crash is the last for two of them.
    until(async || {
        drop(list.take(3, None).await.unwrap());
        (list.stats().await.unwrap().dead >= 2).then_some(())
    })
    .await;
    let letters = list.dead_letters(0, 10).await.unwrap();
    assert!(letters.iter().all(|letter| letter.reason == "visibility expired"));
    assert_eq!(list.requeue(&letters[0].id, None).await, Ok(Requeued::Requeued));
}

/// S2 §4.1: the retry count and the dead letters that the list of those in work needs.
async fn a_poisonous_job_does_not_block_a_list(kit: Kit) {
    let list = Reliable::builder(&kit, "list", BOUNDS).attempts_max(3).build().unwrap();
    let _ = list.push("poison", None).await.unwrap();
    let _ = list.push("good", None).await.unwrap();
    let mut good = 0;
    loop {
        let Some(job) = list.take(1, None).await.unwrap().jobs().pop() else { break };
        if job.payload == b"good" {
            good += 1;
            assert_eq!(list.ack(&job.receipt, None).await, Ok(Acked::Acked));
        } else if let Returned::Dead { attempts } =
            list.retry(&job.receipt, "poison", None).await.unwrap()
        {
            assert_eq!(attempts, 3);
        }
    }
    assert_eq!((good, list.dead_letters(0, 10).await.unwrap().len()), (1, 1));
    // The old list of the same name as a raw key is none of its business.
    let family = russet::key::Family { purpose: "reliable", version: 1 };
    let key = kit.keys(family, "list").unwrap().key("taken");
    let kind = kit.call(&Request::new("TYPE").key(&key)).await.unwrap();
    assert_eq!(kind.as_bytes(), Some(b"none".as_slice()));
    let wrong = list.ack(&(&b"?"[..]).into(), None).await;
    assert!(matches!(wrong, Err(Error::Invalid(_))));
}

async fn many_takers_share_a_list(kit: Kit) {
    const JOBS: usize = 200;
    let list = Reliable::builder(&kit, "list", BOUNDS).build().unwrap();
    for number in 0..JOBS {
        let _ = list.push(number.to_string(), None).await.unwrap();
    }
    let done = Arc::new(Mutex::new(Vec::new()));
    let takers: Vec<_> = (0..16)
        .map(|taker| {
            let (list, done) = (list.clone(), done.clone());
            tokio::spawn(async move {
                loop {
                    let jobs = list.take(1 + taker % 3, None).await.unwrap().jobs();
                    if jobs.is_empty() {
                        return;
                    }
                    for job in jobs {
                        assert_eq!(list.ack(&job.receipt, None).await, Ok(Acked::Acked));
                        done.lock().unwrap().push(job.payload);
                    }
                }
            })
        })
        .collect();
    for taker in takers {
        taker.await.unwrap();
    }
    let done = done.lock().unwrap();
    assert_eq!((done.len(), done.iter().collect::<HashSet<_>>().len()), (JOBS, JOBS));
}
