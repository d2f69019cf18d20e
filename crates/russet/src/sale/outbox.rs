//! The outbox of a sale: what has happened to its orders, for a database to take in once.

use super::{OrderId, Sale};
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::step::{Safe, Step};
use std::fmt;

/// The most events of one read.
const EVENTS_MAX: u32 = 1000;

pub(super) static OUTBOX: Step<Safe> = Step::read_only("sale_outbox", include_str!("outbox.lua"));
pub(super) static CONFIRM: Step<Safe> = Step::new("sale_confirm", include_str!("confirm.lua"));

/// How far a database has got. Positions of one sale are ordered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Position(String);

impl Position {
    /// To be stored beside the orders.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Position {
    fn from(text: &str) -> Self {
        Position(text.to_owned())
    }
}

/// What has happened to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An item was bought, or reserved.
    Ordered,
    /// The reservation was made final. Orders without a reservation are final as they are made.
    Paid,
    /// The user gave the item back.
    Cancelled,
    /// The reservation has timed out.
    Expired,
}

/// One thing that has happened.
#[derive(Clone, PartialEq, Eq)]
pub struct OrderEvent {
    /// Where it stands among all events of the sale.
    pub position: Position,
    /// What has happened.
    pub kind: EventKind,
    /// Empty for a reservation that has timed out after the store had lost the order.
    pub order: OrderId,
    /// Who bought.
    pub user: Vec<u8>,
}

impl OrderEvent {
    fn read(reply: Reply) -> Result<OrderEvent> {
        let corrupt = || Error::Corrupt("an event of the outbox lacks a part".into());
        let mut parts = reply.into_list()?.into_iter().map(Reply::into_bytes);
        let mut next = || parts.next().ok_or_else(corrupt)??.ok_or_else(corrupt);
        let position = String::from_utf8(next()?).map_err(|_bytes| corrupt())?;
        let kind = match next()?.as_slice() {
            b"ordered" => EventKind::Ordered,
            b"paid" => EventKind::Paid,
            b"cancelled" => EventKind::Cancelled,
            b"expired" => EventKind::Expired,
            _ => return Err(corrupt()),
        };
        let (order, user) = (OrderId(next()?), next()?);
        Ok(OrderEvent { position: Position(position), kind, order, user })
    }
}

/// Says nothing of its user.
impl fmt::Debug for OrderEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderEvent")
            .field("position", &self.position)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The database that takes orders in. That each event counts once is up to one thing: `apply`
/// writes the rows and the position of the last event in one transaction, which fails if the stored
/// position is not the one that `position` gave any more. The id of an order should be unique there
/// besides. [`Sale::drain`] has an example.
pub trait Ledger: Send + Sync {
    /// Of the database.
    type Error: Send;

    /// The position that was stored last; None in the beginning.
    fn position(&self) -> impl Future<Output = Result<Option<Position>, Self::Error>> + Send;

    /// Takes in events that follow `after`, all or none.
    fn apply(
        &self,
        after: Option<&Position>,
        events: &[OrderEvent],
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Which of the two has failed.
#[derive(Debug)]
pub enum DrainError<E> {
    /// The events could not be read or confirmed.
    Store(Error),
    /// The database did not take them in: they are given again.
    Ledger(E),
}

impl<E> From<Error> for DrainError<E> {
    fn from(error: Error) -> Self {
        DrainError::Store(error)
    }
}

impl<E: fmt::Display> fmt::Display for DrainError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrainError::Store(error) => write!(f, "the outbox: {error}"),
            DrainError::Ledger(error) => write!(f, "the ledger: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for DrainError<E> {}

impl Sale {
    /// What has happened after a position, the oldest first, a thousand events at most. With
    /// [`Sale::confirm`] it is what [`Sale::drain`] is made of.
    pub async fn outbox(&self, after: Option<&Position>, limit: u32) -> Result<Vec<OrderEvent>> {
        let call = self
            .kit
            .step(&OUTBOX)
            .key(self.keys.key("outbox"))
            .arg(after.map_or("-", Position::as_str))
            .arg(limit.min(EVENTS_MAX));
        let events = call.run().await?.list("events")?;
        events.into_iter().map(OrderEvent::read).collect()
    }

    /// Forgets events up to a position that the database has stored. [`Error::Corrupt`] if the
    /// outbox has never come that far: then nothing is forgotten.
    pub async fn confirm(&self, position: &Position) -> Result<u64> {
        let call = self.kit.step(&CONFIRM).key(self.keys.key("outbox")).arg(position.as_str());
        let envelope = call.run().await?;
        if envelope.is("AHEAD") {
            let ahead = "the position is ahead of the outbox, which has lost events or is another";
            return Err(Error::Corrupt(ahead.into()));
        }
        envelope.count("forgotten")
    }

    /// Moves events into a database, a thousand at most, and gives how many there were. Whatever
    /// dies in between, the position in the database says where to go on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use russet::sale::{Ledger, OrderEvent, Position, Sale, Terms, Window};
    /// use std::convert::Infallible;
    /// use std::sync::Mutex;
    /// use std::time::Duration;
    ///
    /// /// Rows and position change in one transaction: here, under one lock.
    /// #[derive(Default)]
    /// struct Database(Mutex<(Option<Position>, Vec<OrderEvent>)>);
    ///
    /// impl Ledger for Database {
    ///     type Error = Infallible;
    ///
    ///     async fn position(&self) -> Result<Option<Position>, Infallible> {
    ///         Ok(self.0.lock().unwrap().0.clone())
    ///     }
    ///
    ///     async fn apply(
    ///         &self,
    ///         after: Option<&Position>,
    ///         events: &[OrderEvent],
    ///     ) -> Result<(), Infallible> {
    ///         let mut tables = self.0.lock().unwrap();
    ///         if tables.0.as_ref() == after {
    ///             tables.1.extend_from_slice(events);
    ///             tables.0 = events.last().map(|event| event.position.clone());
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let kit = russet::Kit::embedded(Default::default())?;
    /// let sale = Sale::new(&kit, "sneakers")?;
    /// let terms = Terms {
    ///     stock: 10,
    ///     window: Window::ForNext(Duration::from_secs(60)),
    ///     hold: None,
    ///     keep: Duration::from_secs(60),
    ///     outbox_max: 1000,
    /// };
    /// let _ = sale.open(&terms).await?;
    /// let _ = sale.buy("ann", None).await?;
    /// let database = Database::default();
    /// assert_eq!(sale.drain(&database).await?, 1);
    /// assert_eq!(sale.drain(&database).await?, 0);
    /// assert_eq!(database.0.lock().unwrap().1[0].user, b"ann");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain<L: Ledger>(&self, ledger: &L) -> Result<usize, DrainError<L::Error>> {
        let after = ledger.position().await.map_err(DrainError::Ledger)?;
        if let Some(position) = &after {
            self.confirm(position).await?;
        }
        let events = self.outbox(after.as_ref(), EVENTS_MAX).await?;
        let Some(last) = events.last() else {
            return Ok(0);
        };
        ledger.apply(after.as_ref(), &events).await.map_err(DrainError::Ledger)?;
        self.confirm(&last.position).await?;
        Ok(events.len())
    }
}
