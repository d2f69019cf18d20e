//! An order is placed once, however often the client sends it.

use russet::Kit;
use russet::idempotency::{Failure, Idempotency, IdempotencyKey, Run, Ttls};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let ttls = Ttls { claim: Duration::from_secs(30), result: Duration::from_secs(24 * 3600) };
    let orders = Idempotency::new(&kit, "create-order", ttls)?;
    // As a client would send it in the header Idempotency-Key.
    let key = IdempotencyKey::new("acme", format!("{:x}", rand::random::<u64>()));

    for attempt in 1..=3 {
        let place_order = || async move {
            println!("attempt {attempt}: the order is placed");
            Ok::<_, Failure>(format!("order of attempt {attempt}"))
        };
        match orders.idempotent(&key, "3 apples", place_order).await? {
            Run::Done(order) => println!("attempt {attempt}: done, {order}"),
            Run::Replay(order) => println!("attempt {attempt}: was done before, {order}"),
            other => println!("attempt {attempt}: {other:?}"),
        }
    }
    let other_request = orders.idempotent(&key, "5 pears", || async { Ok(String::new()) }).await?;
    println!("the same key for something else: {other_request:?}");
    println!("{:?}", orders.stats());
    Ok(())
}
