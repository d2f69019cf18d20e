//! What a user did wrong, and the common texts that say so on the wire.

use russet_engine::value::WrongType;
use std::borrow::Cow;

/// A refused command. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Syntax,
    WrongType,
    NotInteger,
    NotFloat,
    NotPositive,
    NoSuchKey,
    IndexOutOfRange,
    TimeoutNotFloat,
    TimeoutNegative,
    InvalidExpire(&'static str),
    /// The name of a command, in lower case, called with too few or too many arguments.
    Arity(&'static str),
    NoAuth,
    WrongPass,
    OutOfMemory,
    DbIndexOutOfRange,
    Overflow,
    // string
    DecrementOverflow,
    NotFinite,
    StringTooLong,
    BadDigest,
    // connection
    BeyondInt32,
    ClientName,
    // bitmap
    BadBitOffset,
    BadBit,
    BadFieldType,
    // stream
    InvalidStreamId,
    // hyperloglog
    NotHyperLogLog,
    CorruptHyperLogLog,
    /// The data is not all there yet.
    Loading,
    /// The log can't be written, and why.
    LogFailed(String),
    /// Snapshots fail.
    SaveFailed,
    /// Any other text, its code included.
    Text(Cow<'static, str>),
    /// The error of a command that a script called: it was counted there.
    Counted(String),
}

impl Refusal {
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Refusal::Text(text.into())
    }

    /// The text after `-` on the wire.
    pub fn wire(&self) -> Cow<'static, str> {
        let text: &'static str = match self {
            Refusal::Syntax => "ERR syntax error",
            Refusal::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            Refusal::NotInteger => "ERR value is not an integer or out of range",
            Refusal::NotFloat => "ERR value is not a valid float",
            Refusal::NotPositive => "ERR value is out of range, must be positive",
            Refusal::NoSuchKey => "ERR no such key",
            Refusal::IndexOutOfRange => "ERR index out of range",
            Refusal::TimeoutNotFloat => "ERR timeout is not a float or out of range",
            Refusal::TimeoutNegative => "ERR timeout is negative",
            Refusal::NoAuth => "NOAUTH Authentication required.",
            Refusal::WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
            Refusal::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Refusal::DbIndexOutOfRange => "ERR DB index is out of range",
            Refusal::Overflow => "ERR increment or decrement would overflow",
            Refusal::DecrementOverflow => "ERR decrement would overflow",
            Refusal::NotFinite => "ERR increment would produce NaN or Infinity",
            Refusal::StringTooLong => {
                "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
            }
            Refusal::BadDigest => "ERR must be exactly 16 hexadecimal characters",
            Refusal::BeyondInt32 => {
                "ERR value is out of range, value must between -2147483648 and 2147483647"
            }
            Refusal::ClientName => {
                "ERR Client names cannot contain spaces, newlines or special characters."
            }
            Refusal::BadBitOffset => "ERR bit offset is not an integer or out of range",
            Refusal::BadBit => "ERR bit is not an integer or out of range",
            Refusal::BadFieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is."
            }
            Refusal::InvalidStreamId => {
                "ERR Invalid stream ID specified as stream command argument"
            }
            Refusal::NotHyperLogLog => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Refusal::Loading => "LOADING Redis is loading the dataset in memory",
            Refusal::SaveFailed => {
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
                 persist to disk. Commands that may modify the data set are disabled, because this \
                 instance is configured to report errors during writes if RDB snapshotting fails \
                 (stop-writes-on-bgsave-error option). Please check the Redis logs for details \
                 about the RDB error."
            }
            Refusal::CorruptHyperLogLog => "INVALIDOBJ Corrupted HLL object detected",
            Refusal::InvalidExpire(command) => {
                return format!("ERR invalid expire time in '{command}' command").into();
            }
            Refusal::Arity(command) => {
                return format!("ERR wrong number of arguments for '{command}' command").into();
            }
            Refusal::LogFailed(why) => {
                return format!("MISCONF Errors writing to the AOF file: {why}").into();
            }
            Refusal::Text(text) => return text.clone(),
            Refusal::Counted(text) => return text.clone().into(),
        };
        text.into()
    }
}

impl From<WrongType> for Refusal {
    fn from(_: WrongType) -> Self {
        Refusal::WrongType
    }
}
