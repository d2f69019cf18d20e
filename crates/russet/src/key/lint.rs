//! A look at scopes before they become keys: what is lawful and still a mistake, most likely.

use super::{DIGEST_BYTES, Part, Scope, escape};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;

/// A scope that is longer makes keys that cost more memory than most values.
pub const SCOPE_BYTES_GOOD: usize = 128;
/// So many scopes are a sample; of fewer only words are looked at.
const SAMPLE_MIN: usize = 100;
/// In a sample one scope of so many must differ from those before.
const DISTINCT_ONE_IN: usize = 10;
/// Parts that are the same for everyone.
const COMMON_WORDS: &[&str] = &[
    "all",
    "any",
    "app",
    "default",
    "everyone",
    "false",
    "global",
    "main",
    "none",
    "null",
    "prod",
    "production",
    "root",
    "shared",
    "staging",
    "test",
    "true",
    "undefined",
    "unknown",
];
/// How tokens begin of which it is known.
const TOKEN_BEGINNINGS: &[&str] =
    &["Bearer ", "Basic ", "eyJ", "sk_", "sk-", "pk_", "ghp_", "gho_", "glpat-", "xox", "AKIA"];
const TOKEN_BYTES_MIN: usize = 32;

/// Something about a scope that is most likely a mistake. It says nothing of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A part, counted from 0, can be read in the store and looks as if it should not: mark it
    /// [`Scope::and_sensitive`], or [`Scope::and_digest`] if it is random.
    Readable {
        /// Which part.
        part: usize,
        /// What it looks like.
        looks_like: Sensitive,
    },
    /// It is over [`SCOPE_BYTES_GOOD`] bytes long: use [`Scope::and_digest`] for the long part.
    Long {
        /// How long it is in a key.
        bytes: usize,
    },
    /// The hash tag is nearly the same for everyone: all keys are in one slot, on one node of a
    /// cluster. Add whose data it is, or [`Scope::spread`] it.
    FewTags {
        /// How many different ones there are.
        tags: usize,
        /// Of so many scopes.
        scopes: usize,
    },
}

/// What must not be readable in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitive {
    /// An e-mail address.
    Email,
    /// A phone number.
    Phone,
    /// A token, or a digest, which looks the same: [`Scope::and_digest`] makes one.
    Token,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Readable { part, looks_like } => {
                write!(f, "part {part} can be read in the store and looks like {looks_like}")
            }
            Warning::Long { bytes } => write!(f, "{bytes} bytes are long for a scope"),
            Warning::FewTags { tags, scopes } => {
                write!(f, "{tags} different hash tags of {scopes}: few slots have all the work")
            }
        }
    }
}

impl fmt::Display for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sensitive::Email => "an e-mail address",
            Sensitive::Phone => "a phone number",
            Sensitive::Token => "a token",
        })
    }
}

/// Looks at the scopes of one family, for a test of a program: one scope, or better a sample of a
/// hundred and more as they come in a day. An empty list is no proof; a warning is worth a look.
///
/// ```
/// use russet::key::{Scope, Sensitive, Warning, lint};
///
/// let readable = Scope::from("acme").and("ann@example.org");
/// let warning = Warning::Readable { part: 1, looks_like: Sensitive::Email };
/// assert_eq!(lint([&readable]), [warning]);
/// assert_eq!(lint([&Scope::from("acme").and_sensitive("ann@example.org")]), []);
/// // All of it in one slot.
/// assert!(matches!(lint([&Scope::from("global")])[..], [Warning::FewTags { .. }]));
/// ```
pub fn lint<S: Borrow<Scope>>(scopes: impl IntoIterator<Item = S>) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    let (mut tags, mut count, mut words) = (HashSet::new(), 0, 0);
    for scope in scopes {
        let scope = scope.borrow();
        count += 1;
        words += usize::from(is_common(scope));
        for warning in warnings_of(scope) {
            let is_known = warnings.iter().any(|it| it.is_like(&warning));
            if !is_known {
                warnings.push(warning);
            }
        }
        tags.insert(scope.clone());
    }
    let are_few = count >= SAMPLE_MIN && tags.len() * DISTINCT_ONE_IN < count;
    if are_few || count > 0 && words == count {
        warnings.push(Warning::FewTags { tags: tags.len(), scopes: count });
    }
    warnings
}

impl Warning {
    /// One of each kind is enough, of whichever scope.
    fn is_like(&self, other: &Warning) -> bool {
        match (self, other) {
            (Warning::Long { .. }, Warning::Long { .. }) => true,
            _ => self == other,
        }
    }
}

fn warnings_of(scope: &Scope) -> impl Iterator<Item = Warning> {
    let readable = scope.parts().enumerate().filter_map(|(part, it)| match it {
        Part::Open(bytes) => {
            let looks_like = resembles(std::str::from_utf8(bytes).ok()?)?;
            Some(Warning::Readable { part, looks_like })
        }
        Part::Sensitive(_) | Part::Digest(_) => None,
    });
    let bytes: usize = scope.parts().map(|part| 1 + length(part)).sum();
    readable.chain((bytes > SCOPE_BYTES_GOOD).then_some(Warning::Long { bytes }))
}

