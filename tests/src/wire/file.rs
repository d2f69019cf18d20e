//! Reading a wire file into cases and steps.

use std::path::{Path, PathBuf};

use super::expect;
use super::quoting::split;
use crate::client::Resp;
use crate::server::Kind;

/// The connection that a line without a letter speaks on.
pub const DEFAULT_CONNECTION: char = 'a';

pub struct WireFile {
    pub path: PathBuf,
    pub lines: Vec<String>,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub title: String,
    pub line: usize,
    /// None: both protocols.
    pub only: Option<Resp>,
    /// No HELLO when connections open; the case runs once and may switch protocols itself.
    pub bare: bool,
    /// Peers that have what the case is about; empty: all.
    pub needs: Vec<Need>,
    pub steps: Vec<Step>,
}

/// A peer that a case can be run against, from this version on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub kind: Kind,
    pub version: Vec<u32>,
}

pub struct Step {
    /// Counted from 1.
    pub line: usize,
    /// The last line that belongs to it (continued expectations).
    pub last_line: usize,
    pub connection: char,
    pub verb: Verb,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Send(String),
    /// Sent again until the expectation that follows is met.
    Until(String),
    Expect(Option<Resp>, String),
    SendRaw(Vec<u8>),
    ExpectRaw(Vec<u8>),
    /// The server closes the connection.
    Closed,
    /// We close it.
    Close,
    WaitBlocked,
    /// Nothing has arrived that was not asked for.
    Silent,
    /// Set for this case, put back after it. None: only put back.
    Config(String, Option<String>),
}

impl WireFile {
    pub fn read(path: &Path) -> Result<WireFile, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        WireFile::parse(path, &text)
    }

    pub fn parse(path: &Path, text: &str) -> Result<WireFile, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut cases: Vec<Case> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let fault = |why: String| format!("{}:{}: {why}", path.display(), at + 1);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(title) = line.strip_prefix("== ") {
                cases.push(Case::new(title, at + 1));
                continue;
            }
            let case = cases.last_mut().ok_or_else(|| fault("before the first case".to_owned()))?;
            case.read_line(line, at + 1).map_err(fault)?;
        }
        for case in &cases {
            case.check().map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(WireFile { path: path.to_owned(), lines, cases })
    }

    /// The first two args of everything sent, raw inline commands included, in upper case.
    pub fn commands_sent(&self) -> Vec<Vec<String>> {
        let steps = self.cases.iter().flat_map(|case| &case.steps);
        let lines = steps.flat_map(|step| match &step.verb {
            Verb::Send(text) | Verb::Until(text) => vec![text.clone()],
            Verb::SendRaw(bytes) => {
                String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        });
        let upper = |arg: &Vec<u8>| String::from_utf8_lossy(arg).to_uppercase();
        lines
            .filter_map(|line| split(&line).ok())
            .map(|args| args.iter().map(upper).collect())
            .collect()
    }
}

impl Case {
    fn new(title: &str, line: usize) -> Case {
        let (title, needs) = (title.trim().to_owned(), Vec::new());
        Case { title, line, only: None, bare: false, needs, steps: Vec::new() }
    }

    fn read_line(&mut self, line: &str, number: usize) -> Result<(), String> {
        if line.starts_with([' ', '\t']) {
            return self.continue_expectation(line, number);
        }
        if let Some((mark, value)) = line.split_once(": ").filter(|_| self.steps.is_empty()) {
            match mark {
                "only" => return self.mark_only(value.trim()),
                "needs" => return self.mark_needs(value),
                _ => {}
            }
        }
        let (connection, verb) = read_verb(line)?;
        self.steps.push(Step { line: number, last_line: number, connection, verb });
        Ok(())
    }

    fn continue_expectation(&mut self, line: &str, number: usize) -> Result<(), String> {
        match self.steps.last_mut() {
            Some(Step { verb: Verb::Expect(_, text), last_line, .. }) => {
                text.push(' ');
                text.push_str(line.trim());
                *last_line = number;
                Ok(())
            }
            _ => Err("an indented line continues nothing".to_owned()),
        }
    }

    fn mark_only(&mut self, value: &str) -> Result<(), String> {
        match value {
            "resp2" => self.only = Some(Resp::V2),
            "resp3" => self.only = Some(Resp::V3),
            "bare" => (self.only, self.bare) = (Some(Resp::V2), true),
            other => return Err(format!("only: resp2, resp3 or bare, not {other:?}")),
        }
        Ok(())
    }

