//! Rules: what ACL SETUSER, a `user` line and a file of users say, one by one.

use super::password::PasswordDigest;
use super::pattern::{Access, KeyPattern, Pattern};
use super::rights::Rights;
use super::selector::{ChannelRights, Databases, KeyRights, Selector};
use russet_base::text::{eq_ignore_case, split_args};
use russet_catalog::spec::Categories;
use russet_catalog::{Command, lookup_full};

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRule {
    Syntax,
    UnknownName,
    KeysAfterAll,
    ChannelsAfterAll,
    NoSuchPassword,
    BadDigest,
    FirstArgOfSubcommand,
    DbOutOfRange,
}

impl BadRule {
    pub fn text(self) -> &'static str {
        match self {
            BadRule::Syntax => "Syntax error",
            BadRule::UnknownName => "Unknown command or category name in ACL",
            BadRule::KeysAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                 does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            BadRule::ChannelsAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            BadRule::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            BadRule::BadDigest => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            BadRule::FirstArgOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            BadRule::DbOutOfRange => "The provided database ID is out of range",
        }
    }
}

/// Rules, with those of a selector joined to one: `(+get`, `~a)` is `(+get ~a)`. The error is the
/// rule with which a selector begins that has no end.
pub fn join_selectors<'a>(args: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<(Vec<u8>, &[u8])> = None;
    for arg in args {
        let (joined, first) = match open.take() {
            Some((begun, first)) => ([&begun, &b" "[..], arg].concat(), first),
            None => (arg.to_vec(), arg),
        };
        match (joined.first(), joined.last()) {
            (Some(b'('), Some(b')')) => rules.push(joined),
            (Some(b'('), _) => open = Some((joined, first)),
            _ => rules.push(joined),
        }
    }
    match open {
        Some((_, first)) => Err(first.to_vec()),
        None => Ok(rules),
    }
}

impl Rights {
    /// Applies one rule. `has_all_channels` is what `acl-pubsub-default` gives to whoever starts
    /// afresh.
    pub fn apply(&mut self, rule: &[u8], has_all_channels: bool) -> Result<(), BadRule> {
        let is = |name: &str| eq_ignore_case(rule, name.as_bytes());
        match rule {
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            // What they say about payloads is so for everybody here.
            _ if is("sanitize-payload") || is("skip-sanitize-payload") => {}
            _ if is("nopass") => {
                self.is_passwordless = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.is_passwordless = false;
                self.passwords.clear();
            }
            _ if is("clearselectors") => self.selectors.clear(),
            _ if is("reset") => *self = Rights::new(has_all_channels),
            [b'>', password @ ..] => self.add_password(PasswordDigest::of(password)),
            [b'#', digest @ ..] => {
                self.add_password(PasswordDigest::parse(digest).ok_or(BadRule::BadDigest)?);
            }
            [b'<', password @ ..] => self.remove_password(PasswordDigest::of(password))?,
            [b'!', digest @ ..] => {
                let digest = PasswordDigest::parse(digest).ok_or(BadRule::BadDigest)?;
                self.remove_password(digest)?;
            }
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::new(has_all_channels);
                // COMPAT: a quote without its fellow leaves nothing.
                for rule in split_args(inner).unwrap_or_default() {
                    selector.apply(&rule)?;
                }
                self.selectors.push(selector);
            }
            rule => self.root.apply(rule)?,
        }
        self.summarize();
        Ok(())
    }

    fn add_password(&mut self, digest: PasswordDigest) {
        self.is_passwordless = false;
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
    }

    fn remove_password(&mut self, digest: PasswordDigest) -> Result<(), BadRule> {
        let at = self.passwords.iter().position(|known| *known == digest);
        self.passwords.remove(at.ok_or(BadRule::NoSuchPassword)?);
        Ok(())
    }
}

impl Selector {
    fn apply(&mut self, rule: &[u8]) -> Result<(), BadRule> {
        let is = |name: &str| eq_ignore_case(rule, name.as_bytes());
        match rule {
            [] => {}
            _ if is("allkeys") || is("~*") => self.keys = KeyRights::All,
            _ if is("resetkeys") => self.keys = KeyRights::Some(Vec::new()),
            _ if is("allchannels") || is("&*") => self.channels = ChannelRights::All,
            _ if is("resetchannels") => self.channels = ChannelRights::Some(Vec::new()),
            _ if is("alldbs") => self.databases = Databases::All,
            _ if is("resetdbs") => self.databases = Databases::Some(Vec::new()),
            _ if is("allcommands") || is("+@all") => self.set_all_commands(true),
            _ if is("nocommands") || is("-@all") => self.set_all_commands(false),
            [b'~', pattern @ ..] => self.add_keys(pattern, Access::BOTH)?,
            [b'%', ..] if self.keys == KeyRights::All => return Err(BadRule::KeysAfterAll),
            [b'%', rest @ ..] => {
                let (access, pattern) = parse_access(rest)?;
                self.add_keys(pattern, access)?;
            }
            [b'&', pattern @ ..] => self.add_channels(pattern)?,
            [b'+', b'@', name @ ..] => self.apply_category(name, true)?,
            [b'-', b'@', name @ ..] => self.apply_category(name, false)?,
            [b'+', name @ ..] => self.apply_allowed(name)?,
            [b'-', name @ ..] => {
                self.set_command(named(name).ok_or(BadRule::UnknownName)?, false);
            }
            _ => match rule.split_at_checked(DB_PREFIX.len()) {
                Some((prefix, list)) if eq_ignore_case(prefix, DB_PREFIX) => {
                    self.databases = Databases::Some(parse_databases(list)?);
                }
                _ => return Err(BadRule::Syntax),
            },
        }
        Ok(())
    }

