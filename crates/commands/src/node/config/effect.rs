//! What the log says of directives that this version does not obey: those that promise something at
//! every start, the others once for each start that names them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::amounts::{ClientClass, read_buffer_limits};
use super::directive::Directive;
use super::load::REPLICA_LIMIT;
use super::spec::{Effect, Spec};
use super::store::Config;
use super::value::Value;

/// Said of a directive without effect.
pub(super) const NO_EFFECT: &str = "has no effect in this version of Russet";

/// Which directives the log has named already, each at its index in `Directive::ALL`.
#[derive(Debug)]
pub(super) struct Reported([AtomicBool; Directive::COUNT]);

impl Default for Reported {
    fn default() -> Self {
        Reported(std::array::from_fn(|_| AtomicBool::new(false)))
    }
}

impl Reported {
    /// Whether this is the first report of the directive.
    fn is_first(&self, directive: Directive) -> bool {
        !self.0[directive as usize].swap(true, Ordering::Relaxed)
    }
}

impl Spec {
    /// What is so instead of what the value promises, if it promises what does not happen.
    pub(super) fn gap(&self, value: &Value) -> Option<&'static str> {
        match self.effect {
            Effect::Promise { kept, gap } if !kept.contains(&self.print(value).as_str()) => {
                Some(gap)
            }
            _ => None,
        }
    }
}

impl Config {
    /// The warnings of a start: one for each promise that is not kept, whether by a file, an option
    /// or a default, and one that names what was given without effect.
    pub fn start_warnings(&self) -> Vec<String> {
        let promises = Directive::ALL.iter().filter_map(|directive| {
            let warning = self.promise_warning(*directive)?;
            self.reported.is_first(*directive).then_some(warning)
        });
        let mut warnings: Vec<String> = promises.collect();
        if !self.given_without_effect.is_empty() {
            for name in &self.given_without_effect {
                let _is_first = Directive::named(name.as_bytes())
                    .is_some_and(|directive| self.reported.is_first(directive));
            }
            let names = self.given_without_effect.join(", ");
            warnings.push(format!("No effect in this version of Russet: {names}"));
        }
        warnings
    }

    /// What the log says after CONFIG SET of the directive, the first time that there is reason to.
    pub fn set_warning(&self, directive: Directive) -> Option<String> {
        let warning = match directive.spec().effect {
            Effect::Full => self.replica_limit_warning(directive),
            Effect::None => Some(format!("{} {NO_EFFECT}", directive.name())),
            Effect::Promise { .. } => self.promise_warning(directive),
        };
        warning.filter(|_| self.reported.is_first(directive))
    }

    /// Of the limits of output buffers, that of replicas is the limit of nobody.
    fn replica_limit_warning(&self, directive: Directive) -> Option<String> {
        if directive != Directive::ClientOutputBufferLimit {
            return None;
        }
        let default = read_buffer_limits(directive.spec().default_value().bytes());
        let limit = self.output_buffer_limit(ClientClass::Replica);
        let is_set = limit != default[ClientClass::Replica as usize];
        is_set.then(|| format!("{REPLICA_LIMIT} {NO_EFFECT}"))
    }

    fn promise_warning(&self, directive: Directive) -> Option<String> {
        let (spec, value) = (directive.spec(), self.load(directive));
        let gap = spec.gap(&value)?;
        let shown = match spec.is_secret {
            true => String::new(),
            false => format!("'{}' ", spec.print(&value)),
        };
        Some(format!("{} {shown}{NO_EFFECT}: {gap}", directive.name()))
    }
}
