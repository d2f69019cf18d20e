//! The two builds of Russet that are compared: binaries as they are, commits built on demand.
//!
//! A commit is built as a release in a work tree under the target directory. Both are built in the
//! same place, one after the other, so that the binaries differ by their sources only.

use crate::failure::{Doing, Failure, Result};
use crate::find;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A build and what to call it in the report.
pub struct Build {
    pub binary: PathBuf,
    pub label: String,
}

/// Both are looked for before the first is built: a typing error should not cost a build.
pub fn find_both([before, after]: &[String; 2]) -> Result<[Build; 2]> {
    let (before, after) = (Source::find(before)?, Source::find(after)?);
    let builds = [before.build()?, after.build()?];
    remove_work_tree()?;
    Ok(builds)
}

enum Source {
    Binary(PathBuf),
    /// Its full name, and the line about it in the log.
    Commit(String, String),
}

impl Source {
    /// A path of a file is that file, anything else a commit.
    fn find(name: &str) -> Result<Source> {
        let path = Path::new(name);
        if path.is_file() {
            return fs::canonicalize(path).doing(format!("finding {name}")).map(Source::Binary);
        }
        let unknown = || Failure::Usage(format!("'{name}' is no commit and no file"));
        let log = git(&["log", "-1", "--format=%H %h %s", name, "--"]).map_err(|_| unknown())?;
        let (name, line) = log.split_once(' ').ok_or_else(unknown)?;
        Ok(Source::Commit(name.to_owned(), line.to_owned()))
    }

    fn build(self) -> Result<Build> {
        match self {
            Source::Binary(binary) => Ok(Build { label: binary.display().to_string(), binary }),
            Source::Commit(name, line) => Ok(Build { binary: build_commit(&name)?, label: line }),
        }
    }
}

fn home() -> Result<PathBuf> {
    Ok(find::target_directory()?.join("compare"))
}

/// The binary of a commit, kept for the next time.
fn build_commit(name: &str) -> Result<PathBuf> {
    let home = home()?;
    let kept = home.join(name).join("russet");
    if kept.is_file() {
        return Ok(kept);
    }
    let tree = home.join("tree");
    let tree_name = tree.to_string_lossy().into_owned();
    if tree.join(".git").exists() {
        git(&["-C", &tree_name, "checkout", "--quiet", "--force", "--detach", name])?;
    } else {
        // Forced: git may remember one that was removed with its target directory.
        git(&["worktree", "add", "--quiet", "--force", "--detach", &tree_name, name])?;
    }
    eprintln!("{name}:");
    let manifest = tree.join("Cargo.toml");
    let built = find::build_from(&manifest, &home.join("target"), "russet-server", "russet")?;
    let doing = || format!("keeping the build of {name}");
    fs::create_dir_all(home.join(name)).doing(doing())?;
    // By way of another name: what has the final name is whole.
    let copy = home.join(name).join("russet.part");
    fs::copy(&built, &copy).doing(doing())?;
    fs::rename(&copy, &kept).doing(doing())?;
    Ok(kept)
}

fn remove_work_tree() -> Result<()> {
    let tree = home()?.join("tree");
    if tree.exists() {
        git(&["worktree", "remove", "--force", &tree.to_string_lossy()])?;
    }
    Ok(())
}

/// Runs git in the repository of this program's source; what it prints.
fn git(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    let output = command.output().doing("running git")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::server(format!("git {}", arguments.join(" ")), said));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_binary_and_a_word_that_is_neither_is_refused() {
        let own = std::env::current_exe().unwrap();
        assert!(matches!(Source::find(own.to_str().unwrap()), Ok(Source::Binary(_))));
        assert!(matches!(Source::find("no-such-commit"), Err(Failure::Usage(_))));
    }
}
