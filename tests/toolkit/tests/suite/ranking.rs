//! Leaderboards.

use russet::ranking::{Finished, Leaderboard, Removed, Scored, Settings, Standing};
use russet::{Error, Kit, ManualTime, Options, Period, RequestId};
use std::collections::BTreeSet;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    scores_add_up_and_are_sorted
    a_request_is_counted_once
    equals_share_a_rank_and_keep_their_order
    a_score_of_nothing_has_a_rank
    around_a_member_of_any_board
    the_best_and_the_set_score
    the_lowest_are_trimmed
    every_key_has_a_ttl
    top_of_none_is_empty
    a_closed_board_never_changes
    many_at_once_lose_nothing
    bad_arguments_leave_nothing_behind
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn settings(shards: u32) -> Settings {
    Settings { period: Period::Endless, members_max: 1000, ttl: 7 * DAY, shards }
}

fn names(standings: &[Standing]) -> Vec<&str> {
    standings.iter().map(|it| it.member.as_str().unwrap()).collect()
}

async fn scores_add_up_and_are_sorted(kit: Kit) {
    for shards in [1, 4] {
        let name = format!("game-{shards}");
        let board = Leaderboard::new(&kit, name, settings(shards)).unwrap();
        for (member, by) in [("ann", 10), ("ben", 20), ("cat", -5), ("ann", 15)] {
            assert!(matches!(board.add(member, by, None).await, Ok(Scored::Kept { .. })));
        }
        let top = board.current().top(10).await.unwrap();
        assert_eq!(names(&top), ["ann", "ben", "cat"]);
        assert_eq!(top.iter().map(|it| it.score).collect::<Vec<_>>(), [25, 20, -5]);
        assert_eq!(names(&board.current().page(1, 1).await.unwrap()), ["ben"]);
        let ben = board.current().standing("ben").await.unwrap().unwrap();
        assert_eq!((ben.score, ben.position, ben.rank), (20, 2, 2));
        assert_eq!(board.current().standing("nobody").await, Ok(None));
        assert_eq!(board.current().len().await, Ok(3));
        assert_eq!(board.remove("ben").await, Ok(Removed::Removed));
        assert_eq!(board.remove("ben").await, Ok(Removed::Missing));
        assert_eq!(names(&board.current().top(10).await.unwrap()), ["ann", "cat"]);
    }
}

async fn a_request_is_counted_once(kit: Kit) {
    let board = Leaderboard::new(&kit, "game", settings(1)).unwrap();
    let request = RequestId::random();
    for _ in 0..3 {
        assert_eq!(board.add("ann", 7, Some(&request)).await, Ok(Scored::Kept { score: 7 }));
    }
    assert_eq!(board.add("ann", 7, None).await, Ok(Scored::Kept { score: 14 }));
}

