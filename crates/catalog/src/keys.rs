//! From key specs to the positions of keys in a call, without allocation.
//!
//! This is what COMMAND GETKEYS answers, and what the shards to lock are chosen by.

use russet_base::Args;

use crate::command::{Command, SPECS};
use crate::lookup::resolve;
use crate::spec::{Access, Begin, Find, KeySpec, Spec};

/// `ONCE id PX ttl`: the arguments before the command that it runs.
pub const ONCE_ARGS: usize = 4;

/// One key of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt {
    /// Which argument; 0 is the command's name.
    pub index: usize,
    pub access: Access,
}

/// Why a call has no keys to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// The command takes none.
    NoKeys,
    /// It takes some, but this call doesn't say where: a bad count, or too few arguments.
    Invalid,
}

/// The common cases, sorted out before the server starts.
#[derive(Clone, Copy)]
enum Plan {
    None,
    /// Argument 1 and no other, always with the same access.
    First(Access),
    /// Argument 1 and no other; the access depends on the options.
    FirstVarying,
    Specs,
    /// Only a parser can tell.
    Parsed,
}

static PLANS: [Plan; Command::COUNT] = {
    let mut plans = [Plan::None; Command::COUNT];
    let mut at = 0;
    while at < plans.len() {
        plans[at] = plan(SPECS[at].key_specs);
        at += 1;
    }
    plans
};

const fn plan(specs: &[KeySpec]) -> Plan {
    if let [KeySpec { access, begin: Begin::Index(1), find, .. }] = specs
        && let Find::Range { last: 0, .. } = find
    {
        return if access.has(Access::NOT_KEY) {
            Plan::None
        } else if access.has(Access::VARIABLE_FLAGS) {
            Plan::FirstVarying
        } else {
            Plan::First(*access)
        };
    }
    let (mut at, mut plan) = (0, Plan::None);
    while at < specs.len() {
        if let Begin::Unknown = specs[at].begin {
            return Plan::Parsed;
        }
        if !specs[at].access.has(Access::NOT_KEY) {
            plan = Plan::Specs;
        }
        at += 1;
    }
    plan
}

/// The three numbers that COMMAND prints for clients that know no key specs: a range that covers
/// every key whose position is fixed. Zeros if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LegacyRange {
    pub first: i64,
    /// Negative counts back from the end of the call.
    pub last: i64,
    pub step: i64,
    /// The range is incomplete: some keys lie outside it, or some arguments inside are none.
    pub is_partial: bool,
}

impl Spec {
    pub fn legacy_range(&self) -> LegacyRange {
        let mut range = LegacyRange::default();
        for spec in self.key_specs {
            let (Begin::Index(begin), Find::Range { last, step, limit }) = (spec.begin, spec.find)
            else {
                range.is_partial = true;
                continue;
            };
            let (begin, last) = (i64::from(begin), i64::from(last));
            let last = if last < 0 { last } else { begin + last };
            // A gap between two specs holds arguments that are no keys.
            range.is_partial |= limit > 1 || (range.last != 0 && range.last != begin - 1);
            range.first = if range.first == 0 { begin } else { range.first.min(begin) };
            range.last = if last < 0 || range.last < 0 {
                last.min(range.last)
            } else {
                last.max(range.last)
            };
            range.step = if range.step == 0 { i64::from(step) } else { 1 };
        }
        range
    }
}

/// Whether calls of this command name keys at all; shard channels are none.
#[inline]
pub fn has_keys(command: Command) -> bool {
    !matches!(PLANS[command as usize], Plan::None)
}

/// Whether argument 1 is the only key of any call of this command.
#[inline]
pub fn is_first_arg_only_key(command: Command) -> bool {
    matches!(PLANS[command as usize], Plan::First(_) | Plan::FirstVarying)
}

/// Calls `out` for each key of the call, in the order of the key specs. On an error the keys
/// already given are worth nothing: they come from the specs before the broken one.
#[inline]
pub fn keys<'a>(
    command: Command,
    args: Args<'a>,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), KeysError> {
    let access = match PLANS[command as usize] {
        Plan::None => return Err(KeysError::NoKeys),
        Plan::Specs if matches!(command, Command::Xread | Command::Xreadgroup) => {
            return stream_keys(command, args, out);
        }
        Plan::Specs if command == Command::Migrate => {
            return migrated_keys(args, &mut |index| out(KeyAt { index, access: MIGRATED }));
        }
        Plan::Specs => return keys_by_spec(command.spec().key_specs, args, out),
        Plan::Parsed => return parsed_keys(command, args, out),
        _ if args.len() < 2 => return Err(KeysError::Invalid),
        Plan::First(access) => access,
        Plan::FirstVarying => varying_access(command, args),
    };
    out(KeyAt { index: 1, access });
    Ok(())
}

