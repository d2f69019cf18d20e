//! Commands about the server: its settings, state, commands, databases, logs and end.

pub(crate) mod command;
mod config;
mod databases;
pub(crate) mod debug;
mod hotkeys;
mod info;
pub(crate) mod key_sizes;
mod latency;
mod logs;
mod lolwut;
mod memory;
mod modules;
mod save;

pub(crate) use config::{config_get, config_resetstat, config_rewrite, config_set, config_shards};
pub(crate) use databases::{dbsize, flushall, flushdb, swapdb};
pub(crate) use debug::debug;
pub(crate) use hotkeys::{hotkeys_get, hotkeys_reset, hotkeys_start, hotkeys_stop};
pub(crate) use info::info;
pub(crate) use latency::{
    latency_doctor, latency_graph, latency_histogram, latency_history, latency_latest,
    latency_reset,
};
pub(crate) use logs::{
    commandlog_get, commandlog_len, commandlog_reset, slowlog_get, slowlog_len, slowlog_reset,
};
pub(crate) use lolwut::lolwut;
pub(crate) use memory::{
    memory_doctor, memory_malloc_stats, memory_purge, memory_stats, memory_usage,
};
pub(crate) use modules::{module_list, module_refused};
pub(crate) use save::{bgrewriteaof, bgsave, lastsave, save, shards_of_shutdown, shutdown};

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::clients::ClientFlags;
use crate::node::config::Directive;
use russet_base::Args;
use russet_catalog::Command;

/// Whether the client is on this machine: over loopback or a Unix socket.
fn is_local(session: &Session) -> bool {
    let address = session.card.address.as_str();
    session.card.has_flag(ClientFlags::UNIX_SOCKET)
        || address.starts_with("127.")
        || address.starts_with("[::1]")
        || address.starts_with("::1")
}

/// Why a command that a directive keeps from clients is not for this one. The gate asks it before
/// the rights of the user: such a refusal is no entry of ACL LOG.
pub(crate) fn protected_refusal(
    node: &Node,
    session: &Session,
    command: Command,
) -> Option<Refusal> {
    let directive = match command {
        Command::Debug => Directive::EnableDebugCommand,
        Command::ModuleLoad | Command::ModuleLoadex | Command::ModuleUnload => {
            Directive::EnableModuleCommand
        }
        _ => return None,
    };
    let is_allowed = match node.config.choice(directive) {
        "yes" => true,
        "local" => is_local(session),
        _ => false,
    };
    (!is_allowed).then(|| not_allowed(command, directive))
}

fn not_allowed(command: Command, directive: Directive) -> Refusal {
    let name = command.full_name();
    let name = name.split_once('|').map_or(name, |(container, _)| container).to_uppercase();
    Refusal::text(format!(
        "ERR {name} command not allowed. If the {} option is set to \"local\", you can run it \
         from a local connection, otherwise you need to set this option in the configuration \
         file, and then restart the server.",
        directive.name()
    ))
}

pub(crate) fn time(ctx: &mut Ctx, _args: Args) -> Outcome {
    let now = || ctx.node.clock.now_micros();
    // For a transaction or a script it is one moment from beginning to end.
    let micros = if ctx.may_block { now() } else { *ctx.keys.fixed_micros.get_or_insert_with(now) };
    ctx.reply.array(2);
    ctx.reply.bulk_int(micros.div_euclid(1_000_000));
    ctx.reply.bulk_int(micros.rem_euclid(1_000_000));
    DONE
}

pub(crate) fn monitor(ctx: &mut Ctx, _args: Args) -> Outcome {
    if !ctx.may_block {
        return Err(Refusal::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    ctx.session.card.set_flag(ClientFlags::MONITOR, true);
    ctx.node.monitors.add(ctx.session.id(), ctx.session.mailbox.clone());
    ctx.reply.ok();
    DONE
}
