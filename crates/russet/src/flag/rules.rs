//! What a flag says of a subject: no calls, no clock, the same in every process.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Into how many buckets subjects fall: hundredths of a percent.
const BUCKETS: u64 = 10_000;
/// How many subjects, values and groups one flag names.
const LIST_MAX: usize = 1000;
const GROUPS_MAX: usize = 8;
const ATTRIBUTES_MAX: usize = 16;
/// The longest name of a flag or a group.
const NAME_BYTES_MAX: usize = 64;

/// A share of all subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    hundredths: u16,
}

impl Percent {
    /// Nobody.
    pub const NONE: Percent = Percent { hundredths: 0 };
    /// Everyone.
    pub const ALL: Percent = Percent { hundredths: 10_000 };

    /// 0 to 100.
    pub fn whole(percent: u8) -> Result<Self> {
        Percent::hundredths(u16::from(percent) * 100)
    }

    /// 0 to 10,000 hundredths of a percent.
    pub fn hundredths(hundredths: u16) -> Result<Self> {
        if u64::from(hundredths) > BUCKETS {
            return Err(Error::invalid("a share is over 100 percent"));
        }
        Ok(Percent { hundredths })
    }

    /// 10,000 for everyone.
    pub fn as_hundredths(self) -> u16 {
        self.hundredths
    }
}

/// For whom a flag is looked at: an id, and what is known of it.
#[derive(Clone)]
pub struct Subject {
    pub(super) id: String,
    attributes: BTreeMap<String, String>,
}

impl Subject {
    /// Someone of whom only the id is known.
    pub fn new(id: &str) -> Self {
        Subject { id: id.to_owned(), attributes: BTreeMap::new() }
    }

    /// Says something of it, as `with("country", "DE")`: what rules can ask for.
    pub fn with(mut self, attribute: &str, value: &str) -> Self {
        self.attributes.insert(attribute.to_owned(), value.to_owned());
        self
    }
}

/// Says nothing of its content.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subject({} attributes)", self.attributes.len())
    }
}

/// Why a flag is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no such flag.
    Unknown,
    /// It is off for everyone, by its kill switch.
    Killed,
    /// It is defined as off.
    SwitchedOff,
    /// The subject is named as one that does not see it.
    Denied,
    /// The subject is named as one that sees it.
    Allowed,
    /// The subject is in a group that sees it.
    Group,
    /// An attribute of the subject is not among those that see it.
    NotTargeted,
    /// The subject falls, or does not fall, into the share that sees it.
    Rollout,
}

/// What a flag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Evaluation {
    /// For this subject.
    pub is_on: bool,
    /// Why, for logs and support.
    pub reason: Reason,
}

impl Evaluation {
    pub(super) const UNKNOWN: Evaluation = Evaluation::off(Reason::Unknown);

    const fn on(reason: Reason) -> Self {
        Evaluation { is_on: true, reason }
    }

    const fn off(reason: Reason) -> Self {
        Evaluation { is_on: false, reason }
    }
}

/// What a flag is: its switch, whom it names, whom it is for, and how many of them see it.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Definition {
    pub(super) is_on: bool,
    pub(super) rollout: Percent,
    pub(super) groups: BTreeSet<String>,
    pub(super) rules: Rules,
}

/// The part of a definition that only this module reads.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rules {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    allow: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    deny: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    when: BTreeMap<String, BTreeSet<String>>,
}

impl Definition {
    /// On, for everyone.
    pub fn on() -> Self {
        Definition {
            is_on: true,
            rollout: Percent::ALL,
            groups: BTreeSet::new(),
            rules: Rules::default(),
        }
    }

    /// Off, for everyone.
    pub fn off() -> Self {
        Definition { is_on: false, ..Definition::on() }
    }

    /// How many of those that it is for see it. Whoever sees it still does when the share grows.
    pub fn rollout(mut self, share: Percent) -> Self {
        self.rollout = share;
        self
    }

    /// This subject sees it, whatever the share.
    pub fn allow(mut self, subject: &str) -> Self {
        self.rules.allow.insert(subject.to_owned());
        self
    }

    /// This subject does not see it.
    pub fn deny(mut self, subject: &str) -> Self {
        self.rules.deny.insert(subject.to_owned());
        self
    }

