//! Likes, follows, feeds and places nearby.

use russet::social::{
    Feed, FeedCursor, FeedSettings, Follow, FollowSettings, Follows, Like, LikeSettings, Likes,
    Nearby, NearbySettings, Placed, Point, Published, Unfollow, Unlike,
};
use russet::{Error, Kit, ManualTime, Member, Options};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_like_is_set_not_toggled
    the_first_likers
    likes_of_many_tasks
    likes_are_bounded
    follows_of_both_sides
    mutual_follows_are_not_common_follows
    too_many_follows
    followers_page_by_page
    follows_and_unfollows_at_the_same_time_agree
    a_half_done_follow_is_repaired
    a_post_goes_to_all_followers
    a_publication_that_was_cut_off_goes_on
    scrolling_neither_skips_nor_repeats
    inboxes_are_bounded
    places_nearby_page_by_page
    places_are_bounded
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn likes(kit: &Kit, shards: u32) -> Likes {
    Likes::new(kit, LikeSettings { likers_max: 1000, ttl: DAY, shards }).unwrap()
}

fn follows(kit: &Kit) -> Follows {
    let settings = FollowSettings { following_max: 1000, followers_max: 2000, ttl: DAY };
    Follows::new(kit, settings).unwrap()
}

fn feed(kit: &Kit, inbox_max: u32) -> (Follows, Feed) {
    let follows = follows(kit);
    let feed = Feed::new(kit, &follows, FeedSettings { inbox_max, ttl: DAY }).unwrap();
    (follows, feed)
}

/// S3 likes: a toggle that is called again after a lost reply takes the like back; and the look
/// before the write lets two in.
async fn a_like_is_set_not_toggled(kit: Kit) {
    for shards in [1, 3] {
        let (likes, post) = (likes(&kit, shards), format!("post-{shards}"));
        assert_eq!(likes.like(&post, "ann").await, Ok(Like::New));
        assert_eq!(likes.like(&post, "ann").await, Ok(Like::Already));
        assert_eq!(likes.liked_by(&post, ["ben", "ann"]).await, Ok(vec![false, true]));
        assert_eq!(likes.count(&post).await, Ok(1));
        assert_eq!(likes.unlike(&post, "ann").await, Ok(Unlike::Removed));
        assert_eq!(likes.unlike(&post, "ann").await, Ok(Unlike::NotLiked));
        assert_eq!(likes.count(&post).await, Ok(0));
    }
}

