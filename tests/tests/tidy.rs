//! House style as a test. The rules themselves are in `tests/src/tidy`; here is what each is asked
//! about, and what is excused from it, with the reason.

use russet_tests::tidy::{Offence, SourceFile, Tree, manifests, markdown, rules};
use std::collections::{BTreeMap, BTreeSet};

/// Tables: data in the shape of source. They may be as long as what they list.
const TABLES: &[&str] = &[
    "crates/catalog/src/groups/",
    "crates/commands/src/node/config/table/",
    "crates/commands/src/node/config/tests/",
];

/// Functions that are tables.
const TABLE_FUNCTIONS: &[(&str, &str)] = &[
    ("crates/commands/src/call/handlers.rs", "fn of "),
    ("crates/scripting/src/vm/run.rs", "fn plain "),
];

/// Offences of today, to be mended and taken off this list: a file, and a part of the message.
const KNOWN: &[(&str, &str)] = &[];

const PAGE_LINES_MAX: &[(&str, usize)] = &[("ARCHITECTURE.md", 300)];

fn tree() -> Tree {
    Tree::read().unwrap()
}

/// Fails with all offences that nobody excused.
fn report(offences: Vec<Offence>) {
    let is_known = |offence: &&Offence| {
        KNOWN.iter().any(|(path, text)| offence.path == *path && offence.text.contains(text))
    };
    let texts: Vec<String> =
        offences.iter().filter(|offence| !is_known(offence)).map(Offence::to_string).collect();
    assert!(texts.is_empty(), "{} offences:\n{}", texts.len(), texts.join("\n"));
}

fn check(rule: fn(&SourceFile) -> Vec<Offence>) {
    report(tree().sources.iter().flat_map(rule).collect());
}

#[test]
fn files_are_short() {
    let tree = tree();
    let is_table = |file: &&SourceFile| TABLES.iter().any(|table| file.path.starts_with(table));
    let files = tree.sources.iter().filter(|file| !is_table(file));
    report(files.flat_map(rules::file_length).collect());
}

#[test]
fn functions_are_short() {
    let tree = tree();
    let offences = tree.sources.iter().flat_map(rules::function_length);
    let is_table = |offence: &Offence| {
        TABLE_FUNCTIONS
            .iter()
            .any(|(path, name)| offence.path == *path && offence.text.starts_with(name))
    };
    report(offences.filter(|offence| !is_table(offence)).collect());
}

#[test]
fn functions_take_few_parameters() {
    check(rules::parameters);
}

#[test]
fn lines_are_short() {
    check(rules::line_length);
}

#[test]
fn every_file_says_what_it_is_for() {
    check(rules::opening);
}

#[test]
fn unsafe_code_stays_in_its_room() {
    check(rules::unsafe_code);
    check(rules::unsafe_forbidden);
}

/// Three files knew how the hash tag of a key leads to its shard: a cluster, which maps by slot,
/// would have had to change each of them.
#[test]
fn one_file_knows_where_a_key_lives() {
    // The slot that a key has everywhere, and the shard that it has here.
    const RULES: &[&str] = &["crates/base/src/slot.rs", "crates/engine/src/placement.rs"];
    const NAMES: &[&str] = &["hash_tag", "fixed_tag", "crc16", "shard_mask"];
    let tree = tree();
    let knows = |file: &&SourceFile| NAMES.iter().any(|name| file.code.contains(name));
    let paths: Vec<&str> = tree.sources.iter().filter(knows).map(|file| &*file.path).collect();
    assert_eq!(paths, RULES);
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    check(rules::banned_words);
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    check(rules::unwrap_in_product);
}

#[test]
fn names_say_something() {
    check(rules::names);
}

#[test]
fn crates_know_only_those_below_them() {
    let tree = tree();
    let of = |rule: fn(&str, &str) -> Vec<Offence>| -> Vec<Offence> {
        tree.manifests.iter().flat_map(|(path, text)| rule(path, text)).collect()
    };
    report(of(manifests::direction));
    report(of(manifests::versions));
}

/// docs/dependencies.md has a line for each dependency, and for nothing else.
#[test]
fn every_dependency_has_its_reason() {
    let tree = tree();
    let page = tree.pages.iter().find(|page| page.path == "docs/dependencies.md").unwrap();
    let row = |line: &str| {
        line.strip_prefix("| `").and_then(|rest| rest.split('`').next()).map(str::to_owned)
    };
    let explained: BTreeSet<String> = page.text.lines().filter_map(row).collect();
    let used: BTreeSet<String> = tree
        .manifests
        .iter()
        .flat_map(|(_, text)| manifests::dependencies(text))
        .map(|dependency| dependency.name)
        .filter(|name| name != "russet" && !name.starts_with("russet-"))
        .collect();
    assert_eq!(explained, used, "docs/dependencies.md against the manifests");
}

/// A chosen difference is documented: the page names every file once for each of its `DIFFERS:`
/// marks, and no file without one.
#[test]
fn every_difference_is_documented() {
    let tree = tree();
    let page = tree.pages.iter().find(|page| page.path == "docs/differences.md").unwrap();
    let marked: BTreeMap<&str, usize> = tree
        .sources
        .iter()
        .filter(|file| file.path.starts_with("crates/") && !file.is_test)
        .map(|file| (file.path.as_str(), rules::marks(file, "DIFFERS:").len()))
        .filter(|(_, marks)| *marks > 0)
        .collect();
    let mut named = BTreeMap::new();
    for path in page.text.lines().flat_map(markdown::paths_named) {
        if path.ends_with(".rs") {
            *named.entry(path).or_insert(0) += 1;
        }
    }
    assert_eq!(named, marked, "files named in docs/differences.md against DIFFERS: marks");
}

/// `COMPAT:` names the test that holds the oddity in place.
#[test]
fn wire_files_that_comments_name_exist() {
    let tree = tree();
    let mut offences = Vec::new();
    for file in tree.sources.iter().filter(|file| file.path.starts_with("crates/")) {
        for (line, named) in rules::wire_files_named(file) {
            if !tree.exists(&named) {
                offences.push(Offence::new(&file.path, line, format!("no such file: {named}")));
            }
        }
    }
    report(offences);
}

#[test]
fn pages_lead_somewhere() {
    let tree = tree();
    report(tree.pages.iter().flat_map(|page| markdown::links(page, &tree)).collect());
    report(tree.pages.iter().flat_map(|page| markdown::paths(page, &tree)).collect());
}

#[test]
fn pages_stay_short() {
    let tree = tree();
    for (path, lines_max) in PAGE_LINES_MAX {
        let page = tree.pages.iter().find(|page| page.path == *path).unwrap();
        let lines = page.text.lines().count();
        assert!(lines <= *lines_max, "{path} has {lines} lines, at most {lines_max}");
    }
}

#[test]
fn every_crate_introduces_itself() {
    let tree = tree();
    for (path, _) in &tree.manifests {
        let Some(dir) = path.strip_suffix("/Cargo.toml") else { continue };
        if dir.starts_with("crates/") {
            assert!(tree.exists(&format!("{dir}/README.md")), "{dir} has no README.md");
        }
    }
}
