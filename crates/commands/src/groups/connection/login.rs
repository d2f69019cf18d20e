//! HELLO and AUTH: who the client is and which protocol it speaks.

use super::client::check_name;
use super::close_after_reply;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::call::invoke::Origin;
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::Node;
use crate::node::acl::{Context, DEFAULT_USER, Login as UserLogin, User};
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use russet_protocol::Resp;
use std::sync::Arc;

/// What HELLO was asked for.
#[derive(Default)]
struct Greeting<'a> {
    resp: Option<Resp>,
    login: Option<Login<'a>>,
    name: Option<&'a [u8]>,
}

struct Login<'a> {
    user: &'a [u8],
    password: &'a [u8],
}

pub fn hello(ctx: &mut Ctx, args: Args) -> Outcome {
    let greeting = parse_greeting(args)?;
    if let Some(login) = greeting.login {
        log_in(ctx, &login, args)?;
    }
    if !ctx.session.is_authenticated() {
        return Err(Refusal::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = greeting.name {
        ctx.session.card.names().name = name.to_vec();
    }
    if let Some(resp) = greeting.resp {
        ctx.session.set_resp(resp);
        ctx.reply.set_resp(resp);
    }
    write_facts(ctx);
    DONE
}

fn parse_greeting(args: Args) -> Result<Greeting, Refusal> {
    let mut greeting = Greeting::default();
    let Some(version) = args.get(1) else {
        return Ok(greeting);
    };
    greeting.resp = Some(match parse_i64(version) {
        Some(2) => Resp::V2,
        Some(3) => Resp::V3,
        Some(_) => return Err(Refusal::text("NOPROTO unsupported protocol version")),
        None => {
            return Err(Refusal::text("ERR Protocol version is not an integer or out of range"));
        }
    });
    let mut rest = args.from(2);
    while let Some(option) = rest.get(0) {
        let taken = match (rest.get(1), rest.get(2)) {
            (Some(user), Some(password)) if option.eq_ignore_ascii_case(b"AUTH") => {
                greeting.login = Some(Login { user, password });
                3
            }
            (Some(name), _) if option.eq_ignore_ascii_case(b"SETNAME") => {
                check_name(name)?;
                greeting.name = Some(name);
                2
            }
            _ => {
                let option = escape(option);
                return Err(Refusal::text(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        };
        rest = rest.from(taken);
    }
    Ok(greeting)
}

fn write_facts(ctx: &mut Ctx) {
    let version = ctx.node.config.text(Directive::RedisVersion);
    let proto = if ctx.session.resp == Resp::V2 { 2 } else { 3 };
    let zone = ctx.node.config.text(Directive::AvailabilityZone);
    let reply = &mut *ctx.reply;
    reply.map(if zone.is_empty() { 7 } else { 8 });
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(&version);
    reply.bulk(b"proto");
    reply.int(proto);
    reply.bulk(b"id");
    reply.int(ctx.session.card.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
    if !zone.is_empty() {
        reply.bulk(b"availability_zone");
        reply.bulk(&zone);
    }
}

pub fn auth(ctx: &mut Ctx, args: Args) -> Outcome {
    let login = match args.len() {
        2 => Login { user: DEFAULT_USER, password: args.at(1) },
        3 => Login { user: args.at(1), password: args.at(2) },
        _ => return Err(Refusal::Syntax),
    };
    if args.len() == 2 && ctx.node.acl.default_user().rights().is_passwordless {
        return Err(Refusal::text(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ));
    }
    log_in(ctx, &login, args)?;
    ctx.reply.ok();
    DONE
}

/// A failed login leaves the connection as it was, logged in or not.
fn log_in(ctx: &mut Ctx, login: &Login, args: Args) -> Result<(), Refusal> {
    let acl = &ctx.node.acl;
    let Some(user) = acl.authenticate(login.user, login.password) else {
        // Where it was sent is no longer told by the session: EXEC has ended the transaction.
        let is_in_multi = ctx.origin == Origin::Transaction;
        let context = if is_in_multi { Context::Multi } else { Context::TopLevel };
        ctx.node.note_failed_login(ctx.session, (login.user, context), args);
        return Err(Refusal::WrongPass);
    };
    ctx.session.log_in(UserLogin::of_user(acl, user.clone()));
    ends_with_user(ctx.node, ctx.session, &user);
    Ok(())
}

/// Ends a connection that has just logged in as a user who is gone. Whoever deletes a user ends the
/// connections that are logged in as it, of which this one may have been none yet.
pub(crate) fn ends_with_user(node: &Node, session: &mut Session, user: &Arc<User>) -> bool {
    let is_there = node.acl.user(&user.name).is_some_and(|known| Arc::ptr_eq(&known, user));
    if !is_there {
        close_after_reply(session);
    }
    !is_there
}
