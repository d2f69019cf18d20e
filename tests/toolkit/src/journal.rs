//! Numbered requests to many workflows. Whoever repeats one after a crash must find that it has had
//! its effect once.

use russet::activity::{Recent, RecentSettings, Repeats};
use russet::counter::{WindowCounter, Windows};
use russet::key::Scope;
use russet::limit::{Limit, Limiter, Outage};
use russet::object::{Loaded, ObjectSettings, Objects, Record};
use russet::queue::{Bounds, Jobs, List, NewJob, Reliable, Stream};
use russet::ranking::{Leaderboard, Settings};
use russet::sale::{Sale, Terms, Window};
use russet::{Kit, Options, Period, RequestId, Result};
use std::path::Path;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// More than any test asks for.
const MAX: u32 = 5000;
const BOUNDS: Bounds = Bounds { capacity: MAX, ttl: HOUR };

#[derive(Record, Clone, Debug, PartialEq)]
#[record(purpose = "journal", schema = 1)]
struct Account {
    #[record(default)]
    visits: u32,
}

/// An engine in this process that loses nothing in a crash.
pub fn durable(directory: &Path) -> Result<Kit> {
    let invalid = |error| russet::Error::Invalid(format!("{error}"));
    let options = Options::new().directory(directory);
    let options = options.set("appendonly", "yes").map_err(invalid)?;
    let options = options.set("appendfsync", "always").map_err(invalid)?;
    Kit::builder().app("journal").secret("a secret of the tests").embedded(options)
}

/// One of each workflow.
pub struct Journal {
    counter: WindowCounter,
    board: Leaderboard,
    jobs: Jobs,
    list: List,
    reliable: Reliable,
    stream: Stream,
    sale: Sale,
    accounts: Objects<Account>,
    recent: Recent,
    limiter: Limiter,
}

impl Journal {
    pub async fn open(kit: &Kit) -> Result<Journal> {
        let settings = Settings { period: Period::Endless, members_max: 10, ttl: HOUR, shards: 1 };
        let recent = RecentSettings { items_max: MAX, ttl: HOUR, repeats: Repeats::Keep };
        let limits = [Limit::window("l", u64::from(MAX), HOUR)?];
        let journal = Journal {
            counter: WindowCounter::new(kit, "n", Windows::of(HOUR * 24 * 365)?)?,
            board: Leaderboard::new(kit, "game", settings)?,
            jobs: Jobs::builder(kit, "jobs", BOUNDS).build()?,
            list: List::builder(kit, "list", BOUNDS).build()?,
            reliable: Reliable::builder(kit, "reliable", BOUNDS).build()?,
            stream: Stream::builder(kit, "stream", BOUNDS).build()?,
            sale: Sale::new(kit, "sale")?,
            accounts: Objects::new(kit, ObjectSettings { ttl: HOUR, bytes_max: 100 })?,
            recent: Recent::new(kit, recent)?,
            limiter: Limiter::new(kit, "api", limits, Outage::Deny)?,
        };
        let window = Window::ForNext(HOUR);
        let terms = Terms { stock: MAX, window, hold: None, keep: HOUR, outbox_max: MAX };
        let _ = journal.sale.open(&terms).await?;
        let account = Account { visits: 0 };
        let _ = journal.accounts.create("a", &account, Some(&"account".into())).await?;
        Ok(journal)
    }

    /// Carries out a request, or repeats it.
    pub async fn carry_out(&self, number: u64) -> Result<()> {
        let id = RequestId::from(&format!("request {number}"));
        let (id, text) = (Some(&id), number.to_string());
        let subject = Scope::from("a");
        self.counter.add(subject.clone(), 1, id).await?;
        let _ = self.board.add("ann", 1, id).await?;
        let _ = self.jobs.schedule(&NewJob::new(text.as_str()), id).await?;
        let _ = self.list.push(text.as_str(), id).await?;
        let _ = self.reliable.push(text.as_str(), id).await?;
        let _ = self.stream.add(text.as_str(), id).await?;
        let _ = self.sale.buy(text.as_str(), id).await?;
        let _ = self.accounts.increment("a", Account::VISITS, 1, id).await?;
        self.recent.push("ann", text.as_str(), id).await?;
        let _ = self.limiter.check("a", 1, id).await?;
        Ok(())
    }

    /// How many requests each workflow has carried out.
    pub async fn effects(&self) -> Result<Vec<(&'static str, u64)>> {
        let score = self.board.current().top(1).await?.first().map_or(0, |it| it.score);
        let visits = match self.accounts.load("a").await? {
            Loaded::Found(found) => found.value.visits,
            Loaded::Missing | Loaded::Corrupt(_) => 0,
        };
        let left = self.limiter.peek("a", 1).await?.limits()[0].remaining;
        let sold = self.sale.stats().await?.map_or(0, |it| it.paid);
        Ok(vec![
            ("counter", self.counter.read("a", 0).await?.count.unsigned_abs()),
            ("board", score.unsigned_abs()),
            ("jobs", self.jobs.stats().await?.scheduled),
            ("list", self.list.len().await?),
            ("reliable list", self.reliable.stats().await?.ready),
            ("stream", self.stream.stats().await?.lag),
            ("sale", sold),
            ("record", u64::from(visits)),
            ("recent items", self.recent.list("ann", MAX).await?.len() as u64),
            ("limit", u64::from(MAX) - left),
        ])
    }
}
