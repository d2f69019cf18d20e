//! The replay law: what calls record, run again in order on an empty server where nothing expires
//! by itself, gives the same data. A command that breaks it, or that nothing here exercises, fails.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use russet_catalog::Command;
use russet_catalog::spec::Recorded;
use russet_tests::client::{Client, Reply, Resp};
use russet_tests::server::{Kind, Server};
use russet_tests::wire::expect::print;
use russet_tests::wire::{Case, Endpoint, files_under, root, run_file_observed};

/// Two servers: one records what it does, the other does it again.
struct Pair {
    recorder: Server,
    replayer: Server,
    /// Records so far.
    count: usize,
    /// Commands that have changed something.
    recorded: BTreeSet<String>,
    /// A connection from before any case, so that no password stands in its way.
    observer: Client,
    /// Cases whose configuration lets nobody look: the next look is at what they did, too.
    postponed: usize,
}

fn texts(reply: &Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else { return Vec::new() };
    let text = |item: &Reply| match item {
        Reply::Int(number) => number.to_string().into_bytes(),
        other => other.text().unwrap_or_default().to_vec(),
    };
    items.iter().map(text).collect()
}

fn show(record: &[Vec<u8>]) -> String {
    let words: Vec<_> = record.iter().map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ")
}

impl Pair {
    fn start(directives: &[&str]) -> Self {
        let directives = [&["--enable-debug-command", "yes"], directives].concat();
        let server = || Server::start(Kind::Russet, &directives).unwrap();
        let (recorder, replayer) = (server(), server());
        let mut observer = Client::connect(recorder.address()).unwrap();
        let started = observer.call(&["DEBUG", "RECORD", "START"]).unwrap();
        assert_eq!(started, Reply::Status(b"OK".into()));
        let recorded = BTreeSet::new();
        let pair = Pair { recorder, replayer, count: 0, recorded, observer, postponed: 0 };
        let mut client = Client::connect(pair.replayer.address()).unwrap();
        client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).unwrap();
        pair
    }

    /// What the recorder holds at a moment, and what it has recorded up to it.
    fn look(&mut self) -> Result<(String, Reply), String> {
        let fail = |error| format!("{error}");
        let observer = &mut self.observer;
        observer.call(&["CLIENT", "UNPAUSE"]).map_err(fail)?;
        let time = observer.call(&["TIME"]).map_err(fail)?;
        let parts: Vec<i64> = texts(&time)
            .iter()
            .map(|text| String::from_utf8_lossy(text).parse().unwrap_or(0))
            .collect();
        let [seconds, micros] = parts[..] else { return Err(print(&time)) };
        let now = (seconds * 1000 + micros / 1000).to_string();
        observer.call(&["MULTI"]).map_err(fail)?;
        observer.call(&["DEBUG", "DIGEST", "FULL", &now]).map_err(fail)?;
        observer.call(&["DEBUG", "RECORD", "TAKE"]).map_err(fail)?;
        observer.call(&["DEBUG", "RECORD", "COMMANDS"]).map_err(fail)?;
        Ok((now, observer.call(&["EXEC"]).map_err(fail)?))
    }

    /// Does again what was recorded since the last time, and compares.
    fn catch_up(&mut self) -> Result<(), String> {
        let fail = |error| format!("{error}");
        let Ok((now, outcome)) = self.look() else {
            self.postponed += 1;
            self.observer = Client::connect(self.recorder.address()).map_err(|e| e.to_string())?;
            return Ok(());
        };
        let mut replayer = Client::connect(self.replayer.address()).map_err(|e| e.to_string())?;
        let Reply::Array(parts) = &outcome else { return Err(print(&outcome)) };
        let [digest, Reply::Array(records), commands] = &parts[..] else {
            return Err(print(&outcome));
        };
        self.recorded
            .extend(texts(commands).iter().map(|name| String::from_utf8_lossy(name).into_owned()));
        let records: Vec<_> = records.iter().map(texts).collect();
        self.count += records.len();
        let mut faults = String::new();
        for record in &records {
            let call: Vec<_> =
                [b"DEBUG".to_vec(), b"REPLAY".to_vec()].into_iter().chain(record.clone()).collect();
            let reply = replayer.call(&call).map_err(|e| format!("{}: {e}", show(record)))?;
            if reply.is_error() {
                let _ = writeln!(faults, "{}: {}", show(record), print(&reply));
            }
        }
        let again = replayer.call(&["DEBUG", "DIGEST", "FULL", &now]).map_err(fail)?;
        if *digest != again {
            let _ = writeln!(faults, "the data differs after:");
            records.iter().for_each(|record| {
                let _ = writeln!(faults, "    {}", show(record));
            });
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// Commands of which no wire file can show a change.
const EXCUSED: &[&str] = &[];

#[test]
fn what_wire_files_do_can_be_done_again() {
    let mut pair = Pair::start(&[]);
    let mut failures = String::new();
    for path in files_under(&[root()]) {
        for resp in [Resp::V2, Resp::V3] {
            let endpoint = Endpoint {
                address: pair.recorder.address(),
                kind: Kind::Russet,
                version: Vec::new(),
            };
            let mut observe = |_: &Case| pair.catch_up();
            let report = run_file_observed(&path, &endpoint, resp, &mut observe);
            for failure in report.failures {
                let _ = writeln!(failures, "{failure}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(pair.postponed < 20, "{} cases could not be looked at", pair.postponed);
    assert!(pair.count > 1000, "only {} records", pair.count);
    let is_to_be_seen = |command: &&Command| {
        command.spec().recorded != Recorded::Never && !EXCUSED.contains(&command.full_name())
    };
    let unseen: Vec<_> = Command::ALL
        .iter()
        .filter(is_to_be_seen)
        .map(|command| command.full_name())
        .filter(|name| !pair.recorded.contains(*name))
        .collect();
    assert!(unseen.is_empty(), "no wire file lets these change anything: {}", unseen.join(", "));
}
