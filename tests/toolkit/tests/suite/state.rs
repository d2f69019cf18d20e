//! States: never from one that was not expected, never in part.

mod indexed;
mod optimistic;

use russet::key::Family;
use russet::state::{
    Applied, CaseState, Change, Condition, Created, Escalation, Escalations, Machine, Marker,
    Moved, Opened, Swap,
};
use russet::{Error, Kit, Request, RequestId};
use russet_toolkit_tests::{Fault, faulty};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const FAMILY: Family = Family { purpose: "state", version: 1 };

russet::machine! {
    /// The life of an order.
    pub enum Order { Draft, Placed, Paid, Cancelled }
    pub Place: Draft => Placed;
    pub Pay: Placed => Paid;
    pub Cancel: Draft | Placed => Cancelled;
}

russet_toolkit_tests::on_every_backend! {
    a_swap_keeps_the_time_to_live
    a_swap_never_creates
    one_of_many_swaps
    a_repeated_swap_is_a_swap
    a_transition_starts_where_it_is_declared_to
    a_refused_transition_changes_nothing
    a_version_is_used_once
    a_repeated_transition_is_made_once
    half_a_record_is_corrupt
    a_transition_never_creates
    a_record_ends
    every_level_is_reached_and_no_more
    missing_and_repeated_differ
    arguments_are_looked_at_first
    a_name_with_a_comma_is_no_state
}

async fn ttl_ms(kit: &Kit, scope: &str, part: &'static str) -> i64 {
    let key = kit.keys(FAMILY, scope).unwrap().key(part);
    kit.call(&Request::new("PTTL").key(&key)).await.unwrap().into_int().unwrap()
}

async fn exists(kit: &Kit, scope: &str, part: &'static str) -> bool {
    ttl_ms(kit, scope, part).await != -2
}

fn moved<S: std::fmt::Debug>(applied: Applied<S>) -> Moved<S> {
    match applied {
        Applied::Moved(moved) => moved,
        other => panic!("{other:?}"),
    }
}

/// Pattern 6, S0 §18: a plain SET drops the time to live.
async fn a_swap_keeps_the_time_to_live(kit: Kit) {
    let marker = Marker::new(&kit, "a", HOUR).unwrap();
    assert_eq!(marker.create("PROCESSING", None).await.unwrap(), Created::Created);
    let again = marker.create("PROCESSING", None).await.unwrap();
    assert_eq!(again, Created::Exists { current: b"PROCESSING".to_vec() });
    let before = ttl_ms(&kit, "a", "marker").await;
    assert_eq!(marker.swap("PROCESSING", "COMPLETED", None).await.unwrap(), Swap::Swapped);
    let after = ttl_ms(&kit, "a", "marker").await;
    assert!(0 < after && after <= before);
    let wrong = marker.swap("PROCESSING", "FAILED", None).await.unwrap();
    assert_eq!(wrong, Swap::Differs { current: b"COMPLETED".to_vec() });
    assert_eq!(marker.read().await.unwrap().as_deref(), Some(b"COMPLETED".as_slice()));
}

async fn a_swap_never_creates(kit: Kit) {
    let marker = Marker::new(&kit, "a", HOUR).unwrap();
    assert_eq!(marker.swap("PROCESSING", "COMPLETED", None).await.unwrap(), Swap::Missing);
    assert!(!exists(&kit, "a", "marker").await);
    assert!(matches!(Marker::new(&kit, "a", Duration::ZERO), Err(Error::Invalid(_))));
}

async fn one_of_many_swaps(kit: Kit) {
    let marker = Marker::new(&kit, "a", HOUR).unwrap();
    let _ = marker.create("0", None).await.unwrap();
    let mut tasks = Vec::new();
    for number in 1..=32 {
        let marker = marker.clone();
        let next = number.to_string();
        tasks.push(tokio::spawn(async move { marker.swap("0", next, None).await.unwrap() }));
    }
    let mut swapped = 0;
    for task in tasks {
        swapped += usize::from(task.await.unwrap() == Swap::Swapped);
    }
    assert_eq!(swapped, 1);
}

