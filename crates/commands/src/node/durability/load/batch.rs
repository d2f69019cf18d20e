//! Commands of a log that are run in one batch.

use russet_base::{Args, Span};
use russet_catalog::Command;
use russet_engine::keys::KnownKey;
use russet_engine::keyspace::Location;

/// Commands, or bytes of them, after which a batch is run.
const CALLS_MAX: usize = 512;
const BYTES_MAX: usize = 1 << 20;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub command: Command,
    pub db: usize,
    /// Its offset in the file.
    pub at: u64,
    /// Where its spans, and its keys, end.
    spans_end: usize,
    keys_end: usize,
}

#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Which argument each key is, and where it lives.
    keys: Vec<(usize, Location)>,
    pub calls: Vec<Call>,
    /// Whether what can't be run is passed over.
    pub is_lenient: bool,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.calls.len() >= CALLS_MAX || self.bytes.len() >= BYTES_MAX
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        // A long argument is not to take its room for ever.
        self.bytes.shrink_to(2 * BYTES_MAX);
        self.spans.clear();
        self.keys.clear();
        self.calls.clear();
    }

    /// Whether spans can say where the arguments of one more command are. An empty batch has room
    /// for any.
    pub fn has_room_for(&self, args: Args<'_>) -> bool {
        self.is_empty() || u32::try_from(self.bytes.len() + args.bytes_total()).is_ok()
    }

    /// Adds a command whose keys are at these arguments.
    pub fn push(
        &mut self,
        (command, args): (Command, Args<'_>),
        (db, at): (usize, u64),
        keys: &[(usize, Location)],
    ) {
        let first = self.spans.len();
        for arg in args.iter() {
            self.spans.push(Span { start: self.bytes.len() as u32, len: arg.len() as u32 });
            self.bytes.extend_from_slice(arg);
        }
        self.keys.extend(keys.iter().map(|(index, location)| (first + index, *location)));
        let (spans_end, keys_end) = (self.spans.len(), self.keys.len());
        self.calls.push(Call { command, db, at, spans_end, keys_end });
    }

    /// The arguments of a command.
    pub fn args(&self, index: usize) -> Args<'_> {
        let start = index.checked_sub(1).map_or(0, |before| self.calls[before].spans_end);
        Args::new(&self.bytes, &self.spans[start..self.calls[index].spans_end])
    }

    /// Keys of all commands, in their order.
    pub fn known(&self) -> Vec<KnownKey<'_>> {
        let all = Args::new(&self.bytes, &self.spans);
        let known =
            |(at, location): &(usize, Location)| KnownKey { key: all.at(*at), location: *location };
        self.keys.iter().map(known).collect()
    }

    /// Where those of a command begin; behind the last one, where all of them end.
    pub fn keys_start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.calls[before].keys_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spans of a transaction beyond 4 GiB began again at 0: its last commands got the bytes of
    /// its first ones.
    #[test]
    fn a_batch_takes_no_more_than_its_spans_can_reach() {
        let long = vec![b'x'; 1 << 20];
        let whole = Span { start: 0, len: long.len() as u32 };
        // As long as a command of a log can be, with one argument many times.
        let spans = vec![whole; 4095];
        let args = Args::new(&long, &spans);
        let mut batch = Batch::default();
        assert!(batch.has_room_for(args), "it is empty");
        let first = [Span { start: 0, len: 1 << 20 }];
        batch.push((Command::Ping, Args::new(&long, &first)), (0, 0), &[]);
        assert!(!batch.has_room_for(args));
        assert!(batch.has_room_for(Args::new(&long, &first)));
        batch.clear();
        assert!(batch.has_room_for(args));
    }
}
