//! Trimming: entries go from the front, by the block where that is enough.

use super::id::StreamId;
use super::{References, Stream};

/// How far a stream is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// This many stay.
    Len(u64),
    /// Those from this ID on stay.
    Id(StreamId),
}

/// How a stream is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    pub threshold: Threshold,
    /// `~`: only whole blocks go.
    pub is_approximate: bool,
    /// Most entries to remove; 0 for all.
    pub entries_max: u64,
    pub references: References,
}

impl Stream {
    /// How many entries went.
    pub fn trim(&mut self, trim: Trim) -> u64 {
        self.trim_noting(trim, &mut |_, _| {})
    }

    /// The same. Unless references are kept, `note` is shown each entry that goes while it, and
    /// what refers to it, is still there.
    pub fn trim_noting(&mut self, trim: Trim, note: &mut dyn FnMut(&Stream, StreamId)) -> u64 {
        let mut removed = 0;
        let mut from = StreamId::MIN;
        let keeps = trim.references == References::Keep;
        while let Some(first) = self.log.block_from(from) {
            let len = self.log.len();
            if matches!(trim.threshold, Threshold::Len(max) if len <= max) {
                break;
            }
            let Some(block) = self.log.block(first) else { break };
            let live = u64::from(block.measure.live);
            if trim.entries_max > 0 && removed + live > trim.entries_max {
                break;
            }
            let goes_whole = match trim.threshold {
                Threshold::Len(max) => len - live >= max,
                Threshold::Id(min) => block.last < min,
            };
            if goes_whole && keeps {
                self.log.discount(live);
                self.log.remove_block(first);
                removed += live;
                continue;
            }
            if trim.is_approximate && keeps {
                break;
            }
            removed += self.trim_block(first, trim, note);
            if !goes_whole {
                break;
            }
            let Some(next) = first.next() else { break };
            from = next;
        }
        removed
    }

    /// Removes entries from within one block: its first ones, but for those that must stay.
    fn trim_block(
        &mut self,
        first: StreamId,
        trim: Trim,
        note: &mut dyn FnMut(&Stream, StreamId),
    ) -> u64 {
        let excess = match trim.threshold {
            Threshold::Len(max) => self.log.len().saturating_sub(max),
            Threshold::Id(_) => u64::MAX,
        };
        let goes = |id: StreamId| match trim.threshold {
            Threshold::Len(_) => true,
            Threshold::Id(min) => id < min,
        };
        let Some(block) = self.log.block(first) else { return 0 };
        let mut entries = block.entries(first);
        if trim.references == References::Keep {
            let (mut count, mut bytes) = (0, 0);
            while u64::from(count) < excess
                && let Some(entry) = entries.next()
                && goes(entry.id)
            {
                (count, bytes) = (count + 1, entries.position());
            }
            self.log.edit_block(first, |block| block.delete_front(count, bytes));
            return self.trimmed(first, u64::from(count));
        }
        let candidates: Vec<StreamId> =
            entries.map(|entry| entry.id).take_while(|id| goes(*id)).collect();
        let mut ids = Vec::new();
        for id in candidates {
            if ids.len() as u64 == excess {
                break;
            }
            let goes = trim.references == References::Delete || !self.is_referenced(id);
            if goes {
                note(self, id);
                self.release(id, trim.references);
                ids.push(id);
            }
        }
        self.log.edit_block(first, |block| block.delete(first, &ids, |_| {}));
        self.trimmed(first, ids.len() as u64)
    }

    /// Takes entries that a block has lost off the count, and the block if it has none left.
    fn trimmed(&mut self, first: StreamId, count: u64) -> u64 {
        self.log.discount(count);
        if self.log.block(first).is_some_and(|block| block.measure.live == 0) {
            self.log.remove_block(first);
        }
        count
    }
}
