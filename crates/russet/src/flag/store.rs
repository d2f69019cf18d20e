//! The flags of a tenant as they are stored: one hash for all of them, one set for all groups.

use super::local::Snapshot;
use super::rules::{Definition, Evaluation, Percent, Rules, Subject, check_name, killed};
use super::{AuditEntry, FAMILY};
use crate::error::{Error, Result};
use crate::key::{Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::{Envelope, Reply};
use crate::request::Request;
use crate::step::{Safe, Step};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) static CHANGE: Step<Safe> = Step::new("flag_change", include_str!("change.lua"));
pub(super) static SNAPSHOT: Step<Safe> =
    Step::read_only("flag_snapshot", include_str!("snapshot.lua"));
pub(super) static READ: Step<Safe> = Step::read_only("flag_read", include_str!("read.lua"));
pub(super) static AUDIT: Step<Safe> = Step::read_only("flag_audit", include_str!("audit.lua"));
pub(super) static MEMBER_ADD: Step<Safe> =
    Step::new("flag_member_add", include_str!("member_add.lua"));

const TTL_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
const FLAGS: u32 = 500;
const FLAGS_MAX: u32 = 10_000;
const MEMBERS: u32 = 100_000;
const MEMBERS_MAX: u32 = 1_000_000;
const AUDIT_MAX: u32 = 1000;

/// The bounds of a tenant's flags.
#[derive(Clone, Copy, Debug)]
pub struct FlagTerms {
    ttl: Duration,
    flags_max: u32,
    members_max: u32,
}

impl FlagTerms {
    /// `ttl` is how long flags that nobody changes are there; then all of them are off. Whoever
    /// defines them publishes them again before that.
    pub fn new(ttl: Duration) -> Self {
        FlagTerms { ttl, flags_max: FLAGS, members_max: MEMBERS }
    }

    /// 500 by default.
    pub fn flags_max(mut self, flags_max: u32) -> Self {
        self.flags_max = flags_max;
        self
    }

    /// Members of all groups; 100,000 by default.
    pub fn members_max(mut self, members_max: u32) -> Self {
        self.members_max = members_max;
        self
    }
}

/// What came of a change. `version` is that of all flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is so from now on.
    Changed {
        /// After the change.
        version: u64,
    },
    /// It was so before: an attempt that is repeated changes nothing more.
    Unchanged {
        /// As it was.
        version: u64,
    },
    /// There is no such flag.
    Missing,
    /// There are as many flags as may be.
    Full,
}

/// What came of joining a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It is in the group from now on.
    Joined,
    /// It was before.
    Already,
    /// There are as many members as may be.
    Full,
}

stats! {
    /// What a handle, its clones and the [`LocalFlags`](super::LocalFlags) made of it have seen in
    /// this process.
    FlagStats counted by Counts {
        /// Evaluations by the store: one call each.
        evaluated,
        /// Evaluations in the process, without a call.
        evaluated_locally,
        /// Of both, those that came out on.
        on,
        /// Of both, those of flags that were not there.
        unknown,
        /// Times that all flags were read.
        snapshots,
        /// Times that old flags served because the store could not be reached.
        stale,
        /// Changes that were made.
        changed,
    }
}

/// The flags of a tenant.
#[derive(Clone)]
pub struct Flags {
    kit: Kit,
    keys: Keys,
    terms: FlagTerms,
    pub(super) counts: Arc<Counts>,
}