const MIGRATED: Access = Access::RW.or(Access::ACCESS).or(Access::DELETE);

/// The keys of MIGRATE: the third argument, or if that is empty those behind KEYS. A password may
/// be called so, too.
fn migrated_keys(args: Args<'_>, out: &mut dyn FnMut(usize)) -> Result<(), KeysError> {
    let keys = match migrate_keyword(args).filter(|_| args.at(3).is_empty()) {
        Some(keyword) => keyword + 1..args.len(),
        None => 3..args.len().min(4),
    };
    let has_any = !keys.is_empty();
    keys.for_each(out);
    if has_any { Ok(()) } else { Err(KeysError::Invalid) }
}

/// Where MIGRATE's option KEYS stands.
pub fn migrate_keyword(args: Args<'_>) -> Option<usize> {
    let mut at = 6;
    while let Some(arg) = args.get(at) {
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        at += match () {
            () if is("keys") => return Some(at),
            () if is("auth2") => 3,
            () if is("auth") => 2,
            () => 1,
        };
    }
    None
}

/// The keys of XREAD and XREADGROUP. The keyword alone is ambiguous: a group, or a consumer, may
/// be called STREAMS.
fn stream_keys(
    command: Command,
    args: Args<'_>,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), KeysError> {
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let named = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        if named("streams") {
            break;
        }
        let has_value = ["block", "count", "maxcount", "maxsize", "claim"].into_iter().any(named);
        at += match () {
            () if has_value => 2,
            () if named("group") => 3,
            () if named("noack") => 1,
            () => return Err(KeysError::Invalid),
        };
    }
    // COMPAT: of an odd number the smaller half, so that rights to them are asked for before the
    // command refuses the call (tests/wire/acl/keys.wire).
    let len = args.len().checked_sub(at + 1).filter(|len| *len > 1);
    let streams = len.ok_or(KeysError::Invalid)? / 2;
    let access = command.spec().key_specs[0].access;
    (at + 1..=at + streams).for_each(|index| out(KeyAt { index, access }));
    Ok(())
}

fn keys_by_spec(
    specs: &[KeySpec],
    args: Args<'_>,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), KeysError> {
    for spec in specs.iter().filter(|spec| !spec.access.has(Access::NOT_KEY)) {
        let begin = match spec.begin {
            Begin::Index(index) => usize::from(index),
            Begin::Keyword { token, from } => match after_keyword(args, token, from) {
                Some(index) => index,
                None => continue,
            },
            Begin::Unknown => return Err(KeysError::Invalid),
        };
        let (first, last, step) = span(spec.find, args, begin).ok_or(KeysError::Invalid)?;
        if last >= args.len() || last < first {
            return Err(KeysError::Invalid);
        }
        // A plain loop: MSET runs it, and an inclusive range with a step costs twice as much.
        let mut index = first;
        while index <= last {
            out(KeyAt { index, access: spec.access.without(Access::VARIABLE_FLAGS) });
            index += step;
        }
        if spec.access.has(Access::INCOMPLETE) {
            return Err(KeysError::Invalid);
        }
    }
    Ok(())
}

/// The keys of commands that only a parser understands.
fn parsed_keys(
    command: Command,
    args: Args<'_>,
    out: &mut impl FnMut(KeyAt),
) -> Result<(), KeysError> {
    if args.len() < 2 {
        return Err(KeysError::Invalid);
    }
    match command {
        Command::Sort => {
            out(KeyAt { index: 1, access: Access::RO.or(Access::ACCESS) });
            if let Some(index) = sort_target(args) {
                out(KeyAt { index, access: Access::OW.or(Access::UPDATE) });
            }
            Ok(())
        }
        Command::SortRo => {
            out(KeyAt { index: 1, access: Access::RO.or(Access::ACCESS) });
            Ok(())
        }
        Command::Once => wrapped_keys(args, out),
        _ => Err(KeysError::Invalid),
    }
}

/// The keys of the command that a ONCE runs. It runs no other ONCE. Takes a `dyn`, for otherwise
/// each level of calls would be another instance of this function.
fn wrapped_keys(args: Args<'_>, out: &mut dyn FnMut(KeyAt)) -> Result<(), KeysError> {
    if args.len() <= ONCE_ARGS {
        return Err(KeysError::Invalid);
    }
    let inner = args.from(ONCE_ARGS);
    match resolve(inner) {
        Ok(Command::Once) | Err(_) => Err(KeysError::Invalid),
        Ok(command) if !command.spec().arity.allows(inner.len()) => Err(KeysError::Invalid),
        Ok(command) => keys(command, inner, &mut |key| {
            out(KeyAt { index: key.index + ONCE_ARGS, ..key });
        }),
    }
}

