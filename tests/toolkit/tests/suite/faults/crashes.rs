//! An engine in the process of its user, which is killed.

use russet_toolkit_tests::{Journal, durable};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// How often it is killed, and after how many requests.
const KILLS: u64 = 3;
const REQUESTS: u64 = 30;

/// Runs a process that carries out requests from this number on, kills it in the midst of one, and
/// says which it was.
fn killed_at(directory: &Path, first: u64) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crashing"))
        .arg(directory)
        .arg(first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut next = first;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        assert_eq!(line.unwrap(), next.to_string());
        next += 1;
        if next == first + REQUESTS {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    next
}

/// What was carried out is there after the crash; what is repeated has no second effect.
#[tokio::test]
async fn a_process_with_an_engine_that_is_killed_carries_out_each_request_once() {
    let name = format!("russet-test-crash-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let mut first = 0;
    for _ in 0..KILLS {
        let next = killed_at(&directory, first);
        assert!(next >= first + REQUESTS);
        let kit = durable(&directory).unwrap();
        let journal = Journal::open(&kit).await.unwrap();
        // The one that it was killed in has some of its effects.
        for (workflow, done) in journal.effects().await.unwrap() {
            assert!((next..=next + 1).contains(&done), "{workflow}: {done} of {next}");
        }
        for number in 0..=next {
            journal.carry_out(number).await.unwrap();
        }
        for (workflow, done) in journal.effects().await.unwrap() {
            assert_eq!(done, next + 1, "{workflow}");
        }
        first = next + 1;
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
