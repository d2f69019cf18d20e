//! `russet check`: whether files are good, and what they hold.

use super::Ending;
use super::arguments::Arguments;
use super::data::{Data, Kind, Problem};
use russet_base::escape::escape;
use russet_base::num::human_bytes;
use russet_commands::node::offline::Visitor;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::value::Object;
use russet_persistence::disk::FileSystem;
use russet_persistence::export::survey::{Counts, Survey};
use russet_persistence::log::FileFound;
use russet_persistence::rdb::load::Report;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

pub const USAGE: &str = "\
Usage: russet check [--fix [--yes]] [--largest n] <dump.rdb | appendonlydir | log file>

Says whether the data is good, and what it holds: keys by type, with and without expiry, what they
would take in memory, and the largest of them. Nothing is changed.

  --fix         cuts the torn end of a log, after asking; what is cut is kept in a file beside it
  --yes         cuts without asking
  --largest n   shows so many of the largest keys (10)

Ends with 0 if all is good, 1 if it is damaged, 2 if the end of a log is torn and was not cut, and 3
if it could not be checked.
";
const LARGEST_SHOWN: usize = 10;
/// Longest part of a key that is shown.
const KEY_SHOWN_BYTES_MAX: usize = 64;

struct Options {
    path: PathBuf,
    fixes: bool,
    is_confirmed: bool,
    largest: usize,
}

fn options(arguments: Arguments) -> Result<Options, String> {
    let (mut fixes, mut is_confirmed, mut largest) = (false, false, LARGEST_SHOWN);
    let path = arguments.file(|option, rest| {
        match option {
            "--fix" => fixes = true,
            "--yes" => is_confirmed = true,
            "--largest" => largest = rest.number(option)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Options { path, fixes, is_confirmed, largest })
}

pub fn run(arguments: Arguments) -> Result<Ending, String> {
    let options = options(arguments)?;
    let mut data = Data::find(&options.path)?;
    let mut survey = Surveyor(Survey::new(data.offline.now().0, options.largest));
    let (mut report, mut problem) = (None, None);
    if let Err(error) = data.load() {
        problem = Some(error);
    }
    match data.visit("checking", &mut survey) {
        Ok(found) => report = found,
        Err(error) => problem = Some(error),
    }
    let torn = data.files.iter().find(|file| file.torn.is_some()).cloned();
    let ending = match (&problem, &torn) {
        (Some(Problem::Other(text)), _) => return Err(text.clone()),
        (Some(_), _) => Ending::Damaged,
        (None, Some(_)) => Ending::Torn,
        (None, None) => Ending::Good,
    };
    let text = describe(&data, (&survey.0, report.as_ref()), (ending, problem.as_ref()));
    // Nobody reads any more.
    let _written = io::stdout().write_all(text.as_bytes());
    match (ending, torn) {
        (Ending::Torn, Some(torn)) if options.fixes => fix(&data, &torn, &options),
        (Ending::Damaged, _) if options.fixes => {
            eprintln!("russet: nothing is cut: only the torn end of a log can be");
            Ok(ending)
        }
        _ => Ok(ending),
    }
}

/// Counts what it is shown.
struct Surveyor(Survey);

impl Visitor for Surveyor {
    fn library(&mut self, _source: &[u8]) -> io::Result<()> {
        self.0.libraries += 1;
        Ok(())
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) -> io::Result<()> {
        self.0.requests += 1;
        Ok(())
    }

    fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.0.entry(db, entry);
        Ok(())
    }
}

fn describe(
    data: &Data,
    (survey, report): (&Survey, Option<&(Report, u64)>),
    (ending, problem): (Ending, Option<&Problem>),
) -> String {
    let mut lines = Vec::new();
    let verdict = match ending {
        Ending::Good => "good",
        Ending::Torn => "its end is torn",
        Ending::Damaged | Ending::Failed => "DAMAGED",
    };
    lines.push(format!("{}: {verdict}", data.path.display()));
    lines.extend(problem.map(|problem| problem_lines(data, problem)).into_iter().flatten());
    if let Some((report, behind)) = report {
        lines.push(format!("RDB version {}, {}", report.version, bytes_text(report.bytes)));
        if *behind > 0 {
            lines.push(format!("{} follow the file, which nobody reads", bytes_text(*behind)));
        }
        if report.keys_empty > 0 {
            lines.push(format!("{} keys without elements are not loaded", report.keys_empty));
        }
    }
    lines.extend(data.files.iter().map(file_line));
    lines.extend(data.warnings());
    if problem.is_some() {
        lines.push("Before that:".to_owned());
    }
    add_survey(survey, &mut lines);
    lines.join("\n") + "\n"
}

fn problem_lines(data: &Data, problem: &Problem) -> Vec<String> {
    let at = match problem {
        Problem::Rdb(error) => Some((None, error.offset)),
        Problem::Log(error) => {
            let (file, at) = error.position();
            at.map(|at| (file, at))
        }
        Problem::Other(_) => None,
    };
    let first_bad = at.map(|(file, at)| match file {
        Some(file) if data.kind == Kind::Directory => format!("First bad byte: {at} of {file}"),
        _ => format!("First bad byte: {at}"),
    });
    let mut lines = vec![format!("Reason: {problem}")];
    lines.extend(first_bad);
    lines
}

fn file_line(file: &FileFound) -> String {
    let FileFound { name, is_base, bytes, has_sums, .. } = file;
    let sums = if *has_sums { ", checksums agree" } else { "" };
    let role = if *is_base { "base" } else { "increment" };
    format!("{name}: {role}, {}{sums}", bytes_text(*bytes))
}

fn bytes_text(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{bytes} bytes ({})", human_bytes(bytes)),
    }
}

