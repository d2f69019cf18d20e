//! Records as the log has them: commands in RESP with SELECT where the database changes, MULTI and
//! EXEC around what happened at once.

use super::once;
use russet_base::SharedBytes;
use russet_base::num::write_u64;
use russet_engine::record::{Encoded, EncodedRecord};

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";
/// Recorded as a command, logged as an annotation.
const ONCE: &[u8] = b"ONCE";

/// Bytes of a file. Long arguments are not copied: they are kept with their offset.
#[derive(Debug, Default)]
pub struct Rendered {
    pub bytes: Vec<u8>,
    /// Offsets in `bytes`, in ascending order, and what belongs there.
    pub splices: Vec<(usize, SharedBytes)>,
}

impl Rendered {
    pub fn with_room(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Rendered { bytes, splices: Vec::new() }
    }

    pub fn bytes_total(&self) -> usize {
        self.bytes.len() + self.splices.iter().map(|(_, long)| long.len()).sum::<usize>()
    }
}

/// Turns frames of the journal into bytes of a file.
#[derive(Debug, Default)]
pub struct Renderer {
    /// The database that is selected where the file ends.
    db: usize,
    has_db: bool,
}

impl Renderer {
    /// The database of the command before the next.
    pub fn db(&self) -> usize {
        self.db
    }

    /// A frame: the units of one call or of a batch.
    pub fn frame(&mut self, frame: &Encoded, out: &mut Rendered) {
        let mut unit: Vec<EncodedRecord> = Vec::new();
        for record in frame.iter() {
            if record.destination.is_logged() {
                if unit.is_empty() && record.ends_unit {
                    self.record(record, out);
                    continue;
                }
                unit.push(record);
            }
            if record.ends_unit {
                self.unit(&unit, out);
                unit.clear();
            }
        }
        self.unit(&unit, out);
    }

    fn unit(&mut self, unit: &[EncodedRecord], out: &mut Rendered) {
        match unit {
            [] => {}
            [record] => self.record(*record, out),
            [first, ..] => {
                // Before MULTI, so that a log which is cut there has selected it.
                self.select(first.db, &mut out.bytes);
                out.bytes.extend_from_slice(MULTI);
                unit.iter().for_each(|record| self.record(*record, out));
                out.bytes.extend_from_slice(EXEC);
            }
        }
    }

    #[inline]
    fn record(&mut self, record: EncodedRecord, out: &mut Rendered) {
        self.select(record.db, &mut out.bytes);
        if record.has_name(ONCE) {
            let mut text = Vec::new();
            record.pieces(|piece| text.extend_from_slice(piece));
            return once::write(&mut out.bytes, &text);
        }
        record.parts(|bytes, long| {
            out.bytes.extend_from_slice(bytes);
            out.splices.extend(long.map(|long| (out.bytes.len(), long.clone())));
        });
    }

    #[inline]
    fn select(&mut self, db: usize, out: &mut Vec<u8>) {
        if self.db != db || !self.has_db {
            (self.db, self.has_db) = (db, true);
            write_select(db, out);
        }
    }
}

/// `SELECT db`.
pub fn write_select(db: usize, out: &mut Vec<u8>) {
    let mut digits = Vec::with_capacity(4);
    write_u64(&mut digits, db as u64);
    out.extend_from_slice(b"*2\r\n$6\r\nSELECT\r\n$");
    write_u64(out, digits.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&digits);
    out.extend_from_slice(b"\r\n");
}
