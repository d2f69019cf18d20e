//! Users, and the ids of their sessions.

use crate::bearer::Bearer;
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use std::fmt;

/// The longest id of a user or a tenant.
const NAME_BYTES_MAX: usize = 200;

/// A user of a tenant.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct User {
    tenant_id: String,
    user_id: String,
}

impl User {
    /// Ids of up to 200 bytes each, which is checked when they are used.
    pub fn new(tenant_id: impl Into<String>, user_id: impl Into<String>) -> Self {
        User { tenant_id: tenant_id.into(), user_id: user_id.into() }
    }

    /// Personal data: not for logs.
    pub fn tenant_id(&self) -> &str {
        &self.tenant_id
    }

    /// Personal data: not for logs.
    pub fn user_id(&self) -> &str {
        &self.user_id
    }

    pub(crate) fn check(&self) -> Result<()> {
        let is_good = |id: &str| !id.is_empty() && id.len() <= NAME_BYTES_MAX;
        if is_good(&self.user_id) && is_good(&self.tenant_id) {
            return Ok(());
        }
        Err(Error::invalid(format!("user_id and tenant_id need 1 to {NAME_BYTES_MAX} bytes")))
    }

    /// What stands for the user in keys and ids.
    pub(crate) fn tag(&self, kit: &Kit) -> Result<Vec<u8>> {
        kit.digest_of_scope("user", &Scope::from(&self.tenant_id).and(&self.user_id))
    }
}

/// Says nothing of who it is.
impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User")
    }
}

/// The id of a session: a secret, for the client's cookie and nothing else. It is not stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(Bearer);

impl SessionId {
    pub(super) fn random(tag: &[u8]) -> Self {
        SessionId(Bearer::random(tag))
    }

    /// What a client sent, or None if it is no id at all.
    ///
    /// ```
    /// assert!(russet::session::SessionId::parse("guess").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        Bearer::parse(text).map(SessionId)
    }

    /// For the client. Not for logs.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(super) fn tag(&self) -> &[u8] {
        self.0.tag()
    }

    pub(super) fn handle(&self, kit: &Kit) -> SessionHandle {
        SessionHandle::new(self.tag(), kit.digest("session", self.0.secret()))
    }
}

/// Says nothing of its content.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId")
    }
}

/// Names a session without being able to use it: for lists of sessions and for revoking them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionHandle {
    tag: Vec<u8>,
    member: Vec<u8>,
}

impl SessionHandle {
    pub(super) fn new(tag: &[u8], member: Vec<u8>) -> Self {
        SessionHandle { tag: tag.to_vec(), member }
    }

    pub(super) fn tag(&self) -> &[u8] {
        &self.tag
    }

    /// The digest of the id, as text.
    pub fn member(&self) -> &[u8] {
        &self.member
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionHandle({})", String::from_utf8_lossy(&self.member))
    }
}
