//! Which arguments of a call are secrets, so that logs and MONITOR show something else instead.
//! What counts is the command that a call means, not how it is spelt: `rename-command` may have
//! given it another name.

use crate::node::Node;
use crate::node::config::Directive;
use russet_base::Args;
use russet_base::num::parse_i64;
use russet_base::text::eq_ignore_case;
use russet_catalog::{Command, ONCE_ARGS, resolve};

/// What is shown instead of an argument that nobody else may see.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// Where the options of MIGRATE begin.
const MIGRATE_OPTIONS: usize = 6;

/// The arguments of a call as others may see them.
pub(crate) fn shown_args<'a>(
    node: &Node,
    call: (Command, Args<'a>),
) -> impl Iterator<Item = &'a [u8]> {
    let (first, (command, args)) = innermost(node, call);
    let mut next_option = MIGRATE_OPTIONS;
    call.1.iter().enumerate().map(move |(at, arg)| {
        let is_secret = at >= first
            && match command {
                Command::Migrate => is_migrate_secret(args, at - first, &mut next_option),
                // Without its option nobody knows where the command begins that it is given.
                Command::Once => at - first >= 2 && !has_once_option(args),
                _ => is_secret((command, args), at - first),
            };
        if is_secret { REDACTED } else { arg }
    })
}