    /// It is for subjects that have one of these values only. All attributes that are named must
    /// match.
    pub fn when<'v>(mut self, attribute: &str, values: impl IntoIterator<Item = &'v str>) -> Self {
        let values = values.into_iter().map(str::to_owned).collect();
        self.rules.when.insert(attribute.to_owned(), values);
        self
    }

    /// Members of this group see it, whatever the share.
    pub fn group(mut self, group: &str) -> Self {
        self.groups.insert(group.to_owned());
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        let Rules { allow, deny, when } = &self.rules;
        let values = when.values().map(BTreeSet::len).sum::<usize>();
        if allow.len() + deny.len() + values > LIST_MAX || when.len() > ATTRIBUTES_MAX {
            return Err(Error::invalid("a flag names too much; use a group"));
        }
        if self.groups.len() > GROUPS_MAX {
            return Err(Error::invalid(format!("a flag has {GROUPS_MAX} groups at most")));
        }
        self.groups.iter().try_for_each(|group| check_name(group))
    }

    /// What it says of a subject, `is_member` being whether it is in one of the groups; None if
    /// that would decide but is not known.
    pub(super) fn evaluate(
        &self,
        flag: &str,
        subject: &Subject,
        is_member: Option<bool>,
    ) -> Option<Evaluation> {
        let Rules { allow, deny, when } = &self.rules;
        if !self.is_on {
            return Some(Evaluation::off(Reason::SwitchedOff));
        }
        if deny.contains(&subject.id) {
            return Some(Evaluation::off(Reason::Denied));
        }
        if allow.contains(&subject.id) {
            return Some(Evaluation::on(Reason::Allowed));
        }
        if !self.groups.is_empty() && is_member? {
            return Some(Evaluation::on(Reason::Group));
        }
        let is_targeted = when.iter().all(|(attribute, values)| {
            subject.attributes.get(attribute).is_some_and(|value| values.contains(value))
        });
        if !is_targeted {
            return Some(Evaluation::off(Reason::NotTargeted));
        }
        let is_on = bucket(flag, &subject.id) < u64::from(self.rollout.hundredths);
        Some(Evaluation { is_on, reason: Reason::Rollout })
    }
}

/// Says nothing of whom it names.
impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("is_on", &self.is_on)
            .field("rollout", &self.rollout)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

pub(super) fn killed() -> Evaluation {
    Evaluation::off(Reason::Killed)
}

/// Letters, digits, `.`, `-` and `_`.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(Error::invalid("the name of a flag or group is not of letters and digits"));
    }
    Ok(())
}

/// Where a subject falls, evenly and for each flag anew.
fn bucket(flag: &str, subject: &str) -> u64 {
    let mut digest = Sha256::new();
    digest.update(flag.as_bytes());
    digest.update([0]);
    digest.update(subject.as_bytes());
    let digest = digest.finalize();
    let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    number % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(definition: &Definition, flag: &str) -> BTreeSet<usize> {
        let is_on = |number: &usize| {
            let subject = Subject::new(&format!("user-{number}"));
            definition.evaluate(flag, &subject, Some(false)).is_some_and(|it| it.is_on)
        };
        (0..10_000).filter(is_on).collect()
    }

    #[test]
    fn a_share_is_even_and_grows_without_taking_back() {
        let mut before = BTreeSet::new();
        for percent in [0, 1, 10, 50, 100] {
            let share = Definition::on().rollout(Percent::whole(percent).unwrap());
            let now = seen(&share, "a");
            assert!(before.is_subset(&now));
            let wanted = usize::from(percent) * 100;
            assert!(now.len().abs_diff(wanted) < 200, "{percent}: {}", now.len());
            before = now;
        }
        let half = Definition::on().rollout(Percent::whole(50).unwrap());
        assert_ne!(seen(&half, "a"), seen(&half, "b"), "each flag has its own share");
    }

    #[test]
    fn names_come_before_shares() {
        let flag = Definition::on().rollout(Percent::NONE).allow("ann").deny("ben").group("beta");
        let reason = |id: &str, is_member| {
            flag.evaluate("a", &Subject::new(id), is_member).map(|it| (it.is_on, it.reason))
        };
        assert_eq!(reason("ann", None), Some((true, Reason::Allowed)));
        assert_eq!(reason("ben", Some(true)), Some((false, Reason::Denied)));
        assert_eq!(reason("eve", None), None);
        assert_eq!(reason("eve", Some(true)), Some((true, Reason::Group)));
        assert_eq!(reason("eve", Some(false)), Some((false, Reason::Rollout)));
    }

    #[test]
    fn every_attribute_must_match() {
        let flag = Definition::on().when("country", ["DE", "AT"]).when("plan", ["pro"]);
        let is_on = |subject: Subject| flag.evaluate("a", &subject, None).unwrap().is_on;
        let ann = || Subject::new("ann").with("country", "AT");
        assert!(!is_on(ann()));
        assert!(is_on(ann().with("plan", "pro")));
        assert!(!is_on(Subject::new("ann").with("plan", "pro")));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Percent::whole(101).is_err());
        assert!(Percent::hundredths(10_001).is_err());
        assert!(check_name("a:b").is_err());
        assert!(check_name("").is_err());
        let many = (0..=LIST_MAX).map(|number| number.to_string()).collect::<Vec<_>>();
        let crowd = many.iter().fold(Definition::on(), |flag, id| flag.allow(id));
        assert!(crowd.check().is_err());
    }
}