/// A retried change must not look like someone else's.
async fn a_repeated_swap_is_a_swap(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let marker = Marker::new(&kit, "a", HOUR).unwrap();
    let id = RequestId::random();
    faults.set(|number| if number == 1 { Fault::ReplyLost } else { Fault::None });
    let _ = marker.create("0", Some(&RequestId::random())).await.unwrap();
    faults.set(|number| if number < 2 { Fault::ReplyLost } else { Fault::None });
    assert_eq!(marker.swap("0", "1", Some(&id)).await.unwrap(), Swap::Swapped);
    let _ = marker.swap("1", "2", None).await.unwrap();
    assert_eq!(marker.swap("0", "1", Some(&id)).await.unwrap(), Swap::Swapped);
    assert_eq!(marker.read().await.unwrap().as_deref(), Some(b"2".as_slice()));
    assert_eq!(marker.swap("1", "2", None).await.unwrap(), Swap::Already);
}

async fn a_transition_starts_where_it_is_declared_to(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let opened = orders.open("o1", Order::Draft, [("total_minor", "990")], None).await.unwrap();
    assert_eq!(opened, Opened::Opened);
    let again = orders.open("o1", Order::Draft, [("total_minor", "1")], None).await.unwrap();
    assert_eq!(again, Opened::Exists { state: Order::Draft, version: 1 });
    let early = orders.apply("o1", Change::new(Pay), None).await.unwrap();
    assert_eq!(early, Applied::WrongState { state: Order::Draft, version: 1 });
    let change = Change::new(Place).set("address", "x").add("changes_count", 2);
    let placed = moved(orders.apply("o1", change, None).await.unwrap());
    assert_eq!((placed.state, placed.version, placed.sums), (Order::Placed, 2, vec![2]));
    let paid = orders.apply("o1", Change::new(Pay).remove("address"), None).await.unwrap();
    assert_eq!(moved(paid).state, Order::Paid);
    let late = orders.apply("o1", Change::new(Cancel), None).await.unwrap();
    assert_eq!(late, Applied::WrongState { state: Order::Paid, version: 3 });
    let record = orders.load("o1").await.unwrap().unwrap();
    assert_eq!((record.state, record.version), (Order::Paid, 3));
    assert!(record.created_at_ms > 0 && record.updated_at_ms >= record.created_at_ms);
    let fields: Vec<&str> = record.fields.keys().map(String::as_str).collect();
    assert_eq!(fields, ["changes_count", "total_minor"]);
    assert!(orders.load("o2").await.unwrap().is_none());
}

/// Check, then write: a transition that is refused leaves no trace.
async fn a_refused_transition_changes_nothing(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let _ = orders.open("o1", Order::Draft, [("stock", "2"), ("name", "x")], None).await.unwrap();
    let before = orders.load("o1").await.unwrap();
    for condition in [
        Condition::at_least("stock", 3),
        Condition::more("stock", 2),
        Condition::less("stock", 2),
        Condition::at_most("stock", 1),
        Condition::equals("stock", "3"),
        Condition::differs("stock", "2"),
        Condition::absent("stock"),
        Condition::present("none"),
        Condition::less("name", 5),
    ] {
        let change = Change::new(Place).set("stock", "9").require(condition.clone());
        let refused = orders.apply("o1", change, None).await.unwrap();
        assert!(matches!(refused, Applied::Refused { .. }), "{condition:?}");
    }
    // A number that is none is found before anything is written.
    let change = Change::new(Place).set("stock", "9").add("name", 1);
    assert!(matches!(orders.apply("o1", change, None).await, Err(Error::Corrupt(_))));
    assert_eq!(orders.load("o1").await.unwrap(), before);
    let change = Change::new(Place)
        .require(Condition::at_least("stock", 2))
        .require(Condition::absent("none"))
        .require(Condition::less("none", 1));
    let _ = moved(orders.apply("o1", change, None).await.unwrap());
}

