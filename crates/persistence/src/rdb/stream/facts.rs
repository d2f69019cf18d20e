//! What the version of streams that we write can't say: entries that were given back, when
//! consumers last got something, and what is remembered of producers. In a file it stands in an
//! auxiliary field before the key, which others pass over.
//!
//! | part | form |
//! |---|---|
//! | version | 1 |
//! | groups | how many; for each: name, given back entries, consumers |
//! | given back entries | how many; for each: ID in 16 bytes, deliveries |
//! | consumers | how many; for each: name, milliseconds and one, or 0 if it never got anything |
//! | producers | 0, or 1 and then what Redis 8 has in a stream (see `read_producers`) |
//!
//! Numbers are lengths, names are strings of RDB.

use super::{id_of, read_id};
use crate::rdb::error::Result;
use crate::rdb::input::Input;
use crate::rdb::output::Output;
use russet_engine::types::stream::{Count, IdRange, Idempotency, Stream, StreamId, StreamRef};
use std::io::{self, Read, Write};

const VERSION: u64 = 1;

type Bytes = Box<[u8]>;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct StreamFacts {
    groups: Vec<GroupFacts>,
    producers: Option<Producers>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct GroupFacts {
    name: Bytes,
    given_back: Vec<(StreamId, u64)>,
    active_ms: Vec<(Bytes, Option<i64>)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Producers {
    duration_s: u64,
    messages_max: u64,
    added: u64,
    duplicates: u64,
    messages: Vec<(Bytes, Vec<(Bytes, StreamId)>)>,
}

impl StreamFacts {
    pub fn of(stream: StreamRef<'_>) -> Self {
        let groups = stream.groups().into_iter().flatten().map(|(name, group)| GroupFacts {
            name: (**name).into(),
            given_back: group
                .pending_in(IdRange::ALL)
                .filter(|(_, one)| one.owner.is_none())
                .map(|(id, one)| (id, one.deliveries))
                .collect(),
            active_ms: group.consumers().map(|one| ((*one.name).into(), one.active_ms)).collect(),
        });
        let producers = stream.idempotency().map(|known| {
            let mut messages: Vec<(Bytes, Vec<(Bytes, StreamId)>)> = Vec::new();
            // All that are remembered, however old: who loads them forgets those that are over.
            known.for_each_message(i64::MIN, |producer, message, id| {
                if messages.last().is_none_or(|(last, _)| **last != *producer) {
                    messages.push((producer.into(), Vec::new()));
                }
                if let Some((_, own)) = messages.last_mut() {
                    own.push((message.into(), id));
                }
            });
            Producers {
                duration_s: known.duration_s,
                messages_max: known.messages_max,
                added: known.added,
                duplicates: known.duplicates,
                messages,
            }
        });
        StreamFacts { groups: groups.collect(), producers }
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.producers.is_none()
    }

    pub fn write<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        output.length(VERSION)?;
        output.length(self.groups.len() as u64)?;
        for group in &self.groups {
            output.string(&group.name)?;
            output.length(group.given_back.len() as u64)?;
            for (id, deliveries) in &group.given_back {
                output.bytes(&id.to_be_bytes())?;
                output.length(*deliveries)?;
            }
            output.length(group.active_ms.len() as u64)?;
            for (name, active_ms) in &group.active_ms {
                output.string(name)?;
                output.length(active_ms.map_or(0, |at_ms| at_ms as u64 + 1))?;
            }
        }
        output.length(u64::from(self.producers.is_some()))?;
        if self.producers.is_some() {
            self.write_producers(output)?;
        }
        Ok(())
    }

    pub fn write_producers<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        let none = Producers::none();
        let known = self.producers.as_ref().unwrap_or(&none);
        output.length(known.duration_s)?;
        output.length(known.messages_max)?;
        output.length(known.messages.len() as u64)?;
        for (producer, messages) in &known.messages {
            output.string(producer)?;
            output.length(messages.len() as u64)?;
            for (message, id) in messages {
                output.string(message)?;
                output.length(id.ms)?;
                output.length(id.seq)?;
            }
        }
        output.length(known.added)?;
        output.length(known.duplicates)
    }

    pub fn read<R: Read>(input: &mut Input<R>) -> Result<Self> {
        if input.length()? != VERSION {
            return Err(input.unsupported("facts of a stream in a later version"));
        }
        let mut facts = StreamFacts::default();
        for _ in 0..input.length()? {
            let mut group =
                GroupFacts { name: input.new_string()?.into(), ..GroupFacts::default() };
            for _ in 0..input.length()? {
                let id = id_of(&input.array::<{ super::ID_BYTES }>()?).unwrap_or_default();
                group.given_back.push((id, input.length()?));
            }
            for _ in 0..input.length()? {
                let name = input.new_string()?.into();
                let active_ms = input.length()?.checked_sub(1);
                group.active_ms.push((name, active_ms.map(|at_ms| at_ms as i64)));
            }
            facts.groups.push(group);
        }
        if input.length()? != 0 {
            facts.producers = Some(Producers::read(input)?);
        }
        Ok(facts)
    }

    /// Adds the facts to the stream that they are about. Those that don't fit are left out.
    pub fn apply(&self, stream: &mut Stream) {
        for facts in &self.groups {
            let Some((mut group, _)) = stream.open_group(&facts.name) else { continue };
            for (id, deliveries) in &facts.given_back {
                group.give_back(*id, Count::Set(*deliveries));
            }
            for (name, active_ms) in &facts.active_ms {
                if let Some(consumer) = group.find_consumer(name) {
                    group.set_active(consumer, *active_ms);
                }
            }
        }
        if let Some(producers) = &self.producers {
            producers.apply(stream);
        }
    }
}

impl Producers {
    /// What there is of a stream that never had one.
    fn none() -> Self {
        let Idempotency { duration_s, messages_max, .. } = Idempotency::default();
        Producers { duration_s, messages_max, ..Producers::default() }
    }

    fn read<R: Read>(input: &mut Input<R>) -> Result<Self> {
        let (duration_s, messages_max) = (input.length()?, input.length()?);
        let mut known = Producers { duration_s, messages_max, ..Producers::default() };
        for _ in 0..input.length()? {
            let mut producer = (input.new_string()?.into(), Vec::new());
            for _ in 0..input.length()? {
                producer.1.push((input.new_string()?.into(), read_id(input)?));
            }
            known.messages.push(producer);
        }
        (known.added, known.duplicates) = (input.length()?, input.length()?);
        Ok(known)
    }

    fn apply(&self, stream: &mut Stream) {
        let known = stream.idempotency_mut();
        (known.duration_s, known.messages_max) = (self.duration_s, self.messages_max);
        for (producer, messages) in &self.messages {
            messages.iter().for_each(|(message, id)| known.note(producer, message, *id));
        }
        (known.added, known.duplicates) = (self.added, self.duplicates);
    }
}

/// What Redis 8 has of producers in a stream: how many seconds and how many messages are
/// remembered; for each producer its name and its messages, each with the entry that it became; how
/// many were added, and how many came again.
pub fn read_producers<R: Read>(input: &mut Input<R>, stream: &mut Stream) -> Result<()> {
    let producers = Producers::read(input)?;
    if producers != Producers::none() {
        producers.apply(stream);
    }
    Ok(())
}
