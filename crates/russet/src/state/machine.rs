//! Records with a declared state, a version and fields, which change together or not at all.

use super::{FAMILY, FIELDS_MAX, checked_ttl};
use crate::error::{Error, Result};
use crate::key::{Key, Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::reply::{Envelope, Reply};
use crate::retry::RequestId;
use crate::step::{Safe, Step, WithRequestId};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub(super) static OPEN: Step<WithRequestId> = Step::new("state_open", include_str!("open.lua"));
pub(super) static APPLY: Step<WithRequestId> = Step::new("state_apply", include_str!("apply.lua"));
pub(super) static LOAD: Step<Safe> = Step::read_only("state_load", include_str!("load.lua"));

const CONDITIONS_MAX: usize = 32;
/// Fields that a change can't name.
const RESERVED: [&str; 4] = ["state", "version", "created_at_ms", "updated_at_ms"];

/// The states of a machine; see [`machine!`](crate::machine).
pub trait States: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// Part of the keys.
    const MACHINE: &'static str;
    /// In the order of their declaration.
    const ALL: &'static [Self];

    /// As it is stored: its name in the declaration.
    fn name(self) -> &'static str;

    /// The state of this name; None if the machine has none, or no longer.
    fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.name().as_bytes() == name)
    }
}

/// A declared transition; see [`machine!`](crate::machine).
pub trait Transition {
    /// Of which machine it is.
    type States: States;
    /// For logs.
    const NAME: &'static str;
    /// The states that it can be made from.
    const FROM: &'static [Self::States];
    /// The state that it leads to.
    const TO: Self::States;
}

