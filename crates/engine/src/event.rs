//! What a write did, as keyspace notifications name it.

/// The classes of `notify-keyspace-events`, and which of them someone asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EventClasses(pub u32);

impl EventClasses {
    pub const NONE: Self = Self(0);
    /// `K`: publish to `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1);
    /// `E`: publish to `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    pub const GENERIC: Self = Self(1 << 2);
    pub const STRING: Self = Self(1 << 3);
    pub const LIST: Self = Self(1 << 4);
    pub const SET: Self = Self(1 << 5);
    pub const HASH: Self = Self(1 << 6);
    pub const ZSET: Self = Self(1 << 7);
    pub const EXPIRED: Self = Self(1 << 8);
    pub const EVICTED: Self = Self(1 << 9);
    pub const STREAM: Self = Self(1 << 10);
    pub const KEY_MISS: Self = Self(1 << 11);
    pub const MODULE: Self = Self(1 << 13);
    pub const NEW: Self = Self(1 << 14);
    pub const OVERWRITTEN: Self = Self(1 << 15);
    pub const TYPE_CHANGED: Self = Self(1 << 16);

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub class: EventClasses,
    pub name: &'static str,
}

impl Event {
    pub const fn generic(name: &'static str) -> Self {
        Event { class: EventClasses::GENERIC, name }
    }

    pub const fn string(name: &'static str) -> Self {
        Event { class: EventClasses::STRING, name }
    }

    pub const fn list(name: &'static str) -> Self {
        Event { class: EventClasses::LIST, name }
    }

    pub const fn zset(name: &'static str) -> Self {
        Event { class: EventClasses::ZSET, name }
    }

    pub const fn hash(name: &'static str) -> Self {
        Event { class: EventClasses::HASH, name }
    }

    pub const fn set(name: &'static str) -> Self {
        Event { class: EventClasses::SET, name }
    }

    pub const fn stream(name: &'static str) -> Self {
        Event { class: EventClasses::STREAM, name }
    }

    pub const EXPIRED: Event = Event { class: EventClasses::EXPIRED, name: "expired" };
    pub const EVICTED: Event = Event { class: EventClasses::EVICTED, name: "evicted" };
    pub const KEY_MISS: Event = Event { class: EventClasses::KEY_MISS, name: "keymiss" };
    pub const NEW: Event = Event { class: EventClasses::NEW, name: "new" };
    pub const DEL: Event = Event::generic("del");
}

/// An event that happened to a key, to be published before the shards are unlocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub db: usize,
    pub event: Event,
    pub key: Box<[u8]>,
}
