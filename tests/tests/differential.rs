//! Random command sequences against Russet and a peer; see `russet_tests::differ`.
//!
//! `RUSSET_DIFFER_SECONDS` makes it longer, `RUSSET_DIFFER_SEED` starts it elsewhere (the default
//! is a new seed each time, which a failure prints), and `RUSSET_REQUIRE_PEER` turns the absence of
//! a peer from a note into a failure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use russet_tests::client::Client;
use russet_tests::differ::{Mode, Pair, search};
use russet_tests::server::{Kind, Server};

/// Over all modes together.
const SECONDS_DEFAULT: f64 = 20.0;
const MODES: f64 = 4.0;
/// The first whose replies are the model for ours.
const VALKEY_MAJOR_MIN: u32 = 9;

fn number(name: &str) -> Option<f64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Both servers, or None with a note if this machine has no peer. Only a Valkey will do: an older
/// Redis has other texts, and other ideas of which check comes first.
fn servers() -> Option<(Server, Server)> {
    let peer = match Server::start(Kind::Valkey, &[]).and_then(new_enough) {
        Ok(peer) => peer,
        Err(why) => {
            assert!(std::env::var_os("RUSSET_REQUIRE_PEER").is_none(), "no peer: {why}");
            println!("SKIPPED: the differential test needs a Valkey server: {why}");
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
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT) / MODES;
    let seed = number("RUSSET_DIFFER_SEED").map_or_else(
        || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into(),
        |seed| seed as u64,
    );
    let mut pair = Pair::new(russet.address(), peer.address());
    let budget = Duration::from_secs_f64(seconds);
    let outcome = search(&mut pair, &[mode], seed, budget).unwrap_or_else(|why| {
        panic!("seed {seed} or later, {mode:?}: {why}");
    });
    println!("{mode:?}: {} plans, {} calls from seed {seed}", outcome.plans, outcome.steps);
    if let Some(finding) = outcome.found {
        panic!("the servers differ\n{finding}");
    }
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
