//! What can be wrong with a configuration at start: each in one line that says where it stands,
//! what it is and what would be right.

use std::fmt;
use std::path::PathBuf;

use super::spec::Spec;
use super::table;

/// What is said of a feature that is not there yet.
pub(super) const UNSUPPORTED: &str = "is not supported by this version of Russet";

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    Line {
        file: PathBuf,
        line: usize,
    },
    /// An option of the command line.
    Option,
    /// A call of the program that the engine is embedded in.
    Program,
}

/// Why the server can't start with this configuration. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub position: Position,
    /// Boxed, as errors travel inside results that are mostly fine.
    pub fault: Box<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no such directive; perhaps this one was meant.
    Unknown {
        name: String,
        nearest: Option<&'static str>,
    },
    /// Redis has it, we don't yet: a directive, or a directive with this value.
    Unsupported {
        what: String,
    },
    /// `value` is `None` where it must not be shown.
    BadValue {
        name: String,
        value: Option<String>,
        reason: String,
        allowed: String,
    },
    UnbalancedQuotes,
    /// A `user` line can't be followed. Its rules are not shown: they may hold a password.
    BadUser {
        name: String,
        reason: String,
    },
    /// A `rename-command` that can't be followed.
    BadRename {
        command: String,
        reason: &'static str,
    },
    /// `user` lines and `aclfile` at once.
    UsersTwice,
    /// `--check-config` with none, or with more than one.
    NotOneFile,
    StrayArgument {
        argument: String,
    },
    Unreadable {
        path: PathBuf,
        reason: String,
    },
    TooLong {
        path: PathBuf,
    },
    IncludesTooDeep {
        path: PathBuf,
    },
}

impl ConfigError {
    pub(super) fn new(position: &Position, fault: Fault) -> Self {
        ConfigError { position: position.clone(), fault: Box::new(fault) }
    }

    pub(super) fn unknown(position: &Position, name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name).into_owned();
        let is_of_module = name.contains('.')
            || table::MODULE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let fault = if is_of_module || table::MISSING.contains(&name.as_str()) {
            Fault::Unsupported { what: name }
        } else {
            let known = table::names().map(|(_, known)| known).chain(["include"]);
            let nearest = russet_base::text::nearest(&name, known);
            Fault::Unknown { name, nearest }
        };
        ConfigError::new(position, fault)
    }

    pub(super) fn bad_value(
        position: &Position,
        spec: &Spec,
        args: &[Vec<u8>],
        reason: String,
    ) -> Self {
        let value = String::from_utf8_lossy(&args.join(&b' ')).into_owned();
        let fault = Fault::BadValue {
            name: spec.directive.name().to_owned(),
            value: (!spec.is_secret).then_some(value),
            reason,
            allowed: spec.allowed(),
        };
        ConfigError::new(position, fault)
    }
}

impl ConfigError {
    /// What is wrong, without the position.
    pub(super) fn reason(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.fault.describe(&mut text, "");
        text.replace(['\n', '\r'], " ")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dashes = match &self.position {
            Position::Line { file, line } => {
                write!(f, "{}:{line}: ", file.display())?;
                ""
            }
            Position::Option => "--",
            Position::Program => "",
        };
        let mut text = String::new();
        self.fault.describe(&mut text, dashes)?;
        // One line, whatever the input was.
        f.write_str(&text.replace(['\n', '\r'], " "))
    }
}

impl std::error::Error for ConfigError {}

impl Fault {
    /// `dashes` stand before the name of a directive.
    fn describe(&self, f: &mut dyn fmt::Write, dashes: &str) -> fmt::Result {
        match self {
            Fault::Unknown { name, nearest: Some(nearest) } => {
                write!(f, "unknown directive '{dashes}{name}', did you mean '{dashes}{nearest}'?")
            }
            Fault::Unknown { name, nearest: None } => {
                write!(f, "unknown directive '{dashes}{name}'")
            }
            Fault::Unsupported { what } => {
                write!(f, "{dashes}{what} {UNSUPPORTED}")
            }
            Fault::BadValue { name, value, reason, allowed } => {
                write!(f, "{dashes}{name}: bad value")?;
                if let Some(value) = value {
                    write!(f, " '{value}'")?;
                }
                write!(f, ": {reason} (allowed: {allowed})")
            }
            Fault::BadUser { name, reason } => {
                write!(f, "bad user '{name}': {reason}")
            }
            Fault::BadRename { command, reason } => {
                write!(f, "{dashes}rename-command: '{command}': {reason}")
            }
            Fault::UsersTwice => f.write_str(
                "users are given by 'user' lines and by 'aclfile' at once: only one of them can be",
            ),
            Fault::UnbalancedQuotes => f.write_str("unbalanced quotes"),
            Fault::NotOneFile => f.write_str("--check-config takes one file"),
            Fault::StrayArgument { argument } => {
                write!(f, "unexpected argument '{argument}': options start with '--'")
            }
            Fault::Unreadable { path, reason } => {
                write!(f, "can't read '{}': {reason}", path.display())
            }
            Fault::TooLong { path } => write!(f, "'{}' is too long for a file", path.display()),
            Fault::IncludesTooDeep { path } => {
                write!(f, "'{}' is included too deeply: does it include itself?", path.display())
            }
        }
    }
}

/// A system's error in its own words, without Rust's number behind.
pub(crate) fn os_text(fault: &std::io::Error) -> String {
    let text = fault.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
