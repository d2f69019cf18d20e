//! The tokens of a JSON text and where they begin. The text counts as ended at its first zero
//! byte, as a string of C does.

use crate::library::number::parse_prefix;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// The text is [`Lexer::text`], until the next token is read.
    Text,
    Number(f64),
    Bool(bool),
    Null,
    Colon,
    Comma,
    End,
    /// What is wrong, in the words of cjson.
    Wrong(&'static str),
}

impl Token {
    /// How an error message names it.
    pub fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Bool(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Wrong(text) => text,
        }
    }
}

/// Where the text of the last string token lies.
enum TextSource {
    /// In the source: it has no escapes.
    Source(Range<usize>),
    Unescaped,
}

pub struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    /// Where the last token begins, or where it went wrong.
    token_start: usize,
    text: TextSource,
    unescaped: Vec<u8>,
    /// Whether Infinity, NaN, hexadecimal numbers and leading zeros are read.
    takes_odd_numbers: bool,
}

impl<'a> Lexer<'a> {
    pub fn new(source: &'a [u8], takes_odd_numbers: bool) -> Self {
        Lexer {
            source,
            at: 0,
            token_start: 0,
            text: TextSource::Unescaped,
            unescaped: Vec::new(),
            takes_odd_numbers,
        }
    }

    /// How far the source has been read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Where the last token begins, or where it went wrong.
    pub fn token_start(&self) -> usize {
        self.token_start
    }

    /// What the last token, a text, says.
    pub fn text(&self) -> &[u8] {
        match &self.text {
            TextSource::Source(range) => &self.source[range.clone()],
            TextSource::Unescaped => &self.unescaped,
        }
    }

    pub fn token(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_start = self.at;
        let single = match self.byte(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' if !self.takes_odd_numbers && self.is_odd_number() => {
                return Token::Wrong("invalid number");
            }
            b'-' | b'0'..=b'9' => return self.number(),
            0 => return Token::End,
            _ => return self.word(),
        };
        self.at += 1;
        single
    }

    /// The byte so far ahead; zero at the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.source.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn wrong(&mut self, text: &'static str) -> Token {
        self.token_start = self.at;
        Token::Wrong(text)
    }

    fn word(&mut self) -> Token {
        let words: [(&[u8], Token); 3] =
            [(b"true", Token::Bool(true)), (b"false", Token::Bool(false)), (b"null", Token::Null)];
        for (word, token) in words {
            if self.source[self.at..].starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let may_be_number = matches!(self.byte(0), b'+' | b'i' | b'I' | b'n' | b'N');
        if may_be_number && self.takes_odd_numbers && self.is_odd_number() {
            return self.number();
        }
        self.wrong("invalid token")
    }

    /// Numbers that C reads and JSON does not have.
    fn is_odd_number(&self) -> bool {
        let text = &self.source[self.at..];
        let body = match text {
            [b'+', ..] => return true,
            [b'-', body @ ..] => body,
            _ => text,
        };
        let starts_with = |name| body.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(name));
        match body {
            [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
            _ => starts_with(b"inf") || starts_with(b"nan"),
        }
    }

    fn number(&mut self) -> Token {
        match parse_prefix(&self.source[self.at..]) {
            Some((value, len)) => {
                self.at += len;
                Token::Number(value)
            }
            None => self.wrong("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let start = self.at;
        self.text = TextSource::Unescaped;
        self.unescaped.clear();
        let mut plain = start;
        loop {
            match self.byte(0) {
                0 => return self.wrong("unexpected end of string"),
                b'"' if plain == start && self.unescaped.is_empty() => {
                    self.text = TextSource::Source(start..self.at);
                    break;
                }
                b'"' => {
                    self.unescaped.extend_from_slice(&self.source[plain..self.at]);
                    break;
                }
                b'\\' => {
                    self.unescaped.extend_from_slice(&self.source[plain..self.at]);
                    if let Err(text) = self.escape() {
                        return self.wrong(text);
                    }
                    plain = self.at;
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Token::Text
    }

    /// Takes the escape that begins here.
    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => b'\x08',
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => b'\x0c',
            b'r' => b'\r',
            b'u' => return self.unicode_escape().ok_or("invalid unicode escape code"),
            _ => return Err("invalid escape code"),
        };
        self.unescaped.push(byte);
        self.at += 2;
        Ok(())
    }

    /// `\uXXXX`, or two of them that make one character.
    fn unicode_escape(&mut self) -> Option<()> {
        let unit = self.hexadecimal(2)?;
        let (code, len) = match unit {
            0xd800..=0xdbff => {
                let follows = self.byte(6) == b'\\' && self.byte(7) == b'u';
                let low = self.hexadecimal(8).filter(|_| follows)?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return None;
                }
                (0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff)), 12)
            }
            _ => (unit, 6),
        };
        let character = char::from_u32(code)?;
        let mut bytes = [0; 4];
        self.unescaped.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
        self.at += len;
        Some(())
    }

    fn hexadecimal(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |value, index| {
            let digit = char::from(self.byte(ahead + index)).to_digit(16)?;
            Some(value << 4 | digit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> Vec<u8> {
        let mut lexer = Lexer::new(source.as_bytes(), true);
        assert_eq!(lexer.token(), Token::Text, "{source}");
        lexer.text().to_vec()
    }

    fn wrong(source: &str, takes_odd_numbers: bool) -> (&'static str, usize) {
        let mut lexer = Lexer::new(source.as_bytes(), takes_odd_numbers);
        match lexer.token() {
            Token::Wrong(text) => (text, lexer.token_start()),
            token => panic!("{source}: {token:?}"),
        }
    }

    #[test]
    fn strings() {
        assert_eq!(text(r#""plain""#), b"plain");
        assert_eq!(text(r#""""#), b"");
        assert_eq!(text(r#""a\n\"\\\/\b\t\f\r""#), b"a\n\"\\/\x08\t\x0c\r");
        assert_eq!(text(r#""\u0041\u00e9\u20ac\ud83d\ude00x""#), "Aé€😀x".as_bytes());
        assert_eq!(text(r#""\u0000""#), b"\0");
    }

    #[test]
    fn wrong_strings() {
        assert_eq!(wrong("\"abc", true), ("unexpected end of string", 4));
        assert_eq!(wrong("\"a\0b\"", true), ("unexpected end of string", 2));
        assert_eq!(wrong(r#""ab\x""#, true), ("invalid escape code", 3));
        for source in [r#""\u12"#, r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#, r#""\u00g0""#]
        {
            assert_eq!(wrong(source, true), ("invalid unicode escape code", 1), "{source}");
        }
    }

    #[test]
    fn numbers() {
        for (source, value) in [("-1.5e3", -1500.0), ("0x10", 16.0), ("+1", 1.0), ("007", 7.0)] {
            let mut lexer = Lexer::new(source.as_bytes(), true);
            assert_eq!(lexer.token(), Token::Number(value), "{source}");
            assert_eq!(lexer.token(), Token::End);
        }
        for source in ["0x10", "007", "-0x1", "-inf", "-nan"] {
            assert_eq!(wrong(source, false), ("invalid number", 0), "{source}");
        }
        for source in ["+1", "inf", "NaN", "nul", "tru", "%"] {
            assert_eq!(wrong(source, false), ("invalid token", 0), "{source}");
        }
        assert_eq!(wrong("-", true), ("invalid number", 0));
        assert_eq!(wrong("+x", true), ("invalid number", 0));
    }
}
