//! ACL SETUSER, DELUSER, LOAD and SAVE. What they change holds for open connections as well: they
//! are closed if their user is gone, or if they listen to what it may no longer hear.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::connection::close_after_reply;
use crate::node::acl::{Changed, User, has_all_channels, is_user_name, join_selectors};
use crate::node::clients::ClientCard;
use russet_base::Args;
use russet_base::escape::escape;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) fn setuser(ctx: &mut Ctx, args: Args) -> Outcome {
    let name = args.at(2);
    if !is_user_name(name) {
        return Err(Refusal::text("ERR Usernames can't contain spaces or null characters"));
    }
    let rules = join_selectors(args.from(3).iter()).map_err(|first| {
        let first = escape(&first).into_owned();
        Refusal::text(format!("ERR Unmatched parenthesis in acl selector starting at '{first}'."))
    })?;
    let defaults = has_all_channels(&ctx.node.config);
    let changed = ctx.node.acl.set_user(name, &rules, defaults).map_err(|(at, bad)| {
        let (rule, why) = (escape(&rules[at]), bad.text());
        Refusal::text(format!("ERR Error in ACL SETUSER modifier '{rule}': {why}"))
    })?;
    end_connections(ctx, &changed);
    ctx.reply.ok();
    DONE
}

pub(crate) fn deluser(ctx: &mut Ctx, args: Args) -> Outcome {
    let names: Vec<&[u8]> = args.from(2).iter().collect();
    let Some((deleted, changed)) = ctx.node.acl.delete(&names) else {
        return Err(Refusal::text("ERR The 'default' user cannot be removed"));
    };
    end_connections(ctx, &changed);
    ctx.reply.int(deleted as i64);
    DONE
}

pub(crate) fn load(ctx: &mut Ctx, _args: Args) -> Outcome {
    let path = file(ctx)?;
    let loaded = ctx.node.load_acl_file(&path);
    let changed = loaded.map_err(|why| Refusal::text(format!("ERR {why}")))?;
    end_connections(ctx, &changed);
    ctx.reply.ok();
    DONE
}

pub(crate) fn save(ctx: &mut Ctx, _args: Args) -> Outcome {
    let path = file(ctx)?;
    if let Err(why) = ctx.node.save_acl_file(&path) {
        ctx.node.host.log(&format!("Cannot save the users to '{}': {why}", path.display()));
        return Err(Refusal::text(
            "ERR There was an error trying to save the ACLs. Please check the server logs for more \
             information",
        ));
    }
    ctx.reply.ok();
    DONE
}

fn file(ctx: &Ctx) -> Result<PathBuf, Refusal> {
    ctx.node.acl_file().ok_or_else(|| {
        Refusal::text(
            "ERR This instance is not configured to use an ACL file. You may want to specify users \
             via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a \
             configuration file set) in order to store users in the configuration.",
        )
    })
}

/// Ends the connections that may not go on. They are gone when this is answered.
fn end_connections(ctx: &mut Ctx, changed: &Changed) {
    let node = ctx.node;
    let mut ended: Vec<Arc<ClientCard>> = Vec::new();
    let logged_in: Vec<&Arc<User>> =
        changed.deleted.iter().filter(|user| user.may_be_logged_in()).collect();
    if !logged_in.is_empty() {
        let is_deleted =
            |card: &ClientCard| logged_in.iter().any(|user| *user.name == *card.names().user);
        ended.extend(node.clients.all().into_iter().filter(|card| is_deleted(card)));
    }
    for user in &changed.channels {
        let rights = user.rights();
        ended.extend(node.hub.listeners(&|card, used_as, name| {
            *card.names().user == *user.name && !rights.may_use_channel(used_as, name)
        }));
    }
    if !ended.is_empty() {
        let receipt = ctx.session.ask_others();
        for card in ended {
            match card.id == ctx.session.id() {
                true => close_after_reply(ctx.session),
                false => card.kill(Some(receipt.another())),
            }
        }
    }
    // What follows in a transaction is done with the new rights.
    ctx.session.refresh_rights(&node.acl);
}
