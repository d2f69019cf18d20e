//! A slow lookup happens once, and an update is seen at once.

use russet::Kit;
use russet::backend::TracksChanges;
use russet::cache::{Cache, LoadError, Near, Policy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let policy = Policy::new(Duration::from_secs(60))
        .stale_for(Duration::from_secs(600))
        .null_for(Duration::from_secs(5))
        .early(1.0);
    // Copies in this process, which the server ends when they change. Not on a cluster.
    let policy = match kit.tracks_changes() {
        TracksChanges::No => policy,
        TracksChanges::Yes | TracksChanges::Needless => policy.near(Near::new()),
    };
    let prices: Cache<u32> = Cache::new(&kit, "prices", policy)?;
    let database = Arc::new(AtomicU32::new(100));
    let load = {
        let database = database.clone();
        move || {
            let database = database.clone();
            async move {
                println!("the database is asked");
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok::<_, LoadError>(Some(database.load(Ordering::SeqCst)))
            }
        }
    };

    prices.invalidate("apple").await?;
    let asked: Vec<_> = (0..100)
        .map(|_| {
            let (prices, load) = (prices.clone(), load.clone());
            tokio::spawn(async move { prices.fetch("apple", load).await })
        })
        .collect();
    for price in asked {
        assert_eq!(price.await??, Some(100));
    }

    let change = prices.change("apple")?;
    database.store(120, Ordering::SeqCst);
    println!("the price has changed: {:?}", change.done().await?);
    for _ in 0..1000 {
        assert_eq!(prices.fetch("apple", load.clone()).await?, Some(120));
    }
    println!("now it is {:?}", prices.fetch("apple", load).await?);
    println!("{:?}", prices.stats());
    Ok(())
}
