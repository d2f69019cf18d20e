//! Feature flags.

use russet::flag::{
    Changed, Definition, FlagTerms, Flags, Joined, LocalFlags, Percent, Reason, Subject,
};
use russet::key::Family;
use russet::{Error, Kit, Options, Request};
use russet_toolkit_tests::{Fault, faulty};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

russet_toolkit_tests::on_every_backend! {
    a_flag_is_off_until_it_is_defined
    a_killed_flag_is_off_whatever_it_is_defined_as
    members_of_a_group_see_it
    a_snapshot_says_the_same
    changes_are_counted_and_written_down
    a_repeated_change_is_one
    flags_and_members_have_a_cap
    flags_end
    arguments_are_looked_at_first
}

fn flags(kit: &Kit) -> Flags {
    Flags::new(kit, "acme", FlagTerms::new(DAY)).unwrap()
}

fn is_changed(changed: Changed) -> bool {
    matches!(changed, Changed::Changed { .. })
}

async fn reason(flags: &Flags, id: &str) -> (bool, Reason) {
    let evaluation = flags.evaluate("f", &Subject::new(id)).await.unwrap();
    (evaluation.is_on, evaluation.reason)
}

async fn a_flag_is_off_until_it_is_defined(kit: Kit) {
    let flags = flags(&kit);
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Unknown));
    // An update never creates.
    assert_eq!(flags.enable("f", "ops").await.unwrap(), Changed::Missing);
    assert_eq!(flags.kill("f", "ops").await.unwrap(), Changed::Missing);
    assert!(is_changed(flags.define("f", &Definition::off(), "ops").await.unwrap()));
    assert_eq!(reason(&flags, "ann").await, (false, Reason::SwitchedOff));
    assert!(is_changed(flags.enable("f", "ops").await.unwrap()));
    assert_eq!(reason(&flags, "ann").await, (true, Reason::Rollout));
    assert!(is_changed(flags.set_rollout("f", Percent::NONE, "ops").await.unwrap()));
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Rollout));
    assert!(is_changed(flags.disable("f", "ops").await.unwrap()));
    assert!(!flags.is_on("f", &Subject::new("ann")).await.unwrap());
    assert!(is_changed(flags.remove("f", "ops").await.unwrap()));
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Unknown));
    let other = Flags::new(&kit, "other", FlagTerms::new(DAY)).unwrap();
    flags.define("f", &Definition::on(), "ops").await.unwrap();
    assert_eq!(reason(&other, "ann").await, (false, Reason::Unknown));
}

async fn a_killed_flag_is_off_whatever_it_is_defined_as(kit: Kit) {
    let flags = flags(&kit);
    flags.define("f", &Definition::on().allow("ann"), "ops").await.unwrap();
    assert_eq!(reason(&flags, "ann").await, (true, Reason::Allowed));
    flags.kill("f", "ops").await.unwrap();
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Killed));
    // A deployment that defines it anew does not bring it back.
    flags.define("f", &Definition::on(), "deploy").await.unwrap();
    flags.enable("f", "deploy").await.unwrap();
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Killed));
    flags.revive("f", "ops").await.unwrap();
    assert_eq!(reason(&flags, "ann").await, (true, Reason::Rollout));
}

/// Pattern 8, S2 §6.1.
async fn members_of_a_group_see_it(kit: Kit) {
    let flags = flags(&kit);
    let beta = Definition::on().rollout(Percent::NONE).group("alpha").group("beta").deny("ben");
    flags.define("f", &beta, "ops").await.unwrap();
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Rollout));
    assert_eq!(flags.join("beta", "ann").await.unwrap(), Joined::Joined);
    assert_eq!(flags.join("beta", "ann").await.unwrap(), Joined::Already);
    flags.join("beta", "ben").await.unwrap();
    assert!(flags.is_member("beta", "ann").await.unwrap());
    assert_eq!(reason(&flags, "ann").await, (true, Reason::Group));
    assert_eq!(reason(&flags, "ben").await, (false, Reason::Denied));
    // A group whose name begins alike is another.
    assert!(!flags.is_member("bet", "ann").await.unwrap());
    assert!(flags.leave("beta", "ann").await.unwrap());
    assert!(!flags.leave("beta", "ann").await.unwrap());
    assert_eq!(reason(&flags, "ann").await, (false, Reason::Rollout));
}

/// Two processes, one with a cache, must not show different things.
async fn a_snapshot_says_the_same(kit: Kit) {
    let flags = flags(&kit);
    let half = Definition::on().rollout(Percent::whole(50).unwrap());
    flags.define("f", &half, "ops").await.unwrap();
    flags.define("targeted", &half.clone().when("plan", ["pro"]), "ops").await.unwrap();
    flags.define("grouped", &half.clone().group("beta"), "ops").await.unwrap();
    let snapshot = flags.snapshot().await.unwrap();
    assert_eq!(snapshot.names().collect::<Vec<_>>(), ["f", "grouped", "targeted"]);
    let mut on = 0;
    for number in 0..60 {
        let subject = Subject::new(&format!("user-{number}")).with("plan", "pro");
        for flag in ["f", "targeted", "none"] {
            let remote = flags.evaluate(flag, &subject).await.unwrap();
            assert_eq!(snapshot.evaluate(flag, &subject), Some(remote));
            on += usize::from(remote.is_on);
        }
        assert_eq!(snapshot.evaluate("grouped", &subject), None);
    }
    assert!(on > 20 && on < 100, "{on}");
}

