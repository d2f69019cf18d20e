//! Limits of many tasks, and ids that are used again.

use russet::limit::policy::OtpAttempts;
use russet::limit::{Limit, Limiter, Outage};
use russet::{Kit, RequestId};
use std::time::Duration;
use tokio::task::JoinSet;

russet_toolkit_tests::on_every_backend! {
    a_reused_id_reports_what_it_holds
    five_attempts_of_many_are_let_through
}

const HOUR: Duration = Duration::from_secs(3600);

/// S1 §10: a request id that came again was reported as a second one, and held one place.
async fn a_reused_id_reports_what_it_holds(kit: Kit) {
    for limit in [
        Limit::window("window", 5, HOUR).unwrap(),
        Limit::log("log", 5, HOUR).unwrap(),
        Limit::sliding("sliding", 5, 1000 * HOUR).unwrap(),
        Limit::bucket("bucket", 5, 1000 * HOUR).unwrap(),
        Limit::concurrency("concurrency", 5, HOUR).unwrap(),
    ] {
        let name = limit.name().to_owned();
        let limiter = Limiter::new(&kit, "test", [limit], Outage::Deny).unwrap();
        let (first, second) = (RequestId::random(), RequestId::random());
        for (request, left) in [(&first, 4), (&first, 4), (&second, 3), (&first, 4), (&second, 3)] {
            let decision = limiter.check("a", 1, Some(request)).await.unwrap();
            // What was remembered is what was left then.
            assert_eq!(decision.limits()[0].remaining, left, "{name}");
        }
        assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 3, "{name}");
        // Many at once with one id are one.
        let mut tasks = JoinSet::new();
        let request = RequestId::random();
        for _ in 0..16 {
            let (limiter, request) = (limiter.clone(), request.clone());
            tasks.spawn(async move { limiter.check("a", 1, Some(&request)).await.unwrap() });
        }
        while let Some(decision) = tasks.join_next().await {
            assert!(decision.unwrap().is_allowed(), "{name}");
        }
        assert_eq!(limiter.peek("a", 1).await.unwrap().limits()[0].remaining, 2, "{name}");
    }
}

/// Pattern 4: 32 tasks guess at once, and each of their requests comes twice.
async fn five_attempts_of_many_are_let_through(kit: Kit) {
    let otp = OtpAttempts::new(&kit).unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let otp = otp.clone();
        tasks.spawn(async move {
            let request = RequestId::random();
            let mut allowed = 0;
            for _ in 0..2 {
                let decision = otp.attempt("acme", "+49 30 901820", Some(&request)).await;
                allowed += u32::from(decision.unwrap().is_allowed());
            }
            allowed
        });
    }
    let mut allowed = 0;
    while let Some(ended) = tasks.join_next().await {
        allowed += ended.unwrap();
    }
    assert_eq!(allowed, 2 * 5);
}
