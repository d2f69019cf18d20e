//! The checks that hold a command back before it is planned: authentication, transactions,
//! subscribed clients, CLIENT PAUSE. Skipped whole when none applies.

use crate::call::invoke::refusal_of;
use crate::call::session::{Gate, Session};
use crate::error::Refusal;
use crate::groups::once;
use crate::groups::transactions;
use crate::node::Node;
use russet_base::Args;
use russet_catalog::Command;
use russet_catalog::spec::Flags;
use russet_protocol::Sink;

pub(crate) enum Verdict {
    Pass,
    /// The reply is written.
    Answered,
    /// Not now: the client is notified when.
    Wait,
    Refuse(Refusal),
}

pub(crate) fn check(
    node: &Node,
    session: &mut Session,
    command: Command,
    args: Args,
    sink: &mut dyn Sink,
) -> Verdict {
    if let Some(refusal) = refusal_of(session, command) {
        return Verdict::Refuse(refusal);
    }
    if session.gate.has(Gate::SUBSCRIBED_RESP2) && !is_allowed_when_subscribed(command) {
        let name = command.full_name();
        return Verdict::Refuse(Refusal::text(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        )));
    }
    let is_queued = session.gate.has(Gate::IN_MULTI)
        && !transactions::runs_at_once(command)
        && !once::wraps_exec(command, args);
    if is_queued && command.spec().flags.has(Flags::NO_MULTI) {
        let name = command.full_name();
        return Verdict::Refuse(Refusal::text(format!(
            "ERR Command '{name}' not allowed inside a transaction"
        )));
    }
    if node.pause.holds(node, session, (command, args)) {
        return Verdict::Wait;
    }
    if is_queued {
        transactions::queue(session, command, args);
        sink.status("QUEUED");
        return Verdict::Answered;
    }
    Verdict::Pass
}

fn is_allowed_when_subscribed(command: Command) -> bool {
    matches!(
        command,
        Command::Subscribe
            | Command::Unsubscribe
            | Command::Psubscribe
            | Command::Punsubscribe
            | Command::Ssubscribe
            | Command::Sunsubscribe
            | Command::Ping
            | Command::Quit
            | Command::Reset
    )
}
