//! Every wire file against Russet, in both protocols.

use std::fmt::Write as _;

use russet_catalog::Command;
use russet_tests::client::{Client, Resp};
use russet_tests::server::{Kind, Server};
use russet_tests::wire::coverage::commands_missing;
use russet_tests::wire::known::entries_without_a_case;
use russet_tests::wire::{Endpoint, WireFile, files_under, root, run_file};

/// One server for all files: each case empties it and puts back what it configured. A server that a
/// file has ended is replaced, so that the next file tells its own story.
#[test]
fn russet_answers_as_the_wire_files_say() {
    let mut server = Server::start(Kind::Russet, &["--enable-debug-command", "yes"]).unwrap();
    let mut failures = String::new();
    let mut failed_files = 0;
    for path in files_under(&[root()]) {
        let mut file_failures = Vec::new();
        for resp in [Resp::V2, Resp::V3] {
            let endpoint =
                Endpoint { address: server.address(), kind: Kind::Russet, version: Vec::new() };
            file_failures.extend(run_file(&path, &endpoint, resp).failures);
            if Client::connect(server.address()).is_err() {
                let _ = writeln!(failures, "{} [{resp:?}]: the server ended", path.display());
                server = Server::start(Kind::Russet, &["--enable-debug-command", "yes"]).unwrap();
            }
        }
        failed_files += usize::from(!file_failures.is_empty());
        for failure in file_failures {
            let _ = writeln!(failures, "{failure}");
        }
    }
    assert!(failures.is_empty(), "{failed_files} wire files differ:\n{failures}");
}

#[test]
fn every_wire_file_can_be_read() {
    for path in files_under(&[root()]) {
        let file = WireFile::read(&path).unwrap();
        assert!(!file.cases.is_empty(), "{} has no case", path.display());
    }
}

/// A case that was renamed, or is gone, must not stay among the known differences.
#[test]
fn known_differences_of_peers_name_cases_that_are_there() {
    let faults = entries_without_a_case();
    assert!(faults.is_empty(), "no such case:\n{}", faults.join("\n"));
}

#[test]
fn every_command_of_the_catalog_has_a_conversation() {
    let names = Command::ALL.iter().map(|command| command.full_name());
    let missing = commands_missing(&files_under(&[root()]), names).unwrap();
    assert!(missing.is_empty(), "no wire file sends: {}", missing.join(", "));
}
