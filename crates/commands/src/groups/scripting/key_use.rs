//! Which shards a script needs, from what its code shows: those of its KEYS, if no command in it
//! can have a key that is not one of them, else all.
//!
//! The analysis of the code lists every call with what is known of its arguments; here the catalog
//! says which of them are keys. Whatever is not certain makes the script wide. At run time `host`
//! checks each key once more, so a mistake here would be an error and never a look at an unlocked
//! key.

use crate::node::Node;
use russet_base::OwnedArgs;
use russet_catalog::spec::{Begin, Flags, KeySpec};
use russet_catalog::{
    Command, Unknown, has_keys, is_first_arg_only_key, keys as key_positions, resolve,
};
use russet_scripting::keys::{Argument, CommandCall, Rest};

/// Arguments that a call whose end is open is tried with.
const OPEN_ARGS: usize = 6;

/// Whether every key of a call is one of KEYS, for a server that may have other names for commands.
/// What has another name is not looked into.
pub fn is_narrow_on(node: &Node, call: &CommandCall) -> bool {
    let is_other = |name: &[u8]| node.renames.as_ref().is_some_and(|it| it.concerns(name));
    !call.command().is_some_and(is_other) && is_narrow(call)
}

/// Whether every key of a call is one of KEYS.
pub fn is_narrow(call: &CommandCall) -> bool {
    if call.command().is_none() {
        return false;
    }
    let args = placeholder_args(call, 0);
    let is_second_named = matches!(call.args.get(1), Some(Argument::Constant(_)));
    let command = match resolve(args.as_args()) {
        Ok(command) => command,
        // What no command is, is refused at run time.
        Err(Unknown::Command) => return true,
        // A subcommand that is chosen at run time may be any.
        Err(Unknown::Subcommand(_)) => return is_second_named,
    };
    let flags = command.spec().flags;
    // All others of these are refused at run time.
    if flags.has(Flags::NOSCRIPT) && command != Command::Debug {
        return true;
    }
    let uses_further_keys = flags.has_any(Flags::ALL_SHARDS.or(Flags::FURTHER_SHARDS));
    if uses_further_keys || (command.is_container() && call.rest != Rest::Nothing) {
        return false;
    }
    if !has_keys(command) {
        return true;
    }
    if is_first_arg_only_key(command) {
        return match call.args.get(1) {
            Some(argument) => *argument == Argument::Key,
            None => call.rest != Rest::Unknown,
        };
    }
    keys_are_known(call, command)
}

/// Whether the positions of keys follow from what is known, and all hold elements of KEYS.
fn keys_are_known(call: &CommandCall, command: Command) -> bool {
    let specs = command.spec().key_specs;
    if specs.iter().any(|spec| may_begin_elsewhere(call, command, spec)) {
        return false;
    }
    let lengths = if call.rest == Rest::Nothing { 0..=0 } else { 0..=OPEN_ARGS };
    lengths.into_iter().all(|open| {
        let args = placeholder_args(call, open);
        let args = args.as_args();
        let mut all_known = true;
        let found = key_positions(command, args, &mut |key| {
            all_known &= match call.args.get(key.index) {
                Some(argument) => *argument == Argument::Key,
                None => call.rest == Rest::Keys,
            };
        });
        // Without a known count there is no telling; too few arguments are refused at run time.
        let is_too_short = !command.spec().arity.allows(args.len());
        is_too_short || (found.is_ok() && all_known)
    })
}

/// Whether an arg that is not known may turn out to be the keyword before a key, or move the end of
/// the keys to and fro.
fn may_begin_elsewhere(call: &CommandCall, command: Command, spec: &KeySpec) -> bool {
    let Begin::Keyword { token, from } = spec.begin else {
        return matches!(spec.begin, Begin::Unknown);
    };
    if call.rest != Rest::Nothing {
        return true;
    }
    // Their options are read one by one: an argument that is not known is none of them.
    if matches!(command, Command::Xread | Command::Xreadgroup) {
        return false;
    }
    let from = usize::try_from(from).unwrap_or(0);
    // No key follows the last argument, whatever it is.
    let last = call.args.len().saturating_sub(1);
    for argument in call.args.get(from..last).unwrap_or_default() {
        match argument {
            Argument::Constant(text) if text.eq_ignore_ascii_case(token.as_bytes()) => {
                return false;
            }
            Argument::Constant(_) => {}
            Argument::Key | Argument::Unknown => return true,
        }
    }
    false
}

