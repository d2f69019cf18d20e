//! Secrets that a client carries: the tag of their user, a dot, and 128 random bits. The tag says
//! in which slot they are known; what is stored of the rest is a digest.

use crate::retry::token;

/// Hexadecimal digits of a tag and of a secret.
const DIGITS: usize = 32;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bearer(String);

impl Bearer {
    /// A new one. A tag is a digest of the kit, of as many digits.
    pub fn random(tag: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Bearer(format!("{}.{}", text(tag), text(&token())))
    }

    /// What a client sent, if it has the form.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digits =
            |part: &str| part.len() == DIGITS && part.bytes().all(|it| it.is_ascii_hexdigit());
        let (tag, secret) = text.split_once('.')?;
        (is_digits(tag) && is_digits(secret)).then(|| Bearer(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn tag(&self) -> &[u8] {
        &self.0.as_bytes()[..DIGITS]
    }

    pub fn secret(&self) -> &[u8] {
        &self.0.as_bytes()[DIGITS + 1..]
    }
}
