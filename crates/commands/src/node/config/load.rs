//! Reading settings, from files and from the arguments of an option, into values.

use std::io::Read;
use std::path::{Path, PathBuf};

use russet_base::text::split_args;

use super::amounts::ClientClass;
use super::check::{CheckReport, CheckedLine, Verdict};
use super::directive::Directive;
use super::error::{ConfigError, Fault, Position, os_text};
use super::include;
use super::spec::{Effect, Kind};
use super::table;
use super::users::ConfiguredUsers;
use super::value::{Value, os_str};
use crate::node::renames::Renames;

/// Where `acl-pubsub-default` stands for all channels: the first of its names.
const ALL_CHANNELS: i64 = 0;
/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files that may include each other in a row.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Files that are read in all, each time counted.
const FILES_MAX: usize = 1000;

/// Settings being gathered: a later one replaces an earlier one, or adds to it.
#[derive(Clone, Debug)]
pub(super) struct Loader {
    values: Vec<Value>,
    /// The first `save` replaces the default, each further one adds a point.
    has_save: bool,
    /// Directives that stand at a value which needs a missing feature.
    unsupported: Vec<(Directive, ConfigError)>,
    /// Directives that were given and do nothing, retired ones too, each once.
    without_effect: Vec<&'static str>,
    users: ConfiguredUsers,
    renames: Renames,
    /// Of a file that is only checked: an error is noted there, and the next line read.
    report: Option<CheckReport>,
    files: usize,
    /// What relative paths start from, whatever the process does later.
    start_dir: PathBuf,
}

/// What was read.
pub(super) struct Loaded {
    /// In the order of `Directive::ALL`.
    pub(super) values: Vec<Value>,
    /// Directives that were given and do nothing.
    pub(super) without_effect: Vec<&'static str>,
    pub(super) users: ConfiguredUsers,
    pub(super) renames: Renames,
}

impl Loader {
    pub(super) fn new(start_dir: PathBuf) -> Self {
        Loader {
            values: defaults(&start_dir),
            has_save: false,
            unsupported: Vec::new(),
            without_effect: Vec::new(),
            users: ConfiguredUsers::default(),
            renames: Renames::default(),
            report: None,
            files: 0,
            start_dir,
        }
    }

    /// Reads on after an error, and reports on each line.
    pub(super) fn checking(start_dir: PathBuf) -> Self {
        Loader { report: Some(CheckReport::default()), ..Loader::new(start_dir) }
    }

    pub(super) fn into_report(self) -> CheckReport {
        let refused = self.check_users().err();
        let mut report = self.report.unwrap_or_default();
        if let Some(error) = refused {
            report.refuse_at(&error.position, error.reason());
        }
        for (directive, value) in Directive::ALL.iter().zip(&self.values) {
            let is_given = report.lines.iter().any(|line| line.directive == Some(*directive));
            if let Some(gap) = directive.spec().gap(value).filter(|_| !is_given) {
                let text = format!("{} {}", directive.name(), directive.spec().print(value));
                report.defaults.push((text, gap));
            }
        }
        report.values = self.values;
        report
    }

    fn check_users(&self) -> Result<(), ConfigError> {
        let has_file = !self.values[Directive::AclFile as usize].bytes().is_empty();
        if let Some(position) = self.users.position().filter(|_| has_file) {
            return Err(ConfigError::new(position, Fault::UsersTwice));
        }
        let has_all_channels =
            self.values[Directive::AclPubsubDefault as usize] == Value::Number(ALL_CHANNELS);
        self.users.check(has_all_channels)
    }

