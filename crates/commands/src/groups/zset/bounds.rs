//! Reading the ends of ranges.

use super::{decimal, integer};
use crate::error::Refusal;
use russet_engine::types::list::Bounds;
use russet_engine::types::zset::{Direction, LexBound, LexRange, ScoreBound, ScoreRange, ZsetRef};
use std::ops::Range;

/// A range of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Bounded<'a> {
    Ranks(Bounds),
    Scores(ScoreRange),
    Members(LexRange<'a>),
}

/// The ends of a range as given: the lower end first.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    pub min: &'a [u8],
    pub max: &'a [u8],
}

impl<'a> Ends<'a> {
    pub fn ranks(self) -> Result<Bounded<'a>, Refusal> {
        let (start, stop) = (integer(self.min)?, integer(self.max)?);
        Ok(Bounded::Ranks(Bounds { start, stop }))
    }

    pub fn score_range(self) -> Result<ScoreRange, Refusal> {
        let bound =
            |arg| score_bound(arg).ok_or_else(|| Refusal::text("ERR min or max is not a float"));
        Ok(ScoreRange { min: bound(self.min)?, max: bound(self.max)? })
    }

    pub fn lex_range(self) -> Result<LexRange<'a>, Refusal> {
        let bound = |arg| {
            let refusal = || Refusal::text("ERR min or max not valid string range item");
            lex_bound(arg).ok_or_else(refusal)
        };
        Ok(LexRange { min: bound(self.min)?, max: bound(self.max)? })
    }
}

impl Bounded<'_> {
    /// The ranks meant, counted from the lowest score. Ranks themselves are counted from the end
    /// that the direction begins with.
    pub fn within(&self, zset: ZsetRef<'_>, direction: Direction) -> Range<usize> {
        match self {
            Bounded::Scores(range) => zset.by_score(range),
            Bounded::Members(range) => zset.by_lex(range, direction),
            Bounded::Ranks(bounds) => {
                let len = zset.len();
                let ranks = bounds.within(len);
                match direction {
                    Direction::Forward => ranks,
                    Direction::Reverse => len - ranks.end..len - ranks.start,
                }
            }
        }
    }
}

fn score_bound(arg: &[u8]) -> Option<ScoreBound> {
    let (is_open, arg) = match arg {
        [b'(', rest @ ..] => (true, rest),
        _ => (false, arg),
    };
    Some(ScoreBound { value: loose_float(arg)?, is_open })
}

/// COMPAT: it ends at a zero byte, nothing at all is 0, and what is too large is infinite;
/// tests/wire/zset/bounds.wire.
fn loose_float(arg: &[u8]) -> Option<f64> {
    if let Some(value) = decimal(arg) {
        return Some(value);
    }
    let arg = arg.split(|byte| *byte == 0).next().unwrap_or(&[]);
    if arg.is_empty() {
        return Some(0.0);
    }
    if let Some(value) = decimal(arg) {
        return Some(value);
    }
    let text = std::str::from_utf8(arg).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    // What is left are numbers beyond a double at either end.
    text.parse().ok().filter(|_| is_decimal)
}

fn lex_bound(arg: &[u8]) -> Option<LexBound<'_>> {
    match arg {
        [b'-'] | [b'-', 0, ..] => Some(LexBound::Least),
        [b'+'] | [b'+', 0, ..] => Some(LexBound::Most),
        [b'[', text @ ..] => Some(LexBound::Closed(text)),
        [b'(', text @ ..] => Some(LexBound::Open(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::loose_float;

    #[test]
    fn floats_of_bounds() {
        for (text, value) in [
            ("5", 5.0),
            ("-inf", f64::NEG_INFINITY),
            ("", 0.0),
            ("1e999", f64::INFINITY),
            ("-1e999", f64::NEG_INFINITY),
            ("1e-999", 0.0),
            ("3\0junk", 3.0),
        ] {
            assert_eq!(loose_float(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in ["a", "5 ", " ", " 5", "nan", "1e", "--1", "(5", "0x10"] {
            assert_eq!(loose_float(text.as_bytes()), None, "{text:?}");
        }
    }
}