fn length(part: &Part) -> usize {
    match part {
        Part::Open(bytes) => {
            let mut text = Vec::new();
            escape(bytes, &mut text);
            text.len()
        }
        Part::Sensitive(_) | Part::Digest(_) => 2 * DIGEST_BYTES,
    }
}

/// Not one part differs from user to user.
fn is_common(scope: &Scope) -> bool {
    let is_word = |part: &Part| match part {
        Part::Open(bytes) => {
            COMMON_WORDS.iter().any(|word| bytes.eq_ignore_ascii_case(word.as_bytes()))
        }
        Part::Sensitive(_) | Part::Digest(_) => false,
    };
    scope.shard.is_none() && scope.parts().all(is_word)
}

fn resembles(part: &str) -> Option<Sensitive> {
    if is_email(part) {
        return Some(Sensitive::Email);
    }
    if is_phone(part) {
        return Some(Sensitive::Phone);
    }
    is_token(part).then_some(Sensitive::Token)
}

fn is_email(part: &str) -> bool {
    let Some((user, domain)) = part.rsplit_once('@') else { return false };
    !user.is_empty() && domain.contains('.') && !domain.contains(char::is_whitespace)
}

/// With a plus, a zero ahead, or in groups. Digits alone may be any id, and groups a date or the
/// address of a machine.
fn is_phone(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let is_other = |it: char| !it.is_ascii_digit() && !" -.()/+".contains(it);
    let is_ip = part.parse::<std::net::Ipv4Addr>().is_ok();
    if !(9..=15).contains(&digits) || part.contains(is_other) || is_ip {
        return false;
    }
    let is_grouped = digits < part.len() && !part.starts_with("19") && !part.starts_with("20");
    part.starts_with(['+', '0']) || is_grouped
}

/// As random as tokens are: long, of letters and digits, and no UUID.
fn is_token(part: &str) -> bool {
    if TOKEN_BEGINNINGS.iter().any(|beginning| part.starts_with(beginning)) {
        return part.len() >= TOKEN_BYTES_MIN / 2;
    }
    let is_of_token = |it: char| it.is_ascii_alphanumeric() || "-_+/=.".contains(it);
    let is_uuid = part.len() == 36 && part.matches('-').count() == 4;
    if part.len() < TOKEN_BYTES_MIN || is_uuid || !part.chars().all(is_of_token) {
        return false;
    }
    let has = |is: fn(&u8) -> bool| part.bytes().any(|byte| is(&byte));
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    has(u8::is_ascii_digit) && (is_hex || is_mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_should_not_be_readable_is_known() {
        for (part, wanted) in [
            ("ann@example.org", Some(Sensitive::Email)),
            ("ann@work", None),
            ("+49 170 1234567", Some(Sensitive::Phone)),
            ("0170-1234567", Some(Sensitive::Phone)),
            ("(555) 123-4567", Some(Sensitive::Phone)),
            ("1234567890", None),
            ("2026-07-02", None),
            ("2026-07-02-13", None),
            ("10.120.130.140", None),
            ("eyJhbGciOiJIUzI1NiJ9.e30.abc", Some(Sensitive::Token)),
            ("9f86d081884c7d659a2feaa0c55ad015", Some(Sensitive::Token)),
            ("Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFi", Some(Sensitive::Token)),
            ("123e4567-e89b-12d3-a456-426614174000", None),
            ("a-name-that-is-long-and-of-plain-words-only", None),
            ("user-1", None),
        ] {
            assert_eq!(resembles(part), wanted, "{part}");
        }
    }

    #[test]
    fn marked_parts_and_short_ones_are_good() {
        let good = Scope::from("acme").and_sensitive("ann@example.org").and_digest("+491701234567");
        assert_eq!(lint([&good]), []);
        let long = Scope::from("acme").and("x y".repeat(40));
        assert_eq!(lint([&long, &long]), [Warning::Long { bytes: 5 + 1 + 40 * 5 }]);
    }

    #[test]
    fn tags_of_a_sample_must_differ() {
        let users: Vec<Scope> = (0..200).map(|user| Scope::from(&format!("{user}"))).collect();
        assert_eq!(lint(&users), []);
        let tenants: Vec<Scope> =
            (0..200).map(|user| Scope::from(&format!("{}", user % 3))).collect();
        assert_eq!(lint(&tenants), [Warning::FewTags { tags: 3, scopes: 200 }]);
        // Few are no sample, unless words say it.
        assert_eq!(lint(&tenants[..9]), []);
        assert_eq!(lint([Scope::from("Global")]), [Warning::FewTags { tags: 1, scopes: 1 }]);
        assert_eq!(lint([Scope::from("global").shard(3)]), []);
        assert_eq!(lint(Vec::<Scope>::new()), []);
    }

    #[test]
    fn a_warning_says_nothing_of_the_content() {
        let scope = Scope::from("acme").and("ann@example.org");
        let said: Vec<String> = lint([&scope]).iter().map(|it| format!("{it} {it:?}")).collect();
        assert!(said[0].contains("an e-mail address") && !said[0].contains("ann@"), "{said:?}");
    }
}