    fn mark_needs(&mut self, value: &str) -> Result<(), String> {
        for requirement in value.split_whitespace() {
            let (name, version) = requirement.split_once(">=").unwrap_or((requirement, "0"));
            let kind = Kind::from_name(name).ok_or_else(|| format!("no such server: {name}"))?;
            self.needs.push(Need { kind, version: version_numbers(version) });
        }
        Ok(())
    }

    /// Faults that only a run would show otherwise.
    fn check(&self) -> Result<(), String> {
        for step in &self.steps {
            let wrong = |why: String| format!("line {}: {why}", step.line);
            match &step.verb {
                Verb::Send(text) | Verb::Until(text) => {
                    let args = split(text).map_err(wrong)?;
                    args.first().ok_or_else(|| wrong("nothing to send".to_owned()))?;
                }
                // What a `${...}` will be is not known before the run.
                Verb::Expect(_, text) if !text.contains("${") => {
                    expect::parse(text).map_err(wrong)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// `1.2.3` as numbers that compare.
pub fn version_numbers(text: &str) -> Vec<u32> {
    text.trim().split('.').map_while(|part| part.parse().ok()).collect()
}

fn read_verb(line: &str) -> Result<(char, Verb), String> {
    let (head, rest) = match line.split_once(' ') {
        Some((head, rest)) => (head, rest.trim()),
        None => (line, ""),
    };
    let raw = |text: &str| match split(text)?.as_slice() {
        [bytes] => Ok(bytes.clone()),
        _ => Err("one quoted text is wanted".to_owned()),
    };
    let mut letters = head.chars();
    let lettered =
        |at: usize| head.starts_with(|c: char| c.is_ascii_lowercase()) && head.len() > at;
    let (connection, head) = match head {
        "raw>" | "raw<" | "until>" => (DEFAULT_CONNECTION, head),
        _ if lettered(1) && matches!(head.as_bytes()[1], b'>' | b'<' | b'.') => {
            let letter = letters.next().unwrap_or(DEFAULT_CONNECTION);
            (letter, head[1..].trim_start_matches('.'))
        }
        _ => (DEFAULT_CONNECTION, head),
    };
    let verb = match head {
        ">" => Verb::Send(rest.to_owned()),
        "until>" => Verb::Until(rest.to_owned()),
        "<" => Verb::Expect(None, rest.to_owned()),
        "<2" => Verb::Expect(Some(Resp::V2), rest.to_owned()),
        "<3" => Verb::Expect(Some(Resp::V3), rest.to_owned()),
        "raw>" => Verb::SendRaw(raw(rest)?),
        "raw<" => Verb::ExpectRaw(raw(rest)?),
        "closed" | "close" | "blocked" | "silent" => match head {
            "closed" => Verb::Closed,
            "close" => Verb::Close,
            "blocked" => Verb::WaitBlocked,
            _ => Verb::Silent,
        },
        "config" => match rest.split_once(' ') {
            Some((name, value)) => Verb::Config(name.to_owned(), Some(value.trim().to_owned())),
            None => Verb::Config(rest.to_owned(), None),
        },
        other => return Err(format!("no such line: {other:?}")),
    };
    Ok((connection, verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cases_marks_and_steps() {
        let text = "# c\n== one\nneeds: valkey>=9.1 redis\nonly: resp3\n> GET k\n< [\"a\"\n  :1]\n\
                    b> BLPOP k 0\nb.blocked\nb< nil-array\nconfig maxclients 5\n";
        let file = WireFile::parse(Path::new("x"), text).unwrap();
        let case = &file.cases[0];
        assert_eq!(case.needs[0], Need { kind: Kind::Valkey, version: vec![9, 1] });
        assert_eq!(case.only, Some(Resp::V3));
        assert_eq!(case.steps[1].verb, Verb::Expect(None, "[\"a\" :1]".to_owned()));
        assert_eq!(case.steps[2].connection, 'b');
        assert_eq!(case.steps[3].verb, Verb::WaitBlocked);
        assert_eq!(file.commands_sent()[1][..2], ["BLPOP", "K"]);
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for text in ["> GET k", "== x\nfrobnicate", "== x\n< OK", "== x\n  :1", "== x\n> \"a"] {
            assert!(WireFile::parse(Path::new("x"), text).is_err(), "{text}");
        }
    }
}
