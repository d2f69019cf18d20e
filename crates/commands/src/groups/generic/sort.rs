//! SORT and SORT_RO: the elements of a list, a set or a sorted set, in another order, looked up
//! elsewhere, or stored.

mod items;
mod request;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::session::Gate;
use crate::error::Refusal;
use crate::groups::list::limits as list_limits;
use crate::groups::string::read::reply_text;
use items::{Items, NotNumber, Rule};
use request::{Order, Pattern, Request};
use russet_base::Args;
use russet_catalog::Command;
use russet_engine::event::Event;
use russet_engine::keys::Keys;
use russet_engine::keyspace::Keyspace;
use russet_engine::store::raw::table::EntryRef;
use russet_engine::store::shard_set::ShardSet;
use russet_engine::types::element::Element;
use russet_engine::types::list::{End, Extent, ListRef};
use russet_engine::types::set::SetRef;
use russet_engine::types::string::{self, Text};
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_engine::types::{hash, list, set, zset};
use russet_engine::value::{Object, Type, WrongType, type_of};
use std::ops::{ControlFlow, Range};

impl From<NotNumber> for Refusal {
    fn from(_: NotNumber) -> Self {
        Refusal::text("ERR One or more scores can't be converted into double")
    }
}

/// The shards of a call: those of the keys that it names, and of those that its elements will.
pub(super) fn shards(keyspace: &Keyspace, command: Command, args: Args) -> ShardSet {
    match Request::parse(args, command == Command::Sort) {
        Ok(request) => request.shards(keyspace),
        // The handler refuses it before it touches a key.
        Err(_) => ShardSet::EMPTY,
    }
}

pub fn sort(ctx: &mut Ctx, args: Args) -> Outcome {
    run(ctx, args, true)
}

pub fn sort_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    run(ctx, args, false)
}

fn run(ctx: &mut Ctx, args: Args, may_store: bool) -> Outcome {
    let mut request = Request::parse(args, may_store)?;
    check_rights(ctx, args, &request)?;
    let (mut items, range) = gather(ctx.keys, &mut request, ctx.session.is_in_script)?;
    if let (Some(by), true) = (request.by, request.order != Order::Stored) {
        let mut key = Vec::new();
        items.weigh(|text, found| look_up(ctx.keys, (by, text), &mut key, found))?;
    }
    let texts = items.in_order(range);
    match request.store {
        None => reply(ctx, &request.gets, texts),
        Some(target) => store(ctx, &request.gets, texts, target),
    }
    DONE
}

/// The keys that a pattern names are known too late to be looked at one by one: who uses one must
/// be allowed to read all keys. COMPAT: GET needs that even for `#`, BY only with a `*`
/// (tests/wire/acl/keys.wire).
fn check_rights(ctx: &Ctx, args: Args, request: &Request) -> Result<(), Refusal> {
    let has_by = matches!(request.by, Some(Pattern::Key { .. }));
    let names_keys = has_by || !request.gets.is_empty();
    if !names_keys || !ctx.session.gate.has(Gate::RESTRICTED) {
        return Ok(());
    }
    let call = ctx.node.call_of(ctx.session, (ctx.command, args));
    if ctx.session.login.rights().may_read_all(&call) {
        return Ok(());
    }
    let option = if has_by { "BY" } else { "GET" };
    Err(Refusal::text(format!(
        "ERR {option} option of SORT denied due to insufficient ACL permissions."
    )))
}

/// The elements, and which of them are wanted once they are in order.
fn gather(
    keys: &mut Keys,
    request: &mut Request,
    is_in_script: bool,
) -> Result<(Items, Range<usize>), Refusal> {
    let Some(entry) = keys.read(request.key) else {
        return Ok((Items::new(rule(request), 0), 0..0));
    };
    let source = Source::of(&entry)?;
    let must_have_order = request.store.is_some() || is_in_script;
    if request.order == Order::Stored && source.is_unordered() && must_have_order {
        // What is stored, or what a script sees, must not depend on how a set happens to lie in
        // memory.
        request.by_text();
    }
    let range = request.range(source.len());
    let mut items = Items::new(rule(request), range.end);
    match (request.order, request.by) {
        (Order::Stored, _) => {
            source.each_in(range.clone(), request.is_descending, &mut |element| {
                items.push(element);
            });
            return Ok((items, 0..range.len()));
        }
        (_, Some(_)) => source.each(&mut |element| items.push(element)),
        (_, None) => {
            let mut outcome = Ok(());
            source.each(&mut |element| {
                if outcome.is_ok() {
                    outcome = items.push_in_order(element);
                }
            });
            outcome?;
        }
    }
    Ok((items, range))
}

fn rule(request: &Request) -> Rule {
    let (order, is_descending) = (request.order, request.is_descending);
    Rule { order, is_descending, has_weights: request.by.is_some() }
}

