//! A profile as a record, an index of orders, and a cart whose sums always agree. `RUSSET_URL`
//! names a server; without it all is in this process.

use russet::Kit;
use russet::object::{
    Combine, DraftSettings, Drafts, Expected, Index, IndexSettings, LineItem, Loaded,
    ObjectSettings, Objects, Record,
};
use std::time::Duration;

#[derive(Record, Debug)]
#[record(purpose = "profile", schema = 1)]
struct Profile {
    display_name: String,
    #[record(default)]
    login_count: u32,
    /// Gone after five minutes.
    #[record(ttl_ms = 300_000)]
    challenge: Option<String>,
}

/// What the hot path reads and writes.
#[derive(Record, Debug)]
#[record(view_of = Profile)]
struct Shown {
    display_name: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let (hour, id) = (Duration::from_secs(3600), format!("ann-{}", std::process::id()));

    let profiles = Objects::<Profile>::new(&kit, ObjectSettings { ttl: hour, bytes_max: 8192 })?;
    let profile = Profile { display_name: "Ann".into(), login_count: 0, challenge: None };
    profiles.put(&id, &profile, None).await?;
    match profiles.load_view::<Shown>(&id).await? {
        Loaded::Found(found) => {
            let changed = Shown { display_name: format!("{} B.", found.value.display_name) };
            let expected = Expected::Version(found.version);
            println!("{:?}", profiles.update(&id, expected, &changed, None).await?);
        }
        Loaded::Missing => println!("expired"),
        Loaded::Corrupt(fault) => println!("{fault}"),
    }
    println!("{:?}", profiles.increment(&id, Profile::LOGIN_COUNT, 1, None).await?);

    let orders = Index::new(&kit, &id, IndexSettings { members_max: 1000, ttl: hour })?;
    let _added = orders.add("open", "order-1").await?;
    println!("{:?}", orders.move_to("open", "paid", "order-1").await?);
    println!("{} open or paid", orders.count(Combine::Any, &["open", "paid"]).await?);

    let carts = Drafts::new(&kit, DraftSettings { ttl: hour, items_max: 100 })?;
    let _created = carts.create(&id, "ann", "EUR", None).await?;
    let book = LineItem { sku: "book".into(), quantity: 2, unit_minor: 1250 };
    println!("{:?}", carts.set_item(&id, &book, Some(1), None).await?);
    println!("{:?}", carts.apply_discount(&id, 500, Some(2), None).await?);
    Ok(())
}
