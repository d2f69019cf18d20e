//! Lua's patterns: one attempt to match a pattern at one place of a text. Searching, replacing and
//! what captures become are the string library's.
//!
//! The matcher goes back through a stack of its own instead of calling itself, so that no pattern
//! can exhaust the stack of the thread: each entry belongs to one item of the pattern, so there
//! are never more entries than the pattern has bytes. Each step is charged, so that a pattern that
//! takes cubic time can be stopped.

mod class;

use class::{class_end, is_in_set, is_single_match};

/// Most captures of one pattern.
pub const CAPTURES_MAX: usize = 32;
/// Steps between two charges.
const STEPS_PER_CHARGE: u32 = 256;

/// Takes the price of work; refuses when the one who pays has no more or is to stop.
pub trait Meter {
    type Stop;
    fn charge(&mut self, units: u64) -> Result<(), Self::Stop>;
}

/// Why an attempt ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<Stop> {
    /// The pattern is wrong, in Lua's words.
    Malformed(&'static str),
    Stopped(Stop),
}

impl<Stop> Fault<Stop> {
    fn malformed<T>(text: &'static str) -> Result<T, Fault<Stop>> {
        Err(Fault::Malformed(text))
    }
}

/// What a pair of parentheses stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    pub start: usize,
    pub extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The closing parenthesis has not been met.
    Open,
    /// `()`: the place itself.
    Position,
    Bytes(usize),
}

/// What is left to try when the way taken leads nowhere.
#[derive(Clone, Copy)]
enum Retreat {
    /// Go on from here.
    Resume(Place),
    /// The item before `pattern` took `extra` bytes more than it must: give one back.
    Shrink { text: usize, extra: usize, pattern: usize },
    /// The item took as little as it could: take one more. `pattern` is where the item begins.
    Grow(Place),
    /// Forget the last capture.
    Forget,
    /// Open this capture again.
    Reopen(usize),
}

/// How far text and pattern have been read.
#[derive(Clone, Copy)]
struct Place {
    text: usize,
    pattern: usize,
}

enum Step {
    Onward(Place),
    Matched(usize),
    Failed,
}

/// A pattern and a text, and what the last attempt captured.
pub struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    retreats: Vec<Retreat>,
    steps: u32,
}

impl<'a> Matcher<'a> {
    /// COMPAT: a pattern ends at its first zero byte, as a string of C does; `%z` stands for one.
    pub fn new(text: &'a [u8], pattern: &'a [u8]) -> Self {
        let len = memchr::memchr(0, pattern).unwrap_or(pattern.len());
        let none = Capture { start: 0, extent: Extent::Open };
        Matcher {
            text,
            pattern: &pattern[..len],
            captures: [none; CAPTURES_MAX],
            level: 0,
            retreats: Vec::new(),
            steps: 0,
        }
    }

    /// The captures of the last attempt, if it matched.
    pub fn captures(&self) -> &[Capture] {
        &self.captures[..self.level]
    }

    /// Tries to match at `start`, and there only; gives where the match ends.
    pub fn match_at<M: Meter>(
        &mut self,
        start: usize,
        meter: &mut M,
    ) -> Result<Option<usize>, Fault<M::Stop>> {
        self.level = 0;
        self.retreats.clear();
        let mut place = Place { text: start, pattern: 0 };
        loop {
            self.pay(1, meter)?;
            match self.step(place, meter)? {
                Step::Onward(next) => place = next,
                Step::Matched(end) => return Ok(Some(end)),
                Step::Failed => match self.retreat() {
                    Some(next) => place = next,
                    None => return Ok(None),
                },
            }
        }
    }

    fn pay<M: Meter>(&mut self, steps: usize, meter: &mut M) -> Result<(), Fault<M::Stop>> {
        self.steps = self.steps.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.steps < STEPS_PER_CHARGE {
            return Ok(());
        }
        let steps = std::mem::take(&mut self.steps);
        meter.charge(u64::from(steps)).map_err(Fault::Stopped)
    }

    /// The last thing left to try.
    fn retreat(&mut self) -> Option<Place> {
        loop {
            match self.retreats.pop()? {
                Retreat::Resume(place) => return Some(place),
                Retreat::Forget => self.level -= 1,
                Retreat::Reopen(level) => self.captures[level].extent = Extent::Open,
                Retreat::Shrink { extra: 0, .. } => {}
                Retreat::Shrink { text, extra, pattern } => {
                    let extra = extra - 1;
                    self.retreats.push(Retreat::Shrink { text, extra, pattern });
                    return Some(Place { text: text + extra, pattern });
                }
                Retreat::Grow(Place { text, pattern }) => {
                    // The item was read before, so it has an end.
                    let Ok(end) = class_end(self.pattern, pattern) else { continue };
                    if self.is_single(text, pattern, end) {
                        let text = text + 1;
                        self.retreats.push(Retreat::Grow(Place { text, pattern }));
                        return Some(Place { text, pattern: end + 1 });
                    }
                }
            }
        }
    }

    fn step<M: Meter>(&mut self, at: Place, meter: &mut M) -> Result<Step, Fault<M::Stop>> {
        match &self.pattern[at.pattern..] {
            [] => Ok(Step::Matched(at.text)),
            [b'(', b')', ..] => self.open(at, Extent::Position),
            [b'(', ..] => self.open(at, Extent::Open),
            [b')', ..] => self.close(at),
            [b'$'] if at.text == self.text.len() => Ok(Step::Matched(at.text)),
            [b'$'] => Ok(Step::Failed),
            [b'%', b'b', ..] => self.balance(at, meter),
            [b'%', b'f', ..] => self.frontier(at),
            [b'%', digit @ b'0'..=b'9', ..] => self.back_reference(at, *digit),
            _ => self.item(at, meter),
        }
    }

