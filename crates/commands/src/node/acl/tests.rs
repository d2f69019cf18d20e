//! Rules and what they come to, against a small model: sets of names.

use super::selector::Call;
use super::{Acl, Rights};
use russet_base::{OwnedArgs, Random};
use russet_catalog::spec::{Categories, Flags};
use russet_catalog::{Command, keys, resolve};
use std::collections::BTreeSet;

fn rights(rules: &str) -> Rights {
    let mut rights = Rights::new(false);
    let rules = super::join_selectors(rules.split(' ').map(str::as_bytes)).unwrap();
    for rule in rules {
        rights.apply(&rule, false).unwrap_or_else(|bad| panic!("{rule:?}: {bad:?}"));
    }
    rights
}

fn line(rights: &Rights) -> String {
    let mut out = Vec::new();
    rights.write(&mut out);
    String::from_utf8(out).unwrap()
}

fn may(rights: &Rights, call: &str) -> bool {
    let args: OwnedArgs = call.split(' ').collect();
    let command = resolve(args.as_args()).unwrap();
    let call = Call { command, args: args.as_args(), db: 0, db_count: 16 };
    rights.check(&call).is_ok()
}

#[test]
fn what_is_written_is_read_again() {
    for rules in [
        "on nopass ~* &* +@all",
        "off resetchannels -@all",
        "on #2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae %R~a %W~b ~c \
         resetchannels &x db=0,3 -@all +get +config|get +@read -@write +select|0",
        "on nopass ~* resetchannels resetdbs +@all -@admin (~a resetchannels -@all +get) \
         (resetchannels db=3 +@all)",
    ] {
        let made = rights(rules);
        assert_eq!(line(&made), rules);
        assert_eq!(rights(&line(&made)), made);
    }
}

/// A new rule about a command takes the place of older ones about it; the sum stays the same.
#[test]
fn random_rules_come_to_what_a_set_of_names_does() {
    let mut random = Random::from_seed(11);
    for _ in 0..300 {
        let mut made = Rights::new(false);
        let mut model: BTreeSet<Command> = BTreeSet::new();
        for _ in 0..random.index(12) {
            let is_allowed = random.index(2) == 0;
            let sign = if is_allowed { "+" } else { "-" };
            let (rule, touched): (String, Vec<Command>) = match random.index(8) {
                0 => (format!("{sign}@all"), Command::ALL.to_vec()),
                1..=3 => {
                    let (category, name) = Categories::NAMES[random.index(Categories::NAMES.len())];
                    let is_of = |it: Command| it.spec().categories.has(category);
                    let all = Command::ALL.iter().copied();
                    let touched = all.filter(|it| is_of(*it) || it.parent().is_some_and(is_of));
                    (format!("{sign}@{name}"), touched.collect())
                }
                _ => {
                    let command = Command::ALL[random.index(Command::ALL.len())];
                    let family = [&[command], command.subcommands()].concat();
                    (format!("{sign}{}", command.full_name()), family)
                }
            };
            made.apply(rule.as_bytes(), false).unwrap();
            for command in touched {
                if is_allowed {
                    model.insert(command);
                } else {
                    model.remove(&command);
                }
            }
        }
        made.apply(b"allkeys", false).unwrap();
        made.apply(b"allchannels", false).unwrap();
        let again = rights(&line(&made));
        for command in Command::ALL.iter().copied() {
            let args: OwnedArgs = command.full_name().split('|').collect();
            let call = Call { command, args: args.as_args(), db: 0, db_count: 16 };
            let expected = model.contains(&command) || command.spec().flags.has(Flags::NO_AUTH);
            let name = command.full_name();
            assert_eq!(made.check(&call).is_ok(), expected, "{name}: {}", line(&made));
            assert_eq!(again.check(&call).is_ok(), expected, "{name}: {}", line(&made));
        }
    }
}

