//! Hashes: field by field, or packed in a zipmap, a ziplist or a listpack. Those whose fields have
//! deadlines are written in one of two ways: Redis 7.4's or Valkey 9's.

use super::error::{Malformed, Result};
use super::input::Input;
use super::listpack::{Listpack, ListpackWriter};
use super::output::Output;
use super::value::{FieldTtlFormat, Found, Loading, Put, locate};
use super::ziplist::Ziplist;
use super::zipmap::Zipmap;
use super::{Dialect, kind};
use russet_engine::types::element::Element;
use russet_engine::types::hash::{HashBuilder, HashRef};
use std::io::{self, Read, Write};

type Checked<T> = std::result::Result<T, Malformed>;

const TWICE: Malformed = Malformed("a hash that has a field twice");
/// The latest moment that Redis knows for a field.
const REDIS_DEADLINE_MAX: u64 = (1 << 46) - 1;
/// Valkey's for a field that has none.
const VALKEY_NO_DEADLINE: i64 = -1;

/// A hash that is being read. Fields whose time is over are left out.
struct Fields {
    hash: HashBuilder,
    now_ms: i64,
    has_expired: bool,
}

impl Fields {
    fn new(loading: &Loading<'_>) -> Self {
        let hash = HashBuilder::new(loading.rules.hash, loading.rules.set.hasher);
        Fields { hash, now_ms: loading.now_ms, has_expired: false }
    }

    fn add(&mut self, name: &[u8], value: &[u8], deadline_ms: Option<i64>) -> Checked<()> {
        if deadline_ms.is_some_and(|at_ms| at_ms <= self.now_ms) {
            self.has_expired = true;
            return Ok(());
        }
        if self.hash.add((name, value), deadline_ms) { Ok(()) } else { Err(TWICE) }
    }

    fn add_elements(
        &mut self,
        (name, value): (Element<'_>, Element<'_>),
        deadline_ms: Option<i64>,
    ) -> Checked<()> {
        name.with_bytes(|name| value.with_bytes(|value| self.add(name, value, deadline_ms)))
    }

    fn put(self, put: Put<'_>) -> Found {
        match self.hash.is_empty() {
            true if self.has_expired => Found::Expired,
            true => Found::Empty,
            false => {
                self.hash.put(put);
                if self.has_expired { Found::Shortened } else { Found::Value }
            }
        }
    }
}

/// A deadline as Redis writes it: 0 for none.
fn redis_deadline(at_ms: u64) -> Checked<Option<i64>> {
    match at_ms {
        0 => Ok(None),
        1..=REDIS_DEADLINE_MAX => Ok(Some(at_ms as i64)),
        _ => Err(Malformed("a field that expires beyond all times")),
    }
}

pub fn read<R: Read>(
    input: &mut Input<R>,
    kind: u8,
    loading: &Loading<'_>,
    put: Put<'_>,
) -> Result<Found> {
    let mut fields = Fields::new(loading);
    match (kind, loading.dialect) {
        (kind::HASH, _) => read_plain(input, &mut fields)?,
        (kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK, _) => {
            let mut room = Vec::new();
            let bytes = input.string(&mut room)?;
            locate(input, unpack(bytes, kind, &mut fields))?;
        }
        (kind::VALKEY_HASH_TTL, Dialect::Valkey) => read_valkey(input, &mut fields)?,
        (kind::REDIS_HASH_TTL | kind::REDIS_HASH_TTL_EARLY, _) => {
            read_redis(input, kind == kind::REDIS_HASH_TTL, &mut fields)?;
        }
        _ => {
            if kind == kind::REDIS_HASH_TTL_LISTPACK {
                // The least deadline, which the fields tell, too.
                input.millis()?;
            }
            let mut room = Vec::new();
            let bytes = input.string(&mut room)?;
            locate(input, unpack_expiring(bytes, &mut fields))?;
        }
    }
    Ok(fields.put(put))
}

fn read_plain<R: Read>(input: &mut Input<R>, fields: &mut Fields) -> Result<()> {
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for _ in 0..input.length()? {
        input.string(&mut name)?;
        input.string(&mut value)?;
        locate(input, fields.add(&name, &value, None))?;
    }
    Ok(())
}

