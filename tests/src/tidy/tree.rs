//! The files of the repository, as the rules see them.

use super::mask::mask;
use std::path::{Path, PathBuf};

/// Directories that hold nothing written by hand.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "node_modules"];

/// One `.rs` file.
pub struct SourceFile {
    /// From the root of the repository, with `/` between.
    pub path: String,
    pub text: String,
    /// `text` without comments and literals; see [`mask`].
    pub code: String,
    /// It is compiled for tests only.
    pub is_test: bool,
}

impl SourceFile {
    pub fn new(path: &str, text: &str) -> SourceFile {
        let is_test = path.starts_with("tests/")
            || path.split('/').any(|part| part == "tests" || part == "tests.rs");
        SourceFile { path: path.to_owned(), text: text.to_owned(), code: mask(text), is_test }
    }

    /// The code's lines, counted from 1, without those of `#[cfg(test)]` items.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = if self.is_test { Vec::new() } else { product_lines(&self.code) };
        lines.into_iter()
    }
}

fn product_lines(code: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = code.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push((index + 1, line));
            continue;
        }
        // The item ends where its braces do, or at its semicolon if it has none.
        let mut depth = 0i64;
        for (_, line) in lines.by_ref() {
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
            let is_attribute = line.trim_start().starts_with("#[");
            if depth == 0 && !is_attribute && line.trim_end().ends_with([';', '}']) {
                break;
            }
        }
    }
    kept
}

/// All files of the repository.
pub struct Tree {
    pub root: PathBuf,
    pub sources: Vec<SourceFile>,
    pub pages: Vec<SourceFile>,
    pub manifests: Vec<(String, String)>,
}

impl Tree {
    /// Reads the repository that this crate is part of.
    pub fn read() -> Result<Tree, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace root")?;
        let mut tree = Tree {
            root: root.to_owned(),
            sources: Vec::new(),
            pages: Vec::new(),
            manifests: Vec::new(),
        };
        tree.add(root)?;
        tree.mark_test_modules();
        Ok(tree)
    }

    fn add(&mut self, dir: &Path) -> Result<(), String> {
        let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.add(&path)?;
                }
                continue;
            }
            let is_page = name.ends_with(".md");
            if !is_page && !name.ends_with(".rs") && name != "Cargo.toml" {
                continue;
            }
            let text =
                std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let from_root = path.strip_prefix(&self.root).unwrap_or(&path);
            let from_root = from_root.to_string_lossy().replace('\\', "/");
            match name.as_str() {
                "Cargo.toml" => self.manifests.push((from_root, text)),
                _ if is_page => self.pages.push(SourceFile::new(&from_root, &text)),
                _ => self.sources.push(SourceFile::new(&from_root, &text)),
            }
        }
        Ok(())
    }

    /// A file that its parent declares under `#[cfg(test)]` is a test, whatever its name.
    fn mark_test_modules(&mut self) {
        let mut declared = Vec::new();
        for file in &self.sources {
            let mut lines = file.code.lines();
            while let Some(line) = lines.next() {
                if line.trim() != "#[cfg(test)]" {
                    continue;
                }
                let Some(name) = lines.next().and_then(module_name) else { continue };
                declared.push(child_path(&file.path, name));
            }
        }
        for file in &mut self.sources {
            file.is_test |= declared.iter().any(|path| {
                // A test's own modules are tests.
                file.path == *path || file.path.starts_with(&path.replace(".rs", "/"))
            });
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

fn module_name(line: &str) -> Option<&str> {
    let (_, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
    Some(name)
}

/// Where the module `name` of the file at `parent` lives.
fn child_path(parent: &str, name: &str) -> String {
    let stem = parent.trim_end_matches(".rs");
    let dir = match stem.rsplit_once('/') {
        Some((dir, "lib" | "main" | "mod")) => dir,
        _ => stem,
    };
    format!("{dir}/{name}.rs")
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, child_path};

    #[test]
    fn test_items_are_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let file = SourceFile::new("crates/x/src/y.rs", text);
        let kept: Vec<usize> = file.product_lines().map(|(number, _)| number).collect();
        assert_eq!(kept, [1, 6]);
        let text = "#[cfg(test)]\nmod tests;\nfn c() {}\n";
        let file = SourceFile::new("crates/x/src/y.rs", text);
        assert_eq!(file.product_lines().count(), 1);
    }

    #[test]
    fn modules_are_found_where_the_compiler_finds_them() {
        assert_eq!(child_path("crates/x/src/lib.rs", "y"), "crates/x/src/y.rs");
        assert_eq!(child_path("crates/x/src/y.rs", "z"), "crates/x/src/y/z.rs");
    }
}
