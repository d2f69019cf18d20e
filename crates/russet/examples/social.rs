//! Likes, follows, a feed and shops nearby. `RUSSET_URL` names a server; without it all is in this
//! process.

use russet::Kit;
use russet::social::{
    Feed, FeedSettings, FollowSettings, Follows, LikeSettings, Likes, Nearby, NearbySettings, Point,
};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let ttl = Duration::from_secs(90 * 24 * 60 * 60);
    let name = |what: &str| format!("{what}-{}", std::process::id());

    let likes = Likes::new(&kit, LikeSettings { likers_max: 1_000_000, ttl, shards: 4 })?;
    // Said twice it is the same.
    for user in ["ann", "ben", "ann"] {
        println!("{user}: {:?}", likes.like(name("post"), user).await?);
    }

    let settings = FollowSettings { following_max: 5000, followers_max: 1_000_000, ttl };
    let follows = Follows::new(&kit, settings)?;
    for reader in ["ann", "ben"] {
        let _follow = follows.follow(name(reader), name("star")).await?;
    }
    let feed = Feed::new(&kit, &follows, FeedSettings { inbox_max: 1000, ttl })?;
    for post in 0..5_u64 {
        println!("{:?}", feed.publish(name("star"), post).await?);
    }
    let mut cursor = None;
    loop {
        let page = feed.scroll(name("ann"), cursor.as_ref(), 2).await?;
        println!("a page of {} posts", page.posts.len());
        let Some(next) = page.next else { break };
        cursor = Some(next);
    }

    let shops = Nearby::new(&kit, NearbySettings { places_max: 100_000, ttl })?;
    let _placed = shops.put(name("coffee"), "corner", Point::new(13.40, 52.52)?).await?;
    let _placed = shops.put(name("coffee"), "station", Point::new(13.37, 52.52)?).await?;
    let here = Point::new(13.41, 52.52)?;
    for found in shops.search(name("coffee"), here, 5000.0, None, 10).await?.places {
        println!("{} is {:.0} m away", found.place.as_str().unwrap_or("?"), found.distance_m);
    }
    Ok(())
}
