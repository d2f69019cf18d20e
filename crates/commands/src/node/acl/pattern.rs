//! Patterns of keys and channels, told apart once: most are a prefix or a plain name, which are
//! compared faster than a glob is matched.

use russet_base::glob::Glob;

/// How a pattern is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The text is the name.
    Exact,
    /// Names that begin with all but the last byte of the text, which is `*`.
    Prefix,
    Glob,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Box<[u8]>,
    kind: Kind,
}

impl Pattern {
    pub fn new(text: &[u8]) -> Self {
        let kind = match text {
            _ if Glob::new(text).is_literal() => Kind::Exact,
            // An empty name is not matched by `*` alone; the glob knows.
            [before @ .., b'*'] if !before.is_empty() && Glob::new(before).is_literal() => {
                Kind::Prefix
            }
            _ => Kind::Glob,
        };
        Pattern { text: text.into(), kind }
    }

    pub fn text(&self) -> &[u8] {
        &self.text
    }

    #[inline]
    pub fn matches(&self, name: &[u8]) -> bool {
        match self.kind {
            Kind::Exact => *self.text == *name,
            Kind::Prefix => name.starts_with(&self.text[..self.text.len() - 1]),
            Kind::Glob => Glob::new(&self.text).matches(name),
        }
    }
}

/// What may be done to a key, or what a call does to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub write: bool,
}

impl Access {
    pub const BOTH: Access = Access { read: true, write: true };

    #[inline]
    fn covers(self, needed: Access) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    pub pattern: Pattern,
    pub access: Access,
}

impl KeyPattern {
    #[inline]
    pub fn allows(&self, needed: Access, key: &[u8]) -> bool {
        self.access.covers(needed) && self.pattern.matches(key)
    }

    /// Whether it lets every key be read.
    pub fn is_read_of_all(&self) -> bool {
        self.access.read && self.pattern.text() == b"*"
    }

    /// As a rule.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.access {
            Access { read: true, write: false } => b"%R~",
            Access { read: false, write: true } => b"%W~",
            _ => b"~",
        });
        out.extend_from_slice(self.pattern.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_matches_as_its_glob_does() {
        let patterns = ["", "a", "a*", "*", "*a", "a?c", "a[bc]*", "a\\*", "a\\*b*", "ab*c*", "**"];
        let names = ["", "a", "ab", "abc", "b", "a*", "a*bc", "xa", "abcc", "*"];
        for pattern in patterns {
            for name in names {
                let expected = Glob::new(pattern.as_bytes()).matches(name.as_bytes());
                let found = Pattern::new(pattern.as_bytes()).matches(name.as_bytes());
                assert_eq!(found, expected, "{pattern} {name}");
            }
        }
    }

    #[test]
    fn one_pattern_must_give_all_that_is_needed() {
        let pattern = |access| KeyPattern { pattern: Pattern::new(b"k*"), access };
        let (read, write) =
            (Access { read: true, write: false }, Access { read: false, write: true });
        assert!(pattern(read).allows(read, b"k1") && pattern(Access::BOTH).allows(write, b"k1"));
        assert!(!pattern(read).allows(Access::BOTH, b"k1") && !pattern(write).allows(read, b"k1"));
        assert!(pattern(read).allows(Access::default(), b"k1"));
        assert!(!pattern(Access::BOTH).allows(read, b"x"));
    }
}
