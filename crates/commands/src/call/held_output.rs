//! With `appendfsync always`: output that is not sent before all that it shows is durable. It stays
//! with its client, in order, and counts against the client's limits like any that waits.

use crate::call::mail::{Letter, Mailbox};
use russet_engine::journal::Journal;
use russet_protocol::Output;
use std::collections::VecDeque;
use std::sync::Arc;

/// Output up to a position depends on an offset of the journal.
#[derive(Clone, Copy, Debug)]
struct Mark {
    end: u64,
    offset: u64,
}

#[derive(Debug, Default)]
pub(crate) struct HeldOutput {
    marks: VecDeque<Mark>,
    /// A letter will say when the first of them is durable.
    is_awaited: bool,
}

impl HeldOutput {
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// The letter came.
    pub fn durable(&mut self) {
        self.is_awaited = false;
    }

    /// Before output is sent: keeps back what depends on `offset` or an earlier one that is not
    /// durable.
    pub fn update(
        &mut self,
        journal: &Journal,
        mailbox: &Arc<dyn Mailbox>,
        (out, offset): (&mut Output, u64),
    ) {
        let mut limit = out.limit();
        while let Some(mark) = self.marks.front().filter(|mark| journal.is_released(mark.offset)) {
            limit = Some(mark.end);
            self.marks.pop_front();
        }
        let end = out.end_position();
        if !journal.is_released(offset) && out.unsent_bytes() > 0 {
            match self.marks.back_mut() {
                Some(last) if last.end == end => {}
                Some(last) if last.offset == offset => last.end = end,
                _ => {
                    let is_first = self.marks.is_empty();
                    self.marks.push_back(Mark { end, offset });
                    // What was there before may be held a little longer than it had to be.
                    limit = if is_first { Some(out.sent_position()) } else { limit };
                }
            }
        }
        out.set_limit(limit.filter(|_| !self.marks.is_empty()));
        if let Some(first) = self.marks.front().filter(|_| !self.is_awaited) {
            self.is_awaited = true;
            let mailbox = mailbox.clone();
            journal.defer(first.offset, Box::new(move || mailbox.post_asleep(Letter::Durable)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::mail::NoMailbox;
    use russet_engine::journal::Mode;
    use russet_engine::record::{Encoded, Records};

    fn frame() -> Encoded {
        let mut journal_of_one = Records::default();
        journal_of_one.push(0, ["SET"]);
        std::mem::take(journal_of_one.encoded_mut())
    }

    /// Replies of later commands must not overtake those that wait, and each part leaves as soon as
    /// what it shows is durable.
    #[test]
    fn output_leaves_in_order_as_it_becomes_durable() {
        let journal = Journal::new(Arc::default());
        journal.set_mode(Mode::Strict);
        let mailbox: Arc<dyn Mailbox> = Arc::new(NoMailbox);
        let (mut held, mut out) = (HeldOutput::default(), Output::default());
        out.extend_from_slice(b"free ");
        held.update(&journal, &mailbox, (&mut out, 0));
        assert_eq!(out.sendable_bytes(), 5);
        out.advance(5);
        let first = journal.append(&mut frame());
        out.extend_from_slice(b"first ");
        held.update(&journal, &mailbox, (&mut out, first));
        assert_eq!((out.sendable_bytes(), out.unsent_bytes()), (0, 6));
        let second = journal.append(&mut frame());
        out.extend_from_slice(b"second ");
        held.update(&journal, &mailbox, (&mut out, second));
        out.extend_from_slice(b"third");
        held.update(&journal, &mailbox, (&mut out, second));
        assert_eq!(out.sendable_bytes(), 0);
        journal.set_durable(first, 0);
        held.durable();
        held.update(&journal, &mailbox, (&mut out, second));
        assert_eq!(out.sendable_bytes(), 6);
        out.advance(6);
        assert_eq!((out.sendable_bytes(), out.unsent_bytes()), (0, 12));
        journal.set_durable(second, 0);
        held.durable();
        held.update(&journal, &mailbox, (&mut out, second));
        assert_eq!(out.sendable_bytes(), 12);
        assert!(held.is_empty());
    }
}
