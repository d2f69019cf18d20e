//! What a command has recorded, as text.

use super::TestServer;
use russet_engine::record::{Destination, Record, RecordListener};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl RecordListener for Listener {
    fn units(&self, records: &[Record]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(records.iter().map(line));
    }
}

/// The arguments, after the database if it is not the first, and who gets them if not everyone.
fn line(record: &Record) -> String {
    let args = record.args.as_args();
    let args: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
    let db = if record.db == 0 { String::new() } else { format!("{}> ", record.db) };
    let destination = match record.destination {
        Destination::Everyone => String::new(),
        other => format!(" ({other:?})"),
    };
    format!("{db}{}{destination}", args.join(" "))
}

impl TestServer {
    /// Runs a command and says what it has recorded, a line for each record.
    pub fn records_of(&mut self, line: &str) -> Vec<String> {
        let args: Vec<&str> = line.split(' ').collect();
        self.record(|server| _ = server.try_run(&args))
    }

    /// Runs calls one after the other, each with what it is to record: bars are between records.
    pub fn check_records(&mut self, calls: &[(&str, &str)]) {
        for (call, expected) in calls {
            assert_eq!(self.records_of(call).join(" | "), *expected, "{call}");
        }
    }

    /// What is recorded while `action` runs.
    pub fn record(&mut self, action: impl FnOnce(&mut TestServer)) -> Vec<String> {
        let listener = Arc::<Listener>::default();
        self.worker.node.set_record_listener(Some(listener.clone()));
        action(self);
        self.worker.node.set_record_listener(None);
        std::mem::take(&mut *listener.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
