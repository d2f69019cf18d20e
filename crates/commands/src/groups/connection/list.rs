//! CLIENT LIST and CLIENT INFO: a client's card as one line of `field=value`.

use super::filter::Filter;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::clients::{ClientCard, ClientFlags};
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

/// Redis keeps so much of the unsent replies in a buffer of the client, and what is more in a list
/// of such buffers. The figures are in those terms.
const REPLY_BUFFER_BYTES: u64 = 16 * 1024;

/// What a client's buffers hold and take.
struct Buffers {
    query_bytes: u64,
    query_free_bytes: u64,
    argument_bytes: u64,
    queued_bytes: u64,
    output_bytes: u64,
    output_capacity_bytes: u64,
}

impl Buffers {
    /// As they were when the client's last turn ended.
    fn of(card: &ClientCard) -> Self {
        let is_blocked = card.has_flag(ClientFlags::BLOCKED);
        Buffers {
            query_bytes: card.query_bytes.load(Relaxed),
            query_free_bytes: card.query_free_bytes.load(Relaxed),
            argument_bytes: if is_blocked { card.argument_bytes.load(Relaxed) } else { 0 },
            queued_bytes: card.queued_bytes.load(Relaxed),
            output_bytes: card.output_bytes.load(Relaxed),
            output_capacity_bytes: card.output_capacity_bytes.load(Relaxed),
        }
    }

    /// As they are in the caller's turn under way.
    fn of_caller(ctx: &mut Ctx, args: Args) -> Self {
        let (bytes, capacity) = ctx.reply.wire().map_or((0, 0), |out| (out.len(), out.capacity()));
        Buffers {
            argument_bytes: args.bytes_total() as u64,
            output_bytes: bytes as u64,
            output_capacity_bytes: capacity as u64,
            ..Buffers::of(&ctx.session.card)
        }
    }

    fn total_bytes(&self) -> u64 {
        self.query_bytes
            + self.query_free_bytes
            + self.argument_bytes
            + self.queued_bytes
            + self.output_capacity_bytes.max(self.output_bytes)
    }
}

pub fn info(ctx: &mut Ctx, args: Args) -> Outcome {
    note_command(ctx);
    let mut text = Vec::new();
    let buffers = Buffers::of_caller(ctx, args);
    write_line(&mut text, &ctx.session.card, &buffers, ctx.keys.now);
    ctx.reply.verbatim(b"txt", &text);
    DONE
}

pub fn list(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: a single arg is never a filter, not even ID, which alone among others may be empty
    // (tests/wire/connection/client_rest.wire).
    if args.len() == 3 {
        return Err(Refusal::Syntax);
    }
    let filter = Filter::parse(ctx, args.from(2))?;
    note_command(ctx);
    let mut text = Vec::new();
    let own_buffers = Buffers::of_caller(ctx, args);
    for card in filter.candidates(&ctx.node.clients) {
        let is_own = card.id == ctx.session.id();
        if !(is_own && filter.skips_own == Some(true)) && filter.takes(&card, ctx.keys.now) {
            let buffers = if is_own { &own_buffers } else { &Buffers::of(&card) };
            write_line(&mut text, &card, buffers, ctx.keys.now);
        }
    }
    ctx.reply.verbatim(b"txt", &text);
    DONE
}

/// The line of a client whose call is refused, without its end.
pub(crate) fn describe(session: &Session, args: Args, now: UnixMillis) -> Vec<u8> {
    let mut line = Vec::new();
    let argument_bytes = args.bytes_total() as u64;
    let buffers = Buffers { argument_bytes, ..Buffers::of(&session.card) };
    write_line(&mut line, &session.card, &buffers, now);
    line.pop();
    line
}

/// The line of the caller shows the command that shows it: EXEC for those that were queued.
fn note_command(ctx: &Ctx) {
    let command = if ctx.may_block { ctx.command } else { Command::Exec };
    ctx.session.card.last_command.store(command as u16 + 1, Relaxed);
}

/// Whole seconds, as the lines show times.
pub(super) fn seconds_since(now: UnixMillis, then_ms: i64) -> i64 {
    (now.0.div_euclid(1000) - then_ms.div_euclid(1000)).max(0)
}

