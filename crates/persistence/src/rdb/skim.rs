//! Passes over values without making anything of them, so that others can read them elsewhere. What
//! is inside strings is not looked at.

use super::error::Result;
use super::input::Input;
use super::{Dialect, kind};
use std::io::Read;

/// Passes over a value of this kind; false, and nothing was read, if it is of one whose end only
/// reading it tells.
pub fn skim<R: Read>(input: &mut Input<R>, kind: u8, dialect: Dialect) -> Result<bool> {
    match kind {
        kind::STRING
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::SET_LISTPACK
        | kind::ZSET_ZIPLIST
        | kind::ZSET_LISTPACK
        | kind::HASH_ZIPMAP
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK => input.skip_string()?,
        kind::LIST | kind::SET | kind::LIST_QUICKLIST => {
            for _ in 0..input.length()? {
                input.skip_string()?;
            }
        }
        kind::LIST_QUICKLIST_2 => {
            for _ in 0..input.length()? {
                input.length()?;
                input.skip_string()?;
            }
        }
        kind::ZSET_2 => {
            for _ in 0..input.length()? {
                input.skip_string()?;
                input.double()?;
            }
        }
        kind::HASH => {
            for _ in 0..input.length()? {
                input.skip_string()?;
                input.skip_string()?;
            }
        }
        kind::VALKEY_HASH_TTL if dialect == Dialect::Valkey => {
            for _ in 0..input.length()? {
                input.skip_string()?;
                input.skip_string()?;
                input.millis()?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
