//! A flash sale: a stock that is never oversold, one order per user, reservations that time out,
//! and an outbox from which a database learns of every order exactly once.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use russet::RequestId;
//! use russet::sale::{Bought, Paid, Sale, Terms, Window};
//! use std::time::Duration;
//!
//! let kit = russet::Kit::embedded(Default::default())?;
//! let sale = Sale::new(&kit, "console-friday")?;
//! let terms = Terms {
//!     stock: 100,
//!     window: Window::ForNext(Duration::from_secs(3600)),
//!     hold: Some(Duration::from_secs(600)),
//!     keep: Duration::from_secs(86_400),
//!     outbox_max: 10_000,
//! };
//! let _ = sale.open(&terms).await?;
//!
//! let request = RequestId::random();
//! let Bought::Ordered { order, .. } = sale.buy("ann", Some(&request)).await? else {
//!     return Err("sold out".into());
//! };
//! // The same request, or another by the same user, gets the same order.
//! assert!(matches!(sale.buy("ann", None).await?, Bought::Already { .. }));
//! assert_eq!(sale.pay("ann", &order).await?, Paid::Paid);
//! # Ok(())
//! # }
//! ```

mod outbox;

pub use outbox::{DrainError, EventKind, Ledger, OrderEvent, Position};

use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe;
use crate::reply::Envelope;
use crate::retry::{RequestId, token};
use crate::step::{Class, Safe, Step, StepCall, StepInfo, WithRequestId};
use crate::time::millis;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FAMILY: Family = Family { purpose: "sale", version: 1 };
const WORKFLOW: &str = "sale";
/// The longest name of a user.
const USER_BYTES_MAX: usize = 256;
/// Reservations that one step gives back at most.
const RECLAIM_MAX: u32 = 100;

const SHARED: &str = include_str!("sale/shared.lua");
static OPEN: Step<Safe> = Step::new("sale_open", include_str!("sale/open.lua")).sharing(SHARED);
static CLOSE: Step<Safe> = Step::new("sale_close", include_str!("sale/close.lua"));
static BUY: Step<WithRequestId> =
    Step::new("sale_buy", include_str!("sale/buy.lua")).sharing(SHARED);
static PAY: Step<Safe> = Step::new("sale_pay", include_str!("sale/pay.lua")).sharing(SHARED);
static CANCEL: Step<Safe> =
    Step::new("sale_cancel", include_str!("sale/cancel.lua")).sharing(SHARED);
static RECLAIM: Step<Safe> =
    Step::new("sale_reclaim", include_str!("sale/reclaim.lua")).sharing(SHARED);
static ORDER: Step<Safe> =
    Step::read_only("sale_order", include_str!("sale/order.lua")).sharing(SHARED);
static STATS: Step<Safe> = Step::read_only("sale_stats", include_str!("sale/stats.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[
    OPEN.info(),
    CLOSE.info(),
    BUY.info(),
    PAY.info(),
    CANCEL.info(),
    RECLAIM.info(),
    ORDER.info(),
    STATS.info(),
    outbox::OUTBOX.info(),
    outbox::CONFIRM.info(),
];

/// When one can buy. The server's clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// From now on.
    ForNext(Duration),
    /// From the first moment until before the second.
    Between(SystemTime, SystemTime),
}

/// What a sale is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many items there are.
    pub stock: u32,
    /// When they can be bought.
    pub window: Window,
    /// How long an order waits to be paid before its item goes back; None: an order is final.
    pub hold: Option<Duration>,
    /// How long everything is kept after the sale and its last reservation have ended, and so how
    /// long the database may take to fetch what has happened.
    pub keep: Duration,
    /// How many events may wait for the database: with more, nobody can buy.
    pub outbox_max: u32,
}

/// What became of a sale that is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Opened {
    /// By this call.
    Opened,
    /// It was opened before, by this call or another; its terms stay.
    Exists,
}

/// The id of an order: 128 random bits, which say nothing of how many there are.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(Vec<u8>);

impl OrderId {
    /// For the program that pays or delivers it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for OrderId {
    fn from(id: &T) -> Self {
        OrderId(id.as_ref().to_vec())
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OrderId")
    }
}

/// How an order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderState {
    /// It has to be paid in that time.
    Held {
        /// Until the item goes back.
        expires_in: Duration,
    },
    /// It is final: paid, or in a sale without reservations.
    Paid,
}

