//! A feature that some see, and the switch that takes it from all of them at once. `RUSSET_URL`
//! names a server; without it all is in this process.

use russet::Kit;
use russet::flag::{Definition, FlagTerms, Flags, LocalFlags, Percent, Subject};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let flags = Flags::new(&kit, "acme", FlagTerms::new(Duration::from_secs(90 * 86_400)))?;
    let checkout = Definition::on()
        .when("country", ["DE", "AT"])
        .rollout(Percent::whole(20)?)
        .group("beta")
        .allow("ann");
    flags.define("new-checkout", &checkout, "ann").await?;
    flags.join("beta", "ben").await?;

    // Looked at without a call; a change is seen within a second.
    let local = LocalFlags::new(&flags, Duration::from_secs(1), Duration::from_secs(300))?;
    for id in ["ann", "ben", "user-1", "user-2"] {
        let subject = Subject::new(id).with("country", "DE");
        println!("{id}: {:?}", local.evaluate("new-checkout", &subject).await?);
    }
    flags.kill("new-checkout", "on-call").await?;
    println!("{:?}", flags.evaluate("new-checkout", &Subject::new("ann")).await?);
    for entry in flags.audit(5).await? {
        println!("{} {} {}", entry.actor, entry.action, entry.flag);
    }
    Ok(())
}
