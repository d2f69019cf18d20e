//! ACL: the users, what they may do, and what was refused to them. What rules mean is in
//! `node/acl`.

mod change;
mod inspect;

pub(crate) use change::{deluser, load, save, setuser};
pub(crate) use inspect::{cat, dryrun, genpass, getuser, list, log, users, whoami};

use crate::error::Refusal;
use russet_base::Args;
use russet_base::escape::escape;

#[cfg(test)]
mod tests;

fn too_many(args: Args) -> Refusal {
    let subcommand = escape(args.at(1));
    Refusal::text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try ACL HELP."
    ))
}
