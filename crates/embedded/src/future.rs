//! A call as a future. It has no runtime: who ends the wait wakes it.

use crate::client::Client;
use crate::error::Error;
use crate::inbox::Awaited;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Makes the result of a call from its replies.
type Finish<T> = fn(&mut Client) -> Result<T, Error>;

/// The reply of a call, to come. Nothing is run before it is first polled. Dropped before it is
/// ready, it ends the call: what has not run will not, and what was run is not taken back.
#[must_use = "a future does nothing before it is polled"]
pub struct ReplyFuture<'c, T> {
    client: &'c mut Client,
    /// None once the result is taken.
    finish: Option<Finish<T>>,
}

impl<'c, T> ReplyFuture<'c, T> {
    pub(crate) fn new(client: &'c mut Client, finish: Finish<T>) -> Self {
        ReplyFuture { client, finish: Some(finish) }
    }
}

impl<T> Future for ReplyFuture<'_, T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(finish) = this.finish else { return Poll::Pending };
        loop {
            let result = match this.client.advance() {
                Ok(true) => finish(this.client),
                Ok(false) => {
                    this.client.set_timer();
                    if this.client.register(Awaited::Letters, context.waker()) {
                        return Poll::Pending;
                    }
                    continue;
                }
                Err(error) => Err(error),
            };
            this.finish = None;
            this.client.end_call();
            return Poll::Ready(result);
        }
    }
}

impl<T> Drop for ReplyFuture<'_, T> {
    fn drop(&mut self) {
        if self.finish.is_some() {
            self.client.end_call();
        }
    }
}

impl<T> fmt::Debug for ReplyFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyFuture").field("client", &self.client.id()).finish_non_exhaustive()
    }
}
