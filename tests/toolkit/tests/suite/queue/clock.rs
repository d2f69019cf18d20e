//! What hangs on time, on the embedded engine, whose clock is moved by hand.

use super::{BOUNDS, one};
use russet::queue::{
    Acked, Backoff, Bounds, Claimed, Cron, Due, Extended, Jobs, NewJob, Reliable, Returned, Stream,
};
use russet::sale::{Bought, EventKind, Paid, Sale, Terms, Window};
use russet::{Kit, ManualTime, Options};
use std::time::{Duration, UNIX_EPOCH};

const SECOND: Duration = Duration::from_secs(1);

fn kit() -> (Kit, ManualTime) {
    let time = ManualTime::new();
    (Kit::builder().embedded_at(Options::default(), &time).unwrap(), time)
}

#[tokio::test]
async fn a_job_runs_when_it_is_due() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("in").due(Due::In(SECOND * 10)), None).await.unwrap();
    let at = UNIX_EPOCH + Duration::from_millis(time.now_ms() as u64) + SECOND * 20;
    let _ = jobs.schedule(&NewJob::new("at").due(Due::At(at)), None).await.unwrap();
    let next = jobs.claim_due(10, None).await.unwrap();
    assert_eq!(next, Claimed::Empty { next_in: Some(SECOND * 10) });
    time.advance(SECOND * 10);
    assert_eq!(jobs.stats().await.unwrap().due, 1);
    assert_eq!(one(jobs.claim_due(10, None).await.unwrap()).payload, b"in");
    time.advance(SECOND * 10);
    assert_eq!(one(jobs.claim_due(10, None).await.unwrap()).payload, b"at");
}

/// Jobs of one claim had deadlines that were fractions of a millisecond late, so that at the last
/// millisecond of their visibility only the first came back, and out of order.
#[tokio::test]
async fn jobs_of_one_claim_come_back_together() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SECOND).build().unwrap();
    let list = Reliable::builder(&kit, "list", BOUNDS).visibility(SECOND).build().unwrap();
    for payload in ["a", "b", "c"] {
        let _ = jobs.schedule(&NewJob::new(payload), None).await.unwrap();
        let _ = list.push(payload, None).await.unwrap();
    }
    assert_eq!(jobs.claim_due(2, None).await.unwrap().jobs().len(), 2);
    assert_eq!(list.take(2, None).await.unwrap().jobs().len(), 2);
    time.advance(SECOND);
    let payloads = |claimed: Claimed| -> Vec<Vec<u8>> {
        claimed.jobs().into_iter().map(|job| job.payload).collect()
    };
    assert_eq!(payloads(list.take(3, None).await.unwrap()), [b"a", b"b", b"c"]);
    assert_eq!(jobs.claim_due(3, None).await.unwrap().jobs().len(), 3);
}

/// S2 §12: a stream that nobody added to or claimed from ended before an entry that was given back
/// was due again, or before the claim of a worker that had died was over.
#[tokio::test]
async fn a_stream_stays_until_what_was_given_back_is_due() {
    let (kit, time) = kit();
    let bounds = Bounds { capacity: 10, ttl: SECOND * 60 };
    let stream = Stream::builder(&kit, "s", bounds).visibility(SECOND * 60).build().unwrap();
    let _ = stream.add("later", None).await.unwrap();
    let first = one(stream.claim(1, None).await.unwrap());
    time.advance(SECOND * 50);
    let _ = stream.retry_after(&first.receipt, SECOND * 30, "no", None).await.unwrap();
    time.advance(SECOND * 31);
    assert_eq!(one(stream.claim(1, None).await.unwrap()).payload, b"later");

    let short = Bounds { capacity: 10, ttl: SECOND };
    let stream = Stream::builder(&kit, "short", short).visibility(SECOND * 60).build().unwrap();
    let _ = stream.add("dies", None).await.unwrap();
    let first = one(stream.claim(1, None).await.unwrap());
    time.advance(SECOND * 59);
    assert_eq!(stream.extend(&first.receipt).await, Ok(Extended::Extended));
    time.advance(SECOND * 60);
    assert_eq!(one(stream.claim(1, None).await.unwrap()).attempt, 2);
}

