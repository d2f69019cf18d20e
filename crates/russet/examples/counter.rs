//! Counters per day, spread over slots, packed; and ids.

use russet::Kit;
use russet::counter::{
    Ids, Overflow, PackedCounters, PackedOutcome, ShardedCounter, Width, WindowCounter, Windows,
};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let subject = format!("example-{}", std::process::id());

    let orders = WindowCounter::new(&kit, "orders", Windows::of(DAY)?.keep(7)?)?;
    let today = orders.add(&subject, 3, None).await?;
    println!("{} orders today, which ends in {:?}", today.count, today.ends_after);
    println!("{} yesterday", orders.read(&subject, 1).await?.count);

    let views = ShardedCounter::new(&kit, "views", Windows::of(DAY)?, 16)?;
    for _ in 0..100 {
        views.add(&subject, 1, None).await?;
    }
    println!("{} views", views.exact(&subject, 0).await?.count);

    let fields = [("warnings", Width::unsigned(4)?), ("karma", Width::signed(16)?)];
    let packed = PackedCounters::new(&kit, "profile", fields, Overflow::Refuse, DAY)?;
    match packed.add(&subject, &[("karma", -5), ("warnings", 1)], None).await? {
        PackedOutcome::Added(values) => println!("karma and warnings: {values:?}"),
        PackedOutcome::Overflow { field } => println!("{field} is full"),
    }

    let ids = Ids::new(&kit, "orders", 100)?;
    println!("ids: {} {} {}", ids.next().await?, ids.next().await?, ids.next().await?);
    Ok(())
}
