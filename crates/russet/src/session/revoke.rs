//! Ending sessions before their time: one, all of a user, or all but one.

use super::id::{SessionHandle, SessionId, User};
use super::{REVOKE, REVOKED_FOR, SUCCESSOR, Sessions};
use crate::error::{Error, Result};
use crate::reply::Envelope;

/// How often the list of a user's sessions may change while all are being revoked.
const ATTEMPTS_MAX: u32 = 16;
/// How many rotations back an id may be that ends a session.
const ROTATIONS_MAX: u32 = 64;
/// The longest reason that is stored.
const REASON_BYTES_MAX: usize = 200;

/// How many sessions were ended; those that had ended before do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// By this call.
    pub count: u64,
}

impl Sessions {
    /// Ends a session. It is known as revoked for an hour, or as long as it would have lived. An
    /// id from before a [rotation](Sessions::rotate) ends the session too: whoever logs out while
    /// another tab has got a new id is logged out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::session::{
    ///     Authorization, Created, NewSession, Policy, Sessions, Timeouts, User,
    /// };
    /// use std::time::Duration;
    ///
    /// let kit = russet::Kit::builder().secret("from the vault").embedded(Default::default())?;
    /// let hour = Duration::from_secs(3600);
    /// let timeouts = Timeouts { idle: hour, absolute: hour };
    /// let sessions = Sessions::new(&kit, Policy::new(timeouts, 5))?;
    /// let user = User::new("acme", "ann");
    /// let new = NewSession::of(&user);
    /// let Created::Created(id) = sessions.create(&new).await? else { return Ok(()) };
    /// assert_eq!(sessions.revoke(&id, "logged out").await?.count, 1);
    /// assert_eq!(sessions.authorize(&id).await?, Authorization::Revoked);
    /// // It had ended before.
    /// assert_eq!(sessions.revoke(&id, "logged out").await?.count, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke(&self, id: &SessionId, reason: &str) -> Result<Revoked> {
        self.revoke_by_handle(&id.handle(&self.kit), reason).await
    }

    /// Ends a session out of a list.
    pub async fn revoke_by_handle(&self, handle: &SessionHandle, reason: &str) -> Result<Revoked> {
        let mut handle = handle.clone();
        for _ in 0..ROTATIONS_MAX {
            let only = std::slice::from_ref(&handle);
            let ended = self.revoked(&self.try_revoke(handle.tag(), only, reason, b"-").await?)?;
            if ended.count > 0 {
                return Ok(ended);
            }
            match self.successor(&handle).await? {
                Some(next) => handle = next,
                None => return Ok(ended),
            }
        }
        Err(Error::Contention { attempts: ROTATIONS_MAX })
    }

    /// What a session is called since it was rotated.
    async fn successor(&self, handle: &SessionHandle) -> Result<Option<SessionHandle>> {
        let rotated = self.keys(handle.tag())?.item("rotated", handle.member());
        let mut reply = self.kit.step(&SUCCESSOR).key(rotated).run().await?;
        match reply.status() {
            "FOUND" => Ok(Some(SessionHandle::new(handle.tag(), reply.text("member")?))),
            "MISSING" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    /// Ends all sessions of a user, all of them at once: who logs in meanwhile is either among them
    /// or came later.
    pub async fn revoke_all(&self, user: &User, reason: &str) -> Result<Revoked> {
        self.revoke_others(user, None, reason).await
    }

    /// Ends all sessions of the user but one, as after a change of the password.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::session::{Created, NewSession, Policy, Sessions, Timeouts, User};
    /// use std::time::Duration;
    ///
    /// let kit = russet::Kit::builder().secret("from the vault").embedded(Default::default())?;
    /// let hour = Duration::from_secs(3600);
    /// let timeouts = Timeouts { idle: hour, absolute: hour };
    /// let sessions = Sessions::new(&kit, Policy::new(timeouts, 5))?;
    /// let user = User::new("acme", "ann");
    /// for _device in 0..2 {
    ///     let _ = sessions.create(&NewSession::of(&user)).await?;
    /// }
    /// let Created::Created(id) = sessions.create(&NewSession::of(&user)).await? else {
    ///     return Ok(());
    /// };
    /// assert_eq!(sessions.revoke_all_but(&user, &id, "new password").await?.count, 2);
    /// assert_eq!(sessions.revoke_all(&user, "account closed").await?.count, 1);
    /// assert!(sessions.list(&user).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_all_but(
        &self,
        user: &User,
        id: &SessionId,
        reason: &str,
    ) -> Result<Revoked> {
        self.revoke_others(user, Some(id.handle(&self.kit)), reason).await
    }

    async fn revoke_others(
        &self,
        user: &User,
        stays: Option<SessionHandle>,
        reason: &str,
    ) -> Result<Revoked> {
        let tag = user.tag(&self.kit)?;
        let member = stays.as_ref().map_or(&b""[..], SessionHandle::member).to_vec();
        for _ in 0..ATTEMPTS_MAX {
            let mut handles = self.list(user).await?;
            handles.retain(|handle| handle.member() != member);
            let reply = self.try_revoke(&tag, &handles, reason, &member).await?;
            if !reply.is("CHANGED") {
                return self.revoked(&reply);
            }
        }
        Err(Error::Contention { attempts: ATTEMPTS_MAX })
    }

    async fn try_revoke(
        &self,
        tag: &[u8],
        handles: &[SessionHandle],
        reason: &str,
        stays: &[u8],
    ) -> Result<Envelope> {
        let keys = self.keys(tag)?;
        let mut call = self.kit.step(&REVOKE).key(keys.key("index"));
        for handle in handles {
            call = call.key(keys.item("state", handle.member()));
        }
        let cut = reason.floor_char_boundary(REASON_BYTES_MAX);
        let mut call = call.arg(&reason[..cut]).arg(REVOKED_FOR).arg(stays);
        for handle in handles {
            call = call.arg(handle.member());
        }
        call.run().await
    }

    fn revoked(&self, reply: &Envelope) -> Result<Revoked> {
        if !reply.is("REVOKED") {
            return Err(reply.unexpected());
        }
        let count = reply.count("revoked_count")?;
        self.counts.revoked.add(count);
        Ok(Revoked { count })
    }
}
