//! An order that goes from state to state, with its fields and its version, and two seats that are
//! sold by a decision of the program. `RUSSET_URL` names a server; without it all is in this
//! process.

use russet::state::{Applied, Change, Condition, Decision, Machine, Optimistic, Writes};
use russet::{Kit, RequestId};
use std::time::Duration;

russet::machine! {
    /// The life of an order.
    pub enum Order { Draft, Placed, Paid, Cancelled }
    pub Place: Draft => Placed;
    pub Pay: Placed => Paid;
    pub Cancel: Draft | Placed => Cancelled;
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let hour = Duration::from_secs(3600);
    let orders = Machine::<Order>::new(&kit, hour)?;
    let id = format!("order-{}", std::process::id());
    let opened = orders.open(&id, Order::Draft, [("items_count", "2")], None).await?;
    println!("{opened:?}");

    // The same request, however often it is sent, is one transition.
    let request = RequestId::random();
    for _ in 0..2 {
        let change = Change::new(Place)
            .require(Condition::at_least("items_count", 1))
            .set("address", "Main Street 1");
        println!("{:?}", orders.apply(&id, change, Some(&request)).await?);
    }
    match orders.apply(&id, Change::new(Pay).at_version(1), None).await? {
        Applied::WrongVersion { version, .. } => println!("someone was faster: now {version}"),
        other => println!("{other:?}"),
    }

    let seats = Optimistic::new(&kit, "hall 3", &["free", "sold"], hour)?;
    let sold = seats.update(None, |now| {
        let (free, sold) = (now.int("free").unwrap_or(100), now.int("sold").unwrap_or(0));
        match free {
            2.. => {
                let writes = Writes::new().set_int("free", free - 2).set_int("sold", sold + 2);
                Decision::Write(writes, sold + 2)
            }
            _ => Decision::Leave(sold),
        }
    });
    println!("{:?}", sold.await?);
    Ok(())
}
