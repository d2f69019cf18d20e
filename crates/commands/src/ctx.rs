//! What a handler is given, and what it gives back.

use crate::blocking::BlockRequest;
use crate::error::Refusal;
use crate::node::Node;
use crate::session::Session;
use crate::stats::WorkerStats;
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
    pub command: Command,
    /// False inside EXEC and scripts, where a command that would block answers as if its time were
    /// over at once.
    pub may_block: bool,
}

/// How a handler ended.
#[derive(Debug)]
pub enum Flow {
    /// The reply is written.
    Done,
    /// Nothing is written: the client waits for keys.
    Block(Box<BlockRequest>),
    /// Nothing was done: what the command needs has changed since its shards were chosen. It is to
    /// be planned again.
    Replan,
}

pub type Outcome = Result<Flow, Refusal>;

pub type Handler = fn(&mut Ctx<'_, '_>, Args<'_>) -> Outcome;

/// The usual end of a handler.
pub const DONE: Outcome = Ok(Flow::Done);
