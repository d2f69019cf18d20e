//! Access control: who there is, what each may do, and what was refused.
//!
//! A session has a copy of its user's rights and the version that it is of: one comparison before
//! each call says whether anything has changed. A user without restrictions costs nothing more. Who
//! has restrictions is asked in `call/gate.rs` for what a client sends, in `call/batch/plan.rs` for
//! batches, when a transaction runs its commands, and for each command of a script.

mod certificate;
mod databases;
mod denied;
mod file;
mod log;
mod password;
mod pattern;
mod rights;
mod rule;
mod selector;
mod session;
#[cfg(test)]
mod tests;

pub use denied::{Context, DeniedCounts};
pub use file::acl_file_obstacle;
pub use log::{AclLog, LogEntry};
pub use password::hexadecimal;
pub use rights::Rights;
pub use rule::{BadRule, join_selectors};
pub use selector::{Call, Denial, Reason, Selector};
pub use session::Login;

use crate::node::config::{Config, Directive};
use password::PasswordDigest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The user that a connection begins as.
pub const DEFAULT_USER: &[u8] = b"default";

/// One user, as long as somebody is logged in as it.
#[derive(Debug)]
pub struct User {
    pub name: Box<[u8]>,
    rights: RwLock<Arc<Rights>>,
    /// How often its rights were changed.
    version: AtomicU64,
}

impl User {
    /// Whether a deleted user's sessions are to be looked for: each of them holds it, and nobody
    /// can get hold of it any more.
    pub fn may_be_logged_in(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    fn new(name: &[u8], rights: Rights) -> Arc<Self> {
        let rights = RwLock::new(Arc::new(rights));
        Arc::new(User { name: name.into(), rights, version: AtomicU64::new(0) })
    }

    pub fn rights(&self) -> Arc<Rights> {
        self.rights.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_rights(&self, rights: Rights) {
        *self.rights.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rights);
        self.version.fetch_add(1, Ordering::Release);
    }

    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// As a line of a file: `user alice on ...`.
    pub fn line(&self) -> Vec<u8> {
        let mut line = [b"user ", &*self.name, b" "].concat();
        self.rights().write(&mut line);
        line
    }
}

type Users = BTreeMap<Box<[u8]>, Arc<User>>;

#[derive(Debug)]
pub struct Acl {
    /// By name.
    users: RwLock<Users>,
    default: Arc<User>,
    /// Held by who changes users.
    changing: Mutex<()>,
    /// How often any user was changed.
    version: AtomicU64,
    pub log: AclLog,
    pub denied: DeniedCounts,
}

impl Default for Acl {
    fn default() -> Self {
        let default = User::new(DEFAULT_USER, Rights::everything());
        let users = BTreeMap::from([(default.name.clone(), default.clone())]);
        Acl {
            users: RwLock::new(users),
            default,
            changing: Mutex::new(()),
            version: AtomicU64::new(1),
            log: AclLog::default(),
            denied: DeniedCounts::default(),
        }
    }
}

/// What a change of users has done to those who are logged in.
#[derive(Debug, Default)]
pub struct Changed {
    /// These are no longer there: see [`User::may_be_logged_in`].
    pub deleted: Vec<Arc<User>>,
    /// These may use fewer channels, or others.
    pub channels: Vec<Arc<User>>,
}

impl Acl {
    /// The users that a configuration has: the default user with its password, and those of its
    /// `user` lines, which were checked when they were read.
    pub fn new(config: &Config) -> Self {
        let password = config.text(Directive::RequirePass);
        Acl::of_users(&password, config.users(), has_all_channels(config))
    }

    pub fn of_users<'u>(
        default_password: &[u8],
        users: impl Iterator<Item = (&'u [u8], &'u [Vec<u8>])>,
        has_all_channels: bool,
    ) -> Self {
        let acl = Acl::default();
        acl.set_default_password(default_password);
        for (name, rules) in users {
            let mut rights = Rights::new(has_all_channels);
            for rule in rules {
                let is_checked = rights.apply(rule, has_all_channels);
                debug_assert_eq!(is_checked, Ok(()), "rules are checked when they are read");
            }
            acl.put(name, rights, &mut Changed::default());
        }
        acl
    }

    /// Changes whenever a user does.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    pub fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// In the order of their names.
    pub fn users(&self) -> Vec<Arc<User>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The user who has this name and this password.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        self.user(name).filter(|user| user.rights().accepts(password))
    }

    /// `requirepass`: the one password of the default user, or none.
    pub fn set_default_password(&self, password: &[u8]) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rights = (*self.default.rights()).clone();
        rights.is_passwordless = password.is_empty();
        rights.passwords = match password.is_empty() {
            true => Vec::new(),
            false => vec![PasswordDigest::of(password)],
        };
        self.default.set_rights(rights);
        self.note_change();
    }

    /// Applies rules to a user, who is made if need be: all of them, or none. The error is the rule
    /// that is wrong, and why.
    pub fn set_user(
        &self,
        name: &[u8],
        rules: &[Vec<u8>],
        has_all_channels: bool,
    ) -> Result<Changed, (usize, BadRule)> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.user(name).map(|user| user.rights());
        let mut rights =
            before.map_or_else(|| Rights::new(has_all_channels), |rights| (*rights).clone());
        for (at, rule) in rules.iter().enumerate() {
            rights.apply(rule, has_all_channels).map_err(|bad| (at, bad))?;
        }
        let mut changed = Changed::default();
        self.put(name, rights, &mut changed);
        Ok(changed)
    }

    /// Removes users; how many there were. The default user stays: its name is an error.
    pub fn delete(&self, names: &[&[u8]]) -> Option<(usize, Changed)> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(&DEFAULT_USER) {
            return None;
        }
        let mut changed = Changed::default();
        names.iter().for_each(|name| self.remove(name, &mut changed));
        Some((changed.deleted.len(), changed))
    }

    /// Puts these in the place of all users. A default user that is not among them may do
    /// everything, without a password.
    pub fn replace_all(&self, mut users: BTreeMap<Vec<u8>, Rights>) -> Changed {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Changed::default();
        users.entry(DEFAULT_USER.to_vec()).or_insert_with(Rights::everything);
        for user in self.users() {
            if !users.contains_key(&*user.name) {
                self.remove(&user.name, &mut changed);
            }
        }
        for (name, rights) in users {
            self.put(&name, rights, &mut changed);
        }
        changed
    }

    fn put(&self, name: &[u8], rights: Rights, changed: &mut Changed) {
        match self.user(name) {
            Some(user) => {
                let has_same_channels = rights.has_channels_of(&user.rights());
                user.set_rights(rights);
                if !has_same_channels {
                    changed.channels.push(user);
                }
            }
            None => {
                let user = User::new(name, rights);
                let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
                users.insert(user.name.clone(), user);
            }
        }
        self.note_change();
    }

    /// Whoever is logged in as this user may do nothing from now on.
    fn remove(&self, name: &[u8], changed: &mut Changed) {
        let removed = self.users.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(user) = removed {
            user.set_rights(Rights::new(false));
            changed.deleted.push(user);
            self.note_change();
        }
    }

    fn note_change(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// What `acl-pubsub-default` gives to a new user.
pub fn has_all_channels(config: &Config) -> bool {
    config.choice(Directive::AclPubsubDefault) == "allchannels"
}

/// Names are apart by spaces where they are written down.
pub fn is_user_name(name: &[u8]) -> bool {
    !name.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | b'\x0b'))
}
