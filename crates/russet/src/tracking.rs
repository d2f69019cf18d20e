//! Hearing of changes of keys: one connection of a kit, over which the server names every key that
//! has changed, for all who keep copies. It is made when the first copy is to be kept, and made
//! anew when it breaks; who keeps copies learns until when it may rely on having heard of all.

use crate::backend::{Backend, Changed, Connection, Listener};
use crate::error::Result;
use crate::kit::Kit;
use crate::request::Request;
use crate::retry::RetryPolicy;
use crate::time::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// How long after a question over the connection that was answered its silence means that nothing
/// has changed. No copy is served for longer after its key has changed.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);
/// How often the connection is asked whether it is still there.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The pauses between attempts to connect. There is no last one.
const PAUSES: RetryPolicy = RetryPolicy {
    attempts_max: u32::MAX,
    pause_min: Duration::from_millis(50),
    pause_max: Duration::from_secs(5),
};

/// Who keeps copies of keys.
pub(crate) trait Keeper: Send + Sync {
    /// What the keys begin with whose changes it must hear of.
    fn prefixes(&self) -> &[Vec<u8>];
    /// A key of them has changed.
    fn changed(&self, key: &[u8]);
    /// All keys have changed.
    fn all_changed(&self);
    /// Every change of its keys until then, by the kit's clock, has been heard or will be.
    fn trust_until(&self, moment: Duration);
    /// Changes may have been missed, and more may be.
    fn distrust(&self);
}

/// Those who keep copies on one kit, and the task that listens for them.
#[derive(Default)]
pub(crate) struct Tracking {
    keepers: Mutex<Vec<Weak<dyn Keeper>>>,
    has_task: AtomicBool,
    /// There are more keepers, or fewer.
    keepers_changed: Notify,
}

impl Tracking {
    pub fn add(&self, keeper: Weak<dyn Keeper>) {
        self.lock().push(keeper);
        self.keepers_changed.notify_one();
    }

    /// A keeper was dropped.
    pub fn removed(&self) {
        self.keepers_changed.notify_one();
    }

    /// Listens, unless a task does. Without a runtime nobody does, and nothing is kept.
    pub fn listen(self: &Arc<Self>, kit: &Kit) {
        if self.has_task.load(Ordering::Relaxed) {
            return;
        }
        if !self.has_task.swap(true, Ordering::Relaxed) {
            let (backend, time) = (kit.backend().clone(), kit.time().clone());
            let task = Task { tracking: self.clone(), backend, time };
            // If it can't be spawned it is dropped, and another may try.
            let _ = kit.spawn(task.run());
        }
    }

    fn keepers(&self) -> Vec<Arc<dyn Keeper>> {
        let mut keepers = self.lock();
        keepers.retain(|keeper| keeper.strong_count() > 0);
        keepers.iter().filter_map(Weak::upgrade).collect()
    }

    fn heard(&self, changed: &Changed) {
        for keeper in self.keepers() {
            match changed {
                Changed::Keys(keys) => {
                    let is_its =
                        |key: &&Vec<u8>| keeper.prefixes().iter().any(|it| key.starts_with(it));
                    keys.iter().filter(is_its).for_each(|key| keeper.changed(key));
                }
                Changed::All => keeper.all_changed(),
                Changed::Lost => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn Keeper>>> {
        self.keepers.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

/// The one task that listens for all. It alone says what can be relied on.
struct Task {
    tracking: Arc<Tracking>,
    backend: Arc<dyn Backend>,
    time: Time,
}

/// The connection, and what it is known to tell of.
struct Line {
    connection: Box<dyn Connection>,
    prefixes: Vec<Vec<u8>>,
    is_lost: Arc<Notify>,
}

impl Task {
    async fn run(self) {
        let mut attempt = 1;
        while !self.is_done() {
            match self.connect().await {
                Ok(line) => {
                    attempt = 1;
                    self.follow(line).await;
                }
                Err(error) => {
                    tracing::warn!(attempt, %error, "no invalidations of near copies come");
                    attempt += 1;
                }
            }
            self.distrust();
            self.time.sleep(PAUSES.pause(attempt)).await;
        }
    }

    /// Whether nobody keeps copies any more. Who comes later starts another task.
    fn is_done(&self) -> bool {
        let mut keepers = self.tracking.lock();
        keepers.retain(|keeper| keeper.strong_count() > 0);
        keepers.is_empty()
    }

    async fn connect(&self) -> Result<Line> {
        let asked_at = self.time.elapsed();
        let (mut prefixes, is_lost) = (Vec::new(), Arc::new(Notify::new()));
        self.add_missing(&mut prefixes);
        let listener: Listener = {
            let (tracking, is_lost) = (self.tracking.clone(), is_lost.clone());
            Arc::new(move |changed| match changed {
                Changed::Lost => is_lost.notify_one(),
                changed => tracking.heard(&changed),
            })
        };
        let connection = self.backend.tracking(&prefixes, listener).await?;
        let line = Line { connection, prefixes, is_lost };
        self.trust(&line, asked_at);
        Ok(line)
    }

    /// Until the connection is lost, or nobody needs it.
    async fn follow(&self, mut line: Line) {
        while !self.is_done() {
            tokio::select! {
                biased;
                () = line.is_lost.notified() => return,
                () = self.tracking.keepers_changed.notified() => {}
                () = self.time.sleep(ASK_EVERY) => {}
            }
            let asked_at = self.time.elapsed();
            let known = line.prefixes.len();
            self.add_missing(&mut line.prefixes);
            let request = match &line.prefixes[known..] {
                [] => Request::new("PING"),
                missing => tracking_request(missing),
            };
            if let Err(error) = line.connection.call(&request, SILENCE_MAX).await {
                tracing::warn!(%error, "the connection for invalidations is lost");
                return;
            }
            self.trust(&line, asked_at);
        }
    }

    fn add_missing(&self, prefixes: &mut Vec<Vec<u8>>) {
        for keeper in self.tracking.keepers() {
            for prefix in keeper.prefixes() {
                if !prefixes.contains(prefix) {
                    prefixes.push(prefix.clone());
                }
            }
        }
    }

    /// The server has answered a question that was asked then: what changed before, it has said.
    fn trust(&self, line: &Line, asked_at: Duration) {
        for keeper in self.tracking.keepers() {
            if keeper.prefixes().iter().all(|prefix| line.prefixes.contains(prefix)) {
                keeper.trust_until(asked_at + SILENCE_MAX);
            }
        }
    }

    fn distrust(&self) {
        self.tracking.keepers().iter().for_each(|keeper| keeper.distrust());
    }
}

/// With the runtime that it ran in, perhaps: the next who would keep a copy starts another.
impl Drop for Task {
    fn drop(&mut self) {
        self.distrust();
        self.tracking.has_task.store(false, Ordering::Relaxed);
    }
}

/// Asks for the names of all keys with these prefixes that change, whoever changes them.
pub(crate) fn tracking_request(prefixes: &[Vec<u8>]) -> Request {
    let request = Request::new("CLIENT").arg("TRACKING").arg("ON").arg("BCAST");
    prefixes.iter().fold(request, |request, prefix| request.arg("PREFIX").arg(prefix))
}
