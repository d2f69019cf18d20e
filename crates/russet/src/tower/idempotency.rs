//! Requests that run once, by the key in their header.

use super::{ResponseFuture, empty, later};
use crate::backend::Pending;
use crate::key::Scope;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// The header that names a request.
const KEY_HEADER: &str = "idempotency-key";
/// Says that a response is one that was given before.
const REPLAYED_HEADER: &str = "idempotency-replayed";
/// The longest key.
const KEY_BYTES_MAX: usize = 256;
/// The longest body, of request or response, by default.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Headers that are about one transfer of a response, and are not replayed.
const NOT_REPLAYED: [&str; 5] =
    ["connection", "transfer-encoding", "content-length", "date", "set-cookie"];

/// Where responses are kept.
pub trait Responses: Send + Sync + 'static {
    /// What whoever runs the request holds until its response is kept.
    type Claim: Send + Sync + 'static;

    /// Claims a request of a subject by its key and fingerprint.
    fn begin<'a>(
        &'a self,
        subject: Scope,
        key: &'a [u8],
        fingerprint: &'a [u8],
    ) -> Pending<'a, Begun<Self::Claim>>;

    /// Keeps the response, for whoever sends the request again.
    fn complete<'a>(&'a self, claim: &'a Self::Claim, response: Vec<u8>) -> Pending<'a, ()>;

    /// Keeps the claim while its request runs, until this future is dropped. A store whose claims
    /// do not run out has nothing to do.
    fn keep_alive<'a>(&'a self, claim: &'a Self::Claim) -> Pending<'a, ()> {
        let _ = claim;
        Box::pin(std::future::pending())
    }

    /// The request has failed, and may be tried again.
    fn abandon<'a>(&'a self, claim: &'a Self::Claim, reason: &'a str) -> Pending<'a, ()>;
}

/// What came of claiming.
#[derive(Debug)]
pub enum Begun<C> {
    /// It is ours to run.
    Claimed(C),
    /// It has run: this was kept.
    Replay(Vec<u8>),
    /// It is being run.
    InFlight {
        /// For the `Retry-After` header.
        retry_after: Duration,
    },
    /// The key was used for another request.
    Mismatch,
}

/// The head of a response as it is kept: a line of JSON; the body follows as it is.
#[derive(Serialize, Deserialize)]
struct Recorded {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
}

/// Runs each request with an `Idempotency-Key` header once, and gives its response to all who send
/// it again, with `Idempotency-Replayed: true`.
///
/// | case | answer |
/// |---|---|
/// | no key | the service's |
/// | first with this key | the service's, which is kept; with 5xx the key is free again |
/// | again, with the same method, path and body | the one that is kept |
/// | again, with another | 422 |
/// | again, while the first is running, however long that takes | 409 and `Retry-After` |
/// | a key or body that is too long | 400, 413 |
/// | the store can't be reached | 503: it is not known whether it has run |
///
/// Keys belong to a subject: those of one user never meet those of another. A request without a
/// subject is answered with 401. Cookies are not replayed.
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
/// use russet::idempotency::{Idempotency, Ttls};
/// use russet::key::Scope;
/// use russet::tower::IdempotencyLayer;
/// use std::time::Duration;
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let ttls = Ttls { claim: Duration::from_secs(30), result: Duration::from_secs(86_400) };
/// let store = Idempotency::new(&kit, "orders", ttls)?;
/// let layer = IdempotencyLayer::new(store, |head: &http::request::Parts| {
///     head.headers.get("x-user").map(|user| Scope::from(user.as_bytes()))
/// });
/// // `Hello` answers every request.
/// let mut service = layer.layer(Hello);
/// for is_replayed in [false, true] {
///     let order = Request::post("/orders").header("x-user", "ann").header("idempotency-key", "7");
///     let response = service.call(order.body(Full::from("3 apples"))?).await?;
///     assert_eq!(response.headers().contains_key("idempotency-replayed"), is_replayed);
/// }
/// # Ok(())
/// # }
/// ```
pub struct IdempotencyLayer<T, F> {
    store: Arc<T>,
    subject: Arc<F>,
    body_bytes_max: usize,
}

impl<T: Responses, F: Fn(&Parts) -> Option<Scope>> IdempotencyLayer<T, F> {
    /// `subject` says whose request it is, by its head; None is answered with 401.
    pub fn new(store: T, subject: F) -> Self {
        let (store, subject) = (Arc::new(store), Arc::new(subject));
        IdempotencyLayer { store, subject, body_bytes_max: BODY_BYTES_MAX }
    }

    /// The longest body of a request with a key, and of a response that is kept; 64 KiB by default.
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }
}

impl<T, F> Clone for IdempotencyLayer<T, F> {
    fn clone(&self) -> Self {
        let (store, subject) = (self.store.clone(), self.subject.clone());
        IdempotencyLayer { store, subject, body_bytes_max: self.body_bytes_max }
    }
}

impl<T, F> fmt::Debug for IdempotencyLayer<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyLayer")
    }
}

impl<S, T, F> Layer<S> for IdempotencyLayer<T, F> {
    type Service = IdempotencyService<S, T, F>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyService { inner, layer: self.clone() }
    }
}

/// A service whose requests run once.
#[derive(Debug)]
pub struct IdempotencyService<S, T, F> {
    inner: S,
    layer: IdempotencyLayer<T, F>,
}

