//! Filling in expectations from a server's answers: the author writes what is sent, runs this, and
//! reads whether each answer makes sense.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::expect::{self, Saved};
use super::file::{Case, DEFAULT_CONNECTION, Verb, WireFile};
use super::run::{Endpoint, Talk};
use crate::client::{Reply, Resp};

/// How long to wait before taking a command to be blocked.
const QUIET: Duration = Duration::from_millis(200);
/// Longer replies are broken over lines.
const WIDTH: usize = 100;

/// What a server answered after each line of the file.
type Answers = BTreeMap<usize, Vec<Answer>>;

enum Answer {
    Reply(char, Reply),
    Blocked(char),
}

/// The file's text with an expectation after each command that had none.
pub fn record_file(path: &Path, endpoint: &Endpoint) -> Result<String, String> {
    let file = WireFile::read(path)?;
    let mut inserted: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for case in &file.cases {
        let answers = |resp| match case.only.is_none_or(|only| only == resp) {
            true => record_case(case, endpoint, resp),
            false => Ok(Answers::new()),
        };
        let (two, three) = (answers(Resp::V2)?, answers(Resp::V3)?);
        let lines: std::collections::BTreeSet<&usize> = two.keys().chain(three.keys()).collect();
        for line in lines {
            let empty = Vec::new();
            let pair = [two.get(line).unwrap_or(&empty), three.get(line).unwrap_or(&empty)];
            inserted.insert(*line, notes(pair, case.only));
        }
    }
    let mut out = String::new();
    for (at, line) in file.lines.iter().enumerate() {
        out.push_str(line);
        out.push('\n');
        for note in inserted.get(&(at + 1)).into_iter().flatten() {
            out.push_str(note);
            out.push('\n');
        }
    }
    Ok(out)
}

fn record_case(case: &Case, endpoint: &Endpoint, resp: Resp) -> Result<Answers, String> {
    let mut talk = Talk::begin(endpoint, resp, case.bare)?;
    let mut answers = Answers::new();
    for (at, step) in case.steps.iter().enumerate() {
        let has_expectation = case.steps.get(at + 1).is_some_and(|next| {
            next.connection == step.connection && matches!(next.verb, Verb::Expect(..))
        });
        match &step.verb {
            Verb::Expect(..) if !talk.applies(step) => continue,
            Verb::Expect(..) => drop(talk.step(step)),
            _ => {
                let done = talk.step(step);
                done.map_err(|w| format!("line {}: {} {}", w.line, w.expected, w.got))?;
            }
        }
        let is_send = matches!(step.verb, Verb::Send(_) | Verb::Until(_));
        if !is_send || has_expectation {
            continue;
        }
        let here = answers.entry(step.last_line).or_default();
        match talk.read(step.connection, QUIET) {
            Ok(reply) => here.push(Answer::Reply(step.connection, reply)),
            Err(_) if talk.is_blocked(step.connection) => {
                here.push(Answer::Blocked(step.connection));
            }
            Err(_) => {}
        }
        let more = talk.arrivals(Duration::from_millis(8));
        here.extend(more.into_iter().map(|(name, reply)| Answer::Reply(name, reply)));
    }
    talk.end().map_err(|wrong| wrong.got)?;
    Ok(answers)
}

/// The lines to insert; one for both protocols where one notation fits both replies.
fn notes([two, three]: [&Vec<Answer>; 2], only: Option<Resp>) -> Vec<String> {
    let mut lines = Vec::new();
    for at in 0..two.len().max(three.len()) {
        match (two.get(at), three.get(at)) {
            (Some(Answer::Blocked(name)), _) | (_, Some(Answer::Blocked(name))) => {
                lines.push(format!("{name}.blocked"));
            }
            (Some(Answer::Reply(name, two)), Some(Answer::Reply(_, three))) => {
                match common(two, three) {
                    Some(text) => lines.push(note(*name, "<", &text)),
                    None => {
                        lines.push(note(*name, "<2", &expect::print(two)));
                        lines.push(note(*name, "<3", &expect::print(three)));
                    }
                }
            }
            (Some(Answer::Reply(name, two)), None) => {
                let mark = if only.is_some() { "<" } else { "<2" };
                lines.push(note(*name, mark, &expect::print(two)));
            }
            (None, Some(Answer::Reply(name, three))) => {
                let mark = if only.is_some() { "<" } else { "<3" };
                lines.push(note(*name, mark, &expect::print(three)));
            }
            (None, None) => {}
        }
    }
    lines
}

fn common(two: &Reply, three: &Reply) -> Option<String> {
    [expect::print(three), expect::print(two)].into_iter().find(|text| {
        expect::parse(text).is_ok_and(|want| {
            want.matches(two, Resp::V2, &mut Saved::new())
                && want.matches(three, Resp::V3, &mut Saved::new())
        })
    })
}

fn note(name: char, mark: &str, text: &str) -> String {
    let letter = if name == DEFAULT_CONNECTION { String::new() } else { name.to_string() };
    wrap(&format!("{letter}{mark} {text}"))
}

/// Breaks a long collection at blanks between its elements, never inside quotes.
fn wrap(line: &str) -> String {
    if line.len() <= WIDTH || !line.contains(['[', '{']) {
        return line.to_owned();
    }
    let mut out = String::new();
    let (mut column, mut in_quotes, mut escaped) = (0, false, false);
    for byte in line.chars() {
        if byte == ' ' && !in_quotes && column > WIDTH - 30 {
            out.push_str("\n  ");
            column = 2;
            continue;
        }
        in_quotes ^= byte == '"' && !escaped;
        escaped = byte == '\\' && !escaped;
        out.push(byte);
        column += 1;
    }
    out
}
