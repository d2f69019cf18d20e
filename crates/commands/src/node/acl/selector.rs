//! A selector: commands, and the keys, channels and databases that they may be used on. A user has
//! one of its own and as many further ones as its rules say; what one of them allows is allowed.

use super::pattern::{Access, KeyPattern, Pattern};
use russet_base::Args;
use russet_base::text::eq_ignore_case;
use russet_catalog::spec::{Access as KeyAccess, Categories, Flags};
use russet_catalog::{ChannelUse, Command, channels, has_keys, keys};
use std::collections::BTreeMap;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandSet([u64; Command::COUNT.div_ceil(WORD_BITS)]);

impl CommandSet {
    const EMPTY: CommandSet = CommandSet([0; Command::COUNT.div_ceil(WORD_BITS)]);

    #[inline]
    fn has(&self, command: Command) -> bool {
        let at = command as usize;
        self.0[at / WORD_BITS] >> (at % WORD_BITS) & 1 != 0
    }

    fn set(&mut self, command: Command, on: bool) {
        let at = command as usize;
        let bit = 1 << (at % WORD_BITS);
        match on {
            true => self.0[at / WORD_BITS] |= bit,
            false => self.0[at / WORD_BITS] &= !bit,
        }
    }

    fn is_full(&self) -> bool {
        Command::ALL.iter().all(|command| self.has(*command))
    }
}

/// The databases that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Databases {
    All,
    /// In ascending order.
    Some(Vec<i64>),
}

impl Databases {
    pub fn have(&self, db: i64) -> bool {
        match self {
            Databases::All => true,
            Databases::Some(listed) => listed.binary_search(&db).is_ok(),
        }
    }
}

/// Which of all channels may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelRights {
    All,
    Some(Vec<Pattern>),
}

/// Which of all keys may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRights {
    All,
    Some(Vec<KeyPattern>),
}

/// What stands against a call, and at which argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    pub reason: Reason,
    pub index: usize,
    /// The database that may not be used, if that is the reason and an argument names it.
    pub db: Option<i64>,
}

/// In ascending order: of several selectors' reasons the last one here is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Database,
    Command,
    Key,
    Channel,
}

impl Denial {
    fn new(reason: Reason, index: usize) -> Self {
        Denial { reason, index, db: None }
    }
}

/// A call, as its rights are looked at.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub command: Command,
    pub args: Args<'a>,
    /// The database that the client is in, and how many there are.
    pub db: usize,
    pub db_count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    allowed: CommandSet,
    /// First arguments with which a command that is not allowed as such is.
    first_args: BTreeMap<Command, Vec<Box<[u8]>>>,
    /// Whether it began with every command: then those of a later version are allowed, too.
    has_all: bool,
    /// The rules about commands since then, as they are shown.
    rules: Vec<CommandRule>,
    pub keys: KeyRights,
    pub channels: ChannelRights,
    pub databases: Databases,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandRule {
    is_allowed: bool,
    /// In lower case: `get`, `config|get`, `@read`, `select|0`.
    text: Box<[u8]>,
}

impl Selector {
    /// Allows nothing, but in every database.
    pub fn new(has_all_channels: bool) -> Self {
        Selector {
            allowed: CommandSet::EMPTY,
            first_args: BTreeMap::new(),
            has_all: false,
            rules: Vec::new(),
            keys: KeyRights::Some(Vec::new()),
            channels: match has_all_channels {
                true => ChannelRights::All,
                false => ChannelRights::Some(Vec::new()),
            },
            databases: Databases::All,
        }
    }

    /// Whether it allows everything.
    pub fn is_unrestricted(&self) -> bool {
        self.keys == KeyRights::All
            && self.channels == ChannelRights::All
            && self.databases == Databases::All
            && self.allowed.is_full()
    }

