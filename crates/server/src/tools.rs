//! What `russet` does with data files instead of serving: `check`, `convert` and `export`. No file
//! that is read is ever changed, but by `check --fix`.

mod arguments;
mod check;
mod convert;
mod data;
mod export;
mod progress;

use arguments::Arguments;
use std::ffi::OsString;
use std::process::ExitCode;

/// How a tool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Good = 0,
    /// A file is damaged, or holds what can't be loaded.
    Damaged = 1,
    /// The end of a log is torn: a server would cut it.
    Torn = 2,
    /// It was not done: arguments, files that are not there, a disk that is full.
    Failed = 3,
}

type Tool = fn(Arguments) -> Result<Ending, String>;

/// Does what the arguments ask for, if the first of them names a tool.
pub fn run(args: &[OsString]) -> Option<ExitCode> {
    let (name, rest) = args.split_first()?;
    let (usage, tool): (&str, Tool) = match name.to_str()? {
        "check" => (check::USAGE, check::run),
        "convert" => (convert::USAGE, convert::run),
        "export" => (export::USAGE, export::run),
        _ => return None,
    };
    let arguments = Arguments::new(rest);
    if arguments.wants_help() {
        print!("{usage}");
        return Some(ExitCode::from(Ending::Good as u8));
    }
    let ending = tool(arguments).unwrap_or_else(|text| {
        eprintln!("russet: {text}");
        Ending::Failed
    });
    Some(ExitCode::from(ending as u8))
}
