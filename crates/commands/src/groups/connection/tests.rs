//! What the wire files can't show: other clients' mail, replies withheld, the clock.

use crate::call::session::ReplyMode;
use crate::testing::{TestClient, TestServer};

fn server_and_client() -> (TestServer, TestClient) {
    let server = TestServer::new();
    let client = TestClient::of(&server);
    (server, client)
}

#[test]
fn hello_answers_in_the_protocol_it_chose() {
    let mut server = TestServer::new();
    let facts = server.say("HELLO 3 SETNAME joe");
    assert!(facts.starts_with("{\"server\": \"redis\", \"version\": "), "{facts}");
    assert_eq!(server.say("CLIENT GETNAME"), "\"joe\"");
    assert!(server.say("HELLO 2").starts_with("[\"server\", \"redis\", "));
    assert_eq!(server.say("HELLO 4"), "-NOPROTO unsupported protocol version");
}

#[test]
fn strangers_learn_nothing_until_they_log_in() {
    let mut server = TestServer::new();
    assert_eq!(server.say("CONFIG SET requirepass secret"), "+OK");
    assert_eq!(server.say("PING"), "+PONG", "who was there before stays");
    assert_eq!(server.say("RESET"), "+RESET");
    for line in ["PING", "NOSUCH", "GET", "MULTI", "COMMAND COUNT"] {
        assert_eq!(server.say(line), "-NOAUTH Authentication required.", "{line}");
    }
    assert!(server.say("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    for line in ["AUTH wrong", "AUTH default wrong", "AUTH other secret", "HELLO 3 AUTH default x"]
    {
        assert!(server.say(line).starts_with("-WRONGPASS"), "{line}");
    }
    assert_eq!(server.say("AUTH a b c"), "-ERR syntax error");
    assert_eq!(server.say("AUTH secret"), "+OK");
    assert!(server.say("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(server.say("PING"), "+PONG", "a failed login does not log out");
    server.say("RESET");
    assert!(server.say("HELLO 3 AUTH default secret").starts_with('{'));
}

#[test]
fn a_refused_hello_changes_nothing() {
    let mut server = TestServer::new();
    for line in ["HELLO 3 AUTH nobody x", "HELLO 3 SETNAME a\tb", "HELLO 3 SETNAME j NONSENSE"] {
        assert!(server.say(line).starts_with('-'), "{line}");
        assert_eq!(server.say("CLIENT GETNAME"), "nil");
        assert!(server.say("HELLO").starts_with('['), "still RESP2 after {line}");
    }
}

#[test]
fn select_in_a_transaction_moves_those_that_follow() {
    let mut server = TestServer::new();
    for line in ["MULTI", "SET k 0", "SELECT 1", "SET k 1", "SELECT 0", "GET k"] {
        server.say(line);
    }
    assert_eq!(server.say("EXEC"), "[+OK, +OK, +OK, +OK, \"0\"]");
    server.say("SELECT 1");
    assert_eq!(server.say("GET k"), "\"1\"");
    assert_eq!(server.say("SELECT 16"), "-ERR DB index is out of range");
    assert_eq!(server.say("GET k"), "\"1\"");
}

#[test]
fn a_killed_client_gets_a_letter_and_the_killer_closes_itself_last() {
    let (mut server, client) = server_and_client();
    assert_eq!(server.say("CLIENT KILL ID 2"), "1");
    assert_eq!(client.mail(), ["kill"]);
    assert_eq!(server.say("CLIENT KILL ID 1"), "0", "SKIPME is the default");
    assert!(!server.session.is_closing);
    assert_eq!(server.say("CLIENT KILL 127.0.0.1:1"), "+OK");
    assert!(server.session.is_closing && client.mail().is_empty());
    assert_eq!(server.say("CLIENT KILL ADDR 127.0.0.1:2 NOT-ID 2"), "0");
}

#[test]
fn only_a_client_blocked_on_keys_is_unblocked() {
    let (mut server, mut client) = server_and_client();
    assert_eq!(server.say("CLIENT UNBLOCK 2"), "0");
    assert!(client.says(&mut server, "BLPOP k 0").is_empty());
    assert_eq!(server.say("CLIENT UNBLOCK 2 ERROR"), "1");
    assert_eq!(server.say("CLIENT UNBLOCK 2"), "0", "once is enough");
    assert_eq!(server.say("RPUSH k a"), "1");
    assert_eq!(server.say("LLEN k"), "1", "nobody waits any more, though it has not read its mail");
    assert_eq!(client.mail(), ["unblock true"]);
    assert_eq!(server.say("CLIENT UNBLOCK 9"), "0");
}

#[test]
fn a_pause_holds_clients_until_it_ends() {
    let (mut server, mut client) = server_and_client();
    assert_eq!(server.say("CLIENT PAUSE 1000 WRITE"), "+OK");
    assert_eq!(client.says(&mut server, "GET k"), ["nil"]);
    assert!(client.says(&mut server, "SET k v").is_empty());
    assert!(client.says(&mut server, "SET k v").is_empty(), "held twice, notified once");
    assert!(server.say("CLIENT LIST ID 2").contains(" flags=b "));
    assert!(server.say("INFO clients").contains("blocked_clients:1"));
    assert_eq!(server.say("CLIENT UNBLOCK 2"), "0");
    assert_eq!(server.say("CLIENT UNPAUSE"), "+OK");
    assert!(server.say("INFO clients").contains("blocked_clients:0"));
    assert_eq!(client.mail(), ["resume"]);
    assert_eq!(client.says(&mut server, "SET k v"), ["+OK"]);
    assert!(server.say("CLIENT LIST ID 2").contains(" flags=N "));
    server.say("CLIENT PAUSE 1000");
    server.say("CLIENT PAUSE 10 WRITE");
    server.clock.advance_ms(999);
    assert!(client.says(&mut server, "PING").is_empty(), "the longer and the wider of both");
    server.clock.advance_ms(1);
    assert_eq!(client.says(&mut server, "PING"), ["+PONG"]);
}

/// Client libraries greet the server before they say anything else: HELLO was held, and with it
/// the CLIENT UNPAUSE behind it.
#[test]
fn a_new_client_can_log_in_and_end_a_pause() {
    let (mut server, mut client) = server_and_client();
    assert_eq!(server.say("CLIENT PAUSE 100000 ALL"), "+OK");
    assert!(client.says(&mut server, "AUTH x")[0].contains("without any password configured"));
    assert_eq!(client.says(&mut server, "HELLO 2").len(), 1);
    assert_eq!(client.says(&mut server, "SELECT 1"), ["+OK"]);
    assert_eq!(client.says(&mut server, "CLIENT SETINFO lib-name x"), ["+OK"]);
    // What redis-py asks first. Its flag was lost.
    assert_eq!(client.says(&mut server, "CLIENT MAINT_NOTIFICATIONS OFF").len(), 1);
    assert!(server.worker.node.pause.is_on());
    assert_eq!(client.says(&mut server, "CLIENT UNPAUSE"), ["+OK"]);
    assert_eq!(client.says(&mut server, "PING"), ["+PONG"]);
}

#[test]
fn reset_brings_back_the_beginning() {
    let mut server = TestServer::new();
    for line in [
        "SELECT 3",
        "CLIENT SETNAME joe",
        "CLIENT SETINFO LIB-NAME lib",
        "CLIENT NO-TOUCH ON",
        "CLIENT NO-EVICT ON",
        "HELLO 3",
        "WATCH k",
        "MULTI",
    ] {
        assert!(!server.say(line).starts_with('-'), "{line}");
    }
    assert_eq!(server.say("RESET"), "+RESET");
    let line = server.say("CLIENT INFO");
    for part in [" name= ", " flags=N ", " db=0 ", " multi=-1 watch=0 ", " resp=2 lib-name=lib "] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!server.session.is_silent && server.session.watching.is_empty());
    assert_eq!(server.say("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn reply_modes_follow_each_other() {
    let mut server = TestServer::new();
    let args = |arg: &'static str| ["CLIENT", "REPLY", arg];
    assert!(server.try_run(&args("SKIP")).is_none(), "it writes nothing");
    assert_eq!(server.session.reply_mode, ReplyMode::SkipNext);
    assert!(server.try_run(&args("OFF")).is_none());
    assert!(server.try_run(&args("SKIP")).is_none());
    assert_eq!(server.session.reply_mode, ReplyMode::Off, "SKIP does not turn replies on again");
    assert_eq!(server.say("CLIENT REPLY ON"), "+OK");
    assert!(server.session.gate.is_open());
}

#[test]
fn filters_take_ages_from_the_clock() {
    let (mut server, client) = server_and_client();
    client.session.card.names().name = b"bob".to_vec();
    server.clock.advance_ms(5_000);
    let shown = |server: &mut TestServer, filter: &str| {
        let lines = server.say(&format!("CLIENT LIST {filter}"));
        lines.matches("id=").count()
    };
    for (filter, count) in [
        ("MAXAGE 5 NOT-ID 1", 1),
        ("MAXAGE 6 NOT-ID 1", 0),
        ("IDLE 5 ID 2", 1),
        ("NAME bob", 1),
        ("NOT-NAME bob", 1),
        ("IP 127.0.0.1 SKIPME YES", 1),
        ("FLAGS N", 2),
        ("FLAGS P", 0),
        ("TYPE normal ID", 0),
        ("TYPE normal NOT-ID", 2),
    ] {
        assert_eq!(shown(&mut server, filter), count, "{filter}");
    }
}

#[test]
fn help_and_docs_cover_the_catalog() {
    let mut server = TestServer::new();
    let help = server.say("CLIENT HELP");
    assert!(help.contains("+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    assert!(help.contains("+PAUSE <timeout> [WRITE|ALL]"), "{help}");
    for line in ["COMMAND", "COMMAND DOCS", "COMMAND INFO", "COMMAND LIST"] {
        assert!(!server.say(line).starts_with('-'), "{line}");
    }
    let names = server.say("COMMAND LIST");
    assert!(names.contains("\"get\"") && names.contains("\"client|list\""), "{names}");
    server.say("HELLO 3");
    for line in ["COMMAND", "COMMAND DOCS"] {
        assert!(!server.say(line).starts_with('-'), "{line}");
    }
}