impl<S: Clone, T, F> Clone for IdempotencyService<S, T, F> {
    fn clone(&self) -> Self {
        IdempotencyService { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S, T, F, B, R> Service<Request<B>> for IdempotencyService<S, T, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    T: Responses,
    F: Fn(&Parts) -> Option<Scope>,
    B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + From<Bytes>
        + Send
        + 'static,
    R: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Default
        + From<Bytes>
        + Send
        + 'static,
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
        let Some(key) = head.headers.get(KEY_HEADER).cloned() else {
            return Box::pin(inner.call(Request::from_parts(head, body)));
        };
        let subject = (self.layer.subject)(&head);
        let (store, bytes_max) = (self.layer.store.clone(), self.layer.body_bytes_max);
        Box::pin(async move {
            let Some(subject) = subject else {
                return Ok(empty(StatusCode::UNAUTHORIZED));
            };
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Ok(empty(StatusCode::BAD_REQUEST));
            }
            let body = match read(body, bytes_max).await {
                Ok(body) => body,
                Err(status) => return Ok(empty(status)),
            };
            let fingerprint = fingerprint(&head, &body);
            let claim = match store.begin(subject, key.as_bytes(), &fingerprint).await {
                Ok(Begun::Claimed(claim)) => claim,
                Ok(Begun::Replay(kept)) => return Ok(replay(&kept)),
                Ok(Begun::InFlight { retry_after }) => {
                    return Ok(later(StatusCode::CONFLICT, retry_after));
                }
                Ok(Begun::Mismatch) => return Ok(empty(StatusCode::UNPROCESSABLE_ENTITY)),
                Err(error) => {
                    tracing::error!(%error, "an idempotency key can't be claimed");
                    return Ok(later(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(1)));
                }
            };
            let work = async {
                match inner.call(Request::from_parts(head, B::from(body))).await {
                    Ok(response) => Ok(keep(&*store, &claim, response, bytes_max).await),
                    Err(error) => {
                        abandon(&*store, &claim, "the service failed").await;
                        Err(error)
                    }
                }
            };
            // However long it takes, nobody else runs it meanwhile.
            tokio::pin!(work);
            tokio::select! {
                biased;
                done = &mut work => done,
                _lost = store.keep_alive(&claim) => work.await,
            }
        })
    }
}

/// The whole body, or the status that says why not.
async fn read<B>(body: B, bytes_max: usize) -> Result<Bytes, StatusCode>
where
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_error) => Err(StatusCode::BAD_REQUEST),
    }
}

/// Of what makes two requests the same.
fn fingerprint(head: &Parts, body: &[u8]) -> Vec<u8> {
    let mut digest = Sha256::new();
    for part in [head.method.as_str(), &head.uri.to_string()] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    digest.update(body);
    digest.finalize().to_vec()
}

/// Keeps a response and gives it on. One that is too long is given on to nobody, since a repetition
/// could not be answered with it: all get the same error, for the service has run.
async fn keep<T, R>(
    store: &T,
    claim: &T::Claim,
    response: Response<R>,
    bytes_max: usize,
) -> Response<R>
where
    T: Responses,
    R: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Default + From<Bytes>,
{
    let (head, body) = response.into_parts();
    if head.status.is_server_error() {
        abandon(store, claim, "the service answered with an error").await;
        return Response::from_parts(head, body);
    }
    let (head, body) = match read(body, bytes_max).await {
        Ok(body) => (head, body),
        Err(_too_long) => {
            tracing::error!("a response is too long to be kept, or was not read to its end");
            let error = empty::<R>(StatusCode::INTERNAL_SERVER_ERROR);
            (error.into_parts().0, Bytes::new())
        }
    };
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    let is_kept = |(name, _value): &(&HeaderName, _)| !NOT_REPLAYED.contains(&name.as_str());
    let recorded = Recorded {
        status: head.status.as_u16(),
        headers: head.headers.iter().filter(is_kept).map(header).collect(),
    };
    let kept = match serde_json::to_vec(&recorded) {
        Ok(mut recorded) => {
            recorded.push(b'\n');
            recorded.extend_from_slice(&body);
            store.complete(claim, recorded).await
        }
        Err(error) => Err(crate::Error::Invalid(error.to_string())),
    };
    if let Err(error) = kept {
        // It did run: saying otherwise would be worse than a repetition that finds it in flight.
        tracing::error!(%error, "a response can't be kept");
    }
    Response::from_parts(head, R::from(body))
}

async fn abandon<T: Responses>(store: &T, claim: &T::Claim, reason: &str) {
    if let Err(error) = store.abandon(claim, reason).await {
        tracing::warn!(%error, "a claim is left to run out");
    }
}

fn replay<R: Default + From<Bytes>>(kept: &[u8]) -> Response<R> {
    let end = kept.iter().position(|byte| *byte == b'\n').unwrap_or(kept.len());
    let Ok(recorded) = serde_json::from_slice::<Recorded>(&kept[..end]) else {
        tracing::error!("a response that was kept can't be read");
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let body = kept.get(end + 1..).unwrap_or_default();
    let mut response = Response::new(R::from(Bytes::copy_from_slice(body)));
    *response.status_mut() = StatusCode::from_u16(recorded.status).unwrap_or(StatusCode::OK);
    for (name, value) in recorded.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
            response.headers_mut().append(name, value);
        }
    }
    let replayed = HeaderName::from_static(REPLAYED_HEADER);
    response.headers_mut().insert(replayed, HeaderValue::from_static("true"));
    response
}
