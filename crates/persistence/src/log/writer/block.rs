//! What is written to the log at once: records, and the line that vouches for them.

use super::large::LargeFile;
use crate::disk::DiskFile;
use crate::log::render::{Rendered, write_select};
use crate::log::sums::SumWriter;
use russet_base::SharedBytes;
use std::io;
use std::time::Instant;

/// Bytes of records after which a block ends, if more are waiting.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;

/// What is written at once of a long argument, while the processor has it in its cache from summing
/// it up.
const SLICE_BYTES: usize = 256 << 10;

pub(super) struct Block {
    /// The records without their long arguments, and behind them the line, once it is written.
    bytes: Vec<u8>,
    records_len: usize,
    /// Long arguments, which others may have too, and where they belong.
    splices: Vec<(usize, SharedBytes)>,
    spliced_bytes: usize,
    /// The database that is selected before the first record.
    db: usize,
    /// It selects that itself.
    is_first: bool,
    /// The journal's offset behind it.
    pub end: u64,
    /// What it took in the journal.
    pub frame_bytes: u64,
    /// When it was put together.
    pub at: Instant,
    /// The file that has it already, if it is one large call.
    pub large: Option<LargeFile>,
}

impl Block {
    pub fn new(records: Rendered, db: usize, (end, frame_bytes): (u64, u64)) -> Self {
        let spliced_bytes = records.bytes_total() - records.bytes.len();
        let Rendered { bytes, splices } = records;
        let (records_len, at) = (bytes.len(), Instant::now());
        Block {
            bytes,
            records_len,
            splices,
            spliced_bytes,
            db,
            is_first: false,
            end,
            frame_bytes,
            at,
            large: None,
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len() + self.spliced_bytes
    }

    /// Its room, when it is not needed any more.
    pub fn into_room(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes it behind what is in the file; how many bytes that took.
    pub fn write(
        &mut self,
        file: &dyn DiskFile,
        sums: &mut SumWriter,
        synced: u64,
    ) -> io::Result<u64> {
        self.bytes.truncate(self.records_len);
        let mut done = 0;
        for (at, long) in &self.splices {
            for piece in [&self.bytes[done..*at], &long[..]] {
                write_summed(file, sums, piece)?;
            }
            done = *at;
        }
        let line = sums.line(&self.bytes[done..], synced);
        self.bytes.extend_from_slice(line.as_bytes());
        write_all(file, &self.bytes[done..])?;
        Ok(self.len() as u64)
    }

    /// Makes it the first of a file, where no database is selected.
    pub fn make_first(&mut self) {
        if std::mem::replace(&mut self.is_first, true) {
            return;
        }
        let mut first = Vec::with_capacity(self.records_len + 32);
        write_select(self.db, &mut first);
        self.splices.iter_mut().for_each(|(at, _)| *at += first.len());
        first.extend_from_slice(&self.bytes[..self.records_len]);
        self.records_len = first.len();
        self.bytes = first;
    }
}

fn write_summed(file: &dyn DiskFile, sums: &mut SumWriter, bytes: &[u8]) -> io::Result<()> {
    for slice in bytes.chunks(SLICE_BYTES) {
        sums.add(slice);
        write_all(file, slice)?;
    }
    Ok(())
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

/// What a new file begins with.
pub(super) struct Written {
    pub sums: SumWriter,
    pub len: u64,
}

/// Writes blocks to a file that is empty, and makes them durable.
pub(super) fn write_anew<'b>(
    blocks: impl Iterator<Item = &'b mut Block>,
    file: &dyn DiskFile,
) -> io::Result<Written> {
    let (mut sums, mut len) = (SumWriter::default(), 0);
    for (index, block) in blocks.enumerate() {
        if index == 0 {
            block.make_first();
        }
        len += block.write(file, &mut sums, 0)?;
    }
    file.sync_data()?;
    Ok(Written { sums, len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::simulated::SimulatedDisk;
    use std::io::Read;
    use std::path::Path;
    use std::sync::Arc;

    fn written(block: &mut Block) -> Vec<u8> {
        let (disk, path) = (SimulatedDisk::new(), Path::new("/data/log"));
        disk.create_dir(Path::new("/data")).unwrap();
        let file = disk.create(path).unwrap();
        let len = block.write(&*file, &mut SumWriter::default(), 0).unwrap();
        let mut bytes = Vec::new();
        disk.read(path).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!((bytes.len() as u64, block.len() as u64), (len, len));
        bytes
    }

    /// A value of 256 MB was copied once more before it was written, and kept twice.
    #[test]
    fn long_arguments_are_written_from_where_they_are() {
        let long: SharedBytes = Arc::new(vec![b'v'; 2 * SLICE_BYTES + 1]);
        let whole = [&b"head"[..], &long[..], &b"tail"[..]].concat();
        let whole = Rendered { bytes: whole, ..Rendered::default() };
        let spliced = Rendered { bytes: b"headtail".to_vec(), splices: vec![(4, long.clone())] };
        let mut whole = Block::new(whole, 3, (1, 1));
        let mut spliced = Block::new(spliced, 3, (1, 1));
        assert!(written(&mut spliced) == written(&mut whole));
        assert!(written(&mut spliced) == written(&mut whole), "it can be written again");
        spliced.make_first();
        whole.make_first();
        assert!(written(&mut spliced) == written(&mut whole), "and to a file that is new");
    }

    /// Each time that a full disk had no room for it, the block became longer by a SELECT.
    #[test]
    fn a_block_selects_its_database_once() {
        let records = Rendered { bytes: b"records".to_vec(), ..Rendered::default() };
        let mut block = Block::new(records, 3, (1, 1));
        block.make_first();
        let once = written(&mut block);
        block.make_first();
        assert_eq!(written(&mut block), once);
    }
}
