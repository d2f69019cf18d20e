//! What a stream remembers of its producers' messages, so that one that is sent again is added
//! once: `XADD IDMP`, `XADD IDMPAUTO`, `XCFGSET`.

use super::id::StreamId;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

pub const DURATION_S_DEFAULT: u64 = 100;
pub const MESSAGES_MAX_DEFAULT: u64 = 100;
/// How often all producers are looked through.
const SWEEP_MS: u64 = 1000;

/// One producer's messages.
#[derive(Clone, Default)]
struct Producer {
    known: HashMap<Arc<[u8]>, StreamId>,
    /// From the oldest on.
    order: VecDeque<Arc<[u8]>>,
}

impl Producer {
    fn forget_oldest(&mut self) {
        if let Some(message) = self.order.pop_front() {
            self.known.remove(&message);
        }
    }

    fn expire(&mut self, over_ms: u64) {
        while self.oldest().is_some_and(|id| id.ms <= over_ms) {
            self.forget_oldest();
        }
    }

    fn oldest(&self) -> Option<StreamId> {
        self.order.front().and_then(|message| self.known.get(message)).copied()
    }
}

#[derive(Clone)]
pub struct Idempotency {
    /// How long a message is remembered.
    pub duration_s: u64,
    /// How many messages of each producer are.
    pub messages_max: u64,
    producers: BTreeMap<Box<[u8]>, Producer>,
    pub added: u64,
    pub duplicates: u64,
    /// When all producers were last looked through.
    swept_ms: u64,
}

impl Default for Idempotency {
    fn default() -> Self {
        Idempotency {
            duration_s: DURATION_S_DEFAULT,
            messages_max: MESSAGES_MAX_DEFAULT,
            producers: BTreeMap::new(),
            added: 0,
            duplicates: 0,
            swept_ms: 0,
        }
    }
}

impl Idempotency {
    /// The entry that a message became, if it is remembered; counted as a duplicate then.
    pub fn find(&mut self, producer: &[u8], message: &[u8]) -> Option<StreamId> {
        let found = self.producers.get(producer)?.known.get(message).copied();
        self.duplicates += u64::from(found.is_some());
        found
    }

    /// Remembers what a message has become.
    pub fn note(&mut self, producer: &[u8], message: &[u8], id: StreamId) {
        let messages_max = self.messages_max;
        let producer = self.producers.entry(producer.into()).or_default();
        let message: Arc<[u8]> = message.into();
        if producer.known.insert(message.clone(), id).is_none() {
            producer.order.push_back(message);
        }
        self.added += 1;
        if producer.known.len() as u64 > messages_max {
            producer.forget_oldest();
        }
    }

    fn over_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.duration_s.saturating_mul(1000))
    }

    /// Forgets what is over of one producer, and of all others once a second.
    pub fn expire(&mut self, producer: &[u8], now_ms: u64) {
        let over_ms = self.over_ms(now_ms);
        if let Some(producer) = self.producers.get_mut(producer) {
            producer.expire(over_ms);
        }
        // Also if the clock was set back: then the time of the last sweep means nothing.
        if now_ms >= self.swept_ms.saturating_add(SWEEP_MS) || now_ms < self.swept_ms {
            self.sweep(now_ms);
        }
    }

    /// Forgets what is over of all producers.
    pub fn sweep(&mut self, now_ms: u64) {
        self.swept_ms = now_ms;
        let over_ms = self.over_ms(now_ms);
        self.producers.retain(|_, producer| {
            producer.expire(over_ms);
            !producer.order.is_empty()
        });
    }

    /// Forgets all messages: their limits have changed.
    pub fn clear(&mut self) {
        self.producers.clear();
    }

    /// Shows every message that is still remembered at a moment, the oldest of each producer first.
    pub fn for_each_message(&self, now_ms: i64, mut visit: impl FnMut(&[u8], &[u8], StreamId)) {
        let over_ms = self.over_ms(u64::try_from(now_ms).unwrap_or(0));
        for (name, producer) in &self.producers {
            for message in &producer.order {
                let id = producer.known.get(message).filter(|id| id.ms > over_ms);
                id.into_iter().for_each(|id| visit(name, message, *id));
            }
        }
    }

    pub fn producers_len(&self) -> usize {
        self.producers.len()
    }

    pub fn messages_len(&self) -> usize {
        self.producers.values().map(|producer| producer.order.len()).sum()
    }

    pub fn memory_bytes(&self) -> usize {
        let message = size_of::<Arc<[u8]>>() * 2 + size_of::<StreamId>() + 32;
        let names: usize = self.producers.keys().map(|name| name.len()).sum();
        size_of::<Self>() + names + self.messages_len() * message
    }
}
