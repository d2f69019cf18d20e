//! `rename-command`: the names by which clients call commands, where these are not their own. A
//! call gets the command's own name where it comes in, so that everything behind that knows one
//! name for each command: rules of users, records, and logs.

use russet_base::{Args, OwnedArgs};
use russet_catalog::{
    Command, ONCE_ARGS, Unknown, lookup, lookup_full, lookup_subcommand, resolve,
};
use std::collections::HashMap;

/// Which commands have another name, or none.
#[derive(Clone, Debug, Default)]
pub struct Renames {
    /// By the name that clients use, in lower case.
    by_name: HashMap<Vec<u8>, Command>,
    /// Those whose own name means nothing, or another command.
    renamed: Vec<Command>,
}

/// What a call is in the commands' own names.
pub enum OwnNames {
    /// The same.
    AsIs,
    Translated(OwnedArgs),
    /// The argument at this index names no command, though the catalog has one of that name.
    Unknown(usize),
}

impl Renames {
    /// Gives a command another name, or none if that is empty.
    pub fn add(&mut self, from: &[u8], to: &[u8]) -> Result<(), &'static str> {
        let command = self.find(from).ok_or("there is no such command")?;
        let lower = to.to_ascii_lowercase();
        if !to.is_empty() && self.find(to).is_some_and(|known| known != command) {
            return Err("there is another command of that name");
        }
        self.by_name.retain(|_, known| *known != command);
        self.renamed.retain(|known| *known != command);
        if lower != command.spec().name.as_bytes() {
            self.renamed.push(command);
            if !lower.is_empty() {
                self.by_name.insert(lower, command);
            }
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.renamed.is_empty()
    }

    /// The command that clients call by this name.
    pub fn find(&self, name: &[u8]) -> Option<Command> {
        let own = lookup(name).filter(|command| !self.renamed.contains(command));
        own.or_else(|| self.by_name.get(&name.to_ascii_lowercase()).copied())
    }

    /// Whether clients can call a command, or its container, at all.
    pub fn has(&self, command: Command) -> bool {
        let command = command.parent().unwrap_or(command);
        !self.renamed.contains(&command) || self.by_name.values().any(|known| *known == command)
    }

    /// Whether this name means something else than it does in the catalog.
    pub fn concerns(&self, name: &[u8]) -> bool {
        self.find(name) != lookup(name)
    }

    /// Whether a call may be in other names than the commands' own. The call of ONCE has two.
    pub fn may_concern(&self, command: Command) -> bool {
        command == Command::Once || self.renamed.contains(&command.parent().unwrap_or(command))
    }

    pub fn translate(&self, args: Args) -> OwnNames {
        let Some(name) = args.get(0) else { return OwnNames::AsIs };
        let mut names = [None, None];
        if self.concerns(name) {
            let Some(command) = self.find(name) else { return OwnNames::Unknown(0) };
            names[0] = Some(command);
        }
        let inner = args.get(ONCE_ARGS).filter(|_| self.find(name) == Some(Command::Once));
        if let Some(inner) = inner.filter(|inner| self.concerns(inner)) {
            let Some(command) = self.find(inner) else { return OwnNames::Unknown(ONCE_ARGS) };
            names[1] = Some(command);
        }
        if names == [None, None] {
            return OwnNames::AsIs;
        }
        let mut own = OwnedArgs::default();
        for at in 0..args.len() {
            let name = match at {
                0 => names[0],
                ONCE_ARGS => names[1],
                _ => None,
            };
            match name {
                Some(command) => own.push(command.spec().name.as_bytes()),
                None => own.extend(args.from(at).first(1)),
            }
        }
        OwnNames::Translated(own)
    }
}

/// The command that a call means, in the names that clients use.
pub fn resolve_named(renames: Option<&Renames>, args: Args) -> Result<Command, Unknown> {
    let Some(renames) = renames else { return resolve(args) };
    let command = args.get(0).and_then(|name| renames.find(name)).ok_or(Unknown::Command)?;
    match args.get(1) {
        Some(sub) if command.is_container() => {
            lookup_subcommand(command, sub).ok_or(Unknown::Subcommand(command))
        }
        _ => Ok(command),
    }
}

