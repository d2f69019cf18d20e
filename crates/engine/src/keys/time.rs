//! The real time, where [`Keys::now`] is not.

use super::Keys;
use russet_base::UnixMillis;

impl Keys<'_> {
    /// The time that uses of keys, and whatever else begins now, are noted with.
    #[inline]
    pub fn real_now(&self) -> UnixMillis {
        self.real_time.unwrap_or(self.now)
    }
}
