//! CLIENT LIST and CLIENT INFO: a client's card as one line of `field=value`.

use super::filter::Filter;
use crate::clients::{ClientCard, ClientFlags};
use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::{Args, UnixMillis};
use russet_catalog::Command;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

pub fn info(ctx: &mut Ctx, _args: Args) -> Outcome {
    note_command(ctx);
    let mut text = Vec::new();
    write_line(&mut text, &ctx.session.card, ctx.keys.now);
    ctx.reply.verbatim(b"txt", &text);
    DONE
}

pub fn list(ctx: &mut Ctx, args: Args) -> Outcome {
    // COMPAT: one word is never a filter, not even ID, which alone among others may be empty
    // (tests/wire/connection/client_rest.wire).
    if args.len() == 3 {
        return Err(Refusal::Syntax);
    }
    let filter = Filter::parse(ctx, args.from(2))?;
    note_command(ctx);
    let mut text = Vec::new();
    for card in ctx.node.clients.all() {
        let is_own = card.id == ctx.session.id();
        if !(is_own && filter.skips_own == Some(true)) && filter.takes(&card, ctx.keys.now) {
            write_line(&mut text, &card, ctx.keys.now);
        }
    }
    ctx.reply.verbatim(b"txt", &text);
    DONE
}

/// The line of the caller shows the command that shows it: EXEC for those that were queued.
fn note_command(ctx: &Ctx) {
    let command = if ctx.may_block { ctx.command } else { Command::Exec };
    ctx.session.card.last_command.store(command as u16 + 1, Relaxed);
}

/// Whole seconds, as the lines tell times.
pub(super) fn seconds_since(now: UnixMillis, then_ms: i64) -> i64 {
    (now.0.div_euclid(1000) - then_ms.div_euclid(1000)).max(0)
}

/// The letters of CLIENT LIST's `flags`, in its order.
pub(super) fn flag_letters(card: &ClientCard) -> String {
    const LETTERS: [(u16, char); 12] = [
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
        (ClientFlags::NO_EVICT, 'e'),
        (ClientFlags::NO_TOUCH, 'T'),
    ];
    let flags = card.shown_flags();
    let letters: String =
        LETTERS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter).collect();
    if letters.is_empty() { "N".to_owned() } else { letters }
}

/// The fields of Redis 8 and Valkey 9 together, in the order that both keep.
fn write_line(out: &mut Vec<u8>, card: &ClientCard, now: UnixMillis) {
    let names = card.names().clone();
    let command = usize::from(card.last_command.load(Relaxed)).checked_sub(1);
    let command = command.and_then(|at| Command::ALL.get(at)).map_or("NULL", |it| it.full_name());
    let omem = card.output_bytes.load(Relaxed);
    let (qbuf, qbuf_free) = (card.query_bytes.load(Relaxed), card.query_free_bytes.load(Relaxed));
    let queued_bytes = card.queued_bytes.load(Relaxed);
    let own_bytes = size_of::<ClientCard>() as u64;
    let total = own_bytes + omem + qbuf + qbuf_free + queued_bytes;
    let mut text = |part: std::fmt::Arguments| {
        out.write_fmt(part).expect("a vector takes every byte");
    };
    text(format_args!("id={} addr={} laddr={}", card.id, card.address, card.local_address));
    text(format_args!(" fd={} name={}", card.fd, names.name.escape_ascii()));
    let idle = seconds_since(now, card.last_ms.load(Relaxed));
    text(format_args!(" age={} idle={idle}", seconds_since(now, card.connected_ms)));
    text(format_args!(" flags={} capa= db={}", flag_letters(card), card.db.load(Relaxed)));
    let (sub, psub) = (card.subscriptions.load(Relaxed), card.patterns.load(Relaxed));
    text(format_args!(" sub={sub} psub={psub} ssub={}", card.shard_subscriptions.load(Relaxed)));
    let (multi, watch) = (card.queued.load(Relaxed), card.watching.load(Relaxed));
    text(format_args!(" multi={multi} watch={watch} qbuf={qbuf} qbuf-free={qbuf_free}"));
    text(format_args!(" argv-mem=0 multi-mem={queued_bytes} rbs=0 rbp=0 obl=0 oll=0"));
    text(format_args!(" omem={omem} tot-mem={total} events=r cmd={command}"));
    text(format_args!(" user={} redir=-1", names.user.escape_ascii()));
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
