//! Workloads of lists, reliable lists, streams and repeated jobs.

use super::{HOUR, TASKS, at_once};
use russet::queue::{
    Acked, Bounds, Claimed, Cron, Job, Jobs, List, NewJob, Pushed, Reliable, Scheduled, Stream,
};
use russet::{Kit, RequestId, Result};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

const EACH: usize = 5;
const BOUNDS: Bounds = Bounds { capacity: 1000, ttl: HOUR };

type Seen = Arc<Mutex<HashSet<Vec<u8>>>>;

/// Fails if it was seen before.
fn see(seen: &Seen, payload: Vec<u8>) {
    let text = String::from_utf8_lossy(&payload).into_owned();
    assert!(seen.lock().unwrap().insert(payload), "{text} twice");
}

fn assert_all(seen: &Seen) {
    assert_eq!(seen.lock().unwrap().len(), TASKS * EACH);
}

pub(super) async fn every_item_of_a_list_is_popped_once(kit: Kit) {
    let (list, seen) = (List::builder(&kit, "items", BOUNDS).build().unwrap(), Seen::default());
    at_once(|task| {
        let (list, seen) = (list.clone(), seen.clone());
        async move {
            for number in 0..EACH {
                let item = format!("{task}-{number}");
                let pushed = list.push(item, Some(&RequestId::random())).await.unwrap();
                assert!(matches!(pushed, Pushed::Pushed { .. }), "{pushed:?}");
            }
            // Each takes as many as it has put in.
            for _ in 0..EACH {
                let item = list.pop(Some(&RequestId::random())).await.unwrap();
                see(&seen, item.expect("there are as many as were pushed"));
            }
        }
    })
    .await;
    assert_all(&seen);
    assert_eq!(list.len().await, Ok(0));
}

/// A queue with receipts.
trait Queue: Clone + Send + Sync + 'static {
    fn put(&self, payload: String) -> impl Future<Output = Result<Scheduled>> + Send;
    fn claim(&self) -> impl Future<Output = Result<Vec<Job>>> + Send;
    fn ack(&self, job: &Job) -> impl Future<Output = Result<Acked>> + Send;
}

impl Queue for Reliable {
    async fn put(&self, payload: String) -> Result<Scheduled> {
        self.push(payload, Some(&RequestId::random())).await
    }

    async fn claim(&self) -> Result<Vec<Job>> {
        self.take(3, Some(&RequestId::random())).await.map(Claimed::jobs)
    }

    async fn ack(&self, job: &Job) -> Result<Acked> {
        Reliable::ack(self, &job.receipt, Some(&RequestId::random())).await
    }
}

impl Queue for Stream {
    async fn put(&self, payload: String) -> Result<Scheduled> {
        self.add(payload, Some(&RequestId::random())).await
    }

    async fn claim(&self) -> Result<Vec<Job>> {
        Stream::claim(self, 3, Some(&RequestId::random())).await.map(Claimed::jobs)
    }

    async fn ack(&self, job: &Job) -> Result<Acked> {
        Stream::ack(self, &job.receipt, Some(&RequestId::random())).await
    }
}

/// Tasks that put jobs in, and then do what there is: each job is acknowledged by one of them.
async fn acknowledge_each_once<Q: Queue>(queue: &Q) {
    let seen = Seen::default();
    at_once(|task| {
        let (queue, seen) = (queue.clone(), seen.clone());
        async move {
            for number in 0..EACH {
                let put = queue.put(format!("{task}-{number}")).await.unwrap();
                assert!(matches!(put, Scheduled::Scheduled(_)), "{put:?}");
            }
            loop {
                let jobs = queue.claim().await.unwrap();
                if jobs.is_empty() {
                    return;
                }
                for job in jobs {
                    assert_eq!(queue.ack(&job).await, Ok(Acked::Acked));
                    see(&seen, job.payload);
                }
            }
        }
    })
    .await;
    assert_all(&seen);
}

pub(super) async fn every_job_of_a_list_is_acknowledged_once(kit: Kit) {
    let list = Reliable::builder(&kit, "reliable", BOUNDS).visibility(HOUR).build().unwrap();
    acknowledge_each_once(&list).await;
    let stats = list.stats().await.unwrap();
    assert_eq!((stats.acked, stats.ready, stats.running), ((TASKS * EACH) as u64, 0, 0));
}

pub(super) async fn every_entry_of_a_stream_is_acknowledged_once(kit: Kit) {
    let stream = Stream::builder(&kit, "entries", BOUNDS).visibility(HOUR).build().unwrap();
    acknowledge_each_once(&stream).await;
    let stats = stream.stats().await.unwrap();
    assert_eq!((stats.lag, stats.running), (0, 0));
}

/// Processes that plan the same repetition: its next occurrence, new year, is one job.
pub(super) async fn an_occurrence_is_one_job(kit: Kit) {
    let jobs = Jobs::builder(&kit, "repeated", BOUNDS).build().unwrap();
    at_once(|_task| {
        let jobs = jobs.clone();
        async move {
            for _ in 0..EACH {
                let cron = Cron::new(&jobs).every("yearly", "0 0 1 1 *", NewJob::new("x"));
                let _planned = cron.unwrap().tick().await.unwrap();
            }
        }
    })
    .await;
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.scheduled, stats.delayed), (1, 1));
}
