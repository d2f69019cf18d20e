//! The arguments of XREAD and XREADGROUP.

use super::{integer, integer_or, record};
use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, UnixMillis, num};
use russet_catalog::Command;

/// On whose behalf a group is read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub group: &'a [u8],
    pub consumer: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The same, of one of its streams.
    pub fn of(&self, key: &'a [u8]) -> record::Reader<'a> {
        record::Reader { key, group: self.group, consumer: self.consumer }
    }
}

/// What BLOCK said.
#[derive(Clone, Copy)]
pub enum Block {
    /// It was not given.
    No,
    For(i64),
}

#[derive(Clone, Copy)]
pub struct ReadCall<'a> {
    pub reader: Option<Reader<'a>>,
    /// Most entries of each stream.
    pub count: Option<u64>,
    /// Most entries of all streams.
    pub count_total: Option<u64>,
    /// No further entry once the reply has so many bytes.
    pub bytes_max: Option<u64>,
    pub block: Block,
    pub acknowledges: bool,
    /// Take over what has been pending for so long.
    pub claim_idle_ms: Option<i64>,
    args: Args<'a>,
    /// The argument of the first key.
    pub streams_at: usize,
}

impl<'a> ReadCall<'a> {
    pub fn streams_len(&self) -> usize {
        (self.args.len() - self.streams_at) / 2
    }

    pub fn key(&self, index: usize) -> &'a [u8] {
        self.args.at(self.streams_at + index)
    }

    pub fn id_arg(&self, index: usize) -> &'a [u8] {
        self.args.at(self.id_at(index))
    }

    /// Which argument is the ID of a stream.
    pub fn id_at(&self, index: usize) -> usize {
        self.streams_at + self.streams_len() + index
    }

    pub fn parse(args: Args<'a>, command: Command, now: UnixMillis) -> Result<Self, Refusal> {
        let reads_group = command == Command::Xreadgroup;
        let mut call = ReadCall {
            reader: None,
            count: None,
            count_total: None,
            bytes_max: None,
            block: Block::No,
            acknowledges: true,
            claim_idle_ms: None,
            args,
            streams_at: 0,
        };
        let mut at = 1;
        while at < args.len() && call.streams_at == 0 {
            at = call.take(at, reads_group, now)?;
        }
        if call.streams_at == 0 {
            return Err(Refusal::Syntax);
        }
        if reads_group && call.reader.is_none() {
            return Err(Refusal::text("ERR Missing GROUP option for XREADGROUP"));
        }
        if call.count_total.is_some_and(|total| call.count.is_some_and(|count| total < count)) {
            return Err(Refusal::text("ERR MAXCOUNT must be greater than or equal to COUNT"));
        }
        Ok(call)
    }

    /// Reads the option at `at`, and gives the argument behind it.
    fn take(&mut self, at: usize, reads_group: bool, now: UnixMillis) -> Result<usize, Refusal> {
        let args = self.args;
        let named = |name: &[u8]| eq_ignore_case(args.at(at), name);
        let only_group = |option: &str| match reads_group {
            true => Ok(()),
            false => Err(Refusal::text(format!(
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ))),
        };
        if named(b"noack") {
            only_group("NOACK")?;
            self.acknowledges = false;
            return Ok(at + 1);
        }
        let value = args.get(at + 1).ok_or(Refusal::Syntax)?;
        if named(b"streams") {
            self.streams_at = at + 1;
            if (args.len() - at - 1) % 2 == 1 {
                return Err(unbalanced(reads_group));
            }
        } else if named(b"block") {
            self.block = Block::For(block_ms(value, now)?);
        } else if named(b"count") {
            self.count = u64::try_from(integer(value)?).ok().filter(|count| *count > 0);
        } else if named(b"maxcount") {
            self.count_total = Some(positive(value, "ERR MAXCOUNT must be a positive integer")?);
        } else if named(b"maxsize") {
            self.bytes_max = Some(positive(value, "ERR MAXSIZE must be a positive integer")?);
        } else if named(b"claim") {
            only_group("CLAIM")?;
            let text = "ERR min-idle-time is not an integer or out of range";
            let idle_ms = integer_or(value, text)?;
            if idle_ms < 0 {
                return Err(Refusal::text("ERR min-idle-time must be a positive integer"));
            }
            self.claim_idle_ms = Some(idle_ms);
        } else if named(b"group") {
            let consumer = args.get(at + 2).ok_or(Refusal::Syntax)?;
            only_group("GROUP")?;
            self.reader = Some(Reader { group: value, consumer });
            return Ok(at + 3);
        } else {
            return Err(Refusal::Syntax);
        }
        Ok(at + 2)
    }
}

fn unbalanced(reads_group: bool) -> Refusal {
    let (name, symbol) = if reads_group { ("xreadgroup", '>') } else { ("xread", '$') };
    Refusal::text(format!(
        "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{symbol}' must be \
         specified."
    ))
}

fn positive(arg: &[u8], refusal: &'static str) -> Result<u64, Refusal> {
    u64::try_from(integer(arg)?).ok().filter(|value| *value > 0).ok_or(Refusal::text(refusal))
}

/// A timeout in milliseconds; 0 is for ever.
fn block_ms(arg: &[u8], now: UnixMillis) -> Result<i64, Refusal> {
    let text = "ERR timeout is not an integer or out of range";
    match num::parse_i64(arg).ok_or(Refusal::text(text))? {
        ..0 => Err(Refusal::TimeoutNegative),
        ms if now.0.checked_add(ms).is_none() => Err(Refusal::text("ERR timeout is out of range")),
        ms => Ok(ms),
    }
}
