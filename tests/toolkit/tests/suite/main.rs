#![forbid(unsafe_code)]
//! The toolkit's suite: every workflow on every backend.

mod activity;
mod cache;
mod counter;
mod faults;
mod flag;
mod functions;
mod idempotency;
mod kit;
mod late_requests;
mod lease;
mod limit;
mod limit_charges;
mod limit_many;
mod limit_outage;
mod limit_time;
mod lost_keys;
mod lost_replies;
mod mistakes;
mod near;
mod numbers;
mod object;
mod own_steps;
mod pages;
mod queue;
mod ranking;
mod robust;
mod sale;
mod session;
mod social;
mod state;
mod stats;
mod tls;
mod token;
mod tower;

use russet::key::Key;
use russet::{Kit, Reply, Request};
use std::time::{Duration, Instant};

/// Runs what needs to be done within some time with more and more of it: a machine that is too busy
/// for the first span is not for all of them, and what is wrong fails with each.
async fn given_time(first: Duration, is_right: impl AsyncFn(Duration) -> bool) {
    let mut span = first;
    while !is_right(span).await {
        span *= 3;
        assert!(span < Duration::from_secs(30), "wrong, however much time there is");
    }
}

/// Waits until something is so, for as long as a busy machine may need.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so().await {
        assert!(Instant::now() < deadline, "not so within 30 s");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a step as a program in another language does, with arguments that the kit would not send.
async fn raw_step(kit: &Kit, name: &str, keys: &[Key], args: &[&str]) -> russet::Result<Reply> {
    let step = russet::step::all().find(|step| step.name() == name).unwrap();
    let call = Request::new("EVAL").arg(step.source()).arg(keys.len());
    let call = keys.iter().fold(call, |call, key| call.key(key));
    kit.call(&args.iter().fold(call, |call, arg| call.arg(*arg))).await
}
