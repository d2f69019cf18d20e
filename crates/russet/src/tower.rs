//! Layers for tower services, such as those of axum and hyper.
//!
//! | layer | does |
//! |---|---|
//! | [`LimitLayer`] | denies with 429 what a limiter denies, and sets `RateLimit` headers |
//! | [`IdempotencyLayer`] | runs a request with an `Idempotency-Key` once, replays its response |
//! | [`SessionLayer`] | loads the session of every request that names one |
//! | [`SessionRequiredLayer`] | denies with 401 requests without one |
//!
//! The last three work on any store behind the small traits [`Responses`] and [`SessionSource`];
//! the kit's are [`Idempotency`](crate::idempotency::Idempotency) and [`SessionsByCookie`].

mod idempotency;
mod limit;
mod session;
mod stores;

pub use idempotency::{Begun, IdempotencyLayer, IdempotencyService, Responses};
pub use limit::{LimitLayer, LimitService};
pub use session::{
    SessionLayer, SessionRequiredLayer, SessionRequiredService, SessionService, SessionSource,
};
pub use stores::SessionsByCookie;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::pin::Pin;
use std::time::Duration;

/// A response that is not there yet.
pub type ResponseFuture<R, E> = Pin<Box<dyn Future<Output = Result<Response<R>, E>> + Send>>;

/// A response without a body.
fn empty<R: Default>(status: StatusCode) -> Response<R> {
    let mut response = Response::new(R::default());
    *response.status_mut() = status;
    response
}

/// A response that says when to come back: in whole seconds, rounded up.
fn later<R: Default>(status: StatusCode, after: Duration) -> Response<R> {
    let mut response = empty(status);
    let seconds = u64::try_from(after.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
    response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn add_headers(headers: &mut HeaderMap, values: Vec<(&'static str, String)>) {
    for (name, value) in values {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
}
