//! Streams against maps of the standard library: packed and large, across block boundaries, with
//! groups and their pending lists.

use super::*;
use crate::types::cow_vec::{COPIED_ELEMENTS_MAX, take_copied_elements};
use russet_base::random::Random;
use std::collections::{BTreeMap, BTreeSet};

type Pairs = Vec<Vec<u8>>;

fn limits(entries_max: u64) -> BlockLimits {
    BlockLimits { bytes_max: 4096, entries_max }
}

fn draw_pairs(random: &mut Random) -> Pairs {
    let names = [b"f1".to_vec(), b"f2".to_vec(), b"12".to_vec(), b"".to_vec()];
    let count = 1 + random.index(3);
    let mut pairs = Pairs::new();
    for _ in 0..count {
        pairs.push(names[random.index(names.len())].clone());
        pairs.push(match random.index(4) {
            0 => random.index(1000).to_string().into_bytes(),
            1 => vec![b'x'; random.index(200)],
            2 => (-(random.index(1 << 40) as i64)).to_string().into_bytes(),
            _ => b"value".to_vec(),
        });
    }
    pairs
}

fn seen(stream: StreamRef<'_>, range: IdRange, order: Order) -> Vec<(StreamId, Pairs)> {
    let mut found = Vec::new();
    stream.visit(range, order, |entry| {
        let mut pairs = Pairs::new();
        entry.for_each_field(|name, value| pairs.extend([name.to_vec(), value.to_vec()]));
        assert_eq!(pairs.len(), entry.fields_len * 2);
        found.push((entry.id, pairs));
        ControlFlow::Continue(())
    });
    found
}

/// A stream as the table has it: packed while it can be.
enum Subject {
    Packed(Vec<u8>),
    Large(Box<Stream>),
}

impl Subject {
    fn as_ref(&self) -> StreamRef<'_> {
        match self {
            Subject::Packed(bytes) => StreamRef::Packed(Packed(bytes)),
            Subject::Large(stream) => StreamRef::Large(stream),
        }
    }

    fn large(&mut self) -> &mut Stream {
        if let Subject::Packed(bytes) = self {
            *self = Subject::Large(Box::new(Stream::of_log(Packed(bytes).to_log())));
        }
        match self {
            Subject::Large(stream) => stream,
            Subject::Packed(_) => unreachable!("made large just now"),
        }
    }

    fn append(&mut self, id: StreamId, pairs: &Pairs, limits: BlockLimits) {
        let pairs = pairs.iter().map(Vec::as_slice);
        if let Subject::Packed(bytes) = self
            && packed::append(bytes, id, pairs.clone(), limits)
        {
            return;
        }
        self.large().log.append(id, pairs, limits);
    }
}

struct Model {
    entries: BTreeMap<StreamId, Pairs>,
    last_id: StreamId,
    added: u64,
}

fn check(subject: &Subject, model: &Model, random: &mut Random) {
    let stream = subject.as_ref();
    assert_eq!(stream.len(), model.entries.len() as u64);
    if let StreamRef::Large(large) = stream {
        large.check_bytes();
        large.clone().check_bytes();
    }
    assert_eq!((stream.last_id(), stream.entries_added()), (model.last_id, model.added));
    assert_eq!(stream.first_entry_id(), model.entries.keys().next().copied());
    assert_eq!(stream.last_entry_id(), model.entries.keys().next_back().copied());
    let mut bound = || StreamId::new(random.index(60) as u64, random.index(4) as u64);
    let range = IdRange { first: bound(), last: bound() };
    let mut wanted: Vec<_> = model
        .entries
        .iter()
        .filter(|(id, _)| (range.first..=range.last).contains(*id))
        .map(|(id, pairs)| (*id, pairs.clone()))
        .collect();
    assert_eq!(seen(stream, range, Order::Forward), wanted);
    wanted.reverse();
    assert_eq!(seen(stream, range, Order::Backward), wanted);
    let id = bound();
    assert_eq!(stream.contains(id), model.entries.contains_key(&id));
}

fn trim_model(model: &mut Model, threshold: Threshold) {
    match threshold {
        Threshold::Len(max) => {
            while model.entries.len() as u64 > max {
                model.entries.pop_first();
            }
        }
        Threshold::Id(min) => model.entries.retain(|id, _| *id >= min),
    }
}

fn delete_many(subject: &mut Subject, model: &mut Model, random: &mut Random) {
    let mut ids: Vec<_> = (0..random.index(6))
        .map(|_| random.index(model.entries.len() + 1))
        .map(|at| model.entries.keys().nth(at).copied().unwrap_or(StreamId::MAX))
        .collect();
    ids.sort_unstable();
    let before = model.entries.len();
    let deleted = subject.large().log.delete_all(&ids);
    ids.iter().for_each(|id| drop(model.entries.remove(id)));
    assert_eq!(deleted, (before - model.entries.len()) as u64);
}

