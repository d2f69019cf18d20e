//! Hashes: fields with values, each of which may expire on its own. A small hash lies packed inside
//! its table entry (`packed`), a large one is an object of its own (`large`); `stored` moves it
//! from the one to the other, and is all that commands see.
//!
//! Fields are never hidden here because their time is over: whoever looks a key up removes such
//! fields first (see `field_expiry`), so that nobody sees them.

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
            HashRef::Packed(bytes, _) => packed::len(bytes),
            HashRef::Large(hash) => hash.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of a field.
    #[inline]
    pub fn value(self, name: &[u8]) -> Option<Element<'a>> {
        match self {
            HashRef::Packed(bytes, form) => packed::value(bytes, Element::parse(name), form),
            HashRef::Large(hash) => hash.field(Element::parse(name)).map(|field| field.value),
        }
    }

    pub fn contains(self, name: &[u8]) -> bool {
        self.value(name).is_some()
    }

    /// When a field expires: `None` without the field, `Some(None)` if it never does.
    pub fn deadline(self, name: &[u8]) -> Option<Option<i64>> {
        let name = Element::parse(name);
        let field = match self {
            HashRef::Packed(bytes, form) => packed::field(bytes, name, form)?,
            HashRef::Large(hash) => hash.field(name)?,
        };
        Some(field.deadline_ms)
    }

    #[inline]
    pub fn for_each(self, mut visit: impl FnMut(Field<'a>)) {
        match self {
            HashRef::Packed(bytes, form) => Fields::new(bytes, form).for_each(visit),
            HashRef::Large(hash) => hash.for_each(&mut visit),
        }
    }

    /// The field at each of these places, which rise and lie below `len`.
    fn at_places(self, places: &[usize], mut visit: impl FnMut(Field<'a>)) {
        let mut wanted = places.iter().peekable();
        let mut at = 0;
        self.for_each(|field| {
            while wanted.next_if(|&&place| place == at).is_some() {
                visit(field);
            }
            at += 1;
        });
    }

    /// One field, each as likely as another; `draw` gives random numbers.
    pub fn random(self, draw: &mut dyn FnMut() -> u64) -> Option<Field<'a>> {
        match self {
            HashRef::Packed(bytes, form) => {
                let place = below(draw(), packed::len(bytes));
                Fields::new(bytes, form).nth(place)
            }
            HashRef::Large(hash) => hash.random(draw),
        }
    }

    /// `count` different fields at random, all if there are fewer.
    pub fn sample(
        self,
        count: usize,
        draw: &mut dyn FnMut() -> u64,
        mut visit: impl FnMut(Field<'a>),
    ) {
        let len = self.len();
        if count >= len {
            return self.for_each(visit);
        }
        let places = choose(len, count, draw);
        match self {
            HashRef::Large(hash) => hash.at_places(&places, &mut visit),
            HashRef::Packed(..) => self.at_places(&places, visit),
        }
    }

    /// As OBJECT ENCODING names it. A hash that was given a deadline is no listpack from then on.
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

/// A number below `len`, from a random one.
fn below(random: u64, len: usize) -> usize {
    ((u128::from(random) * len as u128) >> 64) as usize
}

/// `count` different numbers below `len`, rising: each choice as likely as another.
fn choose(len: usize, count: usize, draw: &mut dyn FnMut() -> u64) -> Vec<usize> {
    // Floyd's way: the numbers of the last `count` rounds, each taken unless it is there already.
    let mut chosen = std::collections::BTreeSet::new();
    for top in len - count..len {
        let at = below(draw(), top + 1);
        if !chosen.insert(at) {
            chosen.insert(top);
        }
    }
    chosen.into_iter().collect()
}
