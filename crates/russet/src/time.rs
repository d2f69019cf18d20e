//! Time, as far as the kit has to measure it itself: deadlines of leases, pauses between attempts.
//! What is stored is decided by the server's clock.

use std::time::Duration;
#[cfg(feature = "embedded")]
use {russet_base::Clock, std::sync::Arc, tokio::sync::watch};

/// Whole milliseconds, rounded up.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// The clock by which the kit waits.
#[derive(Clone, Debug)]
pub struct Time {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    System {
        started: tokio::time::Instant,
    },
    #[cfg(feature = "embedded")]
    Manual(ManualTime),
}

impl Time {
    pub(crate) fn system() -> Self {
        Time { source: Source::System { started: tokio::time::Instant::now() } }
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn manual(time: ManualTime) -> Self {
        Time { source: Source::Manual(time) }
    }

    /// Since some fixed moment of the past. It never goes back.
    pub fn elapsed(&self) -> Duration {
        match &self.source {
            Source::System { started } => started.elapsed(),
            #[cfg(feature = "embedded")]
            Source::Manual(time) => time.elapsed(),
        }
    }

    /// Waits for as long, by this clock.
    pub async fn sleep(&self, span: Duration) {
        match &self.source {
            Source::System { .. } => tokio::time::sleep(span).await,
            #[cfg(feature = "embedded")]
            Source::Manual(time) => time.sleep(span).await,
        }
    }

    /// Sleeps until [`Time::elapsed`] is this.
    pub async fn sleep_until(&self, moment: Duration) {
        self.sleep(moment.saturating_sub(self.elapsed())).await;
    }
}

/// What a heartbeat found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    GoOn,
    Stop,
}

/// Runs `work`, with a heartbeat from time to time beside it. When the work is done or dropped the
/// heartbeats end; they also end, and the work goes on, when one says so.
pub(crate) async fn with_heartbeat<T, H: Future<Output = Beat>>(
    time: &Time,
    every: Duration,
    work: impl Future<Output = T>,
    mut heartbeat: impl FnMut() -> H,
) -> T {
    let heartbeats = async {
        loop {
            time.sleep(every).await;
            if heartbeat().await == Beat::Stop {
                return;
            }
        }
    };
    tokio::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        () = heartbeats => work.await,
    }
}

/// A clock that stands still until it is moved, for tests on the embedded engine: the engine, its
/// expiry and the kit's own waits go by it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::{Kit, ManualTime, Options};
/// use std::time::Duration;
///
/// let time = ManualTime::new();
/// let kit = Kit::builder().embedded_at(Options::default(), &time)?;
/// let before = kit.time().elapsed();
/// time.advance(Duration::from_secs(3600));
/// assert_eq!(kit.time().elapsed() - before, Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "embedded")]
#[derive(Clone, Debug)]
pub struct ManualTime {
    clock: Arc<russet_base::ManualClock>,
    moved: Arc<watch::Sender<()>>,
}

#[cfg(feature = "embedded")]
impl ManualTime {
    /// Starts at the present of the machine's clock.
    pub fn new() -> Self {
        let now = russet_base::SystemClock::new().now();
        ManualTime {
            clock: Arc::new(russet_base::ManualClock::at(now)),
            moved: Arc::new(watch::Sender::new(())),
        }
    }

    /// Moves on, and wakes those whose time has come.
    pub fn advance(&self, span: Duration) {
        self.clock.advance(span);
        self.moved.send_replace(());
    }

    /// The wall clock, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().0
    }

    /// Sets the wall clock alone, to the past if wished.
    pub fn set_ms(&self, now_ms: i64) {
        self.clock.set(russet_base::UnixMillis(now_ms));
        self.moved.send_replace(());
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.clock.monotonic_micros())
    }

    async fn sleep(&self, span: Duration) {
        let until = self.elapsed() + span;
        let mut moved = self.moved.subscribe();
        while self.elapsed() < until {
            // The sender is ours: it does not go away.
            let _ = moved.changed().await;
        }
    }
}

#[cfg(feature = "embedded")]
impl Default for ManualTime {
    fn default() -> Self {
        ManualTime::new()
    }
}
