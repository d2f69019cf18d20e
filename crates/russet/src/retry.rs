//! Calling again: which steps may be, how often, and the ids by which the store knows a repetition.

use crate::error::{Advice, Error};
use crate::key::write_hex;
use rand::Rng;
use std::fmt;
use std::time::Duration;

/// What a second run of the same call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryClass {
    /// The same as the first: it reads, or sets what is set already.
    Safe,
    /// Nothing, if it has the request id of the first: the store remembers its reply.
    WithRequestId,
    /// It happens twice.
    Unsafe,
}

/// The id of one request of a user: the same for every attempt, of every process, to carry it out.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::RequestId;
/// use russet::counter::{WindowCounter, Windows};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let years = Windows::of(Duration::from_secs(365 * 86_400))?;
/// let orders = WindowCounter::new(&kit, "orders", years)?;
/// let id = RequestId::from("from the client");
/// for _attempt in 0..3 {
///     assert_eq!(orders.add("user-1", 1, Some(&id)).await?.count, 1);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Vec<u8>);

impl RequestId {
    /// A new one, of 128 random bits.
    pub fn random() -> Self {
        RequestId(token().to_vec())
    }

    /// As it was given, or made.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// An id for this request about this content only: the store must not tell the reply to one who
    /// knows the id of the request, but not the secret that it was about.
    pub(crate) fn bound_to(&self, kit: &crate::Kit, content: &[u8]) -> RequestId {
        let both = [self.0.as_slice(), b"\0", content].concat();
        RequestId(kit.digest("request", &both))
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for RequestId {
    fn from(id: &T) -> Self {
        RequestId(id.as_ref().to_vec())
    }
}

/// Says nothing of its content, which comes from users.
impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestId")
    }
}

/// 128 random bits as text: who holds it can't be guessed.
pub(crate) fn token() -> [u8; TOKEN_BYTES] {
    let mut text = [0; TOKEN_BYTES];
    write_hex(&rand::rng().random::<[u8; TOKEN_BYTES / 2]>(), &mut text);
    text
}

/// The length of a random token.
const TOKEN_BYTES: usize = 32;

/// How often the kit tries a call, and how long it waits in between.
///
/// ```
/// use russet::retry::RetryPolicy;
/// use std::time::Duration;
///
/// let patient = RetryPolicy { pause_max: Duration::from_secs(2), ..RetryPolicy::default() };
/// let kit = russet::Kit::builder().retry(patient).embedded(Default::default())?;
/// let once = kit.with_retry(RetryPolicy::NONE);
/// # let _ = once;
/// # Ok::<(), russet::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all; 1 tries once.
    pub attempts_max: u32,
    /// The longest pause before the second attempt. It doubles with each attempt after that; the
    /// real one is random, between nothing and that.
    pub pause_min: Duration,
    /// The longest pause before any attempt.
    pub pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            attempts_max: 3,
            pause_min: Duration::from_millis(10),
            pause_max: Duration::from_millis(500),
        }
    }
}

impl RetryPolicy {
    /// No second attempt.
    pub const NONE: RetryPolicy =
        RetryPolicy { attempts_max: 1, pause_min: Duration::ZERO, pause_max: Duration::ZERO };

    /// Whether a call that failed so may be tried again by the kit itself.
    pub(crate) fn allows(&self, attempt: u32, may_run_twice: bool, error: &Error) -> bool {
        attempt < self.attempts_max
            && match error.advice() {
                Advice::Retry { .. } => true,
                Advice::Unknown => may_run_twice,
                Advice::GiveUp => false,
            }
    }

    /// The pause after attempt number `attempt`, the first being 1.
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        let doubled = self.pause_min.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        jittered(doubled.min(self.pause_max))
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// The one under way, the first being 1.
    pub number: u32,
    /// One of those that failed may have run.
    may_have_run: bool,
}

impl Attempts {
    pub fn first() -> Self {
        Attempts { number: 1, may_have_run: false }
    }

    /// The pause before the next attempt, or the error to give up with.
    pub fn failed(
        &mut self,
        policy: RetryPolicy,
        may_run_twice: bool,
        error: &Error,
    ) -> Result<Duration, Error> {
        self.may_have_run |= matches!(error, Error::Unknown(_));
        if !policy.allows(self.number, may_run_twice, error) {
            let error = error.clone();
            return Err(if self.may_have_run { error.after_unknown() } else { error });
        }
        let pause = policy.pause(self.number);
        self.number += 1;
        Ok(pause)
    }
}

/// A random time up to this.
pub(crate) fn jittered(span: Duration) -> Duration {
    span.mul_f64(rand::rng().random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_run_is_only_repeated_if_it_may_run_twice() {
        let policy = RetryPolicy::default();
        let (unknown, not_run) = (Error::Unknown("".into()), Error::Unavailable("".into()));
        assert!(!policy.allows(1, false, &unknown));
        assert!(policy.allows(1, true, &unknown));
        assert!(policy.allows(2, false, &not_run));
        assert!(!policy.allows(3, true, &not_run));
        assert!(!policy.allows(1, true, &Error::Invalid("".into())));
        assert!(!RetryPolicy::NONE.allows(1, true, &not_run));
    }

    /// The first attempt ran and its reply was lost; those after it found no server. The caller was
    /// told that nothing had run.
    #[test]
    fn what_may_have_run_once_stays_unknown() {
        let policy = RetryPolicy::default();
        let (unknown, not_run) = (Error::Unknown("".into()), Error::Unavailable("".into()));
        let mut attempts = Attempts::first();
        assert!(attempts.failed(policy, true, &unknown).is_ok());
        assert!(attempts.failed(policy, true, &not_run).is_ok());
        let last = attempts.failed(policy, true, &not_run);
        assert!(matches!(last, Err(Error::Unknown(_))), "{last:?}");
        let refused = Attempts { number: 1, may_have_run: true }.failed(
            policy,
            true,
            &Error::Refused { code: "NOPERM".into(), text: "".into() },
        );
        assert!(matches!(refused, Err(Error::Unknown(_))), "{refused:?}");
        let mut attempts = Attempts { number: 3, may_have_run: false };
        assert_eq!(attempts.failed(policy, true, &not_run), Err(not_run));
    }

    #[test]
    fn pauses_are_bounded_and_random() {
        let policy = RetryPolicy::default();
        assert!((1..100).all(|attempt| policy.pause(attempt) <= policy.pause_max));
        let pauses: std::collections::HashSet<Duration> =
            (0..20).map(|_| policy.pause(9)).collect();
        assert!(pauses.len() > 10);
    }

    #[test]
    fn random_ids_differ() {
        assert_ne!(RequestId::random(), RequestId::random());
        assert_eq!(RequestId::random().as_bytes().len(), 32);
    }
}
