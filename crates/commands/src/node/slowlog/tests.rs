//! What SLOWLOG and COMMANDLOG keep, and of which calls.

use super::*;
use crate::node::config::Settings;
use crate::testing::{TestClients, TestServer};
use russet_base::OwnedArgs;
use russet_protocol::Output;

#[test]
fn long_commands_are_cut_as_redis_cuts_them() {
    let node = TestServer::new().worker.node;
    let shown = |call: &[&str]| -> Vec<String> {
        let args: OwnedArgs = call.iter().collect();
        let kept = shortened(&node, (Command::Set, args.as_args()));
        kept.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    };
    let many = vec!["x"; 40];
    let kept = shown(&many);
    assert_eq!((kept.len(), kept[31].as_str()), (32, "... (9 more arguments)"));
    let long = "y".repeat(130);
    assert_eq!(shown(&["SET", &long])[1], format!("{}... (2 more bytes)", "y".repeat(128)));
}

/// The args of what a log has kept, oldest first, without what is longer than a name.
fn kept(log: &CostLog) -> Vec<String> {
    let mut entries = log.newest(usize::MAX);
    entries.reverse();
    let line = |entry: &CostEntry| {
        let short = entry.args.iter().filter(|arg| arg.len() < 32);
        let args = short.map(|arg| String::from_utf8_lossy(arg).into_owned());
        args.collect::<Vec<String>>().join(" ")
    };
    let lines = entries.iter().map(line).collect();
    log.reset();
    lines
}

/// Clients of a server that remembers requests and replies of more than 1000 bytes.
fn clients(count: u64) -> TestClients {
    let mut clients = TestClients::of(count);
    for log in ["request", "reply"] {
        let line = format!("CONFIG SET commandlog-{log}-larger-than 1000");
        assert_eq!(clients.say(0, &line), "+OK");
    }
    clients
}

/// COMMANDLOG had every attempt, whatever came of it. A client that had not logged in filled the
/// log with commands that do not exist, and what was refused, discarded or paused was there, too.
#[test]
fn a_large_request_that_did_not_run_is_not_remembered() {
    let mut clients = clients(2);
    let big = "x".repeat(2000);
    clients.say(0, "ACL SETUSER low on nopass ~k +multi +discard +exec +get");
    clients.say(0, "ACL SETUSER default >pw");
    clients.say(1, "RESET");
    for call in ["NOSUCH", "SET k"] {
        assert!(clients.say(1, &format!("{call} {big}")).contains("NOAUTH"), "{call}");
    }
    clients.say(1, "AUTH low pw");
    assert!(clients.say(1, &format!("SET k {big}")).contains("NOPERM"));
    assert!(clients.say(1, &format!("NOSUCH {big}")).contains("unknown command"));
    assert!(clients.say(1, &format!("GET k {big}")).contains("wrong number"));
    clients.say(1, "MULTI");
    assert!(clients.say(1, &format!("GET {big}")).contains("NOPERM"));
    clients.say(1, "DISCARD");
    for line in ["MULTI", &format!("SET k {big}"), "DISCARD"] {
        assert!(clients.say(0, line).starts_with('+'));
    }
    assert!(kept(&clients.node().large_requests).is_empty());
    // What its handler refuses has run.
    assert!(clients.say(0, &format!("SET k v {big}")).contains("syntax"));
    assert_eq!(kept(&clients.node().large_requests), ["SET k v"]);
}

/// A SET that a pause held back was in the log twice, and one whose shard was busy once for each
/// time that it was tried.
#[test]
fn a_large_request_that_had_to_wait_is_remembered_once() {
    let mut clients = clients(2);
    let call = format!("SET k {}", "x".repeat(2000));
    clients.say(0, "CLIENT PAUSE 100000 WRITE");
    assert_eq!(clients.say(1, &call), "(busy)");
    clients.say(0, "CLIENT UNPAUSE");
    assert_eq!(clients.read(1), "(ready)");
    assert_eq!(clients.say(1, &call), "+OK");
    assert_eq!(kept(&clients.node().large_requests), ["SET k"]);
    clients.while_busy("k", |clients| {
        assert_eq!(clients.say(1, &call), "(busy)");
        assert_eq!(clients.say(1, &call), "(busy)");
    });
    assert_eq!(clients.say(1, &call), "+OK");
    assert_eq!(kept(&clients.node().large_requests), ["SET k"]);
}

