//! From a name as it came over the wire to a [`Command`]. It runs for every request, so it neither
//! allocates nor compares byte by byte: a name of up to 16 bytes is two words and a length.

use russet_base::Args;

use crate::command::{Command, SPECS};

/// A name in lower case: its first and last eight bytes, which overlap below 16 and are the same
/// below 8. Together with the length they are the whole name up to 16 bytes.
#[derive(Clone, Copy)]
struct Folded {
    head: u64,
    tail: u64,
    len: usize,
}

/// The longest name that [`Folded`] holds in full.
const FOLDED_BYTES_MAX: usize = 16;

impl Folded {
    #[inline]
    const fn new(name: &[u8]) -> Self {
        let len = name.len();
        let (head, tail) = if len >= 8 {
            (eight_from(name, 0), eight_from(name, len - 8))
        } else {
            let short = short(name);
            (short, short)
        };
        Folded { head: lower(head), tail: lower(tail), len }
    }

    #[inline]
    const fn slot(&self) -> usize {
        // An odd constant with well spread bits; the high half of the product depends on all bits.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.head ^ self.tail.rotate_left(29) ^ self.len as u64).wrapping_mul(SPREAD);
        (mixed >> (64 - SLOTS_LOG2)) as usize
    }

    #[inline]
    const fn equals(&self, other: &Folded) -> bool {
        self.head == other.head && self.tail == other.tail && self.len == other.len
    }
}

#[inline]
const fn eight_from(name: &[u8], at: usize) -> u64 {
    match name.split_at(at).1.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// Fewer than eight bytes, padded with zeros, without a loop: overlapping pieces agree where they
/// overlap, so OR joins them.
#[inline]
const fn short(name: &[u8]) -> u64 {
    let len = name.len();
    if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return first as u64 | (last as u64) << ((len - 4) * 8);
    }
    if len == 0 {
        return 0;
    }
    let (middle, last) = (len / 2, len - 1);
    name[0] as u64 | (name[middle] as u64) << (middle * 8) | (name[last] as u64) << (last * 8)
}

/// Turns `A` to `Z` into lower case in all eight bytes at once and leaves every other byte alone.
#[inline]
const fn lower(word: u64) -> u64 {
    const HIGH: u64 = u64::MAX / 255 * 0x80;
    const fn every(byte: u8) -> u64 {
        u64::MAX / 255 * byte as u64
    }
    // With the high bits cleared no byte can carry into its neighbour.
    let low_bits = word & !HIGH;
    let from_a = low_bits + every(0x80 - b'A');
    let past_z = low_bits + every(0x80 - b'Z' - 1);
    let is_upper = from_a & !past_z & !word & HIGH;
    word | is_upper >> 2
}

/// Slots are eight times the names or more, so that almost every probe ends where it starts.
const SLOTS_LOG2: u32 = 10;
const SLOTS: usize = 1 << SLOTS_LOG2;

static FOLDED: [Folded; Command::COUNT] = {
    let mut folded = [Folded { head: 0, tail: 0, len: 0 }; Command::COUNT];
    let mut at = 0;
    while at < folded.len() {
        folded[at] = Folded::new(SPECS[at].name.as_bytes());
        at += 1;
    }
    folded
};

/// Commands by the hash of their names, the next slot taking what finds its own full. Never more
/// than half full, so that a search for a name that isn't there ends.
static TABLE: [Option<Command>; SLOTS] = {
    let mut table = [None; SLOTS];
    let (mut at, mut filled) = (0, 0);
    while at < Command::COUNT {
        let command = Command::ALL[at];
        if command.parent().is_none() {
            let mut slot = FOLDED[at].slot();
            while table[slot].is_some() {
                slot = (slot + 1) % SLOTS;
            }
            table[slot] = Some(command);
            filled += 1;
        }
        at += 1;
    }
    assert!(filled * 2 <= SLOTS, "the table of names needs more slots");
    table
};

