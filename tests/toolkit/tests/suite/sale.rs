//! Flash sales: exactly the stock is sold, one to a user, and a database learns of it once.

use russet::key::{Family, Scope};
use russet::sale::{
    Bought, Cancelled, EventKind, Ledger, Opened, OrderEvent, OrderId, OrderState, Paid, Position,
    Sale, Terms, Window,
};
use russet::{Error, Kit, Request, RequestId};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    an_id_of_one_buyer_is_no_order_of_another
    exactly_the_stock_is_sold
    a_user_buys_one
    a_retry_after_success_gets_its_order
    a_sale_that_was_not_opened_has_nothing
    a_cancelled_order_goes_back_on_sale
    a_reservation_is_paid_or_times_out
    a_database_takes_in_every_event_once
    an_outbox_that_nobody_empties_stops_the_sale
    everything_of_a_sale_expires
    terms_without_sense_are_refused
    keys_of_a_sale_share_a_slot
}

const HOUR: Duration = Duration::from_secs(3600);

fn terms(stock: u32) -> Terms {
    let window = Window::ForNext(HOUR);
    Terms { stock, window, hold: None, keep: HOUR, outbox_max: 10_000 }
}

async fn opened(kit: &Kit, terms: &Terms) -> Sale {
    let sale = Sale::new(kit, "sale").unwrap();
    assert_eq!(sale.open(terms).await, Ok(Opened::Opened));
    sale
}

fn ordered(bought: Bought) -> OrderId {
    match bought {
        Bought::Ordered { order, .. } => order,
        other => panic!("{other:?}"),
    }
}

/// 32 tasks, 1,000 users, 100 items.
async fn exactly_the_stock_is_sold(kit: Kit) {
    let sale = opened(&kit, &terms(100)).await;
    let tasks: Vec<_> = (0..32u32)
        .map(|task| {
            let sale = sale.clone();
            tokio::spawn(async move {
                let mut orders = Vec::new();
                for user in (task..1000).step_by(32) {
                    match sale.buy(format!("user-{user}"), None).await.unwrap() {
                        Bought::Ordered { order, .. } => orders.push(order),
                        other => assert_eq!(other, Bought::SoldOut { held: 0 }),
                    }
                }
                orders
            })
        })
        .collect();
    let mut orders = HashSet::new();
    for task in tasks {
        orders.extend(task.await.unwrap());
    }
    assert_eq!(orders.len(), 100);
    let stats = sale.stats().await.unwrap().unwrap();
    assert_eq!((stats.total, stats.stock, stats.paid, stats.backlog), (100, 0, 100, 100));
    let reported: HashSet<OrderId> =
        sale.outbox(None, 1000).await.unwrap().into_iter().map(|event| event.order).collect();
    assert_eq!(reported, orders);
}

/// One user, many tasks.
async fn a_user_buys_one(kit: Kit) {
    let sale = opened(&kit, &terms(100)).await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let sale = sale.clone();
            tokio::spawn(async move { sale.buy("ann", None).await.unwrap() })
        })
        .collect();
    let mut orders = HashSet::new();
    let mut new = 0;
    for task in tasks {
        let order = match task.await.unwrap() {
            Bought::Ordered { order, .. } => {
                new += 1;
                order
            }
            Bought::Already { order, state } => {
                assert_eq!(state, OrderState::Paid);
                order
            }
            other => panic!("{other:?}"),
        };
        orders.insert(order);
    }
    assert_eq!((new, orders.len()), (1, 1));
    assert_eq!(sale.stats().await.unwrap().unwrap().stock, 99);
}

/// S3, flash sale: a retry after success said "already bought", and there was no order to show.
async fn a_retry_after_success_gets_its_order(kit: Kit) {
    let sale = opened(&kit, &terms(1)).await;
    let request = RequestId::random();
    let order = ordered(sale.buy("ann", Some(&request)).await.unwrap());
    assert_eq!(ordered(sale.buy("ann", Some(&request)).await.unwrap()), order);
    // Another request of the same user, after the last item is gone.
    let other = sale.buy("ann", Some(&RequestId::random())).await.unwrap();
    assert_eq!(other, Bought::Already { order: order.clone(), state: OrderState::Paid });
    assert_eq!(sale.order("ann").await, Ok(Some((order, OrderState::Paid))));
    assert_eq!(sale.buy("bob", None).await, Ok(Bought::SoldOut { held: 0 }));
}

/// S3, flash sale: without the key of the stock the script failed, comparing nil with a number.
async fn a_sale_that_was_not_opened_has_nothing(kit: Kit) {
    let sale = Sale::new(&kit, "none").unwrap();
    assert_eq!(sale.buy("ann", None).await, Ok(Bought::Missing));
    assert_eq!(sale.stats().await, Ok(None));
    assert_eq!(sale.pay("ann", &OrderId::from("x")).await, Ok(Paid::Expired));
    assert_eq!(sale.cancel("ann", &OrderId::from("x")).await, Ok(Cancelled::Gone));
    assert_eq!(sale.reclaim().await, Ok(0));
    sale.close().await.unwrap();
    let keys = kit.keys(Family { purpose: "sale", version: 1 }, "none").unwrap();
    for part in ["sale", "orders", "holds", "outbox"] {
        let exists = Request::new("EXISTS").key(&keys.key(part));
        assert_eq!(kit.call(&exists).await.unwrap().into_int(), Ok(0), "{part}");
    }
}

