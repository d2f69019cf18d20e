//! The patterns of KEYS, SCAN MATCH, PSUBSCRIBE and CONFIG GET: `*`, `?`, `[a-z]`, `[^x]` and
//! `\` to take the next byte literally. Every oddity of Redis's matcher is kept; its cost is not:
//! the work is bounded by pattern length times text length.

use crate::limits::GLOB_STARS_MAX;

/// A pattern, ready to match.
#[derive(Clone, Copy, Debug)]
pub struct Glob<'p> {
    pattern: &'p [u8],
    ignores_case: bool,
}

impl<'p> Glob<'p> {
    pub const fn new(pattern: &'p [u8]) -> Self {
        Glob { pattern, ignores_case: false }
    }

    pub const fn ignoring_case(pattern: &'p [u8]) -> Self {
        Glob { pattern, ignores_case: true }
    }

    /// The pattern is a lone `*`, which key commands answer without matching.
    pub fn is_star(&self) -> bool {
        self.pattern == b"*"
    }

    /// The pattern has no special byte, so it matches exactly the text equal to it.
    pub fn is_literal(&self) -> bool {
        is_plain(self.pattern)
    }

    /// COMPAT: an empty text is matched by the empty pattern only, not even by `*` (test
    /// `an_empty_text_is_matched_by_nothing_but_an_empty_pattern`).
    pub fn matches(&self, text: &[u8]) -> bool {
        if text.is_empty() {
            return self.pattern.is_empty();
        }
        let Some((mut rest, mut text)) = self.after_plain_start(text) else { return false };
        // Where to resume after a mismatch: what follows the last `*`, and the text that it has
        // not swallowed yet. Going back to an earlier `*` could never help.
        let mut retry: Option<(&[u8], &[u8])> = None;
        let mut stars = 0;
        while let Some(&byte) = text.first() {
            if rest.first() == Some(&b'*') {
                rest = without_stars(rest);
                stars += 1;
                if rest.is_empty() {
                    return true;
                }
                if stars > GLOB_STARS_MAX {
                    return false;
                }
                if !self.ignores_case && is_plain(rest) {
                    return text.ends_with(rest);
                }
                text = self.skip_to_candidate(rest, text);
                retry = Some((rest, text));
            } else if let Some(after) = self.step(rest, byte) {
                (rest, text) = (after, &text[1..]);
            } else {
                let Some((after_star, [_, unswallowed @ ..])) = retry else { return false };
                (rest, text) = (after_star, self.skip_to_candidate(after_star, unswallowed));
                retry = Some((rest, text));
            }
        }
        without_stars(rest).is_empty()
    }

    /// What is left of pattern and text behind the plain bytes that the pattern opens with, if the
    /// text has them: most texts are refused here, at once.
    fn after_plain_start<'t>(&self, text: &'t [u8]) -> Option<(&'p [u8], &'t [u8])> {
        if self.ignores_case {
            return Some((self.pattern, text));
        }
        let plain = self.pattern.iter().position(is_special).unwrap_or(self.pattern.len());
        let (start, rest) = self.pattern.split_at(plain);
        Some((rest, text.strip_prefix(start)?))
    }

    /// The first place in `text` where a pattern that opens with a plain byte could start.
    fn skip_to_candidate<'t>(&self, rest: &[u8], text: &'t [u8]) -> &'t [u8] {
        match rest.first() {
            Some(&byte) if !self.ignores_case && !matches!(byte, b'?' | b'[' | b'\\') => {
                let start = memchr::memchr(byte, text).unwrap_or(text.len());
                &text[start..]
            }
            _ => text,
        }
    }

    /// Matches one byte against the item that opens `rest` (not a `*`), and gives what follows
    /// the item, or `None` if the byte is refused.
    #[inline]
    fn step<'r>(&self, rest: &'r [u8], byte: u8) -> Option<&'r [u8]> {
        match rest {
            [] => None,
            [b'?', after @ ..] => Some(after),
            [b'[', class @ ..] => {
                let (is_member, after) = self.class(class, byte);
                is_member.then_some(after)
            }
            [b'\\', literal, after @ ..] | [literal, after @ ..] => {
                self.same(*literal, byte).then_some(after)
            }
        }
    }

    /// Reads a class from behind its `[`: whether it holds `byte`, and what follows its `]`.
    /// COMPAT: without a `]` the class ends with the pattern; in `[a-]` the `]` is the end of a
    /// range; an escaped byte is compared with its case even where case is ignored.
    fn class<'r>(&self, class: &'r [u8], byte: u8) -> (bool, &'r [u8]) {
        let (is_negated, mut rest) = match class {
            [b'^', after @ ..] => (true, after),
            _ => (false, class),
        };
        let mut is_member = false;
        loop {
            rest = match rest {
                [] => break,
                [b']', after @ ..] => {
                    rest = after;
                    break;
                }
                [b'\\', escaped, after @ ..] => {
                    is_member |= *escaped == byte;
                    after
                }
                [start, b'-', end, after @ ..] => {
                    is_member |= self.in_range((*start, *end), byte);
                    after
                }
                [literal, after @ ..] => {
                    is_member |= self.same(*literal, byte);
                    after
                }
            };
        }
        (is_member != is_negated, rest)
    }

    /// COMPAT: bytes are compared as signed, a reversed range is turned round, and case is
    /// folded only after that, so `[Z-a]` is empty where case is ignored.
    fn in_range(&self, (start, end): (u8, u8), byte: u8) -> bool {
        let (start, end) = (start as i8, end as i8);
        let (low, high) = (start.min(end), start.max(end));
        let fold = |signed: i8| match self.ignores_case {
            true => (signed as u8).to_ascii_lowercase() as i8,
            false => signed,
        };
        (fold(low)..=fold(high)).contains(&fold(byte as i8))
    }

    #[inline]
    fn same(&self, literal: u8, byte: u8) -> bool {
        literal == byte || (self.ignores_case && literal.eq_ignore_ascii_case(&byte))
    }
}

fn is_special(byte: &u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[' | b'\\')
}

fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(is_special)
}

fn without_stars(mut rest: &[u8]) -> &[u8] {
    while let [b'*', after @ ..] = rest {
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests;
