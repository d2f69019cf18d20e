//! What calls record, as text that a test can compare.

use super::Desk;
use russet_engine::record::{Destination, Record, RecordListener};
use std::sync::{Arc, Mutex, PoisonError};

/// Gathers units of records since it was last asked.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

/// The arguments, after the database if it is not the first, and who gets it if not everyone.
fn line(record: &Record) -> String {
    let args = record.args.as_args();
    let args: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
    let db = if record.db == 0 { String::new() } else { format!("{}> ", record.db) };
    let destination = match record.destination {
        Destination::Everyone => String::new(),
        other => format!(" ({other:?})"),
    };
    format!("{db}{}{destination}", args.join(" "))
}

impl RecordListener for Recorder {
    fn unit(&self, records: &[Record]) {
        let lines: Vec<String> = records.iter().map(line).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(lines.join(" | "));
    }
}

impl Desk {
    /// Runs one command. What it has recorded: commands with bars between them, units with slashes.
    pub fn records_of(&mut self, call: &str) -> String {
        let recorder = Arc::<Recorder>::default();
        self.worker.node.set_record_listener(Some(recorder.clone()));
        let words: Vec<&str> = call.split(' ').collect();
        let reply = self.try_run(&words);
        self.worker.node.set_record_listener(None);
        drop(reply);
        let units = std::mem::take(&mut *recorder.0.lock().unwrap_or_else(PoisonError::into_inner));
        units.join(" / ")
    }

    /// Runs calls one after the other, each with what it is to record.
    pub fn check_records(&mut self, calls: &[(&str, &str)]) {
        for (call, expected) in calls {
            assert_eq!(self.records_of(call), *expected, "{call}");
        }
    }
}
