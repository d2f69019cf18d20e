//! Text: splitting a line by Redis's quoting rules, printing bytes in the same form,
//! comparing names and guessing what a misspelt one meant.

/// A quote that is never closed, or closed in the middle of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnbalancedQuotes;

impl std::fmt::Display for UnbalancedQuotes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("unbalanced quotes")
    }
}

impl std::error::Error for UnbalancedQuotes {}

/// The same ASCII name, whatever its case.
#[inline]
pub fn eq_ignore_case(a: &[u8], b: &[u8]) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// Splits a line of a configuration file or an inline request into arguments. `"..."` knows the
/// escapes `\n \r \t \b \a \xHH` (any other escaped byte stands for itself), `'...'` only `\'`.
/// COMPAT: the line ends at a NUL byte; vertical tab and form feed are skipped between args but
/// don't end one. Valkey 9.1 goes on with an argument behind its closing quote; Redis refuses it.
pub fn split_args(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let end = memchr::memchr(0, line).unwrap_or(line.len());
    let mut rest = &line[..end];
    let mut args = Vec::new();
    loop {
        let blanks = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(args);
        }
        let mut arg = Vec::new();
        rest = take_arg(rest, &mut arg)?;
        args.push(arg);
    }
}

/// Moves one argument from the front of `rest` into `arg` and gives what follows.
fn take_arg<'a>(mut rest: &'a [u8], arg: &mut Vec<u8>) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Ok(rest),
            [b'"', quoted @ ..] => return take_double_quoted(quoted, arg),
            [b'\'', quoted @ ..] => return take_single_quoted(quoted, arg),
            _ => {
                let is_plain = |byte: &&u8| !b" \n\r\t\"'".contains(byte);
                let (plain, after) = rest.split_at(rest.iter().take_while(is_plain).count());
                arg.extend_from_slice(plain);
                rest = after;
            }
        }
    }
}

fn take_double_quoted<'a>(
    mut rest: &'a [u8],
    arg: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(UnbalancedQuotes),
            [b'"', after @ ..] => return closed(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex_value(*high) << 4 | hex_value(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescaped(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        arg.push(byte);
        rest = after;
    }
}

fn take_single_quoted<'a>(
    mut rest: &'a [u8],
    arg: &mut Vec<u8>,
) -> Result<&'a [u8], UnbalancedQuotes> {
    loop {
        let (byte, after) = match rest {
            [] => return Err(UnbalancedQuotes),
            [b'\'', after @ ..] => return closed(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
        };
        arg.push(byte);
        rest = after;
    }
}

/// A closing quote must end its argument.
fn closed(after: &[u8]) -> Result<&[u8], UnbalancedQuotes> {
    match after {
        [byte, ..] if !is_space(*byte) => Err(UnbalancedQuotes),
        _ => Ok(after),
    }
}

/// White space as C has it, vertical tab included.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The value of a byte that is known to be a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Appends bytes in the quoted form of logs and MONITOR, which `split_args` reads back.
pub fn write_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'x', HEX[high], HEX[low]]);
            }
        }
    }
    out.push(b'"');
}

/// `write_quoted` as a string of its own, for log lines.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_quoted(&mut out, bytes);
    // Everything outside ASCII was escaped, so each byte is a character.
    out.into_iter().map(char::from).collect()
}

