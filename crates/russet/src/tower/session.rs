//! Sessions in front of a service: one layer loads them on all paths, another requires them on
//! protected ones.

use super::{ResponseFuture, empty};
use crate::backend::Pending;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Where sessions come from.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use http::request::Parts;
/// use russet::backend::Pending;
/// use russet::tower::SessionSource;
///
/// /// Who is asking, as a gateway says that is trusted.
/// struct ByGateway;
///
/// impl SessionSource for ByGateway {
///     type Session = String;
///
///     fn load<'a>(&'a self, head: &'a Parts) -> Pending<'a, Option<String>> {
///         let user = head.headers.get("x-user").and_then(|user| user.to_str().ok());
///         Box::pin(std::future::ready(Ok(user.map(str::to_owned))))
///     }
/// }
///
/// let (head, ()) = http::Request::builder().header("x-user", "ann").body(())?.into_parts();
/// assert_eq!(ByGateway.load(&head).await?.as_deref(), Some("ann"));
/// # Ok(())
/// # }
/// ```
pub trait SessionSource: Send + Sync + 'static {
    /// What handlers get to see, as an extension of the request.
    type Session: Clone + Send + Sync + 'static;

    /// The session that a request names by its cookie or header, if it names a live one. Loading
    /// may keep it alive.
    fn load<'a>(&'a self, head: &'a Parts) -> Pending<'a, Option<Self::Session>>;
}

/// Loads the session of each request that names one, for [`SessionRequiredLayer`] and handlers to
/// find in the request's extensions. Requests without one go on.
///
/// If sessions can't be loaded the answer is 503: who is logged in is not shown a login page.
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
/// use russet::session::{Created, NewSession, Policy, Sessions, Timeouts, User};
/// use russet::tower::{SessionLayer, SessionRequiredLayer, SessionsByCookie};
/// use std::time::Duration;
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let hour = Duration::from_secs(3600);
/// let sessions = Sessions::new(&kit, Policy::new(Timeouts { idle: hour, absolute: hour }, 5))?;
/// let load = SessionLayer::new(SessionsByCookie::new(sessions.clone(), "id"));
/// let require = SessionRequiredLayer::<SessionsByCookie>::new();
/// // `Hello` answers every request.
/// let mut service = load.layer(require.layer(Hello));
///
/// let stranger = Request::new(Full::default());
/// assert_eq!(service.call(stranger).await?.status(), 401);
/// let user = User::new("acme", "ann");
/// let new = NewSession::of(&user);
/// let Created::Created(id) = sessions.create(&new).await? else { return Ok(()) };
/// let known = Request::builder().header("cookie", format!("id={}", id.as_str()));
/// assert_eq!(service.call(known.body(Full::default())?).await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SessionLayer<T> {
    source: Arc<T>,
}

impl<T: SessionSource> SessionLayer<T> {
    /// With sessions from this source.
    pub fn new(source: T) -> Self {
        SessionLayer { source: Arc::new(source) }
    }
}

impl<T> Clone for SessionLayer<T> {
    fn clone(&self) -> Self {
        SessionLayer { source: self.source.clone() }
    }
}

impl<S, T> Layer<S> for SessionLayer<T> {
    type Service = SessionService<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        SessionService { inner, source: self.source.clone() }
    }
}

/// A service whose requests have their session with them.
#[derive(Debug)]
pub struct SessionService<S, T> {
    inner: S,
    source: Arc<T>,
}

impl<S: Clone, T> Clone for SessionService<S, T> {
    fn clone(&self) -> Self {
        SessionService { inner: self.inner.clone(), source: self.source.clone() }
    }
}

impl<S, T, B, R> Service<Request<B>> for SessionService<S, T>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    T: SessionSource,
    B: Send + 'static,
    R: Default,
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
        let source = self.source.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            // What an earlier layer, or nobody, has put there is not ours to believe.
            head.extensions.remove::<T::Session>();
            match source.load(&head).await {
                Ok(Some(session)) => {
                    head.extensions.insert(session);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "a session can't be loaded");
                    return Ok(empty(StatusCode::SERVICE_UNAVAILABLE));
                }
            }
            inner.call(Request::from_parts(head, body)).await
        })
    }
}

/// Lets only requests with a session through, others get 401. It loads nothing: [`SessionLayer`]
/// must come before it: see there for an example.
pub struct SessionRequiredLayer<T> {
    session: PhantomData<fn() -> T>,
}

impl<T> SessionRequiredLayer<T> {
    /// For sessions of this type, as [`SessionLayer`] leaves them in the request.
    pub fn new() -> Self {
        SessionRequiredLayer { session: PhantomData }
    }
}

impl<T> Default for SessionRequiredLayer<T> {
    fn default() -> Self {
        SessionRequiredLayer::new()
    }
}

impl<T> Clone for SessionRequiredLayer<T> {
    fn clone(&self) -> Self {
        SessionRequiredLayer::new()
    }
}

impl<T> std::fmt::Debug for SessionRequiredLayer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionRequiredLayer")
    }
}

impl<S, T> Layer<S> for SessionRequiredLayer<T> {
    type Service = SessionRequiredService<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        SessionRequiredService { inner, session: PhantomData }
    }
}

/// A service for those with a session.
#[derive(Debug)]
pub struct SessionRequiredService<S, T> {
    inner: S,
    session: PhantomData<fn() -> T>,
}

impl<S: Clone, T> Clone for SessionRequiredService<S, T> {
    fn clone(&self) -> Self {
        SessionRequiredService { inner: self.inner.clone(), session: PhantomData }
    }
}

impl<S, T, B, R> Service<Request<B>> for SessionRequiredService<S, T>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    T: SessionSource,
    R: Default + Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFuture<R, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match request.extensions().get::<T::Session>() {
            Some(_session) => Box::pin(self.inner.call(request)),
            None => Box::pin(std::future::ready(Ok(empty(StatusCode::UNAUTHORIZED)))),
        }
    }
}