/// As COMMAND INFO is asked: `get`, `client|list`, in the names that clients use.
pub fn lookup_named(renames: Option<&Renames>, full_name: &[u8]) -> Option<Command> {
    let Some(renames) = renames else { return lookup_full(full_name) };
    let mut parts = full_name.splitn(2, |byte| *byte == b'|');
    let command = renames.find(parts.next()?)?;
    match parts.next() {
        Some(sub) => lookup_subcommand(command, sub),
        None => Some(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::Settings;
    use crate::testing::TestServer;

    fn server(lines: &str) -> TestServer {
        let mut settings = Settings::default();
        for line in lines.lines() {
            let args = russet_base::text::split_args(line.as_bytes()).unwrap();
            settings.set_all(&args).unwrap();
        }
        TestServer::with_config(settings.finish().unwrap())
    }

    /// A command by its own name was still found where calls are read ahead, put into batches, or
    /// run by ONCE and scripts.
    #[test]
    fn a_command_has_its_new_name_wherever_it_is_called() {
        let mut server = server("rename-command SET xset\nrename-command incr count");
        assert_eq!(server.say("XSET k 5"), "+OK");
        assert!(server.say("SET k 6").contains("unknown command"));
        assert_eq!(server.say("ONCE a PX 1000 COUNT k"), "6");
        assert!(server.say("ONCE b PX 1000 INCR k").contains("unknown command"));
        assert_eq!(
            server.run(&["EVAL", "return redis.call('count',KEYS[1])", "1", "k"]).to_string(),
            "7"
        );
        let refused = server.run(&["EVAL", "return redis.call('incr',KEYS[1])", "1", "k"]);
        assert!(refused.to_string().contains("Unknown command"), "{refused}");
        for line in ["MULTI", "COUNT k", "XSET other x"] {
            server.say(line);
        }
        assert_eq!(server.say("EXEC"), "[8, +OK]");
        server.say("MULTI");
        assert!(server.say("INCR k").contains("unknown command"));
        assert!(server.say("EXEC").contains("EXECABORT"));
    }

    /// A script that calls a command by its new name was thought to name no key there, and then was
    /// refused the key.
    #[test]
    fn a_script_may_build_the_keys_of_a_renamed_command() {
        let mut server = server("rename-command SET xset");
        for key in ["a", "b", "c", "d"] {
            let script = "return redis.call('xset', ARGV[1], 'v')";
            assert_eq!(server.run(&["EVAL", script, "0", key]).to_string(), "+OK");
        }
        assert_eq!(server.say("DBSIZE"), "4");
    }

    #[test]
    fn a_command_without_a_name_is_gone() {
        let mut server = server("rename-command FLUSHALL \"\"\nrename-command config cfg");
        server.say("SET k v");
        assert!(server.say("flushall").contains("unknown command"));
        assert!(
            server
                .run(&["EVAL", "return redis.call('flushall')", "0"])
                .to_string()
                .contains("Unknown")
        );
        assert_eq!(server.say("EXISTS k"), "1");
        assert_eq!(server.say("COMMAND INFO flushall config"), "[nil, nil]");
        assert!(server.say("COMMAND INFO cfg|get").contains("config|get"));
        assert_eq!(server.say("COMMAND LIST FILTERBY PATTERN flushall"), "[]");
        assert!(server.say("CFG GET maxmemory").contains("maxmemory"));
        // Rules are in the commands' own names.
        assert_eq!(server.say("ACL SETUSER u on nopass ~* +config +flushall"), "+OK");
        assert!(server.say("ACL SETUSER u +cfg").contains("Unknown command"));
        assert_eq!(server.say("ACL DRYRUN u cfg get x"), "+OK");
        assert!(server.say("ACL DRYRUN u flushall").contains("not found"));
    }

    /// What is recorded has the command's own name, for nobody else knows another.
    #[test]
    fn records_have_the_commands_own_names() {
        let mut server = server("rename-command SET xset\nrename-command APPEND set");
        server.say("DEBUG RECORD START");
        server.say("XSET k v");
        server.say("SET k w");
        let records = server.say("DEBUG RECORD TAKE");
        assert!(records.to_lowercase().contains("\"set\", \"k\", \"v\""), "{records}");
        assert!(records.to_lowercase().contains("\"append\", \"k\", \"w\""), "{records}");
    }

    #[test]
    fn a_name_is_given_once() {
        let mut renames = Renames::default();
        assert!(renames.add(b"nosuch", b"x").is_err());
        assert!(renames.add(b"get", b"set").is_err());
        assert_eq!(renames.add(b"set", b"GET2"), Ok(()));
        assert_eq!(renames.add(b"get", b"Set"), Ok(()));
        assert_eq!(
            (renames.find(b"SET"), renames.find(b"get2")),
            (Some(Command::Get), Some(Command::Set))
        );
        assert_eq!(renames.find(b"get"), None);
    }
}
