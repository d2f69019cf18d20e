//! Who listens to which channel, and the delivery of messages. It has locks of its own, never held
//! while a shard's is taken.

use crate::call::mail::{Mailbox, Posting};
use crate::node::clients::ClientCard;
use russet_base::SharedBytes;
use russet_base::glob::Glob;
use russet_base::shared::shrink_table_beyond;
use russet_catalog::ChannelUse;
use russet_protocol::{Resp, RespWriter, Sink};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

/// Places for names that a table with few of them keeps.
const NAMES_KEPT_MAX: usize = 1024;

/// One client that listens.
#[derive(Clone)]
pub struct Subscriber {
    pub card: Arc<ClientCard>,
    pub mailbox: Arc<dyn Mailbox>,
}

impl Subscriber {
    /// HELLO may change it while the subscription lasts, so it is asked for each message.
    fn resp(&self) -> Resp {
        if self.card.resp.load(Ordering::Relaxed) == 3 { Resp::V3 } else { Resp::V2 }
    }
}

/// The two spaces of channel names that exist beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shard,
}

/// By name, then by the client's id.
type Listeners = HashMap<Box<[u8]>, BTreeMap<u64, Subscriber>>;

#[derive(Default)]
pub struct Hub {
    global: RwLock<Listeners>,
    shard: RwLock<Listeners>,
    patterns: RwLock<Listeners>,
    /// Subscriptions of any kind, so that publishing to nobody costs one load.
    count: AtomicUsize,
}

impl Hub {
    fn space(&self, space: Space) -> &RwLock<Listeners> {
        match space {
            Space::Global => &self.global,
            Space::Shard => &self.shard,
        }
    }

    pub fn subscribe(&self, space: Space, channel: &[u8], subscriber: Subscriber) {
        add(self.space(space), channel, subscriber);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn unsubscribe(&self, space: Space, channel: &[u8], id: u64) {
        remove(self.space(space), channel, id);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn subscribe_pattern(&self, pattern: &[u8], subscriber: Subscriber) {
        add(&self.patterns, pattern, subscriber);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn unsubscribe_pattern(&self, pattern: &[u8], id: u64) {
        remove(&self.patterns, pattern, id);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if nobody listens to anything.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Delivers a message; how many clients got it.
    pub fn publish(
        &self,
        space: Space,
        channel: &[u8],
        message: &[u8],
        posting: &mut Posting,
    ) -> usize {
        if self.is_silent() {
            return 0;
        }
        let mut letters = Letters::default();
        let mut receivers = 0;
        let kind = if space == Space::Shard { "smessage" } else { "message" };
        let listeners = self.space(space).read().unwrap_or_else(|poison| poison.into_inner());
        for subscriber in listeners.get(channel).into_iter().flat_map(BTreeMap::values) {
            let bytes = letters.of(subscriber.resp(), |sink| {
                sink.push(3);
                [kind.as_bytes(), channel, message].iter().for_each(|part| sink.bulk(part));
            });
            posting.push_to((subscriber.card.id, &subscriber.mailbox), bytes);
            receivers += 1;
        }
        drop(listeners);
        if space == Space::Global {
            receivers += self.publish_to_patterns(channel, message, posting);
        }
        receivers
    }

    fn publish_to_patterns(&self, channel: &[u8], message: &[u8], posting: &mut Posting) -> usize {
        let mut receivers = 0;
        let patterns = self.patterns.read().unwrap_or_else(|poison| poison.into_inner());
        for (pattern, subscribers) in patterns.iter() {
            if !Glob::new(pattern).matches(channel) {
                continue;
            }
            let mut letters = Letters::default();
            for subscriber in subscribers.values() {
                let bytes = letters.of(subscriber.resp(), |sink| {
                    sink.push(4);
                    let parts = [&b"pmessage"[..], pattern, channel, message];
                    parts.iter().for_each(|part| sink.bulk(part));
                });
                posting.push_to((subscriber.card.id, &subscriber.mailbox), bytes);
                receivers += 1;
            }
        }
        receivers
    }

    /// Channels with listeners, those that match `pattern` if one is given.
    pub fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let listeners = self.space(space).read().unwrap_or_else(|poison| poison.into_inner());
        let is_wanted = |channel: &[u8]| pattern.is_none_or(|it| Glob::new(it).matches(channel));
        listeners.keys().filter(|channel| is_wanted(channel)).cloned().collect()
    }

    pub fn channels_len(&self, space: Space) -> usize {
        self.space(space).read().unwrap_or_else(|poison| poison.into_inner()).len()
    }

    pub fn subscribers_len(&self, space: Space, channel: &[u8]) -> usize {
        let listeners = self.space(space).read().unwrap_or_else(|poison| poison.into_inner());
        listeners.get(channel).map_or(0, BTreeMap::len)
    }

    /// Those of the listeners to anything whose subscription is such: `is_such` is asked with a
    /// name, and how it is meant.
    pub fn listeners(
        &self,
        is_such: &dyn Fn(&ClientCard, ChannelUse, &[u8]) -> bool,
    ) -> Vec<Arc<ClientCard>> {
        let spaces = [
            (&self.global, ChannelUse::Name),
            (&self.shard, ChannelUse::Name),
            (&self.patterns, ChannelUse::Pattern),
        ];
        let mut found = BTreeMap::new();
        for (space, used_as) in spaces {
            let listeners = space.read().unwrap_or_else(|poison| poison.into_inner());
            for (name, subscribers) in listeners.iter() {
                let such = subscribers.values().filter(|it| is_such(&it.card, used_as, name));
                found.extend(such.map(|it| (it.card.id, it.card.clone())));
            }
        }
        found.into_values().collect()
    }

    /// Different patterns that someone is subscribed to.
    pub fn patterns_len(&self) -> usize {
        self.patterns.read().unwrap_or_else(|poison| poison.into_inner()).len()
    }
}

fn add(listeners: &RwLock<Listeners>, name: &[u8], subscriber: Subscriber) {
    let mut listeners = listeners.write().unwrap_or_else(|poison| poison.into_inner());
    listeners.entry(name.into()).or_default().insert(subscriber.card.id, subscriber);
}

fn remove(listeners: &RwLock<Listeners>, name: &[u8], id: u64) {
    let mut listeners = listeners.write().unwrap_or_else(|poison| poison.into_inner());
    if let Some(subscribers) = listeners.get_mut(name) {
        subscribers.remove(&id);
        if subscribers.is_empty() {
            listeners.remove(name);
            shrink_table_beyond(&mut listeners, NAMES_KEPT_MAX);
        }
    }
}

/// One message in the two spellings, each made when first needed.
#[derive(Default)]
struct Letters {
    v2: Option<SharedBytes>,
    v3: Option<SharedBytes>,
}

impl Letters {
    fn of(&mut self, resp: Resp, write: impl FnOnce(&mut dyn Sink)) -> SharedBytes {
        let spelled = match resp {
            Resp::V2 => &mut self.v2,
            Resp::V3 => &mut self.v3,
        };
        spelled
            .get_or_insert_with(|| {
                let mut bytes = Vec::new();
                write(&mut RespWriter::new(&mut bytes, resp));
                SharedBytes::new(bytes)
            })
            .clone()
    }
}