    fn open<S>(&mut self, at: Place, extent: Extent) -> Result<Step, Fault<S>> {
        if self.level == CAPTURES_MAX {
            return Fault::malformed("too many captures");
        }
        self.captures[self.level] = Capture { start: at.text, extent };
        self.level += 1;
        self.retreats.push(Retreat::Forget);
        let len = if extent == Extent::Position { 2 } else { 1 };
        Ok(Step::Onward(Place { text: at.text, pattern: at.pattern + len }))
    }

    fn close<S>(&mut self, at: Place) -> Result<Step, Fault<S>> {
        let open = self.captures().iter().rposition(|capture| capture.extent == Extent::Open);
        let Some(level) = open else { return Fault::malformed("invalid pattern capture") };
        let capture = &mut self.captures[level];
        capture.extent = Extent::Bytes(at.text - capture.start);
        self.retreats.push(Retreat::Reopen(level));
        Ok(Step::Onward(Place { text: at.text, pattern: at.pattern + 1 }))
    }

    /// `%bxy`: from an x to the y that closes it.
    fn balance<M: Meter>(&mut self, at: Place, meter: &mut M) -> Result<Step, Fault<M::Stop>> {
        let &[_, _, opening, closing, ..] = &self.pattern[at.pattern..] else {
            return Fault::malformed("unbalanced pattern");
        };
        if self.text.get(at.text) != Some(&opening) {
            return Ok(Step::Failed);
        }
        let mut depth = 1usize;
        for (index, &byte) in self.text.iter().enumerate().skip(at.text + 1) {
            if byte == closing {
                depth -= 1;
                if depth == 0 {
                    self.pay(index - at.text, meter)?;
                    return Ok(Step::Onward(Place { text: index + 1, pattern: at.pattern + 4 }));
                }
            } else if byte == opening {
                depth += 1;
            }
        }
        self.pay(self.text.len() - at.text, meter)?;
        Ok(Step::Failed)
    }

    /// `%f[set]`: the byte before is not in the set, and the byte here is. Both ends of the text
    /// count as a zero byte.
    fn frontier<S>(&self, at: Place) -> Result<Step, Fault<S>> {
        let set = at.pattern + 2;
        if self.pattern.get(set) != Some(&b'[') {
            return Fault::malformed("missing '[' after '%f' in pattern");
        }
        let end = class_end(self.pattern, set).map_err(Fault::Malformed)?;
        let before = at.text.checked_sub(1).map_or(0, |index| self.text[index]);
        let here = self.text.get(at.text).copied().unwrap_or(0);
        let set = &self.pattern[set..end];
        if is_in_set(before, set) || !is_in_set(here, set) {
            return Ok(Step::Failed);
        }
        Ok(Step::Onward(Place { text: at.text, pattern: end }))
    }

    /// `%1`: what the first capture took, once more.
    fn back_reference<S>(&self, at: Place, digit: u8) -> Result<Step, Fault<S>> {
        let index = usize::from(digit - b'0').checked_sub(1);
        let capture = index.and_then(|index| self.captures().get(index));
        let len = match capture.map(|capture| capture.extent) {
            None | Some(Extent::Open) => return Fault::malformed("invalid capture index"),
            Some(Extent::Position) => return Ok(Step::Failed),
            Some(Extent::Bytes(len)) => len,
        };
        let start = capture.map_or(0, |capture| capture.start);
        if !self.text[at.text..].starts_with(&self.text[start..start + len]) {
            return Ok(Step::Failed);
        }
        Ok(Step::Onward(Place { text: at.text + len, pattern: at.pattern + 2 }))
    }

    /// A single character, class or set, and what says how often.
    fn item<M: Meter>(&mut self, at: Place, meter: &mut M) -> Result<Step, Fault<M::Stop>> {
        let end = class_end(self.pattern, at.pattern).map_err(Fault::Malformed)?;
        let next = Place { text: at.text, pattern: end + 1 };
        match self.pattern.get(end) {
            Some(b'?') => {
                if !self.is_single(at.text, at.pattern, end) {
                    return Ok(Step::Onward(next));
                }
                self.retreats.push(Retreat::Resume(next));
                Ok(Step::Onward(Place { text: at.text + 1, ..next }))
            }
            Some(b'*') => self.expand(at.text, at.pattern..end, meter),
            Some(b'+') if self.is_single(at.text, at.pattern, end) => {
                self.expand(at.text + 1, at.pattern..end, meter)
            }
            Some(b'-') => {
                self.retreats.push(Retreat::Grow(at));
                Ok(Step::Onward(next))
            }
            Some(b'+') => Ok(Step::Failed),
            _ if self.is_single(at.text, at.pattern, end) => {
                Ok(Step::Onward(Place { text: at.text + 1, pattern: end }))
            }
            _ => Ok(Step::Failed),
        }
    }

    /// Takes as many bytes as the item can.
    fn expand<M: Meter>(
        &mut self,
        start: usize,
        item: std::ops::Range<usize>,
        meter: &mut M,
    ) -> Result<Step, Fault<M::Stop>> {
        let mut extra = 0;
        while self.is_single(start + extra, item.start, item.end) {
            extra += 1;
        }
        self.pay(extra, meter)?;
        let pattern = item.end + 1;
        self.retreats.push(Retreat::Shrink { text: start, extra, pattern });
        Ok(Step::Onward(Place { text: start + extra, pattern }))
    }

    fn is_single(&self, text: usize, pattern: usize, end: usize) -> bool {
        let item = &self.pattern[pattern..end];
        self.text.get(text).is_some_and(|byte| is_single_match(*byte, item))
    }
}

#[cfg(test)]
mod tests;
