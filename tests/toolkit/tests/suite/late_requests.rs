//! Requests that run once more, after all that came later: as one does that was thought lost,
//! and was only late.

use russet::backend::{Backend, Connection, Pending};
use russet::session::{
    Authorization, Created, NewSession, Policy, Revoked, Rotated, Sessions, Timeouts, User,
};
use russet::token::reset::{Consumed, ResetTokens};
use russet::{Kit, Options, Reply, Request};
use russet_toolkit_tests::Journal;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Calls = Arc<Mutex<Vec<Request>>>;

/// A backend that keeps what was asked of it.
struct Tape {
    kit: Kit,
    calls: Calls,
}

impl Backend for Tape {
    fn call<'a>(&'a self, request: &'a Request, _timeout: Duration) -> Pending<'a, Reply> {
        self.calls.lock().unwrap().push(request.clone());
        Box::pin(self.kit.call(request))
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(self.kit.connection(slot))
    }

    fn name(&self) -> &'static str {
        "tape"
    }
}

fn taped() -> (Kit, Calls) {
    let (kit, calls) = (Kit::embedded(Options::default()).unwrap(), Calls::default());
    let tape = Tape { kit, calls: calls.clone() };
    (Kit::builder().on(tape).unwrap(), calls)
}

/// All of them, in their order.
async fn run_again(kit: &Kit, calls: &Calls) {
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    assert!(!calls.is_empty());
    for call in calls {
        // That a server did not know the script yet is all that may be said against it.
        if let Err(error) = kit.call(&call).await {
            assert_eq!(error.code(), Some("NOSCRIPT"), "{error}");
        }
    }
}

#[tokio::test]
async fn requests_with_an_id_have_no_second_effect() {
    const REQUESTS: u64 = 5;
    let (kit, calls) = taped();
    let journal = Journal::open(&kit).await.unwrap();
    for number in 0..REQUESTS {
        journal.carry_out(number).await.unwrap();
    }
    for _ in 0..2 {
        run_again(&kit, &calls).await;
        for (workflow, done) in journal.effects().await.unwrap() {
            assert_eq!(done, REQUESTS, "{workflow}");
        }
    }
}

/// The creation of a session, repeated after its id was rotated, made a session with the old id.
#[tokio::test]
async fn a_late_creation_does_not_bring_an_old_id_back() {
    let (kit, calls) = taped();
    let minute = Duration::from_secs(60);
    let timeouts = Timeouts { idle: minute, absolute: minute };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 5)).unwrap();
    let user = User::new("acme", "ann");
    let Created::Created(old) = sessions.create(&NewSession::of(&user)).await.unwrap() else {
        panic!("full");
    };
    let creation = std::mem::take(&mut *calls.lock().unwrap());
    let Ok(Rotated::Rotated(new)) = sessions.rotate(&old).await else { panic!("not rotated") };
    run_again(&kit, &Arc::new(Mutex::new(creation.clone()))).await;
    assert_eq!(sessions.authorize(&old).await, Ok(Authorization::Missing));
    assert!(matches!(sessions.authorize(&new).await, Ok(Authorization::Granted(_))));
    assert_eq!(sessions.list(&user).await.unwrap().len(), 1);
    // Nor one that was revoked.
    assert_eq!(sessions.revoke(&new, "logout").await, Ok(Revoked { count: 1 }));
    run_again(&kit, &Arc::new(Mutex::new(creation))).await;
    assert_eq!(sessions.authorize(&old).await, Ok(Authorization::Missing));
    assert_eq!(sessions.authorize(&new).await, Ok(Authorization::Revoked));
    assert_eq!(sessions.list(&user).await, Ok(Vec::new()));
}

/// The request to issue a token, repeated after the token was used, made it good for a second use;
/// repeated after another was issued, it took that one's place.
#[tokio::test]
async fn a_late_issue_does_not_bring_a_token_back() {
    let (kit, calls) = taped();
    let resets = ResetTokens::new(&kit, "password", Duration::from_secs(60)).unwrap();
    let user = User::new("acme", "ann");
    let first = resets.issue(&user).await.unwrap();
    let issue = std::mem::take(&mut *calls.lock().unwrap());
    let late = async || run_again(&kit, &Arc::new(Mutex::new(issue.clone()))).await;
    assert_eq!(resets.consume(&first, None).await, Ok(Consumed::Consumed(user.clone())));
    late().await;
    assert_eq!(resets.consume(&first, None).await, Ok(Consumed::Unknown));
    let (replaced, last) = (resets.issue(&user).await.unwrap(), resets.issue(&user).await.unwrap());
    late().await;
    assert_eq!(resets.consume(&first, None).await, Ok(Consumed::Unknown));
    assert_eq!(resets.consume(&replaced, None).await, Ok(Consumed::Unknown));
    assert_eq!(resets.consume(&last, None).await, Ok(Consumed::Consumed(user)));
}
