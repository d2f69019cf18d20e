//! What a loop owns: the poller, the connections, the timers. Whoever runs the loop holds its lock,
//! except while it runs the commands of a connection that it has checked out.

use super::ahead::AHEAD_MAX;
use super::connection::Connection;
use super::fleet::Fleet;
use super::mailbox::{Address, Give, Inbox, Message};
use super::output::flush;
use super::owner::{Ownership, Pulse};
use super::stream::{Listener, Peer, Stream};
use super::timers::Timers;
use super::turn::{Thread, Verdict};
use super::{Service, mailbox};
use mio::event::Event;
use mio::{Events, Interest, Poll, Token, Waker};
use russet_base::limits::LOOP_EVENTS_MAX;
use russet_commands::call::mail::Letter;
use russet_protocol::Output;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

const WAKER: Token = Token(usize::MAX);
/// Listeners have the tokens right below.
const LISTENERS: usize = usize::MAX - 1024;
const TICK_MS: i64 = 1000;
const ROUNDS_AVERAGED: u64 = 16;
/// Accepts of one turn, so that a flood of them can't starve the clients that are there.
const ACCEPTS_MAX: usize = 64;

enum Occupant<S: Service> {
    Free,
    Here(Box<Connection<S>>),
    /// Checked out by a thread; letters wait for it.
    Out(VecDeque<Letter>),
}

struct Slot<S: Service> {
    generation: u64,
    occupant: Occupant<S>,
}

pub struct LoopState<S: Service> {
    poll: Poll,
    events: Option<Events>,
    slots: Vec<Slot<S>>,
    free: Vec<usize>,
    ready: VecDeque<usize>,
    /// Connections whose handshake can go on. Each round takes one: they compute for so long that
    /// many at once would be felt by everybody else.
    handshakes: VecDeque<usize>,
    timers: Timers,
    next_tick_ms: i64,
    listeners: Vec<Listener>,
    /// A connection could not be accepted. The poller tells of each only once, so they are looked
    /// for again at the next tick.
    has_accept_failed: bool,
    is_ending: bool,
}

/// One event loop, as all threads see it.
pub struct EventLoop<S: Service> {
    pub(super) index: usize,
    pub(super) inbox: Arc<Inbox<S>>,
    pub(super) pulse: Mutex<Arc<Pulse>>,
    pub(super) connections: AtomicUsize,
    /// How long the last rounds took, in microseconds: how long a ready connection waits for its
    /// turn. A moving average over [`ROUNDS_AVERAGED`] rounds.
    pub(super) round_micros: AtomicU64,
    state: Mutex<LoopState<S>>,
}

impl<S: Service> EventLoop<S> {
    pub fn new(index: usize, now_ms: i64) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let state = LoopState {
            poll,
            events: Some(Events::with_capacity(LOOP_EVENTS_MAX)),
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            handshakes: VecDeque::new(),
            timers: Timers::default(),
            next_tick_ms: now_ms + TICK_MS,
            listeners: Vec::new(),
            has_accept_failed: false,
            is_ending: false,
        };
        Ok(EventLoop {
            index,
            inbox: Arc::new(mailbox::Inbox::new(waker)),
            pulse: Mutex::default(),
            connections: AtomicUsize::new(0),
            round_micros: AtomicU64::new(0),
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, LoopState<S>> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Runs the loop until it ends (true) or is lost to another thread (false).
    pub fn run(&self, fleet: &Fleet<S>, thread: &mut Thread<S>, own: &Ownership) -> bool {
        let mut state = self.lock();
        thread.service.begin_round(&mut thread.worker);
        loop {
            self.read_mail(&mut state, fleet, thread);
            if state.is_ending {
                self.end(&mut state, thread);
                return true;
            }
            if self.run_timers(&mut state, thread) && std::mem::take(&mut state.has_accept_failed) {
                state.accept_all(fleet);
            }
            if let Some(slot) = state.handshakes.pop_front() {
                state.ready.push_back(slot);
            }
            // Connections made ready during this round wait for the next: the poller comes first.
            let started = Instant::now();
            let mut ahead = 0;
            for left in (1..=state.ready.len()).rev() {
                if ahead == 0 {
                    ahead = state.read_ahead(left, thread);
                }
                ahead -= 1;
                let Some(slot) = state.ready.pop_front() else { break };
                match self.turn(state, slot, thread, own) {
                    Some(back) => state = back,
                    None => {
                        let micros = started.elapsed().as_micros() as u64;
                        thread.service.end_round(&mut thread.worker, micros);
                        return false;
                    }
                }
            }
            let micros = started.elapsed().as_micros() as u64;
            self.note_round(micros);
            thread.service.end_round(&mut thread.worker, micros);
            if let Err(error) = self.poll(&mut state, fleet, thread) {
                // Without its poller a loop can do nothing: better to end than to pretend.
                eprintln!("event loop {}: the poller failed: {error}", self.index);
                std::process::abort();
            }
        }
    }

    /// A loop that sleeps has no rounds to average: what it remembers of the last ones fades.
    pub(super) fn let_round_fade(&self) {
        let average = self.round_micros.load(Ordering::Relaxed);
        self.round_micros.store(average - average / 4, Ordering::Relaxed);
    }

    fn note_round(&self, micros: u64) {
        let average = self.round_micros.load(Ordering::Relaxed);
        let next = (average * (ROUNDS_AVERAGED - 1) + micros) / ROUNDS_AVERAGED;
        self.round_micros.store(next, Ordering::Relaxed);
    }

    /// One connection's turn, with the loop unlocked. None if the loop was lost meanwhile.
    fn turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, LoopState<S>>,
        slot: usize,
        thread: &mut Thread<S>,
        own: &Ownership,
    ) -> Option<MutexGuard<'a, LoopState<S>>> {
        let Some(mut connection) = state.check_out(slot) else {
            return Some(state);
        };
        drop(state);
        let verdict = thread.turn(&mut connection, own);
        if !own.rest() {
            let backoff = thread.service.backoff_after_turn(&mut thread.worker);
            if !backoff.is_zero() {
                // The thread has lost its loop and has nothing else to do.
                std::thread::sleep(backoff);
            }
            self.inbox.post(Message::Returned(connection, verdict));
            return None;
        }
        let mut state = self.lock();
        self.check_in(&mut state, connection, verdict, thread);
        Some(state)
    }

