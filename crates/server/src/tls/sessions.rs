//! Sessions that clients may resume: as many as `tls-session-cache-size` says, each for as long as
//! `tls-session-cache-timeout` says. What an old session proved is proved again after that.

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sessions that may be kept although 0 asks for no limit.
const SESSIONS_MAX: usize = 20_480;
/// Each session begins with the milliseconds after which it is over.
const END_BYTES: usize = 8;

#[derive(Debug)]
pub struct SessionCache {
    sessions: Arc<ServerSessionMemoryCache>,
    lifetime: Duration,
    started: Instant,
}

impl SessionCache {
    /// DIFFERS: 0 sessions, which is no limit to OpenSSL, still means one.
    pub fn new(sessions_max: usize, lifetime: Duration) -> Arc<Self> {
        let sessions_max = if sessions_max == 0 { SESSIONS_MAX } else { sessions_max };
        let sessions = ServerSessionMemoryCache::new(sessions_max.min(SESSIONS_MAX));
        Arc::new(SessionCache { sessions, lifetime, started: Instant::now() })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The session, if its time is not over.
    fn current(&self, mut kept: Vec<u8>) -> Option<Vec<u8>> {
        let (end, _) = kept.split_first_chunk::<END_BYTES>()?;
        if self.now_ms() >= u64::from_le_bytes(*end) {
            return None;
        }
        kept.drain(..END_BYTES);
        Some(kept)
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let lifetime_ms = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let end = self.now_ms().saturating_add(lifetime_ms);
        self.sessions.put(key, [&end.to_le_bytes()[..], &value].concat())
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.current(self.sessions.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.current(self.sessions.take(key)?)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_over_when_its_time_is() {
        let long = SessionCache::new(10, Duration::from_secs(3600));
        assert!(long.put(b"a".to_vec(), b"session".to_vec()));
        assert_eq!(long.get(b"a"), Some(b"session".to_vec()));
        assert_eq!(long.take(b"a"), Some(b"session".to_vec()));
        assert_eq!(long.take(b"a"), None);
        let none = SessionCache::new(10, Duration::ZERO);
        assert!(none.put(b"a".to_vec(), b"session".to_vec()));
        assert_eq!(none.get(b"a"), None);
    }

    #[test]
    fn no_more_sessions_are_kept_than_asked_for() {
        let few = SessionCache::new(4, Duration::from_secs(3600));
        for key in 0..100u8 {
            few.put(vec![key], vec![key]);
        }
        let kept = (0..100u8).filter(|key| few.get(&[*key]).is_some()).count();
        assert!((1..=8).contains(&kept), "{kept}");
    }
}
