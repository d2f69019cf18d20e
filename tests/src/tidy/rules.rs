//! Rules for source files.

use super::functions::functions;
use super::{Offence, SourceFile};

pub const FILE_LINES_MAX: usize = 600;
pub const FUNCTION_LINES_MAX: usize = 70;
pub const PARAMETERS_MAX: usize = 5;
pub const LINE_COLUMNS_MAX: usize = 100;

/// The only directories with unsafe code: memory and locks, and what the system offers only so.
pub const UNSAFE_ROOMS: &[&str] = &["crates/engine/src/store/raw", "crates/server/src/sys"];

const NAMES_BANNED: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "manager"];

const WORDS_BANNED: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];

pub fn file_length(file: &SourceFile) -> Vec<Offence> {
    let lines = file.text.lines().count();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![Offence::new(&file.path, 0, format!("{lines} lines, at most {FILE_LINES_MAX}"))]
}

pub fn function_length(file: &SourceFile) -> Vec<Offence> {
    let found = functions(&file.code).into_iter();
    let long = found.filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|function| {
        let text = format!(
            "fn {} has {} lines, at most {FUNCTION_LINES_MAX}",
            function.name, function.lines
        );
        Offence::new(&file.path, function.line, text)
    })
    .collect()
}

pub fn parameters(file: &SourceFile) -> Vec<Offence> {
    let found = functions(&file.code).into_iter();
    let wide = found.filter(|function| function.parameters > PARAMETERS_MAX);
    wide.map(|function| {
        let text = format!(
            "fn {} has {} parameters, at most {PARAMETERS_MAX}",
            function.name, function.parameters
        );
        Offence::new(&file.path, function.line, text)
    })
    .collect()
}

pub fn line_length(file: &SourceFile) -> Vec<Offence> {
    let lines = file.text.lines().enumerate();
    let long = lines.filter(|(_, line)| line.chars().count() > LINE_COLUMNS_MAX);
    long.map(|(index, line)| {
        let text = format!("{} columns, at most {LINE_COLUMNS_MAX}", line.chars().count());
        Offence::new(&file.path, index + 1, text)
    })
    .collect()
}

/// A file opens with what it is for; attributes of a crate may stand before it.
pub fn opening(file: &SourceFile) -> Vec<Offence> {
    let first = file.text.lines().find(|line| !line.starts_with("#![") && !line.is_empty());
    match first {
        Some(line) if line.starts_with("//! ") => Vec::new(),
        _ => vec![Offence::new(&file.path, 1, "does not open with a `//!` comment")],
    }
}

pub fn unsafe_code(file: &SourceFile) -> Vec<Offence> {
    if UNSAFE_ROOMS.iter().any(|room| file.path.starts_with(room)) {
        return Vec::new();
    }
    each_line(file, |line| has_word(line, "unsafe").then_some("unsafe code outside its room"))
}

/// Crate roots forbid unsafe code; those of crates with a room for it deny it elsewhere.
pub fn unsafe_forbidden(file: &SourceFile) -> Vec<Offence> {
    let is_root = ["/src/lib.rs", "/src/main.rs"].iter().any(|end| file.path.ends_with(end))
        || file.path.contains("/src/bin/");
    if !is_root {
        return Vec::new();
    }
    let dir = file.path.trim_end_matches("lib.rs");
    let wanted = match UNSAFE_ROOMS.iter().any(|room| room.starts_with(dir)) {
        true => "#![deny(unsafe_code)]",
        false => "#![forbid(unsafe_code)]",
    };
    if file.code.contains(wanted) {
        return Vec::new();
    }
    vec![Offence::new(&file.path, 1, "a crate's root without forbid(unsafe_code)")]
}

pub fn banned_words(file: &SourceFile) -> Vec<Offence> {
    let mut offences = Vec::new();
    for word in WORDS_BANNED {
        offences.extend(each_line(file, |line| line.contains(word).then_some(*word)));
    }
    offences
}

pub fn unwrap_in_product(file: &SourceFile) -> Vec<Offence> {
    let lines = file.product_lines().filter(|(_, line)| line.contains(".unwrap()"));
    lines.map(|(number, _)| Offence::new(&file.path, number, "unwrap outside tests")).collect()
}

