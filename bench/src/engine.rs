//! The engine in this process: uniform keys on one thread against two, no sockets.

use crate::failure::Result;
use crate::options::Options;
use crate::report::Table;

/// The least that two threads must bring over one.
const SPEED_UP_MIN: f64 = 1.7;

pub fn run(_options: &Options) -> Result<Table> {
    let mut table = Table::new(
        "Engine in process",
        ["threads", "operations/s", "over one thread", "goal on two threads"],
    );
    table.notes.push(format!("Not measured in this build; the goal is ≥ {SPEED_UP_MIN}."));
    Ok(table)
}
