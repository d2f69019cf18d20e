//! The second factor.

use super::id::SessionId;
use super::{MFA_BEGIN, MFA_FAIL, MFA_VERIFY, Sessions};
use crate::error::{Error, Result};
use crate::observe;
use crate::reply::Envelope;
use crate::retry::RequestId;

/// What became of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum MfaOutcome {
    /// The challenge is to be met now.
    Challenged,
    /// It was met: the session grants what it should.
    Verified,
    /// It was not.
    Mismatch {
        /// Before the session is locked.
        attempts_left: u64,
    },
    /// It was not met in time: begin anew.
    ExpiredChallenge,
    /// Too many attempts have failed: this session can't be verified any more.
    Locked,
    /// No challenge is to be met.
    NotRequired,
    /// The session has ended before its time.
    Revoked,
    /// There is no such session.
    Missing,
}

impl Sessions {
    /// Asks for a second factor. Until it is given nothing is granted. A digest of the challenge is
    /// stored; if it is short, as a code of six digits, the kit needs a secret to keep it hidden.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::session::{
    ///     Authorization, Created, MfaOutcome, NewSession, Policy, Sessions, Timeouts, User,
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
    ///
    /// assert_eq!(sessions.begin_mfa(&id, "493817").await?, MfaOutcome::Challenged);
    /// assert!(matches!(sessions.authorize(&id).await?, Authorization::MfaRequired(_)));
    /// let wrong = sessions.verify_mfa(&id, "000000", None).await?;
    /// assert_eq!(wrong, MfaOutcome::Mismatch { attempts_left: 4 });
    /// assert_eq!(sessions.verify_mfa(&id, "493817", None).await?, MfaOutcome::Verified);
    /// assert!(matches!(sessions.authorize(&id).await?, Authorization::Granted(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn begin_mfa(&self, id: &SessionId, challenge: &str) -> Result<MfaOutcome> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let call =
            self.kit.step(&MFA_BEGIN).key(session_keys.state).arg(self.challenge(id, challenge)?);
        self.outcome(call.arg(self.policy.challenge_ttl).arg(self.policy.attempts_max).run().await?)
    }

    /// Meets the challenge. A wrong one counts as a failed attempt, once per request id. See
    /// [`Sessions::begin_mfa`] for an example.
    pub async fn verify_mfa(
        &self,
        id: &SessionId,
        challenge: &str,
        request: Option<&RequestId>,
    ) -> Result<MfaOutcome> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let challenge = self.challenge(id, challenge)?;
        // Bound to the answer: another one under the same request id is another attempt.
        let request = request.map(|id| id.bound_to(&self.kit, &challenge));
        let call = self.kit.step_of_request(&MFA_VERIFY, &session_keys.keys, request.as_ref());
        let call = call.key(session_keys.state).arg(challenge).arg(self.policy.attempts_max);
        self.outcome(call.run().await?)
    }

    /// Counts a failed attempt at a second factor that was checked elsewhere, as a hardware key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::session::{
    ///     Created, MfaOutcome, NewSession, Policy, Sessions, Timeouts, User,
    /// };
    /// use russet::RequestId;
    /// use std::time::Duration;
    ///
    /// let kit = russet::Kit::builder().secret("from the vault").embedded(Default::default())?;
    /// let hour = Duration::from_secs(3600);
    /// let timeouts = Timeouts { idle: hour, absolute: hour };
    /// let sessions = Sessions::new(&kit, Policy::new(timeouts, 5))?;
    /// let user = User::new("acme", "ann");
    /// let new = NewSession::of(&user).mfa_required();
    /// let Created::Created(id) = sessions.create(&new).await? else { return Ok(()) };
    /// let request = RequestId::random();
    /// for _attempt in 0..2 {
    ///     let failed = sessions.fail_mfa(&id, Some(&request)).await?;
    ///     assert_eq!(failed, MfaOutcome::Mismatch { attempts_left: 4 });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fail_mfa(
        &self,
        id: &SessionId,
        request: Option<&RequestId>,
    ) -> Result<MfaOutcome> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let call = self
            .kit
            .step_of_request(&MFA_FAIL, &session_keys.keys, request)
            .key(session_keys.state);
        self.outcome(call.arg(self.policy.attempts_max).run().await?)
    }

    /// As it is stored. It is bound to the user, not to the id, which may be rotated meanwhile.
    fn challenge(&self, id: &SessionId, challenge: &str) -> Result<Vec<u8>> {
        if challenge.is_empty() {
            return Err(Error::invalid("the challenge is empty"));
        }
        Ok(self.kit.digest("mfa", &[id.tag(), challenge.as_bytes()].concat()))
    }

    /// Counts it too.
    fn outcome(&self, reply: Envelope) -> Result<MfaOutcome> {
        let outcome = outcome(reply)?;
        match outcome {
            MfaOutcome::Challenged => {}
            MfaOutcome::Verified => self.counts.mfa_verified.add(1),
            _ => self.counts.mfa_failed.add(1),
        }
        Ok(outcome)
    }
}

fn outcome(reply: Envelope) -> Result<MfaOutcome> {
    let outcome = match reply.status() {
        "CHALLENGED" => MfaOutcome::Challenged,
        "VERIFIED" => MfaOutcome::Verified,
        "MISMATCH" => MfaOutcome::Mismatch { attempts_left: reply.count("attempts_left")? },
        "EXPIRED" => MfaOutcome::ExpiredChallenge,
        "LOCKED" => MfaOutcome::Locked,
        "NOT_REQUIRED" => MfaOutcome::NotRequired,
        "REVOKED" => MfaOutcome::Revoked,
        "MISSING" => MfaOutcome::Missing,
        _ => return Err(reply.unexpected()),
    };
    if !matches!(outcome, MfaOutcome::Challenged | MfaOutcome::Verified) {
        observe::count("redis.session.lua.transition.error.count", "session", 1);
    }
    Ok(outcome)
}
