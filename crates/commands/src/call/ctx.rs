//! What a handler is given, and what it gives back.

use crate::call::blocking::BlockRequest;
use crate::call::invoke::Origin;
use crate::call::session::Session;
use crate::call::tally::{Tally, Timing};
use crate::error::Refusal;
use crate::groups::scripting::code::{self, Code};
use crate::node::Node;
use crate::node::stats::WorkerStats;
use russet_base::Args;
use russet_catalog::Command;
use russet_engine::keys::Keys;
use russet_protocol::Sink;

/// All that a handler may touch. Handlers are pure: time is `keys.now`, the data is behind `keys`,
/// and whoever listens to the reply is behind `reply`.
pub struct Ctx<'c, 'k> {
    pub keys: &'c mut Keys<'k>,
    pub reply: &'c mut dyn Sink,
    pub session: &'c mut Session,
    pub node: &'c Node,
    pub stats: &'c WorkerStats,
    pub tally: &'c mut Tally,
    pub timing: Timing,
    pub origin: Origin,
    pub command: Command,
    /// What it runs, if it runs code: found when its shards were chosen.
    pub code: Option<&'c Code>,
    /// False inside EXEC and scripts, where a command that would block answers as if its time were
    /// over at once.
    pub may_block: bool,
}

impl Ctx<'_, '_> {
    /// The code that the call runs. A transaction may load or replace code that it then runs: what
    /// was not there when its shards were chosen is looked for now, for then it holds all of them.
    pub fn take_code(&mut self, args: Args) -> Option<Code> {
        let planned = self.code.take().cloned();
        if planned.is_none() && self.keys.holds_all() {
            return code::find(self.node, self.stats.number, self.command, args);
        }
        planned
    }

    /// Records the call as it is, if anybody listens: for a handler that records others itself.
    #[inline]
    pub fn record_as_is(&mut self, args: Args) {
        if self.keys.is_recording() {
            let db = self.keys.db;
            self.keys.effects.records.push_args(db, args);
        }
    }

    /// Whether a transaction, a script or ONCE runs the call: what was written before it is not in
    /// the journal yet.
    pub fn is_inner(&self) -> bool {
        matches!(self.origin, Origin::Transaction | Origin::Script(_) | Origin::Once)
    }

    /// Whether the user may make this call.
    pub fn is_allowed(&self, args: Args) -> bool {
        let call = self.node.call_of(self.session, (self.command, args));
        self.origin == Origin::Load || self.session.login.rights().check(&call).is_ok()
    }

    /// Whether those who monitor see the call: not if the call that runs it is shown, nor if it
    /// was seen when it came.
    pub fn is_shown(&self) -> bool {
        matches!(self.origin, Origin::Client | Origin::Transaction | Origin::Script(_))
    }
}

/// How a handler ended.
#[derive(Debug)]
pub enum Flow {
    /// The reply is written.
    Done,
    /// Nothing is written: the client waits for keys.
    Block(Box<BlockRequest>),
    /// Nothing is written: something goes on elsewhere, `session.hold` says what, and the same call
    /// is to be given again when that is over.
    Later,
    /// Nothing is written: the call needs other shards now, and goes on with them.
    Again,
}

pub type Outcome = Result<Flow, Refusal>;

pub type Handler = fn(&mut Ctx<'_, '_>, Args<'_>) -> Outcome;

/// The usual end of a handler.
pub const DONE: Outcome = Ok(Flow::Done);