    /// `+@all` and `-@all`.
    pub fn set_all_commands(&mut self, is_allowed: bool) {
        self.rules.clear();
        self.first_args.clear();
        self.has_all = is_allowed;
        Command::ALL.iter().for_each(|command| self.allowed.set(*command, is_allowed));
    }

    /// A command with its subcommands, or one of these.
    pub fn set_command(&mut self, command: Command, is_allowed: bool) {
        self.set_family(command, is_allowed);
        self.add_rule(is_allowed, command.full_name().as_bytes());
    }

    fn set_family(&mut self, command: Command, is_allowed: bool) {
        let family = std::iter::once(&command).chain(command.subcommands());
        for member in family {
            self.allowed.set(*member, is_allowed);
            self.first_args.remove(member);
        }
    }

    /// COMPAT: a category of a container is one of all its subcommands
    /// (tests/wire/acl/commands.wire).
    pub fn set_category(&mut self, category: Categories, (name, is_allowed): (&str, bool)) {
        for command in Command::ALL {
            if command.spec().categories.has(category) {
                self.set_family(*command, is_allowed);
            }
        }
        self.add_rule(is_allowed, format!("@{name}").as_bytes());
    }

    /// A command with this first argument.
    pub fn allow_first_arg(&mut self, command: Command, first_arg: &[u8]) {
        let listed = self.first_args.entry(command).or_default();
        if !listed.iter().any(|known| eq_ignore_case(known, first_arg)) {
            listed.push(first_arg.into());
        }
        let rule = [command.full_name().as_bytes(), b"|", first_arg].concat();
        self.add_rule(true, &rule);
    }

    /// A new rule takes the place of an older one about the same, and of those about its
    /// subcommands.
    fn add_rule(&mut self, is_allowed: bool, text: &[u8]) {
        let text = text.to_ascii_lowercase();
        self.rules.retain(|rule| match rule.text.strip_prefix(text.as_slice()) {
            Some(rest) => !matches!(rest.first(), None | Some(b'|')),
            None => true,
        });
        self.rules.push(CommandRule { is_allowed, text: text.into() });
    }

