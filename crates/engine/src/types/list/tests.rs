//! The list against a `VecDeque`, over both forms and every border between them, and the laws of
//! the pieces that a random walk would rarely reach.

use crate::store::raw::table::Measured;
use std::collections::VecDeque;

use super::*;
use crate::store::raw::table::NewValue;
use crate::types::cow_vec::{COPIED_ELEMENTS_MAX, take_copied_elements};
use crate::value::Object;

/// A small generator: the tests need variety that repeats, not quality.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn text(&mut self, huge: bool) -> Vec<u8> {
        match self.roll(12) {
            0 => Vec::new(),
            1..=3 => {
                let shift = self.roll(64);
                let value = (self.0 as i64) >> shift;
                value.to_string().into_bytes()
            }
            4..=6 => vec![b'a' + self.roll(3) as u8],
            7..=9 => {
                let len = 1 + self.roll(40);
                vec![b'k'; len]
            }
            10 => {
                let len = self.roll(300);
                vec![b'm'; len]
            }
            _ if huge => {
                let len = [2000, 4095, 4096, 5000, 17_000][self.roll(5)];
                vec![b'H'; len]
            }
            _ => b"-0".to_vec(),
        }
    }
}

/// A list with its owner's duties: it changes form when it is asked to.
struct Held {
    /// One that is not large.
    bytes: Vec<u8>,
    large: Option<LargeList>,
    limits: ListLimits,
    /// How often it became packed, medium and large.
    forms_seen: [usize; 3],
}

impl Held {
    fn new(limits: ListLimits) -> Self {
        Held { bytes: Vec::new(), large: None, limits, forms_seen: [0; 3] }
    }

    fn list(&mut self) -> ListMut<'_, Vec<u8>> {
        match &mut self.large {
            Some(large) => ListMut::Large(large),
            None => ListMut::InEntry(&mut self.bytes),
        }
    }

    fn prepare(&mut self, growth: Extent) {
        let limits = self.limits;
        let Some(form) = self.list().outgrows(growth, limits) else { return };
        self.forms_seen[form as usize] += 1;
        if form == Form::Large {
            self.large = Some(LargeList::of(ListRef::of_bytes(&self.bytes)));
            self.bytes.clear();
        } else {
            self.bytes = medium::of(packed::elements(&self.bytes));
        }
        assert_eq!(self.list().outgrows(growth, limits), None);
    }

    fn shrink_form(&mut self) {
        let limits = self.limits;
        let Some(form) = self.list().shrink_form(limits, ShrinkCause::Shrunk) else { return };
        self.forms_seen[form as usize] += 1;
        self.bytes = match self.large.take() {
            Some(large) => large.to_bytes(form),
            None => packed::build(Entries::new(medium::run(&self.bytes).bytes)),
        };
        assert_eq!(self.list().shrink_form(limits, ShrinkCause::Shrunk), None);
    }

    fn all(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        self.list().as_ref().for_each_in(0..usize::MAX, |element| all.push(element.to_vec()));
        all
    }
}

type Model = VecDeque<Vec<u8>>;

fn model_remove(model: &mut Model, count: i64, wanted: &[u8]) -> usize {
    let quota = Quota::of(count);
    let mut order: Vec<usize> = (0..model.len()).filter(|at| model[*at] == wanted).collect();
    if quota.from_back {
        order.reverse();
    }
    order.truncate(quota.limit);
    order.sort_unstable();
    order.iter().rev().for_each(|at| drop(model.remove(*at)));
    order.len()
}

