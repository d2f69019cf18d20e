//! What is counted of sessions in this process.

use super::record::{Authorization, Lookup};
use crate::observe::stats;

stats! {
    /// What a handle and its clones have seen in this process.
    SessionStats counted by Counts {
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
        missing,
        corrupt,
        /// Times that a TTL was renewed.
        refreshed,
        rotated,
        revoked,
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
