//! XREAD and XREADGROUP that wait: the call is made again, as a whole, when one of its streams has
//! something for it.

use super::read::{
    Start, Starts, answer, has_something, no_group_to_read, oldest_pending_ms, starts,
};
use super::reading::{Block, ReadCall};
use crate::call::blocking::{BlockRequest, BlockedCall};
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use russet_base::{Args, OwnedArgs, UnixMillis};
use russet_catalog::Command;
use russet_engine::keys::Keys;
use russet_engine::types::stream::StreamId;
use russet_engine::value::Type;
use russet_protocol::Sink;

/// A read that waits.
struct WaitingRead {
    /// With `$` replaced by what it meant when the wait began.
    args: OwnedArgs,
    command: Command,
}

impl WaitingRead {
    fn call(&self, now: UnixMillis) -> Result<ReadCall<'_>, Refusal> {
        ReadCall::parse(self.args.as_args(), self.command, now)
    }

    fn is_ready(&self, keys: &mut Keys) -> Result<bool, Refusal> {
        let call = self.call(keys.now)?;
        let starts = starts(keys, &call)?;
        for (index, start) in starts.iter().enumerate() {
            if has_something(keys, &call, index, *start)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl BlockedCall for WaitingRead {
    fn is_whole(&self) -> bool {
        true
    }

    fn is_satisfied(&self, keys: &mut Keys, _key: &[u8]) -> bool {
        // What is refused is answered, too.
        self.is_ready(keys).unwrap_or(true)
    }

    fn serve(&self, keys: &mut Keys, reply: &mut dyn Sink, _key: &[u8]) -> Result<(), Refusal> {
        let call = self.call(keys.now)?;
        let starts: Starts = starts(keys, &call)?;
        if !answer(keys, reply, &call, &starts)? {
            reply.null_array();
        }
        Ok(())
    }

    fn lost(&self, key: &[u8], found: Option<Type>) -> Option<Refusal> {
        let call = self.call(UnixMillis(0)).ok()?;
        let reader = call.reader?;
        Some(match found {
            None => no_group_to_read(key, &reader),
            Some(_) => Refusal::WrongType,
        })
    }

    fn alarm(&self, keys: &mut Keys) -> Option<UnixMillis> {
        let call = self.call(keys.now).ok()?;
        let idle_ms = call.claim_idle_ms?;
        let oldest = (0..call.streams_len())
            .filter_map(|index| oldest_pending_ms(keys, &call, index).ok().flatten())
            .min();
        Some(UnixMillis(oldest.unwrap_or(keys.now.0).saturating_add(idle_ms)))
    }

    fn again(&self, _args: Args) -> OwnedArgs {
        self.args.clone()
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        reply.null_array();
    }
}

/// Nothing is there: waits, if that was asked for.
pub fn wait(ctx: &mut Ctx, args: Args, call: &ReadCall, starts: &[Start]) -> Outcome {
    let Block::For(ms) = call.block else {
        ctx.reply.null_array();
        return DONE;
    };
    if !ctx.may_block {
        ctx.reply.null_array();
        return DONE;
    }
    let deadline = (ms > 0).then(|| UnixMillis(ctx.keys.now.0.saturating_add(ms)));
    let mut fixed_args: Vec<Vec<u8>> = args.iter().map(<[u8]>::to_vec).collect();
    for (index, start) in starts.iter().enumerate() {
        if let (b"$", Start::After(id)) = (call.id_arg(index), start) {
            fixed_args[call.id_at(index)] = StreamId::text(*id).as_bytes().to_vec();
        }
    }
    let keys = (0..call.streams_len()).map(|index| call.key(index).into()).collect();
    let waiting = WaitingRead { args: fixed_args.iter().collect(), command: ctx.command };
    let request = BlockRequest { keys, wants: Type::Stream, deadline, call: Box::new(waiting) };
    Ok(Flow::Block(Box::new(request)))
}
