//! Hashes: fields with values, each of which may expire on its own. A small hash lies packed inside
//! its table entry (`packed`), a large one is an object of its own (`large`); `stored` moves it
//! from the one to the other, and is all that commands see.
//!
//! Whoever looks a key up removes some of the fields whose time is over first (see `field_expiry`),
//! all of them if the hash is small. What is left of them, or may not be removed while expiry is
//! held back, is hidden: readers ask for a view without it, and a writer's [`HashEntry`] has none.

mod builder;
mod indexed;
mod large;
mod packed;
pub mod stored;
#[cfg(test)]
mod tests;

pub use builder::HashBuilder;
pub use large::LargeHash;
pub use packed::{Field, Form};
pub use stored::HashEntry;

use super::cells::position_of;
use super::element::Element;
use super::scan::show_in_order;
use packed::Fields;
use russet_base::hash::KeyHasher;
use russet_base::random::Random;

/// So many times fewer fields than there are can be picked one by one, few of them twice.
const FEW_OF: usize = 4;
/// Fields that are drawn before one that is not hidden is looked for in order.
const RANDOM_TRIES_MAX: usize = 64;

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

/// Where a hash that is read lies.
#[derive(Clone, Copy)]
enum Held<'a> {
    Packed(&'a [u8], Form),
    Large(&'a LargeHash),
}

/// A hash to read.
#[derive(Clone, Copy)]
pub struct HashRef<'a> {
    form: Held<'a>,
    /// Fields that expire at this moment or before are not shown.
    hides_ms: i64,
}

impl<'a> HashRef<'a> {
    #[inline]
    fn new(form: Held<'a>) -> Self {
        HashRef { form, hides_ms: i64::MIN }
    }

    /// The same hash without the fields that expire at this moment or before. It costs nothing
    /// where there are none.
    #[inline]
    pub fn hiding(self, hides_ms: i64) -> Self {
        let bound = match self.form {
            Held::Packed(bytes, Form::Expiring) => Some(packed::bound(bytes)),
            Held::Packed(_, Form::Plain) => None,
            Held::Large(hash) => hash.bound(),
        };
        let hides_some = bound.is_some_and(|bound| bound <= hides_ms);
        HashRef { hides_ms: if hides_some { hides_ms } else { i64::MIN }, ..self }
    }

    #[inline]
    fn hides_some(self) -> bool {
        self.hides_ms != i64::MIN
    }

    #[inline]
    fn shows(self, deadline_ms: Option<i64>) -> bool {
        deadline_ms.is_none_or(|at_ms| at_ms > self.hides_ms)
    }

    /// Whether some fields may have a deadline: if not, none has.
    pub fn may_expire(self) -> bool {
        match self.form {
            Held::Packed(_, form) => form == Form::Expiring,
            Held::Large(hash) => hash.bound().is_some(),
        }
    }

    /// How many fields there are, the hidden ones included.
    #[inline]
    fn stored_len(self) -> usize {
        match self.form {
            Held::Packed(bytes, form) => packed::len(bytes, form),
            Held::Large(hash) => hash.len(),
        }
    }

    fn hidden_len(self) -> usize {
        match self.form {
            Held::Packed(bytes, form) => {
                Fields::new(bytes, form).filter(|field| !self.shows(field.deadline_ms)).count()
            }
            Held::Large(hash) => hash.over_len(self.hides_ms),
        }
    }

    #[inline]
    pub fn len(self) -> usize {
        let hidden = if self.hides_some() { self.hidden_len() } else { 0 };
        self.stored_len() - hidden
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        match self.form {
            _ if self.hides_some() => self.len() == 0,
            Held::Packed(bytes, form) => packed::is_empty(bytes, form),
            Held::Large(hash) => hash.is_empty(),
        }
    }

