//! Records in the store.

use super::field::{Fault, Field, Number, RawFields, Reason};
use super::{FieldInfo, Record, View};
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::{Envelope, Reply};
use crate::retry::RequestId;
use crate::spread::check_ttl;
use crate::step::{Safe, Step, WithRequestId};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The most bytes of a record.
const BYTES_MAX: u32 = 1 << 20;

pub(super) static WRITE: Step<WithRequestId> = Step::new("object_write", include_str!("write.lua"));
pub(super) static LOAD: Step<Safe> = Step::read_only("object_load", include_str!("load.lua"));
pub(super) static INCREMENT: Step<WithRequestId> =
    Step::new("object_increment", include_str!("increment.lua"));
pub(super) static TOUCH: Step<Safe> = Step::new("object_touch", include_str!("touch.lua"));
pub(super) static REMOVE: Step<Safe> = Step::new("object_remove", include_str!("remove.lua"));

/// What bounds a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectSettings {
    /// How long it lives after it was written whole, or touched. Updates of parts do not prolong
    /// it.
    pub ttl: Duration,
    /// How many bytes its names and values have at most.
    pub bytes_max: u32,
}

/// A record, or a view of it, as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Found<V> {
    /// Migrated to the present schema.
    pub value: V,
    /// Raised by every change.
    pub version: u64,
    /// What it was written with.
    pub schema: u32,
    /// By the server's clock, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it was changed last, by the same clock.
    pub updated_at_ms: i64,
    /// How long it is still kept.
    pub expires_in: Duration,
}

/// Says nothing of the value.
impl<V> fmt::Debug for Found<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Found");
        shown.field("version", &self.version).field("schema", &self.schema);
        shown.finish_non_exhaustive()
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Loaded<V> {
    /// It is there.
    Found(Found<V>),
    /// There is none, or no longer.
    Missing,
    /// Something is there that can't be read as this type.
    Corrupt(Fault),
}

impl<V> Loaded<V> {
    /// The value, if it was found.
    pub fn into_value(self) -> Option<V> {
        match self {
            Loaded::Found(found) => Some(found.value),
            Loaded::Missing | Loaded::Corrupt(_) => None,
        }
    }
}

/// Which version an update is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Any,
    /// The one that was read.
    Version(u64),
}

/// What became of a new record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Created {
    /// By this call, or by the same request before.
    Created,
    /// There is one already.
    Exists {
        /// Of that one.
        version: u64,
    },
}

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Updated {
    /// It was changed.
    Updated {
        /// After the change.
        version: u64,
    },
    /// There is no such record: none was made.
    Missing,
    /// It has changed since it was read: this is its version now.
    Conflict {
        /// To be read again before the next attempt.
        version: u64,
    },
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Newer {
    /// It is the newest.
    Stored {
        /// Of the record, not of the source.
        version: u64,
    },
    /// The store has a copy of this version of the source, or of a newer one.
    Stale {
        /// Of the copy that is there.
        source_version: u64,
    },
}

/// What became of an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Incremented {
    /// It was added.
    Done {
        /// After the addition.
        value: i64,
        /// Of the record, after the change.
        version: u64,
    },
    /// There is no such record: none was made.
    Missing,
    /// It would leave the bounds of its type: it stays as it is.
    OutOfBounds {
        /// As it is.
        value: i64,
    },
    /// What is stored is no number.
    Corrupt,
}

/// What became of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Upgraded {
    /// It was written in the present schema.
    Upgraded {
        /// After the change.
        version: u64,
    },
    /// It has the present schema, or a newer one.
    Current,
    /// There is no such record.
    Missing,
    /// It can't be read, and stays as it is.
    Corrupt(Fault),
    /// Others changed it meanwhile: call again.
    Conflict,
}

stats! {
    /// What a handle has seen in this process.
    ObjectStats counted by Counts {
        /// Loads that found a record.
        found,
        /// Loads that found none.
        missing,
        /// Loads that found what could not be read.
        corrupt,
        /// Records of an older schema, which were migrated as they were read.
        old_schema,
        /// Records that were created, put or copied.
        stored,
        /// Records that were not created, for they were there.
        exists,
        /// Copies that were not stored, for they were too old.
        stale,
        /// Updates and increments that were made.
        updated,
        /// Updates that were refused because the record had changed.
        conflicts,
        /// Times that a TTL was renewed.
        refreshed,
        /// Records that were removed.
        removed,
    }
}