fn step_ends(held: &mut Held, model: &mut Model, dice: &mut Dice, growing: bool) {
    let end = if dice.roll(2) == 0 { End::Front } else { End::Back };
    if dice.roll(10) < if growing { 8 } else { 2 } {
        let texts: Vec<Vec<u8>> = (0..dice.roll(6)).map(|_| dice.text(growing)).collect();
        held.prepare(Extent::of(texts.iter().map(Vec::as_slice)));
        held.list().push(end, texts.iter().map(Vec::as_slice));
        for text in texts {
            match end {
                End::Front => model.push_front(text),
                End::Back => model.push_back(text),
            }
        }
        return;
    }
    let count = dice.roll(12);
    let mut popped = Vec::new();
    let mut list = held.list();
    list.pop(end, count, |element| popped.push(element.to_vec()));
    // The same view of a list that may have been emptied.
    assert_eq!((list.len(), list.is_empty()), (list.as_ref().len(), list.as_ref().is_empty()));
    if list.is_empty() {
        list.pop(end, 1, |_| panic!("there is nothing left"));
        list.trim(0..1);
        assert!(!list.set(0, Element::Int(1)) && !list.rotate(End::Front, End::Back));
        assert_eq!(list.remove(Quota::of(0), Element::Int(1)), 0);
        assert_eq!(list.insert(InsertAt::Before, Element::Int(1), Element::Int(2)), None);
        list.push(end, std::iter::once(&b"again"[..]));
        list.pop(end, 1, |element| assert_eq!(element, Element::Bytes(b"again")));
    }
    let expected: Vec<_> = (0..count)
        .map_while(|_| if end == End::Front { model.pop_front() } else { model.pop_back() })
        .collect();
    assert_eq!(popped, expected);
    held.shrink_form();
}

fn step_middle(held: &mut Held, model: &mut Model, dice: &mut Dice, huge: bool) {
    let text = dice.text(huge);
    let element = Element::parse(&text);
    match dice.roll(4) {
        0 if !model.is_empty() => {
            let index = dice.roll(model.len());
            held.prepare(Extent { bytes: text.len(), count: 1 });
            assert!(held.list().set(index, element));
            assert!(!held.list().set(model.len(), element));
            model[index] = text;
            held.shrink_form();
        }
        1 if !model.is_empty() => {
            let pivot = model[dice.roll(model.len())].clone();
            let side = if dice.roll(2) == 0 { InsertAt::Before } else { InsertAt::After };
            held.prepare(Extent { bytes: text.len(), count: 1 });
            let len = held.list().insert(side, Element::parse(&pivot), element);
            let at = model.iter().position(|other| *other == pivot).unwrap();
            model.insert(at + usize::from(side == InsertAt::After), text.clone());
            assert_eq!(len, Some(model.len()));
            assert_eq!(held.list().insert(side, Element::Bytes(b"absent"), element), None);
        }
        2 => {
            let count = dice.roll(9) as i64 - 4;
            let removed = held.list().remove(Quota::of(count), element);
            assert_eq!(removed, model_remove(model, count, &text));
            held.shrink_form();
        }
        _ => {
            let from = if dice.roll(2) == 0 { End::Front } else { End::Back };
            let to = if dice.roll(2) == 0 { End::Front } else { End::Back };
            let moved = match from {
                End::Front => model.pop_front(),
                End::Back => model.pop_back(),
            };
            assert_eq!(held.list().rotate(from, to), moved.is_some());
            moved.into_iter().for_each(|moved| match to {
                End::Front => model.push_front(moved),
                End::Back => model.push_back(moved),
            });
        }
    }
}

fn check_reads(held: &mut Held, model: &Model, dice: &mut Dice) {
    let len = model.len();
    let list = held.list();
    let list = list.as_ref();
    assert_eq!(list.len(), len);
    let index = dice.roll(len + 2);
    assert_eq!(list.index(index).map(Element::to_vec), model.get(index).cloned());
    let bounds = Bounds {
        start: dice.roll(2 * len + 3) as i64 - len as i64 - 1,
        stop: dice.roll(2 * len + 3) as i64 - len as i64 - 1,
    };
    let range = bounds.within(len);
    let expected: Vec<_> = model.range(range.clone()).cloned().collect();
    let mut seen = Vec::new();
    list.for_each_in(range.clone(), |element| seen.push(element.to_vec()));
    assert_eq!(seen, expected);
    seen.clear();
    list.for_each_in_rev(range, |element| seen.push(element.to_vec()));
    seen.reverse();
    assert_eq!(seen, expected);
}

