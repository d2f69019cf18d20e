//! A value alone, as DUMP gives it and RESTORE takes it: its kind, the value, the version of RDB in
//! two bytes, and a CRC-64 of all before it in eight, both little-endian. Libraries of functions go
//! the same way.

use super::error::RdbError;
use super::input::Input;
use super::output::Output;
use super::value::{self, FieldTtlFormat, Found, Loading, Put, Rules, Saving};
use super::{Dialect, VERSION, VERSION_VALKEY, kind};
use russet_base::crc64::crc64;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;

const FOOTER_BYTES: usize = 10;
const NO_FAILURE: &str = "memory takes what is written to it";

/// Why a payload is refused.
#[derive(Debug)]
pub enum PayloadError {
    /// It was made by an unknown version, or was changed since.
    Footer,
    Value(RdbError),
}

/// How a value is dumped.
#[derive(Clone, Copy, Debug)]
pub struct Dumping {
    pub compresses: bool,
    pub field_ttl: FieldTtlFormat,
    /// Fields whose time is over by then are left out.
    pub hides_ms: i64,
}

pub fn dump(entry: &EntryRef<'_, Object>, dumping: Dumping) -> Vec<u8> {
    let Dumping { compresses, field_ttl, hides_ms } = dumping;
    let saving = Saving { field_ttl, hides_ms, has_stream_facts: false };
    let kind = value::kind_of(entry, &saving);
    let mut output = Output::to_bytes(compresses);
    output.byte(kind).expect(NO_FAILURE);
    value::write(&mut output, entry, &saving).expect(NO_FAILURE);
    sealed(output, value::version_of(kind, &saving))
}

fn sealed(mut output: Output<Vec<u8>>, version: u16) -> Vec<u8> {
    output.bytes(&version.to_le_bytes()).expect(NO_FAILURE);
    let sum = output.sum().expect(NO_FAILURE);
    let mut payload = output.finish().expect(NO_FAILURE);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

/// What a payload holds, and the version in its footer.
fn open(payload: &[u8]) -> Result<(&[u8], u16), PayloadError> {
    let (body, footer) = payload.split_last_chunk::<FOOTER_BYTES>().ok_or(PayloadError::Footer)?;
    Ok((body, u16::from_le_bytes([footer[0], footer[1]])))
}

/// What a payload has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// A value, which the payload gives at any time to any server that reads ours.
    Same,
    /// A value, which the payload may not give again: fields were over, or it is of a version that
    /// not every server reads.
    Other,
    /// All that there was is over.
    Nothing,
}

/// What is let pass in the footer of a payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leniency {
    pub tries_any_version: bool,
    pub skips_sum: bool,
}

/// Whether a payload's version and sum are right.
pub fn check(payload: &[u8], lets: Leniency) -> Result<(), PayloadError> {
    const SUM_BYTES: usize = size_of::<u64>();
    let (_, version) = open(payload)?;
    let (summed, sum) = payload.split_last_chunk::<SUM_BYTES>().ok_or(PayloadError::Footer)?;
    let is_known = lets.tries_any_version || Dialect::of_version(version).is_some();
    let is_whole = lets.skips_sum || u64::from_le_bytes(*sum) == crc64(summed);
    if is_known && is_whole { Ok(()) } else { Err(PayloadError::Footer) }
}

/// Hands the value of a payload to `put`.
pub fn restore(
    payload: &[u8],
    reading: (&Rules, i64),
    put: Put<'_>,
) -> Result<Restored, PayloadError> {
    check(payload, Leniency::default())?;
    restore_checked(payload, reading, put)
}

/// The same for one that [`check`] has passed. One of a version that is not known is read as the
/// newest one before it.
pub fn restore_checked(
    payload: &[u8],
    (rules, now_ms): (&Rules, i64),
    put: Put<'_>,
) -> Result<Restored, PayloadError> {
    let (body, version) = open(payload)?;
    let dialect = Dialect::of_version(version.min(VERSION_VALKEY)).unwrap_or(Dialect::Redis);
    let loading = Loading { rules, now_ms, dialect, stream_facts: None };
    let mut input = Input::of_bytes(body);
    let kind = input.byte().map_err(PayloadError::Value)?;
    let found = value::read(&mut input, kind, &loading, put).map_err(PayloadError::Value)?;
    match found {
        Found::Value if version <= VERSION => Ok(Restored::Same),
        Found::Value | Found::Shortened => Ok(Restored::Other),
        Found::Expired => Ok(Restored::Nothing),
        Found::Empty => Err(PayloadError::Value(input.corrupt("a collection of nothing"))),
    }
}

/// What is wrong with a payload of functions.
#[derive(Debug)]
pub enum FunctionsError {
    Footer,
    /// Something else than a library.
    Kind,
    Source,
}

/// All libraries' sources as one payload.
pub fn dump_functions<'s>(sources: impl IntoIterator<Item = &'s [u8]>) -> Vec<u8> {
    let mut output = Output::to_bytes(true);
    for source in sources {
        output.byte(kind::OP_FUNCTION).expect(NO_FAILURE);
        output.string(source).expect(NO_FAILURE);
    }
    sealed(output, VERSION)
}

/// The sources in a payload.
pub fn functions(payload: &[u8]) -> Result<Vec<Vec<u8>>, FunctionsError> {
    check(payload, Leniency::default()).map_err(|_| FunctionsError::Footer)?;
    let (body, _) = open(payload).map_err(|_| FunctionsError::Footer)?;
    let mut input = Input::of_bytes(body);
    let mut sources = Vec::new();
    while !input.is_at_end().map_err(|_| FunctionsError::Source)? {
        if !matches!(input.byte(), Ok(kind::OP_FUNCTION)) {
            return Err(FunctionsError::Kind);
        }
        sources.push(input.new_string().map_err(|_| FunctionsError::Source)?);
    }
    Ok(sources)
}
