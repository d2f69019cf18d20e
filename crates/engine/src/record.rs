//! What calls have changed, as commands that change it again in the same way: for the log, for
//! replicas, and for the test that a second engine comes to hold the same.
//!
//! A call is recorded as itself where running it again gives the same, else as what it came to:
//! with absolute times, with the members that were drawn at random, without conditions. Nothing is
//! gathered while nobody listens.

use russet_base::OwnedArgs;
use russet_base::shared::shrink_beyond;

/// Records that a worker keeps room for between calls.
const RECORDS_KEPT_MAX: usize = 64;
/// Bytes after which a list of arguments goes on in a further command.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Who gets a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Destination {
    #[default]
    Everyone,
    LogOnly,
    ReplicasOnly,
    Nobody,
}

/// One command that gives a change again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub db: usize,
    pub destination: Destination,
    pub args: OwnedArgs,
}

/// The records of the call under way, in order. What is in it when the shards are unlocked is one
/// unit: all of it happened at once.
#[derive(Debug, Default)]
pub struct Records {
    is_on: bool,
    /// What a script has asked for with `redis.set_repl`.
    pub destination: Destination,
    list: Vec<Record>,
}

impl Records {
    /// Whether anybody listens: if not, there is nothing to gather.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline]
    pub(crate) fn set_on(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn all(&self) -> &[Record] {
        &self.list
    }

    /// Adds a command, if anybody listens.
    pub fn push<A: AsRef<[u8]>>(&mut self, db: usize, args: impl IntoIterator<Item = A>) {
        if self.is_on {
            self.push_owned(db, args.into_iter().collect());
        }
    }

    /// As [`Records::push`], with arguments that need not be copied.
    pub fn push_owned(&mut self, db: usize, args: OwnedArgs) {
        if self.is_on && self.destination != Destination::Nobody {
            self.list.push(Record { db, destination: self.destination, args });
        }
    }

    /// Adds `head` followed by a list of arguments, if anybody listens: as several commands, each
    /// with its part of the list, if the list is long. Nothing without a list.
    pub fn push_list<A: AsRef<[u8]>>(
        &mut self,
        db: usize,
        head: &[&[u8]],
        list: impl IntoIterator<Item = A>,
    ) {
        if !self.is_on {
            return;
        }
        let (mut args, mut bytes) = (OwnedArgs::default(), 0);
        for arg in list {
            let arg = arg.as_ref();
            if bytes >= LIST_BYTES_MAX {
                self.push_owned(db, std::mem::take(&mut args));
                bytes = 0;
            }
            if args.is_empty() {
                head.iter().for_each(|part| args.push(part));
            }
            args.push(arg);
            bytes += arg.len();
        }
        if !args.is_empty() {
            self.push_owned(db, args);
        }
    }

    /// Runs `action` with everyone as the destination, whatever a script has asked for: what goes
    /// because its time is over is not the script's change.
    pub(crate) fn for_everyone(&mut self, action: impl FnOnce(&mut Self)) {
        let asked = std::mem::take(&mut self.destination);
        action(self);
        self.destination = asked;
    }

    /// Adds a command that only replicas are to get: a published message.
    pub fn push_for_replicas(&mut self, db: usize, args: OwnedArgs) {
        let destination = match self.destination {
            Destination::Everyone | Destination::ReplicasOnly => Destination::ReplicasOnly,
            Destination::LogOnly | Destination::Nobody => return,
        };
        if self.is_on {
            self.list.push(Record { db, destination, args });
        }
    }

    /// The unit was passed on.
    pub fn clear(&mut self) {
        self.list.clear();
        self.destination = Destination::Everyone;
    }

    #[inline]
    pub(crate) fn shrink(&mut self) {
        shrink_beyond(&mut self.list, RECORDS_KEPT_MAX);
    }
}

/// Who is to get what was changed.
pub trait RecordListener: Send + Sync {
    /// A unit of records, in the order of the changes. The shards of its keys are locked, so units
    /// about one key come in the order in which they happened; nothing here may wait for a lock
    /// that is held while a shard is asked for.
    fn unit(&self, records: &[Record]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_decides_who_gets_its_records() {
        let mut records = Records::default();
        records.push(0, ["SET", "k", "v"]);
        assert!(records.is_empty(), "nobody listens");
        records.set_on(true);
        for (destination, expected) in [
            (Destination::Everyone, 1),
            (Destination::LogOnly, 2),
            (Destination::ReplicasOnly, 3),
            (Destination::Nobody, 3),
        ] {
            records.destination = destination;
            records.push(0, ["SET", "k", "v"]);
            assert_eq!(records.len(), expected, "{destination:?}");
            assert_eq!(
                records.all().last().map(|record| record.destination),
                Some(destination)
                    .filter(|kind| *kind != Destination::Nobody)
                    .or(Some(Destination::ReplicasOnly))
            );
        }
        records.clear();
        assert_eq!(records.destination, Destination::Everyone);
    }

    #[test]
    fn a_long_list_goes_on_in_a_further_command() {
        let mut records = Records::default();
        let third = vec![b'x'; LIST_BYTES_MAX / 2];
        records.push_list(0, &[b"RPUSH", b"l"], [&third]);
        assert!(records.is_empty(), "nobody listens");
        records.set_on(true);
        records.push_list(0, &[b"RPUSH", b"l"], [[0u8; 0]; 0]);
        assert!(records.is_empty(), "there is nothing to push");
        records.push_list(3, &[b"RPUSH", b"l"], [&third[..], &third, b"last"]);
        let lens: Vec<usize> =
            records.all().iter().map(|record| record.args.as_args().len()).collect();
        assert_eq!(lens, [4, 3]);
        let last = &records.all()[1];
        let args: Vec<&[u8]> = last.args.as_args().iter().collect();
        assert_eq!((last.db, args), (3, vec![&b"RPUSH"[..], b"l", b"last"]));
    }

    /// A key that expired while a script ran that had asked for no records stayed for ever on the
    /// replicas.
    #[test]
    fn what_expires_during_a_script_is_recorded_for_everyone() {
        let mut records = Records::default();
        records.set_on(true);
        records.destination = Destination::Nobody;
        records.for_everyone(|records| records.push(0, ["DEL", "k"]));
        assert_eq!(records.all()[0].destination, Destination::Everyone);
        assert_eq!(records.destination, Destination::Nobody);
    }

    #[test]
    fn what_only_replicas_get_obeys_the_script_too() {
        let mut records = Records::default();
        records.set_on(true);
        let message = || ["PUBLISH", "c", "m"].iter().collect::<OwnedArgs>();
        for (destination, is_kept) in [
            (Destination::Everyone, true),
            (Destination::ReplicasOnly, true),
            (Destination::LogOnly, false),
            (Destination::Nobody, false),
        ] {
            records.clear();
            records.destination = destination;
            records.push_for_replicas(0, message());
            assert_eq!(records.len() == 1, is_kept, "{destination:?}");
        }
    }
}