/// 32 tasks switch a flag: each change that was one has a version and an entry of its own.
async fn changes_are_counted_and_written_down(kit: Kit) {
    let flags = flags(&kit);
    flags.define("f", &Definition::off(), "ops").await.unwrap();
    let mut tasks = Vec::new();
    for number in 0..32 {
        let flags = flags.clone();
        tasks.push(tokio::spawn(async move {
            let actor = format!("worker-{number}");
            let changed = match number % 2 {
                0 => flags.enable("f", &actor).await.unwrap(),
                _ => flags.disable("f", &actor).await.unwrap(),
            };
            u64::from(is_changed(changed))
        }));
    }
    let mut changes = 1;
    for task in tasks {
        changes += task.await.unwrap();
    }
    let audit = flags.audit(100).await.unwrap();
    let versions: Vec<u64> = audit.iter().map(|entry| entry.version).collect();
    assert_eq!(versions.len() as u64, changes);
    assert!(versions.is_sorted_by(|newer, older| newer > older), "{versions:?}");
    assert_eq!(flags.snapshot().await.unwrap().version(), versions[0]);
    let first = audit.last().unwrap();
    assert_eq!((first.actor.as_str(), first.action.as_str()), ("ops", "define"));
    assert!(first.at_ms > 1_600_000_000_000);
    assert_eq!(flags.audit(1).await.unwrap().len(), 1);
}

async fn a_repeated_change_is_one(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let flags = flags(&kit);
    faults.set(|number| if number < 2 { Fault::ReplyLost } else { Fault::None });
    flags.define("f", &Definition::on(), "ops").await.unwrap();
    let audit = flags.audit(10).await.unwrap();
    assert_eq!(audit.len(), 1);
    let again = flags.define("f", &Definition::on(), "ops").await.unwrap();
    assert_eq!(again, Changed::Unchanged { version: audit[0].version });
}

async fn flags_and_members_have_a_cap(kit: Kit) {
    let terms = FlagTerms::new(DAY).flags_max(2).members_max(2);
    let flags = Flags::new(&kit, "acme", terms).unwrap();
    for flag in ["a", "b"] {
        assert!(is_changed(flags.define(flag, &Definition::on(), "ops").await.unwrap()));
    }
    assert_eq!(flags.define("c", &Definition::on(), "ops").await.unwrap(), Changed::Full);
    assert!(is_changed(flags.define("a", &Definition::off(), "ops").await.unwrap()));
    flags.remove("a", "ops").await.unwrap();
    assert!(is_changed(flags.define("c", &Definition::on(), "ops").await.unwrap()));
    flags.join("beta", "1").await.unwrap();
    flags.join("beta", "2").await.unwrap();
    assert_eq!(flags.join("beta", "3").await.unwrap(), Joined::Full);
    assert_eq!(flags.join("beta", "2").await.unwrap(), Joined::Already);
}

async fn flags_end(kit: Kit) {
    let terms = FlagTerms::new(Duration::from_millis(60));
    let flags = Flags::new(&kit, "acme", terms).unwrap();
    flags.define("f", &Definition::on(), "ops").await.unwrap();
    flags.join("beta", "ann").await.unwrap();
    crate::eventually(async || !reason(&flags, "ann").await.0).await;
    let keys = kit.keys(Family { purpose: "flag", version: 1 }, "acme").unwrap();
    for part in ["flags", "audit", "members"] {
        let exists = Request::new("EXISTS").key(&keys.key(part));
        crate::eventually(async || kit.call(&exists).await.unwrap().as_int() == Some(0)).await;
    }
}

async fn arguments_are_looked_at_first(kit: Kit) {
    let zero = FlagTerms::new(Duration::ZERO);
    assert!(matches!(Flags::new(&kit, "acme", zero), Err(Error::Invalid(_))));
    let none = FlagTerms::new(DAY).flags_max(0);
    assert!(matches!(Flags::new(&kit, "acme", none), Err(Error::Invalid(_))));
    let flags = flags(&kit);
    for name in ["", "a:b", "a b", &"a".repeat(65)] {
        let defined = flags.define(name, &Definition::on(), "ops").await;
        assert!(matches!(defined, Err(Error::Invalid(_))));
    }
    assert!(flags.snapshot().await.unwrap().names().next().is_none());
    let second = Duration::from_secs(1);
    assert!(matches!(LocalFlags::new(&flags, Duration::ZERO, second), Err(Error::Invalid(_))));
}

/// A kill switch is seen within the age that flags may have, and an outage is sat out.
#[tokio::test]
async fn local_flags_are_read_anew_and_serve_through_an_outage() {
    let (kit, faults) = faulty(&Kit::embedded(Options::default()).unwrap());
    let reader = flags(&kit);
    reader.define("f", &Definition::on(), "ops").await.unwrap();
    let (age_max, stale_max) = (Duration::from_millis(20), Duration::from_secs(60));
    let local = LocalFlags::new(&reader, age_max, stale_max).unwrap();
    let ann = Subject::new("ann");
    assert!(local.evaluate("f", &ann).await.unwrap().is_on);
    faults.set(|_number| Fault::None);
    for _ in 0..100 {
        assert!(local.evaluate("f", &ann).await.unwrap().is_on);
    }
    assert!(faults.calls() < 100, "most of them make no call");
    reader.kill("f", "ops").await.unwrap();
    while local.evaluate("f", &ann).await.unwrap().is_on {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    faults.set(|_number| Fault::NotRun);
    tokio::time::sleep(age_max * 2).await;
    assert_eq!(local.evaluate("f", &ann).await.unwrap().reason, Reason::Killed);
    let impatient = LocalFlags::new(&reader, age_max, age_max).unwrap();
    assert!(matches!(impatient.evaluate("f", &ann).await, Err(Error::Unavailable(_))));
}
