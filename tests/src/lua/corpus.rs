//! The hand-written chunks of `crates/scripting/tests/library`, each with the answer that a real
//! server gave: a line of Lua, then `=> ` and the answer as `show.lua` writes it. Where Russet
//! answers otherwise on purpose, a line `ours: ` follows.

use std::path::PathBuf;

/// One chunk and what is known about it.
#[derive(Clone, Debug)]
pub struct Case {
    pub chunk: String,
    /// What a peer answered, if it was asked.
    pub recorded: Option<String>,
    pub ours: Option<String>,
}

/// A line that is no case, or a case.
#[derive(Clone, Debug)]
pub enum Part {
    Note(String),
    Case(Case),
}

/// The files of the corpus.
pub fn files() -> Vec<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/scripting/tests/library");
    let entries = std::fs::read_dir(dir).expect("the corpus is in the repository");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let is_text = |path: &PathBuf| path.extension().is_some_and(|end| end == "txt");
    let mut files: Vec<PathBuf> = paths.filter(is_text).collect();
    files.sort();
    files
}

pub fn parse(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.lines() {
        let answer = line.strip_prefix("=> ");
        let ours = line.strip_prefix("ours: ");
        match (parts.last_mut(), answer, ours) {
            (Some(Part::Case(case)), Some(answer), _) => case.recorded = Some(answer.to_owned()),
            (Some(Part::Case(case)), _, Some(ours)) => case.ours = Some(ours.to_owned()),
            _ if line.is_empty() || line.starts_with('#') => {
                parts.push(Part::Note(line.to_owned()));
            }
            _ => {
                let chunk = line.to_owned();
                parts.push(Part::Case(Case { chunk, recorded: None, ours: None }));
            }
        }
    }
    parts
}

pub fn print(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Note(line) => text.push_str(&format!("{line}\n")),
            Part::Case(Case { chunk, recorded, ours }) => {
                text.push_str(&format!("{chunk}\n"));
                if let Some(answer) = recorded {
                    text.push_str(&format!("=> {answer}\n"));
                }
                if let Some(answer) = ours {
                    text.push_str(&format!("ours: {answer}\n"));
                }
            }
        }
    }
    text
}
