//! Laws that hold for every line of the table.

use std::collections::HashSet;

use russet_base::OwnedArgs;

use crate::arg::{Arg, ArgKind};
use crate::spec::{Access, Arity, Begin, Categories, Flags, Group, Shape, implied_categories};
use crate::{
    Command, Spec, has_keys, is_first_arg_only_key, lookup, lookup_full, lookup_subcommand,
};

const SUMMARY_CHARS_MAX: usize = 80;

/// What cluster clients may be told; anything else is a slip of the pen.
const TIPS: &[&str] = &[
    "nondeterministic_output",
    "nondeterministic_output_order",
    "request_policy:all_nodes",
    "request_policy:all_shards",
    "request_policy:multi_shard",
    "request_policy:special",
    "response_policy:all_succeeded",
    "response_policy:agg_logical_and",
    "response_policy:agg_min",
    "response_policy:agg_sum",
    "response_policy:one_succeeded",
    "response_policy:special",
];

/// Each spec with its name, for the message of a broken law.
fn specs() -> impl Iterator<Item = (Command, &'static Spec)> {
    Command::ALL.iter().map(|command| (*command, command.spec()))
}

/// Every argument of a command, nested ones too.
fn args_of(spec: &Spec) -> Vec<&Arg> {
    fn collect<'a>(args: &'a [Arg], all: &mut Vec<&'a Arg>) {
        for arg in args {
            all.push(arg);
            collect(arg.parts, all);
        }
    }
    let mut all = Vec::new();
    collect(spec.args, &mut all);
    all
}

#[test]
fn names_are_unique_and_lower_case() {
    let mut seen = HashSet::new();
    for (command, spec) in specs() {
        assert!(seen.insert(spec.full_name), "{} twice", spec.full_name);
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || b"_-.".contains(&byte);
        assert!(spec.name.bytes().all(is_plain), "{}", spec.full_name);
        // The variant says the same name, so that the list in command.rs can't mix up two specs.
        let variant = format!("{command:?}").to_lowercase();
        assert_eq!(variant, spec.full_name.replace(['|', '-', '_', '.'], ""));
    }
}

#[test]
fn families_are_complete() {
    for (command, spec) in specs() {
        for sub in command.subcommands() {
            assert_eq!(sub.parent(), Some(command));
            assert_eq!(sub.full_name(), format!("{}|{}", spec.name, sub.spec().name));
            assert_eq!(sub.spec().group, spec.group);
            assert!(!sub.is_container());
        }
        if let Some(parent) = command.parent() {
            assert!(parent.subcommands().contains(&command));
        }
        let helps = lookup_subcommand(command, b"HELP").is_some();
        assert_eq!(helps, command.is_container(), "{}: HELP", spec.full_name);
    }
}

#[test]
fn every_name_leads_back_in_any_letter_case() {
    let alternating = |name: &str| -> String {
        let upper_at =
            |(at, c): (usize, char)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c };
        name.chars().enumerate().map(upper_at).collect()
    };
    for (command, spec) in specs() {
        for name in [spec.name.to_owned(), spec.name.to_uppercase(), alternating(spec.name)] {
            match command.parent() {
                None => assert_eq!(lookup(name.as_bytes()), Some(command)),
                Some(parent) => {
                    assert_eq!(lookup_subcommand(parent, name.as_bytes()), Some(command));
                }
            }
        }
        assert_eq!(lookup_full(spec.full_name.as_bytes()), Some(command));
    }
}