fn check_positions(held: &mut Held, model: &Model, dice: &mut Dice) {
    let wanted = dice.text(false);
    let rank = [1, 2, -1, -2, 5, -5, i64::MIN, i64::MAX][dice.roll(8)];
    let count = [None, Some(1), Some(3)][dice.roll(3)];
    let compared_max = [None, Some(1), Some(20)][dice.roll(3)];
    let mut order: Vec<usize> = (0..model.len()).collect();
    if rank < 0 {
        order.reverse();
    }
    order.truncate(compared_max.unwrap_or(usize::MAX));
    let skip = usize::try_from(rank.unsigned_abs() - 1).unwrap();
    let expected: Vec<usize> = order
        .into_iter()
        .filter(|at| model[*at] == wanted)
        .skip(skip)
        .take(count.unwrap_or(usize::MAX))
        .collect();
    let mut found = Vec::new();
    let query = PositionQuery { rank, count, compared_max };
    held.list().as_ref().positions(Element::parse(&wanted), query, |at| found.push(at));
    assert_eq!(found, expected);
}

fn check_inside(held: &mut Held) {
    if let Some(large) = &held.large {
        let mut sum = Extent::default();
        for run in large.runs() {
            assert!(is_sound(run.bytes, run.count));
            assert!(run.count > 0 && (run.count == 1 || run.bytes.len() <= chunk::CHUNK_BYTES));
            sum = sum.plus(Extent { bytes: run.bytes.len(), count: run.count });
        }
        assert_eq!(sum, large.size());
        large.check_bytes();
    } else if medium::is_medium(&held.bytes) {
        let run = medium::run(&held.bytes);
        assert!(is_sound(run.bytes, run.count) && run.count > 0);
        assert!(run.bytes.len() <= chunk::CHUNK_BYTES);
        let spare = held.bytes.len() - run.bytes.len() - medium::HEADER_BYTES;
        assert!(spare <= run.bytes.len() / 4 + 128, "{spare} beside {}", run.bytes.len());
    } else {
        let count = packed::len(&held.bytes);
        assert_eq!(packed::elements(&held.bytes).count(), count);
        assert_eq!(count == 0, held.bytes.is_empty());
        assert!(held.bytes.len() <= PACKED_BYTES_MAX);
    }
}

fn walk(seed: u64, limits: ListLimits, steps: usize) -> [usize; 3] {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut held = Held::new(limits);
    let mut model = Model::new();
    for step in 0..steps {
        let growing = step % 600 < 350;
        match dice.roll(10) {
            0..=5 => step_ends(&mut held, &mut model, &mut dice, growing),
            6..=8 => step_middle(&mut held, &mut model, &mut dice, growing),
            _ if dice.roll(20) == 0 => {
                let start = dice.roll(model.len() / 3 + 1) as i64;
                let stop = -1 - dice.roll(model.len() / 3 + 1) as i64;
                let range = Bounds { start, stop }.within(model.len());
                held.list().trim(range.clone());
                model = model.range(range).cloned().collect();
                held.shrink_form();
            }
            _ => check_positions(&mut held, &model, &mut dice),
        }
        check_reads(&mut held, &model, &mut dice);
        check_inside(&mut held);
        if step % 50 == 0 {
            assert_eq!(held.all(), Vec::from_iter(model.clone()), "seed {seed} step {step}");
        }
    }
    held.forms_seen
}

#[test]
fn behaves_as_a_deque_in_every_form() {
    let mut forms = [0; 3];
    for seed in 1..=12 {
        let listpack_size = [-2, -1, 5, 100, -5, 0][seed as usize % 6];
        let seen = walk(seed, ListLimits { listpack_size }, 3000);
        forms.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
    }
    let [packed, medium, large] = forms;
    assert!(packed > 20 && medium > 40 && large > 20, "it must cross all borders: {forms:?}");
}

/// Bytes that a value takes besides its key.
fn value_bytes(value: NewValue<'_, Object>) -> usize {
    match value {
        NewValue::Packed(_, bytes) => bytes.len(),
        NewValue::Object(object) => object.memory_bytes(),
        _ => unreachable!("a list is either"),
    }
}

