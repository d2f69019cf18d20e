//! A save that someone waits for: a client (SAVE, SHUTDOWN), or the end of the process. It is taken
//! by a thread of its own, as BGSAVE's is, so that all others go on. While an end saves nobody
//! writes: what was answered then would be lost.

use super::EndOptions;
use super::saves::Purpose;
use crate::call::mail::{Letter, Mailbox};
use crate::call::pause::PauseKind;
use crate::node::Node;
use russet_base::UnixMillis;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// How often it is looked whether a save is over, by who has no mailbox.
const NAP: Duration = Duration::from_millis(1);

/// How a save went: an error says why it did not.
type Outcome = Result<(), String>;

/// A save, and those who wait for it.
pub struct AwaitedSave {
    state: Mutex<State>,
    /// What follows it.
    end: Option<End>,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    mailboxes: Vec<Arc<dyn Mailbox>>,
}

impl AwaitedSave {
    /// One that nothing follows.
    pub(in crate::node) fn plain() -> Arc<Self> {
        AwaitedSave::new(None)
    }

    fn new(end: Option<End>) -> Arc<Self> {
        Arc::new(AwaitedSave { state: Mutex::default(), end })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// How it went, once it is over. Until then `mailbox` waits for a letter.
    pub(crate) fn outcome_or_wait(&self, mailbox: &Arc<dyn Mailbox>) -> Option<Outcome> {
        let mut state = self.lock();
        let waits = state.mailboxes.iter().any(|it| Arc::ptr_eq(it, mailbox));
        if state.outcome.is_none() && !waits {
            state.mailboxes.push(mailbox.clone());
        }
        state.outcome.clone()
    }

    /// The same for who looks again and again. An end that does not save ends this one, too.
    pub(super) fn await_outcome(&self, node: &Node) -> Outcome {
        loop {
            if let Some(outcome) = &self.lock().outcome {
                return outcome.clone();
            }
            if node.saves.is_end_decided.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(NAP);
        }
    }

    pub(in crate::node) fn finish(&self, outcome: Outcome) {
        let outcome = match &self.end {
            Some(end) => end.follow(outcome),
            None => outcome,
        };
        self.publish(outcome);
    }

    /// Those who wait hear the outcome, unless they have heard one.
    fn publish(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome.get_or_insert(outcome);
        let mailboxes = std::mem::take(&mut state.mailboxes);
        drop(state);
        mailboxes.iter().for_each(|mailbox| mailbox.post(Letter::JobOver));
    }
}

/// The end of the process, which a save comes before.
struct End {
    node: Weak<Node>,
    is_forced: bool,
    /// SHUTDOWN: the process does not know of it yet. Its client may be gone when it does.
    is_command: bool,
    stage: AtomicU8,
    /// The pause that there was before.
    pause_before: Option<(PauseKind, UnixMillis)>,
}

/// The stages of an end. Each end leaves the first once, for one of the others.
const SAVING: u8 = 0;
/// There is no end: it was aborted, or the data could not be saved.
const OFF: u8 = 1;
const DECIDED: u8 = 2;

const ABORTED: &str = "the end was aborted";

impl End {
    /// Whether it was this call that brought the end from its first stage to another.
    fn enter(&self, stage: u8) -> bool {
        let (relaxed, order) = (Ordering::Relaxed, Ordering::AcqRel);
        self.stage.compare_exchange(SAVING, stage, order, relaxed).is_ok()
    }

    /// There is no end; false if that was decided otherwise before.
    fn call_off(&self, node: &Node) -> bool {
        let is_off = self.enter(OFF);
        if is_off {
            node.go_on(self.pause_before);
        }
        is_off
    }

