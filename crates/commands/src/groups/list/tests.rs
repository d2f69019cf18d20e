//! Lists as clients see them, without sockets.

mod model;
mod waiting;

use crate::testing::{TestClient, TestClients, TestServer};

#[test]
fn both_ends_push_and_pop() {
    let mut server = TestServer::new();
    assert_eq!(server.say("RPUSH k a b c"), "3");
    assert_eq!(server.say("LPUSH k 1 2"), "5");
    assert_eq!(server.say("LRANGE k 0 -1"), r#"["2", "1", "a", "b", "c"]"#);
    assert_eq!(server.say("LPOP k"), r#""2""#);
    assert_eq!(server.say("RPOP k 2"), r#"["c", "b"]"#);
    assert_eq!(server.say("LLEN k"), "2");
    assert_eq!(server.say("LPOP k 0"), "[]");
    assert_eq!(server.say("LPOP k 9"), r#"["1", "a"]"#);
    assert_eq!(server.say("LPOP k"), "nil");
    assert_eq!(server.say("LPOP k 1"), "nil-array");
    assert_eq!(server.say("EXISTS k"), "0");
}

#[test]
fn refusals_come_in_order() {
    let mut server = TestServer::new();
    let not_integer = "-ERR value is not an integer or out of range";
    assert_eq!(server.say("LMPOP 1 k LEFT COUNT 0 COUNT 1"), "-ERR count should be greater than 0");
    assert_eq!(server.say("LMPOP 1 k LEFT COUNT 1 COUNT 0"), "-ERR syntax error");
    assert_eq!(server.say("LMPOP 99999999999999999 k LEFT"), "-ERR syntax error");
    assert_eq!(server.say("LINDEX k x"), "nil");
    assert_eq!(server.say("LSET k x v"), "-ERR no such key");
    server.say("RPUSH k a");
    assert_eq!(server.say("LINDEX k x"), not_integer);
    assert_eq!(server.say("LSET k x v"), not_integer);
    assert_eq!(server.say("LSET k 9223372036854775807 v"), "-ERR index out of range");
    assert_eq!(server.say("LPOP k x"), "-ERR value is out of range, must be positive");
    let range = "-ERR value is out of range, \
                 value must between -9223372036854775807 and 9223372036854775807";
    assert_eq!(server.say("LREM k -9223372036854775808 v"), range);
    assert_eq!(server.say("LPOS k v RANK -9223372036854775808"), range);
    assert_eq!(server.say("LRANGE k 0 -1"), r#"["a"]"#);
}

#[test]
fn a_list_that_moves_onto_itself_keeps_its_time() {
    let mut server = TestServer::new();
    server.say("RPUSH k a");
    server.say("EXPIRE k 100");
    assert_eq!(server.say("LMOVE k k LEFT RIGHT"), r#""a""#);
    assert_eq!(server.say("LMOVEM k k RIGHT LEFT EXACTLY 1 BULK"), r#"["a"]"#);
    assert_eq!(server.say("TTL k"), "100");
}

#[test]
fn empty_keys_and_elements_are_like_others() {
    let mut server = TestServer::new();
    assert_eq!(server.run(&["RPUSH", "", "a", ""]).to_string(), "2");
    // Queued arguments lie end to end, so an empty one has its neighbour's address.
    server.say("MULTI");
    server.run(&["LMOVE", "", "k", "LEFT", "LEFT"]);
    server.run(&["LMOVE", "k", "", "LEFT", "LEFT"]);
    server.run(&["RPOPLPUSH", "", "k"]);
    assert_eq!(server.say("EXEC"), r#"["a", "a", ""]"#);
    assert_eq!(server.run(&["LRANGE", "", "0", "-1"]).to_string(), r#"["a"]"#);
    assert_eq!(server.say("LRANGE k 0 -1"), r#"[""]"#);
}

/// The events of one command, in their order.
fn events(clients: &mut TestClients, line: &str) -> Vec<String> {
    clients.say(1, line);
    let mut seen = Vec::new();
    loop {
        let letter = clients.read(0);
        if letter == "(none)" {
            return seen;
        }
        let parts: Vec<&str> = letter.split('"').collect();
        let event = parts[5].rsplit(':').next().unwrap_or_default();
        seen.push(format!("{event} {}", parts[7]));
    }
}

#[test]
fn moves_inside_one_list_are_told() {
    let mut clients = TestClients::of(2);
    clients.say(0, "PSUBSCRIBE __keyevent@0__:*");
    clients.notify_all();
    assert_eq!(events(&mut clients, "RPUSH a 1 2"), ["new a", "rpush a"]);
    assert_eq!(events(&mut clients, "LMOVE a a LEFT RIGHT"), ["rpush a", "lpop a"]);
    assert_eq!(events(&mut clients, "LMOVEM a a LEFT RIGHT"), ["lpop a", "rpush a"]);
    assert_eq!(events(&mut clients, "LMOVE a b LEFT RIGHT"), ["new b", "rpush b", "lpop a"]);
    assert_eq!(
        events(&mut clients, "LMOVEM a b RIGHT LEFT COUNT 5 BULK"),
        ["lpush b", "rpop a", "del a"]
    );
    assert_eq!(events(&mut clients, "LTRIM b 0 -1"), ["ltrim b"]);
    assert_eq!(events(&mut clients, "LREM b 0 x"), Vec::<String>::new());
    assert_eq!(events(&mut clients, "LSET b 0 x"), ["lset b"]);
    assert_eq!(events(&mut clients, "LINSERT b AFTER x y"), ["linsert b"]);
    assert_eq!(events(&mut clients, "LREM b 0 x"), ["lrem b"]);
    assert_eq!(events(&mut clients, "LTRIM b 5 6"), ["ltrim b", "del b"]);
}

/// A pop that waited, and a move of several, are recorded as what every server has.
#[test]
fn pops_and_moves_are_recorded_as_what_they_came_to() {
    let mut server = TestServer::new();
    server.say("RPUSH l a b c d e f g h");
    for (line, records) in [
        ("BLPOP nosuch l 0", vec!["LPOP l"]),
        ("BRPOP l 0", vec!["RPOP l"]),
        ("BLMPOP 0 2 nosuch l LEFT COUNT 2", vec!["LPOP l 2"]),
        ("LMPOP 1 l RIGHT", vec!["LMPOP 1 l RIGHT"]),
        ("BLMOVE l m LEFT RIGHT 0", vec!["LMOVE l m LEFT RIGHT"]),
        ("BRPOPLPUSH l m 0", vec!["LMOVE l m RIGHT LEFT"]),
        ("LMOVEM m l LEFT LEFT COUNT 9 BULK", vec!["LPOP m 2", "LPUSH l d f"]),
        ("LMOVEM l m RIGHT LEFT COUNT 2 OBO", vec!["RPOP l 2", "LPUSH m e d"]),
        ("LMOVEM m m LEFT RIGHT COUNT 2 OBO", vec!["LMOVE m m LEFT RIGHT"; 2]),
        ("LMOVEM m m LEFT LEFT COUNT 2 BULK", vec![]),
        ("BLPOP nosuch 0.001", vec![]),
    ] {
        assert_eq!(server.records_of(line), records, "{line}");
    }
    let mut server = TestServer::new();
    assert_eq!(server.try_run(&["BLPOP", "l", "0"]), None);
    let mut other = TestClient::of(&server);
    let records = server.record(|server| _ = other.says(server, "RPUSH l a b"));
    assert_eq!(records, ["RPUSH l a b", "LPOP l"]);
}