/// The call whose arguments may be secrets, and where it begins: the call itself, or one that is
/// among its arguments.
fn innermost<'a>(node: &Node, call: (Command, Args<'a>)) -> (usize, (Command, Args<'a>)) {
    let (mut first, (mut command, args)) = (0, call);
    loop {
        let before = match command {
            Command::Once if has_once_option(args.from(first)) => ONCE_ARGS,
            Command::CommandGetkeys | Command::CommandGetkeysandflags => 2,
            Command::AclDryrun => 3,
            _ => break,
        };
        let inner = args.from(first + before);
        if inner.is_empty() {
            break;
        }
        first += before;
        // ONCE has its command's own name by now; a name that is no longer one means what it did.
        let named = if command == Command::Once { resolve(inner) } else { node.resolve(inner) };
        match named.or_else(|_| resolve(inner)) {
            Ok(inner) => command = inner,
            Err(_) => break,
        }
    }
    (first, (command, args.from(first)))
}

/// Whether this is `ONCE id PX milliseconds ...`, as far as it goes.
fn has_once_option(args: Args) -> bool {
    args.get(2).is_none_or(|option| eq_ignore_case(option, b"px"))
        && args.get(3).is_none_or(|ttl| parse_i64(ttl).is_some())
}

/// Whether an argument is a secret: a name or password of AUTH and HELLO, a user of ACL and its
/// rules, or the new value of a setting that must not be shown.
fn is_secret((command, args): (Command, Args), at: usize) -> bool {
    let is = |index: usize, name: &[u8]| eq_ignore_case(args.at(index), name);
    match command {
        Command::Auth => at >= 1,
        Command::Hello => (at >= 2 && is(at - 1, b"auth")) || (at >= 3 && is(at - 2, b"auth")),
        Command::AclSetuser | Command::AclGetuser | Command::AclDeluser => at >= 2,
        Command::ConfigSet => {
            let is_value = at >= 3 && at % 2 == 1;
            let directive = is_value.then(|| Directive::named(args.at(at - 1))).flatten();
            directive.is_some_and(|directive| directive.spec().is_secret)
        }
        _ => false,
    }
}

/// The same of MIGRATE, asked for each argument in turn. Its options are read one by one, for a
/// password may be called as one: `option` is the next, or the one that `at` belongs to.
fn is_migrate_secret(args: Args, at: usize, option: &mut usize) -> bool {
    while *option < at {
        let is = |name: &[u8]| eq_ignore_case(args.at(*option), name);
        let secrets = match () {
            () if is(b"keys") => return false,
            () if is(b"auth2") => 2,
            () if is(b"auth") => 1,
            () => 0,
        };
        if at <= *option + secrets {
            return true;
        }
        *option += 1 + secrets;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::Settings;
    use crate::testing::TestServer;
    use russet_base::OwnedArgs;

    /// As a server shows a call that it was sent, in the commands' own names.
    fn shown(node: &Node, call: &[&str]) -> Vec<String> {
        let args: OwnedArgs = call.iter().collect();
        let command = resolve(args.as_args()).expect("there is such a command");
        let shown = shown_args(node, (command, args.as_args()));
        shown.map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    #[test]
    fn secrets_are_not_shown() {
        let node = TestServer::new().worker.node;
        let shown = |call: &[&str]| shown(&node, call);
        assert_eq!(shown(&["AUTH", "u", "p"]), ["AUTH", "(redacted)", "(redacted)"]);
        let hello = shown(&["HELLO", "3", "AUTH", "u", "p", "SETNAME", "n"]);
        assert_eq!(hello[2..], ["AUTH", "(redacted)", "(redacted)", "SETNAME", "n"]);
        let migrate = shown(&[
            "MIGRATE", "h", "1", "", "0", "9", "AUTH2", "u", "auth", "COPY", "AUTH", "KEYS",
            "KEYS", "a", "AUTH", "b",
        ]);
        let (secret, keys) = ("(redacted)", ["KEYS", "a", "AUTH", "b"]);
        assert_eq!(migrate[6..12], ["AUTH2", secret, secret, "COPY", "AUTH", secret]);
        assert_eq!(migrate[12..], keys);
        let acl = shown(&["ACL", "SETUSER", "u", ">p"]);
        assert_eq!(acl[1..], ["SETUSER", "(redacted)", "(redacted)"]);
        assert_eq!(shown(&["ACL", "DELUSER", "u"])[2], "(redacted)");
        assert_eq!(shown(&["ACL", "DRYRUN", "u", "GET", "k"])[2..], ["u", "GET", "k"]);
        let inner = shown(&["ACL", "DRYRUN", "u", "command", "getkeys", "AUTH", "p"]);
        assert_eq!(inner[2..], ["u", "command", "getkeys", "AUTH", "(redacted)"]);
        assert_eq!(shown(&["ONCE", "id", "PX", "1"])[1..], ["id", "PX", "1"]);
        let once = shown(&["ONCE", "id", "PX", "1", "AUTH", "p"]);
        assert_eq!(once[1..], ["id", "PX", "1", "AUTH", secret]);
        let config = shown(&["config", "set", "requirepass", "p", "hz", "10"]);
        assert_eq!(config[2..], ["requirepass", "(redacted)", "hz", "10"]);
    }

    /// ONCE that was mistyped is refused; what it was to run, a password among it, was shown.
    #[test]
    fn a_once_that_is_refused_shows_nothing_of_its_command() {
        let node = TestServer::new().worker.node;
        for call in [
            &["ONCE", "id", "CONFIG", "SET", "masterauth", "p"][..],
            &["ONCE", "id", "1000", "ACL", "SETUSER", "u", ">p"],
            &["ONCE", "id", "PX", "AUTH", "p"],
        ] {
            let shown = shown(&node, call);
            assert!(shown[2..].iter().all(|arg| arg == "(redacted)"), "{shown:?}");
        }
    }

    /// Whether an argument is a secret was decided by the name that it came behind: one that
    /// `rename-command` had given was not known, so `ACL DRYRUN u LOGIN p` showed the password in
    /// SLOWLOG, and `COMMAND GETKEYS MG ... AUTH p` in MONITOR, too.
    #[test]
    fn a_call_within_a_call_has_the_names_that_clients_use() {
        let mut settings = Settings::default();
        for names in [["AUTH", "login"], ["MIGRATE", "mg"], ["HELLO", "hi"], ["GET", "hello"]] {
            let line = [&b"rename-command"[..], names[0].as_bytes(), names[1].as_bytes()];
            settings.set_all(&line.map(<[u8]>::to_vec)).expect("the names are free");
        }
        let node = TestServer::with_config(settings.finish().expect("it is in order")).worker.node;
        let dryrun = shown(&node, &["acl", "dryrun", "u", "Login", "p"]);
        assert_eq!(dryrun[3..], ["Login", "(redacted)"]);
        let getkeys = ["command", "getkeys", "mg", "h", "1", "k", "0", "9", "auth", "p"];
        assert_eq!(shown(&node, &getkeys)[8..], ["auth", "(redacted)"]);
        // By its own name, which it has no longer.
        assert_eq!(shown(&node, &["command", "getkeys", "auth", "p"])[3], "(redacted)");
        // The name of another command now.
        let renamed = ["command", "getkeys", "hello", "3", "auth", "k"];
        assert_eq!(shown(&node, &renamed)[3..], ["3", "auth", "k"]);
    }
}