fn read_valkey<R: Read>(input: &mut Input<R>, fields: &mut Fields) -> Result<()> {
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for _ in 0..input.length()? {
        input.string(&mut name)?;
        input.string(&mut value)?;
        let at_ms = input.millis()?;
        let deadline_ms = (at_ms >= 0).then_some(at_ms);
        locate(input, fields.add(&name, &value, deadline_ms))?;
    }
    Ok(())
}

/// Deadlines are written as their distance from the least of them, and one; or as they are.
fn read_redis<R: Read>(input: &mut Input<R>, is_relative: bool, fields: &mut Fields) -> Result<()> {
    let least_ms = if is_relative { input.millis()? } else { 1 };
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for _ in 0..input.length()? {
        let at_ms = match input.length()? {
            0 => Some(0),
            ttl => u64::try_from(least_ms).ok().and_then(|least| least.checked_add(ttl - 1)),
        };
        input.string(&mut name)?;
        input.string(&mut value)?;
        let deadline = redis_deadline(at_ms.unwrap_or(u64::MAX));
        let added = deadline.and_then(|deadline| fields.add(&name, &value, deadline));
        locate(input, added)?;
    }
    Ok(())
}

fn unpack(bytes: &[u8], kind: u8, fields: &mut Fields) -> Checked<()> {
    match kind {
        kind::HASH_ZIPMAP => {
            for pair in Zipmap::new(bytes)? {
                let (name, value) = pair?;
                fields.add(name, value, None)?;
            }
        }
        kind::HASH_ZIPLIST => {
            let mut list = Ziplist::new(bytes)?;
            while let Some(name) = list.next() {
                fields.add_elements((name?, list.expect()?), None)?;
            }
        }
        _ => {
            let mut list = Listpack::new(bytes)?;
            while let Some(name) = list.next() {
                fields.add_elements((name?, list.expect()?), None)?;
            }
        }
    }
    Ok(())
}

/// Name, value and deadline by turns.
fn unpack_expiring(bytes: &[u8], fields: &mut Fields) -> Checked<()> {
    let mut list = Listpack::new(bytes)?;
    while let Some(name) = list.next() {
        let pair = (name?, list.expect()?);
        let at_ms = u64::try_from(list.expect_int()?).unwrap_or(u64::MAX);
        fields.add_elements(pair, redis_deadline(at_ms)?)?;
    }
    Ok(())
}

/// The least deadline of a hash that has one.
fn least_deadline(hash: HashRef<'_>) -> Option<i64> {
    let mut least = None;
    hash.for_each(|field| {
        let sooner = field.deadline_ms.filter(|at_ms| least.is_none_or(|least| *at_ms < least));
        least = sooner.or(least);
    });
    least
}

pub fn kind_of(hash: HashRef<'_>, format: FieldTtlFormat) -> u8 {
    match format {
        _ if hash.encoding() == "listpack" => kind::HASH_LISTPACK,
        _ if !hash.may_expire() || least_deadline(hash).is_none() => kind::HASH,
        FieldTtlFormat::Valkey => kind::VALKEY_HASH_TTL,
        FieldTtlFormat::Redis => kind::REDIS_HASH_TTL,
    }
}

pub fn write<W: Write>(
    output: &mut Output<W>,
    hash: HashRef<'_>,
    format: FieldTtlFormat,
) -> io::Result<()> {
    let kind = kind_of(hash, format);
    if kind == kind::HASH_LISTPACK {
        let mut writer = ListpackWriter::new();
        hash.for_each(|field| {
            writer.push(field.name);
            writer.push(field.value);
        });
        return output.string(&writer.finish());
    }
    let least_ms = least_deadline(hash).unwrap_or(0);
    if kind == kind::REDIS_HASH_TTL {
        output.millis(least_ms)?;
    }
    output.length(hash.len() as u64)?;
    let mut outcome = Ok(());
    hash.for_each(|field| {
        if outcome.is_err() {
            return;
        }
        outcome = (|| {
            if kind == kind::REDIS_HASH_TTL {
                let ttl =
                    field.deadline_ms.map_or(0, |at_ms| at_ms.wrapping_sub(least_ms) as u64 + 1);
                output.length(ttl)?;
            }
            field.name.with_bytes(|name| output.string(name))?;
            field.value.with_bytes(|value| output.string(value))?;
            if kind == kind::VALKEY_HASH_TTL {
                output.millis(field.deadline_ms.unwrap_or(VALKEY_NO_DEADLINE))?;
            }
            Ok(())
        })();
    });
    outcome
}
