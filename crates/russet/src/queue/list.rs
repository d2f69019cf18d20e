//! A list as a queue or a stack: what is taken out is gone, with whoever took it.

use super::{Bounds, PAYLOAD_BYTES_MAX};
use crate::error::{Error, Result};
use crate::key::{Family, Keys, Scope};
use crate::kit::Kit;
use crate::observe::{self, stats};
use crate::request::Request;
use crate::retry::RequestId;
use crate::step::{Step, StepInfo, WithRequestId};
use std::sync::Arc;
use std::time::Duration;

const FAMILY: Family = Family { purpose: "list", version: 1 };
const WORKFLOW: &str = "list";
/// The longest that a pop waits.
const WAIT_MAX: Duration = Duration::from_secs(60);

static PUSH: Step<WithRequestId> = Step::new("list_push", include_str!("list/push.lua"));
static POP: Step<WithRequestId> = Step::new("list_pop", include_str!("list/pop.lua"));

pub(crate) static STEPS: &[&StepInfo] = &[PUSH.info(), POP.info()];

/// Which item comes out first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest: a queue.
    #[default]
    Fifo,
    /// The newest: a stack.
    Lifo,
}

/// What a full list does with another item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnFull {
    /// It is refused: [`Pushed::Full`].
    #[default]
    Reject,
    /// The oldest item makes room.
    DropOldest,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    /// It is in the list.
    Pushed {
        /// Items in the list, this one included.
        length: u64,
        /// Items that had to make room.
        dropped: u64,
    },
    /// The list has as many items as it may: nothing has changed.
    Full,
}

/// A list of items that are taken out at most once: if the worker dies its item is lost, and so is
/// one whose reply is lost. Where that matters take [`Reliable`](super::Reliable).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::queue::{Bounds, List};
/// use std::time::Duration;
///
/// let kit = russet::Kit::embedded(Default::default())?;
/// let bounds = Bounds { capacity: 1000, ttl: Duration::from_secs(3600) };
/// let thumbnails = List::builder(&kit, "thumbnails", bounds).build()?;
/// let _ = thumbnails.push("image-1", None).await?;
/// assert_eq!(thumbnails.pop(None).await?, Some(b"image-1".to_vec()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct List {
    kit: Kit,
    keys: Keys,
    bounds: Bounds,
    order: Order,
    on_full: OnFull,
    payload_bytes_max: usize,
    counts: Arc<Counts>,
}

stats! {
    /// What a handle and its clones have seen in this process; [`List::len`] is the backlog.
    ListStats counted by Counts {
        /// Items added by calls of [`List::push`], those whose request was repeated included.
        pushed,
        /// Items that were refused because the list was full.
        rejected,
        /// Older items that had to make room: nobody gets them.
        dropped,
        /// Items taken out.
        popped,
        /// Calls that found nothing to take, or waited for it in vain.
        empty,
    }
}

