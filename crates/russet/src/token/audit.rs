//! Where what happens to tokens is reported: a log that lasts, which the store is not.

use super::TokenHandle;
use std::fmt;
use std::sync::Arc;

/// What happened to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It can be used from now on.
    Issued,
    /// It was used up.
    Consumed,
    /// It can't be used any more.
    Revoked,
}

/// Something that happened to a token. It may be reported twice if a call was retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// What happened.
    pub action: Action,
    /// Which one, without a way to use it.
    pub handle: TokenHandle,
}

type Tell = dyn Fn(&AuditEvent) + Send + Sync;

/// The listener, if there is one.
#[derive(Clone, Default)]
pub(super) struct Sink(Option<Arc<Tell>>);

impl Sink {
    pub fn new(receive: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        Sink(Some(Arc::new(receive)))
    }

    pub fn emit(&self, action: Action, handle: &TokenHandle) {
        if let Sink(Some(receive)) = self {
            receive(&AuditEvent { action, handle: handle.clone() });
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Sink" } else { "no sink" })
    }
}