/// Pattern 22: `applyDiscount(cartId, discount, expectedVersion)`. 32 tasks, one wins.
async fn a_version_is_used_once(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let _ = orders.open("o1", Order::Draft, [("total_minor", "100")], None).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..32 {
        let orders = orders.clone();
        tasks.push(tokio::spawn(async move {
            let change = Change::new(Place).at_version(1).add("total_minor", -10);
            orders.apply("o1", change, None).await.unwrap()
        }));
    }
    let mut made = 0;
    for task in tasks {
        match task.await.unwrap() {
            Applied::Moved(_) => made += 1,
            Applied::WrongState { state: Order::Placed, version: 2 } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 1);
    let record = orders.load("o1").await.unwrap().unwrap();
    assert_eq!(record.fields["total_minor"], b"90");
    let stale = Change::new(Pay).at_version(1);
    let stale = orders.apply("o1", stale, None).await.unwrap();
    assert_eq!(stale, Applied::WrongVersion { state: Order::Placed, version: 2 });
}

async fn a_repeated_transition_is_made_once(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let none: [(&str, &str); 0] = [];
    let _ = orders.open("o1", Order::Draft, none, None).await.unwrap();
    let id = RequestId::random();
    faults.set(|number| if number < 2 { Fault::ReplyLost } else { Fault::None });
    let place = || Change::new(Place).add("count", 1);
    let first = moved(orders.apply("o1", place(), Some(&id)).await.unwrap());
    let second = moved(orders.apply("o1", place(), Some(&id)).await.unwrap());
    assert_eq!(first, second);
    assert_eq!((first.version, first.sums), (2, vec![1]));
}

/// S4 §10: a record without half of its fields throws, or is taken for one of 1970.
async fn half_a_record_is_corrupt(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let key = kit.keys(FAMILY, "o1").unwrap().key("Order");
    kit.call(&Request::new("HSET").key(&key).arg("note").arg("x")).await.unwrap();
    assert!(matches!(orders.load("o1").await, Err(Error::Corrupt(_))));
    let applied = orders.apply("o1", Change::new(Place), None).await;
    assert!(matches!(applied, Err(Error::Corrupt(_))));
    let none: [(&str, &str); 0] = [];
    let opened = orders.open("o1", Order::Draft, none, None).await;
    assert!(matches!(opened, Err(Error::Corrupt(_))));
    let fields = ["state", "Lost", "version", "1", "created_at_ms", "1", "updated_at_ms", "1"];
    let request = fields.iter().fold(Request::new("HSET").key(&key), |it, arg| it.arg(*arg));
    kit.call(&request).await.unwrap();
    assert!(matches!(orders.load("o1").await, Err(Error::Corrupt(_))));
    kit.call(&Request::new("DEL").key(&key)).await.unwrap();
}

/// S4 §11: an update of what has run out makes half an object that lives for ever.
async fn a_transition_never_creates(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let applied = orders.apply("o1", Change::new(Place).add("n", 1), None).await.unwrap();
    assert_eq!(applied, Applied::Missing);
    assert!(!exists(&kit, "o1", "Order").await);
}

async fn a_record_ends(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let none: [(&str, &str); 0] = [];
    let _ = orders.open("o1", Order::Draft, none, None).await.unwrap();
    let before = ttl_ms(&kit, "o1", "Order").await;
    let _ = orders.apply("o1", Change::new(Place), None).await.unwrap();
    let after = ttl_ms(&kit, "o1", "Order").await;
    assert!(0 < after && after <= before);
    let short = Change::new(Pay).ttl(Duration::from_millis(50));
    let _ = orders.apply("o1", short, None).await.unwrap();
    while orders.load("o1").await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Pattern 23, S4 §22: the status changes with the first level, so that level 2 is unreachable.
/// 32 tasks, exactly three succeed, and level and version rise together.
async fn every_level_is_reached_and_no_more(kit: Kit) {
    let cases = Escalations::new(&kit, 3, HOUR).unwrap();
    let _ = cases.open("c1", None).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..32 {
        let cases = cases.clone();
        tasks.push(tokio::spawn(async move { cases.escalate("c1", None, None).await.unwrap() }));
    }
    let mut levels = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Escalation::Escalated { level, version } => {
                assert_eq!(u64::from(level) + 1, version);
                levels.push(level);
            }
            Escalation::AtTop => {}
            other => panic!("{other:?}"),
        }
    }
    levels.sort_unstable();
    assert_eq!(levels, [1, 2, 3]);
    assert_eq!(cases.close("c1", None).await.unwrap(), Escalation::Closed { version: 5 });
    assert_eq!(cases.escalate("c1", None, None).await.unwrap(), Escalation::NotOpen);
    let case = cases.load("c1").await.unwrap().unwrap();
    assert_eq!((case.state, case.level, case.version), (CaseState::Closed, 3, 5));
}

