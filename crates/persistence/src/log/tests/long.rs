//! A transaction that takes more than anyone wants to have in memory.

use super::*;
use crate::log::read::{replay, verify};
use std::cell::Cell;
use std::rc::Rc;

const VALUE_BYTES: usize = 1 << 20;
const COMMANDS: usize = 64;

/// The file of such a transaction, made as it is read, and how far that is.
struct Source {
    position: Rc<Cell<u64>>,
    item: Vec<u8>,
    taken: usize,
    items: usize,
}

impl Source {
    fn new() -> Self {
        let item = b"*1\r\n$5\r\nMULTI\r\n".to_vec();
        Source { position: Rc::default(), item, taken: 0, items: 0 }
    }

    fn next_item(&mut self) {
        self.items += 1;
        self.taken = 0;
        self.item = match self.items {
            number if number <= COMMANDS => {
                let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE_BYTES}\r\n");
                [head.as_bytes(), &vec![b'v'; VALUE_BYTES], b"\r\n"].concat()
            }
            number if number == COMMANDS + 1 => b"*1\r\n$4\r\nEXEC\r\n".to_vec(),
            _ => Vec::new(),
        };
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.item.len() {
            self.next_item();
        }
        let count = buffer.len().min(self.item.len() - self.taken);
        buffer[..count].copy_from_slice(&self.item[self.taken..self.taken + count]);
        self.taken += count;
        self.position.set(self.position.get() + count as u64);
        Ok(count)
    }
}

/// How far the file was read when each command was given.
struct Given {
    position: Rc<Cell<u64>>,
    ahead_bytes_max: u64,
    commands: usize,
}

impl Target for Given {
    fn command(&mut self, at: u64, args: Args<'_>) -> Result<(), Refused> {
        assert_eq!(args.at(2).len(), VALUE_BYTES);
        self.commands += 1;
        self.ahead_bytes_max = self.ahead_bytes_max.max(self.position.get() - at);
        Ok(())
    }

    fn rdb(&mut self, _source: &mut dyn Read) -> Result<u64, Refused> {
        unreachable!("there is none")
    }
}

/// A script that wrote more than 4 GiB was logged, but could not be loaded: all of a transaction
/// was gathered before any of it was run, twice, and its places were counted in 32 bits.
#[test]
fn commands_of_a_transaction_are_run_as_they_are_read() {
    let verified = verify(Source::new(), 0).unwrap();
    assert!(verified.why_cut.is_none() && verified.end > (COMMANDS * VALUE_BYTES) as u64);
    let source = Source::new();
    let position = source.position.clone();
    let mut given = Given { position, ahead_bytes_max: 0, commands: 0 };
    replay(source, 0, &mut given).unwrap();
    assert_eq!(given.commands, COMMANDS);
    let values = given.ahead_bytes_max / VALUE_BYTES as u64;
    assert!(values <= 4, "{values} of {COMMANDS} values are in memory at once");
}
