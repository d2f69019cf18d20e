//! Where functions begin and end, by counting brackets in masked source.

/// One function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    /// From the line of `fn` to that of the closing brace.
    pub lines: usize,
    /// Without `self`.
    pub parameters: usize,
}

/// All functions with bodies of a masked file.
pub fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') {
            continue;
        }
        let name: String = code[at + 3..]
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        let Some((open, parameters)) = body_of(bytes, at).filter(|_| !name.is_empty()) else {
            continue;
        };
        let close = closing(bytes, open);
        let line = 1 + count_lines(&bytes[..at]);
        let lines = 1 + count_lines(&bytes[at..close]);
        found.push(Function { name, line, lines, parameters });
    }
    found
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// Where the body's brace is, and how many parameters come before it; None for a declaration.
fn body_of(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (mut depth, mut angles) = (0i64, 0i64);
    let mut list: Option<(usize, usize)> = None;
    let mut list_start = 0;
    for (index, &byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            // The bounds of a generic parameter may have parentheses of their own.
            b'<' if list_start == 0 => angles += 1,
            b'>' if list_start == 0 && bytes[index - 1] != b'-' => angles -= 1,
            _ if angles > 0 => {}
            b'(' | b'[' => {
                if depth == 0 && byte == b'(' && list.is_none() {
                    list_start = index + 1;
                }
                depth += 1;
            }
            b')' | b']' => {
                depth -= 1;
                if depth == 0 && list.is_none() && list_start > 0 {
                    list = Some((list_start, index));
                }
            }
            b'{' if depth == 0 => {
                let (start, end) = list?;
                return Some((index, count_parameters(&bytes[start..end])));
            }
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Pieces between commas outside of any bracket, `self` not counted.
fn count_parameters(list: &[u8]) -> usize {
    let mut depth = 0i64;
    let mut pieces = vec![Vec::new()];
    let mut before = b' ';
    for &byte in list {
        match byte {
            b'(' | b'[' | b'<' | b'{' => depth += 1,
            b'>' if before == b'-' => {}
            b')' | b']' | b'>' | b'}' => depth -= 1,
            _ => {}
        }
        match (byte, pieces.last_mut()) {
            (b',', _) if depth == 0 => pieces.push(Vec::new()),
            (_, Some(piece)) => piece.push(byte),
            _ => {}
        }
        before = byte;
    }
    let is_parameter = |piece: &Vec<u8>| {
        let text = String::from_utf8_lossy(piece);
        let text = text.trim();
        let is_self = text.split([' ', ':', '&']).any(|word| word == "self");
        !text.is_empty() && !is_self
    };
    pieces.iter().filter(|piece| is_parameter(piece)).count()
}

fn closing(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0i64;
    for (index, &byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn functions_are_measured() {
        let code = "trait T { fn a(&self); }\n\
            fn b<F: Fn(u8, u8) -> u8>(\n    &mut self,\n    x: (u8, u8),\n    f: F,\n\
            ) -> [u8; 2] {\n    if x {\n    }\n}\nlet z: fn(u8) = b;\n";
        let found = functions(code);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name.as_str(), found[0].line, found[0].lines), ("b", 2, 8));
        assert_eq!(found[0].parameters, 2);
    }
}
