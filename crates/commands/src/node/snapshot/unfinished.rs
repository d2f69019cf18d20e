//! Files that data is saved to before they get their name: how they are called, and how those are
//! removed that a process which was killed has left.
//!
//! Who writes one has it locked, so that it is not taken for such a one.

use crate::node::Node;
use std::path::PathBuf;

/// What their names begin and end with. Other servers have other names for theirs.
const PREFIX: &str = "temp-russet-";
const SUFFIX: &str = ".rdb";

/// Whether a file has a name of those that are made here.
fn is_own(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.and_then(|rest| rest.split_once('-')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}

impl Node {
    /// Where the next save is to be written.
    pub(super) fn unfinished_path(&self, number: u64) -> PathBuf {
        self.data_dir().join(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id()))
    }

    /// The start, and before each save: removes what saves have left that did not end.
    pub(in crate::node) fn remove_unfinished(&self) {
        let (Some(disk), dir) = (self.host.disk(), self.data_dir()) else { return };
        for name in disk.list(&dir).unwrap_or_default().iter().filter(|name| is_own(name)) {
            let path = dir.join(name);
            // Another process may be about to complete it.
            let Ok(_lock) = disk.lock(&path) else { continue };
            match disk.remove(&path) {
                Ok(()) => self.host.note(&format!("Removed {name}, which no save has completed")),
                Err(error) => self.host.log(&format!("cannot remove {}: {error}", path.display())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_are_known() {
        assert!(is_own("temp-russet-123-0.rdb"));
        for name in ["temp-123.rdb", "temp-russet-.rdb", "temp-russet-1.rdb", "temp-russet-a-1.rdb"]
        {
            assert!(!is_own(name), "{name}");
        }
        assert!(!is_own("temp-russet-1-2.rdb.old") && !is_own("dump.rdb"));
    }
}