/// Records of one type, by id. See the [module](super).
#[derive(Debug)]
pub struct Objects<R> {
    kit: Kit,
    settings: ObjectSettings,
    counts: Counts,
    of: PhantomData<fn() -> R>,
}

/// How a record is written.
struct Write {
    mode: &'static str,
    /// A version, or nothing.
    expected: String,
    renews: bool,
}

impl<R: Record> Objects<R> {
    /// Records by these settings. Refuses a TTL of zero and bounds that make no sense.
    pub fn new(kit: &Kit, settings: ObjectSettings) -> Result<Self> {
        check_ttl("ttl", settings.ttl)?;
        if settings.bytes_max == 0 || settings.bytes_max > BYTES_MAX {
            return Err(Error::invalid(format!("bytes_max must be 1 to {BYTES_MAX}")));
        }
        Ok(Objects { kit: kit.clone(), settings, counts: Counts::default(), of: PhantomData })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> ObjectStats {
        self.counts.stats()
    }

    /// Stores a record that is not there yet.
    pub async fn create(
        &self,
        id: impl Into<Scope>,
        record: &R,
        request: Option<&RequestId>,
    ) -> Result<Created> {
        let write = Write { mode: "CREATE", expected: String::new(), renews: true };
        let envelope = self.write(id.into(), record, write, request).await?;
        match envelope.status() {
            "OK" => {
                self.counts.stored.add(1);
                Ok(Created::Created)
            }
            "EXISTS" => {
                self.counts.exists.add(1);
                Ok(Created::Exists { version: envelope.count("version")? })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Stores a record, whatever was there, and returns its version.
    pub async fn put(
        &self,
        id: impl Into<Scope>,
        record: &R,
        request: Option<&RequestId>,
    ) -> Result<u64> {
        let write = Write { mode: "PUT", expected: String::new(), renews: true };
        let version = self.write(id.into(), record, write, request).await?.count("version")?;
        self.counts.stored.add(1);
        Ok(version)
    }

    /// Stores a copy of something whose versions are counted elsewhere, unless the store has a
    /// newer one: a slow reader of the source does no harm.
    pub async fn put_newer(
        &self,
        id: impl Into<Scope>,
        record: &R,
        source_version: u64,
    ) -> Result<Newer> {
        let expected = source_version.to_string();
        let write = Write { mode: "NEWER", expected, renews: true };
        let envelope = self.write(id.into(), record, write, None).await?;
        match envelope.status() {
            "OK" => {
                self.counts.stored.add(1);
                Ok(Newer::Stored { version: envelope.count("version")? })
            }
            "STALE" => {
                self.counts.stale.add(1);
                Ok(Newer::Stale { source_version: envelope.count("source_version")? })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Reads the whole record.
    pub async fn load(&self, id: impl Into<Scope>) -> Result<Loaded<R>> {
        self.load_view::<R>(id).await
    }

    /// Reads some fields of a record, and no others.
    pub async fn load_view<V: View<R>>(&self, id: impl Into<Scope>) -> Result<Loaded<V>> {
        let Some((about, fields)) = self.read(id.into(), V::FIELDS).await? else {
            self.counts.missing.add(1);
            observe::count("redis.object.find.miss.count", R::PURPOSE, 1);
            return Ok(Loaded::Missing);
        };
        observe::count("redis.object.find.count", R::PURPOSE, 1);
        if about.int("schema").is_ok_and(|schema| (0..i64::from(R::SCHEMA)).contains(&schema)) {
            self.counts.old_schema.add(1);
            observe::count("redis.object.schema.old.count", R::PURPOSE, 1);
        }
        let loaded = decode::<R, V>(about, fields);
        if let Loaded::Corrupt(fault) = &loaded {
            let (object, field) = (R::PURPOSE, fault.field);
            tracing::warn!(object, field, "a stored record can't be read");
            self.counts.corrupt.add(1);
            observe::count("redis.object.find.corrupt.count", R::PURPOSE, 1);
        } else {
            self.counts.found.add(1);
        }
        Ok(loaded)
    }

    /// Reads a copy, and makes it anew if it is missing or corrupt. `rebuild` returns the record
    /// and the version of its source. What it returned is the result even if the store has a newer
    /// one.
    pub async fn load_or_rebuild<F>(
        &self,
        id: impl Into<Scope>,
        rebuild: impl FnOnce() -> F,
    ) -> Result<R>
    where
        F: Future<Output = Result<(R, u64)>>,
    {
        let id = id.into();
        if let Loaded::Found(found) = self.load(&id).await? {
            return Ok(found.value);
        }
        let (record, source_version) = rebuild().await?;
        let _stored = self.put_newer(&id, &record, source_version).await?;
        Ok(record)
    }

    /// Writes the fields of a view into a record that is there, all or none.
    pub async fn update<V: View<R>>(
        &self,
        id: impl Into<Scope>,
        expected: Expected,
        view: &V,
        request: Option<&RequestId>,
    ) -> Result<Updated> {
        let expected = match expected {
            Expected::Any => String::new(),
            Expected::Version(version) => version.to_string(),
        };
        let write = Write { mode: "UPDATE", expected, renews: false };
        let envelope = self.write(id.into(), view, write, request).await?;
        let updated = updated(&envelope)?;
        match updated {
            Updated::Updated { .. } => self.counts.updated.add(1),
            Updated::Missing => self.counts.missing.add(1),
            Updated::Conflict { .. } => self.counts.conflicts.add(1),
        }
        Ok(updated)
    }

    /// Adds to a number of a record that is there. A field with a TTL of its own that is over
    /// counts from nothing, for that TTL.
    pub async fn increment<N: Number>(
        &self,
        id: impl Into<Scope>,
        field: Field<R, N>,
        by: i64,
        request: Option<&RequestId>,
    ) -> Result<Incremented> {
        let keys = self.keys(id.into())?;
        let call = self.kit.step_of_request(&INCREMENT, &keys, request);
        let call = call.key(keys.key("record")).arg(field.info().name).arg(by);
        let field_ttl_ms = field.info().ttl_ms.unwrap_or(0);
        let envelope = call.arg(N::LEAST).arg(N::MOST).arg(field_ttl_ms).run().await?;
        match envelope.status() {
            "OK" => {
                self.counts.updated.add(1);
                let (value, version) = (envelope.int("value")?, envelope.count("version")?);
                Ok(Incremented::Done { value, version })
            }
            "MISSING" => {
                self.counts.missing.add(1);
                Ok(Incremented::Missing)
            }
            "BOUND" => Ok(Incremented::OutOfBounds { value: envelope.int("value")? }),
            "CORRUPT" => {
                self.counts.corrupt.add(1);
                Ok(Incremented::Corrupt)
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Gives a record its TTL again if less than a quarter of it is left; whether it is there.
    pub async fn touch(&self, id: impl Into<Scope>) -> Result<bool> {
        let call = self.kit.step(&TOUCH).key(self.keys(id.into())?.key("record"));
        let envelope = call.arg(self.settings.ttl).run().await?;
        if envelope.is("RENEWED") {
            self.counts.refreshed.add(1);
            observe::count("redis.object.ttl.refresh.count", R::PURPOSE, 1);
        }
        Ok(!envelope.is("MISSING"))
    }

    /// Removes a record; whether it was there.
    pub async fn remove(&self, id: impl Into<Scope>) -> Result<bool> {
        let call = self.kit.step(&REMOVE).key(self.keys(id.into())?.key("record"));
        let was_there = call.run().await?.is("REMOVED");
        self.counts.removed.add(u64::from(was_there));
        Ok(was_there)
    }

    /// Writes a record of an older schema with the present one, unless it changes meanwhile. For a
    /// background task that goes over all ids, so that old names can be given up.
    pub async fn upgrade(&self, id: impl Into<Scope>) -> Result<Upgraded> {
        let id = id.into();
        let found = match self.load(&id).await? {
            Loaded::Found(found) if found.schema >= R::SCHEMA => return Ok(Upgraded::Current),
            Loaded::Found(found) => found,
            Loaded::Missing => return Ok(Upgraded::Missing),
            Loaded::Corrupt(fault) => return Ok(Upgraded::Corrupt(fault)),
        };
        let expected = Expected::Version(found.version);
        Ok(match self.update(&id, expected, &found.value, None).await? {
            Updated::Updated { version } => Upgraded::Upgraded { version },
            Updated::Missing => Upgraded::Missing,
            Updated::Conflict { .. } => Upgraded::Conflict,
        })
    }

    pub(super) fn keys(&self, id: Scope) -> Result<Keys> {
        self.kit.keys(Family { purpose: R::PURPOSE, version: R::LAYOUT }, id)
    }

    async fn write<V: View<R>>(
        &self,
        id: Scope,
        view: &V,
        write: Write,
        request: Option<&RequestId>,
    ) -> Result<Envelope> {
        let mut fields = RawFields::default();
        view.encode(&mut fields);
        if fields.bytes() > self.settings.bytes_max as usize {
            let most = self.settings.bytes_max;
            return Err(Error::invalid(format!("a record is over {most} bytes")));
        }
        let keys = self.keys(id)?;
        let is_repeatable = matches!(write.mode, "PUT" | "NEWER") && request.is_none();
        let call = match is_repeatable {
            // The version would be raised twice.
            true => self.kit.step_of_own_request(&WRITE, &keys),
            false => self.kit.step_of_request(&WRITE, &keys, request),
        };
        let call = call.key(keys.key("record")).arg(write.mode).arg(write.expected);
        let call = call.arg(self.settings.ttl).arg(if write.renews { "RENEW" } else { "KEEP" });
        let set = fields.iter().filter(|(_, value)| value.is_some()).count();
        let mut call = call.arg(R::SCHEMA).arg(set);
        for (name, value) in fields.iter() {
            let Some(value) = value else { continue };
            let info = V::FIELDS.iter().find(|info| info.name == name || info.was.contains(&name));
            let ttl_ms = info.and_then(|info| info.ttl_ms).unwrap_or(0);
            call = call.arg(name).arg(value).arg(ttl_ms);
        }
        let removed = fields.iter().filter(|(_, value)| value.is_none());
        removed.fold(call, |call, (name, _)| call.arg(name)).run().await
    }

    /// What is known of a record and some of its fields. None if it is not there.
    async fn read(
        &self,
        id: Scope,
        infos: &'static [FieldInfo],
    ) -> Result<Option<(Envelope, RawFields)>> {
        let names: Vec<(&'static str, bool)> = infos
            .iter()
            .flat_map(|info| {
                let has_ttl = info.ttl_ms.is_some();
                [info.name].into_iter().chain(info.was.iter().copied()).map(move |it| (it, has_ttl))
            })
            .collect();
        let call = self.kit.step(&LOAD).key(self.keys(id)?.key("record"));
        let call = names.iter().fold(call, |call, (name, has_ttl)| call.arg(*name).arg(*has_ttl));
        let mut envelope = call.run().await?;
        if envelope.is("MISSING") {
            return Ok(None);
        }
        let mut fields = RawFields::default();
        for ((name, _), value) in names.into_iter().zip(envelope.list("values")?) {
            if let Some(value) = value.into_bytes()? {
                fields.set(name, value);
            }
        }
        observe::size("redis.object.payload.bytes", R::PURPOSE, fields.bytes());
        if envelope.field("ttl_ms").and_then(Reply::as_int) == Some(-1) {
            observe::ttl_missing(R::PURPOSE);
        }
        Ok(Some((envelope, fields)))
    }
}

fn decode<R: Record, V: View<R>>(about: Envelope, mut fields: RawFields) -> Loaded<V> {
    let known = |name: &'static str| {
        let number = about.int(name).ok().filter(|number| *number >= 0);
        number.ok_or(Fault { field: name, reason: Reason::Missing })
    };
    let mut read = || {
        let schema = u32::try_from(known("schema")?);
        let schema = schema.map_err(|_| Fault { field: "schema", reason: Reason::Unreadable })?;
        if schema < R::SCHEMA {
            R::migrate(schema, &mut fields)?;
        }
        // Versions and times are not negative.
        let version = known("version")? as u64;
        let (created_at_ms, updated_at_ms) = (known("created_at_ms")?, known("updated_at_ms")?);
        let expires_in = Duration::from_millis(known("ttl_ms")? as u64);
        let value = V::decode(&fields)?;
        Ok(Found { value, version, schema, created_at_ms, updated_at_ms, expires_in })
    };
    match read() {
        Ok(found) => Loaded::Found(found),
        Err(fault) => Loaded::Corrupt(fault),
    }
}

pub(super) fn updated(envelope: &Envelope) -> Result<Updated> {
    match envelope.status() {
        "OK" => Ok(Updated::Updated { version: envelope.count("version")? }),
        "MISSING" => Ok(Updated::Missing),
        "CONFLICT" => Ok(Updated::Conflict { version: envelope.count("version")? }),
        _ => Err(envelope.unexpected()),
    }
}