/// A repeated job was of any length, whatever its queue allows.
#[tokio::test]
async fn a_repeated_job_is_no_longer_than_others() {
    let (kit, _time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).payload_bytes_max(3).build().unwrap();
    let refused = Cron::new(&jobs).every("a", "* * * * *", NewJob::new("long"));
    assert!(matches!(refused, Err(russet::Error::Invalid(_))), "{refused:?}");
    assert!(Cron::new(&jobs).every("a", "* * * * *", NewJob::new("abc")).is_ok());
}

/// A job of high priority goes first, but one that has waited long enough goes before it.
#[tokio::test]
async fn priorities_age() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).aging(SECOND * 10).build().unwrap();
    let add = async |payload: &str, priority: u8| {
        let _ = jobs.schedule(&NewJob::new(payload).priority(priority), None).await.unwrap();
    };
    add("old", 0).await;
    time.advance(SECOND * 25);
    add("low", 0).await;
    add("high", 2).await;
    add("highest", 3).await;
    let order = jobs.claim_due(10, None).await.unwrap().jobs();
    let order: Vec<&[u8]> = order.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(order, [&b"highest"[..], b"old", b"high", b"low"]);
}

/// A delayed job does not jump the queue while it is delayed, however high its priority.
#[tokio::test]
async fn priority_does_not_make_a_job_due() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let later = NewJob::new("later").priority(255).due(Due::In(SECOND * 60));
    let _ = jobs.schedule(&later, None).await.unwrap();
    assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
    time.advance(SECOND * 30);
    let _ = jobs.schedule(&NewJob::new("now"), None).await.unwrap();
    time.advance(SECOND * 30);
    let order = jobs.claim_due(10, None).await.unwrap().jobs();
    assert_eq!((order[0].payload.as_slice(), order.len()), (&b"later"[..], 2));
}

/// BullMQ issue 3183: a lock that could not be renewed let the job run twice. A heartbeat keeps it
/// here for as long as it comes in time, and not a moment longer.
#[tokio::test]
async fn a_heartbeat_keeps_a_job() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SECOND * 30).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x"), None).await.unwrap();
    let job = one(jobs.claim_due(1, None).await.unwrap());
    for _ in 0..1000 {
        time.advance(SECOND * 20);
        assert_eq!(jobs.extend(&job.receipt).await, Ok(Extended::Extended));
        assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
    }
    time.advance(SECOND * 30);
    let again = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(jobs.extend(&job.receipt).await, Ok(Extended::Stale));
    assert_eq!(jobs.ack(&again.receipt, None).await, Ok(Acked::Acked));
}

/// A claim that nobody else has taken over can be acknowledged late: the work is done.
#[tokio::test]
async fn a_late_acknowledgement_counts_while_nobody_else_has_the_job() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SECOND).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x"), None).await.unwrap();
    let job = one(jobs.claim_due(1, None).await.unwrap());
    time.advance(SECOND * 5);
    assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
    assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
}

#[tokio::test]
async fn failed_jobs_rest_longer_each_time() {
    let (kit, time) = kit();
    let backoff = Backoff { first: SECOND * 10, most: SECOND * 1000 };
    let builder = Jobs::builder(&kit, "jobs", BOUNDS).backoff(backoff);
    let jobs = builder.attempts_max(4).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x"), None).await.unwrap();
    for (attempt, least) in [(1, 5), (2, 10), (3, 20)] {
        let job = one(jobs.claim_due(1, None).await.unwrap());
        let returned = jobs.retry(&job, "down", None).await;
        assert_eq!(returned, Ok(Returned::Retried { attempts: attempt }));
        time.advance(SECOND * least - Duration::from_millis(1));
        assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
        time.advance(SECOND * least * 2 + Duration::from_millis(1));
    }
    let job = one(jobs.claim_due(1, None).await.unwrap());
    assert_eq!(jobs.retry(&job, "down", None).await, Ok(Returned::Dead { attempts: 4 }));
}

