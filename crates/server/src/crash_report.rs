//! `crash-log-enabled`: what the log says when the process ends because of a fault of ours. It
//! names the place and the state of the server, and of keys, values and arguments at most what the
//! text of a panic quotes. How signals are caught is in `sys/crash.rs`.

use crate::log::Log;
use crate::sys::crash;
use russet_commands::node::config::{Config, Directive};
use russet_commands::node::{Crash, Node};
use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;

/// A panic's text is cut here: what it is about must not fill the log.
const MESSAGE_BYTES_MAX: usize = 512;

/// From now on panics and the signals of faults are reported to the log.
pub fn install(config: &Config, log: &Log) {
    enable(config);
    let Ok(file) = log.file_for_crashes() else { return };
    crash::install(file, head(), image_start().unwrap_or(0));
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if crash::is_enabled() {
            crash::report(&panic_text(panic));
        }
        before(panic);
    }));
}

pub fn enable(config: &Config) {
    crash::enable(config.flag(Directive::CrashLogEnabled));
}

/// Ten times in a second: a handler of signals can't ask.
pub fn note(node: &Node) {
    let commands = node.stats.sum(|worker| worker.processed.read());
    crash::note([node.used_memory_bytes(), node.clients.len() as u64, commands]);
}

fn head() -> String {
    let executable = std::env::current_exe().map(|path| path.display().to_string());
    format!(
        "version: Russet {}\nbuild: {} {}, {}\nprogram: {}\nprocess: {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        if cfg!(debug_assertions) { "with debug assertions" } else { "release" },
        executable.unwrap_or_default(),
        std::process::id(),
    )
}

/// Where the program lies in memory, so that addresses can be found in its file.
fn image_start() -> Option<usize> {
    let program = std::env::current_exe().ok()?.display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(&program))?;
    usize::from_str_radix(line.split('-').next()?, 16).ok()
}

fn panic_text(panic: &PanicHookInfo<'_>) -> String {
    let message = panic.payload_as_str().unwrap_or("no message");
    let end =
        (0..=MESSAGE_BYTES_MAX.min(message.len())).rev().find(|at| message.is_char_boundary(*at));
    let message = message[..end.unwrap_or(0)].replace(['\r', '\n'], " ");
    let place = panic.location().map_or("an unknown place".to_owned(), |place| place.to_string());
    let trace = Backtrace::force_capture();
    format!("panic: {message}\nat: {place}\nbacktrace:\n{trace}\n")
}

/// Ends the process when the stack is unwound to it, in builds where a panic does not.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// DEBUG SEGFAULT, PANIC and ASSERT.
pub fn crash(how: Crash) {
    let _end = AbortOnUnwind;
    match how {
        Crash::Fault => {
            let _error = crash::fault();
        }
        Crash::Panic => panic!("called by DEBUG PANIC"),
        Crash::Assertion => assert!(matches!(how, Crash::Fault), "called by DEBUG ASSERT"),
    }
}
