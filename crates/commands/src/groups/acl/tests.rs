//! Users as their connections meet them: what is refused where, and what a change does to those who
//! are logged in.

use crate::call::mail::Letter;
use crate::groups::connection::login::ends_with_user;
use crate::testing::{TestClient, TestServer};
use russet_base::OwnedArgs;
use russet_protocol::Output;

/// A client that is logged in as a user with these rules.
fn user(server: &mut TestServer, rules: &str) -> TestClient {
    set(server, rules);
    let mut client = TestClient::of(server);
    assert_eq!(client.says(server, "AUTH u pw"), ["+OK"]);
    client
}

fn set(server: &mut TestServer, rules: &str) {
    assert_eq!(server.say(&format!("ACL SETUSER u {rules}")), "+OK", "{rules}");
}

fn is_refused(client: &mut TestClient, server: &mut TestServer, line: &str) -> bool {
    let replies = client.says(server, line);
    replies.iter().any(|reply| reply.contains("NOPERM") || reply.contains("ACL failure"))
}

#[test]
fn what_is_not_allowed_changes_nothing() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all -flushall ~mine:* %R~read:*");
    server.say("SET other 1");
    for line in [
        "SET other 2",
        "DEL other",
        "SET read:k 2",
        "RENAME mine:a other",
        "COPY other mine:k",
        "FLUSHALL",
        "EVAL redis.call('set','other','2') 0",
        "EVAL return 1 other",
        "ONCE id PX 1000 SET other 2",
        "SORT mine:l STORE other",
    ] {
        let line = line.replace("return 1 other", "return_1 1 other");
        assert!(is_refused(&mut client, &mut server, &line), "{line}");
    }
    assert_eq!(server.say("GET other"), "\"1\"");
    assert_eq!(client.says(&mut server, "SET mine:k 1"), ["+OK"]);
    assert_eq!(client.says(&mut server, "GET read:k"), ["nil"]);
}

/// The command that ONCE runs needs the same rights as if it came alone.
#[test]
fn the_command_inside_once_is_looked_at() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +once +incr ~*");
    assert_eq!(client.says(&mut server, "ONCE a PX 1000 INCR k"), ["1"]);
    assert!(is_refused(&mut client, &mut server, "ONCE b PX 1000 SET k 5"));
    assert_eq!(server.say("GET k"), "\"1\"");
}

#[test]
fn rights_are_looked_at_again_when_a_transaction_runs() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    for line in ["MULTI", "SET a 1", "GET a"] {
        client.says(&mut server, line);
    }
    set(&mut server, "-set");
    let reply = client.says(&mut server, "EXEC");
    assert!(reply[0].contains("ACLs rules changed between"), "{reply:?}");
    assert!(reply[0].ends_with("nil]"), "{reply:?}");
    assert_eq!(server.say("EXISTS a"), "0");
}

/// A transaction that takes rights from its own user has no more of them from then on.
#[test]
fn a_transaction_can_end_its_own_rights() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    for line in ["MULTI", "ACL SETUSER u -get", "GET a"] {
        client.says(&mut server, line);
    }
    let reply = client.says(&mut server, "EXEC");
    assert!(reply[0].contains("no permission to execute the command"), "{reply:?}");
}

#[test]
fn a_changed_user_is_changed_for_open_connections() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +get ~*");
    assert_eq!(client.says(&mut server, "GET k"), ["nil"]);
    set(&mut server, "-get");
    assert!(is_refused(&mut client, &mut server, "GET k"));
    set(&mut server, "+@all &*");
    assert_eq!(client.says(&mut server, "GET k"), ["nil"]);
    // Who is logged in stays so when the user is switched off.
    set(&mut server, "off");
    assert_eq!(client.says(&mut server, "GET k"), ["nil"]);
    assert!(client.says(&mut server, "AUTH u pw")[0].contains("WRONGPASS"));
}

#[test]
fn a_deleted_user_has_neither_connections_nor_rights() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    assert_eq!(server.say("ACL DELUSER u"), "1");
    assert!(is_refused(&mut client, &mut server, "GET k"));
    assert_eq!(client.mail(), ["kill"]);
    // Another one of the same name is somebody else.
    set(&mut server, "on >pw +@all ~*");
    assert!(is_refused(&mut client, &mut server, "GET k"));
}

#[test]
fn who_listens_to_what_it_may_no_longer_hear_is_closed() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all &a &b");
    client.says(&mut server, "SUBSCRIBE a");
    let mut other = TestClient::of(&server);
    other.says(&mut server, "AUTH u pw");
    other.says(&mut server, "SUBSCRIBE b");
    set(&mut server, "&c");
    assert!(client.mail().is_empty() && other.mail().is_empty());
    set(&mut server, "resetchannels &b");
    assert_eq!((client.mail(), other.mail()), (vec!["kill".to_owned()], vec![]));
    set(&mut server, "resetchannels &b*");
    assert!(other.mail().is_empty(), "b* allows b");
}