/// A command whose keys the check does not see would let every user at them: each key that the
/// catalog finds is refused to who has none, and allowed to who has it.
#[test]
fn no_key_escapes_the_check() {
    let nobody = rights("on +@all");
    for command in Command::ALL.iter().copied().filter(|it| russet_catalog::has_keys(*it)) {
        let mut args: Vec<&str> = command.full_name().split('|').collect();
        // Enough args for every command; numbers serve as counts of keys, too.
        let tail = match command {
            Command::Xread => vec!["STREAMS", "k", "0"],
            Command::Xreadgroup => vec!["GROUP", "g", "c", "STREAMS", "k", "0"],
            Command::Once => vec!["id", "PX", "1", "SET", "k", "v"],
            Command::Eval
            | Command::EvalRo
            | Command::Evalsha
            | Command::EvalshaRo
            | Command::Fcall
            | Command::FcallRo => vec!["s", "1", "k"],
            _ => vec!["1"; 6],
        };
        args.extend(tail);
        let owned: OwnedArgs = args.iter().copied().collect();
        let mut found = Vec::new();
        let _few_are_whole = keys(command, owned.as_args(), &mut |key| found.push(key.index));
        assert!(!found.is_empty(), "{}", command.full_name());
        let call = Call { command, args: owned.as_args(), db: 0, db_count: 16 };
        assert!(nobody.check(&call).is_err(), "{}", command.full_name());
        let all_of_them = rights("on +@all ~1 ~k");
        assert!(all_of_them.check(&call).is_ok(), "{}", command.full_name());
    }
}

#[test]
fn one_selector_must_allow_all_of_a_call() {
    let made = rights("on +get ~a (+set ~b) (+mget ~a ~b)");
    for call in ["GET a", "SET b 1", "MGET a b", "AUTH x", "RESET"] {
        assert!(may(&made, call), "{call}");
    }
    for call in ["GET b", "SET a 1", "MGET a c", "DEL a", "PING"] {
        assert!(!may(&made, call), "{call}");
    }
}

#[test]
fn reading_and_writing_are_distinct() {
    let made = rights("on +@all %R~r %W~w");
    for call in ["GET r", "SET w 1", "COPY r w", "EXISTS r w", "SORT r STORE w"] {
        assert!(may(&made, call), "{call}");
    }
    for call in
        ["GET w", "SET r 1", "SET w 1 GET", "INCR w", "COPY w r", "GETDEL w", "GETEX r EX 1"]
    {
        assert!(!may(&made, call), "{call}");
    }
}

#[test]
fn a_user_with_everything_is_known_as_such() {
    for rules in ["+@all ~* &*", "+@all -get +get ~* &*", "+get (+@all ~* &*)"] {
        assert!(rights(rules).is_unrestricted(), "{rules}");
    }
    for rules in ["+@all ~*", "+@all ~* &* -get", "+@all ~* &* db=0", "+@all &* %RW~*"] {
        assert!(!rights(rules).is_unrestricted(), "{rules}");
    }
}

#[test]
fn a_change_is_whole_or_not_at_all() {
    let acl = Acl::default();
    let rules = |line: &str| line.split(' ').map(|it| it.as_bytes().to_vec()).collect::<Vec<_>>();
    let version = acl.version();
    assert_eq!(acl.set_user(b"u", &rules("on ~a +nosuch"), false).unwrap_err().0, 2);
    assert!(acl.user(b"u").is_none() && acl.version() == version);
    acl.set_user(b"u", &rules("on >pw ~a"), false).unwrap();
    assert!(acl.set_user(b"u", &rules("off db=x"), false).is_err());
    assert!(acl.authenticate(b"u", b"pw").is_some() && acl.authenticate(b"u", b"").is_none());
    assert!(acl.delete(&[b"u", b"default"]).is_none() && acl.user(b"u").is_some());
    assert_eq!(acl.delete(&[b"u", b"v"]).unwrap().0, 1);
    assert!(acl.authenticate(b"u", b"pw").is_none());
}