impl OrderState {
    fn read(envelope: &Envelope) -> Result<OrderState> {
        match u64::try_from(envelope.int("expires_in_ms")?) {
            Ok(ms) => Ok(OrderState::Held { expires_in: Duration::from_millis(ms) }),
            Err(_final) => Ok(OrderState::Paid),
        }
    }
}

/// What a user got.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Bought {
    /// The user has an item, by this request.
    Ordered {
        /// The same for every attempt of the request.
        order: OrderId,
        /// Whether it has to be paid.
        state: OrderState,
    },
    /// The user has this order.
    Already {
        /// By an earlier request.
        order: OrderId,
        /// Whether it has to be paid.
        state: OrderState,
    },
    /// There is none left.
    SoldOut {
        /// Reservations that may still come back.
        held: u64,
    },
    /// It opens in that time, or is over.
    Closed {
        /// None if it is over.
        opens_in: Option<Duration>,
    },
    /// The database has to take in orders first.
    Busy,
    /// There is no such sale.
    Missing,
}

/// What became of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Paid {
    /// The order is final, by this call or an earlier one.
    Paid,
    /// The item went back: give the money back.
    Expired,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Cancelled {
    /// The item went back.
    Cancelled,
    /// It was cancelled before, or its reservation is over.
    Gone,
}

/// One sale of one kind of item. Clones are handles to the same sale.
#[derive(Clone, Debug)]
pub struct Sale {
    kit: Kit,
    keys: Keys,
    replicas_min: u32,
}

impl Sale {
    /// A handle to the sale of this name, opened or not.
    pub fn new(kit: &Kit, name: impl Into<Scope>) -> Result<Sale> {
        Ok(Sale { kit: kit.clone(), keys: kit.keys(FAMILY, name)?, replicas_min: 0 })
    }

    /// The same sale, whose orders count only once so many replicas have them.
    pub fn min_replicas(mut self, replicas: u32) -> Self {
        self.replicas_min = replicas;
        self
    }