    fn check_in(
        &self,
        state: &mut LoopState<S>,
        mut connection: Box<Connection<S>>,
        verdict: Verdict,
        thread: &mut Thread<S>,
    ) {
        let slot = connection.slot;
        let occupant = std::mem::replace(&mut state.slots[slot].occupant, Occupant::Free);
        if let Occupant::Out(letters) = occupant {
            connection.letters.extend(letters);
        }
        if verdict == Verdict::Close {
            return self.close(state, connection, thread);
        }
        if verdict == Verdict::Again || !connection.letters.is_empty() {
            state.ready.push_back(slot);
        }
        let deadline_ms = thread.service.deadline_ms(&connection.client);
        state.set_timer(&mut connection, deadline_ms);
        state.slots[slot].occupant = Occupant::Here(connection);
    }

    #[allow(clippy::boxed_local, reason = "connections travel boxed; this is where they end")]
    fn close(
        &self,
        state: &mut LoopState<S>,
        mut connection: Box<Connection<S>>,
        thread: &mut Thread<S>,
    ) {
        state.set_timer(&mut connection, None);
        thread.service.disconnect(&mut thread.worker, &mut connection.client);
        connection.stream.close();
        // The socket is closed by dropping it; a failure to take it out of the poller is harmless.
        drop(state.poll.registry().deregister(connection.stream.source()));
        state.release(connection.slot);
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn read_mail(&self, state: &mut LoopState<S>, fleet: &Fleet<S>, thread: &mut Thread<S>) {
        for message in self.inbox.take() {
            match message {
                Message::Accepted(stream, peer) => self.adopt(state, stream, &peer, thread),
                Message::Letter { slot, generation, letter } => {
                    state.deliver(slot, generation, letter);
                }
                Message::Returned(connection, verdict) => {
                    // Letters and events that came meanwhile are to be looked at.
                    let verdict = if verdict == Verdict::Close { verdict } else { Verdict::Again };
                    self.check_in(state, connection, verdict, thread);
                }
                Message::Moved(connection) => self.welcome(state, connection, thread),
                Message::Give(give) => self.give(state, give, fleet, thread),
                Message::ShutDown => state.is_ending = true,
                Message::Listeners(listeners) => state.listen(listeners, fleet),
                Message::AcceptMore(listener) => state.accept(listener, fleet),
            }
        }
    }

    /// Makes a new connection one of this loop's.
    fn adopt(&self, state: &mut LoopState<S>, stream: Stream, peer: &Peer, thread: &mut Thread<S>) {
        let slot = state.claim_slot();
        let generation = state.slots[slot].generation;
        let address = Address { inbox: self.inbox.clone(), slot, generation };
        let mut output = Output::default();
        let mut stream = stream;
        let Some(client) = thread.service.connect(peer, address, &mut output) else {
            // The refusal is a courtesy: whether it arrives or not, the socket is closed.
            drop(stream.write(&output.bytes_from(0)));
            state.free.push(slot);
            self.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = state.poll.registry().register(stream.source(), Token(slot), interest);
        let connection = Box::new(Connection {
            slot,
            generation,
            stream,
            client,
            input: Default::default(),
            backlog: None,
            is_parsed: false,
            last_read_bytes: 0,
            output,
            is_readable: false,
            is_writable: true,
            may_have_ended: false,
            is_at_end: false,
            is_broken: false,
            is_queued_for_handshake: false,
            timer_ms: None,
            letters: VecDeque::new(),
        });
        match registered {
            Ok(()) => state.slots[slot].occupant = Occupant::Here(connection),
            Err(_) => self.close(state, connection, thread),
        }
    }

    /// Gives connections that can move to another loop.
    fn give(&self, state: &mut LoopState<S>, give: Give, fleet: &Fleet<S>, thread: &Thread<S>) {
        let mut given = 0;
        for slot in 0..state.slots.len() {
            if given == give.count {
                break;
            }
            let Occupant::Here(connection) = &state.slots[slot].occupant else { continue };
            if !connection.letters.is_empty() || !thread.service.may_move(&connection.client) {
                continue;
            }
            let Some(mut connection) = state.check_out(slot) else { continue };
            if state.poll.registry().deregister(connection.stream.source()).is_err() {
                state.slots[slot].occupant = Occupant::Here(connection);
                continue;
            }
            state.set_timer(&mut connection, None);
            state.release(slot);
            self.connections.fetch_sub(1, Ordering::Relaxed);
            fleet.move_to(give.to, connection);
            given += 1;
        }
    }

    /// Takes a connection over from another loop. Registering it anew reports what it missed.
    fn welcome(
        &self,
        state: &mut LoopState<S>,
        mut connection: Box<Connection<S>>,
        thread: &mut Thread<S>,
    ) {
        let slot = state.claim_slot();
        let generation = state.slots[slot].generation;
        connection.slot = slot;
        connection.generation = generation;
        let address = Address { inbox: self.inbox.clone(), slot, generation };
        thread.service.moved(&mut connection.client, address);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let source = connection.stream.source();
        match state.poll.registry().register(source, Token(slot), interest) {
            Ok(()) => {
                // What it brought along is reported by no poller.
                if connection.has_input_to_run() || matches!(connection.stream, Stream::Tls(_)) {
                    connection.is_queued_for_handshake = false;
                    state.ready.push_back(slot);
                }
                state.slots[slot].occupant = Occupant::Here(connection);
            }
            Err(_) => self.close(state, connection, thread),
        }
    }

    /// Whether a tick was due.
    fn run_timers(&self, state: &mut LoopState<S>, thread: &mut Thread<S>) -> bool {
        let now = thread.service.round_ms(&thread.worker);
        // A client that was served in its last moment is due again at once: it must not be looked
        // at again before its mail is.
        for (slot, generation) in state.timers.take_due(now) {
            if state.slots[slot].generation == generation {
                self.tick(state, slot, thread);
            }
        }
        let is_tick_due = now >= state.next_tick_ms;
        if is_tick_due {
            state.next_tick_ms = now + TICK_MS;
            (0..state.slots.len()).for_each(|slot| self.tick(state, slot, thread));
        }
        is_tick_due
    }

    fn tick(&self, state: &mut LoopState<S>, slot: usize, thread: &mut Thread<S>) {
        let Some(mut connection) = state.check_out(slot) else {
            return;
        };
        let verdict = thread.tick(&mut connection);
        self.check_in(state, connection, verdict, thread);
    }

    fn poll(
        &self,
        state: &mut LoopState<S>,
        fleet: &Fleet<S>,
        thread: &mut Thread<S>,
    ) -> io::Result<()> {
        let is_idle = state.ready.is_empty() && state.handshakes.is_empty();
        let timeout = if is_idle && self.inbox.may_sleep() {
            state.sleep_time(thread.service.round_ms(&thread.worker))
        } else {
            Duration::ZERO
        };
        let mut events = state.events.take().expect("only poll takes it, and it puts it back");
        let result = state.poll.poll(&mut events, Some(timeout));
        self.inbox.is_awake();
        thread.service.begin_round(&mut thread.worker);
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                Token(token) if token >= LISTENERS => {
                    state.accept(token - LISTENERS, fleet);
                }
                Token(slot) => state.woken(slot, event),
            }
        }
        state.events = Some(events);
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }

