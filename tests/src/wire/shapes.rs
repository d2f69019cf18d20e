//! Whether a reply has the shape that the catalog declares for its command.

use std::collections::VecDeque;

use russet_catalog::Command;
use russet_catalog::spec::Shape;

use super::expect;
use crate::client::Reply;

/// The calls of one connection whose replies are still to come.
#[derive(Default)]
pub struct Awaited {
    calls: VecDeque<Option<Command>>,
    /// From here on replies are not one for each call: messages, MONITOR's lines, CLIENT REPLY.
    is_lost: bool,
}

impl Awaited {
    pub fn sent(&mut self, args: &[Vec<u8>]) {
        let command = resolve_args(args);
        self.is_lost |= command.is_some_and(|command| {
            let shape = command.spec().reply;
            shape == Shape::Push || matches!(command, Command::Monitor | Command::ClientReply)
        });
        self.calls.push_back(command);
    }

    /// Bytes that are no call of ours.
    pub fn lose(&mut self) {
        self.is_lost = true;
    }

    /// The command that this reply answers, unless it is an error, a message, or QUEUED.
    pub fn answered(&mut self, reply: &Reply) -> Option<Command> {
        if matches!(reply, Reply::Push(_)) {
            return None;
        }
        let command = self.calls.pop_front().flatten().filter(|_| !self.is_lost)?;
        let is_queued = matches!(reply, Reply::Status(text) if text == b"QUEUED");
        (!reply.is_error() && !is_queued).then_some(command)
    }
}

/// The shape that this reply has; of those that the catalog knows, the narrowest.
pub fn shape_of(reply: &Reply) -> Option<Shape> {
    let known = [
        Shape::Ok,
        Shape::Status,
        Shape::Integer,
        Shape::Bulk,
        Shape::Double,
        Shape::Boolean,
        Shape::Null,
        Shape::Array,
        Shape::Map,
        Shape::Set,
        Shape::Verbatim,
    ];
    known.into_iter().find(|shape| fits(*shape, reply))
}

/// The shapes that a command's replies may have.
pub fn declared(shape: Shape) -> Vec<Shape> {
    match shape {
        Shape::OneOf(shapes) => shapes.iter().flat_map(|shape| declared(*shape)).collect(),
        Shape::Any | Shape::Push => Vec::new(),
        one => vec![one],
    }
}

/// The command that these arguments call, if there is one.
pub fn resolve_args(args: &[Vec<u8>]) -> Option<Command> {
    let first = russet_catalog::lookup(args.first()?)?;
    match (first.is_container(), args.get(1)) {
        (true, Some(second)) => russet_catalog::lookup_subcommand(first, second),
        _ => Some(first),
    }
}

/// An error, if the reply has not the shape that the catalog declares for the command.
pub fn check(command: Command, reply: &Reply) -> Result<(), String> {
    let shape = command.spec().reply;
    if fits(shape, reply) {
        return Ok(());
    }
    let (reply, name) = (expect::print(reply), command.full_name());
    Err(format!("{reply}, but the catalog says {shape:?} of {name}"))
}

/// Whether a reply has the shape.
fn fits(shape: Shape, reply: &Reply) -> bool {
    match shape {
        Shape::Ok => matches!(reply, Reply::Status(text) if text == b"OK"),
        Shape::Status => matches!(reply, Reply::Status(_)),
        Shape::Integer => matches!(reply, Reply::Int(_)),
        Shape::Bulk => matches!(reply, Reply::Bulk(_)),
        Shape::Double => matches!(reply, Reply::Double(_)),
        Shape::Boolean => matches!(reply, Reply::Bool(_)),
        Shape::Null => matches!(reply, Reply::Null | Reply::NullBulk | Reply::NullArray),
        Shape::Array => matches!(reply, Reply::Array(_)),
        Shape::Map => matches!(reply, Reply::Map(_)),
        Shape::Set => matches!(reply, Reply::Set(_)),
        Shape::Verbatim => matches!(reply, Reply::Verbatim { .. }),
        Shape::OneOf(shapes) => shapes.iter().any(|shape| fits(*shape, reply)),
        Shape::Any | Shape::Push => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_messages_answer_no_command() {
        let args: Vec<Vec<u8>> = vec![b"strlen".to_vec(), b"k".to_vec()];
        let mut awaited = Awaited::default();
        awaited.sent(&args);
        assert_eq!(awaited.answered(&Reply::Push(Vec::new())), None);
        assert_eq!(awaited.answered(&Reply::Int(1)), Some(Command::Strlen));
        awaited.sent(&args);
        assert_eq!(awaited.answered(&Reply::Error(b"ERR x".to_vec())), None);
    }

    #[test]
    fn a_reply_of_another_shape_is_found() {
        assert!(fits(Shape::OneOf(&[Shape::Bulk, Shape::Null]), &Reply::Null));
        assert!(!fits(Shape::Integer, &Reply::Null));
        assert_eq!(shape_of(&Reply::Status(b"OK".to_vec())), Some(Shape::Ok));
        assert_eq!(shape_of(&Reply::Status(b"PONG".to_vec())), Some(Shape::Status));
    }
}
