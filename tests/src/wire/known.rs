//! Known differences: cases that an older peer answers otherwise, each with its reason, in a file
//! beside the wire files (`redis-7.0.txt`).
//!
//! A case that differs and is not listed fails, and so does a listed one that does not differ: the
//! list can neither grow nor rot unseen.

use std::collections::BTreeSet;
use std::path::Path;

use super::run::{Endpoint, Failure};
use super::{WireFile, files_under, root};
use crate::server::Kind;

/// One case that is known to differ.
#[derive(Debug)]
struct Entry {
    /// Below the directory of the wire files.
    file: String,
    title: String,
    reason: String,
}

#[derive(Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
    /// The entries that were met, by their places.
    met: BTreeSet<usize>,
}

impl Known {
    /// Those of this server; none if there is no list for its version.
    pub fn of(endpoint: &Endpoint) -> Result<Known, String> {
        let name = match (endpoint.kind, endpoint.version.as_slice()) {
            (Kind::Redis, [major, minor, ..]) => format!("redis-{major}.{minor}.txt"),
            _ => return Ok(Known::default()),
        };
        let path = root().join(name);
        match path.is_file() {
            true => Known::read(&path),
            false => Ok(Known::default()),
        }
    }

    pub fn read(path: &Path) -> Result<Known, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Known::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str) -> Result<Known, String> {
        let mut known = Known::default();
        let mut reason = None;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(text) = line.strip_prefix("== ") {
                reason = Some(text.to_owned());
                continue;
            }
            let (file, title) =
                line.split_once(": ").ok_or_else(|| format!("no file and title: {line}"))?;
            let reason = reason.clone().ok_or_else(|| format!("no reason before: {line}"))?;
            known.entries.push(Entry { file: file.to_owned(), title: title.to_owned(), reason });
        }
        Ok(known)
    }

    /// Whether a failure is a known difference.
    pub fn explains(&mut self, failure: &Failure) -> bool {
        let file = name_of(&failure.path);
        let is_it = |entry: &Entry| entry.file == file && entry.title == failure.case;
        let at = self.entries.iter().position(is_it);
        self.met.extend(at);
        at.is_some()
    }

    /// How many cases differed for each reason, in the order of the list.
    pub fn reasons(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for entry in self.met.iter().map(|at| &self.entries[*at]) {
            match counts.iter_mut().find(|(reason, _)| *reason == entry.reason) {
                Some((_, count)) => *count += 1,
                None => counts.push((&entry.reason, 1)),
            }
        }
        counts
    }

    /// Entries about one of these files that no case has met: they are over, or misspelt.
    pub fn unmet(&self, files: &[impl AsRef<Path>]) -> Vec<String> {
        let run: BTreeSet<String> = files.iter().map(|file| name_of(file.as_ref())).collect();
        let entries = self.entries.iter().enumerate();
        let unmet =
            entries.filter(|(at, entry)| !self.met.contains(at) && run.contains(&entry.file));
        unmet.map(|(_, entry)| format!("{}: {}", entry.file, entry.title)).collect()
    }
}

fn name_of(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// Entries of all lists that name no case.
pub fn entries_without_a_case() -> Vec<String> {
    let lists = std::fs::read_dir(root()).into_iter().flatten().flatten().map(|entry| entry.path());
    let lists = lists.filter(|path| path.extension().is_some_and(|extension| extension == "txt"));
    let mut titles = BTreeSet::new();
    for path in files_under(&[root()]) {
        let file = WireFile::read(&path).map(|file| file.cases).unwrap_or_default();
        titles.extend(file.into_iter().map(|case| (name_of(&path), case.title)));
    }
    let mut faults = Vec::new();
    for path in lists {
        match Known::read(&path) {
            Ok(known) => faults.extend(known.entries.into_iter().filter_map(|entry| {
                let Entry { file, title, .. } = entry;
                let text = format!("{}: {file}: {title}", path.display());
                (!titles.contains(&(file, title))).then_some(text)
            })),
            Err(why) => faults.push(why),
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Resp;

    fn failure(file: &str, case: &str) -> Failure {
        let (sent, expected, got) = Default::default();
        let path = root().join(file);
        Failure { path, resp: Resp::V2, case: case.to_owned(), line: 1, sent, expected, got }
    }

    #[test]
    fn what_differs_is_explained_and_what_is_over_is_reported() {
        let text = "# About this list.\n== newer option\na/b.wire: one: two\na/b.wire: three\n\
                    == another text\nc/d.wire: four\n";
        let mut known = Known::parse(text).unwrap();
        assert!(known.explains(&failure("a/b.wire", "one: two")));
        assert!(known.explains(&failure("a/b.wire", "one: two")), "in the other protocol");
        assert!(!known.explains(&failure("a/b.wire", "four")));
        assert_eq!(known.reasons(), [("newer option", 1)]);
        assert_eq!(known.unmet(&[root().join("a/b.wire")]), ["a/b.wire: three"]);
        assert!(Known::parse("a/b.wire: one").is_err(), "every entry has a reason");
    }
}
