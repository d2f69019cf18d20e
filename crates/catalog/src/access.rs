//! What a call touches besides keys: channels, and databases. With the keys this is all that
//! access control looks at.

use russet_base::Args;

use crate::command::Command;
use crate::keys::has_keys;
use crate::spec::Categories;

/// How the channels of a call are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelUse {
    /// Names of channels.
    Name,
    /// Patterns of names.
    Pattern,
}

/// Which arguments of a call are channels that it listens or speaks to. Who stops to listen needs
/// no right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    pub used_as: ChannelUse,
    pub first: usize,
    /// One past the last.
    pub end: usize,
}

/// The channels of a call, if its command has any.
pub fn channels(command: Command, args: Args<'_>) -> Option<Channels> {
    let (used_as, end) = match command {
        Command::Publish | Command::Spublish => (ChannelUse::Name, 2),
        Command::Subscribe | Command::Ssubscribe => (ChannelUse::Name, args.len()),
        Command::Psubscribe => (ChannelUse::Pattern, args.len()),
        _ => return None,
    };
    Some(Channels { used_as, first: 1, end: end.min(args.len()) })
}

/// Whether calls of a command touch the data of the database that the client is in.
pub fn uses_database(command: Command) -> bool {
    const OF_DATA: Categories = Categories::KEYSPACE.or(Categories::READ).or(Categories::WRITE);
    has_keys(command) || command.spec().categories.has_any(OF_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Flags;

    /// A command that says it is about channels and is not known here would not be checked.
    #[test]
    fn every_command_of_channels_is_known() {
        let args: russet_base::OwnedArgs = ["x", "a", "b", "c"].into_iter().collect();
        for command in Command::ALL.iter().copied() {
            let name = command.full_name();
            let is_of_channels =
                command.spec().flags.has(Flags::PUBSUB) && command.parent().is_none();
            let uses_none = command.is_container() || name.contains("unsubscribe");
            let known = channels(command, args.as_args());
            assert_eq!(known.is_some(), is_of_channels && !uses_none, "{name}");
        }
    }

    #[test]
    fn databases_are_used_by_what_touches_data() {
        for command in [Command::Get, Command::Eval, Command::Dbsize, Command::Scan, Command::Watch]
        {
            assert!(uses_database(command), "{command:?}");
        }
        for command in [Command::Ping, Command::Multi, Command::Spublish, Command::AclWhoami] {
            assert!(!uses_database(command), "{command:?}");
        }
    }
}
