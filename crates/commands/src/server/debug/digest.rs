//! DEBUG DIGEST and DEBUG DIGEST-VALUE: the same signature of the same data as Redis and Valkey
//! compute, so that their data can be compared with ours.
//!
//! Two steps make it up. `mix` depends on the order of what it is given, `add` does not: the first
//! is for what has an order, the second for members, fields and keys.

use russet_engine::store::raw::table::{EntryRef, View};
use russet_engine::types::hash;
use russet_engine::types::list::{Element, ListRef};
use russet_engine::types::set;
use russet_engine::types::stream::{self as streams, IdRange, Order};
use russet_engine::types::string;
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_engine::value::{Object, PackedTag, Type, type_of};
use sha1::{Digest as _, Sha1};
use std::ops::ControlFlow;

/// A SHA-1, or several that were added up.
#[derive(Clone, Copy, Default)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// Of a value, and of whether it expires.
    pub(super) fn of_value(entry: &EntryRef<'_, Object>) -> Self {
        let mut digest = Digest::default();
        digest.mix_value(entry);
        digest
    }

    /// A database that holds something comes next.
    pub(super) fn mix_database(&mut self, db: usize) {
        self.mix(&(db as u32).to_be_bytes());
    }

    /// Adds a key with its value.
    pub(super) fn add_entry(&mut self, entry: &EntryRef<'_, Object>) {
        let mut own = Digest::default();
        own.mix(entry.key());
        own.mix_value(entry);
        self.add(&own.0);
    }

    fn mix_value(&mut self, entry: &EntryRef<'_, Object>) {
        let found = type_of(entry);
        self.mix(&type_number(found).to_be_bytes());
        match entry.value() {
            View::Packed(tag, packed) if PackedTag::from_u8(tag) == PackedTag::List => {
                self.mix_list(ListRef::of_bytes(packed));
            }
            View::Object(Object::List(large)) => self.mix_list(ListRef::Large(large)),
            View::Object(Object::Bloom(bloom)) => {
                bloom.layer_bytes().for_each(|layer| self.mix(layer));
            }
            View::Packed(tag, packed) if PackedTag::from_u8(tag) == PackedTag::Zset => {
                self.add_zset(ZsetRef::Packed(packed));
            }
            View::Object(Object::Zset(large)) => self.add_zset(ZsetRef::Large(large)),
            _ if found == Type::Stream => self.mix_stream(entry),
            _ => self.mix_other(entry),
        }
        if entry.expiry().is_some() {
            self.add(b"!!expire!!");
        }
    }

    fn mix_other(&mut self, entry: &EntryRef<'_, Object>) {
        if let Ok(hash) = hash::stored::hash(entry) {
            hash.for_each(|field| {
                let mut own = Digest::default();
                field.name.with_bytes(|name| own.mix(name));
                field.value.with_bytes(|value| own.mix(value));
                self.add(&own.0);
            });
        } else if let Ok(members) = set::stored::set(entry) {
            members.for_each(&mut |member| member.with_bytes(|text| self.add(text)));
        } else if let Ok(text) = string::text(entry) {
            text.with_bytes(|text| self.mix(text));
        }
    }

    fn mix_list(&mut self, list: ListRef<'_>) {
        list.for_each_in(0..list.len(), |element: Element<'_>| {
            element.with_bytes(|text| self.mix(text));
        });
    }

    fn add_zset(&mut self, zset: ZsetRef<'_>) {
        zset.for_each(0..zset.len(), Direction::Forward, |pair| {
            let mut own = Digest::default();
            pair.member.with_bytes(|text| own.mix(text));
            own.mix(&with_17_digits(pair.score));
            self.add(&own.0);
        });
    }

    fn mix_stream(&mut self, entry: &EntryRef<'_, Object>) {
        let Ok(stream) = streams::stored::stream(entry) else { return };
        stream.visit(IdRange::ALL, Order::Forward, |entry| {
            self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
            entry.for_each_field(|name, value| {
                name.with_bytes(|text| self.mix(text));
                value.with_bytes(|text| self.mix(text));
            });
            ControlFlow::Continue(())
        });
    }

    fn add(&mut self, bytes: &[u8]) {
        let hash = Sha1::digest(bytes);
        self.0.iter_mut().zip(hash).for_each(|(sum, byte)| *sum ^= byte);
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::digest(self.0).into();
    }

    pub(super) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What Redis numbers its types by. A Bloom filter is a module's type there.
fn type_number(of: Type) -> u32 {
    match of {
        Type::String => 0,
        Type::List => 1,
        Type::Set => 2,
        Type::Zset => 3,
        Type::Hash => 4,
        Type::Bloom => 5,
        Type::Stream => 6,
    }
}

/// As C prints a score with `%.17g`.
fn with_17_digits(score: f64) -> Vec<u8> {
    const DIGITS: i32 = 17;
    if !score.is_finite() {
        let text = if score.is_nan() { "nan" } else { "inf" };
        let sign = if score < 0.0 { "-" } else { "" };
        return format!("{sign}{text}").into_bytes();
    }
    let text = format!("{score:.16e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{score:.places$}")).into_bytes();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::with_17_digits;

    /// As printed by C.
    #[test]
    fn scores_are_printed_with_17_digits() {
        for (score, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.10000000000000001"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456.789, "123456.789"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5000000000000001e-05"),
            (1e300, "1.0000000000000001e+300"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(String::from_utf8(with_17_digits(score)).unwrap(), text);
        }
    }
}
