//! What requests that must run at most once have answered: by request id, for a time. The records
//! of a shard are behind its lock, so that one is there exactly when the effect is.

use russet_base::clock::UnixMillis;
use std::collections::{BTreeSet, HashMap};

/// What a record takes besides its id and reply: its places in the two maps.
const RECORD_BYTES: usize = 160;

/// One request that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceRecord {
    /// Of the command and its words: the same id with other words is refused.
    pub digest: u128,
    /// The reply, as it was sent.
    pub reply: Box<[u8]>,
    pub expires: UnixMillis,
}

/// A request id in a database.
type Request = (usize, Box<[u8]>);

/// The records of one shard.
#[derive(Debug, Default)]
pub struct OnceRecords {
    records: HashMap<Request, OnceRecord>,
    by_expiry: BTreeSet<(i64, Request)>,
    bytes: usize,
}

impl OnceRecords {
    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    pub fn find(&self, db: usize, id: &[u8], now: UnixMillis) -> Option<&OnceRecord> {
        if self.records.is_empty() {
            return None;
        }
        let record = self.records.get(&(db, id.into()))?;
        (record.expires > now).then_some(record)
    }

    /// Keeps a record, in place of one of the same id that is over.
    pub fn put(&mut self, db: usize, id: &[u8], record: OnceRecord) {
        let request: Request = (db, id.into());
        self.remove(&request);
        self.bytes += bytes_of(&request, &record);
        self.by_expiry.insert((record.expires.0, request.clone()));
        self.records.insert(request, record);
    }

    fn remove(&mut self, request: &Request) {
        if let Some(old) = self.records.remove(request) {
            self.bytes -= bytes_of(request, &old);
            self.by_expiry.remove(&(old.expires.0, request.clone()));
        }
    }

    /// Forgets up to `budget` records that are over; how many that were.
    pub fn expire(&mut self, now: UnixMillis, budget: usize) -> usize {
        let mut count = 0;
        while count < budget
            && let Some((at, _)) = self.by_expiry.first()
            && *at <= now.0
            && let Some((_, request)) = self.by_expiry.pop_first()
        {
            if let Some(old) = self.records.remove(&request) {
                self.bytes -= bytes_of(&request, &old);
            }
            count += 1;
        }
        count
    }

    /// Exchanges the records of two databases.
    pub fn swap(&mut self, (one, other): (usize, usize)) {
        if self.records.is_empty() {
            return;
        }
        let of = |db: usize| match db {
            db if db == one => other,
            db if db == other => one,
            db => db,
        };
        let records = std::mem::take(&mut self.records);
        self.records =
            records.into_iter().map(|((db, id), record)| ((of(db), id), record)).collect();
        let by_expiry = std::mem::take(&mut self.by_expiry);
        self.by_expiry = by_expiry.into_iter().map(|(at, (db, id))| (at, (of(db), id))).collect();
    }

    /// Forgets the records of a database that was emptied.
    pub fn clear(&mut self, db: usize) {
        let gone: Vec<Request> = self.records.keys().filter(|(of, _)| *of == db).cloned().collect();
        gone.iter().for_each(|request| self.remove(request));
    }
}

fn bytes_of((_, id): &Request, record: &OnceRecord) -> usize {
    RECORD_BYTES + 2 * id.len() + record.reply.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(expires: i64) -> OnceRecord {
        OnceRecord { digest: 7, reply: (*b"+OK\r\n").into(), expires: UnixMillis(expires) }
    }

    #[test]
    fn records_go_when_their_time_is_over() {
        let mut records = OnceRecords::default();
        records.put(0, b"a", record(10));
        records.put(0, b"b", record(20));
        records.put(1, b"a", record(30));
        assert_eq!(records.find(0, b"a", UnixMillis(9)), Some(&record(10)));
        assert_eq!(records.find(0, b"a", UnixMillis(10)), None);
        assert_eq!(records.find(2, b"a", UnixMillis(0)), None);
        assert_eq!(records.expire(UnixMillis(20), 1), 1);
        assert_eq!(records.expire(UnixMillis(20), 10), 1);
        assert_eq!(records.len(), 1);
        records.put(1, b"a", record(40));
        assert_eq!(records.len(), 1);
        records.clear(0);
        assert_eq!(records.len(), 1);
        records.clear(1);
        assert!(records.is_empty() && records.memory_bytes() == 0 && records.by_expiry.is_empty());
    }
}
