//! Sets: member by member, an intset, or a listpack.

use super::error::Result;
use super::input::{Input, Text};
use super::listpack::Listpack;
use super::output::Output;
use super::value::{Found, Loading, Put, locate};
use super::{intset, kind};
use russet_engine::types::element::Element;
use russet_engine::types::set::{Encoding, NewSet, SetRef, stored};
use std::io::{self, Read, Write};

pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    let rules = &loading.rules.set;
    let mut room = Vec::new();
    let start = |count: u64| {
        let few = rules.intset_entries_max.max(rules.listpack_entries_max);
        let encoding = if count <= few as u64 { Encoding::Intset } else { Encoding::Hashtable };
        NewSet::new(encoding, usize::try_from(count).unwrap_or(usize::MAX), rules)
    };
    let mut set;
    let mut is_unique = true;
    match kind {
        kind::SET => {
            let count = input.length()?;
            set = start(count);
            for _ in 0..count {
                let member = match input.text(&mut room)? {
                    Text::Int(value) => Element::Int(value),
                    Text::Bytes(text) => Element::parse(text),
                };
                is_unique &= set.add(member, rules);
            }
        }
        kind::SET_INTSET => {
            let numbers = input.string(&mut room)?;
            let numbers = locate(input, intset::read(numbers))?;
            set = start(numbers.len() as u64);
            numbers.for_each(|number| is_unique &= set.add(Element::Int(number), rules));
        }
        _ => {
            let members = input.string(&mut room)?;
            set = NewSet::new(Encoding::Listpack, 0, rules);
            for member in locate(input, Listpack::new(members))? {
                is_unique &= set.add(locate(input, member)?, rules);
            }
        }
    }
    if !is_unique {
        return Err(input.corrupt("a set that has a member twice"));
    }
    if set.is_empty() {
        return Ok(Found::Empty);
    }
    stored::put(set, put);
    Ok(Found::Value)
}

pub fn kind_of(set: SetRef<'_>) -> u8 {
    if set.encoding() == Encoding::Intset { kind::SET_INTSET } else { kind::SET }
}

pub fn write<W: Write>(output: &mut Output<W>, set: SetRef<'_>) -> io::Result<()> {
    if set.encoding() == Encoding::Intset {
        let mut numbers = Vec::with_capacity(set.len());
        set.for_each(&mut |member| match member {
            Element::Int(value) => numbers.push(value),
            Element::Bytes(_) => unreachable!("an intset has integers only"),
        });
        numbers.sort_unstable();
        return output.string(&intset::write(&numbers));
    }
    output.length(set.len() as u64)?;
    let mut outcome = Ok(());
    set.for_each(&mut |member| {
        if outcome.is_ok() {
            outcome = match member {
                Element::Int(value) => output.int_string(value),
                Element::Bytes(text) => output.string(text),
            };
        }
    });
    outcome
}
