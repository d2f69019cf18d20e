//! DEBUG DIGEST FULL: a signature of all that a replay must bring back, as it is at a moment. It
//! has what DEBUG DIGEST leaves out: exact deadlines of keys and fields, the groups of streams with
//! their pending entries, requests that ran once, functions.
//!
//! It does not depend on the order in which things are looked at.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::hash::KeyHasher;
use russet_base::{Args, num};
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::{Cursor, EntryRef, View};
use russet_engine::types::hash::{self, HashRef};
use russet_engine::types::list::{Element, ListRef};
use russet_engine::types::set::{self, SetRef};
use russet_engine::types::stream::{self as streams, Group, IdRange, Order};
use russet_engine::types::string;
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_engine::value::{Object, PackedTag, Type, type_of};
use std::ops::ControlFlow;

/// `DEBUG DIGEST FULL [unix-time-milliseconds]`
pub(super) fn run(ctx: &mut Ctx, args: Args) -> Outcome {
    let now_ms = match args.get(3) {
        Some(moment) => num::parse_i64(moment).ok_or(Refusal::NotInteger)?,
        None => ctx.keys.now.0,
    };
    let mut sum = Signature::default();
    for shard in ctx.keys.held().iter() {
        let found = ctx.keys.shard(shard);
        for db in 0..ctx.node.keyspace.databases() {
            let table = found.table(db);
            let mut cursor = Cursor::START;
            loop {
                cursor = table.scan(cursor, &mut |entry| {
                    let is_over = entry.expiry().is_some_and(|at_ms| at_ms <= now_ms)
                        || hash::stored::is_over(&entry.value(), now_ms);
                    if !is_over {
                        sum.add(Signature::of_entry(db, &entry, now_ms));
                    }
                });
                if cursor.is_end() {
                    break;
                }
            }
        }
        found.once.for_each(|db, id, record| {
            if record.expires.0 > now_ms {
                sum.add(Signature::of_request(db, id, record));
            }
        });
    }
    for library in ctx.node.scripts.libraries().iter() {
        sum.add(Signature::of_bytes(&[b"library", &*library.source].concat()));
    }
    ctx.reply.status(&sum.hex());
    DONE
}

const SEEDS: [u64; 3] = [0x5275_7373_6574, 0x6469_6765_7374, 0x7369_676e];

/// 160 bits. Signatures of parts are added up by exclusive or.
#[derive(Clone, Copy, Default)]
struct Signature([u64; 3]);

impl Signature {
    /// Of a value and the moment of its expiry, without its key and what is over by `now_ms`.
    fn of_value(entry: &EntryRef<'_, Object>, now_ms: i64) -> Self {
        let mut bytes = type_of(entry).name().as_bytes().to_vec();
        if let Some(at) = entry.expiry() {
            part(&mut bytes, &at.to_le_bytes());
        }
        match entry.value() {
            View::Packed(tag, packed) if PackedTag::from_u8(tag) == PackedTag::List => {
                list(&mut bytes, ListRef::of_bytes(packed));
            }
            View::Object(Object::List(large)) => list(&mut bytes, ListRef::Large(large)),
            View::Object(Object::Bloom(bloom)) => {
                bytes.extend_from_slice(&bloom.expansion().unwrap_or(0).to_le_bytes());
                for layer in bloom.parts() {
                    let numbers = [layer.capacity, layer.error_rate.to_bits(), layer.items];
                    part(&mut bytes, &numbers.map(u64::to_le_bytes).concat());
                    part(&mut bytes, &layer.hashes.to_le_bytes());
                    part(&mut bytes, layer.bits);
                }
            }
            View::Packed(tag, packed) if PackedTag::from_u8(tag) == PackedTag::Zset => {
                zset(&mut bytes, ZsetRef::Packed(packed));
            }
            View::Object(Object::Zset(large)) => zset(&mut bytes, ZsetRef::Large(large)),
            _ if type_of(entry) == Type::Stream => stream(&mut bytes, entry, now_ms),
            _ => {
                if let Ok(hash) = hash::stored::hash(entry) {
                    fields(&mut bytes, hash.hiding(now_ms));
                } else if let Ok(members) = set::stored::set(entry) {
                    part(&mut bytes, &set_sum(members).0.map(u64::to_le_bytes).concat());
                } else if let Ok(text) = string::text(entry) {
                    text.with_bytes(|text| part(&mut bytes, text));
                }
            }
        }
        Self::of_bytes(&bytes)
    }

