//! A hash that is made field by field, each with its own deadline or none, by who does not know how
//! many will come: a file that is loaded.

use super::packed::{self, Form, Scratch};
use super::stored::{Pair, ScratchBlob};
use super::{HashLimits, HashRef, Held, LargeHash, Lease};
use crate::store::raw::table::NewValue;
use crate::types::blob::Blob;
use crate::types::element::Element;
use crate::value::Object;
use russet_base::hash::KeyHasher;

#[expect(clippy::large_enum_variant, reason = "a small one is built without an allocation")]
enum Building {
    Packed(ScratchBlob, Form),
    Large(LargeHash),
}

pub struct HashBuilder {
    fields: Building,
    count: usize,
    /// What Redis would call it.
    is_hashtable: bool,
    limits: HashLimits,
    hasher: KeyHasher,
}

impl HashBuilder {
    pub fn new(limits: HashLimits, hasher: KeyHasher) -> Self {
        let fields = Building::Packed(ScratchBlob(Scratch::new()), Form::Plain);
        HashBuilder { fields, count: 0, is_hashtable: false, limits, hasher }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a field; false, and the hash is no longer of use, if there was one of this name.
    #[must_use]
    pub fn add(&mut self, (name, value): Pair<'_>, deadline_ms: Option<i64>) -> bool {
        self.count += 1;
        self.is_hashtable |= deadline_ms.is_some()
            || self.limits.is_too_long(name)
            || self.limits.is_too_long(value)
            || self.count > self.limits.entries;
        self.change_form((name, value), deadline_ms.is_some());
        let pair = (Element::parse(name), Element::parse(value));
        let lease = deadline_ms.map_or(Lease::None, Lease::Until);
        match &mut self.fields {
            Building::Packed(blob, form) => packed::set(blob, *form, pair, lease),
            Building::Large(hash) => hash.set(pair, lease),
        }
    }

    /// Takes the form that a further field needs.
    fn change_form(&mut self, pair: Pair<'_>, has_deadline: bool) {
        let Building::Packed(blob, form) = &mut self.fields else { return };
        let bytes = blob.bytes();
        let needs_plain_form = has_deadline || self.is_hashtable;
        if packed::is_outgrown(bytes, form.tag(), pair)
            || needs_plain_form && packed::needs_index(bytes)
        {
            let packed = HashRef::new(Held::Packed(bytes, *form));
            self.fields = Building::Large(LargeHash::of(packed, self.hasher));
            return;
        }
        if self.is_hashtable {
            packed::mark(blob, *form);
        }
        if has_deadline && *form == Form::Plain {
            *blob = ScratchBlob(packed::to_expiring(blob.bytes()));
            *form = Form::Expiring;
        }
    }

    /// Hands the hash over, which has a field at least.
    pub fn put<R>(self, put: impl FnOnce(NewValue<'_, Object>) -> R) -> R {
        match self.fields {
            Building::Packed(blob, form) => put(NewValue::Packed(form.tag(), blob.bytes())),
            Building::Large(mut hash) => {
                hash.note_size(self.is_hashtable);
                put(NewValue::Object(Box::new(Object::Hash(hash))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

    fn shown(hash: HashRef<'_>) -> (Model, &'static str) {
        let mut model = Model::new();
        hash.for_each(|field| {
            model.insert(field.name.to_vec(), (field.value.to_vec(), field.deadline_ms));
        });
        assert_eq!(model.len(), hash.len());
        (model, hash.encoding())
    }

    #[test]
    fn hashes_of_all_sizes_come_out_as_they_went_in() {
        let hasher = KeyHasher::with_seed(1);
        for count in [1usize, 3, 100, 400, 512, 513, 2000] {
            for every in [0, 1, 7] {
                let mut builder = HashBuilder::new(HashLimits::default(), hasher);
                let mut model = Model::new();
                for at in 0..count {
                    let name = format!("field:{at}").into_bytes();
                    let value = (at * at).to_string().into_bytes();
                    let deadline = (every > 0 && at % every == 0).then_some(5000 + at as i64);
                    assert!(builder.add((&name, &value), deadline));
                    model.insert(name, (value, deadline));
                }
                let is_listpack = every == 0 && count <= 512;
                let encoding = if is_listpack { "listpack" } else { "hashtable" };
                builder.put(|value| match value {
                    NewValue::Packed(tag, bytes) => {
                        let form = Form::of_tag(tag).unwrap();
                        let hash = HashRef::new(Held::Packed(bytes, form));
                        assert!(shown(hash) == (model, encoding), "{count} {every}");
                    }
                    NewValue::Object(object) => {
                        let Object::Hash(hash) = &*object else { panic!("no hash") };
                        let hash = HashRef::new(Held::Large(hash));
                        assert!(shown(hash) == (model, encoding), "{count} {every}");
                    }
                    _ => panic!("no hash"),
                });
            }
        }
    }

    #[test]
    fn a_field_that_comes_twice_is_noticed() {
        for count in [2, 3000] {
            let mut builder = HashBuilder::new(HashLimits::default(), KeyHasher::with_seed(1));
            for at in 0..count {
                assert!(builder.add((at.to_string().as_bytes(), b"v"), None));
            }
            assert!(!builder.add((b"1", b"w"), None), "{count}");
        }
    }
}
