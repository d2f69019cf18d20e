//! Objects that are found by a value of theirs. Object and index change in one step, and what has
//! run out is in neither.

use super::{FAMILY, FIELDS_MAX, checked_ttl};
use crate::error::{Error, Result};
use crate::key::{Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe::stats;
use crate::reply::Reply;
use crate::request::Request;
use crate::retry::RequestId;
use crate::step::{Safe, Step, WithRequestId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static PUT: Step<WithRequestId> =
    Step::new("state_index_put", include_str!("index_put.lua"));
pub(super) static REMOVE: Step<Safe> =
    Step::new("state_index_remove", include_str!("index_remove.lua"));
pub(super) static FIND: Step<Safe> =
    Step::read_only("state_index_find", include_str!("index_find.lua"));
pub(super) static SWEEP: Step<Safe> =
    Step::new("state_index_sweep", include_str!("index_sweep.lua"));

const OBJECTS_MAX: u32 = 1_000_000;
const PAGE_MAX: u32 = 1000;
const VERSION: &str = "version";

/// What came of storing an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// Object and index are changed together.
    Stored {
        /// After the change.
        version: u64,
    },
    /// It has another version than expected; 0 if it is not there.
    Stale {
        /// As it is.
        version: u64,
    },
    /// There are as many as may be.
    Full,
}

/// Some of the objects with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In order.
    pub ids: Vec<Vec<u8>>,
    /// Where the next page begins; None at the end.
    pub next: Option<Vec<u8>>,
}

/// What a sweep has removed, and what it has left for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Objects that had expired.
    pub removed: u64,
    /// Objects that have, and are not removed yet.
    pub left: u64,
}

/// An object with an indexed value, to be stored.
#[must_use]
pub struct Object<'a> {
    id: &'a [u8],
    value: &'a [u8],
    fields: Vec<(&'a str, Vec<u8>)>,
    version: Option<u64>,
}

impl<'a> Object<'a> {
    /// An object that will be found by this value.
    pub fn new<I, V>(id: &'a I, value: &'a V) -> Self
    where
        I: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        Object { id: id.as_ref(), value: value.as_ref(), fields: Vec::new(), version: None }
    }

    /// With a field beside the indexed value.
    pub fn set(mut self, field: &'a str, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((field, value.as_ref().to_vec()));
        self
    }

    /// Only if it still has the version that one has read.
    pub fn at_version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }
}

/// Says nothing of its content.
impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} fields)", self.fields.len())
    }
}

stats! {
    /// What a handle and its clones have seen in this process.
    IndexedStats counted by Counts {
        /// Objects that were stored, with their index.
        stored,
        /// Objects that were not stored, for they had another version than expected.
        stale,
        /// Objects that were not stored, for there were as many as may be.
        rejected,
        /// Objects that were removed by hand.
        removed,
        /// Entries of objects whose time was over, removed by sweeps.
        swept,
    }
}

/// Objects of one scope, each with one indexed value: the sessions of a tenant by user, its orders
/// by status.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::state::{Indexed, Object};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let exports = Indexed::new(&kit, "acme", Duration::from_secs(3600), 1000)?;
/// let _ = exports.put(Object::new("e1", "running").set("rows", "10"), None).await?;
/// let _ = exports.put(Object::new("e1", "done").set("rows", "99"), None).await?;
/// assert!(exports.find("running", None, 10).await?.ids.is_empty());
/// assert_eq!(exports.find("done", None, 10).await?.ids, [b"e1"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Indexed {
    kit: Kit,
    keys: Keys,
    ttl: Duration,
    objects_max: u32,
    counts: Arc<Counts>,
}