/// The command of this name in any letter case; not a subcommand.
#[inline]
pub fn lookup(name: &[u8]) -> Option<Command> {
    let wanted = Folded::new(name);
    let mut slot = wanted.slot();
    loop {
        let command = TABLE[slot]?;
        let is_it = FOLDED[command as usize].equals(&wanted);
        if is_it && (name.len() <= FOLDED_BYTES_MAX || is_named(command, name)) {
            return Some(command);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cold]
fn is_named(command: Command, name: &[u8]) -> bool {
    command.spec().name.as_bytes().eq_ignore_ascii_case(name)
}

/// The subcommand of this name in any letter case.
pub fn lookup_subcommand(parent: Command, name: &[u8]) -> Option<Command> {
    let named = |sub: &&Command| sub.spec().name.as_bytes().eq_ignore_ascii_case(name);
    parent.subcommands().iter().find(named).copied()
}

/// As COMMAND prints names: `get`, `client|list`.
pub fn lookup_full(full_name: &[u8]) -> Option<Command> {
    let mut parts = full_name.splitn(2, |byte| *byte == b'|');
    let command = lookup(parts.next()?)?;
    match parts.next() {
        Some(sub) => lookup_subcommand(command, sub),
        None => Some(command),
    }
}

/// Why a call means no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Command,
    /// The container is known; its second word is not.
    Subcommand(Command),
}

/// The command that a call means: the subcommand if its first word names a container. A container
/// called alone is itself; its arity says whether that is allowed.
#[inline]
pub fn resolve(args: Args<'_>) -> Result<Command, Unknown> {
    let command = args.get(0).and_then(lookup).ok_or(Unknown::Command)?;
    match args.get(1) {
        Some(sub) if command.is_container() => {
            lookup_subcommand(command, sub).ok_or(Unknown::Subcommand(command))
        }
        _ => Ok(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::OwnedArgs;

    fn resolved(words: &[&str]) -> Result<Command, Unknown> {
        resolve(words.iter().collect::<OwnedArgs>().as_args())
    }

    #[test]
    fn lowers_letters_and_nothing_else() {
        for byte in 0..=u8::MAX {
            let expected = u64::from_le_bytes([byte.to_ascii_lowercase(); 8]);
            assert_eq!(lower(u64::from_le_bytes([byte; 8])), expected, "{byte:#x}");
            // Between neighbours that could carry.
            let mixed = [0xff, byte, 0xff, b'Z', byte, 0, byte, 0x7f];
            let lowered = mixed.map(|byte: u8| byte.to_ascii_lowercase());
            assert_eq!(lower(u64::from_le_bytes(mixed)), u64::from_le_bytes(lowered));
        }
    }

    #[test]
    fn short_names_are_padded_with_zeros() {
        for len in 0..8 {
            let name = &b"abcdefg"[..len];
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(name);
            assert_eq!(short(name), u64::from_le_bytes(padded));
        }
    }

    #[test]
    fn names_that_are_nearly_right_are_unknown() {
        for command in Command::top_level() {
            let name = command.spec().name.as_bytes();
            let longer = [name, b"\0"].concat();
            assert_eq!(lookup(&longer), None);
            for at in 0..name.len() {
                let mut other = name.to_vec();
                other[at] ^= 0x80;
                assert_eq!(lookup(&other), None);
            }
        }
        for name in [&b""[..], b"nosuch", b"client|list", &[b'x'; 300], b"bitfield\x7fro", b"\0"] {
            assert_eq!(lookup(name), None);
        }
    }

    #[test]
    fn containers_lead_to_their_subcommands() {
        assert_eq!(resolved(&["gEt", "k"]), Ok(Command::Get));
        assert_eq!(resolved(&["client", "LIST"]), Ok(Command::ClientList));
        assert_eq!(resolved(&["COMMAND"]), Ok(Command::Command));
        assert_eq!(resolved(&["CLIENT"]), Ok(Command::Client));
        assert_eq!(resolved(&["CLIENT", "x"]), Err(Unknown::Subcommand(Command::Client)));
        assert_eq!(resolved(&["DEBUG", "x"]), Ok(Command::Debug));
        assert_eq!(resolved(&["x", "LIST"]), Err(Unknown::Command));
        assert_eq!(resolved(&[]), Err(Unknown::Command));
    }
}
