//! Source text with comments and literals blanked out, so that a search for a word or a brace finds
//! code only. Lines and columns stay where they were.

/// What the reader is inside of.
enum State {
    Code,
    LineComment,
    /// Block comments nest.
    BlockComment(usize),
    Text,
    /// A raw string, and how many `#` end it.
    RawText(usize),
}

/// The same text with a space for every byte of a comment, string or character literal.
pub fn mask(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut state = State::Code;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let step = match state {
            State::Code => enter(&mut state, rest, out.last().copied()),
            _ => leave(&mut state, rest),
        };
        let is_code = matches!(step.kept, Kept::Code);
        for &byte in &rest[..step.length] {
            out.push(if byte == b'\n' || is_code { byte } else { b' ' });
        }
        at += step.length;
    }
    // Only whole characters were blanked or kept, except that a blanked one became several spaces.
    String::from_utf8_lossy(&out).into_owned()
}

enum Kept {
    Code,
    Blank,
}

struct Step {
    length: usize,
    kept: Kept,
}

const fn blank(length: usize) -> Step {
    Step { length, kept: Kept::Blank }
}

const fn code(length: usize) -> Step {
    Step { length, kept: Kept::Code }
}

fn enter(state: &mut State, rest: &[u8], before: Option<u8>) -> Step {
    let follows_a_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match rest {
        [b'/', b'/', ..] => {
            *state = State::LineComment;
            blank(2)
        }
        [b'/', b'*', ..] => {
            *state = State::BlockComment(1);
            blank(2)
        }
        [b'"', ..] => {
            *state = State::Text;
            blank(1)
        }
        [b'r', b'"' | b'#', ..] if !follows_a_word => enter_raw(state, rest, 1),
        [b'b', b'r', b'"' | b'#', ..] if !follows_a_word => enter_raw(state, rest, 2),
        [b'\'', ..] => match character_literal(rest) {
            Some(length) => blank(length),
            None => code(1),
        },
        _ => code(1),
    }
}

fn enter_raw(state: &mut State, rest: &[u8], prefix: usize) -> Step {
    let hashes = rest[prefix..].iter().take_while(|&&byte| byte == b'#').count();
    // `r#name` is an identifier.
    if rest.get(prefix + hashes) != Some(&b'"') {
        return code(prefix + hashes);
    }
    *state = State::RawText(hashes);
    blank(prefix + hashes + 1)
}

/// The length of a character literal; None for a lifetime.
fn character_literal(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let end = rest[3..].iter().position(|&byte| byte == b'\'')?;
        return Some(3 + end + 1);
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let valid = match &text {
        Ok(text) => *text,
        Err(error) => std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).unwrap_or(""),
    };
    let width = valid.chars().next()?.len_utf8();
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

fn leave(state: &mut State, rest: &[u8]) -> Step {
    match (&mut *state, rest) {
        (State::LineComment, [b'\n', ..]) => {
            *state = State::Code;
            blank(1)
        }
        (State::BlockComment(depth), [b'/', b'*', ..]) => {
            *depth += 1;
            blank(2)
        }
        (State::BlockComment(depth), [b'*', b'/', ..]) => {
            *depth -= 1;
            if *depth == 0 {
                *state = State::Code;
            }
            blank(2)
        }
        (State::Text, [b'\\', _, ..]) => blank(2),
        (State::Text, [b'"', ..]) => {
            *state = State::Code;
            blank(1)
        }
        (State::RawText(hashes), [b'"', tail @ ..]) => {
            let count = *hashes;
            if tail.len() >= count && tail[..count].iter().all(|&byte| byte == b'#') {
                *state = State::Code;
                return blank(1 + count);
            }
            blank(1)
        }
        _ => blank(1),
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn comments_and_literals_are_blank_and_lines_stay() {
        let source = "let a = \"un{safe\\\"\"; // {\n\
            let b: &'a str = r#\"}\"}\"#; /* { /* } */ */ x('{', b'\\'')";
        let masked = mask(source);
        assert_eq!(masked.len(), source.len());
        assert_eq!(masked.lines().count(), 2);
        assert!(!masked.contains(['{', '}', '"']), "{masked}");
        assert!(masked.contains("&'a str") && masked.contains("x("), "{masked}");
    }

    #[test]
    fn raw_identifiers_and_words_that_end_in_r_are_code() {
        assert_eq!(mask("r#type + var"), "r#type + var");
        assert_eq!(mask("for\"x\" y"), "for    y");
    }
}
