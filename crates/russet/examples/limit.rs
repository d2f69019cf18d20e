//! Limits of an API: a burst, a daily quota, two at a time. `RUSSET_URL` names a server; without
//! it, it runs in this process.

use russet::limit::{Decision, Entry, Limit, Limiter, Outage, Period};
use russet::{Kit, RequestId};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let limits = [
        Limit::bucket("burst", 5, Duration::from_secs(1))?,
        Limit::quota("daily", 1000, Period::Day)?,
    ];
    let api = Limiter::new(&kit, "api", limits, Outage::LocalShare { processes: 4 })?;
    let subject = format!("example-{}", std::process::id());

    for number in 1..=6 {
        match api.check(&subject, 1, None).await? {
            Decision::Allowed(_) => println!("request {number}: allowed"),
            Decision::Denied(denied) => {
                println!("request {number}: denied, again in {:?}", denied.retry_after);
            }
        }
    }
    let peek = api.peek(&subject, 1).await?;
    for (name, value) in peek.headers() {
        println!("  {name}: {value}");
    }

    // A request that failed does not count; sent again, it is charged again, once.
    api.reset(&subject).await?;
    let request = RequestId::random();
    let first = api.check(&subject, 5, Some(&request)).await?;
    if let Some(charge) = first.charge() {
        println!("given back: {:?}", api.refund(charge).await?.returned);
    }
    assert!(api.check(&subject, 5, Some(&request)).await?.is_allowed());
    assert!(api.check(&subject, 5, Some(&request)).await?.is_allowed(), "the same request");

    let limits = [Limit::concurrency("at-once", 2, Duration::from_secs(30))?];
    let exports = Limiter::new(&kit, "exports", limits, Outage::Deny)?;
    let first = exports.enter(&subject, 1, None).await?;
    let second = exports.enter(&subject, 1, None).await?;
    assert!(matches!(exports.enter(&subject, 1, None).await?, Entry::Denied(_)));
    if let Entry::Admitted(permit) = first {
        permit.release().await?;
    }
    assert!(matches!(exports.enter(&subject, 1, None).await?, Entry::Admitted(_)));
    drop(second);
    println!("{:?}", api.stats());
    Ok(())
}
