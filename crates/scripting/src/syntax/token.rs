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

/// The reserved words: as a list, and as a `match`, for most words of a source are none of them.
macro_rules! reserved {
    ($($text:literal => $token:ident,)*) => {
        const WORDS: &[(&[u8], Token)] = &[$(($text, Token::$token),)*];

        fn reserved(text: &[u8]) -> Option<Token> {
            match text {
                $($text => Some(Token::$token),)*
                _ => None,
            }
        }
    };
}

reserved! {
    b"and" => And,
    b"break" => Break,
    b"do" => Do,
    b"else" => Else,
    b"elseif" => Elseif,
    b"end" => End,
    b"false" => False,
    b"for" => For,
    b"function" => Function,
    b"if" => If,
    b"in" => In,
    b"local" => Local,
    b"nil" => Nil,
    b"not" => Not,
    b"or" => Or,
    b"repeat" => Repeat,
    b"return" => Return,
    b"then" => Then,
    b"true" => True,
    b"until" => Until,
    b"while" => While,
}

impl Token {
    /// The reserved word of that spelling.
    pub(crate) fn word(text: &[u8]) -> Option<Token> {
        reserved(text)
    }

    /// As messages name it; names, strings and numbers are shown as they were written instead.
    pub(crate) fn shown(&self) -> Vec<u8> {
        if let Some((word, _)) = WORDS.iter().find(|(_, token)| token == self) {
            return word.to_vec();
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