impl Indexed {
    /// `ttl` is how long an object lives from when it is stored.
    pub fn new(
        kit: &Kit,
        scope: impl Into<Scope>,
        ttl: Duration,
        objects_max: u32,
    ) -> Result<Self> {
        if objects_max == 0 || objects_max > OBJECTS_MAX {
            return Err(Error::invalid(format!("objects_max must be 1 to {OBJECTS_MAX}")));
        }
        let (keys, ttl) = (kit.keys(FAMILY, scope)?, checked_ttl(ttl)?);
        Ok(Indexed { kit: kit.clone(), keys, ttl, objects_max, counts: Arc::default() })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> IndexedStats {
        self.counts.stats()
    }

    fn object(&self, id: &[u8]) -> Key {
        self.keys.item("object", id)
    }

    /// Stores an object in place of the one with its id. In the index it stands once.
    pub async fn put(&self, object: Object<'_>, request: Option<&RequestId>) -> Result<Put> {
        if object.fields.len() > FIELDS_MAX {
            return Err(Error::invalid(format!("an object has at most {FIELDS_MAX} fields")));
        }
        if object.fields.iter().any(|(field, _)| *field == VERSION) {
            return Err(Error::invalid("the version of an object is counted by itself"));
        }
        if object.version == Some(0) {
            return Err(Error::invalid("versions begin at 1"));
        }
        let call = self.kit.step_of_request(&PUT, &self.keys, request);
        let mut call = call.key(self.object(object.id));
        for part in ["index", "values", "deadlines"] {
            call = call.key(self.keys.key(part));
        }
        call = call.about(object.id).arg(object.value).arg(self.ttl).arg(self.objects_max);
        call = call.arg(object.version.unwrap_or(0));
        for (field, value) in &object.fields {
            call = call.arg(*field).arg(value);
        }
        let envelope = call.run().await?;
        let (put, counter) = match envelope.status() {
            "STORED" => (Put::Stored { version: envelope.count("version")? }, &self.counts.stored),
            "STALE" => (Put::Stale { version: envelope.count("version")? }, &self.counts.stale),
            "FULL" => (Put::Full, &self.counts.rejected),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(put)
    }

    /// The fields of an object and its version.
    pub async fn load(
        &self,
        id: impl AsRef<[u8]>,
    ) -> Result<Option<(u64, BTreeMap<String, Vec<u8>>)>> {
        let request = Request::new("HGETALL").key(&self.object(id.as_ref()));
        let mut items = self.kit.call_safe(&request).await?.into_list()?.into_iter();
        let mut fields = BTreeMap::new();
        while let (Some(name), Some(value)) = (items.next(), items.next()) {
            let name = String::from_utf8(name.into_bytes()?.unwrap_or_default());
            let name = name.map_err(|_bytes| Error::Corrupt("the name of a field".into()))?;
            fields.insert(name, value.into_bytes()?.unwrap_or_default());
        }
        if fields.is_empty() {
            return Ok(None);
        }
        let version = fields.remove(VERSION).and_then(|text| String::from_utf8(text).ok());
        let version = version.and_then(|text| text.parse().ok());
        let version = version.ok_or_else(|| Error::Corrupt("object: version".into()))?;
        Ok(Some((version, fields)))
    }

    /// Removes an object; whether it was there.
    pub async fn remove(&self, id: impl AsRef<[u8]>) -> Result<bool> {
        let mut call = self.kit.step(&REMOVE).key(self.object(id.as_ref()));
        for part in ["index", "values", "deadlines"] {
            call = call.key(self.keys.key(part));
        }
        let envelope = call.arg(id.as_ref()).run().await?;
        match envelope.status() {
            "REMOVED" => {
                self.counts.removed.add(1);
                Ok(true)
            }
            "MISSING" => Ok(false),
            _ => Err(envelope.unexpected()),
        }
    }

    /// The objects with this value, up to 1,000 in a page.
    pub async fn find(
        &self,
        value: impl AsRef<[u8]>,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Page> {
        if limit == 0 || limit > PAGE_MAX {
            return Err(Error::invalid(format!("limit must be between 1 and {PAGE_MAX}")));
        }
        let call = self.kit.step(&FIND).key(self.keys.key("index")).key(self.keys.key("deadlines"));
        let call = call.arg(value.as_ref()).arg(after.unwrap_or_default()).arg(limit);
        let mut envelope = call.run().await?;
        let ids = envelope.list("ids")?.into_iter().map(Reply::into_bytes);
        let ids: Result<Vec<Option<Vec<u8>>>> = ids.collect();
        let next = envelope.text("next")?;
        Ok(Page {
            ids: ids?.into_iter().flatten().collect(),
            next: Some(next).filter(|next| !next.is_empty()),
        })
    }

    /// Removes entries of objects whose time is over. Writes do that by and by; a scope that is
    /// not written to any more ends by itself.
    pub async fn sweep(&self) -> Result<Sweep> {
        let mut call = self.kit.step(&SWEEP);
        for part in ["index", "values", "deadlines"] {
            call = call.key(self.keys.key(part));
        }
        let envelope = call.arg(PAGE_MAX).run().await?;
        let sweep = Sweep { removed: envelope.count("removed")?, left: envelope.count("left")? };
        self.counts.swept.add(sweep.removed);
        Ok(sweep)
    }
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexed")
            .field("ttl", &self.ttl)
            .field("objects_max", &self.objects_max)
            .finish_non_exhaustive()
    }
}
