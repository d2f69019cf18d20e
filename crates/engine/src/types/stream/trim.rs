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
            removed += self.trim_block(first, trim);
            if !goes_whole {
                break;
            }
            let Some(next) = first.next() else { break };
            from = next;
        }
        removed
    }

    /// Removes entries from within one block.
    fn trim_block(&mut self, first: StreamId, trim: Trim) -> u64 {
        let Some(block) = self.log.block(first) else { return 0 };
        let ids: Vec<StreamId> = block.entries(first).map(|entry| entry.id).collect();
        let mut removed = 0;
        for id in ids {
            let is_enough = match trim.threshold {
                Threshold::Len(max) => self.log.len() <= max,
                Threshold::Id(min) => id >= min,
            };
            if is_enough {
                break;
            }
            if !self.release(id, trim.references) {
                continue;
            }
            let Some(block) = self.log.block(first) else { break };
            removed += u64::from(block.delete(first, id));
            let is_emptied = block.measure.live == 0;
            self.log.discount(1);
            if is_emptied {
                self.log.remove_block(first);
                break;
            }
        }
        removed
    }
}
