//! A whole file, read from its first byte to its sum. What it holds goes to a [`Target`], key by
//! key; the target may have taken some of it when the file turns out to be broken.
//!
//! | part | form |
//! |---|---|
//! | head | `REDIS` and four digits of version, or `VALKEY` and three |
//! | body | operations by their number (see `kind`), keys among them: kind, key, value |
//! | end | 0xff, from version 5 on a CRC-64 of all before it; 0 if none was taken |

use super::RdbError;
use super::input::Input;
use super::skim::skim;
use super::stream::facts::StreamFacts;
use super::value::{self, Found, Loading, Rules};
use super::{Dialect, VERSION_REDIS_MAX, VERSION_VALKEY, kind, module, string};
use russet_base::{UnixMillis, num};
use russet_engine::access::NotedUse;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::NewValue;
use russet_engine::value::Object;
use std::io::Read;

/// Names of our auxiliary fields; see `save`.
pub(super) const AUX_ONCE: &[u8] = b"russet-once";
pub(super) const AUX_STREAM: &[u8] = b"russet-stream";
/// Everyone's, with what the data took in memory.
const AUX_MEMORY: &[u8] = b"used-mem";
/// The version of what a field about a request holds.
pub(super) const ONCE_VERSION: u64 = 1;

const HEAD_BYTES: usize = 9;
/// The first version with a sum at its end.
const VERSION_SUM: u16 = 5;

/// A key, and what is said of it.
#[derive(Clone, Copy, Debug)]
pub struct LoadedKey<'k> {
    pub db: usize,
    pub key: &'k [u8],
    pub expiry: Option<UnixMillis>,
    pub noted: Option<NotedUse>,
}

/// Who gets what a file holds. A reason that it gives ends the loading.
pub trait Target {
    fn databases(&self) -> usize;
    fn key(&mut self, key: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String>;
    /// Whether values are wanted as they stand in the file, as far as that is possible: to be read
    /// elsewhere, with a [`RawReader`]. What was loaded is counted there, too.
    fn wants_raw(&self) -> bool {
        false
    }
    fn raw(&mut self, _key: LoadedKey<'_>, _value: RawValue<'_>) -> Result<(), String> {
        Err("nobody reads values elsewhere".to_owned())
    }
    /// The source of a library of functions.
    fn function(&mut self, source: &[u8]) -> Result<(), String>;
    /// A request that ran once.
    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>);
    /// So many keys come in a database, as the file says: it may be wrong.
    fn expect(&mut self, _db: usize, _keys: u64) {}
    /// What the data took in the memory of who saved it.
    fn memory(&mut self, _bytes: u64) {}
    /// So many bytes have been read.
    fn progress(&mut self, _bytes: u64) {}
}

/// A value as it stands in a file.
#[derive(Clone, Copy, Debug)]
pub struct RawValue<'v> {
    pub kind: u8,
    pub dialect: Dialect,
    /// Its offset in the file.
    pub at: u64,
    pub bytes: &'v [u8],
}

/// What became of a value that was read elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawFound {
    Loaded,
    /// All fields of a hash are over.
    Expired,
    /// A collection of nothing.
    Empty,
}

/// Reads values that were taken as they stood.
pub struct RawReader<'b> {
    input: Input<&'b [u8]>,
    now: UnixMillis,
}

impl<'b> RawReader<'b> {
    /// For values whose sums were looked at, or will be.
    pub fn new(now: UnixMillis) -> Self {
        RawReader { input: Input::of_summed_values(), now }
    }

    /// Reads a value of this kind, and hands it to `put` if there is one. Errors have offsets
    /// in the value.
    pub fn read(
        &mut self,
        bytes: &'b [u8],
        (kind, dialect): (u8, Dialect),
        rules: &Rules,
        put: &mut dyn FnMut(NewValue<'_, Object>),
    ) -> Result<RawFound> {
        if kind == kind::STRING
            && let Some(text) = string::short(bytes)
        {
            put(text);
            return Ok(RawFound::Loaded);
        }
        self.input.restart(bytes);
        let loading = Loading { rules, now_ms: self.now.0, dialect, stream_facts: None };
        Ok(match value::read(&mut self.input, kind, &loading, put)? {
            Found::Value | Found::Shortened => RawFound::Loaded,
            Found::Expired => RawFound::Expired,
            Found::Empty => RawFound::Empty,
        })
    }
}

type Result<T, E = RdbError> = std::result::Result<T, E>;

#[derive(Clone, Copy)]
pub struct LoadOptions<'r> {
    pub rules: &'r Rules,
    pub now: UnixMillis,
    /// Whether the sum at the end is looked at.
    pub checks_sum: bool,
    /// Whether a version that is not known is tried.
    pub tries_any_version: bool,
}

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub version: u16,
    pub keys_loaded: u64,
    /// Keys whose time is over, hashes all of whose fields are: they are not loaded.
    pub keys_expired: u64,
    /// Keys of empty collections, which are not loaded either.
    pub keys_empty: u64,
    pub functions_loaded: u64,
    pub requests_loaded: u64,
    pub bytes: u64,
}

