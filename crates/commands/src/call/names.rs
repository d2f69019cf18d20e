//! The name that a call begins with: another one than the command's own, or none that is known.

use crate::call::dispatch::{Progress, Worker};
use crate::call::session::Session;
use crate::error::Refusal;
use crate::node::renames::OwnNames;
use russet_base::Args;
use russet_base::escape::escape;
use russet_catalog::Unknown;
use russet_protocol::Sink;

impl Worker {
    /// Runs one command of a server that has other names for some.
    #[cold]
    pub(super) fn run_translated(
        &mut self,
        session: &mut Session,
        (args, names): (Args, OwnNames),
        sink: &mut dyn Sink,
    ) -> Progress {
        match names {
            OwnNames::AsIs => self.run_own(session, args, sink),
            OwnNames::Translated(own) => {
                session.next_call = None;
                self.run_own(session, own.as_args(), sink)
            }
            OwnNames::Unknown(at) => {
                session.refresh_rights(&self.node.acl);
                session.next_call = None;
                let refusal = match session.is_authenticated() {
                    true => unknown_text(Unknown::Command, args.from(at)),
                    false => Refusal::NoAuth,
                };
                self.refuse(session, None, refusal, sink);
                Progress::Done
            }
        }
    }
}

/// COMPAT: the arguments are cut as Redis cuts them (tests/wire/connection/protocol.wire).
pub(super) fn unknown_text(unknown: Unknown, args: Args) -> Refusal {
    const NAME_BYTES_MAX: usize = 128;
    let cut = |arg: &[u8], max: usize| escape(&arg[..arg.len().min(max)]).into_owned();
    match unknown {
        Unknown::Subcommand(parent) => Refusal::text(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            cut(args.at(1), NAME_BYTES_MAX),
            parent.spec().name.to_uppercase()
        )),
        Unknown::Command => {
            let mut beginning = String::new();
            for arg in args.from(1).iter() {
                if beginning.len() >= NAME_BYTES_MAX {
                    break;
                }
                let room = NAME_BYTES_MAX - beginning.len();
                beginning.push_str(&format!("'{}' ", cut(arg, room)));
            }
            let name = cut(args.at(0), NAME_BYTES_MAX);
            Refusal::text(format!(
                "ERR unknown command '{name}', with args beginning with: {beginning}"
            ))
        }
    }
}
