//! Hashes: fields with values, each of which may expire on its own. A small hash lies packed inside
//! its table entry (`packed`), a large one is an object of its own (`large`); `stored` moves it
//! from the one to the other, and is all that commands see.
//!
//! Fields are never hidden here because their time is over: whoever looks a key up removes such
//! fields first (see `field_expiry`), so that nobody sees them.

mod indexed;
mod large;
mod packed;
pub mod stored;
#[cfg(test)]
mod tests;

pub use large::LargeHash;
pub use packed::{Field, Form};
pub use stored::HashEntry;

use super::element::Element;
use packed::Fields;
use russet_base::random::Random;

/// So many times fewer fields than there are can be picked one by one, few of them twice.
const FEW_OF: usize = 4;

/// `hash-max-listpack-entries` and `hash-max-listpack-value`: what OBJECT ENCODING calls a
/// listpack. How a hash is really kept does not depend on them.
#[derive(Clone, Copy, Debug)]
pub struct HashLimits {
    pub entries: usize,
    pub value_bytes: usize,
}

impl Default for HashLimits {
    fn default() -> Self {
        HashLimits { entries: 512, value_bytes: 64 }
    }
}

impl HashLimits {
    /// Whether a field or a value of this length is too long for a listpack.
    #[inline]
    pub fn is_too_long(self, text: &[u8]) -> bool {
        text.len() > self.value_bytes
    }
}

/// What becomes of a field's deadline when it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It has none from now on.
    None,
    /// It keeps the one that it has.
    Keep,
    /// It expires at this moment, in milliseconds.
    Until(i64),
}

/// A hash to read.
#[derive(Clone, Copy)]
pub enum HashRef<'a> {
    Packed(&'a [u8], Form),
    Large(&'a LargeHash),
}

impl<'a> HashRef<'a> {
    #[inline]
    pub fn len(self) -> usize {
        match self {
            HashRef::Packed(bytes, form) => packed::len(bytes, form),
            HashRef::Large(hash) => hash.len(),
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            HashRef::Packed(bytes, form) => packed::is_empty(bytes, form),
            HashRef::Large(hash) => hash.is_empty(),
        }
    }

    /// The value of a field.
    #[inline]
    pub fn value(self, name: &[u8]) -> Option<Element<'a>> {
        match self {
            HashRef::Packed(bytes, form) => packed::value(bytes, Element::parse(name), form),
            HashRef::Large(hash) => hash.value(Element::parse(name)),
        }
    }

    pub fn contains(self, name: &[u8]) -> bool {
        self.value(name).is_some()
    }

    /// When a field expires: `None` without the field, `Some(None)` if it never does.
    pub fn deadline(self, name: &[u8]) -> Option<Option<i64>> {
        let name = Element::parse(name);
        match self {
            HashRef::Packed(bytes, form) => packed::deadline(bytes, name, form),
            HashRef::Large(hash) => hash.deadline(name),
        }
    }

    #[inline]
    pub fn for_each(self, visit: impl FnMut(Field<'a>)) {
        match self {
            HashRef::Packed(bytes, form) => Fields::new(bytes, form).for_each(visit),
            HashRef::Large(hash) => hash.iter().for_each(visit),
        }
    }

    /// Whether all of its fields are over at `now_ms`.
    fn is_over(self, now_ms: i64) -> bool {
        match self {
            HashRef::Packed(bytes, form) => Fields::new(bytes, form)
                .all(|field| field.deadline_ms.is_some_and(|at_ms| at_ms <= now_ms)),
            HashRef::Large(hash) => hash.is_over(now_ms),
        }
    }

    /// One field, each as likely as another.
    pub fn random(self, random: &mut Random) -> Option<Field<'a>> {
        match self {
            HashRef::Packed(bytes, form) => {
                Fields::new(bytes, form).nth(random.index(packed::len(bytes, form)))
            }
            HashRef::Large(hash) => hash.random(random),
        }
    }

    /// `count` different fields at random, all if there are fewer.
    pub fn sample(self, count: usize, random: &mut Random, mut visit: impl FnMut(Field<'a>)) {
        let len = self.len();
        match self {
            _ if count >= len => self.for_each(visit),
            HashRef::Large(hash) if count <= len / FEW_OF => {
                hash.sample_few(count, random, &mut visit);
            }
            _ => {
                // Each is taken with the chance that as many as are left to take are among those
                // that are left to see.
                let (mut wanted, mut left) = (count, len);
                self.for_each(|field| {
                    if random.index(left) < wanted {
                        visit(field);
                        wanted -= 1;
                    }
                    left -= 1;
                });
            }
        }
    }

    /// As OBJECT ENCODING names it. DIFFERS: as in Valkey a hash that was given a deadline is no
    /// listpack from then on; Redis has a name of its own for it.
    pub fn encoding(self) -> &'static str {
        let is_listpack = match self {
            HashRef::Packed(bytes, Form::Plain) => !packed::is_marked(bytes),
            HashRef::Packed(_, Form::Expiring) => false,
            HashRef::Large(hash) => hash.is_listpack(),
        };
        if is_listpack { "listpack" } else { "hashtable" }
    }

    /// Shows some of the fields from `cursor` on, about `count`, and says where to go on, 0 at the
    /// end. What is small, or a listpack to Redis, is shown at once.
    pub fn scan(self, cursor: u64, count: u64, mut visit: impl FnMut(Field<'a>)) -> u64 {
        match self {
            HashRef::Large(hash) if !hash.is_listpack() => hash.scan(cursor, count, &mut visit),
            _ => {
                self.for_each(visit);
                0
            }
        }
    }
}
