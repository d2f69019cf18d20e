//! The commands that wait for members: BZPOPMIN, BZPOPMAX, BZMPOP.

use super::pop::{Extreme, Pop, Shape};
use crate::call::blocking::{BlockRequest, BlockedCall, deadline};
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use crate::groups::many_keys::ManyKeys;
use russet_base::{Args, UnixMillis};
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

impl WaitingPop {
    fn on<'k>(&self, key: &'k [u8]) -> Pop<'k> {
        Pop { key, extreme: self.extreme, count: self.count }
    }

    /// Pops, answers and records it; false, and no answer, without a key.
    fn pop(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<bool, WrongType> {
        let is_popped = self.on(key).run(keys, reply, self.shape)?;
        if is_popped && keys.is_recording() {
            let count = IntText::new(self.count as i64);
            keys.record([self.extreme.pop_name(), key, count.as_bytes()]);
        }
        Ok(is_popped)
    }
}

impl BlockedCall for WaitingPop {
    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, key: &[u8]) -> Result<(), Refusal> {
        self.pop(keys, reply, key)?;
        Ok(())
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        reply.null_array();
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

fn pop_or_wait<'a>(
    ctx: &mut Ctx,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    deadline: Option<UnixMillis>,
    call: WaitingPop,
) -> Outcome {
    for key in keys.clone() {
        if call.pop(ctx.keys, ctx.reply, key)? {
            return DONE;
        }
    }
    if !ctx.may_block {
        call.timed_out(ctx.reply);
        return DONE;
    }
    let keys = keys.map(Box::from).collect();
    let request = BlockRequest { keys, wants: Type::Zset, deadline, call: Box::new(call) };
    Ok(Flow::Block(Box::new(request)))
}