/// S4 §22: a retry, and a case that is not there, look the same.
async fn missing_and_repeated_differ(kit: Kit) {
    let cases = Escalations::new(&kit, 3, HOUR).unwrap();
    let id = RequestId::random();
    assert_eq!(cases.escalate("c1", None, Some(&id)).await.unwrap(), Escalation::Missing);
    let _ = cases.open("c1", None).await.unwrap();
    for _ in 0..3 {
        let risen = cases.escalate("c1", Some(1), Some(&id)).await.unwrap();
        assert_eq!(risen, Escalation::Escalated { level: 1, version: 2 });
    }
    let stale = cases.escalate("c1", Some(1), None).await.unwrap();
    assert_eq!(stale, Escalation::Changed { version: 2 });
    assert!(matches!(Escalations::new(&kit, 0, HOUR), Err(Error::Invalid(_))));
}

async fn arguments_are_looked_at_first(kit: Kit) {
    let orders = Machine::<Order>::new(&kit, HOUR).unwrap();
    let reserved = orders.open("o1", Order::Draft, [("version", "7")], None).await;
    assert!(matches!(reserved, Err(Error::Invalid(_))));
    let none: [(&str, &str); 0] = [];
    let _ = orders.open("o1", Order::Draft, none, None).await.unwrap();
    for change in [
        Change::new(Place).set("state", "Paid"),
        Change::new(Place).at_version(0),
        Change::new(Place).ttl(Duration::ZERO),
        (0..65).fold(Change::new(Place), |it, number| it.set(&format!("f{number}"), "x")),
    ] {
        assert!(matches!(orders.apply("o1", change, None).await, Err(Error::Invalid(_))));
    }
    assert_eq!(orders.load("o1").await.unwrap().unwrap().version, 1);
}

/// States that are written by hand may have any name, also one that stands for two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Plain,
    Comma,
}

impl russet::state::States for Named {
    const MACHINE: &'static str = "Named";
    const ALL: &'static [Self] = &[Named::Plain, Named::Comma];

    fn name(self) -> &'static str {
        match self {
            Named::Plain => "x",
            Named::Comma => "x,y",
        }
    }
}

struct ToComma;

impl russet::state::Transition for ToComma {
    type States = Named;
    const NAME: &'static str = "ToComma";
    const FROM: &'static [Named] = &[Named::Plain];
    const TO: Named = Named::Comma;
}

struct FromComma;

impl russet::state::Transition for FromComma {
    type States = Named;
    const NAME: &'static str = "FromComma";
    const FROM: &'static [Named] = &[Named::Comma];
    const TO: Named = Named::Plain;
}

/// From "x,y" a transition was made that starts from "x", or from "y".
async fn a_name_with_a_comma_is_no_state(kit: Kit) {
    let machine = Machine::<Named>::new(&kit, HOUR).unwrap();
    let none: [(&str, &str); 0] = [];
    let refused = machine.open("a", Named::Comma, none, None).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(machine.open("a", Named::Plain, none, None).await, Ok(Opened::Opened));
    let refused = machine.apply("a", Change::new(ToComma), None).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let refused = machine.apply("a", Change::new(FromComma), None).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let keys = kit.keys(FAMILY, "a").unwrap();
    let keys = [keys.key("request"), keys.key("Named")];
    let args = ["0", "x,y", "x", "0", "0", "0"];
    let refused = crate::raw_step(&kit, "state_apply", &keys, &args).await;
    assert_eq!(refused, Err(Error::Invalid("state".into())));
}