#[test]
fn arity_agrees_with_the_arguments() {
    // COMPAT: QUIT never looks at further args. The options of CLIENT KILL and XCFGSET are each
    // optional, but not all of them together. DEBUG's args are its handler's affair. A search for
    // places names its middle unless its shape is a polygon, which has more arguments. HOTKEYS
    // START names what it misses itself. What replicas send has parts that only they know.
    let is_odd = |command| {
        matches!(
            command,
            Command::Quit
                | Command::ClientKill
                | Command::Debug
                | Command::Xcfgset
                | Command::Once
                | Command::Geosearch
                | Command::Geosearchstore
                | Command::HotkeysStart
                | Command::Psync
                | Command::Replconf
        )
    };
    for (command, spec) in specs().filter(|(command, _)| !command.is_container()) {
        if is_odd(command) {
            assert!(matches!(spec.arity, Arity::AtLeast(_)));
            continue;
        }
        let name_len = 1 + usize::from(command.parent().is_some());
        let args_min = name_len + spec.args.iter().map(Arg::args_min).sum::<usize>();
        let is_fixed = spec.args.iter().all(Arg::is_fixed);
        let expected = match is_fixed {
            true => Arity::Exactly(args_min as u16),
            false => Arity::AtLeast(args_min as u16),
        };
        assert_eq!(spec.arity, expected, "{}", spec.full_name);
    }
}

#[test]
fn arguments_are_well_formed() {
    for (_, spec) in specs() {
        for arg in args_of(spec) {
            let name = format!("{}: {}", spec.full_name, arg.name);
            let is_tree = matches!(arg.kind, ArgKind::OneOf | ArgKind::Block);
            assert_eq!(is_tree, !arg.parts.is_empty(), "{name}");
            assert_eq!(is_tree, arg.display.is_empty(), "{name}");
            assert!(arg.kind != ArgKind::PureToken || arg.token.is_some(), "{name}");
            assert!(!arg.multiple_token || (arg.multiple && arg.token.is_some()), "{name}");
            let token = arg.token.unwrap_or_default();
            assert_eq!(token, token.to_uppercase(), "{name}");
        }
    }
}

#[test]
fn key_arguments_and_key_specs_point_at_each_other() {
    for (_, spec) in specs() {
        let mut named = HashSet::new();
        for arg in args_of(spec) {
            if let Some(index) = arg.kind.key_spec() {
                assert!(usize::from(index) < spec.key_specs.len(), "{}", spec.full_name);
                named.insert(usize::from(index));
            }
        }
        for (index, key_spec) in spec.key_specs.iter().enumerate() {
            // What only a parser finds, no argument is named for.
            if matches!(key_spec.begin, Begin::Unknown) {
                continue;
            }
            let is_key = !key_spec.access.has(Access::NOT_KEY);
            assert_eq!(named.contains(&index), is_key, "{}: key spec {index}", spec.full_name);
        }
    }
}

#[test]
fn commands_with_keys_either_read_or_write() {
    const KINDS: [Access; 4] = [Access::RO, Access::RW, Access::OW, Access::RM];
    for (command, spec) in specs().filter(|(command, _)| has_keys(*command)) {
        let (writes, reads) = (spec.flags.has(Flags::WRITE), spec.flags.has(Flags::READONLY));
        // WATCH neither reads nor writes: it remembers. What a script does, only it knows.
        let is_open = matches!(command, Command::Eval | Command::Evalsha | Command::Fcall);
        assert!(writes != reads || is_open || command == Command::Watch, "{}", spec.full_name);
        for key_spec in spec.key_specs {
            let kinds = KINDS.iter().filter(|kind| key_spec.access.has(**kind)).count();
            assert_eq!(kinds, 1, "{}", spec.full_name);
        }
        if is_open {
            continue;
        }
        // COMPAT: XREADGROUP writes to the group, and only reads what the key holds.
        if command == Command::Xreadgroup {
            continue;
        }
        let only_reads = spec.key_specs.iter().all(|key_spec| key_spec.access.has(Access::RO));
        // COMPAT: PFCOUNT reads, and keeps what it found in the value.
        assert_eq!(only_reads, !writes && command != Command::Pfcount, "{}", spec.full_name);
    }
}

