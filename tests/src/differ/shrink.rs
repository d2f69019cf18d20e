//! Makes a failing sequence short: leave out ever smaller runs of steps while it still fails.

use super::plan::Plan;
use super::run::Difference;

/// How many shorter plans are tried at most.
const TRIES_MAX: usize = 400;

/// A plan as short as can be found that still shows a difference, and that difference.
pub fn shortest(
    plan: Plan,
    difference: Difference,
    run: &mut dyn FnMut(&Plan) -> Result<Option<Difference>, String>,
) -> Result<(Plan, Difference), String> {
    let (mut plan, mut difference) = (plan, difference);
    let mut chunk = plan.steps.len().div_ceil(2);
    let mut tries = 0;
    while chunk > 0 && tries < TRIES_MAX {
        let mut at = 0;
        let mut is_shorter = false;
        while at < plan.steps.len() && tries < TRIES_MAX {
            let end = (at + chunk).min(plan.steps.len());
            let mut steps = plan.steps.clone();
            steps.drain(at..end);
            let smaller = plan.with_steps(steps);
            if !smaller.is_sound() {
                at = end;
                continue;
            }
            tries += 1;
            match run(&smaller)? {
                Some(found) => {
                    (plan, difference) = (smaller, found);
                    is_shorter = true;
                }
                None => at = end,
            }
        }
        if !(is_shorter && chunk == 1) {
            chunk /= 2;
        }
    }
    Ok((plan, difference))
}