    fn follow(&self, outcome: Outcome) -> Outcome {
        let Some(node) = self.node.upgrade() else { return outcome };
        if let Err(why) = &outcome
            && !self.is_forced
        {
            self.call_off(&node);
            return Err(why.clone());
        }
        if !self.enter(DECIDED) {
            return Err(ABORTED.to_owned());
        }
        match outcome {
            Err(_) => node.host.log("Ending without having saved, as asked for"),
            Ok(()) => node.saves.is_end_saved.store(true, Ordering::Relaxed),
        }
        if self.is_command {
            node.saves.decide_end();
            node.host.shut_down();
        }
        Ok(())
    }
}

/// Those who wait for one save.
#[derive(Default)]
pub(super) struct Awaiting(Vec<Arc<AwaitedSave>>);

impl Awaiting {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn finish(&mut self, outcome: &Outcome) {
        self.0.drain(..).for_each(|save| save.finish(outcome.clone()));
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.finish(&Err("the save was given up".to_owned()));
    }
}

impl Node {
    /// SAVE: begins one, or has housekeeping begin it when the rewrite that is under way is over.
    pub(crate) fn begin_awaited_save(&self) -> Result<Arc<AwaitedSave>, String> {
        self.check_not_saving()?;
        let save = AwaitedSave::plain();
        self.begin_for(save.clone())?;
        Ok(save)
    }

    fn begin_for(&self, save: Arc<AwaitedSave>) -> Result<(), String> {
        self.host.disk().ok_or("there is no directory to save to")?;
        self.saves.awaiting().0.push(save.clone());
        if self.saves.purpose().is_some() {
            return Ok(());
        }
        let begun = self.begin_background(Purpose::Save, None);
        begun.inspect_err(|_| self.saves.awaiting().0.retain(|it| !Arc::ptr_eq(it, &save)))
    }

    /// Begins the save of an end, unless it has begun. Nobody writes from now on, unless it fails.
    pub(crate) fn begin_end_save(
        &self,
        options: EndOptions,
        is_command: bool,
    ) -> Result<Arc<AwaitedSave>, String> {
        let node = self.durability.node().ok_or("the server is ending")?;
        let mut ending = self.saves.ending();
        if let Some(save) = &*ending {
            return Ok(save.clone());
        }
        // What they would write is in this one.
        self.cancel_save();
        self.cancel_rewrite();
        let save = AwaitedSave::new(Some(End {
            node: Arc::downgrade(&node),
            is_forced: options.is_forced,
            is_command,
            stage: AtomicU8::new(SAVING),
            pause_before: self.pause.state(),
        }));
        *ending = Some(save.clone());
        // Before anyone can abort the end, and with it the pause.
        self.pause.start(&self.keyspace, PauseKind::Write, UnixMillis(i64::MAX));
        drop(ending);
        if let Err(why) = self.begin_for(save.clone()) {
            self.host.log(&why);
            save.finish(Err(why));
        }
        Ok(save)
    }

    /// There is no end: writes go on.
    fn go_on(&self, pause_before: Option<(PauseKind, UnixMillis)>) {
        self.saves.ending().take();
        self.pause.end(&self.keyspace, || None);
        if let Some((kind, until)) = pause_before.filter(|(_, until)| *until > self.clock.now()) {
            self.pause.start(&self.keyspace, kind, until);
        }
    }

    /// SHUTDOWN ABORT; false if there is nothing to abort any more. Writes go on at once: the save
    /// may have to wait for a long call before it finds out.
    pub(crate) fn abort_end(&self) -> bool {
        let Some(save) = self.saves.ending().clone() else { return false };
        let is_off = save.end.as_ref().is_some_and(|end| end.call_off(self));
        if is_off {
            self.cancel_save();
            save.publish(Err(ABORTED.to_owned()));
        }
        is_off
    }

    /// The save of an end, for a thread that serves nobody else.
    pub(super) fn save_and_wait(&self, options: EndOptions) -> Outcome {
        self.begin_end_save(options, false)?.await_outcome(self)
    }

    /// Begins what a client waits for, if nothing is in its way.
    pub(super) fn begin_if_awaited(&self) {
        let is_awaited = !self.saves.awaiting().is_empty();
        if !is_awaited || self.saves.purpose().is_some() {
            return;
        }
        if let Err(why) = self.begin_background(Purpose::Save, None) {
            let mut awaiting = std::mem::take(&mut *self.saves.awaiting());
            awaiting.finish(&Err(why));
        }
    }

    /// The end, when nobody is served any more: a call that was let through before writes were held
    /// back may have written after the cut. False if that could not be saved.
    pub fn save_late_writes(&self) -> bool {
        let is_saved = self.saves.is_end_saved.load(Ordering::Relaxed);
        if !is_saved || self.unsaved_changes() == 0 {
            return true;
        }
        self.with_all_keys(|keys| self.save(keys)).is_ok()
    }
}
