//! What a wire file can't show: corrupt values of every kind, by the thousand.

use crate::testing::TestServer;
use russet_base::Random;

fn is_known_refusal(reply: &str) -> bool {
    reply.starts_with('-')
        && (reply.contains("INVALIDOBJ")
            || reply.contains("WRONGTYPE")
            || reply.contains("not sparse"))
}

#[test]
fn no_bytes_break_the_commands() {
    let mut random = Random::from_seed(11);
    let mut server = TestServer::new();
    for round in 0..400u32 {
        server.say("DEL k");
        for n in 0..random.below(40) {
            server.say(&format!("PFADD k e{round}-{n}"));
        }
        if random.chance(0.1) {
            server.say("PFADD k a");
            server.say("PFDEBUG TODENSE k");
        }
        for _ in 0..=random.below(3) {
            let len = 1 + random.index(3);
            let noise: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            let at = random.below(40).to_string();
            match random.below(3) {
                0 => server.run(&[b"APPEND", b"k".as_slice(), &noise]),
                _ => server.run(&[b"SETRANGE".as_slice(), b"k", at.as_bytes(), &noise]),
            };
        }
        let before = server.run(&["GET", "k"]);
        for command in
            ["PFADD k x y z", "PFADD k q", "PFCOUNT k", "PFCOUNT k k", "PFMERGE d k", "PFMERGE k d"]
        {
            let reply = server.say(command);
            if reply.starts_with('-') {
                assert!(is_known_refusal(&reply), "{command}: {reply}");
                if command == "PFADD k x y z" {
                    assert_eq!(
                        server.run(&["GET", "k"]),
                        before,
                        "a refused command leaves no trace"
                    );
                }
            }
        }
        for subcommand in ["DECODE", "ENCODING", "GETREG", "TODENSE"] {
            let reply = server.say(&format!("PFDEBUG {subcommand} k"));
            assert!(!reply.starts_with('-') || is_known_refusal(&reply), "{reply}");
        }
    }
}

/// A dense target takes what sparse sources add mark by mark; register by register it must come to
/// the same. One of the sources is corrupt in the end: the target stays as it was.
#[test]
fn merging_into_a_dense_target_adds_what_it_lacks() {
    let mut random = Random::from_seed(5);
    let mut server = TestServer::new();
    for round in 0..40u32 {
        server.say("DEL target copy a b");
        for (key, count) in [("target", 300), ("a", random.below(400)), ("b", random.below(900))] {
            for _ in 0..count {
                server.say(&format!("PFADD {key} e{}", random.below(4_000)));
            }
        }
        server.say("COPY target copy");
        server.say("PFDEBUG TODENSE target");
        if round % 2 == 0 {
            server.say("PFDEBUG TODENSE b");
        }
        assert_eq!(server.say("PFMERGE target a b none"), "+OK");
        assert_eq!(server.say("PFMERGE copy a b"), "+OK");
        assert_eq!(server.say("PFDEBUG GETREG target"), server.say("PFDEBUG GETREG copy"));
        assert_eq!(server.say("PFCOUNT target"), server.say("PFCOUNT copy"));
    }
    server.say("DEL a");
    server.say("PFADD a new1 new2 new3");
    server.run(&[b"APPEND".as_slice(), b"a", b"\x00"]);
    let before = server.run(&["GET", "target"]);
    assert!(is_known_refusal(&server.say("PFMERGE target a")));
    assert_eq!(server.run(&["GET", "target"]), before);
}

/// Whether a value is dense depends on the configuration, which may be another where the records
/// are run again. The kept estimate is data, too.
#[test]
fn a_hyperloglog_that_becomes_dense_says_so_in_its_record() {
    let mut server = TestServer::new();
    server.check_records(&[
        ("PFADD p a b", "PFADD p a b"),
        ("PFADD p a", ""),
        ("PFCOUNT p", "PFCOUNT p"),
        ("PFCOUNT p", ""),
        ("PFCOUNT p q", ""),
        ("PFMERGE m p", "PFMERGE m p"),
        ("PFDEBUG TODENSE m", "PFDEBUG TODENSE m"),
        ("PFDEBUG TODENSE m", ""),
        ("PFADD m c", "PFADD m c"),
        ("PFMERGE d p m", "PFMERGE d p m | PFDEBUG TODENSE d"),
    ]);
    server.say("CONFIG SET hll-sparse-max-bytes 0");
    server.check_records(&[
        ("PFADD p c", "PFADD p c | PFDEBUG TODENSE p"),
        ("PFADD p d", "PFADD p d"),
        ("PFADD n a", "PFADD n a | PFDEBUG TODENSE n"),
    ]);
}
