//! One of several processes does the work, and what it writes can be told from what a process
//! writes that has lost its lease. `RUSSET_URL` names a server; without it all is in this process.

use russet::Kit;
use russet::lease::{Attempt, Fenced, FencedWrite, Lease, Terms};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    // Free ten seconds after a crash; kept alive for ten minutes at most.
    let terms = Terms::new(Duration::from_secs(10)).keep_alive(Duration::from_secs(600));
    let lease = Lease::new(&kit, "nightly report", terms)?;
    let report = Fenced::new(&kit, "nightly report", Duration::from_secs(86_400))?;

    let guard = match lease.acquire(Duration::from_secs(5)).await? {
        Attempt::Held(guard) => guard,
        Attempt::Busy { retry_after } => {
            println!("another process has it, for {retry_after:?} at least");
            return Ok(());
        }
        Attempt::Full => return Ok(()),
    };
    println!("held, with the number {}", guard.fence());

    let work = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        "42 orders"
    };
    let Some(text) = guard.while_held(work).await else {
        println!("lost while working: nothing is written");
        return Ok(());
    };
    match report.write(&guard, text).await? {
        FencedWrite::Written => println!("written"),
        FencedWrite::Stale { latest } => println!("too late: {} was faster", latest.fence),
    }
    println!("given back: {:?}", guard.release().await?);
    Ok(())
}