/// Loads a file.
pub fn load<R: Read>(
    source: R,
    options: LoadOptions<'_>,
    target: &mut dyn Target,
) -> Result<Report> {
    load_preamble(source, options, target).map(|(report, _)| report)
}

/// Loads what begins with a file, and gives back what follows it.
pub fn load_preamble<R: Read>(
    source: R,
    options: LoadOptions<'_>,
    target: &mut dyn Target,
) -> Result<(Report, impl Read + use<R>)> {
    let input = Input::new(source);
    let wants_raw = target.wants_raw();
    let mut loader = Loader {
        input,
        options,
        wants_raw,
        key: Vec::new(),
        target,
        dialect: Dialect::Redis,
        db: 0,
        facts: None,
        report: Report::default(),
    };
    loader.head()?;
    while loader.operation()? {}
    loader.report.bytes = loader.input.offset();
    Ok((loader.report, loader.input.into_rest()))
}

struct Loader<'l, R> {
    input: Input<R>,
    options: LoadOptions<'l>,
    target: &'l mut dyn Target,
    wants_raw: bool,
    /// Room for the key that is read.
    key: Vec<u8>,
    dialect: Dialect,
    db: usize,
    /// About the stream that comes next.
    facts: Option<StreamFacts>,
    report: Report,
}