/// S2 §10.3, podium 91: members with equal scores stand in the order of their names, whoever came
/// first.
async fn equals_share_a_rank_and_keep_their_order(kit: Kit) {
    for shards in [1, 3] {
        let board = Leaderboard::new(&kit, format!("game-{shards}"), settings(shards)).unwrap();
        for (member, score) in [("low", 1), ("zoe", 50), ("ann", 50), ("mia", 50), ("top", 99)] {
            let _scored = board.set(member, score).await.unwrap();
            // The moments differ.
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        // The same score again is no new arrival.
        let _scored = board.set("zoe", 50).await.unwrap();
        let top = board.current().top(5).await.unwrap();
        assert_eq!(names(&top), ["top", "zoe", "ann", "mia", "low"]);
        assert_eq!(top.iter().map(|it| it.rank).collect::<Vec<_>>(), [1, 2, 2, 2, 5]);
        assert_eq!(top.iter().map(|it| it.position).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for standing in &top {
            let found = board.current().standing(&standing.member).await.unwrap();
            assert_eq!(found.as_ref(), Some(standing));
        }
        // A page that begins among equals.
        let page = board.current().page(2, 3).await.unwrap();
        assert_eq!(page, top[2..]);
    }
}

/// agoragames/leaderboard 53: those with a score of 0 have no rank where equals share one.
async fn a_score_of_nothing_has_a_rank(kit: Kit) {
    let board = Leaderboard::new(&kit, "game", settings(2)).unwrap();
    for member in ["ann", "ben"] {
        assert_eq!(board.set(member, 0).await, Ok(Scored::Kept { score: 0 }));
    }
    let top = board.current().top(5).await.unwrap();
    assert_eq!(top.iter().map(|it| (it.score, it.rank)).collect::<Vec<_>>(), [(0, 1), (0, 1)]);
}

async fn around_a_member_of_any_board(kit: Kit) {
    for shards in [1, 4] {
        let board = Leaderboard::new(&kit, format!("game-{shards}"), settings(shards)).unwrap();
        for number in 0..40_i64 {
            // Groups of four equals.
            let _scored = board.set(format!("m{number:02}"), number / 4).await.unwrap();
        }
        let all = board.current().top(40).await.unwrap();
        assert_eq!(all.len(), 40);
        for (index, standing) in all.iter().enumerate() {
            for radius in [0, 1, 5] {
                let around = board.current().around(&standing.member, radius).await.unwrap();
                let first = index.saturating_sub(radius as usize);
                let last = (index + radius as usize + 1).min(all.len());
                assert_eq!(around, all[first..last], "{shards} {index} {radius}");
            }
        }
        assert_eq!(board.current().around("nobody", 3).await, Ok(Vec::new()));
    }
}

async fn the_best_and_the_set_score(kit: Kit) {
    let board = Leaderboard::new(&kit, "game", settings(1)).unwrap();
    assert_eq!(board.set_best("ann", 5).await, Ok(Scored::Kept { score: 5 }));
    assert_eq!(board.set_best("ann", 3).await, Ok(Scored::Kept { score: 5 }));
    assert_eq!(board.set_best("ann", 8).await, Ok(Scored::Kept { score: 8 }));
    assert_eq!(board.set("ann", 2).await, Ok(Scored::Kept { score: 2 }));
}

/// S2 §5, §11: a board without bound.
async fn the_lowest_are_trimmed(kit: Kit) {
    let settings = Settings { members_max: 10, ..settings(1) };
    let board = Leaderboard::new(&kit, "game", settings).unwrap();
    for number in 0..30_i64 {
        let kept = board.set(format!("m{number}"), number).await.unwrap();
        assert_eq!(kept, Scored::Kept { score: number });
    }
    assert_eq!(board.current().len().await, Ok(10));
    assert_eq!(board.set("late", 3).await, Ok(Scored::Below { score: 3 }));
    assert_eq!(board.current().standing("late").await, Ok(None));
    assert_eq!(board.current().top(1000).await.unwrap().last().unwrap().score, 20);
}

/// S2 §5, §11: no EXPIRE.
async fn every_key_has_a_ttl(kit: Kit) {
    crate::given_time(Duration::from_millis(150), async |ttl| {
        let settings = Settings { ttl, ..settings(1) };
        let board = Leaderboard::new(&kit, format!("game-{}", ttl.as_millis()), settings).unwrap();
        let _scored = board.add("ann", 1, None).await.unwrap();
        let finished = board.current().finish().await.unwrap();
        crate::eventually(async || board.current().is_empty().await.unwrap()).await;
        // The mark of its end is gone too.
        let is_open = async || board.add("ann", 1, None).await.unwrap() != Scored::Closed;
        crate::eventually(is_open).await;
        let standing = board.current().standing("ann").await.unwrap();
        matches!(finished, Finished::Closed { members: 1, .. })
            && standing.is_some_and(|it| it.score == 1)
    })
    .await;
}

/// S2 §11: top(0) returns the whole board.
async fn top_of_none_is_empty(kit: Kit) {
    let board = Leaderboard::new(&kit, "game", settings(1)).unwrap();
    let _scored = board.add("ann", 1, None).await.unwrap();
    assert_eq!(board.current().top(0).await, Ok(Vec::new()));
    assert!(matches!(board.current().top(1001).await, Err(Error::Invalid(_))));
}

async fn a_closed_board_never_changes(kit: Kit) {
    for shards in [1, 3] {
        let board = Leaderboard::new(&kit, format!("final-{shards}"), settings(shards)).unwrap();
        for (member, score) in [("ann", 10), ("ben", 20), ("cat", 30)] {
            let _scored = board.set(member, score).await.unwrap();
        }
        let Finished::Closed { members, closed_at_ms } = board.current().finish().await.unwrap()
        else {
            panic!("not closed");
        };
        assert_eq!(members, 3);
        assert_eq!(board.add("ann", 100, None).await, Ok(Scored::Closed));
        assert_eq!(board.remove("ben").await, Ok(Removed::Closed));
        let again = board.current().finish().await;
        assert_eq!(again, Ok(Finished::Closed { members, closed_at_ms }));
        assert_eq!(names(&board.current().top(5).await.unwrap()), ["cat", "ben", "ann"]);
    }
}

async fn many_at_once_lose_nothing(kit: Kit) {
    let board = std::sync::Arc::new(Leaderboard::new(&kit, "game", settings(4)).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32_u64 {
        let board = board.clone();
        tasks.spawn(async move {
            for round in 0..20_u64 {
                let request = RequestId::from(&format!("{task}-{round}"));
                // Each request twice, as after a lost reply.
                for _ in 0..2 {
                    let member = format!("m{}", (task + round) % 7);
                    let _scored = board.add(member, 1, Some(&request)).await.unwrap();
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let top = board.current().top(100).await.unwrap();
    assert_eq!(top.len(), 7);
    assert_eq!(top.iter().map(|it| it.score).sum::<i64>(), 32 * 20);
    let positions: BTreeSet<u64> = top.iter().map(|it| it.position).collect();
    assert_eq!(positions, (1..=7).collect());
}

async fn bad_arguments_leave_nothing_behind(kit: Kit) {
    for bad in [
        Settings { ttl: Duration::ZERO, ..settings(1) },
        Settings { members_max: 0, ..settings(1) },
        Settings { shards: 0, ..settings(1) },
    ] {
        assert!(matches!(Leaderboard::new(&kit, "game", bad), Err(Error::Invalid(_))));
    }
    let board = Leaderboard::new(&kit, "game", settings(1)).unwrap();
    assert!(matches!(board.add("", 1, None).await, Err(Error::Invalid(_))));
    assert!(matches!(board.add("ann", i64::MAX, None).await, Err(Error::Invalid(_))));
    let _scored = board.set("ann", russet::ranking::SCORE_MAX).await.unwrap();
    // A sum that would not be exact.
    assert!(matches!(board.add("ann", 1, None).await, Err(Error::Invalid(_))));
    let ann = board.current().standing("ann").await.unwrap().unwrap();
    assert_eq!(ann.score, russet::ranking::SCORE_MAX);
}

/// The server's clock decides which period it is, also when this machine's is wrong by years.
#[tokio::test]
async fn periods_begin_by_the_servers_clock() {
    let time = ManualTime::new();
    let midnight_ms = Period::Day.at_unix_ms(4_000_000_000_000).start_ms();
    time.set_ms(midnight_ms + 1);
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let settings = Settings { period: Period::Day, members_max: 100, ttl: 3 * DAY, shards: 2 };
    let board = Leaderboard::new(&kit, "game", settings).unwrap();
    let first = Period::Day.at_unix_ms(midnight_ms);
    for day in 0..3 {
        assert!(board.current().is_empty().await.unwrap());
        for member in ["ann", "ben"] {
            assert_eq!(board.add(member, day + 1, None).await, Ok(Scored::Kept { score: day + 1 }));
        }
        let open = board.round(Period::Day.at_unix_ms(time.now_ms())).finish().await.unwrap();
        assert!(matches!(open, Finished::Open { retry_after } if retry_after <= DAY));
        time.advance(DAY);
    }
    let closed = board.round(first).finish().await.unwrap();
    assert!(matches!(closed, Finished::Closed { members: 2, .. }));
    assert_eq!(board.round(first).top(5).await.unwrap().len(), 2);
    // Three days added up.
    let others = [first, first.next()];
    let total = board.round(first.next().next()).total(&others, 10).await.unwrap();
    assert_eq!(total.iter().map(|it| it.score).collect::<Vec<_>>(), [6, 6]);
    // Kept three days after its end, not longer.
    time.advance(DAY);
    assert!(board.round(first).is_empty().await.unwrap());
    assert!(!board.round(first.next()).is_empty().await.unwrap());
}

/// The keys of one step share a slot; shards do not.
#[tokio::test]
async fn shards_are_in_different_slots() {
    let kit = Kit::embedded(Options::default()).unwrap();
    let family = russet::key::Family { purpose: "ranking", version: 1 };
    let slots: BTreeSet<u16> = (0..8)
        .map(|shard| {
            let scope = russet::key::Scope::from("game").shard(shard);
            let keys = kit.keys(family, scope).unwrap();
            assert_eq!(keys.item("board", "all").slot(), keys.item("closed", "all").slot());
            keys.item("board", "all").slot()
        })
        .collect();
    assert!(slots.len() > 6);
}