/// Redisson issues 3599 and 3835: delayed items of a process that restarted were not delivered
/// until another was added. Nothing but the store is needed here.
#[tokio::test]
async fn a_delayed_job_needs_nobody_to_move_it() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let _ = jobs.schedule(&NewJob::new("x").due(Due::In(SECOND * 30)), None).await.unwrap();
    drop(jobs);
    time.advance(SECOND * 31);
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    assert_eq!(one(jobs.claim_due(1, None).await.unwrap()).payload, b"x");
}

/// A queue that is worked on does not expire, however old its first job is; one that nobody touches
/// does.
#[tokio::test]
async fn only_a_queue_that_nobody_touches_expires() {
    let (kit, time) = kit();
    let bounds = Bounds { capacity: 1000, ttl: SECOND * 100 };
    let jobs = Jobs::builder(&kit, "jobs", bounds).visibility(SECOND).build().unwrap();
    let list = Reliable::builder(&kit, "jobs", bounds).visibility(SECOND).build().unwrap();
    let stream = Stream::builder(&kit, "jobs", bounds).visibility(SECOND).build().unwrap();
    for number in 0..40 {
        let _ = jobs.schedule(&NewJob::new(number.to_string()), None).await.unwrap();
        let _ = list.push(number.to_string(), None).await.unwrap();
        let _ = stream.add(number.to_string(), None).await.unwrap();
    }
    for number in 0..30 {
        time.advance(SECOND * 90);
        let payload = number.to_string().into_bytes();
        let job = one(jobs.claim_due(1, None).await.unwrap());
        assert_eq!(job.payload, payload);
        assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
        let job = one(list.take(1, None).await.unwrap());
        assert_eq!(job.payload, payload);
        assert_eq!(list.ack(&job.receipt, None).await, Ok(Acked::Acked));
        let job = one(stream.claim(1, None).await.unwrap());
        assert_eq!(job.payload, payload);
        assert_eq!(stream.ack(&job.receipt, None).await, Ok(Acked::Acked));
    }
    time.advance(SECOND * 200);
    assert!(jobs.claim_due(1, None).await.unwrap().jobs().is_empty());
    assert!(list.take(1, None).await.unwrap().jobs().is_empty());
    assert!(stream.claim(1, None).await.unwrap().jobs().is_empty());
    assert_eq!(jobs.stats().await.unwrap().scheduled, 0);
}

/// BullMQ issues 2889 and 2876: processes that restart plan a repeated job twice. Three processes
/// and a day of restarts give one job per occurrence.
#[tokio::test]
async fn a_repeated_job_is_one_job_per_occurrence() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let cron = || Cron::new(&jobs).every("hourly", "0 * * * *", NewJob::new("x")).unwrap();
    assert!(Cron::new(&jobs).every("bad", "61 * * * *", NewJob::new("x")).is_err());
    // Half past some hour, so that no occurrence is at the edge.
    time.set_ms(time.now_ms() / 3_600_000 * 3_600_000 + 1_800_000);
    let mut runs = 0;
    for _ in 0..24 * 4 {
        for _process in 0..3 {
            let _ = cron().tick().await.unwrap();
        }
        for job in jobs.claim_due(10, None).await.unwrap().jobs() {
            runs += 1;
            assert_eq!(jobs.ack(&job.receipt, None).await, Ok(Acked::Acked));
        }
        time.advance(SECOND * 900);
    }
    assert_eq!(runs, 24);
    assert_eq!(jobs.stats().await.unwrap().delayed, 1);
    cron().forget("hourly").await.unwrap();
    assert_eq!(jobs.stats().await.unwrap().delayed, 0);
}