#[test]
fn entries_are_those_of_a_map() {
    for seed in 0..60 {
        let mut random = Random::from_seed(seed);
        // The last is no limit but that of bytes.
        let limits = limits([2, 5, 100, 0][random.index(4)]);
        let first = StreamId::new(0, 1);
        let pairs = draw_pairs(&mut random);
        let begun = packed::begin(first, pairs.iter().map(Vec::as_slice)).unwrap();
        let mut subject = Subject::Packed(begun.to_vec());
        let mut model =
            Model { entries: BTreeMap::from([(first, pairs)]), last_id: first, added: 1 };
        for _ in 0..300 {
            match random.index(10) {
                0..=5 => {
                    let step = random.index(3) as u64;
                    let last = model.last_id;
                    let id = match step {
                        0 => StreamId::new(last.ms, last.seq + 1),
                        step => StreamId::new(last.ms + step - 1, last.seq + step),
                    };
                    let pairs = draw_pairs(&mut random);
                    subject.append(id, &pairs, limits);
                    model.entries.insert(id, pairs);
                    (model.last_id, model.added) = (id, model.added + 1);
                }
                6 => delete_many(&mut subject, &mut model, &mut random),
                7 => {
                    let at = random.index(model.entries.len() + 1);
                    let id = model.entries.keys().nth(at).copied().unwrap_or(StreamId::MAX);
                    let is_deleted = subject.large().log.delete(id);
                    assert_eq!(is_deleted, model.entries.remove(&id).is_some());
                }
                8 => {
                    let threshold = match random.index(2) {
                        0 => Threshold::Len(random.index(20) as u64),
                        _ => Threshold::Id(StreamId::new(random.index(60) as u64, 0)),
                    };
                    let trim = Trim {
                        threshold,
                        is_approximate: random.chance(0.5),
                        entries_max: 0,
                        references: References::Keep,
                    };
                    let before = model.entries.len() as u64;
                    let removed = subject.large().trim(trim);
                    if trim.is_approximate {
                        // Whole blocks only, and never more than was asked for.
                        let exact = model.entries.len() as u64;
                        trim_model(&mut model, threshold);
                        assert!(removed <= exact - model.entries.len() as u64);
                        let left = seen(subject.as_ref(), IdRange::ALL, Order::Forward);
                        assert_eq!(left.len() as u64, before - removed);
                        model.entries = left.into_iter().collect();
                    } else {
                        trim_model(&mut model, threshold);
                        assert_eq!(removed, before - model.entries.len() as u64);
                    }
                }
                _ => check(&subject, &model, &mut random),
            }
        }
        check(&subject, &model, &mut random);
    }
}

#[test]
fn extreme_ids_stay_distinct() {
    let ids = [
        StreamId::new(0, 1),
        StreamId::new(0, u64::MAX),
        StreamId::new(1, 0),
        StreamId::new(u64::MAX, 0),
        StreamId::MAX,
    ];
    let mut stream = Stream::default();
    for id in ids {
        stream.log.append(id, [&b"f"[..], b"v"].into_iter(), limits(100));
    }
    let found = seen(StreamRef::Large(&stream), IdRange::ALL, Order::Forward);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
    assert!(stream.log.delete(StreamId::MAX) && !stream.log.delete(StreamId::MAX));
}

/// A stream of `count` entries in one block, as `stream-node-max-entries 0` and
/// `stream-node-max-bytes 0` make it.
fn one_block(count: u64) -> Stream {
    let limits = BlockLimits { bytes_max: 0, entries_max: 0 };
    let mut stream = Stream::default();
    for seq in 1..=count {
        stream.log.append(StreamId::new(1, seq), [&b"f"[..], b"value"].into_iter(), limits);
    }
    assert_eq!(stream.log.blocks_len(), 1);
    stream
}

fn exactly(threshold: Threshold, references: References) -> Trim {
    Trim { threshold, is_approximate: false, entries_max: 0, references }
}

