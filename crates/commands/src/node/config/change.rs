//! CONFIG SET: all of it or nothing, in Redis's own terms.

use std::sync::PoisonError;

use super::directive::Directive;
use super::error::UNSUPPORTED;
use super::spec::Change;
use super::store::Config;
use super::table;
use super::value::Value;
use smallvec::SmallVec;

/// So many directives are set at once without a list on the heap.
const KNOWN_INLINE: usize = 4;

/// Where a request to change comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// Over loopback or a Unix socket, or from the server itself.
    Local,
    Remote,
}

/// One checked change.
#[derive(Debug)]
struct Step {
    directive: Directive,
    new: Value,
    old: Value,
}

/// What was changed, to be put back if what was to follow can't be done.
#[derive(Debug, Default)]
pub struct Undo(Vec<Step>);

impl Config {
    /// Whether [`Config::set`] would take all of these, as far as that can be told beforehand.
    pub fn check_all(&self, pairs: &[(&[u8], &[u8])], requester: Requester) -> Result<(), String> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check(pairs, requester).map(drop)
    }

    /// Puts back what was set, unless it was set again since.
    pub fn undo(&self, undo: Undo, apply: &mut dyn FnMut(Directive) -> Result<(), String>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        for Step { directive, new, old } in undo.0.into_iter().rev() {
            if self.load(directive) == new {
                self.store(directive, old);
                // It held before; if it can't be had again, what is stored is still right.
                let _ = apply(directive);
            }
        }
    }

    /// Sets every pair of name and value, or none. `apply` is called for each directive that
    /// changed, when all are in place; if it refuses one, everything is put back, and it is
    /// called again for those that it had accepted. The error is the whole reply.
    pub fn set(
        &self,
        pairs: &[(&[u8], &[u8])],
        requester: Requester,
        apply: &mut dyn FnMut(Directive) -> Result<(), String>,
    ) -> Result<Undo, String> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = self.check(pairs, requester)?;
        for step in &steps {
            self.store(step.directive, step.new.clone());
        }
        let is_change = |step: &Step| step.new != step.old || step.directive.spec().is_reread;
        let named = steps.iter().zip(pairs.iter().map(|(name, _)| *name));
        let mut changed: Vec<(&Step, &[u8])> = named.filter(|(step, _)| is_change(step)).collect();
        // What ends or begins the log can't be undone: nothing that may be refused comes behind it.
        changed.sort_by_key(|(step, _)| step.directive == Directive::AppendOnly);
        for (index, (step, name)) in changed.iter().enumerate() {
            let Err(reason) = apply(step.directive) else { continue };
            // Backwards, as an alias may have set the same directive twice.
            for step in steps.iter().rev() {
                self.store(step.directive, step.old.clone());
            }
            for (applied, _) in &changed[..index] {
                // It held before; if it can't be had again, what is stored is still right.
                let _ = apply(applied.directive);
            }
            return Err(failed(name, &reason));
        }
        Ok(Undo(steps))
    }

    /// Does something while no CONFIG SET is under way, so that none is seen half-made.
    pub fn while_unchanged<T>(&self, run: impl FnOnce() -> T) -> T {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        run()
    }

    /// One step for each pair, in their order.
    fn check(&self, pairs: &[(&[u8], &[u8])], requester: Requester) -> Result<Vec<Step>, String> {
        let mut known: SmallVec<[(Directive, &'static str); KNOWN_INLINE]> = SmallVec::new();
        for (name, _) in pairs {
            let Some((directive, spelled)) = table::exact(name) else {
                let name = one_line(name);
                return Err(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                ));
            };
            self.may_change(directive, requester).map_err(|reason| failed(name, reason))?;
            // COMPAT: a directive and its alias are two parameters; the last one holds.
            if known.iter().any(|(_, earlier)| *earlier == spelled) {
                return Err(failed(name, "duplicate parameter"));
            }
            known.push((directive, spelled));
        }
        let mut steps: Vec<Step> = Vec::with_capacity(pairs.len());
        for ((directive, _), (name, value)) in known.into_iter().zip(pairs) {
            let earlier = steps.iter().rev().find(|step| step.directive == directive);
            let old = earlier.map_or_else(|| self.load(directive), |step| step.new.clone());
            let new = parse(directive, value, &old).map_err(|reason| failed(name, &reason))?;
            steps.push(Step { directive, new, old });
        }
        Ok(steps)
    }

    fn may_change(&self, directive: Directive, requester: Requester) -> Result<(), &'static str> {
        match directive.spec().change {
            Change::Anytime => Ok(()),
            Change::AtStart => Err("can't set immutable config"),
            Change::Protected => match self.choice(Directive::EnableProtectedConfigs) {
                "yes" => Ok(()),
                "local" if requester == Requester::Local => Ok(()),
                _ => Err("can't set protected config"),
            },
        }
    }
}

fn parse(directive: Directive, value: &[u8], old: &Value) -> Result<Value, String> {
    let spec = directive.spec();
    // COMPAT: arguments are apart by exactly one space; two make an empty argument between.
    let args: SmallVec<[&[u8]; 1]> = match value {
        _ if !spec.takes_many() => SmallVec::from([value]),
        b"" => SmallVec::new(),
        _ => value.split(|byte| *byte == b' ').collect(),
    };
    let new = spec.parse(&args, old)?;
    match spec.unsupported(&new) {
        Some(what) => Err(format!("{what} {UNSUPPORTED}")),
        None => Ok(new),
    }
}

fn failed(name: &[u8], reason: &str) -> String {
    let name = one_line(name);
    let reason = one_line(reason.as_bytes());
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
}

/// A line break would end the reply.
fn one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}
