//! The layers, around a small service.

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use russet::backend::Pending;
use russet::idempotency::{Idempotency, Ttls};
use russet::key::Scope;
use russet::limit::{Limit, Limiter, Outage, Subject};
use russet::session::{Created, NewSession, Policy, Sessions, Timeouts, User};
use russet::tower::{
    Begun, IdempotencyLayer, LimitLayer, Responses, SessionLayer, SessionRequiredLayer,
    SessionSource, SessionsByCookie,
};
use russet::{Error, Kit, ManualTime, Options};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

type Body = Full<Bytes>;

/// Counts its calls, and answers with the number and the body.
#[derive(Clone, Default)]
struct Echo {
    calls: Arc<AtomicU32>,
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = russet::tower::ResponseFuture<Body, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let user = request.extensions().get::<String>().cloned().unwrap_or_default();
        Box::pin(async move {
            tokio::task::yield_now().await;
            let body = request.into_body().collect().await?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            let status = if text == "fail" { 500 } else { 201 };
            let response = Response::builder().status(status).header("x-number", number);
            let response = response.header("set-cookie", "a=b");
            Ok(response.body(Full::from(format!("{user}{number}:{text}"))).unwrap())
        })
    }
}

fn request(headers: &[(&str, &str)], body: &'static str) -> Request<Body> {
    let mut request = Request::builder().method("POST").uri("/orders");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::from(body)).unwrap()
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn user(head: &Parts) -> Option<&str> {
    head.headers.get("x-user").and_then(|user| user.to_str().ok())
}

#[tokio::test]
async fn a_limit_denies_with_headers() {
    let kit = Kit::embedded(Options::default()).unwrap();
    let hour = Duration::from_secs(3600);
    let limits = [Limit::window("w", 3, hour).unwrap(), Limit::concurrency("c", 1, hour).unwrap()];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    let layer = LimitLayer::new(limiter.clone(), |head: &Parts| user(head).map(Subject::from));
    let mut service = layer.layer(Echo::default());
    for remaining in [2, 1, 0] {
        let response = service.call(request(&[("x-user", "ann")], "")).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        let state = response.headers()["ratelimit"].to_str().unwrap();
        assert!(state.starts_with(&format!("\"w\";r={remaining};t=")), "{state}");
        assert_eq!(response.headers()["ratelimit-policy"], "\"w\";q=3;w=3600");
        // The place is given up in the background.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while limiter.peek("ann", 1).await.unwrap().limits()[1].remaining == 0 {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }
    let response = service.call(request(&[("x-user", "ann")], "")).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "3600");
    for headers in [[("x-user", "bob")].as_slice(), &[]] {
        let response = service.call(request(headers, "")).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
}

/// Answers when it is notified.
#[derive(Clone)]
struct Notified(Arc<tokio::sync::Notify>);

impl Service<Request<Body>> for Notified {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = russet::tower::ResponseFuture<Body, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        let notify = self.0.clone();
        Box::pin(async move {
            notify.notified().await;
            Ok(Response::new(Body::default()))
        })
    }
}

/// A request that took longer than a slot is held lost it, and another ran beside it.
#[tokio::test]
async fn a_slow_service_keeps_its_slot() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let hold = Duration::from_secs(9);
    let limits = [Limit::concurrency("c", 1, hold).unwrap()];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    let layer = LimitLayer::new(limiter.clone(), |head: &Parts| user(head).map(Subject::from));
    let notify = Arc::new(tokio::sync::Notify::new());
    let mut service = layer.layer(Notified(notify.clone()));
    let answer = tokio::spawn(service.call(request(&[("x-user", "ann")], "")));
    let reset_after = async || limiter.peek("ann", 1).await.unwrap().limits()[0].reset_after;
    crate::eventually(async || reset_after().await == hold).await;
    for _ in 0..6 {
        time.advance(hold / 3);
        crate::eventually(async || reset_after().await == hold).await;
    }
    notify.notify_one();
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::OK);
}

/// Whose request, and its key.
type At = (String, Vec<u8>);

/// Responses in memory, to see what the layer asks of a store.
#[derive(Clone, Default)]
struct Kept {
    entries: Arc<Mutex<HashMap<At, Entry>>>,
}

struct Entry {
    fingerprint: Vec<u8>,
    response: Option<Vec<u8>>,
}

impl Responses for Kept {
    type Claim = At;