/// XTRIM MINID on 80,000 entries of one block took 407 ms, for each entry that went moved all that
/// stayed. So did XDEL of many, and each XADD with MAXLEN of a block that is full.
#[test]
fn removals_within_one_block_move_little() {
    const COUNT: u64 = 20_000;
    let moved_by = |remove: &dyn Fn(&mut Stream)| {
        let mut stream = one_block(COUNT);
        let before = block::MOVED_BYTES.get();
        remove(&mut stream);
        block::MOVED_BYTES.get() - before
    };
    let bytes = one_block(COUNT).memory_bytes();
    let left = COUNT / 4;
    for references in [References::Keep, References::Delete, References::Respect] {
        for threshold in [Threshold::Len(left), Threshold::Id(StreamId::new(1, COUNT - left + 1))] {
            let moved = moved_by(&|stream| {
                assert_eq!(stream.trim(exactly(threshold, references)), COUNT - left);
                assert_eq!(stream.log.first_entry_id(), Some(StreamId::new(1, COUNT - left + 1)));
            });
            assert!(moved <= bytes, "{threshold:?} {references:?}: {moved} of {bytes}");
        }
    }
    let moved = moved_by(&|stream| {
        let ids: Vec<_> = (1..=COUNT).step_by(2).map(|seq| StreamId::new(1, seq)).collect();
        assert_eq!(stream.log.delete_all(&ids), COUNT / 2);
    });
    assert!(moved <= bytes, "XDEL: {moved} of {bytes}");
    let moved = moved_by(&|stream| {
        let limits = BlockLimits { bytes_max: 0, entries_max: 0 };
        for seq in COUNT + 1..=3 * COUNT {
            stream.log.append(StreamId::new(1, seq), [&b"f"[..], b"value"].into_iter(), limits);
            assert_eq!(stream.trim(exactly(Threshold::Len(COUNT), References::Keep)), 1);
        }
        assert!(stream.memory_bytes() < 4 * bytes, "{} bytes", stream.memory_bytes());
    });
    assert!(moved <= 4 * bytes, "XADD MAXLEN: {moved} of {bytes}");
}

/// Counted on a real server: a hundred entries to a block, or what fits in its bytes.
#[test]
fn blocks_end_where_those_of_redis_do() {
    let mut stream = Stream::default();
    for seq in 1..=350 {
        let id = StreamId::new(1, seq);
        stream.log.append(id, [&b"f"[..], b"v"].into_iter(), limits(100));
    }
    assert_eq!(stream.log.blocks_len(), 4);
    let trim = Trim {
        threshold: Threshold::Len(120),
        is_approximate: true,
        entries_max: 10_000,
        references: References::Keep,
    };
    assert_eq!((stream.trim(trim), stream.log.len()), (200, 150));
    let mut stream = Stream::default();
    let value = [b'x'; 100];
    for seq in 1..=100 {
        let id = StreamId::new(1, seq);
        stream.log.append(id, [&b"f"[..], &value].into_iter(), limits(100));
    }
    assert_eq!(stream.log.blocks_len(), 3);
}

/// What a group knows, kept plainly.
#[derive(Default)]
struct GroupModel {
    /// Owner, deliveries and moment.
    pending: BTreeMap<StreamId, (Option<usize>, u64, i64)>,
}

#[test]
fn pending_lists_are_those_of_maps() {
    let names = [&b"a"[..], b"b", b"c"];
    for seed in 0..40 {
        let mut random = Random::from_seed(seed);
        let mut group = Group::new(StreamId::MIN, None);
        let mut model = GroupModel::default();
        for now_ms in 0..400 {
            let id = StreamId::new(random.index(12) as u64, 0);
            let who = random.index(names.len());
            let key = group
                .find_consumer(names[who])
                .unwrap_or_else(|| group.add_consumer(names[who], now_ms));
            let known = model.pending.get(&id).copied();
            match random.index(8) {
                0 | 1 => {
                    group.deliver(id, key, now_ms);
                    model.pending.insert(id, (Some(who), 1, now_ms));
                }
                2 => {
                    group.claim(id, key, now_ms - 5, Count::Add);
                    let deliveries = known.map_or(1, |known| known.1) + 1;
                    model.pending.insert(id, (Some(who), deliveries, now_ms - 5));
                }
                3 => {
                    group.give_back(id, Count::TakeBack);
                    let deliveries = known.map_or(0, |known| known.1.saturating_sub(1));
                    model.pending.insert(id, (None, deliveries, 0));
                }
                4 => {
                    assert_eq!(group.acknowledge(id), model.pending.remove(&id).is_some());
                }
                5 if random.index(4) == 0 => {
                    let before = model.pending.len();
                    model.pending.retain(|_, (owner, ..)| *owner != Some(who));
                    let removed = group.remove_consumer(names[who]);
                    assert_eq!(removed, Some(before - model.pending.len()));
                }
                6 => {
                    let ages: Vec<_> = group.by_age().collect();
                    assert!(ages.is_sorted_by_key(|(id, at_ms)| {
                        (model.pending[id].0.is_some(), *at_ms)
                    }));
                    assert_eq!(ages.len(), model.pending.len());
                }
                _ => {}
            }
            check_group(&group, &model, &names);
        }
    }
}

