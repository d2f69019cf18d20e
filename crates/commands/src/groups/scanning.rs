//! What SCAN, SSCAN, HSCAN and ZSCAN have in common, and KEYS with SCAN.

use crate::error::Refusal;
use russet_base::escape::escape;
use russet_base::{Args, num};
use russet_engine::value::Type;
use russet_protocol::Sink;

const COUNT_DEFAULT: u64 = 10;
/// Room that a call asks for at once for the keys it will find.
const FOUND_BYTES_MAX: u64 = 64 * 1024;
const KEY_BYTES_USUAL: u64 = 24;
pub const INVALID_CURSOR: &str = "ERR invalid cursor";

/// What is being walked, which decides the arguments that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    Keys,
    Set,
    Hash,
    Zset,
}

/// The arguments behind the cursor.
pub struct ScanOptions<'a> {
    pub count: u64,
    pub pattern: Option<&'a [u8]>,
    pub type_name: Option<&'static str>,
    /// NOVALUES of HSCAN, NOSCORES of ZSCAN: names alone.
    pub is_bare: bool,
}

/// The cursor of a walk over one collection.
pub fn parse_cursor(arg: &[u8]) -> Result<u64, Refusal> {
    num::parse_u64_loose(arg).ok_or(Refusal::text(INVALID_CURSOR))
}

impl<'a> ScanOptions<'a> {
    /// `args` are those behind the cursor.
    ///
    /// COMPAT: a collection is looked up before these arguments are read, so that a missing key
    /// answers an empty walk whatever they are; test `scan_words_are_read_after_the_key`.
    pub fn parse(args: Args<'a>, scanned: Scanned) -> Result<Self, Refusal> {
        let mut options =
            ScanOptions { count: COUNT_DEFAULT, pattern: None, type_name: None, is_bare: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let option = arg.to_ascii_lowercase();
            match (option.as_slice(), scanned) {
                (b"novalues", Scanned::Hash) | (b"noscores", Scanned::Zset) => {
                    options.is_bare = true;
                    continue;
                }
                (b"novalues", _) => {
                    return Err(Refusal::text("ERR NOVALUES option can only be used in HSCAN"));
                }
                (b"noscores", _) => {
                    return Err(Refusal::text("ERR NOSCORES option can only be used in ZSCAN"));
                }
                _ => {}
            }
            let value = args.next().ok_or(Refusal::Syntax)?;
            match (option.as_slice(), scanned) {
                (b"count", _) => options.count = parse_count(value)?,
                (b"match", _) => options.pattern = Some(value),
                (b"type", Scanned::Keys) => options.type_name = Some(parse_type(value)?),
                _ => return Err(Refusal::Syntax),
            }
        }
        Ok(options)
    }
}

/// Keys that were found: what the reply begins with is known last.
#[derive(Debug, Default)]
pub(crate) struct Found {
    bytes: Vec<u8>,
    lens: Vec<u32>,
}

impl Found {
    pub fn with_room_for(count: u64) -> Self {
        let bytes = count.saturating_mul(KEY_BYTES_USUAL).min(FOUND_BYTES_MAX);
        let lens = (bytes / KEY_BYTES_USUAL) as usize;
        Found { bytes: Vec::with_capacity(bytes as usize), lens: Vec::with_capacity(lens) }
    }

    #[inline]
    pub fn add(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.lens.push(key.len() as u32);
    }

    pub fn write(self, reply: &mut dyn Sink) {
        reply.array(self.lens.len());
        let mut rest = self.bytes.as_slice();
        for len in self.lens {
            let (key, after) = rest.split_at(len as usize);
            reply.bulk(key);
            rest = after;
        }
    }
}

fn parse_count(arg: &[u8]) -> Result<u64, Refusal> {
    let count = num::parse_i64(arg).ok_or(Refusal::NotInteger)?;
    u64::try_from(count).ok().filter(|&count| count > 0).ok_or(Refusal::Syntax)
}

fn parse_type(arg: &[u8]) -> Result<&'static str, Refusal> {
    let mut names = Type::ALL.iter().map(|kind| kind.name());
    names
        .find(|name| name.as_bytes().eq_ignore_ascii_case(arg))
        .ok_or_else(|| Refusal::text(format!("ERR unknown type name '{}'", escape(arg))))
}