/// What can be sorted.
/// DIFFERS: a sorted set stays encoded as it is; peers make a skiplist of a small one.
enum Source<'a> {
    List(ListRef<'a>),
    Set(SetRef<'a>),
    Zset(ZsetRef<'a>),
}

impl<'a> Source<'a> {
    fn of(entry: &EntryRef<'a, Object>) -> Result<Self, WrongType> {
        match type_of(entry) {
            Type::List => list::stored::list(entry).map(Source::List),
            Type::Set => set::stored::set(entry).map(Source::Set),
            Type::Zset => zset::stored::zset(entry).map(Source::Zset),
            _ => Err(WrongType),
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::List(list) => list.len(),
            Source::Set(set) => set.len(),
            Source::Zset(zset) => zset.len(),
        }
    }

    /// Whether it has no order of its own.
    fn is_unordered(&self) -> bool {
        matches!(self, Source::Set(_))
    }

    /// Shows all elements.
    fn each(&self, visit: &mut dyn FnMut(Element<'_>)) {
        match self {
            Source::List(list) => list.for_each_in(0..list.len(), visit),
            Source::Set(set) => set.for_each(visit),
            Source::Zset(zset) => {
                zset.for_each(0..zset.len(), Direction::Forward, |pair| visit(pair.member));
            }
        }
    }

    /// Shows the elements of a range in their own order, or in the reverse of it. A set has but
    /// one.
    fn each_in(&self, range: Range<usize>, is_descending: bool, visit: &mut dyn FnMut(Element)) {
        let reversed = self.len() - range.end..self.len() - range.start;
        match (self, is_descending) {
            (Source::List(list), false) => list.for_each_in(range, visit),
            (Source::List(list), true) => list.for_each_in_rev(reversed, visit),
            (Source::Zset(zset), false) => {
                zset.for_each(range, Direction::Forward, |pair| visit(pair.member));
            }
            (Source::Zset(zset), true) => {
                zset.for_each(reversed, Direction::Reverse, |pair| visit(pair.member));
            }
            (Source::Set(set), _) => {
                let mut at = 0;
                let _whole = set.try_for_each(&mut |member| {
                    if at == range.end {
                        return ControlFlow::Break(());
                    }
                    if at >= range.start {
                        visit(member);
                    }
                    at += 1;
                    ControlFlow::Continue(())
                });
            }
        }
    }
}

/// Passes on what a pattern finds for an element. `key` is room for the names of keys.
fn look_up(
    keys: &mut Keys,
    (pattern, element): (Pattern, &[u8]),
    key: &mut Vec<u8>,
    found_text: &mut dyn FnMut(Option<Text>),
) {
    let (before, after, field) = match pattern {
        Pattern::Element => return found_text(Some(Text::Bytes(element))),
        Pattern::Nothing => return found_text(None),
        Pattern::Key { before, after, field } => (before, after, field),
    };
    key.clear();
    [before, element, after].iter().for_each(|part| key.extend_from_slice(part));
    let hides_ms = keys.hides_fields_ms();
    let found = keys.read(key);
    match field {
        None => found_text(found.and_then(|entry| string::text(&entry).ok())),
        Some(field) => found_text(found.and_then(|entry| field_of(&entry, (field, hides_ms)))),
    }
}

/// The value of a field, if there is a hash that has it.
fn field_of<'a>(entry: &EntryRef<'a, Object>, (field, hides_ms): (&[u8], i64)) -> Option<Text<'a>> {
    match hash::stored::hash(entry).ok()?.hiding(hides_ms).value(field)? {
        Element::Int(value) => Some(Text::Int(value)),
        Element::Bytes(bytes) => Some(Text::Bytes(bytes)),
    }
}

fn reply<'t>(ctx: &mut Ctx, gets: &[Pattern], texts: impl ExactSizeIterator<Item = &'t [u8]>) {
    ctx.reply.array(texts.len().saturating_mul(gets.len().max(1)));
    let mut key = Vec::new();
    for text in texts {
        if gets.is_empty() {
            ctx.reply.bulk(text);
        }
        for &pattern in gets {
            look_up(ctx.keys, (pattern, text), &mut key, &mut |found| match found {
                Some(text) => reply_text(ctx.reply, text),
                None => ctx.reply.null(),
            });
        }
    }
}

/// Puts what would have been the reply into a list; what was not found is an empty text there.
fn store<'t>(
    ctx: &mut Ctx,
    gets: &[Pattern],
    texts: impl ExactSizeIterator<Item = &'t [u8]>,
    target: &[u8],
) {
    let mut output = Output::default();
    let mut key = Vec::new();
    for text in texts {
        if gets.is_empty() {
            output.push(Text::Bytes(text));
        }
        for &pattern in gets {
            look_up(ctx.keys, (pattern, text), &mut key, &mut |found| {
                output.push(found.unwrap_or(Text::Bytes(b"")));
            });
        }
    }
    let count = output.ends.len();
    if count > 0 {
        let extent = Extent { bytes: output.block.len(), count };
        let limits = list_limits(ctx);
        list::stored::build(End::Back, output.elements(), (extent, limits), |value| {
            ctx.keys.put(target, value, None);
        });
        ctx.keys.wrote_many(target, Event::list("sortstore"), count as u64);
        ctx.keys.record([b"DEL", target]);
        ctx.keys.record_list(&[b"RPUSH", target], output.texts());
    } else if ctx.keys.remove(target) {
        ctx.keys.wrote(target, Event::DEL);
        ctx.keys.record([b"DEL", target]);
    }
    ctx.reply.int(count as i64);
}

/// Texts in one block.
#[derive(Default)]
struct Output {
    block: Vec<u8>,
    ends: Vec<usize>,
}

impl Output {
    fn push(&mut self, text: Text) {
        text.with_bytes(|bytes| self.block.extend_from_slice(bytes));
        self.ends.push(self.block.len());
    }

    fn texts(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| {
            let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.block[start..self.ends[at]]
        })
    }

    fn elements(&self) -> impl DoubleEndedIterator<Item = Element<'_>> {
        self.texts().map(Element::parse)
    }
}
