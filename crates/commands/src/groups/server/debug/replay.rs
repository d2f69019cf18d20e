//! DEBUG RECORD and DEBUG REPLAY: what calls have changed, and how it is done again. For the test
//! that records lose nothing.

use super::{ok, unknown};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::{self, Origin};
use crate::call::tally::Timing;
use crate::error::Refusal;
use crate::groups::scripting::code;
use russet_base::{Args, UnixMillis, num};
use russet_catalog::{Command, resolve};
use russet_engine::record::{Record, RecordListener};
use russet_protocol::{Resp, RespWriter};
use std::sync::{Arc, Mutex, MutexGuard};

/// The time that a replay runs at: nothing has expired, and no deadline is in the past.
pub const REPLAY_TIME: UnixMillis = UnixMillis(0);

/// Records since they were last taken.
#[derive(Default)]
pub struct Gathered(Mutex<Vec<Record>>);

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl RecordListener for Gathered {
    fn units(&self, records: &[Record]) {
        let is_logged = |record: &&Record| record.destination.is_logged();
        self.lock().extend(records.iter().filter(is_logged).cloned());
    }
}

/// `DEBUG RECORD START|TAKE|COMMANDS|STOP`: TAKE answers with an array for each record, the
/// database first; COMMANDS with the commands that were recorded since the last CONFIG RESETSTAT.
pub(super) fn record(ctx: &mut Ctx, args: Args) -> Outcome {
    match args.at(2).to_ascii_lowercase().as_slice() {
        b"start" => {
            let gathered = Arc::<Gathered>::default();
            *ctx.node.gathered() = Some(gathered.clone());
            ctx.node.set_record_listener(Some(gathered));
            ok(ctx)
        }
        b"take" => {
            let gathered = ctx.node.gathered().clone();
            let taken = gathered.map(|gathered| std::mem::take(&mut *gathered.lock()));
            let taken = taken.ok_or_else(|| Refusal::text("ERR records are not gathered"))?;
            ctx.reply.array(taken.len());
            for record in taken {
                ctx.reply.array(record.args.as_args().len() + 1);
                ctx.reply.int(record.db as i64);
                record.args.as_args().iter().for_each(|arg| ctx.reply.bulk(arg));
            }
            DONE
        }
        b"commands" => {
            let workers = ctx.node.stats.workers();
            let has_recorded = |command: &&Command| {
                workers.iter().any(|worker| worker.of(**command).recorded.read() > 0)
            };
            let recorded: Vec<_> = Command::ALL.iter().filter(has_recorded).collect();
            ctx.reply.array(recorded.len());
            recorded.iter().for_each(|command| ctx.reply.bulk(command.full_name().as_bytes()));
            DONE
        }
        b"stop" => {
            *ctx.node.gathered() = None;
            ctx.node.set_record_listener(None);
            ok(ctx)
        }
        _ => Err(unknown(args)),
    }
}

/// `DEBUG REPLAY db command arg ...`: answers OK, or with the error of the command.
pub(super) fn replay(ctx: &mut Ctx, args: Args) -> Outcome {
    let db = num::parse_i64(args.at(2)).and_then(|db| usize::try_from(db).ok());
    let db = db.filter(|db| *db < ctx.node.keyspace.databases());
    let db = db.ok_or_else(|| Refusal::text("ERR DB index is out of range"))?;
    let call = args.from(3);
    let command = resolve(call).map_err(|_| Refusal::text("ERR unknown command in a record"))?;
    let spec = command.spec();
    // PFDEBUG and the like are recorded by their handlers.
    if !spec.arity.allows(call.len()) || !spec.reaches_replicas() {
        return Err(Refusal::text("ERR this is no record"));
    }
    let mut reply = Vec::new();
    let mut sink = RespWriter::new(&mut reply, Resp::V3);
    let (own_db, now) = (ctx.session.db, ctx.keys.now);
    (ctx.session.db, ctx.keys.now) = (db, REPLAY_TIME);
    ctx.keys.real_time = Some(now);
    let code = code::find(ctx.node, ctx.stats.number, command, call);
    ctx.keys.in_db(db, |keys| {
        let mut inner = Ctx {
            keys,
            reply: &mut sink,
            session: ctx.session,
            node: ctx.node,
            stats: ctx.stats,
            tally: ctx.tally,
            timing: Timing::WithCaller,
            origin: Origin::Load,
            command,
            code: code.as_ref(),
            may_block: false,
        };
        invoke::invoke(&mut inner, &call);
    });
    (ctx.session.db, ctx.keys.now) = (own_db, now);
    ctx.keys.real_time = None;
    match reply.strip_prefix(b"-") {
        None => ok(ctx),
        Some(text) => {
            let text = String::from_utf8_lossy(text);
            Err(Refusal::text(text.trim_end().to_owned()))
        }
    }
}