/// Declares the states of a machine and its transitions: a type each. There are no others.
///
/// ```
/// russet::machine! {
///     /// A door.
///     pub enum Door { Open, Shut, Locked }
///     pub Close: Open => Shut;
///     pub Unlock: Locked => Shut;
///     /// Also from the inside.
///     pub Lock: Open | Shut => Locked;
/// }
/// use russet::state::Transition;
/// assert_eq!(Lock::FROM, [Door::Open, Door::Shut]);
/// ```
#[macro_export]
macro_rules! machine {
    (
        $(#[$about:meta])*
        $vis:vis enum $states:ident { $($(#[$state_about:meta])* $state:ident),+ $(,)? }
        $($(#[$transition_about:meta])* $transition_vis:vis $transition:ident:
            $($from:ident)|+ => $to:ident;)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $states { $($(#[$state_about])* $state),+ }

        impl $crate::state::States for $states {
            const MACHINE: &'static str = stringify!($states);
            const ALL: &'static [Self] = &[$($states::$state),+];

            fn name(self) -> &'static str {
                match self {
                    $($states::$state => stringify!($state)),+
                }
            }
        }

        $(
            $(#[$transition_about])*
            #[derive(Clone, Copy, Debug)]
            $transition_vis struct $transition;

            impl $crate::state::Transition for $transition {
                type States = $states;
                const NAME: &'static str = stringify!($transition);
                const FROM: &'static [$states] = &[$($states::$from),+];
                const TO: $states = $states::$to;
            }
        )+
    };
}

/// What must hold of a field for a transition to be made, looked at by the store itself. A field
/// that is not there counts as 0 in comparisons of numbers.
#[derive(Clone)]
pub struct Condition {
    kind: &'static str,
    field: String,
    value: Vec<u8>,
}

impl Condition {
    fn new(kind: &'static str, field: &str, value: impl AsRef<[u8]>) -> Self {
        Condition { kind, field: field.to_owned(), value: value.as_ref().to_vec() }
    }

    /// It is this value, byte for byte.
    pub fn equals(field: &str, value: impl AsRef<[u8]>) -> Self {
        Condition::new("eq", field, value)
    }

    /// It is another value, or not there.
    pub fn differs(field: &str, value: impl AsRef<[u8]>) -> Self {
        Condition::new("ne", field, value)
    }

    /// It is a number below this.
    pub fn less(field: &str, than: i64) -> Self {
        Condition::new("lt", field, than.to_string())
    }

    /// It is a number up to this.
    pub fn at_most(field: &str, most: i64) -> Self {
        Condition::new("le", field, most.to_string())
    }

    /// It is a number above this.
    pub fn more(field: &str, than: i64) -> Self {
        Condition::new("gt", field, than.to_string())
    }

    /// It is a number from this on.
    pub fn at_least(field: &str, least: i64) -> Self {
        Condition::new("ge", field, least.to_string())
    }

    /// It is there.
    pub fn present(field: &str) -> Self {
        Condition::new("has", field, "")
    }

    /// It is not there.
    pub fn absent(field: &str) -> Self {
        Condition::new("lacks", field, "")
    }
}

/// Says nothing of the value.
impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({} {})", self.kind, self.field)
    }
}

/// A transition with what changes along with the state.
#[must_use]
pub struct Change<T> {
    version: Option<u64>,
    conditions: Vec<Condition>,
    changes: Vec<(&'static str, String, Vec<u8>)>,
    ttl: Option<Duration>,
    transition: PhantomData<T>,
}

impl<T: Transition> Change<T> {
    /// The transition alone, whatever the version.
    pub fn new(_transition: T) -> Self {
        Change {
            version: None,
            conditions: Vec::new(),
            changes: Vec::new(),
            ttl: None,
            transition: PhantomData,
        }
    }

    /// Only if the record was not changed since one has read this version.
    pub fn at_version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Only if this holds too; 32 conditions at most.
    pub fn require(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Sets a field, along with the state.
    pub fn set(mut self, field: &str, value: impl AsRef<[u8]>) -> Self {
        self.changes.push(("set", field.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Adds to a number; one that is not there is 0.
    pub fn add(mut self, field: &str, by: i64) -> Self {
        self.changes.push(("add", field.to_owned(), by.to_string().into_bytes()));
        self
    }

    /// Removes a field, along with the state.
    pub fn remove(mut self, field: &str) -> Self {
        self.changes.push(("remove", field.to_owned(), Vec::new()));
        self
    }

    /// How long the record lives from now on; without it, as long as it would have.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    fn check(&self) -> Result<()> {
        if self.changes.len() > FIELDS_MAX || self.conditions.len() > CONDITIONS_MAX {
            return Err(Error::invalid("too many changes or conditions in one transition"));
        }
        self.changes.iter().try_for_each(|(_, field, _)| check_field(field))?;
        if self.version == Some(0) {
            return Err(Error::invalid("versions begin at 1"));
        }
        self.ttl.map_or(Ok(()), |ttl| checked_ttl(ttl).map(drop))
    }
}

impl<T: Transition> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change({})", T::NAME)
    }
}

/// What came of opening a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Opened<S> {
    /// It is in the state that was given, with version 1.
    Opened,
    /// There is one, and it stays as it is.
    Exists {
        /// Of that one.
        state: S,
        /// Of that one.
        version: u64,
    },
}

/// A transition that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved<S> {
    /// After the transition.
    pub state: S,
    /// After the transition.
    pub version: u64,
    /// What the fields that were added to came to, in the order of the change.
    pub sums: Vec<i64>,
}

/// What came of a transition. All but the first have changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied<S> {
    /// It was made.
    Moved(Moved<S>),
    /// The transition does not start from there.
    WrongState {
        /// As it is.
        state: S,
        /// As it is.
        version: u64,
    },
    /// Another change came before.
    WrongVersion {
        /// As it is.
        state: S,
        /// To be read again before the next attempt.
        version: u64,
    },
    /// The condition on this field does not hold.
    Refused {
        /// Of the first that does not.
        field: String,
    },
    /// There is no such record, or no longer.
    Missing,
}

/// A record as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Record<S> {
    /// Where it stands.
    pub state: S,
    /// Raised by every change.
    pub version: u64,
    /// By the server's clock, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When it was changed last, by the same clock.
    pub updated_at_ms: i64,
    /// All others.
    pub fields: BTreeMap<String, Vec<u8>>,
}

/// Says nothing of its fields.
impl<S: States> fmt::Debug for Record<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} v{})", self.state.name(), self.version)
    }
}

