//! `--check-config`: what each line of a file would do, without starting anything.

use std::fmt;
use std::path::{Path, PathBuf};

use super::directive::Directive;
use super::error::{ConfigError, Position};
use super::load::{Loader, read_all};
use super::store::Config;
use super::value::Value;

/// What would become of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Effective,
    /// It is read and changes nothing; perhaps there is more to say.
    WithoutEffect(Option<&'static str>),
    /// The server would not start. The reason names no position.
    Refused(String),
}

/// Said of a line whose directive stands again further down.
const REPLACED: &str = "a later line replaces it";

/// A line of a checked file that is neither empty nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedLine {
    pub position: Position,
    /// Its args, or for what may hold a secret only the name.
    pub text: String,
    pub verdict: Verdict,
    /// `None` for what is no directive with a value.
    pub(super) directive: Option<Directive>,
}

/// A checked file, with the files that it includes, in the order of reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub lines: Vec<CheckedLine>,
    /// Defaults that the file leaves standing and that promise what does not happen: the directive
    /// with its value, and what is so instead.
    pub defaults: Vec<(String, &'static str)>,
    /// The values that it comes to, in the order of `Directive::ALL`.
    pub(super) values: Vec<Value>,
}

impl CheckReport {
    /// Checks a file, or standard input if it is `-`. An error means that it can't be read.
    pub fn of(file: &Path, start_dir: &Path) -> Result<CheckReport, ConfigError> {
        let mut loader = Loader::checking(start_dir.to_owned());
        if file == Path::new("-") {
            let name = Path::new("stdin");
            let content = read_all(std::io::stdin().lock(), name, &Position::Option)?;
            loader.content(&content, name)?;
        } else {
            loader.file(file, &Position::Option)?;
        }
        Ok(loader.into_report())
    }

    /// What a server would be started with, if nothing is refused.
    pub fn config(&self) -> Option<Config> {
        let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        self.is_accepted().then(|| Config::new(self.values.clone(), None, start_dir))
    }

    /// The line that sets this directive can't be obeyed on this machine.
    pub fn refuse(&mut self, directive: Directive, reason: String) {
        let lines = self.lines.iter_mut().rev();
        for line in lines.filter(|line| line.directive == Some(directive)).take(1) {
            line.verdict = Verdict::Refused(reason.clone());
        }
    }

    /// The line that stands there can't be obeyed.
    pub(super) fn refuse_at(&mut self, position: &Position, reason: String) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.position == *position) {
            line.verdict = Verdict::Refused(reason);
        }
    }

    /// Whether the server would start with it, as far as its lines say.
    pub fn is_accepted(&self) -> bool {
        !self.lines.iter().any(|line| matches!(line.verdict, Verdict::Refused(_)))
    }

    /// A setting counts as if the earlier ones of the same directive were not there.
    pub(super) fn replace_earlier(&mut self, directive: Directive) {
        for line in self.lines.iter_mut().filter(|line| line.directive == Some(directive)) {
            line.verdict = Verdict::WithoutEffect(Some(REPLACED));
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts = [0_usize; 3];
        for line in &self.lines {
            if let Position::Line { file, line } = &line.position {
                write!(f, "{}:{line}: ", file.display())?;
            }
            let text = line.text.replace(|c: char| c.is_control(), " ");
            match &line.verdict {
                Verdict::Effective => {
                    counts[0] += 1;
                    writeln!(f, "effective: {text}")?;
                }
                Verdict::WithoutEffect(more) => {
                    counts[1] += 1;
                    let more = more.map_or_else(String::new, |more| format!(" ({more})"));
                    writeln!(f, "without effect: {text}{more}")?;
                }
                Verdict::Refused(reason) => {
                    counts[2] += 1;
                    writeln!(f, "refused: {text} ({reason})")?;
                }
            }
        }
        for (text, gap) in &self.defaults {
            writeln!(f, "default without effect: {text} ({gap})")?;
        }
        let [effective, without_effect, refused] = counts;
        writeln!(f, "{effective} effective, {without_effect} without effect, {refused} refused")
    }
}
