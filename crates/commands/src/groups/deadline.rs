//! The arguments in which keys and fields are given an end: EXPIRE, HEXPIRE and their kin.

use crate::error::Refusal;
use russet_base::escape::escape;
use russet_engine::keys::Keys;
use russet_engine::types::element::IntText;

/// Whether a time is told in seconds or in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Millis,
}

/// Whether a time counts from now or from the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Now,
    Epoch,
}

/// Records the end that a key was given.
pub fn record_expiry(keys: &mut Keys, key: &[u8], at_ms: i64) {
    if keys.is_recording() {
        keys.record([b"PEXPIREAT", key, IntText::new(at_ms).as_bytes()]);
    }
}

/// NX, XX, GT, LT.
#[derive(Clone, Copy, Default)]
pub struct Conditions {
    if_none: bool,
    if_any: bool,
    if_later: bool,
    if_sooner: bool,
}

impl Conditions {
    pub fn take(&mut self, arg: &[u8]) -> Result<(), Refusal> {
        match arg.to_ascii_lowercase().as_slice() {
            b"nx" => self.if_none = true,
            b"xx" => self.if_any = true,
            b"gt" => self.if_later = true,
            b"lt" => self.if_sooner = true,
            _ => {
                let arg = escape(arg);
                return Err(Refusal::text(format!("ERR Unsupported option {arg}")));
            }
        }
        Ok(())
    }

    /// Whether those that were taken can hold together.
    pub fn check(self) -> Result<(), Refusal> {
        if self.if_none && (self.if_any || self.if_later || self.if_sooner) {
            return Err(Refusal::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if self.if_later && self.if_sooner {
            return Err(Refusal::text("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(())
    }

    /// What has no end counts as ending after all others.
    pub fn allow(self, current: Option<i64>, at_ms: i64) -> bool {
        match current {
            None => !self.if_any && !self.if_later,
            Some(current) => {
                let is_later_enough = !self.if_later || at_ms > current;
                let is_sooner_enough = !self.if_sooner || at_ms < current;
                !self.if_none && is_later_enough && is_sooner_enough
            }
        }
    }
}
