//! What a primary without replicas answers about them: ROLE, REPLICAOF, WAIT, WAITAOF, and what
//! replicas send.

use crate::call::blocking::{BlockRequest, BlockedCall};
use crate::call::client::AwaitedSync;
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::call::mail::DurableByMail;
use crate::error::Refusal;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use russet_base::{Args, UnixMillis};
use russet_engine::journal::Journal;
use russet_engine::keys::Keys;
use russet_engine::value::Type;
use russet_protocol::{RespWriter, Sink};
use std::sync::Arc;

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

/// Checks what is asked for; there is nobody to hand over to.
pub(crate) fn failover(_ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() == 2 && args.at(1).eq_ignore_ascii_case(b"abort") {
        return Err(Refusal::text("ERR No failover in progress."));
    }
    let (mut has_target, mut has_timeout, mut is_forced) = (false, false, false);
    let mut at = 1;
    while let Some(option) = args.get(at) {
        match option.to_ascii_lowercase().as_slice() {
            b"timeout" if at + 1 < args.len() && !has_timeout => {
                let timeout_ms = parse_i64(args.at(at + 1)).ok_or(Refusal::NotInteger)?;
                if timeout_ms <= 0 {
                    return Err(Refusal::text("ERR FAILOVER timeout must be greater than 0"));
                }
                (has_timeout, at) = (true, at + 2);
            }
            b"to" if at + 2 < args.len() && !has_target => {
                parse_i64(args.at(at + 2)).ok_or(Refusal::NotInteger)?;
                (has_target, at) = (true, at + 3);
            }
            b"force" if !is_forced => (is_forced, at) = (true, at + 1),
            _ => return Err(Refusal::Syntax),
        }
    }
    Err(Refusal::text("ERR FAILOVER requires connected replicas."))
}

/// DIFFERS: there is no stream of writes for replicas yet.
pub(crate) fn sync(ctx: &mut Ctx, _args: Args) -> Outcome {
    let name = ctx.command.spec().name.to_ascii_uppercase();
    Err(Refusal::text(format!("ERR {name}: replicas are not supported yet")))
}

/// What a replica says of itself before it asks for the stream. It is checked, and no more.
pub(crate) fn replconf(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len().is_multiple_of(2) {
        return Err(Refusal::Syntax);
    }
    for at in (1..args.len()).step_by(2) {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"listening-port" | b"rdb-only" => {
                parse_i64(args.at(at + 1)).ok_or(Refusal::NotInteger)?;
            }
            b"ip-address" | b"capa" | b"version" => {}
            _ => {
                let option = escape(args.at(at));
                return Err(Refusal::text(format!("ERR Unrecognized REPLCONF option: {option}")));
            }
        }
    }
    ctx.reply.ok();
    DONE
}

/// A wait for replicas that do not exist: only its time, CLIENT UNBLOCK or the client ends it.
enum WaitingForReplicas {
    Writes,
    /// The client's own writes reach to this offset.
    WritesOnDisk {
        journal: Arc<Journal>,
        offset: u64,
    },
}

impl BlockedCall for WaitingForReplicas {
    fn serve(&self, _keys: &mut Keys, reply: &mut dyn Sink, _key: &[u8]) -> Result<(), Refusal> {
        self.timed_out(reply);
        Ok(())
    }

    fn timed_out(&self, reply: &mut dyn Sink) {
        match self {
            WaitingForReplicas::Writes => reply.int(0),
            WaitingForReplicas::WritesOnDisk { journal, offset } => {
                write_synced(reply, journal.is_on() && journal.durable() >= *offset);
            }
        }
    }
}

pub(crate) fn wait(ctx: &mut Ctx, args: Args) -> Outcome {
    let replicas = awaited_replicas(parse_i64(args.at(1)).ok_or(Refusal::NotInteger)?);
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
    let replicas = awaited_replicas(replicas.ok_or(Refusal::NotPositive)?);
    let deadline = deadline_ms(args.at(3), ctx.keys.now)?;
    let (journal, offset) = (ctx.node.keyspace.journal(), ctx.session.last_write);
    let on_disk = WaitingForReplicas::WritesOnDisk { journal: journal.clone(), offset };
    if !local {
        return wait_for(ctx, on_disk, replicas, deadline);
    }
    if !journal.is_on() {
        return Err(log_is_off());
    }
    let is_durable = journal.durable() >= offset;
    if (is_durable && replicas <= 0) || !ctx.may_block {
        write_synced(ctx.reply, is_durable);
        return DONE;
    }
    if replicas <= 0 {
        let reply = |is_durable| {
            let mut bytes = Vec::new();
            write_synced(&mut RespWriter::new(&mut bytes, ctx.session.resp), is_durable);
            bytes
        };
        let (reply, late_reply) = (reply(true), reply(false));
        if let Some(mut out) = ctx.reply.wire() {
            out.extend_from_slice(&reply);
        }
        let waker = Arc::new(DurableByMail(ctx.session.mailbox.clone()));
        let awaited = AwaitedSync { offset, deadline, reply, late_reply, waker };
        ctx.session.awaited_sync = Some(Box::new(awaited));
        return DONE;
    }
    wait_for(ctx, on_disk, replicas, deadline)
}

/// Why WAITAOF can't wait for this server.
pub(crate) fn log_is_off() -> Refusal {
    let text = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    Refusal::text(text)
}

/// How many replicas a call waits for.
///
/// COMPAT: more than fit into 32 bits come round to a number that may be met at once, but no
/// negative number waits; test tests/wire/replication/replication.wire.
fn awaited_replicas(asked: i64) -> i64 {
    if asked <= 0 { asked } else { i64::from(asked as i32) }
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

/// How many of this server and of its replicas have the client's writes on disk.
fn write_synced(reply: &mut dyn Sink, is_durable: bool) {
    reply.array(2);
    reply.int(i64::from(is_durable));
    reply.int(0);
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
