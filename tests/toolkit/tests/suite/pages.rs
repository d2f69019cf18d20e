//! Every workflow has its page, its example and its stats: what a reader looks for first.

use std::fs;
use std::path::{Path, PathBuf};

/// What each page answers, in one of the forms that pages use.
const ANSWERS: [(&str, &[&str]); 4] = [
    ("the invariant", &["nvariant"]),
    ("its retry class", &["Retry class"]),
    (
        "what happens when something fails",
        &["| what happens", "The reply is lost", "reply is lost"],
    ),
    ("what it costs", &["**Cost.**"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of a module: its file, and those below its directory.
fn sources(module: &str) -> Vec<PathBuf> {
    let source = root().join("crates/russet/src");
    let mut found = vec![source.join(format!("{module}.rs"))];
    let mut directories = vec![source.join(module)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.extension().is_some_and(|extension| extension == "rs") {
                true => found.push(path),
                false if path.is_dir() => directories.push(path),
                false => {}
            }
        }
    }
    found
}

fn has(module: &str, text: &str) -> bool {
    sources(module).iter().any(|path| fs::read_to_string(path).unwrap().contains(text))
}

/// Lines that are drawn, in a block of text.
fn has_picture(page: &str) -> bool {
    page.split("```").skip(1).step_by(2).any(|block| block.contains('─'))
}

/// A table with a column of keys.
fn has_keys(page: &str) -> bool {
    let is_heading =
        |line: &str| line.split('|').skip(1).any(|cell| cell.trim().starts_with("key"));
    let lines: Vec<&str> = page.lines().collect();
    lines.windows(2).any(|pair| is_heading(pair[0]) && pair[1].starts_with("|---"))
}

/// What stands behind `**Cost.**`, up to the next empty line.
fn cost(page: &str) -> &str {
    let paragraph = page.split_once("**Cost.**").map_or("", |(_before, rest)| rest);
    paragraph.split("\n\n").next().unwrap_or_default()
}

/// Round trips, and the CPU of a row that was measured, with the commit.
fn has_cost(page: &str) -> bool {
    ["round trip", "CPU", "(../benchmarks.md#toolkit)", "commit "]
        .iter()
        .all(|part| cost(page).contains(part))
}

/// Modules with steps are workflows.
fn workflows() -> Vec<String> {
    let files = fs::read_dir(root().join("crates/russet/src")).unwrap();
    let names = files.filter_map(|file| {
        file.unwrap().file_name().to_str()?.strip_suffix(".rs").map(str::to_owned)
    });
    names.filter(|name| has(name, "pub(crate) static STEPS")).collect()
}

/// The word keys anywhere, or a piece of code, passed for an answer.
#[test]
fn a_word_is_no_table_and_code_is_no_picture() {
    assert!(!has_keys("Its keys are in one slot.\n| type | size |\n|---|---|"));
    assert!(has_keys("| type | keys (`{id}`) |\n|---|---|"));
    assert!(!has_picture("```rust\nlet a = 1;\n```"));
    assert!(!has_cost("**Cost.** One round trip.\n\nCPU (../benchmarks.md#toolkit), commit 1."));
    assert!(has_picture("```\nopen ──▶ closed\n```"));
}

/// Five workflows had nothing to show of what they did, and nobody noticed.
#[test]
fn every_workflow_has_a_page_an_example_and_stats() {
    let workflows = workflows();
    assert!(workflows.len() >= 15, "{workflows:?}");
    let index = fs::read_to_string(root().join("docs/workflows/README.md")).unwrap();
    for name in &workflows {
        let page = root().join(format!("docs/workflows/{name}.md"));
        let page = fs::read_to_string(page).unwrap_or_default();
        for (what, forms) in ANSWERS {
            let is_answered = forms.iter().any(|form| page.contains(form));
            assert!(is_answered, "docs/workflows/{name}.md does not say {what}");
        }
        assert!(has_cost(&page), "docs/workflows/{name}.md does not say what CPU it costs");
        assert!(has_picture(&page), "docs/workflows/{name}.md has no picture of the states");
        assert!(has_keys(&page), "docs/workflows/{name}.md has no table of its keys");
        assert!(index.contains(&format!("({name}.md)")), "the index has no {name}");
        let example = root().join(format!("crates/russet/examples/{name}.rs"));
        assert!(example.is_file(), "there is no example of {name}");
        assert!(has(name, "fn stats(&self"), "{name} has no stats");
    }
}
