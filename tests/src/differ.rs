//! The differential test: the same random command sequences to Russet and to a peer, every reply
//! and the data left behind compared.
//!
//! Calls are made from the catalog's argument trees, so that a new command is tried without a word
//! here. What may differ, and why, is in [`compare`] and nowhere else.

pub mod compare;
pub mod dump;
pub mod grammar;
pub mod ordered;
pub mod plan;
pub mod reconcile;
pub mod run;
pub mod script;
pub mod settings;
pub mod shrink;
pub mod values;

use std::time::{Duration, Instant};

use russet_base::random::Random;

pub use plan::{Mode, Plan, Step};
pub use run::{Difference, Pair};

/// What a search went through and what it found.
pub struct Outcome {
    pub plans: usize,
    pub steps: usize,
    pub found: Option<Finding>,
}

/// A difference with the shortest sequence that still shows it.
pub struct Finding {
    pub seed: u64,
    pub plan: Plan,
    pub difference: Difference,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {} ({:?}, {:?}):", self.seed, self.plan.mode, self.plan.resp)?;
        for step in &self.plan.steps {
            writeln!(f, "  {step}")?;
        }
        write!(f, "{}", self.difference)
    }
}

/// Tries plans from `first_seed` on, one seed each, until one differs or the time is over.
pub fn search(
    pair: &mut Pair,
    modes: &[Mode],
    first_seed: u64,
    budget: Duration,
) -> Result<Outcome, String> {
    let grammar = grammar::Grammar::of_peer(pair.peer_address())?;
    let deadline = Instant::now() + budget;
    let mut outcome = Outcome { plans: 0, steps: 0, found: None };
    let mut seed = first_seed;
    while Instant::now() < deadline {
        let mut random = Random::from_seed(seed);
        let mode = modes[random.index(modes.len())];
        let plan = Plan::random(mode, &grammar, &mut random);
        outcome.plans += 1;
        outcome.steps += plan.steps.len();
        if let Some(difference) = pair.run(&plan)? {
            let (plan, difference) =
                shrink::shortest(plan, difference, &mut |plan| pair.run(plan))?;
            outcome.found = Some(Finding { seed, plan, difference });
            break;
        }
        seed = seed.wrapping_add(1);
    }
    Ok(outcome)
}