impl List {
    /// Begins to describe the list of this name. Nothing is sent before it is used.
    pub fn builder(kit: &Kit, name: impl Into<Scope>, bounds: Bounds) -> ListBuilder {
        ListBuilder {
            kit: kit.clone(),
            name: name.into(),
            bounds,
            order: Order::default(),
            on_full: OnFull::default(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    /// Adds an item. If the outcome is unknown, call again with the same request id.
    pub async fn push(
        &self,
        payload: impl AsRef<[u8]>,
        request: Option<&RequestId>,
    ) -> Result<Pushed> {
        let payload = payload.as_ref();
        if payload.len() > self.payload_bytes_max {
            let most = self.payload_bytes_max;
            return Err(Error::invalid(format!("a payload is over {most} bytes")));
        }
        let on_full = match self.on_full {
            OnFull::Reject => "reject",
            OnFull::DropOldest => "drop_oldest",
        };
        let call = self
            .kit
            .step_of_request(&PUSH, &self.keys, request)
            .key(self.keys.key("items"))
            .about(payload)
            .arg(self.bounds.capacity)
            .arg(on_full)
            .arg(self.bounds.ttl);
        let envelope = call.run().await?;
        match envelope.status() {
            "PUSHED" => {
                let (length, dropped) = (envelope.count("length")?, envelope.count("dropped")?);
                observe::gauge("redis.queue.length", WORKFLOW, length);
                self.counts.pushed.add(1);
                self.counts.dropped.add(dropped);
                Ok(Pushed::Pushed { length, dropped })
            }
            "FULL" => {
                self.counts.rejected.add(1);
                Ok(Pushed::Full)
            }
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes an item, if there is one.
    pub async fn pop(&self, request: Option<&RequestId>) -> Result<Option<Vec<u8>>> {
        let popped = self.try_pop(request).await?;
        self.count_popped(popped.is_some());
        Ok(popped)
    }

    async fn try_pop(&self, request: Option<&RequestId>) -> Result<Option<Vec<u8>>> {
        let which = match self.order {
            Order::Fifo => "oldest",
            Order::Lifo => "newest",
        };
        let call = self
            .kit
            .step_of_request(&POP, &self.keys, request)
            .key(self.keys.key("items"))
            .arg(which)
            .arg(self.bounds.ttl);
        let watch = observe::Stopwatch::start();
        let mut envelope = call.run().await?;
        observe::latency("redis.queue.pop.latency", WORKFLOW, watch);
        match envelope.status() {
            "POPPED" => envelope.text("payload").map(Some),
            "EMPTY" => Ok(None),
            _ => Err(envelope.unexpected()),
        }
    }

    /// Takes an item as soon as there is one, on a connection that blocks nobody else. Waits a
    /// minute at most, whatever `at_most` says. If the connection breaks while an item is on its
    /// way the item is lost.
    pub async fn pop_wait(&self, at_most: Duration) -> Result<Option<Vec<u8>>> {
        let popped = match self.try_pop(None).await? {
            None => self.wait_for_item(at_most).await?,
            popped => popped,
        };
        self.count_popped(popped.is_some());
        Ok(popped)
    }

    async fn wait_for_item(&self, at_most: Duration) -> Result<Option<Vec<u8>>> {
        let at_most = at_most.min(WAIT_MAX);
        let name = match self.order {
            Order::Fifo => "BLPOP",
            Order::Lifo => "BRPOP",
        };
        let key = self.keys.key("items");
        let seconds = at_most.as_secs_f64().max(0.01);
        let request = Request::new(name).key(&key).arg(seconds);
        let mut own = self.kit.connection(key.slot()).await?;
        let reply = own.call(&request, at_most + self.kit.timeout()).await?;
        match reply.into_list()?.into_iter().nth(1) {
            Some(payload) => payload.into_bytes(),
            None => Ok(None),
        }
    }

    fn count_popped(&self, is_popped: bool) {
        let Counts { popped, empty, .. } = &*self.counts;
        if is_popped { popped.add(1) } else { empty.add(1) }
    }

    /// What this handle and its clones have seen.
    pub fn stats(&self) -> ListStats {
        self.counts.stats()
    }

    /// How many items wait to be taken out.
    pub async fn len(&self) -> Result<u64> {
        let request = Request::new("LLEN").key(&self.keys.key("items"));
        let length = self.kit.call_safe(&request).await?.into_int()?;
        Ok(u64::try_from(length).unwrap_or(0))
    }

    /// Whether there is nothing to take out.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }
}

/// What a [`List`] is made with.
#[derive(Clone, Debug)]
#[must_use]
pub struct ListBuilder {
    kit: Kit,
    name: Scope,
    bounds: Bounds,
    order: Order,
    on_full: OnFull,
    payload_bytes_max: usize,
}

impl ListBuilder {
    /// Which item comes out first; the oldest by default.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// What becomes of an item for a full list; it is refused by default.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// The largest payload; 64 KiB by default.
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// The list, unless its bounds are zero.
    pub fn build(self) -> Result<List> {
        let ListBuilder { kit, name, bounds, order, on_full, payload_bytes_max } = self;
        bounds.check()?;
        let keys = kit.keys(FAMILY, name)?;
        let counts = Arc::default();
        Ok(List { kit, keys, bounds, order, on_full, payload_bytes_max, counts })
    }
}
