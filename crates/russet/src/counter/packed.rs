//! Small numbers packed into one string, with their widths and what happens beyond declared.

use super::windows::{CounterStats, Counts};
use super::{FAMILY, PACKED, check_name};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::observe;
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::RequestId;
use std::sync::Arc;
use std::time::Duration;

/// Fields of one layout.
const FIELDS_MAX: usize = 256;
/// The widest field: what every client's numbers can hold.
const BITS_MAX: u8 = 53;

/// How many bits a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    is_signed: bool,
    bits: u8,
}

impl Width {
    /// From 0 to 2^bits - 1; up to 53 bits.
    pub fn unsigned(bits: u8) -> Result<Width> {
        Width::new(false, bits)
    }

    /// From -2^(bits-1) to 2^(bits-1) - 1; up to 53 bits.
    pub fn signed(bits: u8) -> Result<Width> {
        Width::new(true, bits)
    }

    fn new(is_signed: bool, bits: u8) -> Result<Width> {
        if !(1..=BITS_MAX).contains(&bits) {
            return Err(Error::invalid(format!("a field has 1 to {BITS_MAX} bits")));
        }
        Ok(Width { is_signed, bits })
    }

    fn encoding(self) -> String {
        format!("{}{}", if self.is_signed { 'i' } else { 'u' }, self.bits)
    }
}

/// What happens beyond a field's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It stays at its largest or smallest: for quotas.
    Saturate,
    /// It starts anew from the other end.
    Wrap,
    /// Nothing is changed, in no field, and the caller is informed.
    Refuse,
}

/// What came of adding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum PackedOutcome {
    /// The new values, in the order of the changes.
    Added(Vec<i64>),
    /// This field would leave its width: nothing was changed.
    Overflow {
        /// The first that would have.
        field: String,
    },
}

/// Packed counters. The layout is part of the name: another layout needs another name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::counter::{Overflow, PackedCounters, PackedOutcome, Width};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let fields = [("warnings", Width::unsigned(4)?), ("score", Width::signed(16)?)];
/// let day = Duration::from_secs(86400);
/// let stats = PackedCounters::new(&kit, "stats", fields, Overflow::Saturate, day)?;
/// let added = stats.add("user-1", &[("warnings", 20), ("score", -3)], None).await?;
/// assert_eq!(added, PackedOutcome::Added(vec![15, -3]), "15 is the most of four bits");
/// assert_eq!(stats.read("user-1").await?, [15, -3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PackedCounters {
    kit: Kit,
    name: String,
    fields: Vec<Field>,
    overflow: Overflow,
    ttl: Duration,
    counts: Arc<Counts>,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    width: Width,
    offset: u32,
}

impl PackedCounters {
    /// `ttl` counts from the first write.
    pub fn new<'a>(
        kit: &Kit,
        name: &str,
        fields: impl IntoIterator<Item = (&'a str, Width)>,
        overflow: Overflow,
        ttl: Duration,
    ) -> Result<PackedCounters> {
        check_name(name)?;
        let mut offset = 0;
        let mut laid_out: Vec<Field> = Vec::new();
        for (name, width) in fields {
            if laid_out.iter().any(|field| field.name == name) {
                return Err(Error::invalid("two fields have the same name"));
            }
            laid_out.push(Field { name: name.to_owned(), width, offset });
            offset += u32::from(width.bits);
        }
        if laid_out.is_empty() || laid_out.len() > FIELDS_MAX {
            return Err(Error::invalid(format!("packed counters have 1 to {FIELDS_MAX} fields")));
        }
        if ttl.is_zero() {
            return Err(Error::invalid("packed counters need a ttl"));
        }
        let (kit, name, counts) = (kit.clone(), name.to_owned(), Arc::default());
        Ok(PackedCounters { kit, name, fields: laid_out, overflow, ttl, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> CounterStats {
        self.counts.stats()
    }

    /// Adds to some of the fields, to all of these or none.
    pub async fn add(
        &self,
        subject: impl Into<Scope>,
        changes: &[(&str, i64)],
        request: Option<&RequestId>,
    ) -> Result<PackedOutcome> {
        if changes.is_empty() || changes.len() > FIELDS_MAX {
            return Err(Error::invalid(format!("1 to {FIELDS_MAX} fields can be changed")));
        }
        let keys = self.kit.keys(FAMILY, subject)?;
        let overflow = match self.overflow {
            Overflow::Saturate => "SAT",
            Overflow::Wrap => "WRAP",
            Overflow::Refuse => "FAIL",
        };
        let mut call = self.kit.step_of_request(&PACKED, &keys, request).bound_to(&self.name);
        call = call.key(keys.item("packed", &self.name)).arg(self.ttl).arg(overflow);
        for (index, (name, by)) in changes.iter().enumerate() {
            if changes[..index].iter().any(|(before, _by)| before == name) {
                return Err(Error::invalid("a field is changed twice"));
            }
            let field = self.fields.iter().find(|field| field.name == *name);
            let field = field.ok_or_else(|| Error::invalid("there is no such field"))?;
            call = call.arg(field.width.encoding()).arg(field.offset).arg(*by);
        }
        let mut envelope = call.run().await?;
        observe::count("redis.counter.increment.count", "counter", 1);
        match envelope.status() {
            "OK" => {
                self.counts.added.add(1);
                numbers(&envelope.list("values")?).map(PackedOutcome::Added)
            }
            "OVERFLOW" => {
                self.counts.overflowed.add(1);
                let index = usize::try_from(envelope.count("change")?).unwrap_or(0);
                let change = index.checked_sub(1).and_then(|index| changes.get(index));
                let field = change.map(|(name, _by)| (*name).to_owned());
                Ok(PackedOutcome::Overflow { field: field.unwrap_or_default() })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// All fields, in the order of the layout; zeros if nothing was counted yet.
    pub async fn read(&self, subject: impl Into<Scope>) -> Result<Vec<i64>> {
        let keys = self.kit.keys(FAMILY, subject)?;
        let mut read = Request::new("BITFIELD_RO").key(&keys.item("packed", &self.name));
        for field in &self.fields {
            read = read.arg("GET").arg(field.width.encoding()).arg(field.offset);
        }
        self.counts.read.add(1);
        numbers(&self.kit.call_safe(&read).await?.into_list()?)
    }
}

fn numbers(replies: &[Reply]) -> Result<Vec<i64>> {
    let numbers: Option<Vec<i64>> = replies.iter().map(Reply::as_int).collect();
    numbers.ok_or_else(|| Error::Corrupt("packed values are not numbers".into()))
}
