//! What is counted of sessions in this process.

use super::record::{Authorization, Lookup};
use crate::observe::stats;

stats! {
    /// What a handle and its clones have seen in this process.
    SessionStats counted by Counts {
        /// Log-ins that made a session.
        created,
        /// Log-ins for which an older session was ended.
        evicted,
        /// Log-ins that were refused because the user had all sessions that are allowed.
        rejected,
        /// Look-ups that found a session in force.
        found,
        /// Look-ups that found a session that grants nothing: revoked, or without its second
        /// factor.
        refused,
        /// Look-ups that found none.
        missing,
        /// Look-ups that found what could not be read.
        corrupt,
        /// Times that a TTL was renewed.
        refreshed,
        /// Sessions that got a new id.
        rotated,
        /// Sessions that were ended before their time.
        revoked,
        /// Challenges that were met.
        mfa_verified,
        /// Attempts at a second factor that came to nothing.
        mfa_failed,
    }
}

impl Counts {
    pub fn count_authorization(&self, authorization: &Authorization) {
        let counter = match authorization {
            Authorization::Granted(_) => &self.found,
            Authorization::MfaRequired(_) | Authorization::Revoked => &self.refused,
            Authorization::Missing => &self.missing,
            Authorization::Corrupt(_) => &self.corrupt,
        };
        counter.add(1);
    }

    pub fn count_lookup(&self, lookup: &Lookup) {
        let counter = match lookup {
            Lookup::Found(_) => &self.found,
            Lookup::ExpiredChallenge(_) => &self.refused,
            Lookup::Missing => &self.missing,
            Lookup::Corrupt(_) => &self.corrupt,
        };
        counter.add(1);
    }
}
