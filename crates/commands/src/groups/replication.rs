//! What a primary without replicas answers about them: ROLE, REPLICAOF, WAIT, WAITAOF.

use crate::call::blocking::{BlockRequest, BlockedCall};
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use russet_base::num::parse_i64;
use russet_base::{Args, UnixMillis};
use russet_engine::keys::Keys;
use russet_engine::value::Type;
use russet_protocol::Sink;

pub(crate) fn role(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.array(3);
    ctx.reply.bulk(b"master");
    // The offset in the stream of writes to replicas, which begins with the first of them.
    ctx.reply.int(0);
    ctx.reply.array(0);
    DONE
}

/// NO ONE is what this server is a replica of; following another comes with replication.
pub(crate) fn replicaof(ctx: &mut Ctx, args: Args) -> Outcome {
    let (host, port) = (args.at(1), args.at(2));
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        ctx.reply.ok();
        return DONE;
    }
    if !parse_i64(port).is_some_and(|port| (0..=i64::from(u16::MAX)).contains(&port)) {
        return Err(Refusal::text("ERR Invalid master port"));
    }
    Err(Refusal::text("ERR REPLICAOF: following another server is not supported yet"))
}

/// A wait for replicas that do not exist: only its time, CLIENT UNBLOCK or the client ends it.
enum WaitingForReplicas {
    Writes,
    WritesOnDisk,
}

impl BlockedCall for WaitingForReplicas {
    fn serve(&self, _keys: &mut Keys, reply: &mut dyn Sink, _key: &[u8]) -> Result<(), Refusal> {
        self.timed_out(reply);
        Ok(())
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        match self {
            WaitingForReplicas::Writes => reply.int(0),
            WaitingForReplicas::WritesOnDisk => {
                reply.array(2);
                reply.int(0);
                reply.int(0);
            }
        }
    }
}

pub(crate) fn wait(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: more than fit into 32 bits come round to a number that may be met at once, but no
    // negative number waits; test tests/wire/replication/replication.wire.
    let replicas = match parse_i64(args.at(1)).ok_or(Refusal::NotInteger)? {
        few @ ..=0 => few,
        many => i64::from(many as i32),
    };
    let deadline = deadline_ms(args.at(2), ctx.keys.now)?;
    wait_for(ctx, WaitingForReplicas::Writes, replicas, deadline)
}

pub(crate) fn waitaof(ctx: &mut Ctx, args: Args) -> Outcome {
    let local = match parse_i64(args.at(1)).ok_or(Refusal::NotInteger)? {
        0 => false,
        1 => true,
        _ => return Err(Refusal::text("ERR value is out of range, value must between 0 and 1")),
    };
    let replicas = parse_i64(args.at(2)).filter(|replicas| *replicas >= 0);
    let replicas = replicas.ok_or(Refusal::NotPositive)?;
    let deadline = deadline_ms(args.at(3), ctx.keys.now)?;
    if local {
        return Err(Refusal::text(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    wait_for(ctx, WaitingForReplicas::WritesOnDisk, replicas, deadline)
}

fn wait_for(
    ctx: &mut Ctx,
    call: WaitingForReplicas,
    replicas: i64,
    deadline: Option<UnixMillis>,
) -> Outcome {
    if replicas <= 0 || !ctx.may_block {
        call.timed_out(ctx.reply);
        return DONE;
    }
    // It waits for no key, so the type that it would want of one does not matter.
    let request =
        BlockRequest { keys: Vec::new(), wants: Type::String, deadline, call: Box::new(call) };
    Ok(Flow::Block(Box::new(request)))
}

/// Reads a timeout in milliseconds: when it is over, or None for never.
fn deadline_ms(arg: &[u8], now: UnixMillis) -> Result<Option<UnixMillis>, Refusal> {
    match parse_i64(arg) {
        None => Err(Refusal::text("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(Refusal::TimeoutNegative),
        Some(0) => Ok(None),
        Some(ms) => {
            let at = now.0.checked_add(ms);
            at.map(|at| Some(UnixMillis(at)))
                .ok_or_else(|| Refusal::text("ERR timeout is out of range"))
        }
    }
}