/// A call that waits for keys has run when it is answered.
#[test]
fn a_large_call_that_waited_for_keys_is_remembered_with_its_reply() {
    let mut clients = clients(2);
    let (many, big) = ("l ".repeat(1200), "x".repeat(2000));
    assert_eq!(clients.say(0, &format!("BLPOP {many} 0")), "(blocked)");
    assert!(kept(&clients.node().large_requests).is_empty());
    clients.say(1, &format!("RPUSH l {big}"));
    assert!(clients.read(0).contains(&big));
    let requests = kept(&clients.node().large_requests);
    assert_eq!(requests[0], "RPUSH l");
    assert!(requests[1].starts_with("BLPOP l l"), "{requests:?}");
    assert_eq!((requests.len(), kept(&clients.node().large_replies).len()), (2, 1));
}

/// EXEC with two GETs of a long value was one entry, of EXEC.
#[test]
fn commands_of_a_transaction_are_remembered_each_by_itself() {
    let mut clients = clients(1);
    let set = format!("SET k {}", "x".repeat(2000));
    for line in ["MULTI", &set, "GET k", "GET nosuch", "GET k", "EXEC"] {
        clients.say(0, line);
    }
    assert_eq!(kept(&clients.node().large_requests), ["SET k"]);
    assert_eq!(kept(&clients.node().large_replies), ["GET k", "GET k"]);
}

/// The same where a transaction comes in one piece and is part of a batch.
#[test]
fn commands_of_a_batch_are_remembered_each_by_itself() {
    let mut server = TestServer::new();
    for log in ["request", "reply"] {
        server.say(&format!("CONFIG SET commandlog-{log}-larger-than 20"));
    }
    let node = server.worker.node.clone();
    [&node.large_requests, &node.large_replies].iter().for_each(|log| log.reset());
    let value = "v".repeat(60);
    let lines = ["SET k", "GET k", "MULTI", "SET k", "GET k", "GET none", "GET k", "EXEC"];
    let calls: Vec<OwnedArgs> = lines
        .iter()
        .map(|line| line.split(' ').chain(line.starts_with("SET").then_some(&*value)).collect())
        .collect();
    let mut out = Output::default();
    let calls = calls.iter().map(OwnedArgs::as_args);
    let ran = server.worker.run_batch(&mut server.session, calls, &mut out);
    assert_eq!(ran.count, lines.len());
    assert_eq!(kept(&node.large_requests), ["SET k", "SET k"]);
    assert_eq!(kept(&node.large_replies), ["GET k", "GET k", "GET k"]);
}

/// With `rename-command AUTH LOGIN` a large LOGIN was in the log with its password: what is secret
/// was looked for by the command's own name, in a call that had the new one.
#[test]
fn secrets_of_renamed_commands_are_not_kept() {
    let mut settings = Settings::default();
    for names in [["AUTH", "login"], ["CONFIG", "cfg"], ["ACL", "a"]] {
        let line = [&b"rename-command"[..], names[0].as_bytes(), names[1].as_bytes()];
        settings.set_all(&line.map(<[u8]>::to_vec)).expect("the names are free");
    }
    let mut clients = TestClients::with_config(1, settings.finish().expect("it is in order"));
    for log in ["request", "reply"] {
        clients.say(0, &format!("CFG SET commandlog-{log}-larger-than 1"));
    }
    clients.say(0, "CFG SET slowlog-log-slower-than 0");
    clients.say(0, "A SETUSER u on >TOPSECRET ~* +@all");
    clients.say(0, "CFG SET masterauth TOPSECRET");
    clients.say(0, "A DRYRUN u LOGIN TOPSECRET");
    clients.say(0, "LOGIN u TOPSECRET");
    let node = clients.node();
    for log in [&node.slowlog, &node.large_requests, &node.large_replies] {
        let lines = kept(log).join("\n");
        assert!(lines.matches("(redacted)").count() >= 5, "{lines}");
        assert!(!lines.contains("TOPSECRET"), "{lines}");
    }
}

/// The ids went on while `slowlog-max-len` was 0.
#[test]
fn a_log_without_room_gives_no_ids() {
    let mut clients = clients(1);
    let big = format!("SET k {}", "x".repeat(2000));
    let newest = |clients: &TestClients| clients.node().large_requests.newest(1)[0].id;
    clients.say(0, &big);
    let before = newest(&clients);
    clients.say(0, "CONFIG SET commandlog-large-request-max-len 0");
    clients.say(0, &big);
    clients.say(0, "CONFIG SET commandlog-large-request-max-len 10");
    clients.say(0, &big);
    assert_eq!(newest(&clients), before + 1);
}
