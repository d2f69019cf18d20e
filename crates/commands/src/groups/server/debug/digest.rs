//! DEBUG DIGEST and DEBUG DIGEST-VALUE: the same signature of the same data as Redis and Valkey
//! compute, so that their data can be compared with ours.
//!
//! Two steps make it up. `mix` depends on the order of what it is given, `add` does not: the first
//! is for what has an order, the second for members, fields and keys.

use russet_base::float::format_shortest;
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
    /// Of a value, and of whether it expires. Fields that are over at `now_ms` are not there.
    pub(super) fn of_value(entry: &EntryRef<'_, Object>, now_ms: i64) -> Self {
        let mut digest = Digest::default();
        digest.mix_value(entry, now_ms);
        digest
    }

    /// A database that holds something comes next.
    pub(super) fn mix_database(&mut self, db: usize) {
        self.mix(&(db as u32).to_be_bytes());
    }

    /// Adds a key with its value.
    pub(super) fn add_entry(&mut self, entry: &EntryRef<'_, Object>, now_ms: i64) {
        let mut own = Digest::default();
        own.mix(entry.key());
        own.mix_value(entry, now_ms);
        self.add(&own.0);
    }

    fn mix_value(&mut self, entry: &EntryRef<'_, Object>, now_ms: i64) {
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
            _ => self.mix_other(entry, now_ms),
        }
        if entry.expiry().is_some() {
            self.add(b"!!expire!!");
        }
    }

    fn mix_other(&mut self, entry: &EntryRef<'_, Object>, now_ms: i64) {
        if let Ok(hash) = hash::stored::hash(entry) {
            hash.hiding(now_ms).for_each(|field| {
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
            let mut score = Vec::new();
            format_shortest(pair.score, &mut score);
            own.mix(&score);
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
