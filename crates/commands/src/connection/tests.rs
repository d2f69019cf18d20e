//! What the wire files can't show: other clients' mail, replies withheld, the clock.

use crate::config::Origin;
use crate::session::ReplyMode;
use crate::testing::{Desk, Guest};

fn desk_and_guest() -> (Desk, Guest) {
    let desk = Desk::new();
    let guest = Guest::of(&desk);
    (desk, guest)
}

#[test]
fn hello_answers_in_the_protocol_it_chose() {
    let mut desk = Desk::new();
    let facts = desk.say("HELLO 3 SETNAME joe");
    assert!(facts.starts_with("{\"server\": \"redis\", \"version\": "), "{facts}");
    assert_eq!(desk.say("CLIENT GETNAME"), "\"joe\"");
    assert!(desk.say("HELLO 2").starts_with("[\"server\", \"redis\", "));
    assert_eq!(desk.say("HELLO 4"), "-NOPROTO unsupported protocol version");
}

#[test]
fn strangers_learn_nothing_until_they_log_in() {
    let mut desk = Desk::new();
    let pair = (&b"requirepass"[..], &b"secret"[..]);
    let config = &desk.worker.node.config;
    config.set(&[pair], Origin::Local, &mut |_| Ok(())).unwrap();
    assert_eq!(desk.say("PING"), "+PONG", "who was there before stays");
    assert_eq!(desk.say("RESET"), "+RESET");
    for line in ["PING", "NOSUCH", "GET", "MULTI", "COMMAND COUNT"] {
        assert_eq!(desk.say(line), "-NOAUTH Authentication required.", "{line}");
    }
    assert!(desk.say("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    for line in ["AUTH wrong", "AUTH default wrong", "AUTH other secret", "HELLO 3 AUTH default x"]
    {
        assert!(desk.say(line).starts_with("-WRONGPASS"), "{line}");
    }
    assert_eq!(desk.say("AUTH a b c"), "-ERR syntax error");
    assert_eq!(desk.say("AUTH secret"), "+OK");
    assert!(desk.say("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(desk.say("PING"), "+PONG", "a failed login does not log out");
    desk.say("RESET");
    assert!(desk.say("HELLO 3 AUTH default secret").starts_with('{'));
}

#[test]
fn a_refused_hello_changes_nothing() {
    let mut desk = Desk::new();
    for line in ["HELLO 3 AUTH nobody x", "HELLO 3 SETNAME a\tb", "HELLO 3 SETNAME j NONSENSE"] {
        assert!(desk.say(line).starts_with('-'), "{line}");
        assert_eq!(desk.say("CLIENT GETNAME"), "nil");
        assert!(desk.say("HELLO").starts_with('['), "still RESP2 after {line}");
    }
}

#[test]
fn select_in_a_transaction_moves_those_that_follow() {
    let mut desk = Desk::new();
    for line in ["MULTI", "SET k 0", "SELECT 1", "SET k 1", "SELECT 0", "GET k"] {
        desk.say(line);
    }
    assert_eq!(desk.say("EXEC"), "[+OK, +OK, +OK, +OK, \"0\"]");
    desk.say("SELECT 1");
    assert_eq!(desk.say("GET k"), "\"1\"");
    assert_eq!(desk.say("SELECT 16"), "-ERR DB index is out of range");
    assert_eq!(desk.say("GET k"), "\"1\"");
}

#[test]
fn a_killed_client_gets_a_letter_and_the_killer_closes_itself_last() {
    let (mut desk, guest) = desk_and_guest();
    assert_eq!(desk.say("CLIENT KILL ID 2"), "1");
    assert_eq!(guest.mail(), ["kill"]);
    assert_eq!(desk.say("CLIENT KILL ID 1"), "0", "SKIPME is the default");
    assert!(!desk.session.is_closing);
    assert_eq!(desk.say("CLIENT KILL 127.0.0.1:1"), "+OK");
    assert!(desk.session.is_closing && guest.mail().is_empty());
    assert_eq!(desk.say("CLIENT KILL ADDR 127.0.0.1:2 NOT-ID 2"), "0");
}

#[test]
fn only_a_client_blocked_on_keys_is_unblocked() {
    let (mut desk, mut guest) = desk_and_guest();
    assert_eq!(desk.say("CLIENT UNBLOCK 2"), "0");
    assert!(guest.says(&mut desk, "BLPOP k 0").is_empty());
    assert_eq!(desk.say("CLIENT UNBLOCK 2 ERROR"), "1");
    assert_eq!(desk.say("CLIENT UNBLOCK 2"), "0", "once is enough");
    assert_eq!(desk.say("RPUSH k a"), "1");
    assert_eq!(desk.say("LLEN k"), "1", "nobody waits any more, though it has not read its mail");
    assert_eq!(guest.mail(), ["unblock true"]);
    assert_eq!(desk.say("CLIENT UNBLOCK 9"), "0");
}

#[test]
fn a_pause_holds_clients_until_it_ends() {
    let (mut desk, mut guest) = desk_and_guest();
    assert_eq!(desk.say("CLIENT PAUSE 1000 WRITE"), "+OK");
    assert_eq!(guest.says(&mut desk, "GET k"), ["nil"]);
    assert!(guest.says(&mut desk, "SET k v").is_empty());
    assert!(guest.says(&mut desk, "SET k v").is_empty(), "held twice, told once");
    assert!(desk.say("CLIENT LIST ID 2").contains(" flags=b "));
    assert!(desk.say("INFO clients").contains("blocked_clients:1"));
    assert_eq!(desk.say("CLIENT UNBLOCK 2"), "0");
    assert_eq!(desk.say("CLIENT UNPAUSE"), "+OK");
    assert!(desk.say("INFO clients").contains("blocked_clients:0"));
    assert_eq!(guest.mail(), ["resume"]);
    assert_eq!(guest.says(&mut desk, "SET k v"), ["+OK"]);
    assert!(desk.say("CLIENT LIST ID 2").contains(" flags=N "));
    desk.say("CLIENT PAUSE 1000");
    desk.say("CLIENT PAUSE 10 WRITE");
    desk.clock.advance_ms(999);
    assert!(guest.says(&mut desk, "PING").is_empty(), "the longer and the wider of both");
    desk.clock.advance_ms(1);
    assert_eq!(guest.says(&mut desk, "PING"), ["+PONG"]);
}

/// Client libraries greet the server before they say anything else: HELLO was held, and with it
/// the CLIENT UNPAUSE behind it.
#[test]
fn a_new_client_can_log_in_and_end_a_pause() {
    let (mut desk, mut guest) = desk_and_guest();
    assert_eq!(desk.say("CLIENT PAUSE 100000 ALL"), "+OK");
    assert!(guest.says(&mut desk, "AUTH x")[0].contains("without any password configured"));
    assert_eq!(guest.says(&mut desk, "HELLO 2").len(), 1);
    assert_eq!(guest.says(&mut desk, "SELECT 1"), ["+OK"]);
    assert_eq!(guest.says(&mut desk, "CLIENT SETINFO lib-name x"), ["+OK"]);
    assert!(desk.worker.node.pause.is_on());
    assert_eq!(guest.says(&mut desk, "CLIENT UNPAUSE"), ["+OK"]);
    assert_eq!(guest.says(&mut desk, "PING"), ["+PONG"]);
}

#[test]
fn reset_brings_back_the_beginning() {
    let mut desk = Desk::new();
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
        assert!(!desk.say(line).starts_with('-'), "{line}");
    }
    assert_eq!(desk.say("RESET"), "+RESET");
    let line = desk.say("CLIENT INFO");
    for part in [" name= ", " flags=N ", " db=0 ", " multi=-1 watch=0 ", " resp=2 lib-name=lib "] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!desk.session.is_silent && desk.session.watching.is_empty());
    assert_eq!(desk.say("EXEC"), "-ERR EXEC without MULTI");
}

#[test]
fn reply_modes_follow_each_other() {
    let mut desk = Desk::new();
    let args = |word: &'static str| ["CLIENT", "REPLY", word];
    assert!(desk.try_run(&args("SKIP")).is_none(), "it writes nothing");
    assert_eq!(desk.session.reply_mode, ReplyMode::SkipNext);
    assert!(desk.try_run(&args("OFF")).is_none());
    assert!(desk.try_run(&args("SKIP")).is_none());
    assert_eq!(desk.session.reply_mode, ReplyMode::Off, "SKIP does not turn replies on again");
    assert_eq!(desk.say("CLIENT REPLY ON"), "+OK");
    assert!(desk.session.gate.is_open());
}

#[test]
fn filters_take_ages_from_the_clock() {
    let (mut desk, guest) = desk_and_guest();
    guest.session.card.names().name = b"bob".to_vec();
    desk.clock.advance_ms(5_000);
    let shown = |desk: &mut Desk, filter: &str| {
        let lines = desk.say(&format!("CLIENT LIST {filter}"));
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
        assert_eq!(shown(&mut desk, filter), count, "{filter}");
    }
}

#[test]
fn help_and_docs_cover_the_catalog() {
    let mut desk = Desk::new();
    let help = desk.say("CLIENT HELP");
    assert!(help.contains("+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    assert!(help.contains("+PAUSE <timeout> [WRITE|ALL]"), "{help}");
    for line in ["COMMAND", "COMMAND DOCS", "COMMAND INFO", "COMMAND LIST"] {
        assert!(!desk.say(line).starts_with('-'), "{line}");
    }
    let names = desk.say("COMMAND LIST");
    assert!(names.contains("\"get\"") && names.contains("\"client|list\""), "{names}");
    desk.say("HELLO 3");
    for line in ["COMMAND", "COMMAND DOCS"] {
        assert!(!desk.say(line).starts_with('-'), "{line}");
    }
}
