//! The command line: a file, `-` for standard input, and `--name value ...`, as redis-server has
//! them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use russet_base::text::split_args;

use super::check::CheckReport;
use super::directive::Directive;
use super::error::{ConfigError, Fault, Position};
use super::load::{Loader, read_all};
use super::store::Config;

/// What the command line asks for.
#[derive(Debug)]
pub enum Startup {
    Run(Box<Config>),
    /// Only say what the lines of a file would do.
    Check(CheckReport),
    Help,
    Version,
}

/// The option that checks a file.
const CHECK: &[u8] = b"--check-config";
/// What stands for a secret among arguments that others see.
pub const HIDDEN: &str = "(hidden)";

/// The command line, taken apart.
#[derive(Default)]
struct Parts {
    file: Option<PathBuf>,
    reads_stdin: bool,
    /// Each a name, without its dashes, and its arguments.
    options: Vec<Vec<Vec<u8>>>,
}

enum Asked {
    Parts(Parts),
    Help,
    Version,
}

impl Startup {
    /// Reads the arguments behind the program's name, and the files that they name.
    pub fn parse(args: &[OsString]) -> Result<Startup, ConfigError> {
        if let [option, rest @ ..] = args
            && option.as_encoded_bytes() == CHECK
        {
            return check(rest);
        }
        let parts = match take_apart(args)? {
            Asked::Help => return Ok(Startup::Help),
            Asked::Version => return Ok(Startup::Version),
            Asked::Parts(parts) => parts,
        };
        // Without a working directory every path must be absolute; the root keeps them so.
        let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let file = parts.file.map(|file| start_dir.join(file));
        let mut loader = Loader::new(start_dir.clone());
        if let Some(file) = &file {
            loader.file(file, &Position::Option)?;
        }
        if parts.reads_stdin {
            let name = Path::new("stdin");
            let content = read_all(std::io::stdin().lock(), name, &Position::Option)?;
            loader.content(&content, name)?;
        }
        for option in &parts.options {
            loader.take(option, &Position::Option)?;
        }
        let loaded = loader.finish()?;
        let mut config = Config::new(loaded.values, file, start_dir);
        config.given_without_effect = loaded.without_effect;
        config.users = loaded.users;
        config.renames = loaded.renames;
        Ok(Startup::Run(Box::new(config)))
    }
}

/// The arguments as others may see them; None if no secret is among them.
pub fn without_secrets(args: &[OsString]) -> Option<Vec<OsString>> {
    let (mut is_secret, mut wants_value, mut has_secrets) = (false, false, false);
    let mut shown = Vec::new();
    for arg in args {
        let option = arg.as_encoded_bytes().strip_prefix(b"--");
        // What stands behind a bare name is its value, whatever it looks like.
        let option = option.filter(|_| !(is_secret && wants_value));
        // One that can't be read is refused when the arguments are.
        let Some(option) = option.map(|option| split_args(option).unwrap_or_default()) else {
            has_secrets |= is_secret;
            shown.push(if is_secret { HIDDEN.into() } else { arg.clone() });
            wants_value = false;
            continue;
        };
        is_secret = option.first().is_some_and(|name| is_secret_name(name));
        wants_value = option.len() == 1;
        let name = option.first().filter(|_| is_secret && !wants_value);
        has_secrets |= name.is_some();
        shown.push(match name {
            Some(name) => format!("--{} {HIDDEN}", String::from_utf8_lossy(name)).into(),
            None => arg.clone(),
        });
    }
    has_secrets.then_some(shown)
}

fn is_secret_name(name: &[u8]) -> bool {
    let directive = Directive::named(&name.to_ascii_lowercase());
    // Rules of a user may have its password.
    name.eq_ignore_ascii_case(b"user")
        || directive.is_some_and(|directive| directive.spec().is_secret)
}

fn check(args: &[OsString]) -> Result<Startup, ConfigError> {
    let [file] = args else {
        return Err(ConfigError::new(&Position::Option, Fault::NotOneFile));
    };
    let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    CheckReport::of(Path::new(file), &start_dir).map(Startup::Check)
}

fn take_apart(args: &[OsString]) -> Result<Asked, ConfigError> {
    let mut parts = Parts::default();
    // An option that has no argument yet takes the next argument, whatever it looks like.
    let mut wants_value = false;
    for (index, arg) in args.iter().enumerate() {
        let arg = arg.as_encoded_bytes();
        let (is_first, is_last) = (index == 0, index + 1 == args.len());
        match arg {
            b"--help" | b"-h" if !wants_value => return Ok(Asked::Help),
            b"--version" | b"-v" if !wants_value => return Ok(Asked::Version),
            b"-" if is_first || is_last => parts.reads_stdin = true,
            [b'-', b'-', option @ ..] if !wants_value => {
                let mut values = split_args(option)
                    .map_err(|_| ConfigError::new(&Position::Option, Fault::UnbalancedQuotes))?;
                let next_is_option = args
                    .get(index + 1)
                    .is_some_and(|next| next.as_encoded_bytes().starts_with(b"--"));
                // COMPAT: `--save` may stand for `--save ""`.
                let is_bare_save = values.len() == 1 && values[0].eq_ignore_ascii_case(b"save");
                if is_bare_save && (next_is_option || is_last) {
                    values.push(Vec::new());
                }
                wants_value = values.len() == 1;
                parts.options.push(values);
            }
            [first, ..] if is_first && *first != b'-' => parts.file = Some(PathBuf::from(&args[0])),
            _ => match parts.options.last_mut() {
                Some(option) => {
                    option.push(arg.to_vec());
                    wants_value = false;
                }
                None => {
                    let argument = String::from_utf8_lossy(arg).into_owned();
                    let fault = Fault::StrayArgument { argument };
                    return Err(ConfigError::new(&Position::Option, fault));
                }
            },
        }
    }
    Ok(Asked::Parts(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[&str]) -> Option<Vec<String>> {
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let shown = without_secrets(&args)?;
        Some(shown.iter().map(|arg| arg.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn secrets_among_arguments_are_found_as_they_are_read() {
        assert_eq!(shown(&["file.conf", "--port", "7000", "--save", "--dir", "x"]), None);
        assert_eq!(shown(&["--requirepass"]), None);
        let line = ["f", "--RequirePass", "--secret", "--user", "u", "on", ">pw", "--port", "1"];
        let hidden = "(hidden)";
        let args = ["f", "--RequirePass", hidden, "--user", hidden, hidden, hidden, "--port", "1"];
        assert_eq!(shown(&line).expect("there are secrets"), args);
        // `--save` takes no value here.
        let line = ["--save", "--primaryauth", "pw", "--hash-seed x"];
        let args = ["--save", "--primaryauth", hidden, "--hash-seed (hidden)"];
        assert_eq!(shown(&line).expect("there are secrets"), args);
    }
}