/// The letters of CLIENT LIST's `flags`, in its order.
pub(super) fn flag_letters(card: &ClientCard) -> String {
    const LETTERS: [(u16, char); 13] = [
        (ClientFlags::MONITOR, 'O'),
        (ClientFlags::PUBSUB, 'P'),
        (ClientFlags::MULTI, 'x'),
        (ClientFlags::BLOCKED, 'b'),
        (ClientFlags::TRACKING, 't'),
        (ClientFlags::DIRTY_CAS, 'd'),
        (ClientFlags::CLOSE_AFTER_REPLY, 'c'),
        (ClientFlags::UNBLOCKED, 'u'),
        (ClientFlags::CLOSE_ASAP, 'A'),
        (ClientFlags::UNIX_SOCKET, 'U'),
        (ClientFlags::READONLY, 'r'),
        (ClientFlags::NO_EVICT, 'e'),
        (ClientFlags::NO_TOUCH, 'T'),
    ];
    let flags = card.shown_flags();
    let mut letters = String::new();
    for (bit, letter) in LETTERS.iter().filter(|(bit, _)| flags & bit != 0) {
        letters.push(*letter);
        if *bit == ClientFlags::TRACKING {
            letters.push_str(if card.is_redirect_broken() { "R" } else { "" });
            letters.push_str(if card.is_broadcast() { "B" } else { "" });
        }
    }
    if letters.is_empty() { "N".to_owned() } else { letters }
}

/// The fields of Redis 8 and Valkey 9 together, in the order that both keep.
fn write_line(out: &mut Vec<u8>, card: &ClientCard, buffers: &Buffers, now: UnixMillis) {
    let names = card.names().clone();
    let command = usize::from(card.last_command.load(Relaxed)).checked_sub(1);
    let command = command.and_then(|at| Command::ALL.get(at)).map_or("NULL", |it| it.full_name());
    let total = card.fixed_bytes() + buffers.total_bytes();
    let mut text = |part: std::fmt::Arguments| {
        out.write_fmt(part).expect("a vector takes every byte");
    };
    text(format_args!("id={} addr={} laddr={}", card.id, card.address, card.local_address));
    text(format_args!(" fd={} name={}", card.fd, names.name.escape_ascii()));
    let idle = seconds_since(now, card.last_ms.load(Relaxed));
    text(format_args!(" age={} idle={idle}", seconds_since(now, card.connected_ms)));
    let capa = if card.has_flag(ClientFlags::FOLLOWS_REDIRECTIONS) { "r" } else { "" };
    let db = card.db.load(Relaxed);
    text(format_args!(" flags={} capa={capa} db={db}", flag_letters(card)));
    let (sub, psub) = (card.subscriptions.load(Relaxed), card.patterns.load(Relaxed));
    text(format_args!(" sub={sub} psub={psub} ssub={}", card.shard_subscriptions.load(Relaxed)));
    let (multi, watch) = (card.queued.load(Relaxed), card.watching.load(Relaxed));
    let Buffers { query_bytes, query_free_bytes, argument_bytes, queued_bytes, .. } = buffers;
    text(format_args!(" multi={multi} watch={watch} qbuf={query_bytes}"));
    text(format_args!(" qbuf-free={query_free_bytes} argv-mem={argument_bytes}"));
    let (unsent, capacity) = (buffers.output_bytes, buffers.output_capacity_bytes);
    let (first, rest) = (unsent.min(REPLY_BUFFER_BYTES), unsent.saturating_sub(REPLY_BUFFER_BYTES));
    let nodes = rest.div_ceil(REPLY_BUFFER_BYTES);
    let node_bytes = if nodes == 0 { 0 } else { capacity.saturating_sub(REPLY_BUFFER_BYTES) };
    let buffer_bytes = capacity - node_bytes;
    // COMPAT: strings that are sent from where they are stored count as well, though the client
    // takes up no memory for them (`a_reader_that_never_reads_shares_the_value`).
    let node_bytes = if nodes == 0 { 0 } else { node_bytes.max(rest) };
    text(format_args!(" multi-mem={queued_bytes} rbs={buffer_bytes} rbp={first}"));
    text(format_args!(" obl={first} oll={nodes} omem={node_bytes}"));
    text(format_args!(" tot-mem={total} events=r cmd={command}"));
    let redirect = card.shown_redirect();
    text(format_args!(" user={} redir={redirect}", names.user.escape_ascii()));
    text(format_args!(
        " resp={} lib-name={}",
        card.resp.load(Relaxed),
        names.library.escape_ascii()
    ));
    text(format_args!(" lib-ver={} io-thread=0", names.library_version.escape_ascii()));
    let received = card.input_bytes_total.load(Relaxed);
    let sent = card.output_bytes_total.load(Relaxed);
    text(format_args!(" tot-net-in={received} tot-net-out={sent}"));
    text(format_args!(" tot-cmds={}\n", card.commands.load(Relaxed)));
}