/// The candidate that a misspelt name most likely meant: at most a third of its letters wrong,
/// case apart, the first among equals. `None` if nothing comes near.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // A longer name is no typing error, and the distance costs the product of the lengths.
    const NAME_BYTES_MAX: usize = 64;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let allowed = (name.len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= allowed)
        .map(|candidate| (edit_distance(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, &from) in a.iter().enumerate() {
        let mut this = Vec::with_capacity(last.len());
        this.push(row + 1);
        for (column, &to) in b.iter().enumerate() {
            let replaced = last[column] + usize::from(!from.eq_ignore_ascii_case(&to));
            let mut best = replaced.min(last[column + 1] + 1).min(this[column] + 1);
            let is_swap = row > 0
                && column > 0
                && from.eq_ignore_ascii_case(&b[column - 1])
                && a[row - 1].eq_ignore_ascii_case(&to);
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            this.push(best);
        }
        before_last = std::mem::replace(&mut last, this);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn args(line: &[u8]) -> Option<Vec<String>> {
        let args = split_args(line).ok()?;
        Some(args.iter().map(|arg| arg.escape_ascii().to_string()).collect())
    }

    /// The ECHO lines were asked of Redis 7 as inline requests, save the NUL (which an inline
    /// request cannot carry there), `'a'b`, the five escapes and the pair of empty arguments.
    #[test]
    fn lines_split_as_redis_splits_them() {
        let cases: &[(&[u8], Option<&[&str]>)] = &[
            (b"", Some(&[])),
            (b" \t\r\n\x0b\x0c", Some(&[])),
            (b"save 900 1\r\n", Some(&["save", "900", "1"])),
            (b"ECHO \"a\\x00b\"", Some(&["ECHO", "a\\x00b"])),
            (b"ECHO a\0b", Some(&["ECHO", "a"])),
            (b"ECHO\x0ba", Some(&["ECHO\\x0ba"])),
            (b"\x0b ECHO a", Some(&["ECHO", "a"])),
            (b"ECHO \"a\"\x0bfoo", Some(&["ECHO", "a", "foo"])),
            (b"ECHO \"a\"b", None),
            (b"ECHO 'a'b", None),
            (b"ECHO 'a\\'b\\n'", Some(&["ECHO", "a\\'b\\\\n"])),
            (b"ECHO a\"b c\"", Some(&["ECHO", "ab c"])),
            (b"ECHO \"a", None),
            (b"ECHO 'a", None),
            (b"ECHO \"a\\\"", None),
            (b"ECHO \"\\", None),
            (b"ECHO a\\nb", Some(&["ECHO", "a\\\\nb"])),
            (b"ECHO \"\\xg1\\q\"", Some(&["ECHO", "xg1q"])),
            (b"ECHO \"\\n\\r\\t\\b\\a\"", Some(&["ECHO", "\\n\\r\\t\\x08\\x07"])),
            (b"ECHO \"\" ''", Some(&["ECHO", "", ""])),
            (b"ECHO a\x0cb", Some(&["ECHO", "a\\x0cb"])),
        ];
        for (line, expected) in cases {
            let expected =
                expected.map(|args| args.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(args(line), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn quoting_prints_as_redis_and_reads_back() {
        assert_eq!(quoted(b"a\x00\n"), r#""a\x00\n""#);
        assert_eq!(quoted(b"\"\\\r\t\x07\x08\x7f\xff ~"), r#""\"\\\r\t\a\b\x7f\xff ~""#);
        let mut random = Random::from_seed(9);
        for _ in 0..500 {
            let mut bytes = vec![0u8; random.index(40)];
            random.fill(&mut bytes);
            assert_eq!(split_args(quoted(&bytes).as_bytes()), Ok(vec![bytes]));
        }
    }

    #[test]
    fn no_line_panics() {
        let mut random = Random::from_seed(10);
        let alphabet = b"a \"'\\x0f\t\x0b\0";
        for _ in 0..20_000 {
            let len = random.index(12);
            let line: Vec<u8> = (0..len).map(|_| alphabet[random.index(alphabet.len())]).collect();
            let _ = split_args(&line);
        }
    }

    #[test]
    fn nearest_names() {
        let names = ["maxmemory", "maxmemory-policy", "maxclients", "appendonly", "save", "dir"];
        assert_eq!(nearest("maxmemori", names), Some("maxmemory"));
        assert_eq!(nearest("MAXMEMROY", names), Some("maxmemory"));
        assert_eq!(nearest("appendnoly", names), Some("appendonly"));
        assert_eq!(nearest("maxmemory_policy", names), Some("maxmemory-policy"));
        assert_eq!(nearest("svae", names), Some("save"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest(&"a".repeat(1000), names), None);
        assert_eq!((edit_distance(b"ab", b""), edit_distance(b"abcd", b"badc")), (2, 2));
    }

    #[test]
    fn names_compare_without_case() {
        assert!(eq_ignore_case(b"GeT", b"gEt"));
        assert!(!eq_ignore_case(b"get", b"gets"));
    }
}