    pub(super) fn finish(self) -> Result<Loaded, ConfigError> {
        self.check_users()?;
        let Loader { values, without_effect, users, renames, .. } = self;
        match self.unsupported.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(Loaded { values, without_effect, users, renames }),
        }
    }

    /// Reads a file. If it can't be, `position` is who asked for it.
    pub(super) fn file(&mut self, path: &Path, position: &Position) -> Result<(), ConfigError> {
        self.nested_file(path, position, 0)
    }

    fn nested_file(
        &mut self,
        path: &Path,
        position: &Position,
        depth: usize,
    ) -> Result<(), ConfigError> {
        let path = self.start_dir.join(path);
        let fail = |fault| ConfigError::new(position, fault);
        self.files += 1;
        if depth > INCLUDE_DEPTH_MAX || self.files > FILES_MAX {
            return Err(fail(Fault::IncludesTooDeep { path }));
        }
        let unreadable = |fault: std::io::Error| Fault::Unreadable {
            path: path.clone(),
            reason: os_text(&fault),
        };
        let file = std::fs::File::open(&path).map_err(unreadable).map_err(fail)?;
        let content = read_all(file, &path, position)?;
        self.text(&content, &path, depth)
    }

    /// Reads the content of a file, or of what stands for one.
    pub(super) fn content(&mut self, content: &[u8], name: &Path) -> Result<(), ConfigError> {
        self.text(content, name, 0)
    }

    fn text(&mut self, content: &[u8], file: &Path, depth: usize) -> Result<(), ConfigError> {
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let position = Position::Line { file: file.to_owned(), line: index + 1 };
            let first = self.report.as_ref().map_or(0, |report| report.lines.len());
            let args = split_args(line);
            let taken = match &args {
                Ok(args) => self.take_nested(args, &position, depth),
                Err(_) => Err(ConfigError::new(&position, Fault::UnbalancedQuotes)),
            };
            match &mut self.report {
                None => taken?,
                Some(_) => self.note_checked(args.unwrap_or_default(), position, taken, first),
            }
        }
        Ok(())
    }

    /// Reports on a line, at an index of the report: an `include` stands before what it includes.
    fn note_checked(
        &mut self,
        args: Vec<Vec<u8>>,
        position: Position,
        taken: Result<(), ConfigError>,
        index: usize,
    ) {
        let directive = args.first().and_then(|name| Directive::named(name));
        let unsupported = self.unsupported.iter().find(|(_, error)| error.position == position);
        let verdict = match (taken, unsupported) {
            (Err(error), _) => Verdict::Refused(error.reason()),
            (Ok(()), Some((_, error))) => Verdict::Refused(error.reason()),
            (Ok(()), None) => self.verdict(directive, &args),
        };
        let Some(report) = &mut self.report else { return };
        let is_taken = !matches!(verdict, Verdict::Refused(_));
        if let Some(directive) = directive.filter(|of| is_taken && !of.spec().repeats()) {
            report.replace_earlier(directive);
        }
        let line =
            CheckedLine { position, text: checked_text(&args, directive), verdict, directive };
        report.lines.insert(index, line);
    }

    /// What an accepted line does.
    fn verdict(&self, directive: Option<Directive>, args: &[Vec<u8>]) -> Verdict {
        let Some(directive) = directive else {
            let lower = args.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
            return match table::retired(&lower) {
                Some(_) => Verdict::WithoutEffect(None),
                None => Verdict::Effective,
            };
        };
        let spec = directive.spec();
        match spec.gap(&self.values[directive as usize]) {
            Some(gap) => Verdict::WithoutEffect(Some(gap)),
            None if spec.effect == Effect::None => Verdict::WithoutEffect(None),
            None if names_class(directive, args, |class| class == ClientClass::Replica)
                && !names_class(directive, args, |class| class != ClientClass::Replica) =>
            {
                Verdict::WithoutEffect(Some(NO_REPLICAS))
            }
            None => Verdict::Effective,
        }
    }

    /// Takes one setting: a name and its arguments.
    pub(super) fn take(
        &mut self,
        args: &[Vec<u8>],
        position: &Position,
    ) -> Result<(), ConfigError> {
        self.take_nested(args, position, 0)
    }

    fn take_nested(
        &mut self,
        args: &[Vec<u8>],
        position: &Position,
        depth: usize,
    ) -> Result<(), ConfigError> {
        let [name, rest @ ..] = args else { return Ok(()) };
        let lower = name.to_ascii_lowercase();
        if let Some(directive) = Directive::named(name) {
            return self.set(directive, rest, position);
        }
        match rest {
            _ if lower == b"user" => self.users.add(rest, position),
            [from, to] if lower == b"rename-command" => {
                self.renames.add(from, to).map_err(|reason| {
                    let command = String::from_utf8_lossy(from).into_owned();
                    ConfigError::new(position, Fault::BadRename { command, reason })
                })
            }
            [pattern] if lower == b"include" => self.include(pattern, position, depth),
            [_] => match table::retired(&lower) {
                Some(retired) => {
                    self.note_without_effect(retired);
                    Ok(())
                }
                None => Err(ConfigError::unknown(position, &lower)),
            },
            _ => Err(ConfigError::unknown(position, &lower)),
        }
    }

    pub(super) fn users(&self) -> &ConfiguredUsers {
        &self.users
    }

    fn note_without_effect(&mut self, name: &'static str) {
        if !self.without_effect.contains(&name) {
            self.without_effect.push(name);
        }
    }

    fn include(
        &mut self,
        pattern: &[u8],
        position: &Position,
        depth: usize,
    ) -> Result<(), ConfigError> {
        let unreadable =
            |reason| ConfigError::new(position, Fault::Unreadable { path: PathBuf::new(), reason });
        let pattern = self.start_dir.join(os_str(pattern).map_err(unreadable)?);
        for path in include::expand(&pattern) {
            self.nested_file(&path, position, depth + 1)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        directive: Directive,
        args: &[Vec<u8>],
        position: &Position,
    ) -> Result<(), ConfigError> {
        let spec = directive.spec();
        let bad = |reason| ConfigError::bad_value(position, spec, args, reason);
        // Several arguments may also be written as one, in quotes.
        let split;
        let given = match args {
            // COMPAT: `save` alone is no save point at all (config/tests.rs).
            [] if matches!(spec.kind, Kind::SavePoints) => {
                split = vec![Vec::new()];
                split.as_slice()
            }
            [] => return Err(bad("wrong number of arguments".to_owned())),
            [arg] if spec.takes_many() && !arg.is_empty() => {
                split = split_args(arg).map_err(|fault| bad(fault.to_string()))?;
                split.as_slice()
            }
            [arg] if directive == Directive::Dir => {
                let dir = self.start_dir.join(os_str(arg).map_err(bad)?);
                split = vec![dir.into_os_string().into_encoded_bytes()];
                split.as_slice()
            }
            _ => args,
        };
        let current = &self.values[directive as usize];
        let mut value = spec.parse(given, current).map_err(bad)?;
        // A file may ask for what a later option takes back, so this is no error yet.
        self.unsupported.retain(|(earlier, _)| *earlier != directive);
        if let Some(what) = spec.unsupported(&value) {
            let error = ConfigError::new(position, Fault::Unsupported { what });
            self.unsupported.push((directive, error));
        }
        if matches!(spec.kind, Kind::SavePoints) {
            if self.has_save && !value.bytes().is_empty() && !current.bytes().is_empty() {
                value = Value::text([current.bytes(), value.bytes()].join(&b' '));
            }
            self.has_save = true;
        }
        if spec.effect == Effect::None {
            self.note_without_effect(directive.name());
        }
        if names_class(directive, args, |class| class == ClientClass::Replica) {
            self.note_without_effect(REPLICA_LIMIT);
        }
        self.values[directive as usize] = value;
        Ok(())
    }
}

