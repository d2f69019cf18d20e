//! Transfers that are under way, until what has arrived is deleted here. The call that began one
//! does that; housekeeping does, if its client is gone; so does the end of the server.

use super::transfer::{Failure, Task, Transferred};
use crate::call::invoke::publish_effects;
use crate::call::mail::{Letter, Mailbox};
use crate::node::Node;
use russet_base::OwnedArgs;
use russet_engine::event::Event;
use russet_engine::keys::{Effects, Keys};
use russet_engine::moving::Moving;
use russet_engine::store::shard_set::ShardSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long the end of the server waits for answers to what was sent. A supervisor that has asked
/// for it does not wait long, and what matters more, a save, is yet to come.
const END_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long it waits then for those who began transfers to be answered.
const ANSWER_WAIT_MAX: Duration = Duration::from_millis(200);
/// How often it looks whether they are there.
const END_NAP: Duration = Duration::from_millis(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// A transfer that a client waits for, or has waited for.
pub struct Migration {
    pub(super) task: Task,
    pub(super) db: usize,
    pub(super) keys: Vec<Box<[u8]>>,
    pub(super) is_copying: bool,
    /// Keeps others from the keys until it is ended.
    pub(super) moving: Mutex<Option<Moving>>,
    /// Of the client that waits for it.
    pub(super) mailbox: Arc<dyn Mailbox>,
    /// That client knows what became of it.
    pub(super) is_answered: AtomicBool,
}

impl Migration {
    /// Does what is to be done, which takes as long as it takes.
    pub(super) fn run(&self) {
        self.task.run();
        self.mailbox.post(Letter::JobOver);
    }

    /// The other server does not answer, and nobody waits any longer: the keys stay.
    pub(super) fn abandon(&self) {
        self.task.abandon();
        self.mailbox.post(Letter::JobOver);
    }

    /// Deletes what has arrived, once the transfer is over, and says how it went. Whoever is first
    /// deletes; the shards of the keys are held.
    pub(super) fn end(&self, keys: &mut Keys) -> Option<Result<(), Failure>> {
        let Transferred { arrived, failure } = self.task.outcome()?;
        if !self.is_copying {
            delete_arrived(keys, &self.keys, &arrived);
        }
        lock(&self.moving).take();
        Some(failure.map_or(Ok(()), Err))
    }

    fn is_ended(&self) -> bool {
        lock(&self.moving).is_none()
    }
}

/// Deletes those keys that have arrived elsewhere.
pub(super) fn delete_arrived(keys: &mut Keys, names: &[Box<[u8]>], arrived: &[bool]) {
    let mut call = OwnedArgs::default();
    call.push(b"DEL");
    let mut is_any_deleted = false;
    for (key, _) in names.iter().zip(arrived).filter(|(_, arrived)| **arrived) {
        // It may have expired meanwhile.
        if keys.remove(key) {
            keys.wrote(key, Event::DEL);
            call.push(key);
            is_any_deleted = true;
        }
    }
    if is_any_deleted && keys.is_recording() {
        let db = keys.db;
        keys.effects.records.push_owned(db, call);
    }
}

/// All that are not ended.
#[derive(Default)]
pub struct Migrations(Mutex<Vec<Arc<Migration>>>);

impl Migrations {
    pub(super) fn add(&self, migration: Arc<Migration>) {
        lock(&self.0).push(migration);
    }

    /// Those whose transfers are over, and whether there are others.
    fn over(&self) -> (Vec<Arc<Migration>>, bool) {
        let mut all = lock(&self.0);
        all.retain(|migration| !migration.is_ended());
        let over: Vec<_> = all.iter().filter(|it| it.task.is_over()).cloned().collect();
        let has_others = over.len() < all.len();
        (over, has_others)
    }

    /// Nothing further is sent: the server is to end.
    pub(crate) fn give_up(&self) {
        lock(&self.0).iter().for_each(|migration| migration.task.give_up());
    }

    /// Ends those of which it is not known soon enough what became of them.
    fn abandon_late(&self) {
        let all = lock(&self.0).clone();
        let is_late = |it: &&Arc<Migration>| !it.task.is_over() && it.task.waits(END_WAIT_MAX);
        all.iter().filter(is_late).for_each(|migration| migration.abandon());
    }
}

impl Node {
    /// Deletes what transfers have carried away that are over; false if others are under way.
    pub(crate) fn end_migrations(&self) -> bool {
        self.migrations.abandon_late();
        let (over, mut has_others) = self.migrations.over();
        for migration in over {
            let mut shards = ShardSet::EMPTY;
            for key in &migration.keys {
                shards.insert(usize::from(self.keyspace.locate(key).shard));
            }
            // Housekeeping does not wait for a long call: it comes back.
            let Ok(locked) = self.keyspace.try_lock(&shards) else {
                has_others = true;
                continue;
            };
            let mut effects = Effects::default();
            let now = self.clock.now();
            let mut keys = self.keyspace.keys(locked, &mut effects, (migration.db, now));
            migration.end(&mut keys);
            publish_effects(&mut keys, self);
        }
        !has_others
    }

    /// The end: nothing further is sent, and what has arrived is deleted. Keys of which that is not
    /// known soon stay here, and may be there, too. No shard is held.
    pub fn await_migrations(&self) {
        let all = lock(&self.migrations.0).clone();
        self.migrations.give_up();
        let started = Instant::now();
        // Beyond the last answer, a long call may have the shard of a key.
        while !self.end_migrations() && started.elapsed() < 2 * END_WAIT_MAX {
            std::thread::sleep(END_NAP);
        }
        let ended = Instant::now();
        let waits = || all.iter().any(|it| !it.is_answered.load(Ordering::Relaxed));
        while waits() && ended.elapsed() < ANSWER_WAIT_MAX {
            std::thread::sleep(END_NAP);
        }
    }
}
