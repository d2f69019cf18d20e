//! What a command has recorded, as text.

use super::Desk;
use russet_engine::record::{Record, RecordListener};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Listener(Mutex<Vec<String>>);

impl RecordListener for Listener {
    fn unit(&self, records: &[Record]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend(records.iter().map(|record| {
            let args: Vec<_> =
                record.args.as_args().iter().map(|arg| String::from_utf8_lossy(arg)).collect();
            args.join(" ")
        }));
    }
}

impl Desk {
    /// Runs a command and says what it has recorded, a line for each record.
    pub fn records_of(&mut self, line: &str) -> Vec<String> {
        let args: Vec<&str> = line.split(' ').collect();
        self.record(|desk| _ = desk.try_run(&args))
    }

    /// What is recorded while `action` runs.
    pub fn record(&mut self, action: impl FnOnce(&mut Desk)) -> Vec<String> {
        let listener = Arc::<Listener>::default();
        self.worker.node.set_record_listener(Some(listener.clone()));
        action(self);
        self.worker.node.set_record_listener(None);
        std::mem::take(&mut *listener.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