stats! {
    /// What a handle and its clones have seen in this process.
    MachineStats counted by Counts {
        /// Records that are new.
        opened,
        /// Records that were not opened, for they were there.
        exists,
        /// Transitions that were made.
        moved,
        /// Transitions that were refused for the state.
        wrong_state,
        /// Transitions that were refused for the version.
        wrong_version,
        /// Transitions that were refused for a condition.
        condition_failed,
        /// Transitions of records that were not there.
        missing,
    }
}

/// Records of one machine, one per scope; see [the module](super).
#[derive(Clone)]
pub struct Machine<S> {
    kit: Kit,
    ttl: Duration,
    counts: Arc<Counts>,
    states: PhantomData<S>,
}

impl<S: States> Machine<S> {
    /// `ttl` is how long a record lives from when it is opened; a [`Change`] can give it another.
    pub fn new(kit: &Kit, ttl: Duration) -> Result<Self> {
        let (ttl, counts) = (checked_ttl(ttl)?, Arc::default());
        Ok(Machine { kit: kit.clone(), ttl, counts, states: PhantomData })
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> MachineStats {
        self.counts.stats()
    }

    fn keys(&self, id: impl Into<Scope>) -> Result<(Keys, Key)> {
        let keys = self.kit.keys(FAMILY, id)?;
        let key = keys.key(S::MACHINE);
        Ok((keys, key))
    }

    /// Creates a record, with version 1.
    pub async fn open<F: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        id: impl Into<Scope>,
        state: S,
        fields: impl IntoIterator<Item = (F, V)>,
        request: Option<&RequestId>,
    ) -> Result<Opened<S>> {
        let (keys, key) = self.keys(id)?;
        let call = self.kit.step_of_request(&OPEN, &keys, request);
        let call = call.bound_to(key.as_bytes()).key(key);
        let mut call = call.arg(check_state(state)?).arg(self.ttl);
        for (index, (field, value)) in fields.into_iter().enumerate() {
            check_field(field.as_ref())?;
            if index >= FIELDS_MAX {
                return Err(Error::invalid(format!("a record opens with {FIELDS_MAX} fields")));
            }
            call = call.arg(field.as_ref()).arg(value.as_ref());
        }
        let mut envelope = call.run().await?;
        match envelope.status() {
            "OPENED" => {
                self.counts.opened.add(1);
                Ok(Opened::Opened)
            }
            "EXISTS" => {
                self.counts.exists.add(1);
                let state = known(&envelope.text("state")?)?;
                Ok(Opened::Exists { state, version: envelope.count("version")? })
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Makes a transition: state, version and fields change together or not at all.
    pub async fn apply<T: Transition<States = S>>(
        &self,
        id: impl Into<Scope>,
        change: Change<T>,
        request: Option<&RequestId>,
    ) -> Result<Applied<S>> {
        change.check()?;
        let (keys, key) = self.keys(id)?;
        let from = T::FROM.iter().copied().map(check_state).collect::<Result<Vec<_>>>()?;
        let call = self.kit.step_of_request(&APPLY, &keys, request);
        let call = call.bound_to(key.as_bytes()).key(key);
        let call =
            call.arg(check_state(T::TO)?).arg(from.join(",")).arg(change.version.unwrap_or(0));
        let mut call = call.arg(change.ttl.unwrap_or_default()).arg(change.conditions.len());
        for Condition { kind, field, value } in &change.conditions {
            call = call.arg(*kind).arg(field).arg(value);
        }
        for (kind, field, value) in &change.changes {
            call = call.arg(*kind).arg(field).arg(value);
        }
        let applied = applied::<T>(call.run().await?)?;
        self.counts.count(&applied);
        Ok(applied)
    }

    /// The record; [`Error::Corrupt`] if it is not of the form that this writes.
    pub async fn load(&self, id: impl Into<Scope>) -> Result<Option<Record<S>>> {
        let (_, key) = self.keys(id)?;
        let mut envelope = self.kit.step(&LOAD).key(key).run().await?;
        if envelope.is("MISSING") {
            return Ok(None);
        }
        let mut fields = BTreeMap::new();
        let mut items = envelope.list("fields")?.into_iter();
        while let (Some(name), Some(value)) = (items.next(), items.next()) {
            let name = name.into_bytes()?.unwrap_or_default();
            let name = String::from_utf8(name).map_err(|_bytes| corrupt("a name of a field"))?;
            fields.insert(name, value.into_bytes()?.unwrap_or_default());
        }
        let mut taken = |name: &str| {
            let value = fields.remove(name).ok_or_else(|| corrupt(name))?;
            String::from_utf8(value).map_err(|_bytes| corrupt(name))
        };
        let state = known(taken("state")?.as_bytes())?;
        let version = taken("version")?.parse().map_err(|_text| corrupt("version"))?;
        let mut time = |name: &str| taken(name)?.parse().map_err(|_text| corrupt(name));
        let (created_at_ms, updated_at_ms) = (time("created_at_ms")?, time("updated_at_ms")?);
        Ok(Some(Record { state, version, created_at_ms, updated_at_ms, fields }))
    }
}

impl<S: States> fmt::Debug for Machine<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("states", &S::MACHINE)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl Counts {
    fn count<S>(&self, applied: &Applied<S>) {
        let counter = match applied {
            Applied::Moved(_) => &self.moved,
            Applied::WrongState { .. } => &self.wrong_state,
            Applied::WrongVersion { .. } => &self.wrong_version,
            Applied::Refused { .. } => &self.condition_failed,
            Applied::Missing => &self.missing,
        };
        counter.add(1);
        if !matches!(applied, Applied::Moved(_)) {
            observe::count("redis.state.transition.refused.count", "state", 1);
        }
    }
}

fn applied<T: Transition>(mut envelope: Envelope) -> Result<Applied<T::States>> {
    match envelope.status() {
        "APPLIED" => {
            let sums = envelope.list("sums")?.into_iter().map(Reply::into_int);
            let (version, sums) = (envelope.count("version")?, sums.collect::<Result<_>>()?);
            Ok(Applied::Moved(Moved { state: T::TO, version, sums }))
        }
        "WRONG_STATE" => Ok(Applied::WrongState {
            state: known(&envelope.text("state")?)?,
            version: envelope.count("version")?,
        }),
        "WRONG_VERSION" => Ok(Applied::WrongVersion {
            state: known(&envelope.text("state")?)?,
            version: envelope.count("version")?,
        }),
        "REFUSED" => Ok(Applied::Refused { field: envelope.string("field")? }),
        "MISSING" => Ok(Applied::Missing),
        _ => Err(envelope.unexpected()),
    }
}

/// Names of states are listed with commas between them.
fn check_state<S: States>(state: S) -> Result<&'static str> {
    match state.name() {
        name if name.is_empty() || name.contains(',') => {
            Err(Error::invalid(format!("a state can't have the name {name:?}")))
        }
        name => Ok(name),
    }
}

fn check_field(field: &str) -> Result<()> {
    if field.is_empty() || RESERVED.contains(&field) {
        return Err(Error::invalid(format!("a field can't have the name {field:?}")));
    }
    Ok(())
}

fn known<S: States>(name: &[u8]) -> Result<S> {
    S::from_name(name).ok_or_else(|| corrupt("a state that is not declared"))
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("record: {what}"))
}