    /// The rules about commands.
    pub fn write_commands(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.has_all { b"+@all" } else { b"-@all" });
        for rule in &self.rules {
            out.extend_from_slice(if rule.is_allowed { b" +" } else { b" -" });
            out.extend_from_slice(&rule.text);
        }
    }

    pub fn write_keys(&self, out: &mut Vec<u8>) {
        match &self.keys {
            KeyRights::All => out.extend_from_slice(b"~*"),
            KeyRights::Some(patterns) => write_list(out, b' ', patterns, KeyPattern::write),
        }
    }

    pub fn write_channels(&self, out: &mut Vec<u8>) {
        match &self.channels {
            ChannelRights::All => out.extend_from_slice(b"&*"),
            ChannelRights::Some(patterns) => write_list(out, b' ', patterns, |pattern, out| {
                out.push(b'&');
                out.extend_from_slice(pattern.text());
            }),
        }
    }

    pub fn write_databases(&self, out: &mut Vec<u8>) {
        match &self.databases {
            Databases::All => out.extend_from_slice(b"alldbs"),
            Databases::Some(listed) if listed.is_empty() => {}
            Databases::Some(listed) => {
                out.extend_from_slice(b"db=");
                write_list(out, b',', listed, |db, out| {
                    out.extend_from_slice(db.to_string().as_bytes());
                });
            }
        }
    }

    /// All its rules, in the order of ACL LIST.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_keys(out);
        if out.len() > start {
            out.push(b' ');
        }
        if let ChannelRights::Some(patterns) = &self.channels {
            out.extend_from_slice(b"resetchannels ");
            self.write_channels(out);
            if !patterns.is_empty() {
                out.push(b' ');
            }
        } else {
            out.extend_from_slice(b"&* ");
        }
        match &self.databases {
            Databases::All => {}
            Databases::Some(listed) if listed.is_empty() => out.extend_from_slice(b"resetdbs "),
            Databases::Some(_) => {
                self.write_databases(out);
                out.push(b' ');
            }
        }
        self.write_commands(out);
    }

    /// What stands against a call. Cheap if nothing does: a bit of the command, and the patterns
    /// for each of its keys.
    #[inline]
    pub fn check(&self, call: &Call) -> Result<(), Denial> {
        let Call { command, args, .. } = *call;
        if self.databases != Databases::All {
            self.check_databases(call)?;
        }
        if !self.allowed.has(command) && !self.allows_with_first_arg(call) {
            return Err(Denial::new(Reason::Command, 0));
        }
        if let KeyRights::Some(patterns) = &self.keys
            && has_keys(command)
        {
            check_keys(patterns, call)?;
        }
        if let ChannelRights::Some(_) = self.channels
            && let Some(found) = channels(command, args)
        {
            let may_use = |index: &usize| self.may_use_channel(found.used_as, args.at(*index));
            if let Some(index) = (found.first..found.end).find(|index| !may_use(index)) {
                return Err(Denial::new(Reason::Channel, index));
            }
        }
        Ok(())
    }

    #[cold]
    fn check_databases(&self, call: &Call) -> Result<(), Denial> {
        super::databases::check(call, &|db| self.databases.have(db)).map_err(|(index, db)| Denial {
            reason: Reason::Database,
            index,
            db,
        })
    }

    /// What logs in is allowed to everyone.
    #[cold]
    fn allows_with_first_arg(&self, call: &Call) -> bool {
        if call.command.spec().flags.has(Flags::NO_AUTH) {
            return true;
        }
        let Some(first_arg) = call.args.get(1) else { return false };
        let listed = self.first_args.get(&call.command);
        listed.is_some_and(|listed| listed.iter().any(|known| eq_ignore_case(known, first_arg)))
    }

    /// COMPAT: a pattern is allowed only if the same pattern is in the rules; what it would match
    /// is not thought about (tests/wire/acl/channels.wire).
    pub fn may_use_channel(&self, used_as: ChannelUse, name: &[u8]) -> bool {
        match &self.channels {
            ChannelRights::All => true,
            ChannelRights::Some(patterns) => patterns.iter().any(|pattern| match used_as {
                ChannelUse::Name => pattern.matches(name),
                ChannelUse::Pattern => pattern.text() == name,
            }),
        }
    }

    /// Whether every key may be read.
    pub fn may_read_all(&self) -> bool {
        match &self.keys {
            KeyRights::All => true,
            KeyRights::Some(patterns) => patterns.iter().any(KeyPattern::is_read_of_all),
        }
    }
}

#[inline]
fn check_keys(patterns: &[KeyPattern], call: &Call) -> Result<(), Denial> {
    let mut denied = None;
    // Keys that can't be found are none: the handler refuses the call before it touches any.
    // DIFFERS: those that were found are looked at all the same. `PFMERGE k` alone is such a call,
    // and it writes.
    let _refused_by_the_handler = keys(call.command, call.args, &mut |key| {
        let needed = needed_access(key.access);
        let may_use = |pattern: &KeyPattern| pattern.allows(needed, call.args.at(key.index));
        if denied.is_none() && !patterns.iter().any(may_use) {
            denied = Some(key.index);
        }
    });
    match denied {
        Some(index) => Err(Denial::new(Reason::Key, index)),
        None => Ok(()),
    }
}

/// What a call that only looks whether a key is there needs is any right to it.
#[inline]
fn needed_access(access: KeyAccess) -> Access {
    const CHANGES: KeyAccess = KeyAccess::UPDATE.or(KeyAccess::INSERT).or(KeyAccess::DELETE);
    Access { read: access.has(KeyAccess::ACCESS), write: access.has_any(CHANGES) }
}

fn write_list<T>(out: &mut Vec<u8>, between: u8, list: &[T], write: impl Fn(&T, &mut Vec<u8>)) {
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push(between);
        }
        write(item, out);
    }
}
