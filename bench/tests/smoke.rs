//! The whole program, from the command line to the file it writes, on the floor: the only server
//! that is surely there. It looks at what is said, never at how fast it was.

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_russet-bench"));
    command.args(args).args(["--floor", env!("CARGO_BIN_EXE_floor")]);
    command.output().expect("the program was built for this test")
}

#[test]
fn measures_the_floor_and_writes_a_table() {
    let name = format!("russet-bench-smoke-{}.md", std::process::id());
    let path = std::env::temp_dir().join(name);
    let markdown = path.to_str().expect("temporary paths are text");
    let args = "throughput --servers floor --quick --rounds 2 --secs 0.02 --work ping,mset10,lpop";
    let mut args: Vec<&str> = args.split(' ').collect();
    args.extend(["--pipeline", "1,100", "--markdown", markdown]);
    let output = bench(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(&path).expect("the table was written");
    std::fs::remove_file(&path).expect("it was there");
    assert!(String::from_utf8_lossy(&output.stdout).contains("## Throughput"));
    for row in ["| PING ", "| MSET10 ", "| LPOP "] {
        assert_eq!(written.matches(row).count(), 2, "{written}");
    }
}

/// Without valgrind there is nothing to count with: that is said before a server is started.
#[test]
fn instructions_are_refused_without_valgrind() {
    let floor = env!("CARGO_BIN_EXE_floor");
    let mut command = Command::new(env!("CARGO_BIN_EXE_russet-bench"));
    command.args(["instructions", floor, floor]).env("PATH", "");
    let output = command.output().expect("the program was built for this test");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("valgrind: not found on the PATH"), "{said}");
}

#[test]
fn a_server_that_does_not_start_is_named() {
    let args = ["throughput", "--servers", "russet", "--russet", "/bin/false", "--work", "ping"];
    let output = bench(&args);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Russet: ended at start"), "{said}");
}

#[test]
fn the_toolkit_is_measured_in_the_process() {
    let output = bench(&["toolkit", "--servers", "floor", "--quick", "--rounds", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in ["| limit: check ", "| lease: acquire", "| queue: claim", "| session: authorize "] {
        assert!(said.contains(row), "{said}");
    }
}
