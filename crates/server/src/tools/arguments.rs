//! The command line of a tool: names of files, and options that begin with two dashes.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

pub struct Arguments {
    args: VecDeque<OsString>,
    /// Behind `--` everything is the name of a file.
    has_options: bool,
}

/// The next of them.
enum Argument {
    File(PathBuf),
    Option(String),
}

/// Whether a tool has an option.
pub type IsKnown = Result<bool, String>;

impl Arguments {
    pub fn new(args: &[OsString]) -> Self {
        Arguments { args: args.iter().cloned().collect(), has_options: true }
    }

    /// Whether help is asked for.
    pub fn wants_help(&self) -> bool {
        let asks = |arg: &OsString| arg == OsStr::new("--help") || arg == OsStr::new("-h");
        self.args.iter().take_while(|arg| *arg != OsStr::new("--")).any(asks)
    }

    /// Reads them all, and gives the files. `take` is shown each option, and may take what follows.
    pub fn files(
        mut self,
        mut take: impl FnMut(&str, &mut Arguments) -> IsKnown,
    ) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        while let Some(argument) = self.next() {
            match argument {
                Argument::File(file) => files.push(file),
                Argument::Option(option) if take(&option, &mut self)? => {}
                Argument::Option(option) => {
                    return Err(format!(
                        "there is no option {option}; --help says which there are"
                    ));
                }
            }
        }
        Ok(files)
    }

    /// As [`Arguments::files`], for a tool that reads one file.
    pub fn file(
        self,
        take: impl FnMut(&str, &mut Arguments) -> IsKnown,
    ) -> Result<PathBuf, String> {
        let mut files = self.files(take)?.into_iter();
        let file = files.next().ok_or("which file? --help says more")?;
        match files.next() {
            Some(other) => Err(format!("one file at a time: {}", other.display())),
            None => Ok(file),
        }
    }

    fn next(&mut self) -> Option<Argument> {
        let arg = self.args.pop_front()?;
        if self.has_options {
            if arg == OsStr::new("--") {
                self.has_options = false;
                return self.next();
            }
            if let Some(text) = arg.to_str().filter(|text| text.len() > 1 && text.starts_with('-'))
            {
                return Some(Argument::Option(text.to_owned()));
            }
        }
        Some(Argument::File(arg.into()))
    }

    /// What follows an option that needs something.
    pub fn value(&mut self, option: &str) -> Result<OsString, String> {
        self.args.pop_front().ok_or_else(|| format!("{option} needs a value"))
    }

    pub fn number(&mut self, option: &str) -> Result<usize, String> {
        let value = self.value(option)?;
        let number = value.to_str().and_then(|text| text.parse().ok());
        number.ok_or_else(|| format!("{option} needs a number, not {}", value.display()))
    }
}
