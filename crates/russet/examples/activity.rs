//! Who was here today, how often, and what was seen before. `RUSSET_URL` names a server; without it
//! all is in this process.

use russet::activity::{
    DailyActive, DailySettings, Dedupe, DedupeSettings, Presence, PresenceSettings, Recent,
    RecentSettings, Repeats, SignInSettings, SignIns,
};
use russet::{Day, Kit};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let tenant = format!("acme-{}", std::process::id());

    let settings = DailySettings { members_max: 1_000_000, retention: 90 * DAY, shards: 4 };
    let active = DailyActive::new(&kit, &tenant, settings)?;
    println!("{:?}", active.mark(["ann", "ben", "cat", "ann"]).await?);
    println!("active today: {}", active.count(Day::today()).await?);

    let settings = DedupeSettings { window: DAY / 24, ids_max: 100_000, shards: 4 };
    let events = Dedupe::new(&kit, &tenant, settings)?;
    for event in ["payment-1", "payment-2", "payment-1"] {
        println!("{event}: {:?}", events.first_seen(event, None).await?);
    }

    let settings = SignInSettings { utc_offset_minutes: 60, retention: 400 * DAY };
    let sign_ins = SignIns::new(&kit, settings)?;
    println!("{:?}", sign_ins.sign_in(format!("{tenant}-ann")).await?);

    let settings = RecentSettings { items_max: 20, ttl: 30 * DAY, repeats: Repeats::Move };
    let searches = Recent::new(&kit, settings)?;
    for text in ["shoes", "hats", "shoes"] {
        searches.push(&tenant, text, None).await?;
    }
    println!("{} searches", searches.list(&tenant, 10).await?.len());

    let timeout = Duration::from_secs(30);
    let rooms = Presence::new(&kit, PresenceSettings { timeout, members_max: 1000, shards: 1 })?;
    println!("{:?}", rooms.beat(&tenant, "connection-1").await?);
    println!("present: {}", rooms.count(&tenant).await?);
    Ok(())
}