/// Names that say nothing, in paths and in declarations.
pub fn names(file: &SourceFile) -> Vec<Offence> {
    let mut offences = Vec::new();
    let parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
    for part in parts.filter(|part| words_of(part).iter().any(|word| is_banned(word))) {
        offences.push(Offence::new(&file.path, 0, format!("'{part}' in the path says nothing")));
    }
    for (index, line) in file.code.lines().enumerate() {
        let Some((kind, name)) = declaration(line) else { continue };
        let says_nothing = words_of(name).iter().any(|word| is_banned(word));
        if kind != "fn" && (says_nothing || name.ends_with("Impl")) {
            let text = format!("the name '{name}' says nothing");
            offences.push(Offence::new(&file.path, index + 1, text));
        }
        if kind == "fn" && name.starts_with("get_") {
            offences.push(Offence::new(&file.path, index + 1, format!("{name}: no `get_`")));
        }
    }
    offences
}

fn is_banned(word: &str) -> bool {
    NAMES_BANNED.contains(&word)
}

/// The kind and name that a line declares.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let kinds = ["fn", "mod", "struct", "enum", "trait", "type"];
    let kind = words.find(|word| kinds.contains(word))?;
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some((kind, &name[..end.unwrap_or(name.len())]))
}

/// The words of a name in snake or camel case, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = letter == '_' || letter == '-' || (letter.is_uppercase() && was_lower);
        if starts {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
    })
}

fn each_line<'a>(file: &'a SourceFile, check: impl Fn(&'a str) -> Option<&'a str>) -> Vec<Offence> {
    let lines = file.code.lines().enumerate();
    let bad = lines.filter_map(|(index, line)| check(line).map(|text| (index + 1, text)));
    bad.map(|(number, text)| Offence::new(&file.path, number, text)).collect()
}

/// Lines with a mark such as `DIFFERS:` in a comment.
pub fn marks(file: &SourceFile, mark: &str) -> Vec<usize> {
    let lines = file.text.lines().enumerate();
    let is_marked = |line: &str| line.find("//").is_some_and(|at| line[at..].contains(mark));
    lines.filter(|(_, line)| is_marked(line)).map(|(index, _)| index + 1).collect()
}

/// Wire files that comments name.
pub fn wire_files_named(file: &SourceFile) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let Some(at) = line.find("//") else { continue };
        for word in line[at..].split([' ', '(', ')', '`', ',', ';']) {
            let word = word.trim_end_matches(['.', ':']);
            if word.starts_with("tests/wire/") && word.ends_with(".wire") {
                named.push((index + 1, word.to_owned()));
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new("crates/x/src/y.rs", text)
    }

    #[test]
    fn what_is_wrong_is_seen() {
        assert_eq!(file_length(&file(&"\n".repeat(601))).len(), 1);
        assert_eq!(line_length(&file(&"x".repeat(101))).len(), 1);
        assert_eq!(opening(&file("use x;\n//! Late.")).len(), 1);
        assert_eq!(unsafe_code(&file("unsafe { x }")).len(), 1);
        assert_eq!(banned_words(&file("todo!()\n#[ignore]")).len(), 2);
        assert_eq!(unwrap_in_product(&file("x.unwrap()")).len(), 1);
        assert_eq!(names(&file("struct SlotManager;\nfn get_x() {}\nmod utils;")).len(), 3);
        assert_eq!(names(&SourceFile::new("crates/x/src/helpers.rs", "")).len(), 1);
        let long = format!("fn long() {{{}}}", "\n".repeat(70));
        assert_eq!(function_length(&file(&long)).len(), 1);
        assert_eq!(parameters(&file("fn f(a: A, b: B, c: C, d: D, e: E, f: F) {}")).len(), 1);
        let root = SourceFile::new("crates/x/src/lib.rs", "//! X.");
        assert_eq!(unsafe_forbidden(&root).len(), 1);
        assert_eq!(marks(&file("x(); // DIFFERS: so."), "DIFFERS:"), [1]);
        let named = wire_files_named(&file("// COMPAT: so (tests/wire/a/b.wire)."));
        assert_eq!(named, [(1, "tests/wire/a/b.wire".to_owned())]);
    }

    #[test]
    fn what_is_right_is_left_alone() {
        let text = "#![forbid(unsafe_code)]\n//! Says what it is for.\n\nfn f(&self, a: A) {}\n\
                    // todo! and unsafe in a comment\nlet x = \"dbg!\";\n\
                    #[cfg(test)]\nmod tests {\n    fn t() { x.unwrap() }\n}\n";
        let file = file(text);
        let rules: &[fn(&SourceFile) -> Vec<Offence>] = &[
            file_length,
            function_length,
            parameters,
            line_length,
            opening,
            unsafe_code,
            banned_words,
            unwrap_in_product,
            names,
        ];
        for rule in rules {
            assert_eq!(rule(&file), []);
        }
    }
}
