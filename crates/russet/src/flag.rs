//! Feature flags: who sees what, decided the same way everywhere, and switched off at once.
//!
//! The flags of a tenant are one hash, read with one call or kept in the process
//! ([`LocalFlags`]). They are distributed from here; where they are defined is the program's
//! business, and a flag that is not there is off.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::flag::{Definition, FlagTerms, Flags, Percent, Reason, Subject};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let flags = Flags::new(&kit, "acme", FlagTerms::new(Duration::from_secs(90 * 86_400)))?;
//! let everyone_in_de = Definition::on().when("country", ["DE"]).rollout(Percent::whole(100)?);
//! flags.define("new-checkout", &everyone_in_de, "ann").await?;
//!
//! let subject = Subject::new("user-1").with("country", "DE");
//! assert!(flags.evaluate("new-checkout", &subject).await?.is_on);
//! flags.kill("new-checkout", "on-call").await?;
//! assert_eq!(flags.evaluate("new-checkout", &subject).await?.reason, Reason::Killed);
//! # Ok(())
//! # }
//! ```

mod local;
mod rules;
mod store;

pub use local::{LocalFlags, Snapshot};
pub use rules::{Definition, Evaluation, Percent, Reason, Subject};
pub use store::{Changed, FlagStats, FlagTerms, Flags, Joined};

use crate::key::Family;
use crate::step::StepInfo;

const FAMILY: Family = Family { purpose: "flag", version: 1 };

pub(crate) static STEPS: &[&StepInfo] = &[
    store::CHANGE.info(),
    store::SNAPSHOT.info(),
    store::READ.info(),
    store::AUDIT.info(),
    store::MEMBER_ADD.info(),
];

/// One change of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The server's time.
    pub at_ms: i64,
    /// Who made it, as the program named them.
    pub actor: String,
    /// As `kill`.
    pub action: String,
    /// Whose change it was.
    pub flag: String,
    /// Of all flags, after the change.
    pub version: u64,
}