    /// The value of a field.
    #[inline]
    pub fn value(self, name: &[u8]) -> Option<Element<'a>> {
        if self.hides_some() && self.deadline(name).is_none() {
            return None;
        }
        match self.form {
            Held::Packed(bytes, form) => packed::value(bytes, Element::parse(name), form),
            Held::Large(hash) => hash.value(Element::parse(name)),
        }
    }

    pub fn contains(self, name: &[u8]) -> bool {
        self.value(name).is_some()
    }

    /// When a field expires: `None` without the field, `Some(None)` if it never does.
    pub fn deadline(self, name: &[u8]) -> Option<Option<i64>> {
        let name = Element::parse(name);
        let found = match self.form {
            Held::Packed(bytes, form) => packed::deadline(bytes, name, form),
            Held::Large(hash) => hash.deadline(name),
        };
        found.filter(|deadline_ms| self.shows(*deadline_ms))
    }

    #[inline]
    pub fn for_each(self, mut visit: impl FnMut(Field<'a>)) {
        let visit = |field: Field<'a>| {
            if self.shows(field.deadline_ms) {
                visit(field);
            }
        };
        match self.form {
            Held::Packed(bytes, form) => Fields::new(bytes, form).for_each(visit),
            Held::Large(hash) => hash.iter().for_each(visit),
        }
    }

    /// Whether all of its fields are over at `now_ms`.
    fn is_over(self, now_ms: i64) -> bool {
        match self.form {
            Held::Packed(bytes, form) => Fields::new(bytes, form)
                .all(|field| field.deadline_ms.is_some_and(|at_ms| at_ms <= now_ms)),
            Held::Large(hash) => hash.is_over(now_ms),
        }
    }

    /// One field, each as likely as another.
    pub fn random(self, random: &mut Random) -> Option<Field<'a>> {
        if self.hides_some() {
            return self.random_shown(random);
        }
        self.random_stored(random)
    }

    fn random_stored(self, random: &mut Random) -> Option<Field<'a>> {
        match self.form {
            Held::Packed(bytes, form) => {
                Fields::new(bytes, form).nth(random.index(packed::len(bytes, form)))
            }
            Held::Large(hash) => hash.random(random),
        }
    }

    /// As [`HashRef::random`], where some are hidden: drawn until one is not, or, if nearly all
    /// are, counted off.
    #[cold]
    fn random_shown(self, random: &mut Random) -> Option<Field<'a>> {
        if let Some(field) = self.try_random(random) {
            return Some(field);
        }
        let mut found = None;
        self.sample(1, random, |field| found = Some(field));
        found
    }

    /// A field that is not hidden, if a few draws find one.
    fn try_random(self, random: &mut Random) -> Option<Field<'a>> {
        let mut drawn = (0..RANDOM_TRIES_MAX).filter_map(|_| self.random_stored(random));
        drawn.find(|field| self.shows(field.deadline_ms))
    }

    /// Draws `count` times, each time from all fields. The hidden ones are passed once, not for
    /// each draw.
    pub fn draw(self, count: usize, random: &mut Random, mut visit: impl FnMut(Field<'a>)) {
        let mut shown: Vec<Field<'a>> = Vec::new();
        for _ in 0..count {
            let drawn = match self.hides_some() {
                false => self.random_stored(random),
                true if shown.is_empty() => self.try_random(random),
                true => None,
            };
            if drawn.is_none() && shown.is_empty() {
                self.for_each(|field| shown.push(field));
            }
            match drawn {
                Some(field) => visit(field),
                None if shown.is_empty() => return,
                None => visit(shown[random.index(shown.len())]),
            }
        }
    }

    /// `count` different fields at random, all if there are fewer.
    pub fn sample(self, count: usize, random: &mut Random, mut visit: impl FnMut(Field<'a>)) {
        let len = self.len();
        match self.form {
            _ if count >= len => self.for_each(visit),
            Held::Large(hash) if count <= len / FEW_OF && !self.hides_some() => {
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
        let is_listpack = match self.form {
            Held::Packed(bytes, Form::Plain) => !packed::is_marked(bytes),
            Held::Packed(_, Form::Expiring) => false,
            Held::Large(hash) => hash.is_listpack(),
        };
        if is_listpack { "listpack" } else { "hashtable" }
    }

    /// Shows `count` of the fields from `cursor` on, or a few more, and says where to go on; 0
    /// begins a scan and ends it. A field that is there all the while is shown, whatever form the
    /// hash takes meanwhile. `hasher` is that of the keyspace.
    ///
    /// COMPAT: what is a listpack to Redis is shown at once; tests/wire/hash/hscan.wire.
    pub fn scan(
        self,
        (cursor, count): (u64, u64),
        hasher: KeyHasher,
        mut visit: impl FnMut(Field<'a>),
    ) -> u64 {
        if self.encoding() == "listpack" {
            self.for_each(visit);
            return 0;
        }
        match self.form {
            Held::Large(hash) => hash.scan(cursor, count, |field| {
                if self.shows(field.deadline_ms) {
                    visit(field);
                }
            }),
            Held::Packed(..) => {
                let Ok(from) = u32::try_from(cursor) else { return 0 };
                let mut fields = Vec::new();
                self.for_each(|field| fields.push((position_of(hasher, field.name), field)));
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let next = show_in_order(fields.into_iter(), (from, count), &mut visit);
                next.map_or(0, u64::from)
            }
        }
    }
}
