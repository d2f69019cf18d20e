//! Lua's patterns: one attempt to match at one position of a text. Searching, replacing and
//! what captures become are the string library's.
//!
//! The matcher goes back through a stack of its own instead of calling itself, so that no pattern
//! can exhaust the stack of the thread: each entry belongs to one item of the pattern, so there
//! are never more entries than the pattern has bytes. It stops after a number of steps and can go
//! on later, so that a pattern that takes cubic time can be charged for, and ended.

mod class;

use class::{class_end, is_in_set, is_single_match, run_len, run_up_to};
use std::ops::Range;

/// Most captures of one pattern.
pub const CAPTURES_MAX: usize = 32;
/// Entries of the stack that a matcher may keep from pattern to pattern.
const RETREATS_KEPT_MAX: usize = 1024;

/// Patterns up to this long are read byte by byte: to call for a search takes longer.
const SHORT_PATTERN_BYTES_MAX: usize = 16;

/// How much of a pattern counts.
///
/// COMPAT: a pattern ends at its first zero byte, as a string of C does; `%z` stands for one.
pub fn visible_len(pattern: &[u8]) -> usize {
    let zero = match pattern.len() {
        0..=SHORT_PATTERN_BYTES_MAX => pattern.iter().position(|byte| *byte == 0),
        _ => memchr::memchr(0, pattern),
    };
    zero.unwrap_or(pattern.len())
}

/// How an attempt stands after some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The match ends here.
    Matched(usize),
    Failed,
    /// The steps were used up: go on with [`Matcher::resume`].
    Paused,
}

/// What is wrong with a pattern, in Lua's words.
pub type Malformed = &'static str;

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
    /// `()`: the position itself.
    Position,
    Bytes(usize),
}

/// What is left to try when the way taken leads nowhere.
#[derive(Clone, Copy, Debug)]
enum Retreat {
    /// Go on from here.
    Resume(Position),
    /// The item before `pattern` took `extra` bytes more than it must: give one back.
    Shrink { text: usize, extra: usize, pattern: usize },
    /// The item took as little as it could: take one more. `pattern` is where the item begins.
    Grow(Position),
    /// Forget the last capture.
    Forget,
    /// Open this capture again.
    Reopen(usize),
}

/// How far text and pattern have been read.
#[derive(Clone, Copy, Debug)]
struct Position {
    text: usize,
    pattern: usize,
}

enum Step {
    Onward(Position),
    Matched(usize),
    Failed,
}

/// An attempt, and what the last one captured.
#[derive(Debug)]
pub struct Matcher {
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    retreats: Vec<Retreat>,
    position: Position,
}

/// What an attempt reads. Both must stay the same from its start to its end.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
}

impl Default for Matcher {
    fn default() -> Self {
        let none = Capture { start: 0, extent: Extent::Open };
        Matcher {
            captures: [none; CAPTURES_MAX],
            level: 0,
            retreats: Vec::new(),
            position: Position { text: 0, pattern: 0 },
        }
    }
}

impl Matcher {
    /// The captures of the last attempt, if it matched.
    pub fn captures(&self) -> &[Capture] {
        &self.captures[..self.level]
    }

    /// Whether it is worth keeping for other patterns.
    pub fn is_small(&self) -> bool {
        self.retreats.capacity() <= RETREATS_KEPT_MAX
    }

    /// Begins an attempt to match at `start` of a text, and there only.
    pub fn begin(&mut self, start: usize) {
        self.level = 0;
        self.retreats.clear();
        self.position = Position { text: start, pattern: 0 };
    }

    /// Goes on with the attempt until it is decided or the steps are used up. A step over many
    /// bytes takes as many steps as bytes. Of the pattern, `visible_len` bytes are given.
    pub fn resume(
        &mut self,
        text: &[u8],
        pattern: &[u8],
        steps: &mut usize,
    ) -> Result<Progress, Malformed> {
        let source = Source { text, pattern };
        loop {
            if *steps == 0 {
                return Ok(Progress::Paused);
            }
            *steps -= 1;
            match self.step(source, steps)? {
                Step::Onward(next) => self.position = next,
                Step::Matched(end) => return Ok(Progress::Matched(end)),
                Step::Failed => match self.retreat(source, steps) {
                    Some(next) => self.position = next,
                    None => return Ok(Progress::Failed),
                },
            }
        }
    }

