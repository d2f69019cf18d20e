//! Signals that ask for something: SIGINT and SIGTERM for the end, SIGHUP for the certificates as
//! they are in their files now. What an end does is in `run.rs`.

use crate::host::Process;
use crate::log::Level;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

/// What the main thread waits for: that all is loaded, and then why the process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Loaded,
    /// SHUTDOWN, which has saved what was to be saved.
    Command,
    Interrupted,
    Terminated,
}

/// Passes signals on from a thread of its own.
pub fn catch(stop: mpsc::Sender<Event>, process: Arc<Process>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let run = move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGINT => Event::Interrupted,
                SIGTERM => Event::Terminated,
                _ => {
                    process.reload_certificates();
                    continue;
                }
            };
            // One that asks for what is under way is not kept: SHUTDOWN ABORT is about it, too.
            match process.is_ending.swap(true, Ordering::AcqRel) {
                true if signal == SIGINT => end_at_once(&process),
                true => note(&process, "Received SIGTERM: about to stop already"),
                false if stop.send(event).is_err() => return,
                false => {}
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(run).map(drop)
}

fn note(process: &Process, line: &str) {
    if let Some(log) = process.log.get() {
        log.say(Level::Notice, line);
    }
}

/// COMPAT: who presses Ctrl+C a second time does not want to wait for what the first has begun.
/// What a save has written so far is removed at the next start.
fn end_at_once(process: &Process) -> ! {
    if let Some(log) = process.log.get() {
        log.say(Level::Warning, "SIGINT while stopping: ending at once");
    }
    std::process::exit(1);
}
