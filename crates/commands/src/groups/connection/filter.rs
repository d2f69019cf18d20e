//! Which clients CLIENT LIST shows and CLIENT KILL ends.

use super::list::{flag_letters, seconds_since};
use crate::call::ctx::Ctx;
use crate::error::Refusal;
use crate::node::clients::{ClientCard, ClientFlags, Clients};
use crate::node::config::Directive;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use russet_base::{Args, UnixMillis};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Letters that a filter may ask for: those that a server of any role can show.
const KNOWN_FLAGS: &[u8] = b"bcdeirtuxABEIMNOPRSTU";
/// What clients can declare with CLIENT CAPA: `r` for redirection.
const KNOWN_CAPABILITIES: &[u8] = b"r";

/// One thing to be true of a client, or false of it in its NOT- form.
enum Test<'a> {
    Ids(BTreeSet<u64>),
    Kind(Kind),
    User(&'a [u8]),
    Address(&'a [u8]),
    LocalAddress(&'a [u8]),
    Name(&'a [u8]),
    Library(&'a [u8]),
    LibraryVersion(&'a [u8]),
    Ip(&'a [u8]),
    Flags(&'a [u8]),
    Capabilities(&'a [u8]),
    Db(u32),
    AgeSeconds(i64),
    IdleSeconds(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    PubSub,
    /// Connections between servers; there are none yet.
    Primary,
    Replica,
}

/// All that a client must meet.
#[derive(Default)]
pub(super) struct Filter<'a> {
    tests: Vec<Entry<'a>>,
    /// SKIPME, if it was said.
    pub skips_own: Option<bool>,
}

struct Entry<'a> {
    /// The option's name without NOT-, in upper case: saying it again replaces it.
    option: &'static str,
    is_negated: bool,
    test: Test<'a>,
}

impl<'a> Filter<'a> {
    /// The old form of CLIENT KILL.
    pub(super) fn of_address(address: &'a [u8]) -> Self {
        let test = Test::Address(address);
        Filter { tests: vec![Entry { option: "ADDR", is_negated: false, test }], skips_own: None }
    }

    pub(super) fn parse(ctx: &Ctx, args: Args<'a>) -> Result<Self, Refusal> {
        let mut filter = Filter::default();
        let mut rest = args;
        while let Some(arg) = rest.get(0) {
            let (option, is_negated) = option_of(arg).ok_or(Refusal::Syntax)?;
            rest = rest.from(1);
            if option == "ID" {
                rest = filter.add_ids(rest, is_negated)?;
                continue;
            }
            let value = rest.get(0).ok_or(Refusal::Syntax)?;
            rest = rest.from(1);
            if option == "SKIPME" {
                filter.skips_own = Some(yes_or_no(value)?);
                continue;
            }
            let test = parse_test(ctx, option, is_negated, value)?;
            filter.put(Entry { option, is_negated, test });
        }
        Ok(filter)
    }

    fn put(&mut self, entry: Entry<'a>) {
        let is_same =
            |known: &Entry| known.option == entry.option && known.is_negated == entry.is_negated;
        self.tests.retain(|known| !is_same(known));
        self.tests.push(entry);
    }

    /// Takes numbers as long as they come; ID may be said several times.
    fn add_ids(&mut self, args: Args<'a>, is_negated: bool) -> Result<Args<'a>, Refusal> {
        let (mut ids, mut count) = (BTreeSet::new(), 0);
        for number in args.iter().map_while(parse_i64) {
            let id = u64::try_from(number).ok().filter(|id| *id > 0);
            ids.insert(id.ok_or(Refusal::text("ERR client-id should be greater than 0"))?);
            count += 1;
        }
        let rest = args.from(count);
        let is_same = |known: &&mut Entry| known.is_negated == is_negated;
        let known = self.tests.iter_mut().filter(is_same).find_map(|entry| match &mut entry.test {
            Test::Ids(known) => Some(known),
            _ => None,
        });
        match known {
            Some(known) => known.append(&mut ids),
            None => self.put(Entry { option: "ID", is_negated, test: Test::Ids(ids) }),
        }
        Ok(rest)
    }

    /// All clients that it can take, in the order of their IDs: where it names those, no others are
    /// looked at.
    pub(super) fn candidates(&self, clients: &Clients) -> Vec<Arc<ClientCard>> {
        let named = self.tests.iter().find_map(|entry| match &entry.test {
            Test::Ids(ids) if !entry.is_negated => Some(ids),
            _ => None,
        });
        match named {
            Some(ids) => ids.iter().filter_map(|id| clients.find(*id)).collect(),
            None => clients.all(),
        }
    }

    pub(super) fn takes(&self, card: &ClientCard, now: UnixMillis) -> bool {
        self.tests.iter().all(|entry| entry.test.is_true_of(card, now) != entry.is_negated)
    }
}

/// The option that an argument names, and whether it is its NOT- form.
fn option_of(arg: &[u8]) -> Option<(&'static str, bool)> {
    const WITH_NOT: [&str; 12] = [
        "ID", "TYPE", "USER", "ADDR", "LADDR", "NAME", "FLAGS", "LIB-NAME", "LIB-VER", "DB",
        "CAPA", "IP",
    ];
    const WITHOUT_NOT: [&str; 3] = ["SKIPME", "MAXAGE", "IDLE"];
    let find = |options: &[&'static str], arg: &[u8]| {
        options.iter().copied().find(|option| arg.eq_ignore_ascii_case(option.as_bytes()))
    };
    if let Some(option) = find(&WITH_NOT, arg).or_else(|| find(&WITHOUT_NOT, arg)) {
        return Some((option, false));
    }
    let (prefix, option) = arg.split_at_checked(4)?;
    if !prefix.eq_ignore_ascii_case(b"NOT-") {
        return None;
    }
    find(&WITH_NOT, option).map(|option| (option, true))
}

fn parse_test<'a>(
    ctx: &Ctx,
    option: &'static str,
    is_negated: bool,
    value: &'a [u8],
) -> Result<Test<'a>, Refusal> {
    let shown = escape(value);
    Ok(match option {
        "TYPE" => Test::Kind(
            kind_of_name(value)
                .ok_or_else(|| Refusal::text(format!("ERR Unknown client type '{shown}'")))?,
        ),
        "USER" if ctx.node.acl.user(value).is_none() => {
            return Err(Refusal::text(format!("ERR No such user '{shown}'")));
        }
        "USER" => Test::User(value),
        "ADDR" => Test::Address(value),
        "LADDR" => Test::LocalAddress(value),
        "NAME" => Test::Name(value),
        "LIB-NAME" => Test::Library(value),
        "LIB-VER" => Test::LibraryVersion(value),
        "IP" => Test::Ip(value),
        "FLAGS" => {
            check_letters(value, KNOWN_FLAGS, if is_negated { "NOT-FLAGS" } else { "" }, "flags")?;
            Test::Flags(value)
        }
        "CAPA" => {
            let filter_name = if is_negated { "NOT-CAPA" } else { "" };
            check_letters(value, KNOWN_CAPABILITIES, filter_name, "capa")?;
            Test::Capabilities(value)
        }
        "DB" => Test::Db(parse_db(ctx, if is_negated { "NOT-DB" } else { "DB" }, value)?),
        "MAXAGE" => Test::AgeSeconds(parse_seconds("maxage", value)?),
        "IDLE" => Test::IdleSeconds(parse_seconds("idle", value)?),
        _ => return Err(Refusal::Syntax),
    })
}

fn check_letters(
    value: &[u8],
    known: &[u8],
    filter_name: &'static str,
    what: &'static str,
) -> Result<(), Refusal> {
    if value.iter().all(|letter| known.contains(letter)) {
        return Ok(());
    }
    let filter_name = if filter_name.is_empty() { "provided" } else { filter_name };
    let shown = escape(value);
    Err(Refusal::text(format!("ERR Unknown {what} found in the {filter_name} filter: {shown}")))
}

fn parse_db(ctx: &Ctx, option: &'static str, value: &[u8]) -> Result<u32, Refusal> {
    let number = parse_i64(value).and_then(|number| i32::try_from(number).ok());
    let number = number
        .ok_or_else(|| Refusal::text(format!("ERR {option} is not an integer or out of range")))?;
    let last = ctx.node.config.int(Directive::Databases) - 1;
    match u32::try_from(number) {
        Ok(db) if i64::from(db) <= last => Ok(db),
        _ => Err(Refusal::text(format!("ERR {option} number should be between 0 and {last}"))),
    }
}

fn parse_seconds(option: &'static str, value: &[u8]) -> Result<i64, Refusal> {
    let seconds = parse_i64(value)
        .ok_or_else(|| Refusal::text(format!("ERR {option} is not an integer or out of range")))?;
    if seconds <= 0 {
        return Err(Refusal::text(format!("ERR {option} should be greater than 0")));
    }
    Ok(seconds)
}

fn yes_or_no(arg: &[u8]) -> Result<bool, Refusal> {
    match arg {
        arg if arg.eq_ignore_ascii_case(b"yes") => Ok(true),
        arg if arg.eq_ignore_ascii_case(b"no") => Ok(false),
        _ => Err(Refusal::Syntax),
    }
}

fn kind_of_name(name: &[u8]) -> Option<Kind> {
    const NAMES: [(&str, Kind); 6] = [
        ("normal", Kind::Normal),
        ("pubsub", Kind::PubSub),
        ("master", Kind::Primary),
        ("primary", Kind::Primary),
        ("slave", Kind::Replica),
        ("replica", Kind::Replica),
    ];
    let is_it = |(known, _): &&(&str, Kind)| name.eq_ignore_ascii_case(known.as_bytes());
    NAMES.iter().find(is_it).map(|(_, kind)| *kind)
}

fn kind_of(card: &ClientCard) -> Kind {
    if card.shown_flags() & ClientFlags::PUBSUB != 0 { Kind::PubSub } else { Kind::Normal }
}

impl Test<'_> {
    fn is_true_of(&self, card: &ClientCard, now: UnixMillis) -> bool {
        // A name that was never given equals nothing, not even an empty one.
        let is = |given: &[u8], wanted: &[u8]| !given.is_empty() && given == wanted;
        match self {
            Test::Ids(ids) => ids.contains(&card.id),
            Test::Kind(kind) => kind_of(card) == *kind,
            Test::User(user) => card.names().user == *user,
            Test::Address(address) => card.address.as_bytes() == *address,
            Test::LocalAddress(address) => card.local_address.as_bytes() == *address,
            Test::Name(name) => is(&card.names().name, name),
            Test::Library(name) => is(&card.names().library, name),
            Test::LibraryVersion(version) => is(&card.names().library_version, version),
            Test::Ip(ip) => ip_of(&card.address).as_bytes() == *ip,
            Test::Flags(letters) => {
                let shown = flag_letters(card);
                letters.iter().all(|letter| shown.as_bytes().contains(letter))
            }
            Test::Capabilities(letters) => {
                letters.is_empty() || card.has_flag(ClientFlags::FOLLOWS_REDIRECTIONS)
            }
            Test::Db(db) => card.db.load(Relaxed) == *db,
            Test::AgeSeconds(seconds) => seconds_since(now, card.connected_ms) >= *seconds,
            Test::IdleSeconds(seconds) => {
                seconds_since(now, card.last_ms.load(Relaxed)) >= *seconds
            }
        }
    }
}

/// An address without its port, and without the brackets of IPv6.
fn ip_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _port)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
