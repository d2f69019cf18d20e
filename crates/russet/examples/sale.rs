//! A hundred people want one of ten items; a database takes in the orders.
//!
//! `cargo run -p russet --example sale`, with `RUSSET_URL` set for a server.

use russet::sale::{Bought, Ledger, OrderEvent, Position, Sale, Terms, Window};
use russet::{Kit, RequestId};
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::Duration;

/// Rows and position change in one transaction: here, under one lock.
#[derive(Default)]
struct Database(Mutex<(Option<Position>, Vec<OrderEvent>)>);

impl Database {
    fn tables(&self) -> std::sync::MutexGuard<'_, (Option<Position>, Vec<OrderEvent>)> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl Ledger for Database {
    type Error = Infallible;

    async fn position(&self) -> Result<Option<Position>, Infallible> {
        Ok(self.tables().0.clone())
    }

    async fn apply(
        &self,
        after: Option<&Position>,
        events: &[OrderEvent],
    ) -> Result<(), Infallible> {
        let mut tables = self.tables();
        if tables.0.as_ref() == after {
            tables.1.extend_from_slice(events);
            tables.0 = events.last().map(|event| event.position.clone());
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let sale = Sale::new(&kit, format!("example-{}", std::process::id()))?;
    let terms = Terms {
        stock: 10,
        window: Window::ForNext(Duration::from_secs(60)),
        hold: Some(Duration::from_secs(30)),
        keep: Duration::from_secs(60),
        outbox_max: 1000,
    };
    println!("{:?}", sale.open(&terms).await?);

    let mut sold = 0;
    for user in 0..100 {
        let (user, request) = (format!("user-{user}"), RequestId::random());
        if let Bought::Ordered { order, .. } = sale.buy(&user, Some(&request)).await? {
            sold += 1;
            println!("{user}: {:?}", sale.pay(&user, &order).await?);
        }
    }
    let database = Database::default();
    let events = sale.drain(&database).await?;
    println!("{sold} sold, {events} events in the database: {:?}", sale.stats().await?);
    Ok(())
}
