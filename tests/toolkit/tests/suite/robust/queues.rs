//! Queues whose records are corrupt, whose groups have limits, and that have lost a key.

use super::{HOUR, command, flat};
use crate::raw_step;
use russet::key::{Family, Key};
use russet::queue::{Acked, Bounds, Claimed, Cron, Jobs, NewJob, Reliable, Source, Stream, Worker};
use russet::{Error, Kit};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_group_goes_on_as_soon_as_one_of_it_ends
    jobs_behind_many_that_must_wait_are_found_at_once
    a_corrupt_record_stops_nobody
    a_corrupt_record_of_a_list_stops_nobody
    a_group_keeps_its_limit_when_its_counts_are_lost
    a_repeated_job_that_fails_keeps_none_from_being_planned
    a_stream_tells_of_what_came_before_the_wait
    an_entry_that_was_given_back_is_not_late
}

const BOUNDS: Bounds = Bounds { capacity: 1000, ttl: HOUR };

fn part(kit: &Kit, purpose: &'static str, part: &'static str) -> Key {
    kit.keys(Family { purpose, version: 1 }, "jobs").unwrap().key(part)
}

async fn add(jobs: &Jobs, id: &str, group: &str) {
    let job = NewJob::new(id).id(id).group(group);
    let _ = jobs.schedule(&job, None).await.unwrap();
}

fn payloads(claimed: Claimed) -> Vec<String> {
    let text = |job: russet::queue::Job| String::from_utf8(job.payload).unwrap();
    claimed.jobs().into_iter().map(text).collect()
}

/// The next job of a group with a limit was not ready before its worker looked again by itself: one
/// job per poll.
async fn a_group_goes_on_as_soon_as_one_of_it_ends(kit: Kit) {
    let builder = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(1).visibility(HOUR);
    let jobs = builder.build().unwrap();
    for id in ["a", "b", "c", "d"] {
        add(&jobs, id, "g").await;
    }
    let (done, mut all) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::builder(jobs.clone()).concurrency(4).poll(HOUR).run(move |job| {
        let done = done.clone();
        async move {
            // Long enough that the worker waits for more.
            tokio::time::sleep(Duration::from_millis(30)).await;
            done.send(job.payload)?;
            Ok(())
        }
    });
    let worker = worker.unwrap();
    for _ in 0..4 {
        let job = tokio::time::timeout(Duration::from_secs(30), all.recv()).await;
        assert!(job.is_ok_and(|job| job.is_some()), "a group rests until its worker polls");
    }
    let _ = worker.shutdown(HOUR).await;
}

/// A claim that had looked at as many jobs as it may said that there was nothing for half a minute,
/// with jobs behind them that could run.
async fn jobs_behind_many_that_must_wait_are_found_at_once(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(1).build().unwrap();
    for number in 0..250 {
        add(&jobs, &number.to_string(), "g").await;
    }
    add(&jobs, "free", "").await;
    assert_eq!(payloads(jobs.claim_due(1, None).await.unwrap()), ["0"]);
    loop {
        match jobs.claim_due(1, None).await.unwrap() {
            Claimed::Empty { next_in } => assert_eq!(next_in, Some(Duration::ZERO)),
            found => break assert_eq!(payloads(found), ["free"]),
        }
    }
}

/// One record that was none failed every claim after it.
async fn a_corrupt_record_stops_nobody(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    for (id, record) in [("bad", "\u{7f}no job"), ("worse", "\u{c1}"), ("good", "")] {
        add(&jobs, id, "").await;
        if !record.is_empty() {
            command(&kit, "HSET", &part(&kit, "jobs", "jobs"), &[id, record]).await;
        }
    }
    // Nobody knows where they were: they are looked for.
    command(&kit, "UNLINK", &part(&kit, "jobs", "ready"), &[]).await;
    let mut found = Vec::new();
    for _ in 0..4 {
        found.extend(jobs.claim_due(10, None).await.unwrap().jobs());
    }
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].payload, b"good");
    assert_eq!(jobs.ack(&found[0].receipt, None).await.unwrap(), Acked::Acked);
    let letters = jobs.dead_letters(0, 10).await.unwrap();
    assert_eq!(letters.len(), 2);
    assert!(letters.iter().all(|letter| letter.reason == "CORRUPT record"), "{letters:?}");
    assert!(letters.iter().any(|letter| letter.payload == b"\x7fno job"));
    let stats = jobs.stats().await.unwrap();
    assert_eq!((stats.ready, stats.running, stats.dead), (0, 0, 2));
    // So is a letter that is none.
    command(&kit, "HSET", &part(&kit, "jobs", "graves"), &["bad", "\u{7f}"]).await;
    assert_eq!(jobs.dead_letters(0, 10).await.unwrap().len(), 2);
    let requeued = jobs.requeue(&letters[0].id, None).await;
    assert!(requeued.is_ok() || matches!(requeued, Err(Error::Corrupt(_))), "{requeued:?}");
}

