//! Limits in front of a service.

use super::{ResponseFuture, add_headers, empty};
use crate::limit::{Entry, Limiter, Permit, Renewal, Subject};
use crate::time::{Beat, with_heartbeat};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Signs of life per time for which a slot is held.
const RENEWALS_PER_HOLD: u32 = 3;

/// Asks a [`Limiter`] before each request; a slot under a limit of concurrency is held until the
/// response is there, and renewed meanwhile.
///
/// What is denied is answered with 429 and `Retry-After`; if the limiter fails (its configuration
/// is wrong: an outage is decided by its policy) with 503. The subject is chosen from the head of
/// the request; without one the request is not limited.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bytes::Bytes;
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use std::convert::Infallible;
/// # use std::task::{Context, Poll};
/// # #[derive(Clone)]
/// # struct Hello;
/// # impl tower_service::Service<Request<Full<Bytes>>> for Hello {
/// #     type Response = Response<Full<Bytes>>;
/// #     type Error = Infallible;
/// #     type Future = std::future::Ready<Result<Self::Response, Infallible>>;
/// #     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
/// #         Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
/// #         std::future::ready(Ok(Response::new(Full::from("hello"))))
/// #     }
/// # }
/// use russet::limit::{Limit, Limiter, Outage, Subject};
/// use russet::tower::LimitLayer;
/// use std::time::Duration;
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// let kit = russet::Kit::embedded(russet::Options::default())?;
/// let limits = [Limit::window("api", 1, Duration::from_secs(3600))?];
/// let limiter = Limiter::new(&kit, "api", limits, Outage::Allow)?;
/// let layer = LimitLayer::new(limiter, |head: &http::request::Parts| {
///     head.headers.get("x-api-key").map(|key| Subject::from(key.as_bytes()))
/// });
/// // `Hello` answers every request.
/// let mut service = layer.layer(Hello);
/// for status in [200, 429] {
///     let request = Request::builder().header("x-api-key", "k1").body(Full::default())?;
///     assert_eq!(service.call(request).await?.status(), status);
/// }
/// # Ok(())
/// # }
/// ```
pub struct LimitLayer<F> {
    limiter: Limiter,
    subject: Arc<F>,
}

impl<F: Fn(&Parts) -> Option<Subject>> LimitLayer<F> {
    /// `subject` says whose limits a request counts under. Requests of which it says nothing go on.
    pub fn new(limiter: Limiter, subject: F) -> Self {
        LimitLayer { limiter, subject: Arc::new(subject) }
    }
}

impl<F> Clone for LimitLayer<F> {
    fn clone(&self) -> Self {
        LimitLayer { limiter: self.limiter.clone(), subject: self.subject.clone() }
    }
}

impl<F> std::fmt::Debug for LimitLayer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LimitLayer").field(&self.limiter).finish()
    }
}

impl<S, F> Layer<S> for LimitLayer<F> {
    type Service = LimitService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        LimitService { inner, layer: self.clone() }
    }
}

/// A service with limits.
#[derive(Debug)]
pub struct LimitService<S, F> {
    inner: S,
    layer: LimitLayer<F>,
}

impl<S: Clone, F> Clone for LimitService<S, F> {
    fn clone(&self) -> Self {
        LimitService { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, F, B, R> Service<Request<B>> for LimitService<S, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    F: Fn(&Parts) -> Option<Subject>,
    B: Send + 'static,
    R: Default + Send,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was polled is the one that is ready.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let (head, body) = request.into_parts();
        let subject = (self.layer.subject)(&head);
        let request = Request::from_parts(head, body);
        let limiter = self.layer.limiter.clone();
        Box::pin(async move {
            let Some(subject) = subject else {
                return inner.call(request).await;
            };
            let decision = match limiter.check(subject, 1, None).await {
                Ok(decision) => decision,
                Err(error) => {
                    tracing::error!(limiter = limiter.name(), %error, "a limit can't be checked");
                    return Ok(empty(StatusCode::SERVICE_UNAVAILABLE));
                }
            };
            let headers = decision.headers();
            let mut response = match limiter.hold(decision) {
                Entry::Admitted(permit) => hold(&permit, inner.call(request)).await?,
                Entry::Denied(_denied) => empty(StatusCode::TOO_MANY_REQUESTS),
            };
            add_headers(response.headers_mut(), headers);
            Ok(response)
        })
    }
}

/// Renews the slot for as long as the service takes.
async fn hold<T>(permit: &Permit, work: impl Future<Output = T>) -> T {
    let Some(hold) = permit.hold_min() else { return work.await };
    with_heartbeat(permit.time(), hold / RENEWALS_PER_HOLD, work, || async {
        match permit.renew().await {
            Ok(Renewal::Lost) => Beat::Stop,
            // What fails once may get through the next time.
            Ok(Renewal::Renewed) | Err(_) => Beat::GoOn,
        }
    })
    .await
}
