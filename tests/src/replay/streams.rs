//! The differential generator's plans on the recorder alone, with calls of [`seasoning`] among
//! them: no peer is needed, so everything that Russet knows may be drawn.

use std::time::{Duration, Instant};

use russet_base::random::Random;

use super::{Pair, seasoning};
use crate::client::{REPLY_WAIT, encode};
use crate::differ::grammar::Grammar;
use crate::differ::plan::CONNECTIONS;
use crate::differ::run::{Side, read_until_blocked};
use crate::differ::{Difference, Finding, Mode, Outcome, Plan, Step, script, shrink};

/// How many calls are added to each ten of a plan.
const ADDED_TO_TEN: usize = 4;
/// What was to live for a short time is over when records are replayed.
const LATER: Duration = Duration::from_millis(seasoning::SOON_MS_MAX + 5);

/// Tries plans from `first_seed` on, one seed each, until one breaks the law or the time is over.
pub fn search(
    pair: &mut Pair,
    mode: Mode,
    first_seed: u64,
    budget: Duration,
) -> Result<Outcome, String> {
    let grammar = Grammar::of_catalog();
    let deadline = Instant::now() + budget;
    let mut outcome = Outcome { plans: 0, steps: 0, found: None };
    let mut seed = first_seed;
    while Instant::now() < deadline {
        let mut random = Random::from_seed(seed);
        let plan = Plan::random(mode, &grammar, &mut random);
        let plan = seasoned(plan, &mut random);
        outcome.plans += 1;
        outcome.steps += plan.steps.len();
        if let Some(difference) = run(pair, &plan)? {
            let run = &mut |plan: &Plan| run(pair, plan);
            let (plan, difference) = shrink::shortest(plan, difference, run)?;
            outcome.found = Some(Finding { seed, plan, difference });
            break;
        }
        seed = seed.wrapping_add(1);
    }
    Ok(outcome)
}

fn seasoned(plan: Plan, random: &mut Random) -> Plan {
    let mut steps = plan.steps.clone();
    for _ in 0..steps.len() * ADDED_TO_TEN / 10 {
        let connection = if plan.mode == Mode::Crossed { random.index(CONNECTIONS) } else { 0 };
        let step = Step { connection, args: seasoning::call(random) };
        steps.insert(random.index(steps.len() + 1), step);
    }
    plan.with_steps(steps)
}

/// Runs the plan on an empty recorder, and does later on the replayer what was recorded.
fn run(pair: &mut Pair, plan: &Plan) -> Result<Option<Difference>, String> {
    let mut side = Side::open(pair.recorder(), plan.resp)?;
    match plan.mode {
        Mode::Pipeline => pipelined(&mut side, &plan.steps)?,
        Mode::Scripted => scripted(&mut side, &plan.steps)?,
        Mode::Crossed | Mode::PubSub => crossed(&mut side, &plan.steps)?,
    }
    let look = pair.look()?;
    std::thread::sleep(LATER);
    Ok(pair.compare(&look).err().map(Difference))
}

fn pipelined(side: &mut Side, steps: &[Step]) -> Result<(), String> {
    let bytes: Vec<u8> = steps.iter().flat_map(|step| encode(&side.args(step))).collect();
    side.connections[0].send_raw(&bytes).map_err(|error| error.to_string())?;
    steps.iter().try_for_each(|step| answered(side, step))
}

fn scripted(side: &mut Side, steps: &[Step]) -> Result<(), String> {
    for calls in script::cut(steps) {
        let eval = Step { connection: 0, args: script::eval(calls) };
        side.send(&eval)?;
        answered(side, &eval)?;
    }
    Ok(())
}

fn answered(side: &mut Side, step: &Step) -> Result<(), String> {
    let reply = side.reply(step.connection, REPLY_WAIT)?;
    reply.map(drop).ok_or_else(|| format!("silent at {step}"))
}

/// One call at a time; a connection that waits makes none.
fn crossed(side: &mut Side, steps: &[Step]) -> Result<(), String> {
    let mut pending: Vec<Option<Step>> = vec![None; CONNECTIONS];
    for step in steps {
        if pending[step.connection].is_some() {
            continue;
        }
        side.send(step)?;
        pending[step.connection] = Some(step.clone());
        for (connection, _) in read_until_blocked(side, &pending)? {
            pending[connection] = None;
        }
    }
    Ok(())
}