    fn begin<'a>(
        &'a self,
        subject: Scope,
        key: &'a [u8],
        fingerprint: &'a [u8],
    ) -> Pending<'a, Begun<Self::Claim>> {
        let family = russet::key::Family { purpose: "test", version: 1 };
        let kit = Kit::embedded(Options::default()).unwrap();
        let subject = format!("{:?}", kit.keys(family, &subject).unwrap().key("x").as_bytes());
        let at = (subject, key.to_vec());
        let mut entries = self.entries.lock().unwrap();
        let begun = match entries.get(&at) {
            None => {
                let fingerprint = fingerprint.to_vec();
                entries.insert(at.clone(), Entry { fingerprint, response: None });
                Begun::Claimed(at)
            }
            Some(entry) if entry.fingerprint != fingerprint => Begun::Mismatch,
            Some(Entry { response: Some(response), .. }) => Begun::Replay(response.clone()),
            Some(_) => Begun::InFlight { retry_after: Duration::from_millis(1500) },
        };
        Box::pin(std::future::ready(Ok(begun)))
    }

    fn complete<'a>(&'a self, claim: &'a Self::Claim, response: Vec<u8>) -> Pending<'a, ()> {
        self.entries.lock().unwrap().get_mut(claim).unwrap().response = Some(response);
        Box::pin(std::future::ready(Ok(())))
    }

    fn abandon<'a>(&'a self, claim: &'a Self::Claim, _reason: &'a str) -> Pending<'a, ()> {
        self.entries.lock().unwrap().remove(claim);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