/// What the log calls the part of `client-output-buffer-limit` that nobody is subject to.
pub(super) const REPLICA_LIMIT: &str = "client-output-buffer-limit replica";
const NO_REPLICAS: &str = "there are no replicas";

/// Whether these are limits of output buffers, and one is for such a class.
fn names_class(
    directive: Directive,
    args: &[Vec<u8>],
    is_asked: impl Fn(ClientClass) -> bool,
) -> bool {
    let args = args.join(&b' ');
    directive == Directive::ClientOutputBufferLimit
        && args
            .split(|byte| byte.is_ascii_whitespace())
            .filter_map(ClientClass::named)
            .any(is_asked)
}

/// A line as a report shows it. What is no directive of ours, or is a secret, is only named.
fn checked_text(args: &[Vec<u8>], directive: Option<Directive>) -> String {
    let is_include = |name: &[u8]| name.eq_ignore_ascii_case(b"include");
    let is_shown = match directive {
        Some(directive) => !directive.spec().is_secret,
        None => args.first().is_some_and(|name| is_include(name)),
    };
    let shown = if is_shown { args } else { &args[..args.len().min(1)] };
    let quoted = |arg: &Vec<u8>| match String::from_utf8_lossy(arg) {
        text if text.is_empty() || text.contains(' ') => format!("\"{text}\""),
        text => text.into_owned(),
    };
    shown.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The values before anything is read, in the order of `Directive::ALL`.
pub(super) fn defaults(start_dir: &Path) -> Vec<Value> {
    let mut values: Vec<Value> =
        Directive::ALL.iter().map(|directive| directive.spec().default_value()).collect();
    values[Directive::Dir as usize] = Value::text(start_dir.as_os_str().as_encoded_bytes());
    values
}

/// Reads to the end, but not without end.
pub(super) fn read_all(
    source: impl Read,
    path: &Path,
    position: &Position,
) -> Result<Vec<u8>, ConfigError> {
    let fail = |fault| ConfigError::new(position, fault);
    let mut content = Vec::new();
    let read = source.take(FILE_BYTES_MAX + 1).read_to_end(&mut content);
    read.map_err(|fault| {
        fail(Fault::Unreadable { path: path.to_owned(), reason: os_text(&fault) })
    })?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(Fault::TooLong { path: path.to_owned() }));
    }
    Ok(content)
}
