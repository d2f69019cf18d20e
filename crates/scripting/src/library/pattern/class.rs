//! Which bytes a single item of a pattern stands for: a byte, `.`, a class such as `%a`, a set.
//! Classes are those of C's own locale.

type Malformed = &'static str;

/// Where the item that begins at `start` ends.
pub fn class_end(pattern: &[u8], start: usize) -> Result<usize, Malformed> {
    match pattern[start] {
        b'%' if start + 1 == pattern.len() => Err("malformed pattern (ends with '%')"),
        b'%' => Ok(start + 2),
        b'[' => set_end(pattern, start),
        _ => Ok(start + 1),
    }
}

/// A `]` that stands first in a set belongs to it.
fn set_end(pattern: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut at = start + 1;
    if pattern.get(at) == Some(&b'^') {
        at += 1;
    }
    loop {
        let Some(byte) = pattern.get(at) else {
            return Err("malformed pattern (missing ']')");
        };
        at += 1;
        if *byte == b'%' && at < pattern.len() {
            at += 1;
        }
        if pattern.get(at) == Some(&b']') {
            return Ok(at + 1);
        }
    }
}

/// Whether the byte is what the item, without its repetition, stands for.
pub fn is_single_match(byte: u8, item: &[u8]) -> bool {
    match item {
        [b'.', ..] => true,
        [b'%', class, ..] => is_in_class(byte, *class),
        [b'[', ..] => is_in_set(byte, item),
        [own, ..] => *own == byte,
        [] => false,
    }
}

/// How many bytes at the beginning of a text are what the item stands for.
pub fn run_len(text: &[u8], item: &[u8]) -> usize {
    let first_other = match item {
        [b'.', ..] => None,
        [b'%', class, ..] if CLASS_BITS[usize::from(*class)] != 0 => {
            let (bit, is_wanted) = (CLASS_BITS[usize::from(*class)], class.is_ascii_lowercase());
            let is_other = |byte: &u8| (MEMBERSHIPS[usize::from(*byte)] & bit != 0) != is_wanted;
            text.iter().position(is_other)
        }
        _ => text.iter().position(|byte| !is_single_match(*byte, item)),
    };
    first_other.unwrap_or(text.len())
}

/// How many bytes at the beginning of a text are what the item stands for and not the wanted byte,
/// and whether that comes next.
pub fn run_up_to(wanted: u8, text: &[u8], item: &[u8]) -> (usize, bool) {
    let end = match item {
        [b'.', ..] => memchr::memchr(wanted, text),
        _ => text.iter().position(|byte| *byte == wanted || !is_single_match(*byte, item)),
    };
    let end = end.unwrap_or(text.len());
    (end, text.get(end) == Some(&wanted))
}

/// Whether the byte is in a set, given with its brackets.
pub fn is_in_set(byte: u8, set: &[u8]) -> bool {
    let mut rest = &set[1..set.len() - 1];
    let mut is_member = true;
    if let [b'^', members @ ..] = rest {
        is_member = false;
        rest = members;
    }
    while let Some((&first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'%', [class, after @ ..]) => {
                if is_in_class(byte, *class) {
                    return is_member;
                }
                after
            }
            // COMPAT: a range may end at the first of two `%`; the second then takes the bracket.
            (b'%', []) => {
                if byte == b']' {
                    return is_member;
                }
                after
            }
            (first, [b'-', last, after @ ..]) => {
                if (first..=*last).contains(&byte) {
                    return is_member;
                }
                after
            }
            (first, after) => {
                if first == byte {
                    return is_member;
                }
                after
            }
        };
    }
    !is_member
}

/// Bits of the classes that a byte is in, by the letters below.
static MEMBERSHIPS: [u16; 256] = memberships();
const CLASS_LETTERS: &[u8; 10] = b"acdlpsuwxz";

const fn memberships() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        let is_in = [
            byte.is_ascii_alphabetic(),
            byte.is_ascii_control(),
            byte.is_ascii_digit(),
            byte.is_ascii_lowercase(),
            byte.is_ascii_punctuation(),
            matches!(byte, b' ' | b'\t'..=b'\r'),
            byte.is_ascii_uppercase(),
            byte.is_ascii_alphanumeric(),
            byte.is_ascii_hexdigit(),
            byte == 0,
        ];
        let mut class = 0;
        while class < is_in.len() {
            table[index] |= (is_in[class] as u16) << class;
            class += 1;
        }
        index += 1;
    }
    table
}

/// The bit of a class by its letter, capital or not; none for what is no class.
static CLASS_BITS: [u16; 256] = class_bits();

const fn class_bits() -> [u16; 256] {
    let mut table = [0; 256];
    let mut class = 0;
    while class < CLASS_LETTERS.len() {
        table[CLASS_LETTERS[class] as usize] = 1 << class;
        table[CLASS_LETTERS[class].to_ascii_uppercase() as usize] = 1 << class;
        class += 1;
    }
    table
}

/// A capital letter stands for what is not in the class; what is no class stands for itself.
fn is_in_class(byte: u8, class: u8) -> bool {
    match CLASS_BITS[usize::from(class)] {
        0 => class == byte,
        bit => (MEMBERSHIPS[usize::from(byte)] & bit != 0) == class.is_ascii_lowercase(),
    }
}
