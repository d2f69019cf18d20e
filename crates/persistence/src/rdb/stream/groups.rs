//! The groups of a stream: how far each has read, what is pending in it, its consumers.

use super::{ID_BYTES, Version, id_of, read_id};
use crate::rdb::error::Result;
use crate::rdb::input::Input;
use crate::rdb::output::Output;
use russet_engine::types::stream::{Count, Group, IdRange, Stream, StreamId, StreamRef};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// How much a group has read, if that is not known: -1.
const UNKNOWN: u64 = u64::MAX;

/// What is pending, before it is known whose it is: when it was delivered, and how often.
type Unowned = BTreeMap<StreamId, (i64, u64)>;

pub fn read<R: Read>(input: &mut Input<R>, version: Version, stream: &mut Stream) -> Result<()> {
    for _ in 0..input.length()? {
        let name = input.new_string()?;
        let last_id = read_id(input)?;
        let entries_read = match version {
            Version::First => stream.log.entries_read_up_to(last_id),
            _ => match input.length()? {
                UNKNOWN => None,
                read => Some(i64::try_from(read).map_err(|_| {
                    input.corrupt("a group of a stream that has read more than there can be")
                })?),
            },
        };
        let mut group = Group::new(last_id, entries_read);
        let mut unowned = read_pending(input)?;
        for _ in 0..input.length()? {
            read_consumer(input, version, &mut group, &mut unowned)?;
        }
        if version >= Version::GivenBack {
            for _ in 0..input.length()? {
                let id = raw_id(input)?;
                let Some((_, deliveries)) = unowned.remove(&id) else {
                    return Err(input.corrupt("a given back entry that is not pending"));
                };
                group.give_back(id, Count::Set(deliveries));
            }
        }
        if !unowned.is_empty() {
            return Err(input.corrupt("a pending entry that no consumer has"));
        }
        if !stream.add_group(&name, group) {
            return Err(input.corrupt("a stream that has a group twice"));
        }
    }
    Ok(())
}

fn raw_id<R: Read>(input: &mut Input<R>) -> Result<StreamId> {
    let bytes = input.array::<ID_BYTES>()?;
    Ok(id_of(&bytes).unwrap_or_default())
}

fn read_pending<R: Read>(input: &mut Input<R>) -> Result<Unowned> {
    let mut unowned = Unowned::new();
    for _ in 0..input.length()? {
        let id = raw_id(input)?;
        let (delivered_ms, deliveries) = (input.millis()?, input.length()?);
        if unowned.insert(id, (delivered_ms, deliveries)).is_some() {
            return Err(input.corrupt("an entry that is pending twice"));
        }
    }
    Ok(unowned)
}

fn read_consumer<R: Read>(
    input: &mut Input<R>,
    version: Version,
    group: &mut Group,
    unowned: &mut Unowned,
) -> Result<()> {
    let name = input.new_string()?;
    let seen_ms = input.millis()?;
    let active_ms = match version {
        // What was seen last is the best guess, as for Redis.
        Version::First | Version::Counters => seen_ms,
        _ => input.millis()?,
    };
    if group.find_consumer(&name).is_some() {
        return Err(input.corrupt("a group of a stream that has a consumer twice"));
    }
    let consumer = group.add_consumer(&name, seen_ms);
    if active_ms >= 0 {
        group.mark_active(consumer, active_ms);
    }
    for _ in 0..input.length()? {
        let id = raw_id(input)?;
        let Some((delivered_ms, deliveries)) = unowned.remove(&id) else {
            return Err(input.corrupt("a consumer's entry that is not pending in its group"));
        };
        group.claim(id, consumer, delivered_ms, Count::Set(deliveries));
    }
    Ok(())
}

pub fn write<W: Write>(
    output: &mut Output<W>,
    stream: StreamRef<'_>,
    version: Version,
) -> io::Result<()> {
    let groups = stream.groups();
    output.length(groups.map_or(0, BTreeMap::len) as u64)?;
    for (name, group) in groups.into_iter().flatten() {
        output.string(name)?;
        output.length(group.last_id.ms)?;
        output.length(group.last_id.seq)?;
        output.length(group.entries_read.map_or(UNKNOWN, |read| read as u64))?;
        write_group(output, group, version)?;
    }
    Ok(())
}

fn write_group<W: Write>(
    output: &mut Output<W>,
    group: &Group,
    version: Version,
) -> io::Result<()> {
    let has_given_back = version >= Version::GivenBack;
    // Where nobody's entries can't be written, the first consumer has them, delivered long ago: so
    // that others can claim them. Without a consumer they are left out.
    let stand_in = group.consumers().next().filter(|_| !has_given_back);
    let is_written = |owner: Option<_>| owner.is_some() || has_given_back || stand_in.is_some();
    let pending = || group.pending_in(IdRange::ALL).filter(|(_, one)| is_written(one.owner));
    output.length(pending().count() as u64)?;
    for (id, one) in pending() {
        output.bytes(&id.to_be_bytes())?;
        output.millis(one.delivered_ms)?;
        output.length(one.deliveries)?;
    }
    output.length(group.consumers_len() as u64)?;
    for consumer in group.consumers() {
        output.string(&consumer.name)?;
        output.millis(consumer.seen_ms)?;
        if version >= Version::ActiveTimes {
            output.millis(consumer.active_ms.unwrap_or(-1))?;
        }
        let is_stand_in = stand_in.is_some_and(|stand_in| stand_in.name == consumer.name);
        let owned = || {
            pending().filter(|(_, one)| match one.owner {
                Some(owner) => group.consumer(owner).name == consumer.name,
                None => is_stand_in,
            })
        };
        // Those of most consumers are few beside those of the group.
        let key = group.find_consumer(&consumer.name).filter(|_| !is_stand_in);
        let ids: Vec<StreamId> = match key {
            Some(key) => group.pending_of(key, IdRange::ALL).map(|(id, _)| id).collect(),
            None => owned().map(|(id, _)| id).collect(),
        };
        output.length(ids.len() as u64)?;
        ids.iter().try_for_each(|id| output.bytes(&id.to_be_bytes()))?;
    }
    if has_given_back {
        let nobodys = || pending().filter(|(_, one)| one.owner.is_none());
        output.length(nobodys().count() as u64)?;
        nobodys().try_for_each(|(id, _)| output.bytes(&id.to_be_bytes()))?;
    }
    Ok(())
}