/// S3, flash sale: no compensation.
async fn a_cancelled_order_goes_back_on_sale(kit: Kit) {
    let sale = opened(&kit, &terms(1)).await;
    assert_eq!(sale.open(&terms(50)).await, Ok(Opened::Exists));
    let order = ordered(sale.buy("ann", None).await.unwrap());
    assert_eq!(sale.cancel("bob", &order).await, Ok(Cancelled::Gone));
    assert_eq!(sale.cancel("ann", &order).await, Ok(Cancelled::Cancelled));
    // A retried cancellation does not give a second item back.
    assert_eq!(sale.cancel("ann", &order).await, Ok(Cancelled::Gone));
    assert_eq!(sale.stats().await.unwrap().unwrap().stock, 1);
    let second = ordered(sale.buy("ann", None).await.unwrap());
    assert_ne!(second, order);
    // Nor does the old order's cancellation touch the new one.
    assert_eq!(sale.cancel("ann", &order).await, Ok(Cancelled::Gone));
    sale.close().await.unwrap();
    assert_eq!(sale.buy("bob", None).await, Ok(Bought::Closed { opens_in: None }));
    assert_eq!(sale.cancel("ann", &second).await, Ok(Cancelled::Cancelled));
}

async fn a_reservation_is_paid_or_times_out(kit: Kit) {
    let hold = Duration::from_millis(150);
    let sale = opened(&kit, &Terms { hold: Some(hold), ..terms(2) }).await;
    let ann = ordered(sale.buy("ann", None).await.unwrap());
    let paid = sale.pay("ann", &ann).await.unwrap();
    let _bob = ordered(sale.buy("bob", None).await.unwrap());
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let mut again = sale.buy("cat", None).await.unwrap();
    while !matches!(again, Bought::Ordered { .. }) {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
        again = sale.buy("cat", None).await.unwrap();
    }
    // On a machine that was too slow to pay in time ann's item has gone back too.
    for _ in 0..2 {
        assert_eq!(sale.pay("ann", &ann).await, Ok(paid));
    }
    let stats = sale.stats().await.unwrap().unwrap();
    assert_eq!(stats.stock + stats.held + stats.paid, stats.total);
    assert!(stats.expired >= 1);
}

/// A database in memory: rows and position change together, or not at all.
#[derive(Default)]
struct Database {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    position: Option<Position>,
    events: HashMap<(OrderId, &'static str), u32>,
    applied: usize,
    failures: u32,
}

impl Ledger for Database {
    type Error = &'static str;

    async fn position(&self) -> Result<Option<Position>, Self::Error> {
        Ok(self.tables.lock().unwrap().position.clone())
    }