    /// The last thing left to try.
    fn retreat(&mut self, source: Source, steps: &mut usize) -> Option<Position> {
        loop {
            match self.retreats.pop()? {
                Retreat::Resume(position) => return Some(position),
                Retreat::Forget => self.level -= 1,
                Retreat::Reopen(level) => self.captures[level].extent = Extent::Open,
                Retreat::Shrink { extra: 0, .. } => {}
                Retreat::Shrink { text, extra, pattern } => {
                    let extra = extra - 1;
                    self.retreats.push(Retreat::Shrink { text, extra, pattern });
                    return Some(Position { text: text + extra, pattern });
                }
                Retreat::Grow(Position { text, pattern }) => {
                    // The item was read before, so it has an end.
                    let Ok(end) = class_end(source.pattern, pattern) else { continue };
                    if source.is_single(text, pattern..end)
                        && let Some(next) = self.grow(source, text + 1, pattern..end, steps)
                    {
                        return Some(next);
                    }
                }
            }
        }
    }

    /// Goes on behind an item that takes as little as it can and has come to `text`. If a byte that
    /// stands for itself comes next, the item takes all up to that byte at once.
    fn grow(
        &mut self,
        source: Source,
        text: usize,
        item: Range<usize>,
        steps: &mut usize,
    ) -> Option<Position> {
        let mut at = text;
        if let Some(wanted) = source.own_byte(item.end + 1) {
            let rest = &source.text[text..];
            let (end, is_wanted) = run_up_to(wanted, rest, &source.pattern[item.clone()]);
            *steps = steps.saturating_sub(end);
            if !is_wanted {
                return None;
            }
            at += end;
        }
        self.retreats.push(Retreat::Grow(Position { text: at, pattern: item.start }));
        Some(Position { text: at, pattern: item.end + 1 })
    }

    fn step(&mut self, source: Source, steps: &mut usize) -> Result<Step, Malformed> {
        let at = self.position;
        match &source.pattern[at.pattern..] {
            [] => Ok(Step::Matched(at.text)),
            [b'(', b')', ..] => self.open(Extent::Position),
            [b'(', ..] => self.open(Extent::Open),
            [b')', ..] => self.close(),
            [b'$'] if at.text == source.text.len() => Ok(Step::Matched(at.text)),
            [b'$'] => Ok(Step::Failed),
            [b'%', b'b', ..] => source.balance(at, steps),
            [b'%', b'f', ..] => source.frontier(at),
            [b'%', digit @ b'0'..=b'9', ..] => self.back_reference(source, *digit),
            _ => self.item(source, steps),
        }
    }

    fn open(&mut self, extent: Extent) -> Result<Step, Malformed> {
        let Position { text, pattern } = self.position;
        if self.level == CAPTURES_MAX {
            return Err("too many captures");
        }
        self.captures[self.level] = Capture { start: text, extent };
        self.level += 1;
        self.retreats.push(Retreat::Forget);
        let len = if extent == Extent::Position { 2 } else { 1 };
        Ok(Step::Onward(Position { text, pattern: pattern + len }))
    }

    fn close(&mut self) -> Result<Step, Malformed> {
        let Position { text, pattern } = self.position;
        let open = self.captures().iter().rposition(|capture| capture.extent == Extent::Open);
        let level = open.ok_or("invalid pattern capture")?;
        let capture = &mut self.captures[level];
        capture.extent = Extent::Bytes(text - capture.start);
        self.retreats.push(Retreat::Reopen(level));
        Ok(Step::Onward(Position { text, pattern: pattern + 1 }))
    }

    /// `%1`: what the first capture took, once more.
    fn back_reference(&self, source: Source, digit: u8) -> Result<Step, Malformed> {
        let Position { text, pattern } = self.position;
        let index = usize::from(digit - b'0').checked_sub(1);
        let capture = index.and_then(|index| self.captures().get(index));
        let capture = capture.ok_or("invalid capture index")?;
        let taken = match capture.extent {
            Extent::Open => return Err("invalid capture index"),
            Extent::Position => return Ok(Step::Failed),
            Extent::Bytes(len) => &source.text[capture.start..capture.start + len],
        };
        if !source.text[text..].starts_with(taken) {
            return Ok(Step::Failed);
        }
        Ok(Step::Onward(Position { text: text + taken.len(), pattern: pattern + 2 }))
    }

