//! Mails that are sent later, tried again, and given up after a while.
//!
//! `cargo run -p russet --example queue`, with `RUSSET_URL` set for a server.

use russet::Kit;
use russet::queue::{Bounds, Due, Failure, Jobs, NewJob, Worker};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let bounds = Bounds { capacity: 10_000, ttl: Duration::from_secs(60) };
    let name = format!("example-{}", std::process::id());
    let mails = Jobs::builder(&kit, &name, bounds)
        .visibility(Duration::from_secs(5))
        .attempts_max(2)
        .group_limit(1)
        .build()?;

    let worker = Worker::builder(mails.clone()).concurrency(4).run(|job| async move {
        let text = String::from_utf8_lossy(&job.payload).into_owned();
        println!("attempt {}: {text}", job.attempt);
        match text.contains("nowhere") {
            true => Err(Failure::retry_after(Duration::from_millis(50), "no such address")),
            false => Ok(()),
        }
    })?;

    let soon = Due::In(Duration::from_millis(200));
    for mail in [
        NewJob::new("welcome ann").id("welcome-ann").group("ann"),
        NewJob::new("welcome ann").id("welcome-ann").group("ann"),
        NewJob::new("remind ann").group("ann").due(soon),
        NewJob::new("welcome nowhere").priority(1),
    ] {
        println!("{:?}", mails.schedule(&mail, None).await?);
    }
    while mails.stats().await?.acked < 2 || mails.stats().await?.dead < 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for letter in mails.dead_letters(0, 10).await? {
        println!("given up after {} attempts: {}", letter.attempts, letter.reason);
    }
    println!("{:?}", worker.shutdown(Duration::from_secs(5)).await);
    Ok(())
}
