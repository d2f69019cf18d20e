//! GEOADD.

use super::point;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::zset::limits;
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_engine::event::Event;
use russet_engine::types::geo::score_of_point;
use russet_engine::types::zset::stored::{self, Draft};
use russet_engine::types::zset::{Extent, Upsert};
use smallvec::SmallVec;

/// What may become of a member.
#[derive(Clone, Copy, Default)]
struct Condition {
    only_new: bool,
    only_old: bool,
    counts_changes: bool,
}

impl Condition {
    /// The score that a member should have, if any.
    fn decide(self, old: Option<f64>, new: f64) -> Option<f64> {
        let is_allowed = if old.is_some() { !self.only_new } else { !self.only_old };
        is_allowed.then_some(new)
    }
}

/// The options, and the arguments behind them.
fn parse(args: Args<'_>) -> Result<(Condition, Args<'_>), Refusal> {
    let mut condition = Condition::default();
    let mut at = 2;
    while let Some(arg) = args.get(at) {
        if eq_ignore_case(arg, b"nx") {
            condition.only_new = true;
        } else if eq_ignore_case(arg, b"xx") {
            condition.only_old = true;
        } else if eq_ignore_case(arg, b"ch") {
            condition.counts_changes = true;
        } else {
            break;
        }
        at += 1;
    }
    let points = args.from(at);
    if !points.len().is_multiple_of(3) || (condition.only_new && condition.only_old) {
        return Err(Refusal::Syntax);
    }
    Ok((condition, points))
}

pub fn geoadd(ctx: &mut Ctx, args: Args) -> Outcome {
    let (condition, rest) = parse(args)?;
    let mut points: SmallVec<[(f64, &[u8]); 8]> = SmallVec::new();
    for at in (0..rest.len()).step_by(3) {
        let point = point([rest.at(at), rest.at(at + 1)])?;
        points.push((score_of_point(point), rest.at(at + 2)));
    }
    if points.is_empty() {
        // Nothing but options.
        return Err(Refusal::Syntax);
    }
    let (key, limits) = (args.at(1), limits(ctx));
    let extent = Extent::of(points.iter().map(|(_, member)| *member));
    let (mut added, mut moved) = (0, 0);
    let mut count = |upsert| match upsert {
        Upsert::Left => {}
        Upsert::Added => added += 1,
        Upsert::Moved => moved += 1,
    };
    if let Some(mut entry) = ctx.keys.write(key) {
        stored::expect(&mut entry, extent, limits)?;
        for (score, member) in points {
            count(stored::upsert(&mut entry, member, limits, |old| condition.decide(old, score))?);
        }
    } else if !condition.only_old {
        let mut draft = Draft::new(extent, limits);
        for (score, member) in points {
            count(draft.upsert(member, limits, |old| condition.decide(old, score)));
        }
        draft.put(|value| ctx.keys.put(key, value, None));
    }
    if added + moved > 0 {
        ctx.keys.wrote_many(key, Event::zset("zadd"), (added + moved) as u64);
    }
    ctx.reply.int(if condition.counts_changes { added + moved } else { added });
    DONE
}
