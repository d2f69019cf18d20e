//! Workloads of sessions, tokens, flags, likes, follows, feeds and places.
//!
//! A request that was late may run after what its caller did next. So nobody here undoes what was
//! done without an id of the request: it could be done once more after that.

use super::{HOUR, TASKS, at_once};
use russet::flag::{Changed, Definition, FlagTerms, Flags, Joined};
use russet::session::{
    Authorization, Created, MfaOutcome, NewSession, Policy, Sessions, Timeouts, User,
};
use russet::social::{
    Feed, FeedSettings, FollowSettings, Follows, LikeSettings, Likes, Nearby, NearbySettings,
    Point, Published,
};
use russet::token::{self, Check, Issued, NewToken, Tokens};
use russet::{Kit, Member, RequestId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub(super) async fn sessions_are_made_and_ended_once(kit: Kit) {
    let timeouts = Timeouts { idle: HOUR, absolute: HOUR };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 10)).unwrap();
    at_once(|task| {
        let (sessions, user) = (sessions.clone(), User::new("acme", format!("user {task}")));
        async move {
            let mut ids = Vec::new();
            for round in 1..=4 {
                let new = NewSession::of(&user).mfa_required();
                let Created::Created(id) = sessions.create(&new).await.unwrap() else {
                    panic!("full");
                };
                assert_eq!(sessions.begin_mfa(&id, "right").await, Ok(MfaOutcome::Challenged));
                let (one, two) = (RequestId::random(), RequestId::random());
                let wrong = sessions.verify_mfa(&id, "wrong", Some(&one)).await;
                assert_eq!(wrong, Ok(MfaOutcome::Mismatch { attempts_left: 4 }));
                let right = sessions.verify_mfa(&id, "right", Some(&two)).await;
                assert_eq!(right, Ok(MfaOutcome::Verified));
                assert_eq!(sessions.list(&user).await.unwrap().len(), round);
                ids.push(id);
            }
            let _ = sessions.revoke_all(&user, "stolen").await.unwrap();
            for id in &ids {
                assert_eq!(sessions.authorize(id).await, Ok(Authorization::Revoked));
            }
            assert_eq!(sessions.list(&user).await, Ok(Vec::new()));
        }
    })
    .await;
}

pub(super) async fn exactly_the_allowed_tokens_are_issued(kit: Kit) {
    let policy = token::Policy { tokens_max: 20, safety: HOUR };
    let (tokens, user) = (Tokens::new(&kit, policy).unwrap(), User::new("acme", "ann"));
    let issued = Arc::new(Mutex::new(Vec::new()));
    at_once(|_task| {
        let (tokens, user, issued) = (tokens.clone(), user.clone(), issued.clone());
        async move {
            let new = NewToken { kind: "api", scopes: "read", ttl: HOUR };
            for _ in 0..5 {
                if let Issued::Issued(token) = tokens.issue(&user, &new).await.unwrap() {
                    issued.lock().unwrap().push(token);
                }
            }
        }
    })
    .await;
    let issued = issued.lock().unwrap().clone();
    assert_eq!((issued.len(), tokens.list(&user).await.unwrap().len()), (20, 20));
    for token in &issued {
        assert!(matches!(tokens.check(token).await, Ok(Check::Valid(_))));
        let _ = tokens.revoke(token, "old").await.unwrap();
        assert_eq!(tokens.check(token).await, Ok(Check::Revoked));
    }
}

pub(super) async fn each_change_of_a_flag_is_one_version(kit: Kit) {
    let flags = Flags::new(&kit, "acme", FlagTerms::new(HOUR).flags_max(100)).unwrap();
    at_once(|task| {
        let flags = flags.clone();
        async move {
            for number in 0..5 {
                let flag = format!("f-{task}-{number}");
                // Whether it is new may be lost; that it is there is not.
                let defined = flags.define(&flag, &Definition::on(), "ops").await.unwrap();
                let is_there =
                    matches!(defined, Changed::Changed { .. } | Changed::Unchanged { .. });
                assert!(is_there, "{defined:?}");
                let joined = flags.join("beta", &flag).await.unwrap();
                assert_ne!(joined, Joined::Full);
                assert!(flags.is_member("beta", &flag).await.unwrap());
            }
        }
    })
    .await;
    let versions: Vec<u64> =
        flags.audit(100).await.unwrap().iter().map(|entry| entry.version).collect();
    assert_eq!(versions.len(), TASKS * 5);
    assert!(versions.is_sorted_by(|newer, older| newer > older), "{versions:?}");
    assert_eq!(flags.snapshot().await.unwrap().version(), versions[0]);
}