impl Flags {
    /// The flags of a tenant. Refuses terms without sense, as a TTL of zero.
    pub fn new(kit: &Kit, tenant: impl Into<Scope>, terms: FlagTerms) -> Result<Self> {
        let FlagTerms { ttl, flags_max, members_max } = terms;
        if ttl.is_zero() || ttl > TTL_MAX {
            return Err(Error::invalid(format!("ttl must be between 1 ms and {TTL_MAX:?}")));
        }
        if flags_max == 0 || flags_max > FLAGS_MAX {
            return Err(Error::invalid(format!("flags_max must be between 1 and {FLAGS_MAX}")));
        }
        if members_max == 0 || members_max > MEMBERS_MAX {
            return Err(Error::invalid(format!("members_max must be 1 to {MEMBERS_MAX}")));
        }
        let (keys, counts) = (kit.keys(FAMILY, tenant)?, Arc::default());
        Ok(Flags { kit: kit.clone(), keys, terms, counts })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> FlagStats {
        self.counts.stats()
    }

    pub(super) fn kit(&self) -> &Kit {
        &self.kit
    }

    /// Defines a flag, or defines it anew. A kill switch that is set stays set.
    pub async fn define(
        &self,
        flag: &str,
        definition: &Definition,
        actor: &str,
    ) -> Result<Changed> {
        definition.check()?;
        let rules = serde_json::to_string(&definition.rules)
            .map_err(|error| Error::Invalid(format!("rules: {error}")))?;
        let groups: Vec<&str> = definition.groups.iter().map(String::as_str).collect();
        let attributes = [
            ("switch", switch(definition.is_on).to_owned()),
            ("rollout", definition.rollout.as_hundredths().to_string()),
            ("rules", rules),
            ("groups", groups.join(",")),
        ];
        self.change(Action { flag, actor, name: "define", may_create: true }, &attributes).await
    }

    /// Switches it on, for whom it is defined. The actor stands in the audit.
    pub async fn enable(&self, flag: &str, actor: &str) -> Result<Changed> {
        let attributes = [("switch", switch(true).to_owned())];
        self.change(Action { flag, actor, name: "enable", may_create: false }, &attributes).await
    }

    /// Switches it off; its rules stay.
    pub async fn disable(&self, flag: &str, actor: &str) -> Result<Changed> {
        let attributes = [("switch", switch(false).to_owned())];
        self.change(Action { flag, actor, name: "disable", may_create: false }, &attributes).await
    }

    /// Sets how many of those that it is for see it.
    pub async fn set_rollout(&self, flag: &str, share: Percent, actor: &str) -> Result<Changed> {
        let attributes = [("rollout", share.as_hundredths().to_string())];
        self.change(Action { flag, actor, name: "rollout", may_create: false }, &attributes).await
    }

    /// Switches it off for everyone, whatever it is defined as or will be.
    pub async fn kill(&self, flag: &str, actor: &str) -> Result<Changed> {
        let attributes = [("killed", "1".to_owned())];
        self.change(Action { flag, actor, name: "kill", may_create: false }, &attributes).await
    }

    /// Takes the kill switch back: the flag is as it was defined.
    pub async fn revive(&self, flag: &str, actor: &str) -> Result<Changed> {
        let attributes = [("killed", String::new())];
        self.change(Action { flag, actor, name: "revive", may_create: false }, &attributes).await
    }

    /// Forgets it, its kill switch included: it is unknown, and so off.
    pub async fn remove(&self, flag: &str, actor: &str) -> Result<Changed> {
        let attributes = ["switch", "killed", "rollout", "rules", "groups"];
        let attributes = attributes.map(|attribute| (attribute, String::new()));
        self.change(Action { flag, actor, name: "remove", may_create: false }, &attributes).await
    }

    async fn change(
        &self,
        action: Action<'_>,
        attributes: &[(&'static str, String)],
    ) -> Result<Changed> {
        let Action { flag, actor, name, may_create } = action;
        check_name(flag)?;
        let call = self.kit.step(&CHANGE).key(self.keys.key("flags")).key(self.keys.key("audit"));
        let call = call.arg(flag).arg(actor).arg(name).arg(self.terms.ttl);
        let mut call = call.arg(self.terms.flags_max).arg(AUDIT_MAX).arg(may_create);
        for (attribute, value) in attributes {
            call = call.arg(*attribute).arg(value);
        }
        let envelope = call.run().await?;
        match envelope.status() {
            "CHANGED" => {
                self.counts.changed.add(1);
                Ok(Changed::Changed { version: envelope.count("version")? })
            }
            "UNCHANGED" => Ok(Changed::Unchanged { version: envelope.count("version")? }),
            "MISSING" => Ok(Changed::Missing),
            "FULL" => Ok(Changed::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    /// What a flag says of a subject now, in one call.
    pub async fn evaluate(&self, flag: &str, subject: &Subject) -> Result<Evaluation> {
        let evaluation = self.ask(flag, subject).await?;
        self.counts.evaluated.add(1);
        self.counts.count(evaluation);
        Ok(evaluation)
    }

    async fn ask(&self, flag: &str, subject: &Subject) -> Result<Evaluation> {
        check_name(flag)?;
        let call = self.kit.step(&READ).key(self.keys.key("flags")).key(self.keys.key("members"));
        let mut envelope = call.arg(flag).arg(&subject.id).run().await?;
        match envelope.status() {
            "MISSING" => return Ok(Evaluation::UNKNOWN),
            "FLAG" => {}
            _ => return Err(envelope.unexpected()),
        }
        if !envelope.text("killed")?.is_empty() {
            return Ok(killed());
        }
        let is_member = envelope.int("is_member")? == 1;
        let mut field = |name| Envelope::text(&mut envelope, name);
        let stored = Stored {
            switch: field("switch")?,
            rollout: field("rollout")?,
            rules: field("rules")?,
            // The store has looked at them.
            groups: b"-".to_vec(),
        };
        let evaluation = stored.definition()?.evaluate(flag, subject, Some(is_member));
        Ok(evaluation.unwrap_or(Evaluation::UNKNOWN))
    }

    /// Whether it is on for a subject, in one call; see [`Flags::evaluate`] for why.
    pub async fn is_on(&self, flag: &str, subject: &Subject) -> Result<bool> {
        Ok(self.evaluate(flag, subject).await?.is_on)
    }

    /// All flags, to be looked at without a call.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        match self.snapshot_since(0).await? {
            Some(snapshot) => Ok(snapshot),
            None => Err(Error::Corrupt("flags: version".into())),
        }
    }

    /// None if they still have that version.
    pub(super) async fn snapshot_since(&self, version: u64) -> Result<Option<Snapshot>> {
        let call = self.kit.step(&SNAPSHOT).key(self.keys.key("flags")).arg(version);
        let mut envelope = call.run().await?;
        if envelope.is("UNCHANGED") {
            return Ok(None);
        }
        self.counts.snapshots.add(1);
        let version = envelope.count("version")?;
        let mut items = envelope.list("fields")?.into_iter();
        let mut stored: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        while let (Some(name), Some(value)) = (items.next(), items.next()) {
            let name = String::from_utf8(name.into_bytes()?.unwrap_or_default());
            let name = name.map_err(|_bytes| Error::Corrupt("flags: a name".into()))?;
            // The version and the count are of no flag.
            if let Some((flag, attribute)) = name.split_once(':') {
                let attributes = stored.entry(flag.to_owned()).or_default();
                attributes.insert(attribute.to_owned(), value.into_bytes()?.unwrap_or_default());
            }
        }
        let flags = stored.into_iter().map(|(flag, mut attributes)| {
            let mut field = |name: &str| attributes.remove(name).unwrap_or_default();
            let is_killed = !field("killed").is_empty();
            let (switch, rollout) = (field("switch"), field("rollout"));
            let stored = Stored { switch, rollout, rules: field("rules"), groups: field("groups") };
            Ok((flag, (is_killed, stored.definition()?)))
        });
        Ok(Some(Snapshot::new(version, flags.collect::<Result<_>>()?)))
    }

    /// The latest changes, the last one first.
    pub async fn audit(&self, limit: u32) -> Result<Vec<AuditEntry>> {
        let call = self.kit.step(&AUDIT).key(self.keys.key("audit")).arg(limit);
        let entries = call.run().await?.list("entries")?;
        entries.into_iter().map(entry).collect()
    }

    /// Adds a subject to a group.
    pub async fn join(&self, group: &str, subject: &str) -> Result<Joined> {
        check_name(group)?;
        let call = self.kit.step(&MEMBER_ADD).key(self.keys.key("members"));
        let call = call.arg(group).arg(subject).arg(self.terms.ttl).arg(self.terms.members_max);
        let envelope = call.run().await?;
        match envelope.status() {
            "ADDED" => Ok(Joined::Joined),
            "ALREADY" => Ok(Joined::Already),
            "FULL" => Ok(Joined::Full),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes a subject out of a group; whether it was in it.
    pub async fn leave(&self, group: &str, subject: &str) -> Result<bool> {
        check_name(group)?;
        let request = Request::new("SREM").key(&self.keys.key("members"));
        let reply = self.kit.call_safe(&request.arg(format!("{group}:{subject}"))).await?;
        Ok(reply.into_int()? == 1)
    }

    /// Whether a subject is in a group.
    pub async fn is_member(&self, group: &str, subject: &str) -> Result<bool> {
        check_name(group)?;
        let request = Request::new("SISMEMBER").key(&self.keys.key("members"));
        let watch = observe::Stopwatch::start();
        let reply = self.kit.call_safe(&request.arg(format!("{group}:{subject}"))).await?;
        observe::latency(observe::LOOKUP_LATENCY, "flag", watch);
        Ok(reply.into_int()? == 1)
    }
}

impl Counts {
    pub fn count(&self, evaluation: Evaluation) {
        self.on.add(u64::from(evaluation.is_on));
        self.unknown.add(u64::from(evaluation == Evaluation::UNKNOWN));
    }
}

/// Who does what to which flag.
struct Action<'a> {
    flag: &'a str,
    actor: &'a str,
    name: &'static str,
    may_create: bool,
}

/// The attributes of a flag.
struct Stored {
    switch: Vec<u8>,
    rollout: Vec<u8>,
    rules: Vec<u8>,
    groups: Vec<u8>,
}

impl Stored {
    fn definition(self) -> Result<Definition> {
        let corrupt = |what: &str| Error::Corrupt(format!("flag: {what}"));
        let is_on = match self.switch.as_slice() {
            b"on" => true,
            b"off" => false,
            _ => return Err(corrupt("switch")),
        };
        let rollout = match std::str::from_utf8(&self.rollout) {
            Ok("") => Percent::ALL,
            Ok(text) => {
                let hundredths = text.parse().map_err(|_text| corrupt("rollout"))?;
                Percent::hundredths(hundredths).map_err(|_over| corrupt("rollout"))?
            }
            Err(_) => return Err(corrupt("rollout")),
        };
        let rules = match self.rules.as_slice() {
            b"" => Rules::default(),
            json => serde_json::from_slice(json).map_err(|_error| corrupt("rules"))?,
        };
        let groups = String::from_utf8(self.groups).map_err(|_bytes| corrupt("groups"))?;
        let groups = groups.split(',').filter(|group| !group.is_empty()).map(str::to_owned);
        Ok(Definition { is_on, rollout, groups: groups.collect(), rules })
    }
}

fn switch(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

fn entry(reply: Reply) -> Result<AuditEntry> {
    let corrupt = || Error::Corrupt("audit: an entry".into());
    let items: [Reply; 5] = reply.into_list()?.try_into().map_err(|_items| corrupt())?;
    let [at_ms, actor, action, flag, version] = items;
    let text = |reply: Reply| {
        let bytes = reply.into_bytes()?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_bytes| corrupt())
    };
    Ok(AuditEntry {
        at_ms: at_ms.into_int()?,
        actor: text(actor)?,
        action: text(action)?,
        flag: text(flag)?,
        version: u64::try_from(version.into_int()?).map_err(|_negative| corrupt())?,
    })
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flags").field("terms", &self.terms).finish_non_exhaustive()
    }
}
