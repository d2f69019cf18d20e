//! A leaderboard of the day: scores, the top, who is around a player. `RUSSET_URL` names a server;
//! without it all is in this process.

use russet::ranking::{Leaderboard, Settings};
use russet::{Kit, Period, RequestId};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let settings = Settings { period: Period::Day, members_max: 10_000, ttl: week, shards: 4 };
    let board = Leaderboard::new(&kit, format!("game-{}", std::process::id()), settings)?;

    for player in 0..50_i64 {
        let _scored = board.set(format!("player-{player}"), player % 10 * 100).await?;
    }
    // The same request, however often it is sent, counts once.
    let request = RequestId::random();
    for _ in 0..2 {
        println!("{:?}", board.add("player-7", 250, Some(&request)).await?);
    }
    for it in board.current().top(3).await? {
        println!("{}. {} with {}", it.position, it.member.as_str().unwrap_or("?"), it.score);
    }
    for it in board.current().around("player-7", 2).await? {
        println!("rank {} {} with {}", it.rank, it.member.as_str().unwrap_or("?"), it.score);
    }
    Ok(())
}
