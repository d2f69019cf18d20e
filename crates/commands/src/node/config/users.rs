//! The `user` lines of a configuration. They are checked when they are read; what they mean is
//! said in `node/acl`.

use super::error::{ConfigError, Fault, Position};
use crate::node::acl::{Acl, Rights, is_user_name, join_selectors};

const DUPLICATE: &str = "Duplicate user found. A user can only be defined once in config files";

#[derive(Clone, Debug, Default)]
pub(super) struct ConfiguredUsers(Vec<ConfiguredUser>);

#[derive(Clone, Debug)]
struct ConfiguredUser {
    name: Vec<u8>,
    rules: Vec<Vec<u8>>,
    position: Position,
}

impl ConfiguredUsers {
    pub(super) fn add(&mut self, args: &[Vec<u8>], position: &Position) -> Result<(), ConfigError> {
        let [name, rules @ ..] = args else {
            return Err(bad_user(b"", "no name is given".to_owned(), position));
        };
        if !is_user_name(name) {
            // Often a whole line in quotes: what is behind its first word may be a password.
            let start = name.split(|byte| !is_user_name(&[*byte])).next().unwrap_or_default();
            return Err(bad_user(start, "a name has no spaces".to_owned(), position));
        }
        let rules = self.read(name, rules).map_err(|reason| bad_user(name, reason, position))?;
        self.0.push(ConfiguredUser { name: name.to_vec(), rules, position: position.clone() });
        Ok(())
    }

    fn read(&self, name: &[u8], args: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        if self.0.iter().any(|user| user.name == name) {
            return Err(DUPLICATE.to_owned());
        }
        let rules = join_selectors(args.iter().map(Vec::as_slice))
            .map_err(|_| "a selector has no end".to_owned())?;
        // What a new user starts with is known when all lines are.
        check_rules(&rules, false)?;
        Ok(rules)
    }

    /// Whether all rules can be followed, now that it is known what a new user starts with.
    pub(super) fn check(&self, has_all_channels: bool) -> Result<(), ConfigError> {
        self.0.iter().try_for_each(|user| {
            check_rules(&user.rules, has_all_channels)
                .map_err(|reason| bad_user(&user.name, reason, &user.position))
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[Vec<u8>])> {
        self.0.iter().map(|user| (user.name.as_slice(), user.rules.as_slice()))
    }

    /// Where the first one stands.
    pub(super) fn position(&self) -> Option<&Position> {
        self.0.first().map(|user| &user.position)
    }

    /// The lines of all users that there would be.
    pub(super) fn lines(&self, default_password: &[u8], has_all_channels: bool) -> Vec<Vec<u8>> {
        let acl = Acl::of_users(default_password, self.iter(), has_all_channels);
        acl.users().iter().map(|user| user.line()).collect()
    }
}

/// A rule is only counted: it may be a password.
fn check_rules(rules: &[Vec<u8>], has_all_channels: bool) -> Result<(), String> {
    let mut rights = Rights::new(has_all_channels);
    for (at, rule) in rules.iter().enumerate() {
        let applied = rights.apply(rule, has_all_channels);
        applied.map_err(|bad| format!("rule {}: {}", at + 1, bad.text()))?;
    }
    Ok(())
}

fn bad_user(name: &[u8], reason: String, position: &Position) -> ConfigError {
    let name = String::from_utf8_lossy(name).into_owned();
    ConfigError::new(position, Fault::BadUser { name, reason })
}