fn add_survey(survey: &Survey, lines: &mut Vec<String>) {
    let Counts { keys, with_expiry, expired, memory_bytes, .. } = survey.all;
    let without = keys - with_expiry;
    lines.push(format!(
        "{keys} keys: {with_expiry} with an expiry ({expired} of them over), {without} without; \
         {} in memory",
        human_bytes(memory_bytes)
    ));
    if survey.databases.len() > 1 || survey.databases.keys().any(|db| *db > 0) {
        for (db, counts) in &survey.databases {
            lines.push(format!("  db{db}: {} keys", counts.keys));
        }
    }
    if keys > 0 {
        lines.push(format!(
            "  {:<10} {:>12} {:>12} {:>14} {:>10}",
            "type", "keys", "with expiry", "elements", "memory"
        ));
    }
    for (name, counts) in survey.types() {
        let elements = match name {
            "string" => "-".to_owned(),
            _ => counts.elements.to_string(),
        };
        lines.push(format!(
            "  {name:<10} {:>12} {:>12} {elements:>14} {:>10}",
            counts.keys,
            counts.with_expiry,
            human_bytes(counts.memory_bytes)
        ));
    }
    let beside = [
        (survey.libraries, "libraries of functions"),
        (survey.requests, "requests of ONCE"),
        (survey.hashes_with_deadlines, "hashes with fields that expire"),
    ];
    let beside = beside.iter().filter(|(count, _)| *count > 0);
    lines.extend(beside.map(|(count, what)| format!("{count} {what}")));
    let largest = survey.largest();
    if !largest.is_empty() {
        lines.push("Largest keys:".to_owned());
    }
    for key in largest {
        let shown = escape(&key.key[..key.key.len().min(KEY_SHOWN_BYTES_MAX)]).into_owned();
        let more = if key.key.len() > KEY_SHOWN_BYTES_MAX { "..." } else { "" };
        let elements = match key.type_name {
            "string" => String::new(),
            _ => format!(", {} elements", key.elements),
        };
        lines.push(format!(
            "  {:>10}  {} (db{}, {}{elements})",
            human_bytes(key.memory_bytes),
            format_args!("{shown}{more}"),
            key.db,
            key.type_name
        ));
    }
}

/// Cuts a torn end, if whoever asked for it means it.
fn fix(data: &Data, torn: &FileFound, options: &Options) -> Result<Ending, String> {
    let Some((at, _)) = torn.torn else { return Ok(Ending::Good) };
    let cut = torn.bytes - at;
    if !options.is_confirmed {
        print!("Cut the last {cut} bytes of {}? They are kept beside it. [y/N] ", torn.name);
        let _flushed = io::stdout().flush();
        let mut answer = String::new();
        let _read = io::stdin().lock().read_line(&mut answer);
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            println!("Nothing was changed.");
            return Ok(Ending::Torn);
        }
    }
    let view = data.view(&FileSystem).map_err(|error| error.to_string())?;
    let line = view.cut_torn_end(torn).map_err(|error| error.to_string())?;
    println!("{line}");
    Ok(Ending::Good)
}
