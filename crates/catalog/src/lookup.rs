//! From a name as it came over the wire to a [`Command`]. It runs for every request, so it neither
//! allocates nor compares byte by byte: a name below eight bytes is one word, a longer one is two
//! and a length.

use russet_base::Args;

use crate::command::{Command, SPECS};

/// The bit in which a letter's two cases differ. Set in every byte, it makes names hash the same in
/// any letter case.
const CASE_BIT: u8 = b'a' ^ b'A';
const EVERY_CASE_BIT: u64 = u64::from_le_bytes([CASE_BIT; 8]);

/// Slots are at least twice the names, so that most probes end where they start and a search for a
/// name that isn't there ends.
const SLOTS_LOG2: u32 = 10;
const SLOTS: usize = 1 << SLOTS_LOG2;

#[inline(always)]
const fn slot(word: u64) -> usize {
    // An odd constant with well spread bits; the high half of the product depends on all bits.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    ((word | EVERY_CASE_BIT).wrapping_mul(SPREAD) >> (64 - SLOTS_LOG2)) as usize
}

/// Eight bytes of a command's name, and the bits that a word which means them must share: all but
/// the case bits of letters.
#[derive(Clone, Copy)]
struct Pattern {
    word: u64,
    mask: u64,
}

impl Pattern {
    /// Matches every word.
    const ANY: Pattern = Pattern { word: 0, mask: 0 };

    const fn new(word: u64) -> Self {
        let mut mask = word.to_le_bytes();
        let mut at = 0;
        while at < mask.len() {
            mask[at] = if mask[at].is_ascii_alphabetic() { !CASE_BIT } else { u8::MAX };
            at += 1;
        }
        Pattern { word, mask: u64::from_le_bytes(mask) }
    }

    #[inline(always)]
    const fn matches(&self, word: u64) -> bool {
        (self.word ^ word) & self.mask == 0
    }
}

/// A name of fewer than eight bytes: its length is the last byte, zeros fill what is between.
/// `None` for a longer one. There is no loop: overlapping pieces agree where they overlap, so OR
/// joins them.
#[inline(always)]
const fn short_name(name: &[u8]) -> Option<u64> {
    let bytes = match *name {
        [a, b, c] => a as u64 | (b as u64) << 8 | (c as u64) << 16,
        [_, _, _, _, _, _, _, _, ..] => return None,
        [a, b, c, d, ..] => {
            let last = match name.last_chunk() {
                Some(last) => u32::from_le_bytes(*last) as u64,
                None => 0,
            };
            u32::from_le_bytes([a, b, c, d]) as u64 | last << ((name.len() - 4) * 8)
        }
        [a, b] => a as u64 | (b as u64) << 8,
        [a] => a as u64,
        [] => 0,
    };
    Some(bytes | (name.len() as u64) << 56)
}

/// A slot of the table of short names. An empty one matches everything and means no command, so
/// that a probe is a single comparison.
#[derive(Clone, Copy)]
struct ShortEntry {
    pattern: Pattern,
    command: Option<Command>,
}

/// Commands whose names have fewer than eight bytes, by the hash of these; the next slot takes what
/// finds its own full.
static SHORT: [ShortEntry; SLOTS] = {
    let mut table = [ShortEntry { pattern: Pattern::ANY, command: None }; SLOTS];
    let (mut at, mut filled) = (0, 0);
    while at < Command::COUNT {
        let command = Command::ALL[at];
        if command.parent().is_none()
            && let Some(word) = short_name(SPECS[at].name.as_bytes())
        {
            let mut slot = slot(word);
            while table[slot].command.is_some() {
                slot = (slot + 1) % SLOTS;
            }
            table[slot] = ShortEntry { pattern: Pattern::new(word), command: Some(command) };
            filled += 1;
        }
        at += 1;
    }
    assert!(filled * 2 <= SLOTS, "the table of short names needs more slots");
    table
};

/// A name of eight bytes or more: the first and the last eight, which overlap below 16. Together
/// with the length they are the whole name up to 16 bytes.
#[derive(Clone, Copy)]
struct LongName {
    head: u64,
    tail: u64,
}

