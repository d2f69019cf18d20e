//! Source text to tokens.

use super::error::SyntaxError;
use super::token::Token;
use crate::limits::{CHUNK_NAME_BYTES_MAX_SYNTAX, TOKEN_BYTES_PER_STEP};
use crate::meter::Meter;
use crate::number;
use std::sync::Arc;

pub(crate) struct Lexer<'s> {
    source: &'s [u8],
    at: usize,
    /// The line of the next byte.
    pub(crate) line: u32,
    /// The token as far as it was read; messages show it.
    buffer: Vec<u8>,
    pub(crate) name: Arc<[u8]>,
    meter: &'s Meter<'s>,
}

/// Room for a token's text from the start.
const TOKEN_ROOM: usize = 64;

/// Whether a byte may be part of a name.
const IS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    table
};

/// What messages call a chunk, in at most so many bytes.
pub(crate) fn shown_name(name: &[u8], bytes_max: usize) -> Vec<u8> {
    let room = bytes_max - 1;
    match name.split_first() {
        Some((b'=', rest)) => rest[..rest.len().min(room)].to_vec(),
        Some((b'@', rest)) if rest.len() > room - 7 => {
            [b"...", &rest[rest.len() - (room - 7)..]].concat()
        }
        Some((b'@', rest)) => rest.to_vec(),
        _ => {
            let line = name.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let end = line.unwrap_or(name.len()).min(bytes_max - 17);
            let more: &[u8] = if end < name.len() { b"..." } else { b"" };
            [b"[string \"", &name[..end], more, b"\"]"].concat()
        }
    }
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s [u8], name: &[u8], meter: &'s Meter<'s>) -> Self {
        Lexer {
            source,
            at: 0,
            line: 1,
            buffer: Vec::with_capacity(TOKEN_ROOM),
            name: shown_name(name, CHUNK_NAME_BYTES_MAX_SYNTAX).into(),
            meter,
        }
    }

    /// The text of the last token, for messages.
    pub(crate) fn text(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn error(&self, text: &str, near: Option<&[u8]>) -> SyntaxError {
        let mut message = self.name.to_vec();
        message.extend_from_slice(format!(":{}: {text}", self.line).as_bytes());
        if let Some(near) = near {
            // COMPAT: messages are C strings: a zero byte ends what they show.
            let end = near.iter().position(|byte| *byte == 0).unwrap_or(near.len());
            message.extend_from_slice(b" near '");
            message.extend_from_slice(&near[..end]);
            message.push(b'\'');
        }
        SyntaxError::new(message)
    }

    fn error_here(&self, text: &str) -> SyntaxError {
        self.error(text, Some(&self.buffer))
    }

    fn peek(&self) -> Option<u8> {
        self.source.get(self.at).copied()
    }

    fn save(&mut self) {
        if let Some(byte) = self.peek() {
            self.buffer.push(byte);
            self.at += 1;
        }
    }

    /// Counts the bytes of what may be long: white space, comments, strings.
    #[inline]
    fn step_in_token(&self) -> Result<(), SyntaxError> {
        if self.at.is_multiple_of(TOKEN_BYTES_PER_STEP) { self.meter.step() } else { Ok(()) }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes a line end, which may be of two bytes.
    fn pass_line_end(&mut self) {
        let first = self.peek();
        self.at += 1;
        let second = self.peek();
        if matches!(second, Some(b'\n' | b'\r')) && first != second {
            self.at += 1;
        }
        self.line += 1;
    }

    pub(crate) fn next(&mut self) -> Result<Token, SyntaxError> {
        self.meter.step()?;
        self.buffer.clear();
        loop {
            self.step_in_token()?;
            let Some(byte) = self.peek() else { return Ok(Token::Eof) };
            match byte {
                b'\n' | b'\r' => self.pass_line_end(),
                b' ' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b'-' => {
                    self.at += 1;
                    if !self.take(b'-') {
                        return Ok(Token::Char(b'-'));
                    }
                    self.comment()?;
                }
                _ => return self.token(byte),
            }
        }
    }

    fn token(&mut self, byte: u8) -> Result<Token, SyntaxError> {
        match byte {
            b'[' => {
                let level = self.long_open();
                match level {
                    Some(level) => self.long(level, true).map(Token::Str),
                    None if self.buffer.len() > 1 => {
                        Err(self.error_here("invalid long string delimiter"))
                    }
                    None => Ok(Token::Char(b'[')),
                }
            }
            b'=' => Ok(self.pair(b'=', Token::Eq)),
            b'<' => Ok(self.pair(b'<', Token::Le)),
            b'>' => Ok(self.pair(b'>', Token::Ge)),
            b'~' => Ok(self.pair(b'~', Token::Ne)),
            b'"' | b'\'' => self.string(byte),
            b'.' => self.dots(),
            b'0'..=b'9' => self.number(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => Ok(self.word()),
            _ => {
                self.at += 1;
                Ok(Token::Char(byte))
            }
        }
    }

    /// A sign that means something else with `=` behind it.
    fn pair(&mut self, byte: u8, with_equals: Token) -> Token {
        self.at += 1;
        if self.take(b'=') { with_equals } else { Token::Char(byte) }
    }

    fn dots(&mut self) -> Result<Token, SyntaxError> {
        self.save();
        if self.peek() == Some(b'.') {
            self.save();
            return Ok(if self.take(b'.') { Token::Dots } else { Token::Concat });
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.number();
        }
        Ok(Token::Char(b'.'))
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        let rest = &self.source[start..];
        let len = rest.iter().position(|byte| !IS_WORD[*byte as usize]).unwrap_or(rest.len());
        self.at += len;
        let text = &self.source[start..start + len];
        self.buffer.extend_from_slice(text);
        Token::word(text).unwrap_or_else(|| Token::Name(text.into()))
    }

    fn number(&mut self) -> Result<Token, SyntaxError> {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.') {
            self.save();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.save();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.save();
            }
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.save();
        }
        match number::parse(&self.buffer) {
            Some(number) => Ok(Token::Number(number)),
            None => Err(self.error_here("malformed number")),
        }
    }

    /// After `--`.
    fn comment(&mut self) -> Result<(), SyntaxError> {
        if self.peek() == Some(b'[') {
            let level = self.long_open();
            self.buffer.clear();
            if let Some(level) = level {
                self.long(level, false)?;
                self.buffer.clear();
                return Ok(());
            }
        }
        while !matches!(self.peek(), None | Some(b'\n' | b'\r')) {
            self.step_in_token()?;
            self.at += 1;
        }
        Ok(())
    }

    /// Reads `[`, `=`... and `[`: how many `=`; without the second bracket, the buffer tells what
    /// was read.
    fn long_open(&mut self) -> Option<usize> {
        self.save();
        let mut level = 0;
        while self.peek() == Some(b'=') {
            self.save();
            level += 1;
        }
        if self.peek() == Some(b'[') {
            self.save();
            return Some(level);
        }
        None
    }

    fn long(&mut self, level: usize, is_string: bool) -> Result<Arc<[u8]>, SyntaxError> {
        if matches!(self.peek(), Some(b'\n' | b'\r')) {
            self.pass_line_end();
        }
        let body_start = self.buffer.len();
        loop {
            self.step_in_token()?;
            match self.peek() {
                None => {
                    let text = if is_string {
                        "unfinished long string"
                    } else {
                        "unfinished long comment"
                    };
                    return Err(self.error(text, Some(b"<eof>")));
                }
                Some(b']') => {
                    let close = self.long_close_len(level);
                    if close > 0 {
                        let body = self.buffer[body_start..].into();
                        for _ in 0..close {
                            self.save();
                        }
                        return Ok(body);
                    }
                    self.save();
                }
                Some(b'\n' | b'\r') => {
                    self.pass_line_end();
                    self.buffer.push(b'\n');
                }
                Some(_) if is_string => self.save(),
                Some(_) => self.at += 1,
            }
        }
    }

    fn long_close_len(&self, level: usize) -> usize {
        let rest = &self.source[self.at..];
        let is_close = rest.len() >= level + 2
            && rest[1..=level].iter().all(|byte| *byte == b'=')
            && rest[level + 1] == b']';
        if is_close { level + 2 } else { 0 }
    }

    fn string(&mut self, quote: u8) -> Result<Token, SyntaxError> {
        self.save();
        loop {
            self.step_in_token()?;
            match self.peek() {
                None => return Err(self.error("unfinished string", Some(b"<eof>"))),
                Some(b'\n' | b'\r') => return Err(self.error_here("unfinished string")),
                Some(b'\\') => self.escape()?,
                Some(byte) if byte == quote => {
                    let text = self.buffer[1..].into();
                    self.save();
                    return Ok(Token::Str(text));
                }
                Some(_) => self.save_plain(quote),
            }
        }
    }

    /// Takes the bytes of a string up to one that may mean something, or to where the next step is
    /// counted.
    fn save_plain(&mut self, quote: u8) {
        let rest = &self.source[self.at..];
        let rest = &rest[..rest.len().min(TOKEN_BYTES_PER_STEP - self.at % TOKEN_BYTES_PER_STEP)];
        let is_plain = |byte: &&u8| **byte != quote && !matches!(byte, b'\\' | b'\n' | b'\r');
        let plain = &rest[..rest.iter().take_while(is_plain).count()];
        self.buffer.extend_from_slice(plain);
        self.at += plain.len();
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        self.at += 1;
        let Some(byte) = self.peek() else { return Ok(()) };
        let meant = match byte {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\n' | b'\r' => {
                self.pass_line_end();
                self.buffer.push(b'\n');
                return Ok(());
            }
            b'0'..=b'9' => return self.decimal_escape(),
            other => other,
        };
        self.at += 1;
        self.buffer.push(meant);
        Ok(())
    }

    fn decimal_escape(&mut self) -> Result<(), SyntaxError> {
        let mut code = 0u32;
        for _ in 0..3 {
            let Some(byte) = self.peek().filter(u8::is_ascii_digit) else { break };
            code = code * 10 + u32::from(byte - b'0');
            self.at += 1;
        }
        match u8::try_from(code) {
            Ok(byte) => {
                self.buffer.push(byte);
                Ok(())
            }
            Err(_) => Err(self.error_here("escape sequence too large")),
        }
    }
}
