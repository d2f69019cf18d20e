//! Which commands, and which of their options, the wire files exercise.

use std::collections::BTreeSet;
use std::path::PathBuf;

use russet_catalog::Command;
use russet_catalog::arg::Arg;

use super::file::WireFile;
use super::shapes::resolve_args;

/// The commands that no file sends. Names are lower case, a subcommand as `parent|name`; a
/// container counts as sent when any of its subcommands is.
pub fn commands_missing<'a>(
    files: &[PathBuf],
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<&'a str>, String> {
    let mut sent = BTreeSet::new();
    for path in files {
        for args in WireFile::read(path)?.commands_sent() {
            let Some(name) = args.first().map(|arg| arg.to_lowercase()) else { continue };
            if let Some(second) = args.get(1) {
                sent.insert(format!("{name}|{}", second.to_lowercase()));
            }
            sent.insert(name);
        }
    }
    Ok(names.filter(|name| !sent.contains(*name)).collect())
}

/// The options that no file sends with their command, as `command TOKEN`.
pub fn options_missing(files: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut missing = BTreeSet::new();
    for command in Command::ALL {
        tokens(command.spec().args, &mut |token| {
            missing.insert((command.full_name(), token.to_uppercase()));
        });
    }
    for path in files {
        for args in WireFile::read(path)?.commands_sent() {
            let bytes: Vec<Vec<u8>> = args.iter().map(|arg| arg.clone().into_bytes()).collect();
            let Some(command) = resolve_args(&bytes) else { continue };
            for arg in args {
                missing.remove(&(command.full_name(), arg));
            }
        }
    }
    Ok(missing.into_iter().map(|(name, token)| format!("{name} {token}")).collect())
}

fn tokens(args: &[Arg], found: &mut impl FnMut(&'static str)) {
    for arg in args {
        if let Some(token) = arg.token {
            found(token);
        }
        tokens(arg.parts, found);
    }
}