/// Above about 1 KB every list took a whole chunk of 7 KB, up to 26 times as much as Valkey's: 100
/// integers 7,657 bytes against 378. What a large one has besides its chunks is counted, too: with
/// 32 bytes more 1,000 elements took more than Valkey's.
#[test]
fn lists_of_medium_size_take_little_more_than_their_elements() {
    let limits = ListLimits::default();
    for (text, listpack_bytes) in [(&b"0123456789"[..], 12), (b"ten bytes!", 12), (b"123", 3)] {
        for count in [10, 30, 100, 300, 1000] {
            let texts = std::iter::repeat_n(text, count);
            let growth = Extent::of(texts.clone());
            let most = count * listpack_bytes + if count < 1000 { 8 } else { 440 };
            for end in [End::Front, End::Back] {
                let elements = texts.clone().map(Element::parse);
                let bytes = stored::build(end, elements, (growth, limits), value_bytes);
                assert!(bytes <= most, "{count} at once: {bytes} of {most}");
                let mut held = Held::new(limits);
                for text in texts.clone() {
                    held.prepare(Extent { bytes: text.len(), count: 1 });
                    held.list().push(end, std::iter::once(text));
                }
                let large = held.large.as_ref().map_or(0, LargeList::memory_bytes);
                let bytes = held.bytes.len() + large;
                let most = most + most / 8;
                assert!(bytes <= most, "{count} one by one: {bytes} of {most}");
                let mut list = held.list();
                list.pop(end, count, |_| {});
                assert!(list.is_empty());
            }
        }
    }
}

#[test]
fn a_long_list_behaves_at_its_ends_and_in_its_middle() {
    let mut list = LargeList::new();
    let mut model = Model::new();
    for index in 0..40_000u64 {
        let text = format!("element-{:08}", index).into_bytes();
        let end = if index % 3 == 0 { End::Front } else { End::Back };
        list.push(end, [Element::parse(&text)].into_iter());
        match end {
            End::Front => model.push_front(text),
            End::Back => model.push_back(text),
        }
    }
    assert!(list.memory_bytes() <= 19 * list.len(), "{} bytes", list.memory_bytes());
    for index in (0..40_000).step_by(97) {
        assert_eq!(list.index(index).map(Element::to_vec), model.get(index).cloned());
    }
    let mut dice = Dice(77);
    for round in 0..3000 {
        let index = dice.roll(model.len());
        let pivot = model[index].clone();
        let text = format!("inserted-{round}").into_bytes();
        list.insert(InsertAt::After, Element::parse(&pivot), Element::parse(&text));
        model.insert(index + 1, text);
        let gone = model.remove(dice.roll(model.len())).unwrap();
        assert_eq!(list.remove(Quota::of(1), Element::parse(&gone)), 1);
    }
    let mut all = Vec::new();
    list.for_each_in(0..usize::MAX, |element| all.push(element.to_vec()));
    assert_eq!(all, Vec::from_iter(model));
    list.trim(10_000..10_100);
    assert_eq!(list.len(), 100);
    assert_eq!(list.index(0).map(Element::to_vec), Some(all[10_000].clone()));
    assert!(list.memory_bytes() < 32_000, "{} bytes", list.memory_bytes());
}

#[test]
fn a_queue_reuses_its_memory() {
    let mut list = LargeList::new();
    list.push(End::Back, (0..300).map(|_| Element::Bytes(b"sixteen bytes ok")));
    for _ in 0..10_000 {
        list.push(End::Back, [Element::Bytes(b"sixteen bytes ok")].into_iter());
        list.pop(End::Front, 1, |_| {});
    }
    assert_eq!(list.len(), 300);
    assert!(list.memory_bytes() < 20_000, "{} bytes", list.memory_bytes());
}

