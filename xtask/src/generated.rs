//! Files that are made from tables of the code: written, or compared with what they should be.

use std::path::{Path, PathBuf};

/// A path from the root of the repository, and the text that belongs there.
pub type Generated = (&'static str, String);

/// Writes the files, or with `--check` compares them; false: one is not current. `task` is how they
/// are made.
pub fn main(args: &[String], task: &str, files: &[Generated]) -> Result<bool, String> {
    let is_check = match args {
        [] => false,
        [arg] if arg == "--check" => true,
        _ => return Err(format!("usage: cargo xtask {task} [--check]")),
    };
    let mut are_current = true;
    for (path, text) in files {
        if !is_check {
            write(&from_root(path), text)?;
        } else if !is_current(path, text) {
            println!("{path} is not current: run `cargo xtask {task}`");
            are_current = false;
        }
    }
    Ok(are_current)
}

fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

pub fn is_current(path: &str, text: &str) -> bool {
    std::fs::read_to_string(from_root(path)).is_ok_and(|it| it == text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}
