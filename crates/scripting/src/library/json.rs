//! JSON as `cjson` reads and writes it, below the level of tables: tokens with their positions, and
//! the text of strings.

mod token;

pub use token::{Lexer, Token};

/// Adds a string with its quotes.
pub fn append_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (index, &byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'/' => b"\\/",
            b'\x08' => b"\\b",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\x0c' => b"\\f",
            b'\r' => b"\\r",
            0..=0x1f | 0x7f => b"",
            _ => continue,
        };
        out.extend_from_slice(&text[plain..index]);
        out.extend_from_slice(escaped);
        if escaped.is_empty() {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
        plain = index + 1;
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}

/// The length of a string with its escapes, without its quotes.
pub fn escaped_len(text: &[u8]) -> usize {
    let len_of = |byte: &u8| match byte {
        b'"' | b'\\' | b'/' | b'\x08' | b'\t' | b'\n' | b'\x0c' | b'\r' => 2,
        0..=0x1f | 0x7f => 6,
        _ => 1,
    };
    text.iter().map(len_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        append_string(b"a/b\"\\\x08\t\n\x0c\r\x00\x1f\x7f\xff", &mut out);
        let expected = b"\"a\\/b\\\"\\\\\\b\\t\\n\\f\\r\\u0000\\u001f\\u007f\xff\"";
        assert_eq!(escaped_len(b"a/b\"\\\x08\t\n\x0c\r\x00\x1f\x7f\xff") + 2, out.len());
        assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
