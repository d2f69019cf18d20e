//! The words of the language.

use std::sync::Arc;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    And,
    Break,
    Do,
    Else,
    Elseif,
    End,
    False,
    For,
    Function,
    If,
    In,
    Local,
    Nil,
    Not,
    Or,
    Repeat,
    Return,
    Then,
    True,
    Until,
    While,
    Concat,
    Dots,
    Eq,
    Ge,
    Le,
    Ne,
    Number(f64),
    Name(Arc<[u8]>),
    Str(Arc<[u8]>),
    Eof,
    /// Any other single byte, a sign or not.
    Char(u8),
}

const WORDS: [(&str, Token); 21] = [
    ("and", Token::And),
    ("break", Token::Break),
    ("do", Token::Do),
    ("else", Token::Else),
    ("elseif", Token::Elseif),
    ("end", Token::End),
    ("false", Token::False),
    ("for", Token::For),
    ("function", Token::Function),
    ("if", Token::If),
    ("in", Token::In),
    ("local", Token::Local),
    ("nil", Token::Nil),
    ("not", Token::Not),
    ("or", Token::Or),
    ("repeat", Token::Repeat),
    ("return", Token::Return),
    ("then", Token::Then),
    ("true", Token::True),
    ("until", Token::Until),
    ("while", Token::While),
];

impl Token {
    /// The reserved word of that spelling.
    pub(crate) fn word(text: &[u8]) -> Option<Token> {
        let found = WORDS.iter().find(|(word, _)| word.as_bytes() == text);
        found.map(|(_, token)| token.clone())
    }

    /// As messages name it; names, strings and numbers are shown as they were written instead.
    pub(crate) fn shown(&self) -> Vec<u8> {
        if let Some((word, _)) = WORDS.iter().find(|(_, token)| token == self) {
            return word.as_bytes().to_vec();
        }
        match self {
            Token::Concat => b"..".to_vec(),
            Token::Dots => b"...".to_vec(),
            Token::Eq => b"==".to_vec(),
            Token::Ge => b">=".to_vec(),
            Token::Le => b"<=".to_vec(),
            Token::Ne => b"~=".to_vec(),
            Token::Number(_) => b"<number>".to_vec(),
            Token::Name(_) => b"<name>".to_vec(),
            Token::Str(_) => b"<string>".to_vec(),
            Token::Eof => b"<eof>".to_vec(),
            Token::Char(byte) if byte.is_ascii_control() => format!("char({byte})").into_bytes(),
            Token::Char(byte) => vec![*byte],
            _ => Vec::new(),
        }
    }
}
