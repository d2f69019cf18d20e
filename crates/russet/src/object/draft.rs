//! Drafts: carts and quotes that are not committed yet. A bounded summary and its line items, in
//! one slot, whose sums always agree.

use super::store::{Created, Loaded, ObjectSettings, Objects};
use super::{Record, View};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::reply::{Envelope, Reply};
use crate::retry::RequestId;
use crate::spread::check_bound;
use crate::step::{Safe, Step, WithRequestId};
use std::time::Duration;

/// The most line items of a draft.
const ITEMS_MAX: u32 = 10_000;
/// More than the summary of a draft ever takes.
const SUMMARY_BYTES_MAX: u32 = 4096;

pub(super) static ITEM: Step<WithRequestId> =
    Step::new("draft_item", include_str!("draft_item.lua"));
pub(super) static DISCOUNT: Step<WithRequestId> =
    Step::new("draft_discount", include_str!("draft_discount.lua"));
pub(super) static READ: Step<Safe> = Step::read_only("draft_read", include_str!("draft_read.lua"));

/// What bounds drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftSettings {
    /// How long a draft lives after its last change.
    pub ttl: Duration,
    /// How many line items it has.
    pub items_max: u32,
}

/// The summary of a draft. Money is in minor units: cents.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
#[record(purpose = "draft", schema = 1)]
pub struct Draft {
    /// Whose it is.
    pub customer_id: String,
    /// As `EUR`.
    pub currency: String,
    /// Of the line items.
    pub subtotal_minor: i64,
    /// Taken off the subtotal.
    pub discount_minor: i64,
    /// Added to what is left.
    pub tax_minor: i64,
    /// Subtotal less discount plus tax.
    pub total_minor: i64,
    /// Line items, not pieces.
    pub item_count: u32,
}

/// A line item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineItem {
    /// What is bought: one line item for each.
    pub sku: Member,
    /// Pieces.
    pub quantity: u32,
    /// The price of one piece, in minor units.
    pub unit_minor: i64,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum DraftChange {
    /// It was made.
    Done {
        /// After the change.
        version: u64,
        /// Of the line items, in minor units.
        subtotal_minor: i64,
        /// With discount and tax, in minor units.
        total_minor: i64,
    },
    /// There is no such draft, or no longer.
    Missing,
    /// It has changed since it was read: this is its version now.
    Conflict {
        /// To be read again before the next attempt.
        version: u64,
    },
    /// It has `items_max` line items.
    Full,
    /// The discount is more than this.
    TooLarge {
        /// Of the line items, in minor units.
        subtotal_minor: i64,
    },
}

stats! {
    /// What a handle has seen in this process.
    DraftStats counted by Counts {
        /// Drafts that are new.
        created,
        /// Changes of items and of amounts that were made.
        changed,
        /// Changes that were refused because the draft had changed.
        conflicts,
        /// Changes that were refused because there was no such draft.
        missing,
        /// Changes that were refused because of a bound.
        rejected,
        /// Drafts that were removed.
        removed,
    }
}

impl Counts {
    fn counted(&self, change: DraftChange) -> DraftChange {
        let counter = match change {
            DraftChange::Done { .. } => &self.changed,
            DraftChange::Missing => &self.missing,
            DraftChange::Conflict { .. } => &self.conflicts,
            DraftChange::Full | DraftChange::TooLarge { .. } => &self.rejected,
        };
        counter.add(1);
        change
    }
}

/// Carts or quotes by id.
///
/// Invariant: the total is the sum of the line items less the discount plus the tax, after every
/// call and whoever else calls.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::object::{DraftChange, Drafts, DraftSettings, LineItem};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let settings = DraftSettings { ttl: Duration::from_secs(7 * 24 * 3600), items_max: 100 };
/// let carts = Drafts::new(&kit, settings)?;
/// let _created = carts.create("cart-1", "ann", "EUR", None).await?;
/// let book = LineItem { sku: "book".into(), quantity: 2, unit_minor: 1250 };
/// let _done = carts.set_item("cart-1", &book, None, None).await?;
/// let done = carts.apply_discount("cart-1", 500, Some(2), None).await?;
/// let wanted = DraftChange::Done { version: 3, subtotal_minor: 2500, total_minor: 2000 };
/// assert_eq!(done, wanted);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Drafts {
    kit: Kit,
    objects: Objects<Draft>,
    settings: DraftSettings,
    counts: Counts,
}

