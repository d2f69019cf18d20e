//! The elements to be sorted: their texts in one block, and a small record for each. When only the
//! first few in order are wanted, the others are dropped on the way, so that neither time nor
//! memory is spent on them.

use super::request::Order;
use russet_base::num;
use russet_engine::types::element::Element;
use russet_engine::types::string::Text;
use std::cmp::Ordering;
use std::ops::Range;

/// So many records are gathered, at least, before the superfluous ones are dropped.
const TRIM_LEN_MIN: usize = 1024;

/// Something to order by is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNumber;

/// One element.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// What orders most elements: the number, or the first bytes of the text.
    key: u64,
    text: Span,
    /// The text to order by, if that is another.
    weight: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: u32,
}

impl Span {
    /// Appends to a block. Requests are below 4 GiB, and so is every text.
    fn append(block: &mut Vec<u8>, bytes: &[u8]) -> Self {
        let start = block.len();
        block.extend_from_slice(bytes);
        Span { start, len: bytes.len() as u32 }
    }

    fn of(self, block: &[u8]) -> &[u8] {
        &block[self.start..self.start + self.len as usize]
    }
}

/// How two elements compare.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub order: Order,
    pub is_descending: bool,
    /// The elements are compared by texts of their own choice.
    pub has_weights: bool,
}

pub struct Items {
    rule: Rule,
    block: Vec<u8>,
    weights: Vec<u8>,
    items: Vec<Item>,
    /// How many are wanted.
    keep: usize,
    /// The key of the last one that is wanted, as far as it is known.
    cutoff: Option<u64>,
}

impl Items {
    /// For elements of which the first `keep` in order will be asked for.
    pub fn new(rule: Rule, keep: usize) -> Self {
        let (block, weights, items) = (Vec::new(), Vec::new(), Vec::new());
        Items { rule, block, weights, items, keep, cutoff: None }
    }

    /// Adds an element that is not ordered yet, or never will be.
    pub fn push(&mut self, element: Element<'_>) {
        let text = element.with_bytes(|bytes| Span::append(&mut self.block, bytes));
        self.items.push(Item { key: 0, text, weight: None });
    }

    /// Adds an element that is ordered by itself, unless it can't be among the first.
    pub fn push_in_order(&mut self, element: Element<'_>) -> Result<(), NotNumber> {
        let key = match (self.rule.order, element) {
            (Order::Numeric, Element::Int(value)) => number_key(value as f64),
            (Order::Numeric, Element::Bytes(bytes)) => number_key(number(bytes)?),
            _ => element.with_bytes(text_key),
        };
        let is_beyond = |cutoff| match self.rule.is_descending {
            true => key < cutoff,
            false => key > cutoff,
        };
        if self.keep == 0 || self.cutoff.is_some_and(is_beyond) {
            return Ok(());
        }
        let text = element.with_bytes(|bytes| Span::append(&mut self.block, bytes));
        self.items.push(Item { key, text, weight: None });
        if self.items.len() / 2 >= self.keep && self.items.len() >= TRIM_LEN_MIN {
            self.trim();
        }
        Ok(())
    }

