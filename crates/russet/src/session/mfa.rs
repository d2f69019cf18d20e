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
    pub async fn begin_mfa(&self, id: &SessionId, challenge: &str) -> Result<MfaOutcome> {
        let session_keys = self.session_keys(&id.handle(&self.kit))?;
        let call =
            self.kit.step(&MFA_BEGIN).key(session_keys.state).arg(self.challenge(id, challenge)?);
        self.outcome(call.arg(self.policy.challenge_ttl).arg(self.policy.attempts_max).run().await?)
    }

    /// Meets the challenge. A wrong one counts as a failed attempt, once per request id.
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