    fn add_keys(&mut self, pattern: &[u8], access: Access) -> Result<(), BadRule> {
        let KeyRights::Some(patterns) = &mut self.keys else {
            return Err(BadRule::KeysAfterAll);
        };
        check_pattern(pattern)?;
        match patterns.iter_mut().find(|known| known.pattern.text() == pattern) {
            Some(known) => {
                known.access.read |= access.read;
                known.access.write |= access.write;
            }
            None => patterns.push(KeyPattern { pattern: Pattern::new(pattern), access }),
        }
        Ok(())
    }

    fn add_channels(&mut self, pattern: &[u8]) -> Result<(), BadRule> {
        let ChannelRights::Some(patterns) = &mut self.channels else {
            return Err(BadRule::ChannelsAfterAll);
        };
        check_pattern(pattern)?;
        if !patterns.iter().any(|known| known.text() == pattern) {
            patterns.push(Pattern::new(pattern));
        }
        Ok(())
    }

    fn apply_category(&mut self, name: &[u8], is_allowed: bool) -> Result<(), BadRule> {
        let mut known = Categories::NAMES.iter();
        let found = known.find(|(_, known)| eq_ignore_case(name, known.as_bytes()));
        let (category, name) = found.ok_or(BadRule::UnknownName)?;
        self.set_category(*category, (name, is_allowed));
        Ok(())
    }

    /// `+get`, `+config|get`, or `+select|0` for a command that has no subcommands.
    fn apply_allowed(&mut self, name: &[u8]) -> Result<(), BadRule> {
        if let Some(command) = named(name) {
            self.set_command(command, true);
            return Ok(());
        }
        let bar = name.iter().rposition(|byte| *byte == b'|').ok_or(BadRule::UnknownName)?;
        let (name, first_arg) = (&name[..bar], &name[bar + 1..]);
        let command = named(name).ok_or(BadRule::UnknownName)?;
        if command.parent().is_some() {
            return Err(BadRule::FirstArgOfSubcommand);
        }
        if first_arg.is_empty() {
            return Err(BadRule::Syntax);
        }
        if command.is_container() {
            return Err(BadRule::UnknownName);
        }
        check_pattern(first_arg)?;
        self.allow_first_arg(command, first_arg);
        Ok(())
    }
}

/// A command by its full name: `get`, `config|get`.
fn named(name: &[u8]) -> Option<Command> {
    lookup_full(name)
}

const DB_PREFIX: &[u8] = b"db=";

/// Rules are apart by spaces where they are written down.
fn check_pattern(pattern: &[u8]) -> Result<(), BadRule> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | b'\x0b');
    match pattern.iter().any(is_space) {
        true => Err(BadRule::Syntax),
        false => Ok(()),
    }
}

/// What stands between `%` and `~`. COMPAT: without the `~` the pattern is empty
/// (tests/wire/acl/keys.wire).
fn parse_access(rest: &[u8]) -> Result<(Access, &[u8]), BadRule> {
    let end = rest.iter().position(|byte| *byte == b'~').unwrap_or(rest.len());
    let mut access = Access::default();
    for letter in &rest[..end] {
        let granted = match letter.to_ascii_uppercase() {
            b'R' => &mut access.read,
            b'W' => &mut access.write,
            _ => return Err(BadRule::Syntax),
        };
        if std::mem::replace(granted, true) {
            return Err(BadRule::Syntax);
        }
    }
    if access == Access::default() {
        return Err(BadRule::Syntax);
    }
    Ok((access, rest.get(end + 1..).unwrap_or_default()))
}

/// `0,3,7`; in ascending order, each once.
fn parse_databases(list: &[u8]) -> Result<Vec<i64>, BadRule> {
    let mut databases = Vec::new();
    for text in list.split(|byte| *byte == b',') {
        let text = text.trim_ascii_start();
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(BadRule::Syntax);
        }
        let number = digits.iter().try_fold(0_i32, |number, digit| {
            number.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        match number {
            Some(number) if !is_negative || number == 0 => databases.push(i64::from(number)),
            _ => return Err(BadRule::DbOutOfRange),
        }
    }
    databases.sort_unstable();
    databases.dedup();
    Ok(databases)
}
