//! Random Lua programs by EVAL, on Russet and on a Valkey: what they log must be the same.
//!
//! `RUSSET_DIFFER_SECONDS` says how long it runs. Every run begins at a new seed, which it prints;
//! `RUSSET_DIFFER_SEED` begins at a given one. `RUSSET_REQUIRE_PEER` turns the absence of a peer
//! from a note into a failure.

use russet_base::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::lua::program::Program;
use russet_tests::server::{Kind, Server};
use std::time::{Duration, Instant};

const SECONDS_DEFAULT: u64 = 5;
/// Programs that are tried to make a failing one short.
const TRIES_MAX: usize = 3000;
/// Programs between two times at which both servers forget those before.
const FLUSH_EVERY: usize = 1000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn shown(reply: &Reply) -> String {
    match reply.text() {
        Some(text) => text.escape_ascii().to_string().replace("\\n", "\n"),
        None => format!("{reply:?}"),
    }
}

struct Pair {
    ours: Client,
    theirs: Client,
    tried: usize,
}

impl Pair {
    /// What both sides say, if they differ.
    fn difference(&mut self, program: &Program) -> Option<(String, String)> {
        self.tried += 1;
        if self.tried.is_multiple_of(FLUSH_EVERY) {
            for client in [&mut self.ours, &mut self.theirs] {
                client.call(&["SCRIPT", "FLUSH"]).expect("the server answers");
            }
        }
        let source = program.source();
        let ask = |client: &mut Client| {
            shown(&client.call(&["EVAL", &source, "0"]).expect("the server answers"))
        };
        let (ours, theirs) = (ask(&mut self.ours), ask(&mut self.theirs));
        (ours != theirs).then_some((ours, theirs))
    }

    fn shortest(&mut self, program: Program) -> Program {
        let (mut program, mut tries) = (program, 0);
        'shorter: while tries < TRIES_MAX {
            for smaller in program.smaller() {
                tries += 1;
                if self.difference(&smaller).is_some() {
                    program = smaller;
                    continue 'shorter;
                }
            }
            break;
        }
        program
    }
}

#[test]
fn programs_answer_as_on_a_peer() {
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    let russet = Server::start(Kind::Russet, &[]).expect("the server starts");
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT);
    let first = number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64());
    println!("from seed {first} for {seconds} s");
    let connect = |server: &Server| Client::connect(server.address()).expect("it is up");
    let mut pair = Pair { ours: connect(&russet), theirs: connect(&peer), tried: 0 };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut seed = first;
    while Instant::now() < deadline {
        let program = Program::random(&mut Random::from_seed(seed));
        if pair.difference(&program).is_some() {
            let program = pair.shortest(program);
            let (ours, theirs) = pair.difference(&program).expect("it differed a moment ago");
            let body = program.body();
            panic!("seed {seed}\n{body}\n-- ours\n{ours}\n-- the peer's\n{theirs}");
        }
        seed = seed.wrapping_add(1);
    }
    println!("{} programs from seed {first}", pair.tried);
    assert!(pair.tried > 0, "nothing was compared");
}