/// The last argument that follows STORE where that is an option.
fn sort_target(args: Args<'_>) -> Option<usize> {
    let (mut at, mut target) = (2, None);
    while let Some(arg) = args.get(at) {
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        at += match () {
            () if is("limit") => 3,
            () if is("get") || is("by") => 2,
            () if is("store") => {
                target = Some(at + 1).filter(|at| *at < args.len()).or(target);
                2
            }
            () => 1,
        };
    }
    target
}

/// The arg after the keyword. The last arg of a call can't be one with a key after it, nor can
/// the name be one, so neither is looked at.
fn after_keyword(args: Args<'_>, token: &str, from: i16) -> Option<usize> {
    let len = args.len();
    let is_keyword = |at: &usize| args[*at].eq_ignore_ascii_case(token.as_bytes());
    let offset = usize::from(from.unsigned_abs());
    let found = if from > 0 {
        (offset..len.saturating_sub(1)).find(is_keyword)
    } else {
        (2..=len.checked_sub(offset)?).rev().filter(|at| *at < len).find(is_keyword)
    };
    found.map(|at| at + 1)
}

/// First key, last key, and the distance from one to the next.
fn span(find: Find, args: Args<'_>, begin: usize) -> Option<(usize, usize, usize)> {
    match find {
        Find::Range { last, step, limit } => {
            let back = usize::from(last.unsigned_abs());
            let last = if last >= 0 {
                begin.checked_add(back)?
            } else if limit <= 1 {
                args.len().checked_sub(back)?
            } else {
                let share = args.len().checked_sub(begin)? / usize::from(limit);
                (begin + share).checked_sub(back)?
            };
            Some((begin, last, usize::from(step).max(1)))
        }
        Find::Count { at, first, step } => {
            let count = count(args.get(begin + usize::from(at))?)?;
            let step = usize::from(step).max(1);
            let first = begin + usize::from(first);
            let last = first.checked_add(count.checked_sub(1)?.checked_mul(step)?)?;
            Some((first, last, step))
        }
        Find::Unknown => None,
    }
}