/// A blocked client was served with the rights that it had when it came.
#[test]
fn a_blocked_client_is_served_with_the_rights_that_it_has_then() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    assert!(client.says(&mut server, "BLPOP k 0").is_empty());
    set(&mut server, "-blpop");
    assert_eq!(server.say("RPUSH k x"), "1");
    assert!(matches!(client.letters()[..], [Letter::Retry(_)]));
    assert!(is_refused(&mut client, &mut server, "BLPOP k 0"));
    assert_eq!(server.say("LRANGE k 0 -1"), "[\"x\"]");
    // It waits no longer, and nothing is left of its wait.
    set(&mut server, "+blpop");
    assert_eq!(client.says(&mut server, "BLPOP k 0"), ["[\"k\", \"x\"]"]);
    assert!(server.say("INFO clients").contains("blocked_clients:0"));
}

#[test]
fn a_blocked_client_whose_rights_still_suffice_is_served() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    assert!(client.says(&mut server, "BLPOP k 0").is_empty());
    set(&mut server, "-set");
    server.say("RPUSH k x");
    assert!(matches!(client.letters()[..], [Letter::Retry(_)]));
    assert_eq!(client.says(&mut server, "BLPOP k 0"), ["[\"k\", \"x\"]"]);
}

#[test]
fn the_default_user_can_be_restricted_and_given_back() {
    let mut server = TestServer::new();
    let mut admin = TestClient::of(&server);
    server.say("ACL SETUSER root on nopass +@all ~* &*");
    admin.says(&mut server, "AUTH root x");
    server.say("ACL SETUSER default -@all +ping");
    assert_eq!(server.say("PING"), "+PONG");
    assert!(server.say("GET k").contains("NOPERM User default has no permissions"));
    admin.says(&mut server, "ACL SETUSER default >secret");
    assert_eq!(server.say("PING"), "+PONG", "who was in stays in");
    let mut late = TestClient::of(&server);
    assert!(late.says(&mut server, "PING")[0].contains("NOAUTH"));
    admin.says(&mut server, "ACL SETUSER default nopass");
    assert_eq!(late.says(&mut server, "PING"), ["+PONG"]);
}

#[test]
fn what_was_refused_is_logged_once_and_counted() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +get +eval +multi +exec ~a");
    for _ in 0..3 {
        client.says(&mut server, "GET b");
    }
    client.says(&mut server, "SET a 1");
    client.says(&mut server, "EVAL redis.pcall('set','a','1') 0");
    client.says(&mut server, "AUTH u secretguess");
    let log = server.say("ACL LOG");
    assert!(!log.contains("secretguess"), "{log}");
    let order = ["\"auth\"", "\"lua\"", "\"toplevel\", \"object\", \"set\"", "\"object\", \"b\""];
    let found: Vec<_> = order.iter().map(|part| log.find(part)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?} {log}");
    assert!(log.contains("[\"count\", 3, \"reason\", \"key\""), "{log}");
    let info = server.say("INFO stats");
    for line in ["denied_auth:1", "denied_cmd:2", "denied_key:3", "denied_channel:0"] {
        assert!(info.contains(line), "{line}");
    }
    assert_eq!(server.say("ACL LOG RESET"), "+OK");
    assert_eq!(server.say("ACL LOG"), "[]");
}

/// Another user could ask for the kept reply of a script that reads what this user may not.
#[test]
fn what_once_has_kept_is_for_the_user_who_asked_first() {
    let mut server = TestServer::new();
    server.say("SET secret s");
    let mut client = user(&mut server, "on >pw +once +eval ~mine");
    let call =
        "ONCE id PX 1000 EVAL return{redis.call('set','mine','x'),redis.call('get','secret')} 0";
    let first = server.say(call);
    assert!(first.contains("\"s\""), "{first}");
    let other = client.says(&mut server, call);
    assert!(other[0].contains("ONCEMISMATCH"), "{other:?}");
    assert_eq!(server.say(call), first, "a repeat of the same user is answered");
    let mut again = TestClient::of(&server);
    assert_eq!(again.says(&mut server, call), [first], "on any connection");
}

/// A transaction of a restricted user was run command by command, though it came in one piece.
#[test]
fn a_transaction_in_one_piece_is_refused_in_whole_or_runs() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~a*");
    let run = |server: &mut TestServer, client: &mut TestClient, lines: &[&str]| -> usize {
        let owned: Vec<OwnedArgs> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let mut out = Output::default();
        let calls = owned.iter().map(OwnedArgs::as_args);
        server.worker.run_batch(&mut client.session, calls, &mut out).count
    };
    let good = ["MULTI", "SET a1 1", "GET a1", "EXEC"];
    assert_eq!(run(&mut server, &mut client, &good), good.len());
    assert_eq!(server.say("GET a1"), "\"1\"");
    assert_eq!(run(&mut server, &mut client, &["MULTI", "SET a2 1", "SET b 1", "EXEC"]), 0);
    set(&mut server, "-exec");
    assert_eq!(run(&mut server, &mut client, &good), 0);
    assert_eq!(server.say("EXISTS a2 b"), "0");
}

/// A user was deleted between the look at its password and the login: the connection was among
/// nobody's, and stayed open.
#[test]
fn who_logs_in_as_a_user_that_is_just_deleted_is_closed() {
    let mut server = TestServer::new();
    let mut client = user(&mut server, "on >pw +@all ~*");
    let node = server.worker.node.clone();
    let known = node.acl.user(b"u").unwrap();
    assert!(!ends_with_user(&node, &mut client.session, &known));
    node.acl.delete(&[b"u"]).unwrap();
    assert!(ends_with_user(&node, &mut client.session, &known));
    assert!(client.session.is_closing);
}