async fn the_first_likers(kit: Kit) {
    let likes = likes(&kit, 3);
    for user in ["zoe", "ann", "mia", "bob"] {
        let _like = likes.like("post", user).await.unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    // Again is not anew.
    let _like = likes.like("post", "zoe").await.unwrap();
    let first: Vec<Member> =
        likes.first("post", 3).await.unwrap().into_iter().map(|it| it.user).collect();
    assert_eq!(first, [Member::from("zoe"), "ann".into(), "mia".into()]);
    let last = likes.last("post", 1).await.unwrap();
    assert_eq!(last[0].user, "bob");
    assert_eq!(likes.first("post", 0).await, Ok(Vec::new()));
}

async fn likes_of_many_tasks(kit: Kit) {
    let likes = Arc::new(likes(&kit, 4));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32_u64 {
        let likes = likes.clone();
        tasks.spawn(async move {
            let mut new = 0;
            for user in 0..20_u64 {
                new += u32::from(likes.like("post", user).await.unwrap() == Like::New);
            }
            // Each task has a user of its own who changes his mind.
            let own = format!("own-{task}");
            let _like = likes.like("post", &own).await.unwrap();
            let _unlike = likes.unlike("post", &own).await.unwrap();
            new
        });
    }
    let mut new = 0;
    while let Some(ended) = tasks.join_next().await {
        new += ended.unwrap();
    }
    assert_eq!((new, likes.count("post").await), (20, Ok(20)));
}

async fn likes_are_bounded(kit: Kit) {
    let settings = LikeSettings { likers_max: 2, ttl: Duration::from_millis(150), shards: 1 };
    let likes = Likes::new(&kit, settings).unwrap();
    assert_eq!(likes.like("post", "a").await, Ok(Like::New));
    assert_eq!(likes.like("post", "b").await, Ok(Like::New));
    assert_ne!(likes.like("post", "c").await, Ok(Like::Already));
    crate::eventually(async || likes.count("post").await.unwrap() == 0).await;
    let bad = LikeSettings { ttl: Duration::ZERO, ..settings };
    assert!(matches!(Likes::new(&kit, bad), Err(Error::Invalid(_))));
}

async fn follows_of_both_sides(kit: Kit) {
    let follows = follows(&kit);
    assert_eq!(follows.follow("ann", "ben").await, Ok(Follow::New));
    assert_eq!(follows.follow("ann", "ben").await, Ok(Follow::Already));
    assert!(follows.is_following("ann", "ben").await.unwrap());
    assert!(!follows.is_following("ben", "ann").await.unwrap());
    assert_eq!(follows.counts("ann").await, Ok((1, 0)));
    assert_eq!(follows.counts("ben").await, Ok((0, 1)));
    assert_eq!(follows.unfollow("ann", "ben").await, Ok(Unfollow::Removed));
    assert_eq!(follows.unfollow("ann", "ben").await, Ok(Unfollow::NotFollowed));
    assert_eq!(follows.counts("ben").await, Ok((0, 0)));
    assert!(matches!(follows.follow("ann", "ann").await, Err(Error::Invalid(_))));
    assert_eq!(follows.repair("ann").await, Ok(0));
}

/// S3 follows: intersecting what two follow gives whom both follow, not who follow each other.
async fn mutual_follows_are_not_common_follows(kit: Kit) {
    let follows = follows(&kit);
    for (user, other) in
        [("ann", "star"), ("ben", "star"), ("ann", "ben"), ("ben", "ann"), ("cat", "ann")]
    {
        let _follow = follows.follow(user, other).await.unwrap();
    }
    assert_eq!(follows.common("ann", "ben", 10).await, Ok(vec!["star".into()]));
    assert_eq!(follows.mutual("ann", 10).await, Ok(vec!["ben".into()]));
    assert!(follows.is_mutual("ann", "ben").await.unwrap());
    assert!(!follows.is_mutual("ann", "star").await.unwrap());
    assert!(!follows.is_mutual("ann", "cat").await.unwrap());
}

async fn too_many_follows(kit: Kit) {
    let settings = FollowSettings { following_max: 2, followers_max: 2, ttl: DAY };
    let follows = Follows::new(&kit, settings).unwrap();
    for user in ["a", "b"] {
        assert_eq!(follows.follow(user, "star").await, Ok(Follow::New));
    }
    assert_eq!(follows.follow("c", "star").await, Ok(Follow::HasTooMany));
    assert!(!follows.is_following("c", "star").await.unwrap());
    assert_eq!(follows.counts("c").await, Ok((0, 0)));
    assert_eq!(follows.follow("a", "x").await, Ok(Follow::New));
    assert_eq!(follows.follow("a", "y").await, Ok(Follow::FollowsTooMany));
    // A follow that died before it heard that the other is full is taken back.
    let family = russet::key::Family { purpose: "social.follows", version: 1 };
    let keys = kit.keys(family, "d").unwrap();
    for part in ["following", "pending"] {
        let zadd = russet::Request::new("ZADD").key(&keys.key(part)).arg(1).arg("star");
        kit.call(&zadd).await.unwrap();
    }
    assert_eq!(follows.repair("d").await, Ok(1));
    assert!(!follows.is_following("d", "star").await.unwrap());
    assert_eq!(follows.repair("d").await, Ok(0));
    // A place comes free.
    assert_eq!(follows.unfollow("a", "star").await, Ok(Unfollow::Removed));
    assert_eq!(follows.follow("c", "star").await, Ok(Follow::New));
}

async fn followers_page_by_page(kit: Kit) {
    let follows = follows(&kit);
    for user in 0..57_u64 {
        let _follow = follows.follow(user, "star").await.unwrap();
    }
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = follows.followers("star", cursor.as_ref(), 10).await.unwrap();
        all.extend(page.users.into_iter().map(|it| it.user));
        // Some go and come while it is read: those who stay are seen once.
        if all.len() == 20 {
            // Who followed in the same millisecond comes in the order of names: the one who goes
            // must be one who was seen.
            let _unfollow = follows.unfollow(all[3].clone(), "star").await.unwrap();
            let _follow = follows.follow("late", "star").await.unwrap();
        }
        let Some(next) = page.next else { break };
        cursor = Some(next);
    }
    let distinct: BTreeSet<Member> = all.iter().cloned().collect();
    assert_eq!((all.len(), distinct.len()), (58, 58));
}

