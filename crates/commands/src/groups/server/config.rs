//! CONFIG: what clients may read and change of the settings.

use super::is_local;
use super::save::wait;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::publish_notices;
use crate::error::Refusal;
use crate::node::config::{Directive, Requester, Undo};
use crate::node::snapshot::AwaitedSave;
use crate::node::tracking;
use russet_base::Args;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::shard_set::ShardSet;
use std::sync::Arc;

pub(crate) fn config_get(ctx: &mut Ctx, args: Args) -> Outcome {
    let patterns: Vec<&[u8]> = args.from(2).iter().collect();
    // COMPAT: a name that was asked for by itself is answered in the letters of the question
    // (tests/wire/server/config.wire).
    let mut found = ctx.node.config.matching(&patterns);
    found.sort_unstable_by_key(|(name, _)| name.to_ascii_lowercase());
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(&value);
    }
    DONE
}

/// Every shard, if what is set changes what becomes of writes: then no call may be half-way.
pub(crate) fn config_shards(keyspace: &Keyspace, args: Args) -> ShardSet {
    let is_of_log = |name: &[u8]| {
        let directive = Directive::named(name);
        matches!(directive, Some(Directive::AppendOnly | Directive::AppendFsync))
    };
    match args.from(2).iter().step_by(2).any(is_of_log) {
        true => keyspace.all_shards(),
        false => ShardSet::EMPTY,
    }
}

fn switches_log_on((name, value): &(&[u8], &[u8])) -> bool {
    Directive::named(name) == Some(Directive::AppendOnly) && value.eq_ignore_ascii_case(b"yes")
}

/// What there is of a log that is to be switched on.
enum Begun {
    /// It has begun, or there was one.
    Log,
    Waits(Arc<AwaitedSave>),
    /// A snapshot is in its way: the data that it is to begin with is at hand.
    Prepared,
}

/// Sees to it that there is a log. The call is given again until it has begun.
fn begin_log(ctx: &mut Ctx) -> Result<Begun, String> {
    let node = ctx.node;
    let begun = match ctx.session.save.take() {
        Some(begun) => Some(begun),
        None => node.begin_log()?,
    };
    let Some(begun) = begun else {
        node.prepare_log(ctx.keys)?;
        return Ok(Begun::Prepared);
    };
    node.look_at_beginning();
    let Some(outcome) = begun.outcome_or_wait(&ctx.session.mailbox) else {
        return Ok(Begun::Waits(begun));
    };
    let is_first = node.end_beginning(&begun);
    match outcome {
        Ok(()) if node.durability.log().is_some() && !node.is_log_beginning() => Ok(Begun::Log),
        // It was given up, or switched off, by another; one more may have been begun since.
        Ok(()) => begin_log(ctx),
        Err(why) => {
            if is_first {
                node.give_up_log();
            }
            Err(why)
        }
    }
}

pub(crate) fn config_set(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() % 2 == 1 {
        return Err(Refusal::Syntax);
    }
    let pair = |at| (args.at(at), args.at(at + 1));
    let pairs: Vec<(&[u8], &[u8])> = (2..args.len()).step_by(2).map(pair).collect();
    let node = ctx.node;
    if !ctx.is_inner() && ctx.keys.holds_all() && pairs.iter().any(switches_log_on) {
        if let Some(begun) = set_with_log(ctx, &pairs)? {
            return wait(ctx, begun);
        }
    } else {
        set(ctx, &pairs).map_err(Refusal::text)?;
    }
    if ctx.keys.held().is_empty() {
        tracking::trim(node, ctx.keys.effects, ctx.keys.now);
    }
    node.limit_client_memory_for(ctx.session);
    let directives = pairs.iter().filter_map(|(name, _)| Directive::named(name));
    for warning in directives.filter_map(|directive| node.config.set_warning(directive)) {
        node.host.log(&warning);
    }
    ctx.reply.ok();
    DONE
}

fn requester(ctx: &Ctx) -> Requester {
    if is_local(ctx.session) { Requester::Local } else { Requester::Remote }
}

/// Sets all of these, or none.
fn set(ctx: &mut Ctx, pairs: &[(&[u8], &[u8])]) -> Result<Undo, String> {
    let (node, is_inner) = (ctx.node, ctx.is_inner());
    // In a transaction: what was done before it is published by what held then.
    publish_notices(ctx.keys, node);
    let set = node.config.set(pairs, requester(ctx), &mut |directive| {
        if is_inner && directive == Directive::AppendOnly {
            node.schedule_log_switch();
            return Ok(());
        }
        node.directive_changed(directive)
    });
    ctx.keys.refresh_listeners();
    set
}

/// The same where the log is to begin, if need be in a directory that is among what is set. Its
/// base takes the place of a log that may lie there: before it begins, all else holds already, and
/// is put back if there is to be no log. Whose call has to wait is given what for, and is given
/// again.
fn set_with_log(
    ctx: &mut Ctx,
    pairs: &[(&[u8], &[u8])],
) -> Result<Option<Arc<AwaitedSave>>, Refusal> {
    let node = ctx.node;
    let (switch, others): (Vec<_>, Vec<_>) = pairs.iter().copied().partition(switches_log_on);
    if ctx.session.save.is_none() {
        node.config.check_all(pairs, requester(ctx)).map_err(Refusal::text)?;
        let undo = set(ctx, &others).map_err(Refusal::text)?;
        ctx.session.beside = Some(Box::new(node.set_beside(undo)));
    }
    let begun = begin_log(ctx).map_err(|why| format!("ERR {why}"));
    let (begun, has_begun) = match begun {
        Ok(Begun::Waits(begun)) => return Ok(Some(begun)),
        Ok(begun) => (Ok(()), matches!(begun, Begun::Log)),
        Err(why) => (Err(why), false),
    };
    let done = begun.and_then(|()| set(ctx, &switch));
    node.forget_base();
    let undo = ctx.session.beside.take().map(|beside| beside.into_undo()).unwrap_or_default();
    let Err(why) = done else { return Ok(None) };
    // Unless another who waited for it has it.
    if has_begun && !node.config.flag(Directive::AppendOnly) {
        node.give_up_log();
    }
    node.put_back(undo);
    ctx.keys.refresh_listeners();
    Err(Refusal::text(why))
}

pub(crate) fn config_resetstat(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.node.reset_stats();
    ctx.reply.ok();
    DONE
}

pub(crate) fn config_rewrite(ctx: &mut Ctx, _args: Args) -> Outcome {
    let node = ctx.node;
    // A file of users is written by ACL SAVE.
    let lines = || node.acl.users().iter().map(|user| user.line()).collect::<Vec<_>>();
    let users = node.acl_file().is_none().then(lines);
    node.config.rewrite(users.as_deref()).map_err(Refusal::text)?;
    ctx.reply.ok();
    DONE
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn what_is_set_holds_where_it_is_kept() {
        let mut server = TestServer::new();
        assert_eq!(server.say("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2"), "+OK");
        server.say("SET a b");
        server.say("SET a b");
        server.say("SET a b");
        assert_eq!(server.say("SLOWLOG LEN"), "2");
        server.say("CONFIG SET slowlog-max-len 1");
        assert_eq!(server.say("SLOWLOG LEN"), "1");
        assert!(server.say("CONFIG SET port").contains("wrong number of arguments"));
        let odd = server.say("CONFIG SET hz 10 port");
        assert!(odd.contains("ERR syntax error"), "{odd}");
    }
}
