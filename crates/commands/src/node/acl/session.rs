//! Who a session is logged in as. It has the user's rights at hand, and fetches them again when
//! the version of all users says that something has changed.

use super::{Acl, Rights, User};
use std::sync::{Arc, LazyLock};

/// Of all who are no user.
static EVERYTHING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::everything()));

#[derive(Debug)]
pub struct Login {
    /// None: the program that the engine is part of, or a log that is read. It may do everything,
    /// whatever the users are.
    user: Option<Arc<User>>,
    rights: Arc<Rights>,
    /// Of the user's rights, and of all users together.
    user_version: u64,
    version: u64,
    /// It has proved who it is, or needed not to when it began.
    is_proved: bool,
    needs_proof: bool,
}

impl Login {
    /// Of who is no user.
    pub fn unlimited() -> Self {
        Login {
            user: None,
            rights: EVERYTHING.clone(),
            user_version: 0,
            version: 0,
            is_proved: true,
            needs_proof: false,
        }
    }

    /// Of a connection that was just opened, or has sent RESET.
    pub fn of_default(acl: &Acl) -> Self {
        let user = acl.default_user().clone();
        let is_proved = user.rights().is_open();
        Login::of(acl, user, is_proved)
    }

    /// Of who has given the right password.
    pub fn of_user(acl: &Acl, user: Arc<User>) -> Self {
        Login::of(acl, user, true)
    }

    fn of(acl: &Acl, user: Arc<User>, is_proved: bool) -> Self {
        let mut login = Login { user: Some(user), is_proved, ..Login::unlimited() };
        login.refresh(acl);
        login
    }

    /// Whether it is what [`Login::of_default`] would make now.
    pub fn is_of_default(&self, acl: &Acl) -> bool {
        let is_default = self.user.as_ref().is_some_and(|user| Arc::ptr_eq(user, &acl.default));
        is_default && self.is_proved && !self.is_outdated(acl) && self.rights.is_open()
    }

    #[inline]
    pub fn is_outdated(&self, acl: &Acl) -> bool {
        self.version != acl.version()
    }

    /// Fetches what may have changed. The version is read first: what changes meanwhile is fetched
    /// the next time.
    pub fn refresh(&mut self, acl: &Acl) {
        self.version = acl.version();
        let Some(user) = &self.user else { return };
        self.user_version = user.version();
        self.rights = user.rights();
        self.needs_proof = !self.is_proved && !acl.default_user().rights().is_open();
    }

    pub fn rights(&self) -> &Arc<Rights> {
        &self.rights
    }

    /// The user with the version of its rights that is known here.
    pub fn user(&self) -> Option<(&Arc<User>, u64)> {
        self.user.as_ref().map(|user| (user, self.user_version))
    }

    pub fn name(&self) -> &[u8] {
        self.user.as_ref().map_or(super::DEFAULT_USER, |user| &user.name)
    }

    /// Whether it may do nothing but log in.
    pub fn needs_proof(&self) -> bool {
        self.needs_proof
    }
}