#[test]
fn flags_agree_with_each_other_and_with_the_keys() {
    for (command, spec) in specs() {
        assert!(!(spec.flags.has(Flags::WRITE.or(Flags::READONLY))), "{}", spec.full_name);
        assert!(!spec.flags.has(Flags::DENYOOM) || spec.flags.has(Flags::WRITE));
        let movable = spec.flags.has(Flags::MOVABLE_KEYS);
        assert_eq!(movable, spec.legacy_range().is_partial, "{}", spec.full_name);
        assert!(!(spec.flags.has(Flags::ALL_SHARDS) && has_keys(command)), "{}", spec.full_name);
        assert!(!spec.flags.names().any(str::is_empty));
    }
}

/// A call with one key is planned without a look at its flags.
#[test]
fn a_command_whose_first_argument_is_its_only_key_needs_no_further_shards() {
    for (command, spec) in specs().filter(|(command, _)| is_first_arg_only_key(*command)) {
        assert!(!spec.flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS)), "{command:?}");
        assert!(!spec.arity.allows(1), "{command:?}");
    }
}

#[test]
fn categories_hold_what_the_flags_imply() {
    for (_, spec) in specs() {
        let name = spec.full_name;
        let mut implied = implied_categories(spec.flags);
        if spec.categories.has(Categories::SCRIPTING) {
            implied = implied.without(Categories::READ);
        }
        assert!(spec.categories.has(implied), "{name}");
        let is_fast = spec.flags.has(Flags::FAST);
        assert_eq!(spec.categories.has(Categories::FAST), is_fast, "{name}");
        assert_eq!(spec.categories.has(Categories::SLOW), !is_fast, "{name}");
        assert_eq!(spec.categories.has(Categories::WRITE), spec.flags.has(Flags::WRITE), "{name}");
    }
}

#[test]
fn texts_are_short_and_plain() {
    for (_, spec) in specs() {
        let name = spec.full_name;
        let chars = spec.summary.chars().count();
        assert!((1..=SUMMARY_CHARS_MAX).contains(&chars), "{name}: {chars} characters");
        assert!(spec.summary.starts_with(char::is_uppercase), "{name}");
        assert!(!spec.summary.ends_with('.'), "{name}");
        assert!(!spec.complexity.is_empty(), "{name}");
        assert!(spec.history.iter().all(|change| !change.note.is_empty()), "{name}");
        assert!(spec.tips.iter().all(|tip| TIPS.contains(tip)), "{name}: {:?}", spec.tips);
    }
}

#[test]
fn versions_have_three_numbers_and_no_change_precedes_its_command() {
    fn numbers(version: &str) -> [u16; 3] {
        let parts: Vec<_> = version.split('.').map(|part| part.parse().expect(version)).collect();
        parts.try_into().expect("three numbers")
    }
    for (_, spec) in specs() {
        let since = numbers(spec.since);
        assert!(spec.history.iter().all(|change| numbers(change.version) >= since));
        assert!(spec.deprecated.is_none_or(|deprecation| numbers(deprecation.since) >= since));
        for arg in args_of(spec).into_iter().filter(|arg| !arg.since.is_empty()) {
            assert!(numbers(arg.since) >= since, "{}: {}", spec.full_name, arg.name);
        }
    }
}

#[test]
fn only_containers_and_the_like_reply_anything() {
    for (command, spec) in specs().filter(|(_, spec)| spec.reply == Shape::Any) {
        let runs_others = spec.group == Group::Scripting;
        let is_open = command.is_container() || command == Command::Debug || runs_others;
        assert!(is_open, "{}", spec.full_name);
    }
}

/// Key positions stay inside the call and never panic, whatever the arguments and however few.
#[test]
fn keys_lie_inside_the_call() {
    let fillers = ["0", "1", "2", "3", "get", "9223372036854775807", "18446744073709551616", ""];
    for (command, spec) in specs() {
        for len in 0..8 {
            for filler in fillers {
                let mut args = vec![spec.name; len.min(1)];
                args.resize(len, filler);
                let call: OwnedArgs = args.into_iter().collect();
                let mut count = 0;
                let answer = crate::keys(command, call.as_args(), &mut |key| {
                    assert!(key.index < len);
                    count += 1;
                });
                assert!(answer.is_err() || count > 0, "{}", spec.full_name);
            }
        }
    }
}
