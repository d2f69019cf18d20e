//! The work by the toolkit.

use super::{Doer, HOUR, SUBJECTS, Work, expect, failed, unexpected};
use crate::failure::Result;
use russet::Kit;
use russet::cache::{Cache, Lookup, Policy as CachePolicy};
use russet::idempotency::{Idempotency, IdempotencyKey, Outcome, Ttls};
use russet::lease::{Attempt, Lease, Terms};
use russet::limit::{Limit, Limiter, Outage};
use russet::queue::{Bounds, Jobs, NewJob};
use russet::session::{
    Authorization, Created, NewSession, Policy as SessionPolicy, SessionId, Sessions, Timeouts,
    User,
};
use std::cell::RefCell;

pub struct ByKit {
    limiter: Limiter,
    leases: Vec<Lease>,
    jobs: Jobs,
    requests: Idempotency,
    cache: Cache<String>,
    sessions: Sessions,
    ids: RefCell<Vec<SessionId>>,
    subjects: Vec<String>,
}

impl ByKit {
    pub fn new(kit: &Kit) -> Result<ByKit> {
        let subjects: Vec<String> = (0..SUBJECTS).map(|number| format!("user-{number}")).collect();
        let limits = [Limit::bucket("burst", 1_000_000, HOUR).map_err(failed)?];
        let limiter = Limiter::new(kit, "api", limits, Outage::Deny).map_err(failed)?;
        let lease = |name: &String| Lease::new(kit, name, Terms::new(HOUR)).map_err(failed);
        let leases = subjects.iter().map(lease).collect::<Result<Vec<Lease>>>()?;
        let bounds = Bounds { capacity: 1_000_000, ttl: HOUR };
        let jobs = Jobs::builder(kit, "jobs", bounds).visibility(HOUR).build().map_err(failed)?;
        let ttls = Ttls { claim: HOUR, result: HOUR };
        let requests = Idempotency::new(kit, "orders", ttls).map_err(failed)?;
        let cache = Cache::new(kit, "profiles", CachePolicy::new(HOUR)).map_err(failed)?;
        let policy = SessionPolicy::new(Timeouts { idle: HOUR, absolute: HOUR }, 5);
        let sessions = Sessions::new(kit, policy).map_err(failed)?;
        let ids = RefCell::default();
        Ok(ByKit { limiter, leases, jobs, requests, cache, sessions, ids, subjects })
    }

    async fn log_in(&self, subject: &str) -> Result<()> {
        let user = User::new("acme", subject);
        match self.sessions.create(&NewSession::of(&user)).await.map_err(failed)? {
            Created::Created(id) => self.ids.borrow_mut().push(id),
            Created::Full => return expect(false),
        }
        Ok(())
    }
}

impl Doer for ByKit {
    async fn prepare(&self, work: Work, operations: u64) -> Result<()> {
        match work {
            Work::Queue => {
                for _ in 0..operations {
                    let job = NewJob::new("payload");
                    let _ = self.jobs.schedule(&job, None).await.map_err(failed)?;
                }
            }
            Work::Cache => {
                for subject in &self.subjects {
                    let value = Some("value".to_owned());
                    let _ = self.cache.put(subject.as_str(), value, &[]).await.map_err(failed)?;
                }
            }
            Work::Session if self.ids.borrow().is_empty() => {
                for subject in &self.subjects {
                    self.log_in(subject).await?;
                }
            }
            Work::Limit | Work::Lease | Work::Idempotency | Work::Session => {}
        }
        Ok(())
    }

    async fn run(&self, work: Work, number: u64) -> Result<()> {
        let at = (number % SUBJECTS) as usize;
        match work {
            Work::Limit => {
                let decision = self.limiter.check(&self.subjects[at], 1, None).await;
                expect(decision.map_err(failed)?.is_allowed())
            }
            Work::Lease => match self.leases[at].try_acquire().await.map_err(failed)? {
                Attempt::Held(guard) => guard.release().await.map(drop).map_err(failed),
                Attempt::Busy { .. } | Attempt::Full => expect(false),
            },
            Work::Queue => {
                let claimed = self.jobs.claim_due(1, None).await.map_err(failed)?.jobs();
                let job = claimed.first().ok_or_else(unexpected)?;
                self.jobs.ack(&job.receipt, None).await.map(drop).map_err(failed)
            }
            Work::Idempotency => {
                let key = IdempotencyKey::new("acme", rand::random::<u128>().to_le_bytes());
                match self.requests.claim(&key, "3 apples").await.map_err(failed)? {
                    Outcome::Claimed(claim) => {
                        claim.complete("done").await.map(drop).map_err(failed)
                    }
                    _ => expect(false),
                }
            }
            Work::Cache => {
                let found = self.cache.get(self.subjects[at].as_str(), &[]).await;
                expect(matches!(found.map_err(failed)?, Lookup::Found { .. }))
            }
            Work::Session => {
                let id = self.ids.borrow()[at].clone();
                let authorization = self.sessions.authorize(&id).await.map_err(failed)?;
                expect(matches!(authorization, Authorization::Granted(_)))
            }
        }
    }
}
