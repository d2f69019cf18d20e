//! Rules for pages: every relative link leads somewhere, and every path that is named exists.

use super::{Offence, SourceFile, Tree};

/// A code span that begins with one of these, and has no placeholder, is a path.
const PATH_STARTS: &[&str] = &["crates/", "tests/", "docs/", "bench/", "fuzz/", "xtask/", ".ci/"];

/// Lines outside fenced blocks.
fn prose(page: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    page.text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence && !line.starts_with("    ")).then_some((index + 1, line))
    })
}

pub fn links(page: &SourceFile, tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (number, line) in prose(page) {
        for target in targets(line) {
            if let Some(why) = broken(page, target, tree) {
                offences.push(Offence::new(&page.path, number, format!("{target}: {why}")));
            }
        }
    }
    offences
}

/// What stands between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, open)| {
        let rest = &line[at + open.len()..];
        rest.find(')').map(|end| &rest[..end])
    })
}

fn broken(page: &SourceFile, target: &str, tree: &Tree) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let dir = page.path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let path = if path.is_empty() { page.path.clone() } else { join(dir, path) };
    if !tree.exists(&path) {
        return Some("no such file");
    }
    if anchor.is_empty() {
        return None;
    }
    let linked = tree.pages.iter().find(|other| other.path == path)?;
    let has_heading = prose(linked).any(|(_, line)| {
        line.starts_with('#') && slug(line.trim_start_matches('#').trim()) == anchor
    });
    (!has_heading).then_some("no such heading")
}

fn join(dir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchor of a heading, as forges make it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Paths in code spans that lead nowhere.
pub fn paths(page: &SourceFile, tree: &Tree) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (number, line) in prose(page) {
        for path in paths_named(line) {
            if !tree.exists(path) {
                let text = format!("`{path}`: no such file");
                offences.push(Offence::new(&page.path, number, text));
            }
        }
    }
    offences
}

/// Paths in code spans of one line.
pub fn paths_named(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        PATH_STARTS.iter().any(|start| span.starts_with(start))
            && !span.contains(['<', '*', '{', ' ', '$'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found() {
        assert_eq!(targets("a [b](c.md) and [d](../e#f)").collect::<Vec<_>>(), ["c.md", "../e#f"]);
        assert_eq!(join("docs", "../README.md"), "README.md");
        assert_eq!(slug("Life of one command"), "life-of-one-command");
        let line = "see `crates/x`, `cargo test` and `tests/<group>`";
        assert_eq!(paths_named(line).collect::<Vec<_>>(), ["crates/x"]);
    }

    #[test]
    fn a_broken_link_is_reported() {
        let tree = Tree {
            root: std::env::temp_dir(),
            sources: Vec::new(),
            pages: Vec::new(),
            manifests: Vec::new(),
        };
        let page = SourceFile::new("x.md", "[a](no/such/file.md)\n```\n[b](nor/this)\n```\n");
        assert_eq!(links(&page, &tree).len(), 1);
        let page = SourceFile::new("x.md", "`crates/no/such`");
        assert_eq!(paths(&page, &tree).len(), 1);
    }
}
