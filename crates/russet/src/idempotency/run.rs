//! Running a closure once per request.

use super::ClaimStatus;
use super::{BODY_BYTES_MAX, Claim, Failure, Fingerprint, Idempotency, IdempotencyKey, Outcome};
use crate::error::{Error, Result};
use crate::retry::jittered;
use crate::time::{Beat, with_heartbeat};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Signs of life per TTL of a claim.
const RENEWALS_PER_TTL: u32 = 3;
/// The longest pause between two looks at a request that another carries out.
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(500);
/// What stands in a record whose response could not be stored.
const UNSTORABLE: &str = "response_not_storable";

/// How [`Idempotency::idempotent`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Run<T> {
    /// The closure ran, and this is stored.
    Done(T),
    /// It ran before, and this is what it gave.
    Replay(T),
    /// It ran and failed, now or, if the failure is final, before.
    Failed(Failure),
    /// The closure ran, but it was so long without a sign of life that another has taken over: what
    /// it gave is not stored.
    Lost(T),
    /// The closure ran and gave this, but how it ended may not be stored. Until its claim is over
    /// the key is in flight; then whoever asks runs it again, unless it was stored after all.
    Unrecorded {
        /// What the closure gave.
        outcome: Result<T, Failure>,
        /// Why it was not stored.
        error: Error,
    },
    /// Another is at it.
    InFlight {
        /// When its claim runs out, unless it is renewed.
        retry_after: Duration,
    },
    /// The key was used for another request.
    Mismatch,
}

impl Idempotency {
    /// Runs `work` once for a key, and replays what it gave to whoever asks again. While it runs
    /// the claim is renewed. A future that is dropped leaves a claim that another can take over
    /// after its TTL.
    pub async fn idempotent<T, W>(
        &self,
        key: &IdempotencyKey,
        request: impl Into<Fingerprint>,
        work: impl FnOnce() -> W,
    ) -> Result<Run<T>>
    where
        T: Serialize + DeserializeOwned,
        W: Future<Output = Result<T, Failure>>,
    {
        let request = request.into();
        let time = self.kit.time().clone();
        let give_up_at = time.elapsed() + self.wait;
        let claim = loop {
            let retry_after = match self.claim(key, request.clone()).await? {
                Outcome::Claimed(claim) => break claim,
                Outcome::Replay(body) => return Ok(Run::Replay(decode(&body)?)),
                Outcome::Failed(failure) => return Ok(Run::Failed(failure)),
                Outcome::Mismatch => return Ok(Run::Mismatch),
                Outcome::InFlight { retry_after } => retry_after,
            };
            let left = give_up_at.saturating_sub(time.elapsed());
            if left.is_zero() {
                return Ok(Run::InFlight { retry_after });
            }
            let pause = retry_after.min(LOOK_PAUSE_MAX).min(left);
            time.sleep(pause / 2 + jittered(pause / 2)).await;
        };
        self.carry_out(&claim, work()).await
    }

    async fn carry_out<T: Serialize>(
        &self,
        claim: &Claim,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<Run<T>> {
        let every = self.ttls.claim / RENEWALS_PER_TTL;
        let result = with_heartbeat(self.kit.time(), every, work, || claim.beat()).await;
        let value = match result {
            Ok(value) => value,
            Err(failure) => {
                return Ok(match claim.fail(&failure).await {
                    // Lost or not, this is how it ended here.
                    Ok(_) => Run::Failed(failure),
                    Err(error) => Run::Unrecorded { outcome: Err(failure), error },
                });
            }
        };
        let body = match serde_json::to_vec(&value) {
            Ok(body) if body.len() <= BODY_BYTES_MAX => body,
            // The work is done and must not be done again, though nothing can be replayed.
            unstorable => {
                let recorded = claim.fail(&Failure::terminal(UNSTORABLE)).await;
                let why = unstorable.err().map_or("too large".into(), |error| error.to_string());
                let unstorable = Error::invalid(format!("the response can't be stored: {why}"));
                let error = recorded.err().unwrap_or(unstorable);
                return Ok(Run::Unrecorded { outcome: Ok(value), error });
            }
        };
        Ok(match claim.complete(body).await {
            Ok(ClaimStatus::Kept) => Run::Done(value),
            Ok(ClaimStatus::Lost) => Run::Lost(value),
            Err(error) => Run::Unrecorded { outcome: Ok(value), error },
        })
    }
}

impl Claim {
    /// A renewal that fails is not the end: the next one may get through in time.
    async fn beat(&self) -> Beat {
        match self.renew().await {
            Ok(ClaimStatus::Lost) => Beat::Stop,
            Ok(ClaimStatus::Kept) | Err(_) => Beat::GoOn,
        }
    }

    /// Renews it until this future is dropped, or it is lost.
    #[cfg(feature = "tower")]
    pub(crate) async fn keep_alive(&self) {
        let store = &self.store;
        let every = store.ttls.claim / RENEWALS_PER_TTL;
        loop {
            store.kit.time().sleep(every).await;
            if self.beat().await == Beat::Stop {
                return;
            }
        }
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Corrupt(format!("the stored response: {error}")))
}
