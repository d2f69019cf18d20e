//! SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE and SHUTDOWN: the data in files, and the end.

use crate::call::client::Hold;
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::error::Refusal;
use crate::node::snapshot::{AwaitedSave, Begun, Cancelled, EndOptions};
use russet_base::Args;
use russet_engine::barrier::Barrier;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;
use std::sync::Arc;

/// The client waits, and all others go on.
pub(crate) fn save(ctx: &mut Ctx, _args: Args) -> Outcome {
    let begun = match ctx.session.save.take() {
        Some(save) => Ok(save),
        None => ctx.node.begin_awaited_save(),
    };
    let saved = match begun {
        Ok(save) => match save.outcome_or_wait(&ctx.session.mailbox) {
            Some(saved) => saved,
            None => return wait(ctx, save),
        },
        Err(why) => Err(why),
    };
    saved.map_err(|reason| Refusal::text(format!("ERR {reason}")))?;
    ctx.reply.ok();
    DONE
}

/// The call is given again when the save is over.
pub(super) fn wait(ctx: &mut Ctx, save: Arc<AwaitedSave>) -> Outcome {
    ctx.session.save = Some(save);
    ctx.session.hold = Hold::Job;
    Ok(Flow::Later)
}

/// `BGSAVE [SCHEDULE|CANCEL]`
pub(crate) fn bgsave(ctx: &mut Ctx, args: Args) -> Outcome {
    let is = |option: &str| args.len() == 2 && args.at(1).eq_ignore_ascii_case(option.as_bytes());
    if is("cancel") {
        return cancel(ctx);
    }
    let is_scheduled = is("schedule");
    if args.len() > 1 && !is_scheduled {
        return Err(Refusal::Syntax);
    }
    let begun = ctx.node.begin_save(is_scheduled, ctx.is_inner());
    let begun = begun.map_err(|reason| Refusal::text(format!("ERR {reason}")))?;
    ctx.reply.status(match begun {
        Begun::Started => "Background saving started",
        Begun::Scheduled => "Background saving scheduled",
    });
    DONE
}

fn cancel(ctx: &mut Ctx) -> Outcome {
    ctx.reply.status(match ctx.node.cancel_background_save() {
        Some(Cancelled::Running) => "Background saving cancelled",
        Some(Cancelled::Scheduled) => "Scheduled background saving cancelled",
        None => {
            return Err(Refusal::text(
                "ERR Background saving is currently not in progress or scheduled",
            ));
        }
    });
    DONE
}

/// DIFFERS: without a log there is nothing to rewrite, and none is begun.
pub(crate) fn bgrewriteaof(ctx: &mut Ctx, _args: Args) -> Outcome {
    let begun = match ctx.is_inner() {
        true => ctx.node.schedule_rewrite().map(|()| Begun::Scheduled),
        false => ctx.node.rewrite_log(),
    };
    let begun = begun.map_err(|reason| Refusal::text(format!("ERR {reason}")))?;
    ctx.reply.status(match begun {
        Begun::Started => "Background append only file rewriting started",
        Begun::Scheduled => "Background append only file rewriting scheduled",
    });
    DONE
}

pub(crate) fn lastsave(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.int(ctx.node.saves.last_seconds());
    DONE
}

/// What SHUTDOWN is asked to do.
enum Wish {
    End(EndOptions),
    Abort,
}

fn parse(args: Args) -> Result<Wish, Refusal> {
    let (mut end, mut is_not_saving, mut is_aborted) = (EndOptions::default(), false, false);
    for arg in args.from(1).iter() {
        match arg.to_ascii_lowercase().as_slice() {
            b"nosave" => is_not_saving = true,
            b"save" => end.saves = Some(true),
            b"abort" => is_aborted = true,
            b"force" => end.is_forced = true,
            b"now" | b"safe" | b"failover" => {}
            _ => return Err(Refusal::Syntax),
        }
    }
    if (is_aborted && args.len() > 2) || (end.saves.is_some() && is_not_saving) {
        return Err(Refusal::Syntax);
    }
    if is_not_saving {
        end.saves = Some(false);
    }
    Ok(if is_aborted { Wish::Abort } else { Wish::End(end) })
}

/// The shards that SHUTDOWN needs when it begins: all if it may save, else none, so that it need
/// not wait for a script that never ends, nor for a load.
pub(crate) fn shards_of_shutdown(keyspace: &Keyspace, args: Args) -> ShardSet {
    match parse(args) {
        _ if keyspace.barriers().is_up(Barrier::Loading) => ShardSet::EMPTY,
        Ok(Wish::End(EndOptions { saves: None | Some(true), .. })) => keyspace.all_shards(),
        _ => ShardSet::EMPTY,
    }
}

pub(crate) fn shutdown(ctx: &mut Ctx, args: Args) -> Outcome {
    let end = match parse(args)? {
        Wish::End(end) => end,
        Wish::Abort if ctx.node.abort_end() => {
            ctx.reply.ok();
            return DONE;
        }
        Wish::Abort => return Err(Refusal::text("ERR No shutdown in progress.")),
    };
    let begun = match ctx.session.save.take() {
        Some(save) => Ok(Some(save)),
        None => ctx.node.check_log_at_end(end).and_then(|()| match ctx.node.saves_at_end(end) {
            true => ctx.node.begin_end_save(end, true).map(Some),
            false => Ok(None),
        }),
    };
    let ready = match begun {
        Ok(Some(save)) => match save.outcome_or_wait(&ctx.session.mailbox) {
            Some(ready) => ready,
            None => return wait(ctx, save),
        },
        Ok(None) => {
            ctx.node.saves.decide_end();
            ctx.node.host.shut_down();
            Ok(())
        }
        Err(why) => Err(why),
    };
    ready.map_err(|_logged| Refusal::text("ERR Errors trying to SHUTDOWN. Check logs."))?;
    // No reply: the connection's end shows that it worked.
    ctx.session.is_closing = true;
    DONE
}