pub(super) async fn likes_are_set_once(kit: Kit) {
    let settings = LikeSettings { likers_max: 1000, ttl: HOUR, shards: 3 };
    let likes = Arc::new(Likes::new(&kit, settings).unwrap());
    at_once(|_task| {
        let likes = likes.clone();
        async move {
            for user in 0..8_u64 {
                let _like = likes.like("post", user).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(likes.count("post").await, Ok(8));
    let users: BTreeSet<Member> =
        likes.first("post", 100).await.unwrap().into_iter().map(|it| it.user).collect();
    assert_eq!(users, (0..8_u64).map(Member::from).collect());
}

fn follows(kit: &Kit) -> Follows {
    let settings = FollowSettings { following_max: 100, followers_max: 100, ttl: HOUR };
    Follows::new(kit, settings).unwrap()
}

pub(super) async fn both_sides_of_a_follow_agree(kit: Kit) {
    let follows = follows(&kit);
    let user = |task: usize| format!("user-{task}");
    at_once(|task| {
        let follows = follows.clone();
        async move {
            let next = user((task + 1) % TASKS);
            for _ in 0..2 {
                let _follow = follows.follow(user(task), "idol").await.unwrap();
                let _follow = follows.follow(user(task), &next).await.unwrap();
            }
        }
    })
    .await;
    assert_eq!(follows.counts("idol").await, Ok((0, TASKS as u64)));
    for task in 0..TASKS {
        assert_eq!(follows.counts(user(task)).await, Ok((2, 1)));
        assert_eq!(follows.repair(user(task)).await, Ok(0), "nothing is half done");
    }
}

pub(super) async fn posts_reach_every_follower_once(kit: Kit) {
    const POSTS: usize = 3;
    let follows = follows(&kit);
    let settings = FeedSettings { inbox_max: 100, ttl: HOUR };
    let feed = Arc::new(Feed::new(&kit, &follows, settings).unwrap());
    for reader in 0..10_u64 {
        let _follow = follows.follow(reader, "star").await.unwrap();
    }
    at_once(|task| {
        let feed = feed.clone();
        async move {
            for number in 0..POSTS {
                let published = feed.publish("star", format!("{task}-{number}")).await.unwrap();
                assert!(matches!(published, Published::Done { .. }), "{published:?}");
            }
        }
    })
    .await;
    for reader in 0..10_u64 {
        let posts = feed.scroll(reader, None, 100).await.unwrap().posts;
        let distinct: BTreeSet<Member> = posts.iter().map(|it| it.id.clone()).collect();
        assert_eq!((posts.len(), distinct.len()), (TASKS * POSTS, TASKS * POSTS));
    }
    assert_eq!(feed.unfinished("star").await, Ok(Vec::new()));
}

pub(super) async fn each_place_is_found_once(kit: Kit) {
    const EACH: usize = 5;
    let settings = NearbySettings { places_max: 100, ttl: HOUR };
    let shops = Arc::new(Nearby::new(&kit, settings).unwrap());
    let center = Point::new(13.4, 52.5).unwrap();
    at_once(|task| {
        let shops = shops.clone();
        async move {
            for number in 0..EACH {
                let shop = format!("{task}-{number}");
                let _placed = shops.put("coffee", &shop, center).await.unwrap();
            }
        }
    })
    .await;
    let found = shops.search("coffee", center, 100.0, None, 100).await.unwrap().places;
    let distinct: BTreeSet<Member> = found.iter().map(|it| it.place.clone()).collect();
    assert_eq!((found.len(), distinct.len()), (TASKS * EACH, TASKS * EACH));
}
