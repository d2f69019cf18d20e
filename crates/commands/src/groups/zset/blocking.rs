//! The commands that wait for members: BZPOPMIN, BZPOPMAX, BZMPOP.

use super::pop::{Extreme, Pop, Shape};
use crate::call::blocking::{BlockedPop, deadline, pop_or_wait};
use crate::call::ctx::{Ctx, Outcome};
use crate::groups::many_keys::ManyKeys;
use russet_base::Args;
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;
use russet_engine::value::{Type, WrongType};
use russet_protocol::Sink;

/// A pop that waits.
struct WaitingPop {
    extreme: Extreme,
    count: usize,
    shape: Shape,
}

impl BlockedPop for WaitingPop {
    const WANTS: Type = Type::Zset;

    fn pop(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<bool, WrongType> {
        let pop = Pop { key, extreme: self.extreme, count: self.count };
        let is_popped = pop.run(keys, reply, self.shape)?;
        if is_popped && keys.is_recording() {
            let count = IntText::new(self.count as i64);
            keys.record([self.extreme.pop_name(), key, count.as_bytes()]);
        }
        Ok(is_popped)
    }
}

pub fn bzpopmin(ctx: &mut Ctx, args: Args) -> Outcome {
    pop_one(ctx, args, Extreme::Min)
}

pub fn bzpopmax(ctx: &mut Ctx, args: Args) -> Outcome {
    pop_one(ctx, args, Extreme::Max)
}

fn pop_one(ctx: &mut Ctx, args: Args, extreme: Extreme) -> Outcome {
    let deadline = deadline(args.at(args.len() - 1), ctx.keys.now)?;
    let keys = args.from(1).iter().take(args.len() - 2);
    let call = WaitingPop { extreme, count: 1, shape: Shape::KeyAndPair };
    pop_or_wait(ctx, keys, deadline, call)
}

pub fn bzmpop(ctx: &mut Ctx, args: Args) -> Outcome {
    let wanted = ManyKeys::parse(args.from(2), Extreme::parse)?;
    let deadline = deadline(args.at(1), ctx.keys.now)?;
    let (extreme, count) = (wanted.side, wanted.count);
    let call = WaitingPop { extreme, count, shape: Shape::KeyAndPairs };
    pop_or_wait(ctx, wanted.iter(), deadline, call)
}