#[test]
fn the_encoding_has_the_names_and_borders_of_redis() {
    let mut held = Held::new(ListLimits { listpack_size: 3 });
    let push = |held: &mut Held, text: &[u8]| {
        held.prepare(Extent { bytes: text.len(), count: 1 });
        held.list().push(End::Back, [text].into_iter());
    };
    b"abc".chunks(1).for_each(|text| push(&mut held, text));
    assert_eq!(held.list().as_ref().encoding(), "listpack");
    push(&mut held, b"d");
    assert_eq!(held.list().as_ref().encoding(), "quicklist");
    for name in ["quicklist", "quicklist", "listpack"] {
        held.list().pop(End::Back, 1, |_| {});
        held.shrink_form();
        assert_eq!(held.list().as_ref().encoding(), name);
    }
    let mut held = Held::new(ListLimits::default());
    push(&mut held, &[b'x'; 8185]);
    assert_eq!(held.list().as_ref().encoding(), "listpack");
    let mut held = Held::new(ListLimits::default());
    push(&mut held, &[b'x'; 8186]);
    assert_eq!(held.list().as_ref().encoding(), "quicklist");
}

#[test]
fn indexes_and_bounds_follow_the_commands() {
    assert_eq!(Bounds { start: 0, stop: -1 }.within(0), 0..0);
    assert_eq!(Bounds { start: i64::MIN, stop: i64::MAX }.within(3), 0..3);
    assert_eq!(Bounds { start: -2, stop: 9 }.within(3), 1..3);
    assert_eq!(Bounds { start: 2, stop: 1 }.within(3), 0..0);
    assert_eq!(Bounds { start: 3, stop: 5 }.within(3), 0..0);
    assert_eq!(resolve_index(-3, 3), Some(0));
    assert_eq!(resolve_index(-4, 3), None);
    assert_eq!(resolve_index(3, 3), None);
    assert_eq!(resolve_index(i64::MIN, 3), None);
}

#[test]
fn broken_runs_are_refused() {
    let mut list = LargeList::new();
    let texts = [&b"12"[..], b"text", b"-70000", &[b'l'; 200]];
    list.push(End::Back, texts.into_iter().map(Element::parse));
    let run = list.runs().next().unwrap();
    assert!(is_sound(run.bytes, 4) && !is_sound(run.bytes, 3));
    for cut in 0..run.bytes.len() {
        assert!(!is_sound(&run.bytes[..cut], 4));
    }
    for at in 0..run.bytes.len() {
        for value in 0..=255 {
            let mut broken = run.bytes.to_vec();
            broken[at] = value;
            if is_sound(&broken, 4) {
                assert_eq!(Entries::new(&broken).count(), 4);
                assert_eq!(Entries::new(&broken).rev().count(), 4);
            }
        }
    }
}

/// A snapshot copied a large list as a whole while it held the shard.
#[test]
fn a_clone_copies_nothing_and_a_change_no_more_than_chunks() {
    const LEN: usize = 100_000;
    let mut dice = Dice(8);
    let name = |at: usize| format!("element:{at}").into_bytes();
    let mut list = LargeList::new();
    for at in 0..LEN {
        list.push(End::Back, std::iter::once(Element::Bytes(&name(at))));
    }
    take_copied_elements();
    let clone = list.clone();
    assert_eq!(take_copied_elements(), 0);
    for at in 0..5_000 {
        let text = name(LEN + at);
        let element = Element::Bytes(&text);
        let end = if dice.roll(2) == 0 { End::Front } else { End::Back };
        match dice.roll(4) {
            0 => list.push(end, std::iter::once(element)),
            1 => list.pop(end, 1 + dice.roll(100), |_| {}),
            2 => _ = list.set(dice.roll(list.len()), element),
            _ => {
                let pivot = name(LEN / 4 + dice.roll(LEN / 2));
                list.insert(InsertAt::After, Element::Bytes(&pivot), element);
            }
        }
        assert!(take_copied_elements() <= COPIED_ELEMENTS_MAX);
    }
    list.check_bytes();
    clone.check_bytes();
    let mut next = 0;
    clone.for_each_in(0..LEN, |element| {
        assert_eq!(element.to_vec(), name(next));
        next += 1;
    });
    assert_eq!((next, clone.len()), (LEN, LEN));
}
