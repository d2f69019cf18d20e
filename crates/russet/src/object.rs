//! Objects: small records in hashes, mapped by `derive(Record)`; set indexes over them; drafts.
//!
//! Invariant: a record is whole or not there. It has a version that every change raises, a schema,
//! a deadline, and no fields but those of its type; an update never creates one.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::Kit;
//! use russet::object::{Expected, Loaded, ObjectSettings, Objects, Record, Updated};
//! use std::time::Duration;
//!
//! #[derive(Record, Debug, PartialEq)]
//! #[record(purpose = "profile", schema = 2)]
//! struct Profile {
//!     display_name: String,
//!     /// Had another name in schema 1.
//!     #[record(was = "mail")]
//!     email_masked: String,
//!     #[record(default)]
//!     login_count: u64,
//!     /// Gone five minutes after it was written, whatever becomes of the rest.
//!     #[record(ttl_ms = 300_000)]
//!     challenge: Option<String>,
//! }
//!
//! /// What the hot path needs: no more is read.
//! #[derive(Record)]
//! #[record(view_of = Profile)]
//! struct Shown {
//!     display_name: String,
//! }
//!
//! let kit = Kit::embedded(Default::default())?;
//! let settings = ObjectSettings { ttl: Duration::from_secs(3600), bytes_max: 8192 };
//! let profiles = Objects::<Profile>::new(&kit, settings)?;
//! let ann = Profile {
//!     display_name: "Ann".into(),
//!     email_masked: "a***@example.org".into(),
//!     login_count: 0,
//!     challenge: None,
//! };
//! profiles.put("ann", &ann, None).await?;
//! let Loaded::Found(found) = profiles.load_view::<Shown>("ann").await? else { panic!() };
//! let changed = Shown { display_name: "Ann B.".into() };
//! let expected = Expected::Version(found.version);
//! let updated = profiles.update("ann", expected, &changed, None).await?;
//! assert_eq!(updated, Updated::Updated { version: 2 });
//! profiles.increment("ann", Profile::LOGIN_COUNT, 1, None).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Options
//!
//! Of a struct: `purpose` (part of the key) and `schema` (raised when fields change their meaning)
//! are needed; `layout` (1) is raised when old and new programs can't share records; `migrate`
//! names a function that brings the fields of an older schema to the present one; `view_of` makes
//! a struct a part of another, to read or write just that.
//!
//! Of a field: `rename` (its name in the store), `was` (an old name that is still read; may stand
//! more than once), `write_both` (old names are still written), `default` (a missing one is the
//! type's default), `ttl_ms` (it has a deadline of its own).
//!
//! # What does not compile
//!
//! A view of a field that the record does not have:
//!
//! ```compile_fail,E0599
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "profile", schema = 1)]
//! struct Profile { name: String }
//! #[derive(Record)]
//! #[record(view_of = Profile)]
//! struct Shown { nickname: String }
//! ```
//!
//! or has with another type:
//!
//! ```compile_fail,E0308
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "profile", schema = 1)]
//! struct Profile { age: u32 }
//! #[derive(Record)]
//! #[record(view_of = Profile)]
//! struct Shown { age: String }
//! ```
//!
//! money in floating point (use minor units):
//!
//! ```compile_fail,E0277
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "cart", schema = 1)]
//! struct Cart { total: f64 }
//! ```
//!
//! a field that goes away but is needed:
//!
//! ```compile_fail
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "session", schema = 1)]
//! struct Session { #[record(ttl_ms = 300_000)] challenge: String }
//! ```
//!
//! a record without a schema, or with a name that the store itself uses:
//!
//! ```compile_fail
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "session")]
//! struct Session { user: String }
//! ```
//!
//! ```compile_fail
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "session", schema = 1)]
//! struct Session { version: u64 }
//! ```
//!
//! ```compile_fail
//! # use russet::object::Record;
//! #[derive(Record)]
//! #[record(purpose = "session", schema = 1)]
//! struct Session { #[record(was = "version", write_both)] revision: u64 }
//! ```
//!
//! an increment of what is no number:
//!
//! ```compile_fail,E0277
//! # use russet::object::{Objects, Record};
//! #[derive(Record)]
//! #[record(purpose = "profile", schema = 1)]
//! struct Profile { name: String }
//! async fn wrong(profiles: &Objects<Profile>) {
//!     let _ = profiles.increment("ann", Profile::NAME, 1, None).await;
//! }
//! ```
//!
//! and settings without a bound:
//!
//! ```compile_fail,E0063
//! let settings = russet::object::ObjectSettings { bytes_max: 8192 };
//! ```

mod draft;
mod field;
mod index;
mod store;

pub use draft::{Draft, DraftChange, DraftSettings, DraftStats, Drafts, LineItem};
pub use field::{Fault, Field, FieldInfo, FieldValue, Json, Number, RawFields, Reason};
pub use index::{Added, Combine, Index, IndexSettings, IndexStats, Moved, ScanPage};
pub use russet_derive::Record;
pub use store::{
    Created, Expected, Found, Incremented, Loaded, Newer, ObjectSettings, ObjectStats, Objects,
    Updated, Upgraded,
};

use crate::step::StepInfo;

pub(crate) static STEPS: &[&StepInfo] = &[
    store::WRITE.info(),
    store::LOAD.info(),
    store::INCREMENT.info(),
    store::TOUCH.info(),
    store::REMOVE.info(),
    index::CHANGE.info(),
    index::MOVE.info(),
    index::LOOK.info(),
    index::SCAN.info(),
    index::COMBINE.info(),
    draft::ITEM.info(),
    draft::DISCOUNT.info(),
    draft::READ.info(),
];

/// A struct that is stored as a hash. Derive it; see the [module](self).
pub trait Record: View<Self> {
    /// Part of its keys.
    const PURPOSE: &'static str;
    /// Part of its keys too: records of different layouts never meet.
    const LAYOUT: u32;
    /// What records are written with.
    const SCHEMA: u32;

    /// Brings fields that were written with an older schema to the present one. Renamed fields need
    /// no help.
    fn migrate(from: u32, fields: &mut RawFields) -> Result<(), Fault> {
        let _ = (from, fields);
        Ok(())
    }
}

/// Some fields of a record, to be read or written together. A record is a view of itself.
pub trait View<R: ?Sized>: Sized + Send + Sync {
    /// Which fields, in the order of their declaration.
    const FIELDS: &'static [FieldInfo];

    /// Adds the fields as they are stored.
    fn encode(&self, fields: &mut RawFields);

    /// Reads them back. A [`Fault`] names the field that is missing or can't be read.
    fn decode(fields: &RawFields) -> Result<Self, Fault>;
}