/// The call's args: constants as they are, others as one that is neither a number nor an
/// option.
fn placeholder_args(call: &CommandCall, open: usize) -> OwnedArgs {
    let mut args = OwnedArgs::default();
    for argument in &call.args {
        match argument {
            Argument::Constant(text) => args.push(text),
            Argument::Key | Argument::Unknown => args.push(b"\x01"),
        }
    }
    (0..open).for_each(|_| args.push(b"\x01"));
    args
}

#[cfg(test)]
mod tests {
    use super::is_narrow;
    use russet_scripting::compile;

    fn narrow(source: &str) -> bool {
        let chunk = compile(source.as_bytes(), b"@user_script").expect("it compiles");
        chunk.keys_use().script_is_narrow(&is_narrow)
    }

    #[test]
    fn keys_from_keys_are_narrow() {
        for source in [
            "return 1",
            "return redis.call('GET', KEYS[1])",
            "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])",
            "local k = KEYS[1] local n = redis.call('incr', k) if n == 1 then \
             redis.call('pexpire', k, ARGV[1]) end return n",
            "for i = 1, #KEYS do redis.call('del', KEYS[i]) end",
            "for _, k in ipairs(KEYS) do redis.call('del', k) end",
            "return redis.call('mget', unpack(KEYS))",
            "return redis.call('mset', KEYS[1], ARGV[1], KEYS[2], ARGV[2])",
            "return redis.call('zunionstore', KEYS[1], 2, KEYS[2], KEYS[3])",
            "return redis.call('object', 'encoding', KEYS[1])",
            "return redis.call('publish', 'channel', ARGV[1])",
            "return redis.call('time')",
            "return redis.call('nosuch', ARGV[1])",
            "return redis.call('xread', 'count', ARGV[1], 'streams', KEYS[1], ARGV[2])",
            "return redis.call('xreadgroup', 'group', ARGV[1], ARGV[2], 'streams', KEYS[1], '>')",
            "return redis.call('georadius', KEYS[1], ARGV[1], ARGV[2], 3, 'm', 'store', KEYS[2])",
        ] {
            assert!(narrow(source), "{source}");
        }
    }

    #[test]
    fn whatever_is_not_certain_is_wide() {
        for source in [
            "return redis.call('GET', ARGV[1])",
            "return redis.call('GET', 'literal')",
            "return redis.call('GET', KEYS[1] .. ':x')",
            "return redis.call(ARGV[1], KEYS[1])",
            "local t = KEYS t[1] = 'x' return redis.call('get', KEYS[1])",
            "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
            "local c = {redis.call} return c[1]('get', 'x')",
            "return redis.call('mget', KEYS[1], ARGV[1])",
            "return redis.call('mget', unpack(ARGV))",
            "return redis.call('zunionstore', KEYS[1], ARGV[1], KEYS[2])",
            "return redis.call('sort', KEYS[1], ARGV[1], ARGV[2])",
            "return redis.call('object', ARGV[1], KEYS[1])",
            "return redis.call('keys', '*')",
            "return redis.call('dbsize')",
            // A key may be called like the option that is followed by another.
            "return redis.call('georadius', KEYS[1], 1, 2, 3, 'm', KEYS[2], 'literal')",
            "return redis.call('xread', KEYS[1], 'streams', KEYS[1], '0')",
            "return redis.call('xread', 'streams', KEYS[1], '0', unpack(KEYS))",
            "return redis.call('georadius', KEYS[1], 1, 2, 3, 'm', unpack(KEYS))",
            "return loadstring('return redis.call(\"get\", \"x\")')()",
            "return _G.redis.call('get', 'x')",
            "return redis[ARGV[1]]('get', 'x')",
        ] {
            assert!(!narrow(source), "{source}");
        }
    }
}