    /// Gives every element what it is ordered by: `weigh` is given its text, and says what it finds
    /// for it to the function that it is given.
    pub fn weigh(
        &mut self,
        mut weigh: impl FnMut(&[u8], &mut dyn FnMut(Option<Text<'_>>)),
    ) -> Result<(), NotNumber> {
        let mut outcome = Ok(());
        let (weights, order) = (&mut self.weights, self.rule.order);
        for item in &mut self.items {
            weigh(item.text.of(&self.block), &mut |found| match (order, found) {
                (Order::Alpha, None) => {}
                (Order::Alpha, Some(text)) => text.with_bytes(|bytes| {
                    item.key = text_key(bytes);
                    item.weight = Some(Span::append(weights, bytes));
                }),
                // What has no number counts as 0.
                (_, None) => item.key = number_key(0.0),
                (_, Some(Text::Int(value))) => item.key = number_key(value as f64),
                (_, Some(text)) => match text.with_bytes(number) {
                    Ok(number) => item.key = number_key(number),
                    Err(refused) => outcome = Err(refused),
                },
            });
        }
        outcome
    }

    /// The texts of the elements in a range of the order, which ends with those to keep.
    pub fn in_order(&mut self, range: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        let end = range.end.min(self.items.len());
        let start = range.start.min(end);
        if self.rule.order != Order::Stored {
            let (rule, block, weights) = (self.rule, &self.block[..], &self.weights[..]);
            let compare = |a: &Item, b: &Item| rule.compare(a, b, (block, weights));
            if end < self.items.len() {
                self.items.select_nth_unstable_by(end, compare);
            }
            let first = &mut self.items[..end];
            if start > 0 && start < first.len() {
                first.select_nth_unstable_by(start, compare);
            }
            first[start..].sort_unstable_by(compare);
        }
        self.items[start..end].iter().map(|item| item.text.of(&self.block))
    }

    /// Drops those that are not among the first, and their texts.
    fn trim(&mut self) {
        let (rule, block) = (self.rule, &self.block[..]);
        let compare = |a: &Item, b: &Item| rule.compare(a, b, (block, &[]));
        let (_, last, _) = self.items.select_nth_unstable_by(self.keep - 1, compare);
        self.cutoff = Some(last.key);
        self.items.truncate(self.keep);
        let mut kept = Vec::with_capacity(self.items.iter().map(|it| it.text.len as usize).sum());
        for item in &mut self.items {
            item.text = Span::append(&mut kept, item.text.of(&self.block));
        }
        self.block = kept;
    }
}

impl Rule {
    fn compare(self, a: &Item, b: &Item, (block, weights): (&[u8], &[u8])) -> Ordering {
        let texts = || a.text.of(block).cmp(b.text.of(block));
        let order = if self.order == Order::Alpha && self.has_weights {
            let text_of = |item: &Item| item.weight.map(|span| span.of(weights));
            // What has none comes first.
            a.weight
                .is_some()
                .cmp(&b.weight.is_some())
                .then(a.key.cmp(&b.key))
                .then_with(|| text_of(a).cmp(&text_of(b)))
        } else {
            a.key.cmp(&b.key).then_with(texts)
        };
        let order = if self.is_descending { order.reverse() } else { order };
        // Those that compare equal stay as they are stored.
        order.then_with(|| a.text.start.cmp(&b.text.start))
    }
}

/// COMPAT: a number ends at a NUL, whatever comes behind it (tests/wire/generic/sort.wire).
fn number(bytes: &[u8]) -> Result<f64, NotNumber> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    num::parse_f64(&bytes[..end]).ok_or(NotNumber)
}

/// Numbers compare as these do.
#[inline]
fn number_key(number: f64) -> u64 {
    // Adding zero makes the two zeros one.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// Texts that differ in their first bytes compare as these do.
/// DIFFERS: texts are compared byte by byte to their ends; peers stop at a NUL, unless they store.
#[inline]
fn text_key(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = text.len().min(first.len());
    first[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::Random;

    fn sorted(rule: Rule, texts: &[String], range: Range<usize>) -> Vec<Vec<u8>> {
        let mut items = Items::new(rule, range.end);
        for text in texts {
            items.push_in_order(Element::parse(text.as_bytes())).unwrap();
        }
        items.in_order(range).map(<[u8]>::to_vec).collect()
    }

    fn expected(rule: Rule, texts: &[String], range: Range<usize>) -> Vec<Vec<u8>> {
        let mut all: Vec<(f64, &String)> = texts
            .iter()
            .map(|text| match rule.order {
                Order::Numeric => (text.parse().unwrap(), text),
                _ => (0.0, text),
            })
            .collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        if rule.is_descending {
            all.reverse();
        }
        all[range].iter().map(|(_, text)| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn agrees_with_a_full_sort() {
        let mut random = Random::from_seed(3);
        for len in [0, 1, 2, 50, 1023, 1024, 5000] {
            let texts: Vec<String> = (0..len)
                .map(|_| match random.next_u64() % 4 {
                    0 => (random.next_u64() % 1000).to_string(),
                    1 => format!("-{}", random.next_u64() % 1000),
                    2 => format!("{}.5", random.next_u64() % 100),
                    _ => format!("{:03}", random.next_u64() % 100),
                })
                .collect();
            for order in [Order::Numeric, Order::Alpha] {
                for is_descending in [false, true] {
                    let rule = Rule { order, is_descending, has_weights: false };
                    for range in [0..len, 0..len.min(10), len / 3..len / 2, len..len, 0..0] {
                        let answer = sorted(rule, &texts, range.clone());
                        assert_eq!(answer, expected(rule, &texts, range.clone()), "{rule:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn weights_order_and_equals_stay() {
        for is_descending in [false, true] {
            let rule = Rule { order: Order::Alpha, is_descending, has_weights: true };
            let mut items = Items::new(rule, 5);
            for text in ["a", "b", "c", "d", "e"] {
                items.push(Element::parse(text.as_bytes()));
            }
            let weigh = |text: &[u8], found_text: &mut dyn FnMut(Option<Text<'_>>)| match text {
                b"a" | b"d" => found_text(Some(Text::Bytes(b"same"))),
                b"b" => found_text(None),
                b"c" => found_text(Some(Text::Int(7))),
                _ => found_text(Some(Text::Bytes(b"same and longer than that"))),
            };
            items.weigh(weigh).unwrap();
            let order: Vec<u8> = items.in_order(0..5).map(|text| text[0]).collect();
            let wanted: &[u8] = if is_descending { b"eadcb" } else { b"bcade" };
            assert_eq!(order, wanted);
        }
    }

    #[test]
    fn numbers_compare_as_their_keys() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.0, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY];
        assert!(numbers.windows(2).all(|pair| number_key(pair[0]) < number_key(pair[1])));
        assert_eq!(number_key(0.0), number_key(-0.0));
    }

    #[test]
    fn every_element_must_be_a_number() {
        let rule = Rule { order: Order::Numeric, is_descending: false, has_weights: false };
        let mut items = Items::new(rule, 0);
        assert_eq!(items.push_in_order(Element::parse(b"1")), Ok(()));
        assert_eq!(items.push_in_order(Element::parse(b"one")), Err(NotNumber));
    }
}
