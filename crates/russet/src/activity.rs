//! Who was here, when, and how often: daily active users and retention, sign-in streaks, unique
//! visitors, duplicates, recent activity, presence, and what is due to expire.
//!
//! Every one of them is bounded in size and time by its settings, which have no defaults, and goes
//! by the server's clock.

mod daily;
mod dedupe;
mod expiry;
mod presence;
mod recent;
mod streak;
mod visitors;

pub use daily::{Cohort, DailyActive, DailySettings, DailyStats, Marked};
pub use dedupe::{Dedupe, DedupeSettings, DedupeStats, Seen};
pub use expiry::{ExpiryIndex, ExpirySettings, ExpiryStats, Item, Put, RemovedDue, Renewed};
pub use presence::{Beat, Presence, PresenceSettings, PresenceStats, Present};
pub use recent::{Recent, RecentSettings, RecentStats, Repeats};
pub use streak::{SignIn, SignInSettings, SignInStats, SignIns, Streak};
pub use visitors::{Visit, VisitorSettings, VisitorStats, Visitors};

use crate::step::StepInfo;

pub(crate) static STEPS: &[&StepInfo] = &[
    daily::MARK.info(),
    daily::SEEN.info(),
    daily::COUNT.info(),
    daily::COMBINE.info(),
    dedupe::FIRST.info(),
    dedupe::HAS.info(),
    expiry::PUT.info(),
    expiry::RENEW.info(),
    expiry::READ.info(),
    expiry::REMOVE.info(),
    expiry::TAKE.info(),
    presence::BEAT.info(),
    presence::LEAVE.info(),
    presence::LIST.info(),
    recent::PUSH.info(),
    recent::LIST.info(),
    recent::REMOVE.info(),
    streak::SIGN.info(),
    streak::STATUS.info(),
    streak::YEAR.info(),
    visitors::VISIT.info(),
    visitors::COUNT.info(),
];