async fn a_corrupt_record_of_a_list_stops_nobody(kit: Kit) {
    let jobs = Reliable::builder(&kit, "jobs", BOUNDS).build().unwrap();
    for id in ["bad", "good"] {
        let _ = jobs.push_unique(&id.into(), id, None).await.unwrap();
    }
    command(&kit, "HSET", &part(&kit, "reliable", "jobs"), &["bad", "\u{7f}"]).await;
    assert_eq!(payloads(jobs.take(10, None).await.unwrap()), ["good"]);
    assert_eq!(jobs.dead_letters(0, 10).await.unwrap()[0].reason, "CORRUPT record");
}

/// With the counts of a group lost, an acknowledgement made the rest of it look counted, and as
/// many jobs more could run.
async fn a_group_keeps_its_limit_when_its_counts_are_lost(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).group_limit(2).build().unwrap();
    for id in ["a", "b", "c", "d", "e"] {
        add(&jobs, id, "g").await;
    }
    let running = jobs.claim_due(5, None).await.unwrap().jobs();
    assert_eq!(running.len(), 2);
    command(&kit, "UNLINK", &part(&kit, "jobs", "meta"), &[]).await;
    assert_eq!(jobs.ack(&running[0].receipt, None).await.unwrap(), Acked::Acked);
    add(&jobs, "f", "g").await;
    let more = jobs.claim_due(5, None).await.unwrap().jobs();
    assert_eq!(more.len(), 1, "{more:?}");
}

/// A repeated job that could not be planned kept those behind it from being planned; one that never
/// comes was accepted.
async fn a_repeated_job_that_fails_keeps_none_from_being_planned(kit: Kit) {
    let jobs = Jobs::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let never = Cron::new(&jobs).every("never", "0 0 30 2 *", NewJob::new("x"));
    assert!(matches!(never, Err(Error::Invalid(_))), "{never:?}");
    let cron = Cron::new(&jobs).every("bad", "* * * * *", NewJob::new("x").group("a\0"));
    let cron = cron.unwrap().every("good", "* * * * *", NewJob::new("y")).unwrap();
    assert!(matches!(cron.tick().await, Err(Error::Invalid(_))));
    let stats = jobs.stats().await.unwrap();
    assert_eq!(stats.scheduled, 1);
}

/// What came between a claim that found nothing and the wait for news was no news.
async fn a_stream_tells_of_what_came_before_the_wait(kit: Kit) {
    let stream = Stream::builder(&kit, "jobs", BOUNDS).build().unwrap();
    for entry in ["first", "second"] {
        assert!(stream.claim(1, None).await.unwrap().jobs().is_empty());
        let _ = stream.add(entry, None).await.unwrap();
        let wait = tokio::time::timeout(Duration::from_secs(30), stream.wait(HOUR));
        wait.await.expect("it waits for ever").unwrap();
        let job = stream.claim(1, None).await.unwrap().jobs().remove(0);
        assert_eq!(stream.ack(&job.receipt, None).await.unwrap(), Acked::Acked);
    }
}

/// An entry that was given back, and waited for its time, counted as one that nobody had ended.
async fn an_entry_that_was_given_back_is_not_late(kit: Kit) {
    let stream = Stream::builder(&kit, "jobs", BOUNDS).build().unwrap();
    let _ = stream.add("x", None).await.unwrap();
    let job = stream.claim(1, None).await.unwrap().jobs().remove(0);
    let _ = stream.retry_after(&job.receipt, Duration::ZERO, "why", None).await.unwrap();
    let keys = ["request", "entries", "dead"].map(|name| part(&kit, "stream", name));
    // A visibility that is shorter than the stream's own: it was given back long ago.
    let args = ["0", "1", "1", "10", "3600000", "10"];
    let reply = raw_step(&kit, "stream_claim", &keys, &args).await.unwrap();
    let shown = flat(&reply);
    assert!(shown.starts_with("CLAIMED") && shown.ends_with("expired 0"), "{shown}");
}