fn check_group(group: &Group, model: &GroupModel, names: &[&[u8]]) {
    let owner = |pending: &Pending| pending.owner.map(|key| group.consumer(key).name.clone());
    let found: Vec<_> = group
        .pending_in(IdRange::ALL)
        .map(|(id, pending)| (id, owner(pending), pending.deliveries, pending.delivered_ms))
        .collect();
    let wanted: Vec<_> = model
        .pending
        .iter()
        .map(|(id, (who, deliveries, at_ms))| {
            (*id, who.map(|who| names[who].into()), *deliveries, *at_ms)
        })
        .collect();
    assert_eq!(found, wanted);
    group.check_bytes();
    for (who, name) in names.iter().enumerate() {
        let Some(key) = group.find_consumer(name) else { continue };
        let own: BTreeSet<_> = group.pending_of(key, IdRange::ALL).map(|(id, _)| id).collect();
        let is_own =
            |(_, (owner, ..)): &(&StreamId, &(Option<usize>, u64, i64))| *owner == Some(who);
        let wanted: BTreeSet<_> = model.pending.iter().filter(is_own).map(|(id, _)| *id).collect();
        assert_eq!(own, wanted);
        assert_eq!(group.consumer(key).pending_len(), wanted.len());
    }
}

#[test]
fn messages_are_remembered_for_their_time() {
    let mut known = Idempotency::default();
    known.messages_max = 2;
    for ms in 1..=3 {
        known.note(b"p", &[ms as u8], StreamId::new(ms * 1000, 0));
        known.check_bytes();
        known.clone().check_bytes();
    }
    assert_eq!(known.find(b"p", &[1]), None, "the oldest made room");
    assert_eq!(known.find(b"p", &[3]), Some(StreamId::new(3000, 0)));
    assert_eq!(known.find(b"q", &[3]), None);
    known.expire(b"p", 3000 + 100_000);
    assert_eq!((known.producers_len(), known.messages_len()), (0, 0));
    known.check_bytes();
    assert_eq!((known.added, known.duplicates), (3, 1));
}

/// What a group takes is kept while it is changed by reference, and others come and go beside it.
#[test]
fn bytes_of_groups_are_counted_whichever_is_open() {
    let mut random = Random::from_seed(31);
    let mut stream = Stream::default();
    let empty = stream.memory_bytes();
    let names = [&b"one"[..], b"another one with a long name", b"x"];
    for step in 0..3000u64 {
        let (name, id) = (names[random.index(3)], StreamId::new(random.index(40) as u64, 0));
        match random.index(8) {
            0 => drop(stream.add_group(name, Group::new(StreamId::MIN, None))),
            1 if random.index(20) == 0 => drop(stream.remove_group(name)),
            2 => drop(stream.drop_references(id)),
            3 => stream.idempotency_mut().note(name, &step.to_le_bytes(), id),
            4 if random.index(20) == 0 => stream = stream.clone(),
            _ => {
                let Some((mut group, _)) = stream.open_group(name) else { continue };
                let reader = step.to_string().into_bytes();
                let known = group.consumers().next().map(|reader| reader.name.clone());
                let key = match known {
                    Some(known) if random.index(10) > 0 => group.find_consumer(&known),
                    _ => Some(group.add_consumer(&reader, 0)),
                };
                group.deliver(id, key.unwrap(), step as i64);
            }
        }
        stream.check_bytes();
    }
    assert!(stream.memory_bytes() > empty + 4000, "{}", stream.memory_bytes());
}

/// A snapshot copied a large stream as a whole while it held the shard.
#[test]
fn a_clone_shares_its_blocks_and_a_change_copies_no_more_than_chunks() {
    const LEN: u64 = 100_000;
    let mut random = Random::from_seed(8);
    let id = |ms: u64| StreamId { ms, seq: 0 };
    let add = |stream: &mut Stream, ms: u64| {
        let text = ms.to_string();
        stream.log.append(id(ms), [&b"name"[..], text.as_bytes()].into_iter(), limits(100));
    };
    let mut stream = Stream::default();
    (1..=LEN).for_each(|ms| add(&mut stream, ms));
    let before = seen(StreamRef::Large(&stream), IdRange::ALL, Order::Forward);
    take_copied_elements();
    let clone = stream.clone();
    assert_eq!(take_copied_elements(), 0);
    for at in 1..5_000 {
        match random.below(2) {
            0 => add(&mut stream, LEN + at),
            _ => _ = stream.log.delete(id(1 + random.below(LEN))),
        }
        assert!(take_copied_elements() <= COPIED_ELEMENTS_MAX);
    }
    stream.check_bytes();
    clone.check_bytes();
    assert!(seen(StreamRef::Large(&clone), IdRange::ALL, Order::Forward) == before);
}