/// The longest name that [`LongName`] holds in full.
const LONG_NAME_BYTES_MAX: usize = 16;

impl LongName {
    #[inline(always)]
    const fn new(name: &[u8]) -> Option<Self> {
        match (name.first_chunk(), name.last_chunk()) {
            (Some(head), Some(tail)) => {
                let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
                Some(LongName { head, tail })
            }
            _ => None,
        }
    }

    #[inline(always)]
    const fn slot(&self) -> usize {
        slot((self.head | EVERY_CASE_BIT) ^ (self.tail | EVERY_CASE_BIT).rotate_left(29))
    }
}

#[derive(Clone, Copy)]
struct LongEntry {
    head: Pattern,
    tail: Pattern,
    name_bytes: usize,
    command: Option<Command>,
}

/// As [`SHORT`], for names of eight bytes or more.
static LONG: [LongEntry; SLOTS] = {
    const ANY: Pattern = Pattern::ANY;
    let empty = LongEntry { head: ANY, tail: ANY, name_bytes: 0, command: None };
    let mut table = [empty; SLOTS];
    let (mut at, mut filled) = (0, 0);
    while at < Command::COUNT {
        let (command, name) = (Command::ALL[at], SPECS[at].name.as_bytes());
        if command.parent().is_none()
            && let Some(words) = LongName::new(name)
        {
            let mut slot = words.slot();
            while table[slot].command.is_some() {
                slot = (slot + 1) % SLOTS;
            }
            let (head, tail) = (Pattern::new(words.head), Pattern::new(words.tail));
            table[slot] = LongEntry { head, tail, name_bytes: name.len(), command: Some(command) };
            filled += 1;
        }
        at += 1;
    }
    assert!(filled * 2 <= SLOTS, "the table of long names needs more slots");
    table
};

/// The command of this name in any letter case; not a subcommand.
#[inline]
pub fn lookup(name: &[u8]) -> Option<Command> {
    let Some(word) = short_name(name) else { return lookup_long(name) };
    let mut slot = slot(word);
    while !SHORT[slot].pattern.matches(word) {
        slot = (slot + 1) % SLOTS;
    }
    SHORT[slot].command
}

#[inline(never)]
fn lookup_long(name: &[u8]) -> Option<Command> {
    let words = LongName::new(name)?;
    let mut slot = words.slot();
    loop {
        let entry = &LONG[slot];
        let command = entry.command?;
        if entry.head.matches(words.head)
            && entry.tail.matches(words.tail)
            && entry.name_bytes == name.len()
            && (name.len() <= LONG_NAME_BYTES_MAX || is_named(command, name))
        {
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
    /// The container is known; its second argument is not.
    Subcommand(Command),
}

/// The command that a call means: the subcommand if its first arg names a container. A container
/// called alone is itself; its arity says whether that is allowed.
#[inline(always)]
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

    fn resolved(args: &[&str]) -> Result<Command, Unknown> {
        resolve(args.iter().collect::<OwnedArgs>().as_args())
    }

    #[test]
    fn letters_match_in_both_cases_and_nothing_else_does() {
        let name = *b"a-z_0:m|";
        let pattern = Pattern::new(u64::from_le_bytes(name));
        for at in 0..name.len() {
            for byte in 0..=u8::MAX {
                let mut other = name.map(|byte| byte.to_ascii_uppercase());
                other[at] = byte;
                let word = u64::from_le_bytes(other);
                let is_same = other.eq_ignore_ascii_case(&name);
                assert_eq!(pattern.matches(word), is_same, "{byte:#x} at {at}");
                assert!(!is_same || slot(word) == slot(pattern.word));
            }
        }
    }

    #[test]
    fn short_names_are_padded_with_zeros_and_end_in_their_length() {
        for len in 0..8 {
            let name = &b"abcdefg"[..len];
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(name);
            padded[7] = len as u8;
            assert_eq!(short_name(name), Some(u64::from_le_bytes(padded)));
        }
        assert_eq!(short_name(b"abcdefgh"), None);
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
