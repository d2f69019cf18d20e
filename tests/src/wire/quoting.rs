//! Arguments and text of a wire file: quoting as in redis-cli, and `${...}` values.

/// Splits a line into args. Double quotes take `\n \r \t \b \a \xHH`, single quotes only `\'`.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes = line.as_bytes();
    let mut args = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        if at == bytes.len() {
            return Ok(args);
        }
        let mut arg = Vec::new();
        while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
            match bytes[at] {
                b'"' => {
                    let (text, used) = quoted(&bytes[at..])?;
                    arg.extend(text);
                    at += used;
                }
                b'\'' => {
                    let (text, used) = single_quoted(&bytes[at..])?;
                    arg.extend(text);
                    at += used;
                }
                // A value's name may hold blanks: `${repeat:3:a b}`.
                b'$' if bytes[at..].starts_with(b"${") => {
                    let end =
                        bytes[at..].iter().position(|&b| b == b'}').ok_or("`${` without `}`")?;
                    arg.extend(&bytes[at..=at + end]);
                    at += end + 1;
                }
                byte => {
                    arg.push(byte);
                    at += 1;
                }
            }
        }
        args.push(arg);
    }
}

/// A double-quoted text at the start of `bytes`, and how many bytes it took with its quotes.
pub fn quoted(bytes: &[u8]) -> Result<(Vec<u8>, usize), String> {
    let mut text = Vec::new();
    let mut at = 1;
    loop {
        match bytes.get(at).copied() {
            None => return Err("a quote that is never closed".to_owned()),
            Some(b'"') => return Ok((text, at + 1)),
            Some(b'\\') => {
                let escape = bytes.get(at + 1).copied().ok_or("a backslash at the end")?;
                at += 2;
                text.push(match escape {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    b'x' => {
                        let digits = bytes.get(at..at + 2).ok_or("`\\x` without two digits")?;
                        at += 2;
                        let digits = String::from_utf8_lossy(digits).into_owned();
                        u8::from_str_radix(&digits, 16).map_err(|_| format!("\\x{digits}"))?
                    }
                    other => other,
                });
            }
            Some(byte) => {
                text.push(byte);
                at += 1;
            }
        }
    }
}

fn single_quoted(bytes: &[u8]) -> Result<(Vec<u8>, usize), String> {
    let mut text = Vec::new();
    let mut at = 1;
    loop {
        match bytes.get(at..) {
            None | Some([]) => return Err("a quote that is never closed".to_owned()),
            Some([b'\\', b'\'', ..]) => {
                text.push(b'\'');
                at += 2;
            }
            Some([b'\'', ..]) => return Ok((text, at + 1)),
            Some([byte, ..]) => {
                text.push(*byte);
                at += 1;
            }
        }
    }
}

/// A text in double quotes, as [`quoted`] reads it.
pub fn quote(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// Replaces each `${name}` by what `value` says.
pub fn expand(
    text: &[u8],
    value: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.windows(2).position(|pair| pair == b"${") {
        out.extend_from_slice(&rest[..start]);
        let end = rest[start..].iter().position(|&b| b == b'}').ok_or("`${` without `}`")?;
        let name = String::from_utf8_lossy(&rest[start + 2..start + end]).into_owned();
        out.extend(value(&name)?);
        rest = &rest[start + end + 1..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// Redis-style glob, without classes: `*`, `?`, and `\` before a literal.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|skip| glob(rest, &text[skip..])),
        [b'?', rest @ ..] => !text.is_empty() && glob(rest, &text[1..]),
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => {
            text.first() == Some(byte) && glob(rest, &text[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_redis_cli_does() {
        let args = split(r#"SET "a b\x00\n" 'it\'s' plain${repeat:2:x y}"#).unwrap();
        assert_eq!(args[1], b"a b\0\n");
        assert_eq!(args[2], b"it's");
        assert_eq!(args[3], b"plain${repeat:2:x y}");
        assert!(split("\"open").is_err());
    }

    #[test]
    fn quoting_round_trips() {
        let all: Vec<u8> = (0..=255).collect();
        let text = quote(&all);
        assert_eq!(quoted(text.as_bytes()).unwrap(), (all, text.len()));
    }

    #[test]
    fn globs() {
        assert!(glob(b"a*c?", b"abbcd"));
        assert!(!glob(b"a*c", b"abbcd"));
        assert!(glob(b"\\*", b"*"));
    }
}
