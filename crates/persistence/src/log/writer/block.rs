//! What is written to the log at once: records, and the line that vouches for them.

use crate::disk::DiskFile;
use crate::log::render::write_select;
use crate::log::sums::SumWriter;
use std::io;
use std::time::Instant;

/// Bytes of records after which a block ends, if more are waiting.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;

pub(super) struct Block {
    /// The records, and behind them the line, once it is written.
    bytes: Vec<u8>,
    records_len: usize,
    /// The database that is selected before the first record.
    db: usize,
    /// The journal's offset behind it.
    pub end: u64,
    /// What it took in the journal.
    pub frame_bytes: u64,
    /// When it was put together.
    pub at: Instant,
}

impl Block {
    pub fn new(records: Vec<u8>, db: usize, (end, frame_bytes): (u64, u64)) -> Self {
        let records_len = records.len();
        Block { bytes: records, records_len, db, end, frame_bytes, at: Instant::now() }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes it behind what is in the file; how many bytes that took.
    pub fn write(
        &mut self,
        file: &dyn DiskFile,
        sums: &mut SumWriter,
        synced: u64,
    ) -> io::Result<u64> {
        self.bytes.truncate(self.records_len);
        let line = sums.line(&self.bytes, synced);
        self.bytes.extend_from_slice(line.as_bytes());
        write_all(file, &self.bytes)?;
        Ok(self.bytes.len() as u64)
    }

    /// Makes it the first of a file, where no database is selected.
    pub fn make_first(&mut self) {
        let mut first = Vec::with_capacity(self.records_len + 32);
        write_select(self.db, &mut first);
        first.extend_from_slice(&self.bytes[..self.records_len]);
        self.records_len = first.len();
        self.bytes = first;
    }
}

pub(super) fn write_all(file: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
