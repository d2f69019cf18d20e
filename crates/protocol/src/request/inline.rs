//! An inline request's line split into arguments, as a shell would: quotes and backslashes.

use super::ProtocolError;
use russet_base::Span;

/// Splits `line` and adds the args to `spans`. Without quotes they are slices of the line; with
/// them the arguments are unescaped into `scratch`, and the result is true.
pub(super) fn split(
    line: &[u8],
    spans: &mut Vec<Span>,
    scratch: &mut Vec<u8>,
) -> Result<bool, ProtocolError> {
    if memchr::memchr2(b'"', b'\'', line).is_none() {
        split_plain(line, spans);
        return Ok(false);
    }
    let mut rest = line;
    loop {
        rest = skip_blanks(rest);
        if rest.is_empty() {
            return Ok(true);
        }
        let start = scratch.len();
        rest = arg(rest, scratch)?;
        spans.push(Span { start: start as u32, len: (scratch.len() - start) as u32 });
    }
}

fn split_plain(line: &[u8], spans: &mut Vec<Span>) {
    let mut position = 0;
    loop {
        position = line.len() - skip_blanks(&line[position..]).len();
        if position == line.len() {
            return;
        }
        let rest = &line[position..];
        let len = rest.iter().position(|&byte| ends_arg(byte)).unwrap_or(rest.len());
        spans.push(Span { start: position as u32, len: len as u32 });
        position += len;
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[blanks..]
}

/// What may stand between arguments.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// COMPAT: vertical tab and form feed are blank before an argument but don't end one;
/// `every_oddity_of_the_peer`.
fn ends_arg(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Unescapes one argument into `scratch` and returns what follows it. Quotes may open and close
/// anywhere in an argument.
///
/// DIFFERS: Redis wants a blank after a closing quote; what it refuses is taken as Valkey takes it.
fn arg<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    let mut rest = text;
    loop {
        match rest {
            [] => return Ok(rest),
            [b'"', after @ ..] => rest = double_quoted(after, scratch)?,
            [b'\'', after @ ..] => rest = single_quoted(after, scratch)?,
            [byte, ..] if ends_arg(*byte) => return Ok(rest),
            [byte, after @ ..] => {
                scratch.push(*byte);
                rest = after;
            }
        }
    }
}

/// COMPAT: a backslash before the line's last quote stands for itself, in both kinds of quotes;
/// `every_oddity_of_the_peer`.
fn double_quoted<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'"'] => {
                scratch.push(b'\\');
                return Ok(&[]);
            }
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                scratch.push(hex_value(*high) * 16 + hex_value(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                scratch.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                scratch.push(*byte);
                after
            }
        }
    }
}

fn single_quoted<'a>(text: &'a [u8], scratch: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', after @ ..] => return Ok(after),
            [b'\\', b'\''] => {
                scratch.push(b'\\');
                return Ok(&[]);
            }
            [b'\\', b'\'', after @ ..] => {
                scratch.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                scratch.push(*byte);
                after
            }
        }
    }
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}
