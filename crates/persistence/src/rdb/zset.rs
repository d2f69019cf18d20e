//! Sorted sets: member and score by turns, in a ziplist or a listpack if small.

use super::error::{Malformed, Result};
use super::input::Input;
use super::kind;
use super::listpack::{Listpack, ListpackWriter};
use super::output::Output;
use super::value::{Found, Loading, Put, locate};
use super::ziplist::Ziplist;
use russet_base::{float, num};
use russet_engine::types::zset::stored::Draft;
use russet_engine::types::zset::{Direction, Element, Extent, Upsert, ZsetLimits, ZsetRef};
use std::io::{self, Read, Write};

const TWICE: Malformed = Malformed("a sorted set that has a member twice");

pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    let limits = loading.rules.zset;
    let mut room = Vec::new();
    let draft = match kind {
        kind::ZSET | kind::ZSET_2 => read_plain(input, kind, limits)?,
        kind::ZSET_ZIPLIST => {
            let bytes = input.string(&mut room)?;
            locate(
                input,
                Ziplist::new(bytes).and_then(|mut list| {
                    let mut draft = Draft::new(Extent::default(), limits);
                    while let Some(member) = list.next() {
                        add(&mut draft, member?, score_of(list.expect()?)?, limits)?;
                    }
                    Ok(draft)
                }),
            )?
        }
        _ => {
            let bytes = input.string(&mut room)?;
            locate(
                input,
                Listpack::new(bytes).and_then(|mut list| {
                    let mut draft = Draft::new(Extent::default(), limits);
                    while let Some(member) = list.next() {
                        add(&mut draft, member?, score_of(list.expect()?)?, limits)?;
                    }
                    Ok(draft)
                }),
            )?
        }
    };
    let mut found = Found::Empty;
    draft.put(|value| {
        found = Found::Value;
        put(value);
    });
    Ok(found)
}

fn read_plain<R: Read>(input: &mut Input<R>, kind: u8, limits: ZsetLimits) -> Result<Draft> {
    let count = input.length()?;
    let extent =
        Extent { count: usize::try_from(count).unwrap_or(usize::MAX), member_bytes_max: 0 };
    let mut draft = Draft::new(extent, limits);
    let mut room = Vec::new();
    for _ in 0..count {
        input.string(&mut room)?;
        let score = if kind == kind::ZSET { input.text_double()? } else { input.double()? };
        let added = add_text(&mut draft, &room, score, limits);
        locate(input, added)?;
    }
    Ok(draft)
}

fn add(
    draft: &mut Draft,
    member: Element<'_>,
    score: f64,
    limits: ZsetLimits,
) -> std::result::Result<(), Malformed> {
    member.with_bytes(|member| add_text(draft, member, score, limits))
}

fn add_text(
    draft: &mut Draft,
    member: &[u8],
    score: f64,
    limits: ZsetLimits,
) -> std::result::Result<(), Malformed> {
    if score.is_nan() {
        return Err(Malformed("a score that is no number"));
    }
    match draft.upsert(member, limits, |before| before.is_none().then_some(score)) {
        Upsert::Added => Ok(()),
        _ => Err(TWICE),
    }
}

fn score_of(element: Element<'_>) -> std::result::Result<f64, Malformed> {
    match element {
        Element::Int(value) => Ok(value as f64),
        Element::Bytes(text) => num::parse_f64(text).ok_or(Malformed("a score that is no number")),
    }
}

pub fn kind_of(zset: ZsetRef<'_>) -> u8 {
    if zset.is_listpack() { kind::ZSET_LISTPACK } else { kind::ZSET_2 }
}

pub fn write<W: Write>(output: &mut Output<W>, zset: ZsetRef<'_>) -> io::Result<()> {
    let all = 0..zset.len();
    if zset.is_listpack() {
        let mut writer = ListpackWriter::new();
        let mut text = Vec::new();
        zset.for_each(all, Direction::Forward, |pair| {
            writer.push(pair.member);
            text.clear();
            float::format_f64(pair.score, &mut text);
            writer.push(Element::parse(&text));
        });
        return output.string(&writer.finish());
    }
    output.length(zset.len() as u64)?;
    let mut outcome = Ok(());
    // From the highest down, as Redis does: who loads it then always inserts at the front.
    zset.for_each(all, Direction::Reverse, |pair| {
        if outcome.is_ok() {
            let member = pair.member.with_bytes(|member| output.string(member));
            outcome = member.and_then(|()| output.double(pair.score));
        }
    });
    outcome
}
