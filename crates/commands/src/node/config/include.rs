//! Which files an `include` with wildcards names.

use std::path::{Component, Path, PathBuf};

use russet_base::glob::Glob;

fn has_wildcard(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The files that `pattern` names, in order of name. Without a wildcard that is the pattern
/// itself, whether it exists or not; with one, perhaps none.
pub(super) fn expand(pattern: &Path) -> Vec<PathBuf> {
    if !has_wildcard(pattern.as_os_str().as_encoded_bytes()) {
        return vec![pattern.to_owned()];
    }
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        found = match component {
            Component::Normal(name) if has_wildcard(name.as_encoded_bytes()) => {
                found.iter().flat_map(|dir| matching(dir, name.as_encoded_bytes())).collect()
            }
            _ => found.iter().map(|path| path.join(component)).collect(),
        };
    }
    found.retain(|path| path.exists());
    found
}

fn matching(dir: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let listed = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| {
        let name = name.as_encoded_bytes();
        let is_hidden = name.starts_with(b".") && !pattern.starts_with(b".");
        !is_hidden && Glob::new(pattern).matches(name)
    });
    names.sort();
    names.into_iter().map(|name| dir.join(name)).collect()
}
