//! BITOP: several strings combined bit by bit into one as long as the longest. Shorter ones count
//! as followed by zeros.

/// Bytes of the result made at a time: small enough that the block stays in the first-level cache
/// while every source is applied to it.
const BLOCK_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperation {
    And,
    Or,
    Xor,
    /// The complement of the one source.
    Not,
    /// In the first and in no other.
    Diff,
    /// In some other but not in the first.
    Diff1,
    /// In the first and in some other.
    AndOr,
    /// In exactly one.
    One,
}

impl BitOperation {
    pub fn parse(name: &[u8]) -> Option<Self> {
        use BitOperation::*;
        let named = [
            ("AND", And),
            ("OR", Or),
            ("XOR", Xor),
            ("NOT", Not),
            ("DIFF", Diff),
            ("DIFF1", Diff1),
            ("ANDOR", AndOr),
            ("ONE", One),
        ];
        named
            .into_iter()
            .find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()))
            .map(|(_, operation)| operation)
    }

    pub fn name(self) -> &'static str {
        match self {
            BitOperation::And => "AND",
            BitOperation::Or => "OR",
            BitOperation::Xor => "XOR",
            BitOperation::Not => "NOT",
            BitOperation::Diff => "DIFF",
            BitOperation::Diff1 => "DIFF1",
            BitOperation::AndOr => "ANDOR",
            BitOperation::One => "ONE",
        }
    }

    /// How many sources it takes: only NOT has a most.
    pub fn takes(self, sources: usize) -> bool {
        match self {
            BitOperation::Not => sources == 1,
            BitOperation::Diff | BitOperation::Diff1 | BitOperation::AndOr => sources >= 2,
            _ => sources >= 1,
        }
    }
}

/// The result; `operation` must take that many sources.
pub fn combine(operation: BitOperation, sources: &[&[u8]]) -> Vec<u8> {
    debug_assert!(operation.takes(sources.len()));
    let total = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut out = Vec::with_capacity(total);
    let Some((first, others)) = sources.split_first() else {
        return out;
    };
    let mut start = 0;
    while start < total {
        let end = (start + BLOCK_BYTES).min(total);
        out.extend_from_slice(window(first, start..end));
        out.resize(end, 0);
        let block = &mut out[start..];
        let others = others.iter().map(|other| window(other, start..end));
        apply(operation, block, others);
        start = end;
    }
    out
}

/// Turns a block of the first source into the block of the result.
fn apply<'a>(operation: BitOperation, block: &mut [u8], others: impl Iterator<Item = &'a [u8]>) {
    match operation {
        BitOperation::Not => block.iter_mut().for_each(|byte| *byte = !*byte),
        BitOperation::And => others.for_each(|other| {
            merge(block, other, |byte, other| byte & other);
            block[other.len()..].fill(0);
        }),
        BitOperation::Or => {
            others.for_each(|other| merge(block, other, |byte, other| byte | other))
        }
        BitOperation::Xor => {
            others.for_each(|other| merge(block, other, |byte, other| byte ^ other))
        }
        BitOperation::Diff => {
            others.for_each(|other| merge(block, other, |byte, other| byte & !other));
        }
        BitOperation::Diff1 => {
            let any = union(others);
            merge(block, &any, |byte, any| any & !byte);
        }
        BitOperation::AndOr => {
            let any = union(others);
            merge(block, &any, |byte, any| byte & any);
        }
        BitOperation::One => {
            let mut repeated = [0; BLOCK_BYTES];
            for other in others {
                for ((seen, repeated), other) in block.iter_mut().zip(&mut repeated).zip(other) {
                    *repeated |= *seen & other;
                    *seen |= other;
                }
            }
            merge(block, &repeated, |seen, repeated| seen & !repeated);
        }
    }
}

/// What is set in any of the sources.
fn union<'a>(sources: impl Iterator<Item = &'a [u8]>) -> [u8; BLOCK_BYTES] {
    let mut any = [0; BLOCK_BYTES];
    sources.for_each(|source| merge(&mut any, source, |byte, source| byte | source));
    any
}

#[inline(always)]
fn merge(block: &mut [u8], other: &[u8], f: impl Fn(u8, u8) -> u8) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte = f(*byte, *other);
    }
}

/// The part of `source` that lies in `range`.
fn window(source: &[u8], range: std::ops::Range<usize>) -> &[u8] {
    let end = range.end.min(source.len());
    &source[range.start.min(end)..end]
}
