//! From a name as it came over the wire to a [`Command`]. It runs for every request, so it neither
//! allocates nor compares byte by byte: a name of up to 16 bytes is two words and a length.

use russet_base::Args;

use crate::command::{Command, SPECS};

/// A name as it came, in two words: its first and last eight bytes, which overlap below 16; below 8
/// all of it and nothing. Together with the length they are the whole name up to 16 bytes.
#[derive(Clone, Copy)]
struct Packed {
    head: u64,
    tail: u64,
    len: usize,
}

/// The longest name that [`Packed`] holds in full.
const PACKED_BYTES_MAX: usize = 16;

impl Packed {
    #[inline(always)]
    const fn new(name: &[u8]) -> Self {
        let len = name.len();
        let (head, tail) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (short(name), 0),
        };
        Packed { head, tail, len }
    }

    /// The same for both cases of a letter, since the bit in which they differ is always set.
    #[inline(always)]
    const fn slot(&self) -> usize {
        // An odd constant with well spread bits; the high half of the product depends on all bits.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let folded = (self.head | EVERY_CASE_BIT) ^ (self.tail | EVERY_CASE_BIT).rotate_left(29);
        (folded.wrapping_mul(SPREAD) >> (64 - SLOTS_LOG2)) as usize
    }
}

/// The bit in which a letter's two cases differ.
const CASE_BIT: u8 = b'a' ^ b'A';
const EVERY_CASE_BIT: u64 = u64::from_le_bytes([CASE_BIT; 8]);

/// A command's name, and which of its bits a name that means it must share: all but the case bits
/// of its letters.
#[derive(Clone, Copy)]
struct Pattern {
    name: Packed,
    head_mask: u64,
    tail_mask: u64,
}

impl Pattern {
    const fn new(name: &[u8]) -> Self {
        let name = Packed::new(name);
        Pattern { name, head_mask: case_mask(name.head), tail_mask: case_mask(name.tail) }
    }

    #[inline(always)]
    const fn matches(&self, other: &Packed) -> bool {
        let head = (self.name.head ^ other.head) & self.head_mask;
        let tail = (self.name.tail ^ other.tail) & self.tail_mask;
        head | tail | (self.name.len ^ other.len) as u64 == 0
    }
}

const fn case_mask(word: u64) -> u64 {
    let mut bytes = word.to_le_bytes();
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = if bytes[at].is_ascii_alphabetic() { !CASE_BIT } else { u8::MAX };
        at += 1;
    }
    u64::from_le_bytes(bytes)
}

/// Fewer than eight bytes, padded with zeros, without a loop: overlapping pieces agree where they
/// overlap, so OR joins them.
#[inline(always)]
const fn short(name: &[u8]) -> u64 {
    match *name {
        [a, b, c] => a as u64 | (b as u64) << 8 | (c as u64) << 16,
        [a, b] => a as u64 | (b as u64) << 8,
        [a] => a as u64,
        _ => match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => {
                let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
                first as u64 | (last as u64) << ((name.len() - 4) * 8)
            }
            _ => 0,
        },
    }
}

/// Slots are eight times the names or more, so that almost every probe ends where it starts.
const SLOTS_LOG2: u32 = 10;
const SLOTS: usize = 1 << SLOTS_LOG2;

static PATTERNS: [Pattern; Command::COUNT] = {
    let mut patterns = [Pattern::new(b""); Command::COUNT];
    let mut at = 0;
    while at < patterns.len() {
        patterns[at] = Pattern::new(SPECS[at].name.as_bytes());
        at += 1;
    }
    patterns
};

/// Commands by the hash of their names, the next slot taking what finds its own full. Never more
/// than half full, so that a search for a name that isn't there ends.
static TABLE: [Option<Command>; SLOTS] = {
    let mut table = [None; SLOTS];
    let (mut at, mut filled) = (0, 0);
    while at < Command::COUNT {
        let command = Command::ALL[at];
        if command.parent().is_none() {
            let mut slot = PATTERNS[at].name.slot();
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
    let wanted = Packed::new(name);
    let mut slot = wanted.slot();
    loop {
        let command = TABLE[slot]?;
        let is_it = PATTERNS[command as usize].matches(&wanted);
        if is_it && (name.len() <= PACKED_BYTES_MAX || is_named(command, name)) {
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
    if command.is_container() { resolve_subcommand(command, args) } else { Ok(command) }
}

#[inline(never)]
fn resolve_subcommand(container: Command, args: Args<'_>) -> Result<Command, Unknown> {
    let Some(sub) = args.get(1) else { return Ok(container) };
    lookup_subcommand(container, sub).ok_or(Unknown::Subcommand(container))
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::OwnedArgs;

    fn resolved(words: &[&str]) -> Result<Command, Unknown> {
        resolve(words.iter().collect::<OwnedArgs>().as_args())
    }

    #[test]
    fn letters_match_in_both_cases_and_nothing_else_does() {
        for name in [&b"a-z_0:1"[..], b"geoadd", b"georadius_ro", b"a.b-c_d0123|4567"] {
            let pattern = Pattern::new(name);
            for at in 0..name.len() {
                for byte in 0..=u8::MAX {
                    let mut other = name.to_ascii_uppercase();
                    other[at] = byte;
                    let is_same = other.eq_ignore_ascii_case(name);
                    assert_eq!(pattern.matches(&Packed::new(&other)), is_same, "{byte:#x}");
                    let has_same_slot = Packed::new(&other).slot() == pattern.name.slot();
                    assert!(has_same_slot || !is_same);
                }
            }
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