    /// Of a key in a database, with its value.
    fn of_entry(db: usize, entry: &EntryRef<'_, Object>, now_ms: i64) -> Self {
        let mut bytes = (db as u64).to_le_bytes().to_vec();
        part(&mut bytes, entry.key());
        Self::of_value(entry, now_ms)
            .0
            .iter()
            .for_each(|word| part(&mut bytes, &word.to_le_bytes()));
        Self::of_bytes(&bytes)
    }

    fn of_request(db: usize, id: &[u8], record: OnceRecord) -> Self {
        let mut bytes = b"once".to_vec();
        part(&mut bytes, &(db as u64).to_le_bytes());
        part(&mut bytes, id);
        part(&mut bytes, &record.digest.to_le_bytes());
        part(&mut bytes, record.reply);
        part(&mut bytes, &record.expires.0.to_le_bytes());
        Self::of_bytes(&bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Signature(SEEDS.map(|seed| KeyHasher::with_seed(seed).hash(bytes)))
    }

    fn add(&mut self, other: Signature) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, word)| *sum ^= word);
    }

    fn hex(self) -> String {
        let [first, second, third] = self.0;
        format!("{first:016x}{second:016x}{:08x}", third as u32)
    }
}

/// Its length first, so that two parts can't be taken for two others.
fn part(bytes: &mut Vec<u8>, content: &[u8]) {
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    bytes.extend_from_slice(content);
}

/// Fields have no order: their signatures are added up.
fn fields(bytes: &mut Vec<u8>, hash: HashRef<'_>) {
    let mut sum = Signature::default();
    hash.for_each(|field| {
        let mut one = Vec::new();
        field.name.with_bytes(|name| part(&mut one, name));
        field.value.with_bytes(|value| part(&mut one, value));
        field.deadline_ms.into_iter().for_each(|at_ms| part(&mut one, &at_ms.to_le_bytes()));
        sum.add(Signature::of_bytes(&one));
    });
    sum.0.iter().for_each(|word| part(bytes, &word.to_le_bytes()));
}

fn stream(bytes: &mut Vec<u8>, entry: &EntryRef<'_, Object>, now_ms: i64) {
    let Ok(stream) = streams::stored::stream(entry) else { return };
    stream.visit(IdRange::ALL, Order::Forward, |entry| {
        part(bytes, entry.id.text().as_bytes());
        entry.for_each_field(|name, value| {
            name.with_bytes(|text| part(bytes, text));
            value.with_bytes(|text| part(bytes, text));
        });
        ControlFlow::Continue(())
    });
    for id in [stream.last_id(), stream.max_deleted_id()] {
        part(bytes, id.text().as_bytes());
    }
    part(bytes, &stream.entries_added().to_le_bytes());
    for (name, found) in stream.groups().into_iter().flatten() {
        part(bytes, name);
        group(bytes, found);
    }
    if let Some(known) = stream.idempotency() {
        [known.duration_s, known.messages_max].iter().for_each(|n| part(bytes, &n.to_le_bytes()));
        known.for_each_message(now_ms, |producer, message, id| {
            part(bytes, producer);
            part(bytes, message);
            part(bytes, id.text().as_bytes());
        });
    }
}

/// When consumers were last seen is left out: it is no part of what they have, and not recorded.
fn group(bytes: &mut Vec<u8>, group: &Group) {
    part(bytes, group.last_id.text().as_bytes());
    part(bytes, format!("{:?}", group.entries_read).as_bytes());
    group.consumers().for_each(|consumer| part(bytes, &consumer.name));
    for (id, pending) in group.pending_in(IdRange::ALL) {
        part(bytes, id.text().as_bytes());
        let owner = pending.owner.map(|owner| &*group.consumer(owner).name);
        part(bytes, owner.unwrap_or_default());
        part(bytes, &[u8::from(owner.is_some())]);
        part(bytes, &pending.delivered_ms.to_le_bytes());
        part(bytes, &pending.deliveries.to_le_bytes());
    }
}

fn list(bytes: &mut Vec<u8>, list: ListRef<'_>) {
    list.for_each_in(0..list.len(), |element: Element<'_>| {
        element.with_bytes(|text| part(bytes, text));
    });
}

fn zset(bytes: &mut Vec<u8>, zset: ZsetRef<'_>) {
    zset.for_each(0..zset.len(), Direction::Forward, |pair| {
        pair.member.with_bytes(|text| part(bytes, text));
        part(bytes, &(pair.score + 0.0).to_le_bytes());
    });
}

/// The members have no order, so their signatures are added up.
fn set_sum(set: SetRef<'_>) -> Signature {
    let mut sum = Signature::default();
    set.for_each(&mut |member| sum.add(member.with_bytes(Signature::of_bytes)));
    sum
}