/// A count of keys in plain decimal: no sign, no leading zero, nothing around it.
fn count(arg: &[u8]) -> Option<usize> {
    if arg.is_empty() || (arg.len() > 1 && arg[0] == b'0') {
        return None;
    }
    arg.iter().try_fold(0usize, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| usize::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The access of commands whose key spec says VARIABLE_FLAGS, by the options of this call.
#[inline]
fn varying_access(command: Command, args: Args<'_>) -> Access {
    match command {
        Command::Set if !has_set_get(args) => Access::OW.or(Access::UPDATE),
        Command::Delex if args.len() == 2 => Access::RM.or(Access::DELETE),
        Command::Bitfield if bitfield_only_reads(args) => Access::RO.or(Access::ACCESS),
        _ => command.spec().key_specs[0].access.without(Access::VARIABLE_FLAGS),
    }
}

#[inline]
fn has_set_get(args: Args<'_>) -> bool {
    args.len() > 3 && args.from(3).iter().any(|arg| arg.eq_ignore_ascii_case(b"get"))
}

/// False for a call that won't parse: the safe guess.
fn bitfield_only_reads(args: Args<'_>) -> bool {
    let mut at = 2;
    while let Some(arg) = args.get(at) {
        let left = args.len() - at - 1;
        at += match () {
            () if arg.eq_ignore_ascii_case(b"get") && left >= 2 => 3,
            () if arg.eq_ignore_ascii_case(b"overflow") && left >= 1 => 2,
            () => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;
    use russet_base::OwnedArgs;

    const READ: Access = Access::RO.or(Access::ACCESS);
    const OVERWRITE: Access = Access::OW.or(Access::UPDATE);
    const CHANGE: Access = Access::RW.or(Access::ACCESS).or(Access::UPDATE);
    const TAKE: Access = Access::RW.or(Access::ACCESS).or(Access::DELETE);

    fn found(call: &str) -> Result<Vec<(usize, Access)>, KeysError> {
        let owned: OwnedArgs = call.split(' ').collect();
        let command = resolve(owned.as_args()).expect("the call names a command");
        let mut keys_found = Vec::new();
        keys(command, owned.as_args(), &mut |key| keys_found.push((key.index, key.access)))?;
        Ok(keys_found)
    }

    #[track_caller]
    fn finds(call: &str, expected: &[(usize, Access)]) {
        assert_eq!(found(call), Ok(expected.to_vec()), "{call}");
    }

    #[test]
    fn ranges() {
        finds("get k", &[(1, READ)]);
        finds("mset a 1 b 2", &[(1, OVERWRITE), (3, OVERWRITE)]);
        finds("mset a 1 b", &[(1, OVERWRITE), (3, OVERWRITE)]);
        finds("rename a b", &[(1, TAKE), (2, OVERWRITE)]);
        finds("copy a b db 1", &[(1, READ), (2, OVERWRITE)]);
        finds("lcs a b", &[(1, READ), (2, READ)]);
        finds("blpop a b 0", &[(1, TAKE), (2, TAKE)]);
        finds("bitop and d a b", &[(2, OVERWRITE), (3, READ), (4, READ)]);
        finds("object encoding k", &[(2, Access::RO)]);
        finds("memory usage k", &[(2, Access::RO)]);
        finds("watch a b", &[(1, Access::RO), (2, Access::RO)]);
    }

    #[test]
    fn counts() {
        finds("msetex 2 a 1 b 2", &[(2, OVERWRITE), (4, OVERWRITE)]);
        finds("msetex 1 a 1 nx", &[(2, OVERWRITE)]);
        finds("lmpop 1 a left", &[(2, TAKE)]);
        finds("lmpop 2 a left", &[(2, TAKE), (3, TAKE)]);
        finds("blmpop 0 1 k left", &[(3, TAKE)]);
        for broken in [
            "msetex 3 a 1 b 2",
            "msetex x a 1",
            "msetex 0 a 1",
            "lmpop 0 a left",
            "lmpop 5 a left",
            "lmpop -1 a left",
            "lmpop 01 a left",
            "lmpop 18446744073709551615 a left",
            "lmpop 99999999999999999999 a left",
            "lmpop",
            "blpop a",
            "bitop and",
            "get",
            "set",
        ] {
            assert_eq!(found(broken), Err(KeysError::Invalid), "{broken}");
        }
    }

    #[test]
    fn access_follows_the_options() {
        finds("set k v", &[(1, OVERWRITE)]);
        finds("set k v ex 10 GET", &[(1, CHANGE)]);
        finds("set k get", &[(1, OVERWRITE)]);
        finds("set k v ifeq x", &[(1, OVERWRITE)]);
        finds("delex k", &[(1, Access::RM.or(Access::DELETE))]);
        finds("delex k ifeq v", &[(1, Access::RW.or(Access::DELETE))]);
        finds("bitfield k get u8 0", &[(1, READ)]);
        finds("bitfield k overflow sat get u8 0", &[(1, READ)]);
        finds("bitfield k", &[(1, READ)]);
        finds("bitfield k get u8", &[(1, CHANGE)]);
        finds("bitfield k set u8 0 1", &[(1, CHANGE)]);
    }

    #[test]
    fn channels_are_no_keys() {
        for call in
            ["spublish c m", "ssubscribe c", "ping", "memory stats", "object", "debug object k"]
        {
            assert_eq!(found(call), Err(KeysError::NoKeys), "{call}");
        }
        assert!(has_keys(Command::Get) && has_keys(Command::Lmpop) && !has_keys(Command::Spublish));
    }

    #[test]
    fn streams_are_distinct_from_their_readers() {
        finds("xread count 1 streams a b 0 0", &[(4, READ), (5, READ)]);
        finds("xreadgroup noack noack group streams c streams k >", &[(7, READ)]);
        finds("xread streams a b 0 0 0", &[(2, READ), (3, READ)]);
        for broken in ["xread count streams a 0", "xread streams a", "xread foo streams a 0"] {
            assert_eq!(found(broken), Err(KeysError::Invalid), "{broken}");
        }
    }

    #[test]
    fn sort_names_its_target_last() {
        finds("sort k", &[(1, READ)]);
        finds("sort k desc store d", &[(1, READ), (4, OVERWRITE)]);
        finds("sort k by store get store limit store store STORE d", &[(1, READ), (10, OVERWRITE)]);
        finds("sort k store a store b", &[(1, READ), (5, OVERWRITE)]);
        finds("sort k store", &[(1, READ)]);
        finds("sort_ro k by w_* get #", &[(1, READ)]);
        assert!(!is_first_arg_only_key(Command::Sort) && has_keys(Command::SortRo));
    }

    #[test]
    fn keywords_and_shares() {
        let call: OwnedArgs = "xread count 1 streams a b 0 0".split(' ').collect();
        let spec = KeySpec {
            access: READ,
            begin: Begin::Keyword { token: "STREAMS", from: 1 },
            find: Find::Range { last: -1, step: 1, limit: 2 },
            notes: "",
        };
        let mut indexes = Vec::new();
        let answer = keys_by_spec(&[spec], call.as_args(), &mut |key| indexes.push(key.index));
        assert_eq!((answer, indexes), (Ok(()), vec![4, 5]));
        assert_eq!(
            after_keyword(call.as_args(), "count", -2),
            None,
            "argument 1 is never looked at"
        );
        assert_eq!(after_keyword(call.as_args(), "streams", -2), Some(4));
    }
}
