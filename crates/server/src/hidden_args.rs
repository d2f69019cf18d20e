//! Secrets on the command line. Every local user can read the arguments of a process, and a process
//! can't change them by safe code. So one that was given a secret there begins once more, as the
//! same process: with arguments that name no secret, and those that it was given in a file which is
//! in memory only. What is left is the moment before that.
//!
//! DIFFERS: the rest of the command line stays as it is, whatever `set-proc-title` says.

use russet_commands::node::config::without_secrets;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// In the environment of a process that has begun once more: the number of the open file with its
/// arguments, each with a NUL behind it.
pub const ARGS_FILE: &str = "RUSSET_ARGS_FILE";

/// Begins once more if there is a secret among the arguments. It returns if there is none, or with
/// what is to be logged if that can't be done: the server runs all the same.
pub fn hide(args: &[OsString]) -> Option<String> {
    let shown = without_secrets(args)?;
    if std::env::var_os(ARGS_FILE).is_some() {
        return None;
    }
    let error = begin_again(args, &shown).err()?;
    Some(format!(
        "A secret is on the command line, where every user of this machine can read it, and can't \
         be hidden ({error}): better put it into a file"
    ))
}

fn begin_again(args: &[OsString], shown: &[OsString]) -> io::Result<()> {
    let file = keep(args)?;
    let number = file.as_raw_fd();
    // Without /proc nothing could be read there.
    File::open(path_of(number))?;
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    Err(command.args(shown).env(ARGS_FILE, number.to_string()).exec())
}

/// A file that stays open in the program that takes the place of this one.
fn keep(args: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("arguments", MemfdFlags::empty())?);
    for arg in args {
        file.write_all(arg.as_bytes())?;
        file.write_all(b"\0")?;
    }
    Ok(file)
}

fn path_of(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}

/// The arguments that the server was started with: those of the command line, or those that were
/// kept, which are gone then.
pub fn given(args: Vec<OsString>) -> Result<Vec<OsString>, String> {
    match std::env::var(ARGS_FILE) {
        Ok(number) => take(&number).map_err(|error| format!("{ARGS_FILE} {number}: {error}")),
        Err(_) => Ok(args),
    }
}

fn take(number: &str) -> io::Result<Vec<OsString>> {
    let number = number.parse().map_err(io::Error::other)?;
    let mut file = File::options().read(true).write(true).open(path_of(number))?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    file.set_len(0)?;
    let args = content.split_inclusive(|byte| *byte == 0);
    Ok(args.map(|arg| OsString::from_vec(arg[..arg.len() - 1].to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_kept_for_one_reader() {
        let args: Vec<OsString> = ["--requirepass", "", "a b\n"].map(OsString::from).to_vec();
        let file = keep(&args).expect("there is memory");
        let number = file.as_raw_fd().to_string();
        assert_eq!(take(&number).expect("it is open"), args);
        assert!(take(&number).expect("it is open").is_empty());
        assert!(take("x").is_err());
    }
}
