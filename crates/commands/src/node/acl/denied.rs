//! Refusals: how they are counted, remembered and said.

use super::log::LogEntry;
use super::selector::{Call, Denial, Reason};
use crate::call::session::{Gate, Session};
use crate::error::Refusal;
use crate::groups::connection::list::describe;
use crate::groups::scripting::once;
use crate::groups::transactions;
use crate::node::Node;
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::escape::escape;
use russet_catalog::{Command, ONCE_ARGS};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    TopLevel,
    Multi,
    Script,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "toplevel",
            Context::Multi => "multi",
            Context::Script => "lua",
        }
    }
}

/// What INFO shows.
#[derive(Debug, Default)]
pub struct DeniedCounts {
    pub logins: AtomicU64,
    pub commands: AtomicU64,
    pub keys: AtomicU64,
    pub channels: AtomicU64,
    pub databases: AtomicU64,
    pub certificates: AtomicU64,
}

impl DeniedCounts {
    fn of(&self, reason: Reason) -> &AtomicU64 {
        match reason {
            Reason::Database => &self.databases,
            Reason::Command => &self.commands,
            Reason::Key => &self.keys,
            Reason::Channel => &self.channels,
        }
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        let rights = [&self.commands, &self.keys, &self.channels, &self.databases];
        let all = rights.into_iter().chain([&self.logins, &self.certificates]);
        all.for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::Database => "database",
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
        }
    }

    /// What EXEC says when rules were changed since the command was queued.
    pub fn at_exec(self) -> &'static str {
        match self {
            Reason::Database => "no permission",
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => "no permission to access one of the channels used as arguments",
        }
    }
}

impl Denial {
    /// What the client is answered, without the code before it.
    pub fn text(&self, user: &[u8], command: Command) -> String {
        match self.reason {
            Reason::Database => "No permissions to access database".to_owned(),
            Reason::Command => {
                let (user, name) = (escape(user), command.full_name());
                format!("User {user} has no permissions to run the '{name}' command")
            }
            Reason::Key => "No permissions to access a key".to_owned(),
            Reason::Channel => "No permissions to access a channel".to_owned(),
        }
    }

    /// What ACL DRYRUN says. COMPAT: where the database that may not be used is the client's own,
    /// it shows the command's name (tests/wire/acl/databases.wire).
    pub fn detail(&self, user: &[u8], (command, args): (Command, Args)) -> Vec<u8> {
        let about: [&[u8]; 3] = match self.reason {
            Reason::Command => return self.text(user, command).into_bytes(),
            Reason::Database => [b"database ", args.at(self.index), b""],
            Reason::Key => [b"the '", args.at(self.index), b"' key"],
            Reason::Channel => [b"the '", args.at(self.index), b"' channel"],
        };
        [b"User ", user, b" has no permissions to access ", &about.concat()].concat()
    }

    /// What the log calls the object of the refusal. COMPAT: a command that needs all databases is
    /// named as a script has called it, and by its own name elsewhere (tests/wire/acl/log.wire).
    fn object(&self, (command, args): (Command, Args), context: Context) -> Vec<u8> {
        match (self.reason, self.db) {
            (Reason::Key | Reason::Channel, _) => args.at(self.index).to_vec(),
            (Reason::Database, Some(db)) => db.to_string().into_bytes(),
            (Reason::Database, None) if context == Context::Script => args.at(0).to_vec(),
            (Reason::Database, None) | (Reason::Command, _) => {
                command.full_name().as_bytes().to_vec()
            }
        }
    }
}

impl Node {
    /// What stands against a call of a session with restrictions, in the terms of the call that is
    /// refused: that of ONCE if it is the command that it runs.
    #[inline]
    pub fn check_rights(
        &self,
        session: &Session,
        (command, args): (Command, Args),
        context: Context,
    ) -> Result<(), (Denial, String)> {
        if !session.gate.has(Gate::RESTRICTED) {
            return Ok(());
        }
        self.check_restricted(session, (command, args), context)
    }

    fn check_restricted(
        &self,
        session: &Session,
        (command, args): (Command, Args),
        context: Context,
    ) -> Result<(), (Denial, String)> {
        let rights = session.login.rights();
        let refused = |denial: Denial, (command, args)| {
            self.note_denial(session, (command, args), (denial, context));
            (denial, denial.text(session.login.name(), command))
        };
        let of = |command, args| self.call_of(session, (command, args));
        rights.check(&of(command, args)).map_err(|denial| refused(denial, (command, args)))?;
        if let Some(inner) = once::wrapped(command, args) {
            let args = args.from(ONCE_ARGS);
            rights.check(&of(inner, args)).map_err(|denial| refused(denial, (inner, args)))?;
        }
        Ok(())
    }

    pub fn call_of<'a>(&self, session: &Session, (command, args): (Command, Args<'a>)) -> Call<'a> {
        let db_count = usize::try_from(self.config.int(Directive::Databases)).unwrap_or(0);
        Call { command, args, db: transactions::db(session), db_count }
    }

    #[cold]
    fn note_denial(
        &self,
        session: &Session,
        (command, args): (Command, Args),
        (denial, context): (Denial, Context),
    ) {
        self.acl.denied.of(denial.reason).fetch_add(1, Ordering::Relaxed);
        // Its line shows what it has sent: EXEC or EVAL, if that runs what is refused.
        if context == context_of(session) {
            session.card.last_command.store(command as u16 + 1, Ordering::Relaxed);
        }
        let object = denial.object((command, args), context);
        let user = session.login.name().to_vec();
        self.log_denial(session, (denial.reason.name(), context), (object, user), args);
    }

    /// Somebody has given a wrong name or password.
    pub fn note_failed_login(
        &self,
        session: &Session,
        (user, context): (&[u8], Context),
        args: Args,
    ) {
        self.acl.denied.logins.fetch_add(1, Ordering::Relaxed);
        let names = (args.at(0).to_vec(), user.to_vec());
        self.log_denial(session, ("auth", context), names, args);
    }

    /// A certificate names a user that there is not, or that is switched off.
    pub(super) fn note_unknown_certificate(&self, session: &Session, user: &[u8]) {
        self.acl.denied.certificates.fetch_add(1, Ordering::Relaxed);
        let names = (Vec::new(), user.to_vec());
        self.log_denial(session, ("tls-cert", Context::TopLevel), names, Args::new(&[], &[]));
    }

    fn log_denial(
        &self,
        session: &Session,
        (reason, context): (&'static str, Context),
        (object, user): (Vec<u8>, Vec<u8>),
        args: Args,
    ) {
        let now = self.clock.now();
        let client = describe(session, args, now);
        let entry = LogEntry {
            id: 0,
            count: 0,
            reason,
            context,
            object,
            user,
            client,
            created_ms: now.0,
            updated_ms: now.0,
        };
        let len_max = usize::try_from(self.config.int(Directive::AclLogMaxLen)).unwrap_or(0);
        self.acl.log.add(entry, len_max);
    }

    /// A refusal of a client's own call.
    pub fn check_client_call(
        &self,
        session: &Session,
        call: (Command, Args),
    ) -> Result<(), Refusal> {
        self.check_rights(session, call, context_of(session))
            .map_err(|(_, text)| Refusal::text(format!("NOPERM {text}")))
    }
}

/// Where what the client has sent is. A transaction that runs is one no longer.
fn context_of(session: &Session) -> Context {
    if session.gate.has(Gate::IN_MULTI) { Context::Multi } else { Context::TopLevel }
}