/// BullMQ issue 2954: a repeated job whose occurrence was refused as a duplicate never repeated
/// again. And one that fails, or is not done when the next is due, does not stop the repetition.
#[tokio::test]
async fn an_occurrence_that_is_not_done_does_not_stop_the_repetition() {
    let (kit, time) = kit();
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).visibility(SECOND * 90_000).build().unwrap();
    let cron = Cron::new(&jobs).every("hourly", "0 * * * *", NewJob::new("x")).unwrap();
    let mut running = Vec::new();
    for _ in 0..5 {
        let planned = cron.tick().await.unwrap();
        assert_eq!(planned.scheduled, 1);
        time.advance(SECOND * 3600);
        running.push(one(jobs.claim_due(10, None).await.unwrap()));
        if running.len() == 1 {
            let _ = jobs.dead_letter(&running[0].receipt, "no", None).await.unwrap();
        }
    }
    assert_eq!(running.len(), 5);
}

fn terms(stock: u32, hold: Option<Duration>) -> Terms {
    let window = Window::ForNext(SECOND * 3600);
    Terms { stock, window, hold, keep: SECOND * 60, outbox_max: 1000 }
}

/// S3, flash sale: there was no window, and no way back for what nobody paid.
#[tokio::test]
async fn a_reservation_that_times_out_goes_back_on_sale() {
    let (kit, time) = kit();
    let sale = Sale::new(&kit, "sale").unwrap();
    let _ = sale.open(&terms(1, Some(SECOND * 60))).await.unwrap();
    let Bought::Ordered { order, .. } = sale.buy("ann", None).await.unwrap() else {
        panic!("not ordered")
    };
    assert_eq!(sale.buy("bob", None).await, Ok(Bought::SoldOut { held: 1 }));
    time.advance(SECOND * 60);
    assert!(matches!(sale.buy("bob", None).await, Ok(Bought::Ordered { .. })));
    assert_eq!(sale.pay("ann", &order).await, Ok(Paid::Expired));
    assert_eq!(sale.order("ann").await, Ok(None));
    time.advance(SECOND * 60);
    // The user whose reservation it was may try again, and gets another order.
    let Bought::Ordered { order: second, .. } = sale.buy("bob", None).await.unwrap() else {
        panic!("not ordered")
    };
    assert_eq!(sale.pay("bob", &second).await, Ok(Paid::Paid));
    time.advance(SECOND * 600);
    assert_eq!(sale.reclaim().await, Ok(0));
    let kinds: Vec<EventKind> =
        sale.outbox(None, 100).await.unwrap().into_iter().map(|event| event.kind).collect();
    use EventKind::{Expired, Ordered};
    assert_eq!(kinds, [Ordered, Expired, Ordered, Expired, Ordered, EventKind::Paid]);
    let stats = sale.stats().await.unwrap().unwrap();
    assert_eq!((stats.stock, stats.held, stats.paid, stats.expired), (0, 0, 1, 2));
}

#[tokio::test]
async fn one_can_buy_while_the_window_is_open() {
    let (kit, time) = kit();
    let sale = Sale::new(&kit, "sale").unwrap();
    let now = UNIX_EPOCH + Duration::from_millis(time.now_ms() as u64);
    let window = Window::Between(now + SECOND * 10, now + SECOND * 20);
    let _ = sale.open(&Terms { window, ..terms(5, None) }).await.unwrap();
    let early = sale.buy("ann", None).await;
    assert_eq!(early, Ok(Bought::Closed { opens_in: Some(SECOND * 10) }));
    time.advance(SECOND * 10);
    assert!(matches!(sale.buy("ann", None).await, Ok(Bought::Ordered { .. })));
    time.advance(SECOND * 10);
    assert_eq!(sale.buy("bob", None).await, Ok(Bought::Closed { opens_in: None }));
    assert!(matches!(sale.buy("ann", None).await, Ok(Bought::Already { .. })));
    time.advance(SECOND * 61);
    assert_eq!(sale.stats().await, Ok(None));
    assert_eq!(sale.buy("ann", None).await, Ok(Bought::Missing));
}
