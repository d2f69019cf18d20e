//! Every wire file against Russet, in both protocols.

use std::fmt::Write as _;

use russet_catalog::Command;
use russet_catalog::spec::Shape;
use russet_tests::client::{Client, Resp};
use russet_tests::server::{Kind, Server};
use russet_tests::wire::coverage::{commands_missing, options_missing};
use russet_tests::wire::known::entries_without_a_case;
use russet_tests::wire::shapes::declared;
use russet_tests::wire::{Endpoint, WireFile, files_under, root, run_file};

/// One server for all files: each case empties it and puts back what it configured. A server that a
/// file has ended is replaced, so that the next file tells its own story.
#[test]
fn russet_answers_as_the_wire_files_say() {
    let mut server = start();
    let mut failures = String::new();
    let mut failed_files = 0;
    let mut shapes = Vec::new();
    for path in files_under(&[root()]) {
        let mut file_failures = Vec::new();
        for resp in [Resp::V2, Resp::V3] {
            let endpoint =
                Endpoint { address: server.address(), kind: Kind::Russet, version: Vec::new() };
            let report = run_file(&path, &endpoint, resp);
            file_failures.extend(report.failures);
            shapes.extend(report.shapes);
            if Client::connect(server.address()).is_err() {
                let _ = writeln!(failures, "{} [{resp:?}]: the server ended", path.display());
                server = start();
            }
        }
        failed_files += usize::from(!file_failures.is_empty());
        for failure in file_failures {
            let _ = writeln!(failures, "{failure}");
        }
    }
    assert!(failures.is_empty(), "{failed_files} wire files differ:\n{failures}");
    let unseen = shapes_unseen(&shapes);
    assert!(unseen.is_empty(), "no wire case has such a reply: {}", unseen.join(", "));
}

/// `RUSSET_WIRE_TLS=1` has every file run over TLS.
fn start() -> Server {
    let args = ["--enable-debug-command", "yes"];
    match std::env::var_os("RUSSET_WIRE_TLS") {
        Some(_) => Server::start_tls(&args).unwrap(),
        None => Server::start(Kind::Russet, &args).unwrap(),
    }
}

/// Replies that take a second server: tests/tests/migrate.rs has them.
const SHOWN_ELSEWHERE: &[(Command, Shape)] = &[(Command::Migrate, Shape::Ok)];

/// The shapes that the catalog declares and no reply had, of commands that had one at all: those of
/// features that are not there yet are always refused.
fn shapes_unseen(seen: &[(Command, Shape)]) -> Vec<String> {
    let is_seen = |command: Command, shape: Shape| {
        let is_it = |other: Shape| other == shape || (shape, other) == (Shape::Status, Shape::Ok);
        seen.iter().any(|&(of, other)| of == command && is_it(other))
    };
    let mut unseen = Vec::new();
    let has_reply = |command: &&Command| seen.iter().any(|(of, _)| of == *command);
    for &command in Command::ALL.iter().filter(has_reply) {
        let shapes = declared(command.spec().reply);
        let is_shown_elsewhere = |shape: Shape| SHOWN_ELSEWHERE.contains(&(command, shape));
        let is_missing = |shape: &Shape| !is_seen(command, *shape) && !is_shown_elsewhere(*shape);
        let missing = shapes.into_iter().filter(is_missing);
        unseen.extend(missing.map(|shape| format!("{} {shape:?}", command.full_name())));
    }
    unseen
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

/// An option that no conversation sends may be misread, or not be there at all, and nobody notices.
#[test]
fn every_option_of_the_catalog_is_sent() {
    let missing = options_missing(&files_under(&[root()])).unwrap();
    assert!(missing.is_empty(), "no wire file sends: {}", missing.join(", "));
}
