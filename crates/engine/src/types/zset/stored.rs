//! Sorted sets where they are stored.

use crate::store::raw::table::EntryRef;
use crate::value::Object;

/// As OBJECT ENCODING names it.
pub fn encoding(_entry: &EntryRef<'_, Object>) -> &'static str {
    "listpack"
}
