//! ACL with the one user that there is: `default`, who may do everything, with the password of
//! `requirepass` or without one. What would make or judge other users is refused.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::connection::login::DEFAULT_USER;
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::escape::escape;
use russet_base::num::parse_i64;
use russet_base::random::fill_with_secrets;
use russet_catalog::Command;
use russet_catalog::spec::Categories;
use sha2::{Digest, Sha256};

/// Bits of a password that ACL GENPASS makes when it is not told how many.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4096;
/// Bits of one hexadecimal digit.
const DIGIT_BITS: i64 = 4;

pub(crate) fn whoami(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.bulk(DEFAULT_USER);
    DONE
}

pub(crate) fn users(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.array(1);
    ctx.reply.bulk(DEFAULT_USER);
    DONE
}

pub(crate) fn list(ctx: &mut Ctx, _args: Args) -> Outcome {
    let password = match password_digest(ctx) {
        Some(digest) => format!("#{digest}"),
        None => "nopass".to_owned(),
    };
    ctx.reply.array(1);
    ctx.reply.bulk(format!("user default on {password} ~* &* +@all").as_bytes());
    DONE
}

pub(crate) fn getuser(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.at(2) != DEFAULT_USER {
        ctx.reply.null();
        return DONE;
    }
    let digest = password_digest(ctx);
    let reply = &mut *ctx.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(1 + usize::from(digest.is_none()));
    reply.bulk(b"on");
    if digest.is_none() {
        reply.bulk(b"nopass");
    }
    reply.bulk(b"passwords");
    reply.array(usize::from(digest.is_some()));
    if let Some(digest) = &digest {
        reply.bulk(digest.as_bytes());
    }
    for (name, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(name.as_bytes());
        reply.bulk(rule.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
    DONE
}

/// A password is shown as its SHA-256 only.
fn password_digest(ctx: &Ctx) -> Option<String> {
    let password = ctx.node.config.text(Directive::RequirePass);
    (!password.is_empty()).then(|| hexadecimal(&Sha256::digest(&*password)))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn cat(ctx: &mut Ctx, args: Args) -> Outcome {
    let Some(arg) = args.get(2) else {
        ctx.reply.array(Categories::NAMES.len());
        Categories::NAMES.iter().for_each(|(_, name)| ctx.reply.bulk(name.as_bytes()));
        return DONE;
    };
    if args.len() > 3 {
        return Err(too_many(args));
    }
    let named = |(_, name): &&(Categories, &str)| arg.eq_ignore_ascii_case(name.as_bytes());
    let Some((category, _)) = Categories::NAMES.iter().find(named) else {
        return Err(Refusal::text(format!("ERR Unknown category '{}'", escape(arg))));
    };
    let mut commands = Command::ALL.to_vec();
    commands.retain(|command| command.spec().categories.has(*category));
    ctx.reply.array(commands.len());
    commands.iter().for_each(|command| ctx.reply.bulk(command.full_name().as_bytes()));
    DONE
}

pub(crate) fn genpass(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 3 {
        return Err(too_many(args));
    }
    let bits = match args.get(2) {
        Some(arg) => parse_i64(arg).ok_or(Refusal::NotInteger)?,
        None => PASSWORD_BITS,
    };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(Refusal::text(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to {PASSWORD_BITS_MAX}"
        )));
    }
    let digits = (bits as u64).div_ceil(DIGIT_BITS as u64) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    fill_with_secrets(&mut bytes).map_err(|error| {
        Refusal::text(format!("ERR cannot read random numbers from the system: {error}"))
    })?;
    let password = hexadecimal(&bytes);
    ctx.reply.bulk(&password.as_bytes()[..digits]);
    DONE
}

/// DIFFERS: there is one user, and it can't be changed by ACL.
pub(crate) fn refused(ctx: &mut Ctx, _args: Args) -> Outcome {
    let name = ctx.command.full_name().replace('|', " ").to_uppercase();
    Err(Refusal::text(format!(
        "ERR {name} is not supported yet: the only user is 'default', who may do everything; its \
         password is CONFIG SET requirepass"
    )))
}

fn too_many(args: Args) -> Refusal {
    let subcommand = escape(args.at(1));
    Refusal::text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try ACL HELP."
    ))
}
