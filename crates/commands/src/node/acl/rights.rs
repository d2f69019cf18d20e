//! What one user may do, and how it proves who it is: the state that its rules have led to.

use super::password::PasswordDigest;
use super::selector::{Call, ChannelRights, Denial, Selector};
use russet_catalog::ChannelUse;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    pub is_on: bool,
    /// Any password will do.
    pub is_passwordless: bool,
    /// In the order in which they were added.
    pub passwords: Vec<PasswordDigest>,
    /// Its own selector.
    pub root: Selector,
    pub selectors: Vec<Selector>,
    is_unrestricted: bool,
}

impl Rights {
    /// Of a user that was just made: it may do nothing and can't log in.
    pub fn new(has_all_channels: bool) -> Self {
        Rights {
            is_on: false,
            is_passwordless: false,
            passwords: Vec::new(),
            root: Selector::new(has_all_channels),
            selectors: Vec::new(),
            is_unrestricted: false,
        }
    }

    /// Of the default user, unless something else is said: everything, without a password.
    pub fn everything() -> Self {
        let mut rights = Rights::new(true);
        (rights.is_on, rights.is_passwordless) = (true, true);
        rights.root.set_all_commands(true);
        rights.root.keys = super::selector::KeyRights::All;
        rights.summarize();
        rights
    }

    /// Must be called when its selectors have changed.
    pub fn summarize(&mut self) {
        let is_unrestricted = self.all_selectors().any(Selector::is_unrestricted);
        self.is_unrestricted = is_unrestricted;
    }

    /// Nothing needs to be looked at.
    pub fn is_unrestricted(&self) -> bool {
        self.is_unrestricted
    }

    /// Whether a client may begin as this user without having logged in.
    pub fn is_open(&self) -> bool {
        self.is_on && self.is_passwordless
    }

    /// Takes as long for a wrong password as for a right one.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let given = PasswordDigest::of(password);
        let is_known =
            self.passwords.iter().fold(false, |is_known, known| known.is_same(&given) | is_known);
        self.is_on && (self.is_passwordless | is_known)
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }

    /// What stands against a call: nothing, if one selector allows all of it. Of several reasons
    /// the one that came furthest is reported.
    #[inline]
    pub fn check(&self, call: &Call) -> Result<(), Denial> {
        match self.root.check(call) {
            Ok(()) => Ok(()),
            Err(denial) => self.check_selectors(call, denial),
        }
    }

    fn check_selectors(&self, call: &Call, mut denial: Denial) -> Result<(), Denial> {
        for selector in &self.selectors {
            let Err(other) = selector.check(call) else { return Ok(()) };
            if (other.reason, other.index) > (denial.reason, denial.index) {
                denial = other;
            }
        }
        Err(denial)
    }

    /// Whether a call is allowed by a selector that lets every key be read.
    pub fn may_read_all(&self, call: &Call) -> bool {
        self.all_selectors().any(|selector| selector.may_read_all() && selector.check(call).is_ok())
    }

    /// Whether a subscription may stay.
    pub fn may_use_channel(&self, used_as: ChannelUse, name: &[u8]) -> bool {
        self.all_selectors().any(|selector| selector.may_use_channel(used_as, name))
    }

    /// Whether both say the same about channels.
    pub fn has_channels_of(&self, other: &Rights) -> bool {
        let channels = |rights: &Rights| -> Vec<ChannelRights> {
            rights.all_selectors().map(|selector| selector.channels.clone()).collect()
        };
        channels(self) == channels(other)
    }

    /// The rules by which the user can be made again, as ACL LIST and files have them.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.is_on { b"on " } else { b"off " });
        if self.is_passwordless {
            out.extend_from_slice(b"nopass ");
        }
        for password in &self.passwords {
            out.push(b'#');
            out.extend_from_slice(password.text().as_bytes());
            out.push(b' ');
        }
        self.root.write(out);
        for selector in &self.selectors {
            out.extend_from_slice(b" (");
            selector.write(out);
            out.push(b')');
        }
    }
}