    /// Opens it, unless that was done before. If the store has lost the sale but not its orders,
    /// what they have is not sold again.
    pub async fn open(&self, terms: &Terms) -> Result<Opened> {
        let since = |moment: SystemTime| {
            millis(moment.duration_since(UNIX_EPOCH).unwrap_or_default()).max(1)
        };
        let (opens_ms, closes_ms, open_for) = match terms.window {
            Window::ForNext(span) => (0, 0, span),
            Window::Between(from, to) => (since(from), since(to), Duration::ZERO),
        };
        if terms.hold == Some(Duration::ZERO) {
            return Err(Error::invalid("a reservation must last for a while"));
        }
        let call = self
            .kit
            .step(&OPEN)
            .key(self.keys.key("sale"))
            .key(self.keys.key("orders"))
            .key(self.keys.key("holds"))
            .arg(terms.stock)
            .arg(opens_ms)
            .arg(closes_ms)
            .arg(open_for)
            .arg(terms.hold.unwrap_or_default())
            .arg(terms.keep)
            .arg(terms.outbox_max);
        let envelope = call.run().await?;
        match envelope.status() {
            "OPENED" => Ok(Opened::Opened),
            "EXISTS" => Ok(Opened::Exists),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Ends it before its time. Reservations can still be paid and cancelled.
    pub async fn close(&self) -> Result<()> {
        self.kit.step(&CLOSE).key(self.keys.key("sale")).run().await.map(drop)
    }

    /// Takes one item for a user: an id, not an address or a name. A repeated call gets the same
    /// order, as `Ordered` with the same request id and as `Already` without.
    pub async fn buy(&self, user: impl AsRef<[u8]>, request: Option<&RequestId>) -> Result<Bought> {
        let user = user.as_ref();
        if user.is_empty() || user.len() > USER_BYTES_MAX {
            return Err(Error::invalid(format!("a user has 1 to {USER_BYTES_MAX} bytes")));
        }
        let call = self.kit.step_of_request(&BUY, &self.keys, request);
        let call = self.with_keys(call).about(user).arg(token()).replicas_min(self.replicas_min);
        let mut envelope = call.run().await?;
        match envelope.status() {
            "ORDERED" => {
                observe::count("redis.sale.ordered.count", WORKFLOW, 1);
                let state = OrderState::read(&envelope)?;
                Ok(Bought::Ordered { order: OrderId(envelope.text("order")?), state })
            }
            "ALREADY" => {
                let state = OrderState::read(&envelope)?;
                Ok(Bought::Already { order: OrderId(envelope.text("order")?), state })
            }
            "SOLD_OUT" => {
                observe::count("redis.sale.sold_out.count", WORKFLOW, 1);
                Ok(Bought::SoldOut { held: envelope.count("held")? })
            }
            "CLOSED" => {
                let opens_in = u64::try_from(envelope.int("opens_in_ms")?).ok();
                Ok(Bought::Closed { opens_in: opens_in.map(Duration::from_millis) })
            }
            "BUSY" => Ok(Bought::Busy),
            "MISSING" => Ok(Bought::Missing),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Makes a reservation final. May be called again.
    pub async fn pay(&self, user: impl AsRef<[u8]>, order: &OrderId) -> Result<Paid> {
        let call = self.with_keys(self.kit.step(&PAY)).arg(user.as_ref()).arg(order.as_bytes());
        let envelope = call.replicas_min(self.replicas_min).run().await?;
        match envelope.status() {
            "PAID" => Ok(Paid::Paid),
            "EXPIRED" => Ok(Paid::Expired),
            "LOST" => Err(lost()),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Gives an order back: its item is on sale again. May be called again.
    pub async fn cancel(&self, user: impl AsRef<[u8]>, order: &OrderId) -> Result<Cancelled> {
        let call = self.with_keys(self.kit.step(&CANCEL)).arg(user.as_ref()).arg(order.as_bytes());
        let envelope = call.replicas_min(self.replicas_min).run().await?;
        match envelope.status() {
            "CANCELLED" => Ok(Cancelled::Cancelled),
            "GONE" => Ok(Cancelled::Gone),
            "LOST" => Err(lost()),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Puts items of reservations whose time is over on sale again, a hundred at most; gives how
    /// many there were. Whoever finds nothing left does the same, so that this is only needed for
    /// the database to learn of them soon.
    pub async fn reclaim(&self) -> Result<u64> {
        let call = self.with_keys(self.kit.step(&RECLAIM)).arg(RECLAIM_MAX);
        let count = call.run().await?.count("reclaimed")?;
        observe::count("redis.sale.expired.count", WORKFLOW, count);
        Ok(count)
    }

    /// The order that a user has.
    pub async fn order(&self, user: impl AsRef<[u8]>) -> Result<Option<(OrderId, OrderState)>> {
        let call = self.kit.step(&ORDER).key(self.keys.key("orders")).arg(user.as_ref());
        let mut envelope = call.run().await?;
        match envelope.status() {
            "FOUND" => {
                let state = OrderState::read(&envelope)?;
                Ok(Some((OrderId(envelope.text("order")?), state)))
            }
            "MISSING" => Ok(None),
            _ => Err(envelope.unexpected()),
        }
    }

    /// How the sale stands; None if there is none.
    pub async fn stats(&self) -> Result<Option<SaleStats>> {
        let (sale, outbox) = (self.keys.key("sale"), self.keys.key("outbox"));
        let envelope = self.kit.step(&STATS).key(sale).key(outbox).run().await?;
        if envelope.is("MISSING") {
            return Ok(None);
        }
        let stats = SaleStats {
            total: envelope.count("total")?,
            stock: envelope.count("stock")?,
            held: envelope.count("held")?,
            paid: envelope.count("paid")?,
            cancelled: envelope.count("cancelled")?,
            expired: envelope.count("expired")?,
            backlog: envelope.count("backlog")?,
        };
        observe::gauge("redis.sale.stock", WORKFLOW, stats.stock);
        observe::gauge("redis.sale.backlog", WORKFLOW, stats.backlog);
        Ok(Some(stats))
    }

    fn with_keys<'k, C: Class>(&self, call: StepCall<'k, C>) -> StepCall<'k, C> {
        let parts = ["sale", "orders", "holds", "outbox"];
        parts.into_iter().fold(call, |call, part| call.key(self.keys.key(part)))
    }
}

/// Its orders are there, but not the sale itself: opened again, it goes on.
fn lost() -> Error {
    Error::Corrupt("the store has lost the sale".into())
}

/// How a sale stands: `total` is `stock`, `held` and `paid` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaleStats {
    /// What it was opened with.
    pub total: u64,
    /// What can be bought.
    pub stock: u64,
    /// Items that are reserved and not paid.
    pub held: u64,
    /// Items that are sold for good.
    pub paid: u64,
    /// Orders that were cancelled so far.
    pub cancelled: u64,
    /// Reservations that have timed out so far.
    pub expired: u64,
    /// Events that the database has not confirmed.
    pub backlog: u64,
}