    async fn apply(
        &self,
        after: Option<&Position>,
        events: &[OrderEvent],
    ) -> Result<(), Self::Error> {
        tokio::task::yield_now().await;
        let mut tables = self.tables.lock().unwrap();
        if tables.position.as_ref() != after {
            return Err("another has taken them in");
        }
        for event in events {
            let kind = match event.kind {
                EventKind::Ordered => "ordered",
                EventKind::Paid => "paid",
                EventKind::Cancelled => "cancelled",
                EventKind::Expired => "expired",
            };
            *tables.events.entry((event.order.clone(), kind)).or_default() += 1;
        }
        tables.applied += events.len();
        tables.position = events.last().map(|event| event.position.clone());
        tables.failures += 1;
        // Committed, but the answer is lost, half of the time.
        if tables.failures.is_multiple_of(2) { Err("the connection broke") } else { Ok(()) }
    }
}

/// Three processes drain while others buy and cancel, and every second answer of the database is
/// lost: each event counts once.
async fn a_database_takes_in_every_event_once(kit: Kit) {
    let sale = opened(&kit, &terms(200)).await;
    let database = std::sync::Arc::new(Database::default());
    let drains: Vec<_> = (0..3)
        .map(|_| {
            let (sale, database) = (sale.clone(), database.clone());
            tokio::spawn(async move {
                loop {
                    if let Err(russet::sale::DrainError::Store(error)) =
                        sale.drain(&*database).await
                    {
                        panic!("{error}");
                    }
                    if database.tables.lock().unwrap().applied == 250 {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
        })
        .collect();
    for user in 0..200 {
        let order = ordered(sale.buy(user.to_string(), None).await.unwrap());
        if user % 4 == 0 {
            let cancelled = sale.cancel(user.to_string(), &order).await;
            assert_eq!(cancelled, Ok(Cancelled::Cancelled));
        }
    }
    for drain in drains {
        drain.await.unwrap();
    }
    let tables = database.tables.lock().unwrap();
    assert_eq!((tables.applied, tables.events.len()), (250, 250));
    assert!(tables.events.values().all(|&count| count == 1));
}

/// S3, flash sale: the stream of orders had no bound. Orders are not dropped either.
async fn an_outbox_that_nobody_empties_stops_the_sale(kit: Kit) {
    let sale = opened(&kit, &Terms { outbox_max: 2, ..terms(10) }).await;
    for user in ["ann", "bob"] {
        let _ = ordered(sale.buy(user, None).await.unwrap());
    }
    assert_eq!(sale.buy("cat", None).await, Ok(Bought::Busy));
    let events = sale.outbox(None, 10).await.unwrap();
    assert_eq!(sale.confirm(&events[0].position).await, Ok(1));
    assert_eq!(sale.confirm(&events[0].position).await, Ok(0));
    assert_eq!(sale.outbox(None, 10).await.unwrap(), events[1..]);
    assert_eq!(sale.outbox(Some(&events[1].position), 10).await, Ok(Vec::new()));
    let _ = ordered(sale.buy("cat", None).await.unwrap());
}

async fn everything_of_a_sale_expires(kit: Kit) {
    let sale = opened(&kit, &Terms { hold: Some(HOUR), ..terms(10) }).await;
    let _ = ordered(sale.buy("ann", None).await.unwrap());
    let keys = kit.keys(Family { purpose: "sale", version: 1 }, "sale").unwrap();
    for part in ["sale", "orders", "holds", "outbox"] {
        let request = Request::new("PTTL").key(&keys.key(part));
        let left = kit.call(&request).await.unwrap().into_int().unwrap();
        assert!((3_600_000 * 2..=3_600_000 * 3).contains(&left), "{part}: {left}");
    }
}

async fn terms_without_sense_are_refused(kit: Kit) {
    let sale = Sale::new(&kit, "sale").unwrap();
    let now = std::time::SystemTime::now();
    for bad in [
        terms(0),
        Terms { window: Window::ForNext(Duration::ZERO), ..terms(1) },
        Terms { window: Window::Between(now + HOUR, now), ..terms(1) },
        Terms { window: Window::Between(now - HOUR * 2, now - HOUR), ..terms(1) },
        Terms { hold: Some(Duration::ZERO), ..terms(1) },
        Terms { keep: Duration::ZERO, ..terms(1) },
        Terms { outbox_max: 0, ..terms(1) },
    ] {
        assert!(matches!(sale.open(&bad).await, Err(Error::Invalid(_))), "{bad:?}");
    }
    assert!(matches!(sale.buy("", None).await, Err(Error::Invalid(_))));
    assert_eq!(sale.stats().await, Ok(None));
}

/// S3, flash sale: keys were made within the script, and one of them in another slot.
async fn keys_of_a_sale_share_a_slot(kit: Kit) {
    let keys = kit.keys(Family { purpose: "sale", version: 1 }, Scope::from("sale")).unwrap();
    let slots: HashSet<u16> =
        ["sale", "orders", "holds", "outbox"].map(|part| keys.key(part).slot()).into();
    assert_eq!(slots.len(), 1);
}

/// A request id was remembered without whose request it was: the second buyer with the same id got
/// the first one's order.
async fn an_id_of_one_buyer_is_no_order_of_another(kit: Kit) {
    let sale = opened(&kit, &terms(10)).await;
    let request = RequestId::from("one id");
    let ann = ordered(sale.buy("ann", Some(&request)).await.unwrap());
    let bob = ordered(sale.buy("bob", Some(&request)).await.unwrap());
    assert_ne!(ann, bob);
    assert_eq!(ordered(sale.buy("bob", Some(&request)).await.unwrap()), bob);
}

/// Positions are what a database goes on by: with a clock that is set back they must not go back.
#[tokio::test]
async fn positions_of_an_outbox_do_not_go_back_with_the_clock() {
    let time = russet::ManualTime::new();
    let kit = Kit::builder().embedded_at(russet::Options::default(), &time).unwrap();
    let sale = opened(&kit, &terms(10)).await;
    time.advance(HOUR / 2);
    let mut seen = Vec::new();
    let mut last = None;
    for user in 0..4 {
        let _ = ordered(sale.buy(user.to_string(), None).await.unwrap());
        let events = sale.outbox(last.as_ref(), 10).await.unwrap();
        assert_eq!(events.len(), 1, "event {user} is before the last one");
        last = events.last().map(|event| event.position.clone());
        seen.extend(events);
        // All are taken in: the outbox is empty, and knows where it was.
        assert_eq!(sale.confirm(last.as_ref().unwrap()).await, Ok(1));
        time.set_ms(time.now_ms() - 60_000);
    }
    assert_eq!(seen.len(), 4);
}