    /// A single character, class or set, and what says how often.
    fn item(&mut self, source: Source, steps: &mut usize) -> Result<Step, Malformed> {
        let at = self.position;
        let end = class_end(source.pattern, at.pattern)?;
        let is_single = source.is_single(at.text, at.pattern..end);
        let next = Position { text: at.text, pattern: end + 1 };
        match source.pattern.get(end) {
            Some(b'?') => {
                if !is_single {
                    return Ok(Step::Onward(next));
                }
                self.retreats.push(Retreat::Resume(next));
                Ok(Step::Onward(Position { text: at.text + 1, ..next }))
            }
            Some(b'*') => Ok(self.expand(source, at.text, at.pattern..end, steps)),
            Some(b'+') if is_single => Ok(self.expand(source, at.text + 1, at.pattern..end, steps)),
            Some(b'-') => Ok(match self.grow(source, at.text, at.pattern..end, steps) {
                Some(next) => Step::Onward(next),
                None => Step::Failed,
            }),
            Some(b'+') => Ok(Step::Failed),
            _ if is_single => Ok(Step::Onward(Position { text: at.text + 1, pattern: end })),
            _ => Ok(Step::Failed),
        }
    }

    /// Takes as many bytes as the item can.
    fn expand(
        &mut self,
        source: Source,
        start: usize,
        item: Range<usize>,
        steps: &mut usize,
    ) -> Step {
        let extra = run_len(&source.text[start..], &source.pattern[item.clone()]);
        *steps = steps.saturating_sub(extra);
        let pattern = item.end + 1;
        self.retreats.push(Retreat::Shrink { text: start, extra, pattern });
        Step::Onward(Position { text: start + extra, pattern })
    }
}

impl Source<'_> {
    /// The byte that the pattern wants at this place and that no repetition follows.
    fn own_byte(self, pattern: usize) -> Option<u8> {
        let (&byte, after) = self.pattern.get(pattern..)?.split_first()?;
        let is_own = !matches!(byte, b'.' | b'%' | b'[' | b'(' | b')' | b'$');
        let is_once = !matches!(after.first(), Some(b'*' | b'+' | b'?' | b'-'));
        (is_own && is_once).then_some(byte)
    }

    fn is_single(self, text: usize, item: Range<usize>) -> bool {
        self.text.get(text).is_some_and(|byte| is_single_match(*byte, &self.pattern[item]))
    }

    /// `%bxy`: from an x to the y that closes it.
    fn balance(self, at: Position, steps: &mut usize) -> Result<Step, Malformed> {
        let &[_, _, opening, closing, ..] = &self.pattern[at.pattern..] else {
            return Err("unbalanced pattern");
        };
        if self.text.get(at.text) != Some(&opening) {
            return Ok(Step::Failed);
        }
        let mut depth = 1usize;
        for (index, &byte) in self.text.iter().enumerate().skip(at.text + 1) {
            if byte == closing {
                depth -= 1;
                if depth == 0 {
                    *steps = steps.saturating_sub(index - at.text);
                    return Ok(Step::Onward(Position { text: index + 1, pattern: at.pattern + 4 }));
                }
            } else if byte == opening {
                depth += 1;
            }
        }
        *steps = steps.saturating_sub(self.text.len() - at.text);
        Ok(Step::Failed)
    }

    /// `%f[set]`: the byte before is not in the set, and the byte here is. Both ends of the text
    /// count as a zero byte.
    fn frontier(self, at: Position) -> Result<Step, Malformed> {
        let set = at.pattern + 2;
        if self.pattern.get(set) != Some(&b'[') {
            return Err("missing '[' after '%f' in pattern");
        }
        let end = class_end(self.pattern, set)?;
        let before = at.text.checked_sub(1).map_or(0, |index| self.text[index]);
        let here = self.text.get(at.text).copied().unwrap_or(0);
        let set = &self.pattern[set..end];
        if is_in_set(before, set) || !is_in_set(here, set) {
            return Ok(Step::Failed);
        }
        Ok(Step::Onward(Position { text: at.text, pattern: end }))
    }
}

#[cfg(test)]
mod tests;
