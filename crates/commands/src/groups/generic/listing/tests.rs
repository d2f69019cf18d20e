//! KEYS, RANDOMKEY and DBSIZE beside others who hold shards.

use crate::testing::TestClients;

fn filled(keys: usize) -> TestClients {
    let mut clients = TestClients::of(2);
    for key in 0..keys {
        clients.say(0, &format!("SET key:{key} v"));
    }
    clients
}

fn sorted(reply: &str) -> Vec<String> {
    let mut keys: Vec<String> = reply
        .split(|c: char| !(c.is_alphanumeric() || c == ':'))
        .filter(|part| part.contains(':'))
        .map(str::to_owned)
        .collect();
    keys.sort();
    keys
}

/// A busy shard in the middle must not cost what was found before it, nor give it twice.
#[test]
fn keys_goes_on_where_a_shard_was_busy() {
    let mut clients = filled(100);
    let quiet = sorted(&clients.say(0, "KEYS *"));
    assert_eq!(quiet.len(), 100);
    for busy in ["key:1", "key:50", "key:99"] {
        clients.while_busy(busy, |clients| assert_eq!(clients.say(0, "KEYS *"), "(busy)"));
        // What comes meanwhile may be seen or not; what was there throughout is seen once.
        clients.say(1, "DEL later:1");
        assert_eq!(sorted(&clients.say(0, "KEYS *")), quiet);
        assert_eq!(sorted(&clients.say(0, "KEYS *")), quiet, "the next call begins anew");
    }
}

/// A walk that was given up must not be mistaken for the next one's.
#[test]
fn another_call_does_not_go_on_with_a_walk() {
    let mut clients = filled(20);
    clients.while_busy("key:7", |clients| {
        assert_eq!(clients.say(0, "KEYS *"), "(busy)");
        assert_eq!(sorted(&clients.say(1, "KEYS key:3")), ["key:3"]);
    });
    assert_eq!(sorted(&clients.say(0, "KEYS *")).len(), 20);
}

#[test]
fn counting_keys_waits_for_nobody() {
    let mut clients = filled(30);
    clients.while_busy("key:3", |clients| assert_eq!(clients.say(0, "DBSIZE"), "30"));
    clients.say(0, "MULTI");
    clients.say(0, "SET another v");
    clients.say(0, "DBSIZE");
    assert!(clients.say(0, "EXEC").contains("31"), "what EXEC has changed is counted in it");
}

/// Most shards hold nothing but what has expired: the one live key is found all the same.
#[test]
fn a_random_key_is_found_among_expired_ones() {
    let mut clients = TestClients::of(1);
    for key in 0..200 {
        clients.say(0, &format!("SET gone:{key} v PX 5"));
    }
    clients.say(0, "SET here v");
    clients.advance_ms(10);
    for _ in 0..50 {
        assert!(clients.say(0, "RANDOMKEY").contains("here"));
    }
    clients.say(0, "DEL here");
    let none = clients.say(0, "RANDOMKEY");
    assert!(!none.contains("gone"), "{none}");
}
