//! Random command sequences against Russet and a peer; see `russet_tests::differ`.
//!
//! `RUSSET_DIFFER_SECONDS` says how long each test runs. Every run begins at a new seed, which it
//! prints; `RUSSET_DIFFER_SEED` begins at a given one. `RUSSET_REQUIRE_PEER` turns the absence of a
//! peer from a note into a failure.

use std::time::Duration;

use russet_base::random::Random;
use russet_tests::client::Client;
use russet_tests::differ::{Mode, Pair, search};
use russet_tests::server::{Kind, Server, skip};

/// For each mode.
const SECONDS_DEFAULT: u64 = 5;
/// The first whose replies are the model for ours.
const VALKEY_MAJOR_MIN: u32 = 9;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Both servers, or None with a note if this machine has no peer. Only a Valkey will do: an older
/// Redis has other texts, and other ideas of which check comes first.
fn servers() -> Option<(Server, Server)> {
    let peer = match new_enough(Server::start_if_there(Kind::Valkey, &[])?) {
        Ok(peer) => peer,
        Err(why) => {
            skip(&why);
            return None;
        }
    };
    Some((Server::start(Kind::Russet, &["--threads", "4", "--threads-min", "4"]).unwrap(), peer))
}

fn new_enough(peer: Server) -> Result<Server, String> {
    let mut client = Client::connect(peer.address()).map_err(|error| error.to_string())?;
    let info = client.call(&["INFO", "server"]).map_err(|error| error.to_string())?;
    let info = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
    let version = info.lines().find_map(|line| line.strip_prefix("valkey_version:"));
    let version = version.ok_or("the server tells no valkey_version")?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= VALKEY_MAJOR_MIN) {
        Ok(peer)
    } else {
        Err(format!("Valkey {version} is older than {VALKEY_MAJOR_MIN}"))
    }
}

fn compare(mode: Mode) {
    let Some((russet, peer)) = servers() else { return };
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT);
    let seed = number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64());
    println!("{mode:?}: from seed {seed} for {seconds} s");
    let mut pair = Pair::new(russet.address(), peer.address());
    let outcome = search(&mut pair, &[mode], seed, Duration::from_secs(seconds));
    let outcome = outcome.unwrap_or_else(|why| panic!("seed {seed} or later, {mode:?}: {why}"));
    println!("{mode:?}: {} plans, {} calls from seed {seed}", outcome.plans, outcome.steps);
    if let Some(finding) = outcome.found {
        panic!("the servers differ\n{finding}");
    }
    assert!(outcome.steps > 0, "nothing was compared");
}

#[test]
fn calls_inside_scripts_answer_as_a_peer() {
    compare(Mode::Scripted);
}

#[test]
fn pipelines_answer_as_a_peer() {
    compare(Mode::Pipeline);
}

#[test]
fn crossed_connections_answer_as_a_peer() {
    compare(Mode::Crossed);
}

#[test]
fn subscribers_hear_what_a_peer_tells() {
    compare(Mode::PubSub);
}