    /// Writes what can still be written, then closes every connection.
    fn end(&self, state: &mut LoopState<S>, thread: &mut Thread<S>) {
        for slot in 0..state.slots.len() {
            if let Some(mut connection) = state.check_out(slot) {
                flush(&mut connection);
                self.close(state, connection, thread);
            }
        }
    }
}

impl<S: Service> LoopState<S> {
    fn claim_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, occupant: Occupant::Free });
            self.slots.len() - 1
        })
    }

    /// Letters to the slot's old generation are lost from now on.
    fn release(&mut self, slot: usize) {
        self.slots[slot].occupant = Occupant::Free;
        self.slots[slot].generation += 1;
        self.free.push(slot);
    }

    fn check_out(&mut self, slot: usize) -> Option<Box<Connection<S>>> {
        let held = self.slots.get_mut(slot)?;
        match std::mem::replace(&mut held.occupant, Occupant::Out(VecDeque::new())) {
            Occupant::Here(connection) => Some(connection),
            other => {
                held.occupant = other;
                None
            }
        }
    }

    /// Reads the next ready connections, `left` of which are this round's; how many will be served
    /// before it is time to look again.
    fn read_ahead(&mut self, left: usize, thread: &mut Thread<S>) -> usize {
        if left == 1 {
            return left;
        }
        let count = left.min(AHEAD_MAX);
        for &slot in self.ready.iter().take(count) {
            if let Some(Slot { occupant: Occupant::Here(connection), .. }) =
                self.slots.get_mut(slot)
            {
                thread.read_ahead(connection);
            }
        }
        thread.service.fetch_expected(&mut thread.worker);
        count
    }

    fn deliver(&mut self, slot: usize, generation: u64, letter: Letter) {
        if self.slots[slot].generation != generation {
            return;
        }
        match &mut self.slots[slot].occupant {
            Occupant::Free => {}
            Occupant::Out(letters) => letters.push_back(letter),
            Occupant::Here(connection) => {
                connection.letters.push_back(letter);
                if connection.letters.len() == 1 {
                    self.ready.push_back(slot);
                }
            }
        }
    }

    fn woken(&mut self, slot: usize, event: &Event) {
        // A connection that is out is found again by its letters or its next event: remember both.
        match self.slots.get_mut(slot).map(|held| &mut held.occupant) {
            Some(Occupant::Here(connection)) => {
                connection.is_readable |= event.is_readable();
                connection.is_writable |= event.is_writable();
                connection.may_have_ended |= event.is_read_closed();
                if !connection.stream.is_handshaking() {
                    self.ready.push_back(slot);
                } else if !std::mem::replace(&mut connection.is_queued_for_handshake, true) {
                    self.handshakes.push_back(slot);
                }
            }
            Some(Occupant::Out(letters)) => letters.push_back(Letter::SocketReady),
            _ => {}
        }
    }

    /// Sets or clears a connection's timer.
    fn set_timer(&mut self, connection: &mut Connection<S>, deadline_ms: Option<i64>) {
        if connection.timer_ms.is_some() || deadline_ms.is_some() {
            let owner = (connection.slot, connection.generation);
            self.timers.set(owner, connection.timer_ms, deadline_ms);
            connection.timer_ms = deadline_ms;
        }
    }

    fn sleep_time(&self, now_ms: i64) -> Duration {
        let next = self.timers.next_ms().map_or(self.next_tick_ms, |at| at.min(self.next_tick_ms));
        Duration::from_millis((next - now_ms).clamp(0, TICK_MS) as u64)
    }

    fn listen(&mut self, listeners: Vec<Listener>, fleet: &Fleet<S>) {
        for mut old in std::mem::take(&mut self.listeners) {
            drop(old.deregister(self.poll.registry()));
        }
        self.listeners = listeners;
        for (at, listener) in self.listeners.iter_mut().enumerate() {
            if let Err(error) = listener.register(self.poll.registry(), Token(LISTENERS + at)) {
                eprintln!("cannot watch a listening socket: {error}");
            }
        }
        self.accept_all(fleet);
    }

    fn accept_all(&mut self, fleet: &Fleet<S>) {
        (0..self.listeners.len()).for_each(|at| self.accept(at, fleet));
    }

    fn accept(&mut self, index: usize, fleet: &Fleet<S>) {
        let Some(listener) = self.listeners.get(index) else { return };
        let accepts_max = match listener {
            Listener::Tls(..) => fleet.tls_accepts_max(),
            Listener::Tcp(_) | Listener::Unix(..) => ACCEPTS_MAX,
        };
        for _ in 0..accepts_max {
            match listener.accept(fleet.keepalive_seconds()) {
                Ok((stream, peer)) => fleet.assign(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // One broken connection says nothing about the next; out of descriptors does, and
                // then trying again at once would spin.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.has_accept_failed = true;
                    return;
                }
            }
        }
        fleet.accept_again(index);
    }
}