impl Drafts {
    /// Drafts by these settings. Refuses a TTL of zero and no items.
    pub fn new(kit: &Kit, settings: DraftSettings) -> Result<Self> {
        check_bound("items_max", settings.items_max, ITEMS_MAX)?;
        let of_objects = ObjectSettings { ttl: settings.ttl, bytes_max: SUMMARY_BYTES_MAX };
        let (objects, counts) = (Objects::new(kit, of_objects)?, Counts::default());
        Ok(Drafts { kit: kit.clone(), objects, settings, counts })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> DraftStats {
        self.counts.stats()
    }

    /// An empty draft.
    pub async fn create(
        &self,
        id: impl Into<Scope>,
        customer_id: &str,
        currency: &str,
        request: Option<&RequestId>,
    ) -> Result<Created> {
        let draft = Draft {
            customer_id: customer_id.to_owned(),
            currency: currency.to_owned(),
            subtotal_minor: 0,
            discount_minor: 0,
            tax_minor: 0,
            total_minor: 0,
            item_count: 0,
        };
        let created = self.objects.create(id, &draft, request).await?;
        self.counts.created.add(u64::from(created == Created::Created));
        Ok(created)
    }

    /// The summary.
    pub async fn load(&self, id: impl Into<Scope>) -> Result<Loaded<Draft>> {
        self.objects.load(id).await
    }

    /// Some of the summary.
    pub async fn load_view<V: View<Draft>>(&self, id: impl Into<Scope>) -> Result<Loaded<V>> {
        self.objects.load_view(id).await
    }

    /// The line items, by their SKU.
    pub async fn items(&self, id: impl Into<Scope>) -> Result<Vec<LineItem>> {
        let keys = self.objects.keys(id.into())?;
        let list = self.kit.step(&READ).key(keys.key("items")).run().await?.list("items")?;
        let items: Option<Vec<LineItem>> = list.chunks_exact(2).map(line_item).collect();
        let mut items = items.ok_or_else(|| Error::Corrupt("a line item".into()))?;
        items.sort_by(|a, b| a.sku.cmp(&b.sku));
        Ok(items)
    }

    /// Sets a line item; a quantity of 0 removes it. With a version, only if the draft still has
    /// it.
    pub async fn set_item(
        &self,
        id: impl Into<Scope>,
        item: &LineItem,
        version: Option<u64>,
        request: Option<&RequestId>,
    ) -> Result<DraftChange> {
        let keys = self.objects.keys(id.into())?;
        let sku = item.sku.clone().checked()?;
        let call = self.kit.step_of_request(&ITEM, &keys, request);
        let call = call.key(keys.key("record")).key(keys.key("items")).about(&sku);
        let call = call.arg(item.quantity).arg(item.unit_minor).arg(expected(version));
        let call = call.arg(self.settings.items_max).arg(self.settings.ttl);
        Ok(self.counts.counted(changed(&call.run().await?)?))
    }

    /// Sets the discount, in minor units: up to the subtotal. With a version, only if the draft
    /// still has it.
    pub async fn apply_discount(
        &self,
        id: impl Into<Scope>,
        discount_minor: i64,
        version: Option<u64>,
        request: Option<&RequestId>,
    ) -> Result<DraftChange> {
        self.amount(id.into(), ("DISCOUNT", discount_minor), version, request).await
    }

    /// Sets the tax, in minor units. With a version, only if the draft still has it.
    pub async fn set_tax(
        &self,
        id: impl Into<Scope>,
        tax_minor: i64,
        version: Option<u64>,
        request: Option<&RequestId>,
    ) -> Result<DraftChange> {
        self.amount(id.into(), ("TAX", tax_minor), version, request).await
    }

    /// Removes a draft with its items, as when it was committed elsewhere; whether it was there.
    pub async fn remove(&self, id: impl Into<Scope>) -> Result<bool> {
        let keys = self.objects.keys(id.into())?;
        let call = self.kit.step(&super::store::REMOVE).key(keys.key("record"));
        let was_there = call.key(keys.key("items")).run().await?.is("REMOVED");
        self.counts.removed.add(u64::from(was_there));
        Ok(was_there)
    }

    async fn amount(
        &self,
        id: Scope,
        (what, amount_minor): (&'static str, i64),
        version: Option<u64>,
        request: Option<&RequestId>,
    ) -> Result<DraftChange> {
        let keys = self.objects.keys(id)?;
        let call = self.kit.step_of_request(&DISCOUNT, &keys, request);
        let call = call.key(keys.key("record")).key(keys.key("items")).arg(what);
        let call = call.arg(amount_minor).arg(expected(version)).arg(self.settings.ttl);
        Ok(self.counts.counted(changed(&call.run().await?)?))
    }
}

fn expected(version: Option<u64>) -> String {
    version.map(|version| version.to_string()).unwrap_or_default()
}

fn changed(envelope: &Envelope) -> Result<DraftChange> {
    match envelope.status() {
        "OK" => Ok(DraftChange::Done {
            version: envelope.count("version")?,
            subtotal_minor: envelope.int("subtotal_minor")?,
            total_minor: envelope.int("total_minor")?,
        }),
        "MISSING" => Ok(DraftChange::Missing),
        "CONFLICT" => Ok(DraftChange::Conflict { version: envelope.count("version")? }),
        "FULL" => Ok(DraftChange::Full),
        "TOO_LARGE" => {
            Ok(DraftChange::TooLarge { subtotal_minor: envelope.int("subtotal_minor")? })
        }
        "CORRUPT" => Err(Error::Corrupt("the sums of a draft".into())),
        _ => Err(envelope.unexpected()),
    }
}

fn line_item(pair: &[Reply]) -> Option<LineItem> {
    let text = std::str::from_utf8(pair[1].as_bytes()?).ok()?;
    let (quantity, unit) = text.split_once(':')?;
    let sku = Member::from(pair[0].as_bytes()?);
    Some(LineItem { sku, quantity: quantity.parse().ok()?, unit_minor: unit.parse().ok()? })
}