async fn a_request_with_a_key_runs_once() {
    let echo = Echo::default();
    let layer = IdempotencyLayer::new(Kept::default(), |head: &Parts| user(head).map(Scope::from))
        .body_bytes_max(100);
    let mut service = layer.layer(echo.clone());
    let headers = [("x-user", "ann"), ("idempotency-key", "k")];

    let first = service.call(request(&headers, "book")).await.unwrap();
    assert!(first.headers().get("idempotency-replayed").is_none());
    assert_eq!(text(first).await, "1:book");
    let again = service.call(request(&headers, "book")).await.unwrap();
    assert_eq!(again.status(), StatusCode::CREATED);
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(again.headers()["x-number"], "1");
    assert!(again.headers().get("set-cookie").is_none(), "a cookie is not handed out again");
    assert_eq!(text(again).await, "1:book");

    let other = service.call(request(&headers, "pen")).await.unwrap();
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    let bob = [("x-user", "bob"), ("idempotency-key", "k")];
    assert_eq!(text(service.call(request(&bob, "book")).await.unwrap()).await, "2:book");
    let nobody = service.call(request(&[("idempotency-key", "k")], "book")).await.unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    let plain = service.call(request(&[("x-user", "ann")], "book")).await.unwrap();
    assert_eq!(text(plain).await, "3:book");

    let long: &'static str = "xxxxxxxxxx".repeat(20).leak();
    let fresh = [("x-user", "ann"), ("idempotency-key", "l")];
    let refused = service.call(request(&fresh, long)).await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(echo.calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_failed_request_may_run_again_and_a_running_one_may_not() {
    let echo = Echo::default();
    let kept = Kept::default();
    let layer = IdempotencyLayer::new(kept, |head: &Parts| user(head).map(Scope::from));
    let mut service = layer.layer(echo.clone());
    let headers = [("x-user", "ann"), ("idempotency-key", "k")];
    for number in 1..=2 {
        let failed = service.call(request(&headers, "fail")).await.unwrap();
        assert_eq!(failed.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(text(failed).await, format!("{number}:fail"));
    }
    let (first, second) =
        (service.call(request(&headers, "book")), service.call(request(&headers, "book")));
    let (first, second) = tokio::join!(first, second);
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.status(), StatusCode::CREATED);
    assert_eq!(second.status(), StatusCode::CONFLICT);
    assert_eq!(second.headers()["retry-after"], "2");
}

struct Users;

impl SessionSource for Users {
    type Session = String;

    fn load<'a>(&'a self, head: &'a Parts) -> Pending<'a, Option<String>> {
        let loaded = match user(head) {
            Some("down") => Err(Error::Unavailable("away".into())),
            user => Ok(user.map(str::to_owned)),
        };
        Box::pin(std::future::ready(loaded))
    }
}

/// S3: one interceptor refreshes the session on all paths, another guards the protected ones.
#[tokio::test]
async fn sessions_are_loaded_everywhere_and_required_where_asked() {
    let load = SessionLayer::new(Users);
    let mut open = load.layer(Echo::default());
    let mut guarded = load.layer(SessionRequiredLayer::<Users>::new().layer(Echo::default()));
    let ann = [("x-user", "ann")];
    assert_eq!(text(open.call(request(&ann, "")).await.unwrap()).await, "ann1:");
    assert_eq!(text(open.call(request(&[], "")).await.unwrap()).await, "2:");
    assert_eq!(text(guarded.call(request(&ann, "")).await.unwrap()).await, "ann1:");
    let refused = guarded.call(request(&[], "")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    // What the client's side put into the request is not believed.
    let mut forged = request(&[], "");
    forged.extensions_mut().insert("admin".to_owned());
    let refused = guarded.call(forged).await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let down = open.call(request(&[("x-user", "down")], "")).await.unwrap();
    assert_eq!(down.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// Answers when it is notified.
#[derive(Clone, Default)]
struct Slow {
    calls: Arc<AtomicU32>,
    finish: Arc<tokio::sync::Notify>,
}

impl Service<Request<Body>> for Slow {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = russet::tower::ResponseFuture<Body, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let finish = self.finish.clone();
        Box::pin(async move {
            finish.notified().await;
            Ok(Response::new(Full::from("done")))
        })
    }
}

/// A handler that took longer than its claim was run a second time beside the first.
#[tokio::test]
async fn a_claim_is_kept_while_its_handler_runs() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let ttls = Ttls { claim: Duration::from_secs(3), result: Duration::from_secs(600) };
    let store = Idempotency::new(&kit, "orders", ttls).unwrap();
    let layer = IdempotencyLayer::new(store, |head: &Parts| user(head).map(Scope::from));
    let slow = Slow::default();
    let mut service = layer.layer(slow.clone());
    let headers = [("x-user", "ann"), ("idempotency-key", "k")];
    let first = tokio::spawn(service.call(request(&headers, "book")));
    for _ in 0..20 {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        time.advance(Duration::from_secs(1));
    }
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    let second = service.call(request(&headers, "book"));
    let second = tokio::time::timeout(Duration::from_secs(30), second).await;
    assert_eq!(second.unwrap().unwrap().status(), StatusCode::CONFLICT);
    slow.finish.notify_one();
    assert_eq!(text(first.await.unwrap().unwrap()).await, "done");
    let again = service.call(request(&headers, "book")).await.unwrap();
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(slow.calls.load(Ordering::Relaxed), 1);
}

russet_toolkit_tests::on_every_backend! {
    the_kit_keeps_the_responses
    the_kit_has_the_sessions
}

/// The layer on the kit's own store: a request runs once, though many send it at the same time.
async fn the_kit_keeps_the_responses(kit: Kit) {
    let ttls = Ttls { claim: Duration::from_secs(60), result: Duration::from_secs(600) };
    let store = Idempotency::new(&kit, "orders", ttls).unwrap();
    let layer = IdempotencyLayer::new(store, |head: &Parts| user(head).map(Scope::from));
    let echo = Echo::default();
    let service = layer.layer(echo.clone());
    let headers = [("x-user", "ann"), ("idempotency-key", "k")];
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut service = service.clone();
        tasks.spawn(async move { service.call(request(&headers, "book")).await.unwrap() });
    }
    while let Some(response) = tasks.join_next().await {
        let status = response.unwrap().status();
        assert!(status == StatusCode::CREATED || status == StatusCode::CONFLICT, "{status}");
    }
    assert_eq!(echo.calls.load(Ordering::Relaxed), 1);
    let mut service = service;
    let again = service.call(request(&headers, "book")).await.unwrap();
    assert_eq!(again.headers()["idempotency-replayed"], "true");
    assert_eq!(text(again).await, "1:book");
    let other = service.call(request(&headers, "pen")).await.unwrap();
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    // What failed may be tried again.
    let headers = [("x-user", "ann"), ("idempotency-key", "l")];
    for number in 2..=3 {
        let failed = service.call(request(&headers, "fail")).await.unwrap();
        assert_eq!(text(failed).await, format!("{number}:fail"));
    }
}

/// Whoever has a session, by its cookie or as a bearer, passes; whoever has none, or one that was
/// revoked, does not.
async fn the_kit_has_the_sessions(kit: Kit) {
    let timeouts = Timeouts { idle: Duration::from_secs(60), absolute: Duration::from_secs(600) };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 5)).unwrap();
    let ann = User::new("acme", "ann");
    let Created::Created(id) = sessions.create(&NewSession::of(&ann)).await.unwrap() else {
        panic!("there is room for a session");
    };
    let source = SessionsByCookie::new(sessions.clone(), "sid");
    let required = SessionRequiredLayer::<SessionsByCookie>::new();
    let mut service = SessionLayer::new(source).layer(required.layer(Echo::default()));
    let (cookie, bearer) = (format!("a=b; sid={}", id.as_str()), format!("Bearer {}", id.as_str()));
    let mut status =
        async |headers: &[(&str, &str)]| service.call(request(headers, "")).await.unwrap().status();
    assert_eq!(status(&[("cookie", &cookie)]).await, StatusCode::CREATED);
    assert_eq!(status(&[("authorization", &bearer)]).await, StatusCode::CREATED);
    for headers in [[].as_slice(), &[("cookie", "sid=guess")], &[("authorization", "Basic x")]] {
        assert_eq!(status(headers).await, StatusCode::UNAUTHORIZED);
    }
    let _revoked = sessions.revoke(&id, "logged out").await.unwrap();
    assert_eq!(status(&[("cookie", &cookie)]).await, StatusCode::UNAUTHORIZED);
}
