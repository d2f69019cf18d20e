//! Wire files: conversations as data. `tests/wire/README.md` describes the notation.

pub mod coverage;
pub mod expect;
pub mod file;
pub mod known;
pub mod quoting;
pub mod record;
pub mod run;
pub mod shapes;
mod spelling;

pub use file::{Case, WireFile};
pub use run::{Endpoint, Failure, Report, run_file, run_file_observed};

use std::path::{Path, PathBuf};

/// Where the project's own wire files are.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("wire")
}

/// Every wire file under these paths (files or directories), sorted.
pub fn files_under(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = paths.to_vec();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
        } else if path.extension().is_some_and(|extension| extension == "wire") {
            found.push(path);
        }
    }
    found.sort();
    found
}