impl<R: Read> Loader<'_, R> {
    fn head(&mut self) -> Result<()> {
        let head: [u8; HEAD_BYTES] = self.input.array()?;
        let (digits, dialect) = match &head {
            [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (&digits[..], Dialect::Redis),
            [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (&digits[..], Dialect::Valkey),
            _ => return Err(self.input.corrupt("it does not begin as an RDB file does")),
        };
        let version = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let version: u16 = version.ok_or_else(|| self.input.corrupt("a version of no number"))?;
        let is_known = match dialect {
            Dialect::Redis => (1..=VERSION_REDIS_MAX).contains(&version),
            Dialect::Valkey => version == VERSION_VALKEY,
        };
        if !is_known && !self.options.tries_any_version {
            return Err(self.input.unsupported(format!("version {version} of RDB")));
        }
        (self.dialect, self.report.version) = (dialect, version);
        Ok(())
    }

    /// Whether there may be another.
    fn operation(&mut self) -> Result<bool> {
        match self.input.byte()? {
            kind::OP_END => return self.end().map(|()| false),
            kind::OP_SELECT => self.select()?,
            kind::OP_RESIZE => {
                let keys = self.input.length()?;
                self.skip_lengths(1)?;
                self.target.expect(self.db, keys);
            }
            // Slot, keys, keys that expire.
            kind::OP_SLOT_INFO => self.skip_lengths(3)?,
            kind::OP_AUX => self.auxiliary()?,
            kind::OP_MODULE_AUX => {
                // The module, and when it wants to be told: a number, as a part of a value.
                self.skip_lengths(3)?;
                module::skip(&mut self.input)?;
            }
            kind::OP_FUNCTION => {
                let source = self.input.new_string()?;
                let loaded = self.target.function(&source);
                loaded.map_err(|reason| self.input.corrupt(reason))?;
                self.report.functions_loaded += 1;
            }
            kind::OP_FUNCTION_OLD => {
                return Err(self.input.unsupported("functions of Redis 7.0's candidates"));
            }
            first => self.key(first)?,
        }
        Ok(true)
    }

    fn skip_lengths(&mut self, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.input.length().map(drop))
    }

    fn select(&mut self) -> Result<()> {
        let db = self.input.length()?;
        let databases = self.target.databases();
        self.db = usize::try_from(db).ok().filter(|db| *db < databases).ok_or_else(|| {
            self.input.unsupported(format!("database {db}: there are {databases} (databases)"))
        })?;
        Ok(())
    }

    fn auxiliary(&mut self) -> Result<()> {
        let name = self.input.new_string()?;
        let value = self.input.new_string()?;
        // An error in a field of ours stands where the field ends.
        let mut field = Input::of_bytes(&value);
        let outcome = match name.as_slice() {
            AUX_STREAM => StreamFacts::read(&mut field).map(|facts| self.facts = Some(facts)),
            AUX_ONCE => self.request(&mut field),
            AUX_MEMORY => {
                self.target.memory(num::parse_u64(&value).unwrap_or(0));
                Ok(())
            }
            _ => Ok(()),
        };
        outcome.map_err(|error| RdbError { offset: self.input.offset(), ..error })
    }

    fn request(&mut self, field: &mut Input<&[u8]>) -> Result<()> {
        if field.length()? != ONCE_VERSION {
            return Err(field.unsupported("a request of ONCE in a later version"));
        }
        let db = field.length()?;
        let (id, digest) = (field.new_string()?, u128::from_le_bytes(field.array()?));
        let expires = UnixMillis(field.millis()?);
        let reply = field.new_string()?;
        let db = usize::try_from(db).ok().filter(|db| *db < self.target.databases());
        let db = db.ok_or_else(|| field.corrupt("a request of ONCE in no database"))?;
        if expires > self.options.now {
            self.target.request(db, &id, OnceRecord { digest, reply: &reply, expires });
            self.report.requests_loaded += 1;
        }
        Ok(())
    }

    /// A key from the first byte of what is said of it on.
    fn key(&mut self, first: u8) -> Result<()> {
        let (mut expiry, mut noted) = (None, None);
        let mut kind = first;
        loop {
            match kind {
                kind::OP_EXPIRY_MS => expiry = Some(UnixMillis(self.input.millis()?)),
                kind::OP_EXPIRY_SECONDS => {
                    let seconds = i32::from_le_bytes(self.input.array()?);
                    expiry = Some(UnixMillis(i64::from(seconds) * 1000));
                }
                kind::OP_IDLE => noted = Some(NotedUse::IdleSeconds(self.input.length()?)),
                kind::OP_FREQ => noted = Some(NotedUse::Count(self.input.byte()?)),
                kind::OP_REDIS_KEY_META if self.dialect == Dialect::Redis => self.skip_meta()?,
                _ => break,
            }
            kind = self.input.byte()?;
        }
        let mut key = std::mem::take(&mut self.key);
        self.input.string(&mut key)?;
        let is_over = expiry.is_some_and(|at| at <= self.options.now);
        let loaded = LoadedKey { db: self.db, key: &key, expiry, noted };
        if !self.wants_raw || !self.raw(kind, loaded, is_over)? {
            self.value(kind, loaded, is_over)?;
        }
        self.key = key;
        self.target.progress(self.input.offset());
        Ok(())
    }

    /// Hands a value over as it stands; false if that can't be done.
    fn raw(&mut self, kind: u8, key: LoadedKey<'_>, is_over: bool) -> Result<bool> {
        let (dialect, at) = (self.dialect, self.input.offset());
        let (is_passed, bytes) = self.input.capture(|input| skim(input, kind, dialect))?;
        if !is_passed {
            return Ok(false);
        }
        self.facts = None;
        if is_over {
            self.report.keys_expired += 1;
            return Ok(true);
        }
        let taken = self.target.raw(key, RawValue { kind, dialect, at, bytes });
        taken.map_err(|reason| self.input.corrupt(reason))?;
        Ok(true)
    }

    fn value(&mut self, kind: u8, key: LoadedKey<'_>, is_over: bool) -> Result<()> {
        let facts = self.facts.take();
        let loading = Loading {
            rules: self.options.rules,
            now_ms: self.options.now.0,
            dialect: self.dialect,
            stream_facts: facts.as_ref(),
        };
        let mut taken = Ok(());
        let target = &mut *self.target;
        let found = value::read(&mut self.input, kind, &loading, &mut |value| {
            if !is_over {
                taken = target.key(key, value);
            }
        })?;
        taken.map_err(|reason| self.input.corrupt(reason))?;
        match found {
            Found::Value | Found::Shortened if is_over => self.report.keys_expired += 1,
            Found::Value | Found::Shortened => self.report.keys_loaded += 1,
            Found::Empty => self.report.keys_empty += 1,
            Found::Expired => self.report.keys_expired += 1,
        }
        Ok(())
    }

    /// What modules of Redis 8 know of a key: its number, then for each a type and a value.
    fn skip_meta(&mut self) -> Result<()> {
        for _ in 0..self.input.length()? {
            self.input.array::<4>()?;
            module::skip(&mut self.input)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.report.version < VERSION_SUM {
            return Ok(());
        }
        let found = self.input.sum();
        let said = u64::from_le_bytes(self.input.array()?);
        if said != 0 && said != found && self.options.checks_sum {
            return Err(self.input.corrupt(format!("the sum is {found:016x}, not {said:016x}")));
        }
        Ok(())
    }
}