/// The two sides are in different slots; whatever the order in which changes arrive, they agree.
async fn follows_and_unfollows_at_the_same_time_agree(kit: Kit) {
    let follows = follows(&kit);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16_u64 {
        let follows = follows.clone();
        tasks.spawn(async move {
            for round in 0..10_u64 {
                if (task + round) % 2 == 0 {
                    let _follow = follows.follow("ann", "ben").await.unwrap();
                } else {
                    let _unfollow = follows.unfollow("ann", "ben").await.unwrap();
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let is_following = follows.is_following("ann", "ben").await.unwrap();
    let followers = follows.counts("ben").await.unwrap().1;
    assert_eq!(u64::from(is_following), followers);
}

/// S3 feed: what was cut off between two writes stays so. Here the change is pending until the
/// other side has it.
async fn a_half_done_follow_is_repaired(kit: Kit) {
    let follows = follows(&kit);
    // What a call that died after its first step leaves: the other side's key is taken away, and
    // the change is pending again.
    let family = russet::key::Family { purpose: "social.follows", version: 1 };
    let _follow = follows.follow("ann", "ben").await.unwrap();
    let edge = follows.following("ann", None, 1).await.unwrap().users.remove(0);
    let ben = kit.keys(family, "ben").unwrap().key("followers");
    kit.call(&russet::Request::new("DEL").key(&ben)).await.unwrap();
    let pending = kit.keys(family, "ann").unwrap().key("pending");
    let zadd = russet::Request::new("ZADD").key(&pending).arg(edge.since_ms).arg("ben");
    kit.call(&zadd).await.unwrap();
    assert_eq!(follows.counts("ben").await, Ok((0, 0)));
    assert_eq!(follows.repair("ann").await, Ok(1));
    assert_eq!(follows.counts("ben").await, Ok((0, 1)));
    assert_eq!(follows.repair("ann").await, Ok(0));
}

async fn a_post_goes_to_all_followers(kit: Kit) {
    let (follows, feed) = feed(&kit, 100);
    for reader in 0..40_u64 {
        let _follow = follows.follow(reader, "star").await.unwrap();
    }
    let published = feed.publish("star", "post-1").await.unwrap();
    let Published::Done { at_ms, followers: 40 } = published else { panic!("{published:?}") };
    for reader in 0..40_u64 {
        let page = feed.scroll(reader, None, 10).await.unwrap();
        assert_eq!(page.posts.len(), 1);
        assert_eq!((page.posts[0].id.as_str(), page.posts[0].at_ms), (Some("post-1"), at_ms));
    }
    // Again is not anew.
    let again = feed.publish("star", "post-1").await;
    assert_eq!(again, Ok(Published::Done { at_ms, followers: 0 }));
    assert_eq!(feed.posts("star", None, 10).await.unwrap().posts.len(), 1);
    assert_eq!(feed.unfinished("star").await, Ok(Vec::new()));
}

/// S3 feed: fan-out is not resumable.
async fn a_publication_that_was_cut_off_goes_on(kit: Kit) {
    let (follows, feed) = feed(&kit, 100);
    for reader in 0..30_u64 {
        let _follow = follows.follow(reader, "star").await.unwrap();
    }
    // The future is dropped at its first pause that is long enough for other work.
    let feed = Arc::new(feed);
    let task = tokio::spawn({
        let feed = feed.clone();
        async move { feed.publish("star", "post-1").await }
    });
    tokio::task::yield_now().await;
    task.abort();
    let _cut_off_or_done = task.await;
    for _ in 0..2 {
        assert!(matches!(feed.publish("star", "post-1").await, Ok(Published::Done { .. })));
    }
    let moments: BTreeSet<i64> = {
        let mut moments = BTreeSet::new();
        for reader in 0..30_u64 {
            let posts = feed.scroll(reader, None, 10).await.unwrap().posts;
            assert_eq!(posts.len(), 1);
            moments.insert(posts[0].at_ms);
        }
        moments
    };
    assert_eq!(moments.len(), 1);
}

/// S3 feed: a cursor of the lowest moment alone skips or repeats posts of the same moment.
async fn scrolling_neither_skips_nor_repeats(kit: Kit) {
    let (follows, feed) = feed(&kit, 1000);
    let _follow = follows.follow("ann", "star").await.unwrap();
    for post in 0..50_u64 {
        let _published = feed.publish("star", post).await.unwrap();
    }
    // All at the same few moments, written as a batch would.
    let family = russet::key::Family { purpose: "social.feed", version: 1 };
    let inbox = kit.keys(family, "ann").unwrap().key("inbox");
    for post in 0..60 {
        let zadd = russet::Request::new("ZADD").key(&inbox);
        kit.call(&zadd.arg(1_700_000_000_000_i64 + post / 20).arg(format!("tie-{post}")))
            .await
            .unwrap();
    }
    let (mut seen, mut cursor): (Vec<Member>, Option<FeedCursor>) = (Vec::new(), None);
    loop {
        let page = feed.scroll("ann", cursor.as_ref(), 7).await.unwrap();
        seen.extend(page.posts.into_iter().map(|it| it.id));
        // New ones come, and the one at the cursor goes.
        let _published = feed.publish("star", format!("new-{}", seen.len())).await.unwrap();
        let zrem = russet::Request::new("ZREM").key(&inbox).arg(seen.last().unwrap().as_bytes());
        kit.call(&zrem).await.unwrap();
        let Some(next) = page.next else { break };
        cursor = Some(next.to_string().parse().unwrap());
    }
    let distinct: BTreeSet<Member> = seen.iter().cloned().collect();
    assert_eq!((seen.len(), distinct.len()), (110, 110));
    assert!("nonsense".parse::<FeedCursor>().is_err());
}

/// S3 feed: inboxes unbounded.
async fn inboxes_are_bounded(kit: Kit) {
    let (follows, feed) = feed(&kit, 5);
    let _follow = follows.follow("ann", "star").await.unwrap();
    for post in 0..12_u64 {
        let _published = feed.publish("star", post).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let posts = feed.scroll("ann", None, 100).await.unwrap().posts;
    let ids: Vec<&str> = posts.iter().map(|it| it.id.as_str().unwrap()).collect();
    assert_eq!(ids, ["11", "10", "9", "8", "7"]);
}

/// S3 geo: each page is cut from the front, so that pages repeat.
async fn places_nearby_page_by_page(kit: Kit) {
    let shops = Nearby::new(&kit, NearbySettings { places_max: 1000, ttl: DAY }).unwrap();
    let center = Point::new(13.4, 52.5).unwrap();
    for shop in 0..60_u32 {
        // Groups of six at the same point.
        let point = Point::new(13.4 + f64::from(shop / 6) * 0.001, 52.5).unwrap();
        assert_eq!(shops.put("coffee", format!("shop-{shop}"), point).await, Ok(Placed::New));
    }
    let far = Point::new(14.4, 52.5).unwrap();
    let _placed = shops.put("coffee", "far", far).await.unwrap();
    for count in [1, 7, 10, 60, 100] {
        let (mut all, mut cursor, mut last_m) = (Vec::new(), None, 0.0);
        loop {
            let page =
                shops.search("coffee", center, 5000.0, cursor.as_ref(), count).await.unwrap();
            for found in &page.places {
                assert!(found.distance_m >= last_m);
                last_m = found.distance_m;
            }
            all.extend(page.places.into_iter().map(|it| it.place));
            let Some(next) = page.next else { break };
            cursor = Some(next);
        }
        let distinct: BTreeSet<Member> = all.iter().cloned().collect();
        assert_eq!((all.len(), distinct.len()), (60, 60), "{count}");
    }
    assert_eq!(shops.remove("coffee", "shop-0").await, Ok(true));
    assert_eq!(shops.remove("coffee", "shop-0").await, Ok(false));
    let page = shops.search("coffee", center, 1.0, None, 10).await.unwrap();
    assert_eq!((page.places.len(), page.next), (5, None));
    let page = shops.search("tea", center, 5000.0, None, 10).await.unwrap();
    assert_eq!(page.places, []);
}

async fn places_are_bounded(kit: Kit) {
    let settings = NearbySettings { places_max: 1, ttl: DAY };
    let shops = Nearby::new(&kit, settings).unwrap();
    let point = Point::new(13.4, 52.5).unwrap();
    assert_eq!(shops.put("coffee", "a", point).await, Ok(Placed::New));
    assert_eq!(shops.put("coffee", "a", point).await, Ok(Placed::Moved));
    assert_eq!(shops.put("coffee", "b", point).await, Ok(Placed::Full));
    let settings = NearbySettings { ttl: Duration::from_millis(150), ..settings };
    let shops = Nearby::new(&kit, settings).unwrap();
    assert_eq!(shops.put("tea", "a", point).await, Ok(Placed::New));
    crate::eventually(async || {
        shops.search("tea", point, 10.0, None, 1).await.unwrap().places.is_empty()
    })
    .await;
    assert!(Point::new(181.0, 0.0).is_err() && Point::new(0.0, f64::NAN).is_err());
    assert!(matches!(shops.search("x", point, 0.0, None, 1).await, Err(Error::Invalid(_))));
}

/// A change that arrives after a later one changes nothing.
#[tokio::test]
async fn a_clock_that_goes_back_makes_no_old_change_new() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let follows = follows(&kit);
    assert_eq!(follows.follow("ann", "ben").await, Ok(Follow::New));
    time.set_ms(time.now_ms() - 3_600_000);
    assert_eq!(follows.unfollow("ann", "ben").await, Ok(Unfollow::Removed));
    assert_eq!(follows.counts("ben").await, Ok((0, 0)));
    time.set_ms(time.now_ms() - 3_600_000);
    assert_eq!(follows.follow("ann", "ben").await, Ok(Follow::New));
    assert_eq!(follows.counts("ben").await, Ok((0, 1)));
}
