//! CLIENT KILL, by address or by filters.

use super::close_after_reply;
use super::filter::Filter;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;

pub fn kill(ctx: &mut Ctx, args: Args) -> Outcome {
    let is_old_form = args.len() == 3;
    let (filter, skips_own) = if is_old_form {
        (Filter::of_address(args.at(2)), false)
    } else {
        let filter = Filter::parse(ctx, args.from(2))?;
        let skips_own = filter.skips_own.unwrap_or(true);
        (filter, skips_own)
    };
    let own_id = ctx.session.id();
    let mut killed = 0;
    // They are gone when this is answered.
    let mut receipt = None;
    for card in filter.candidates(&ctx.node.clients) {
        let is_own = card.id == own_id;
        if (is_own && skips_own) || !filter.takes(&card, ctx.keys.now) {
            continue;
        }
        killed += 1;
        if is_own {
            close_after_reply(ctx.session);
        } else {
            let receipt = receipt.get_or_insert_with(|| ctx.session.ask_others());
            card.kill(Some(receipt.another()));
        }
    }
    match (is_old_form, killed) {
        (true, 0) => return Err(Refusal::text("ERR No such client")),
        (true, _) => ctx.reply.ok(),
        (false, _) => ctx.reply.int(killed),
    }
    DONE
}
