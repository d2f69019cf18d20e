//! `maxmemory-clients`: how much all clients may hold together. Beyond that the largest are closed,
//! by whoever finds it so: the thread whose client has grown, or housekeeping.

use crate::call::mail::Receipt;
use crate::call::session::Session;
use crate::node::Node;
use crate::node::clients::{ClientCard, ClientFlags};
use crate::node::config::Directive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// No limit.
const NONE: u64 = u64::MAX;
/// A lower limit is taken for this one: nobody could even ask for another. As the peers have it.
const LIMIT_BYTES_MIN: u64 = 128 * 1024;
/// When nobody was left to close, it is not looked again for so long.
const FUTILE_FOR_MICROS: u64 = 100_000;
/// What DEBUG shows: clients of up to 32 KiB, of up to twice as much, and so on.
const BUCKETS: usize = 19;
const FIRST_BUCKET_LOG: u32 = 14;

pub struct ClientMemory {
    limit_bytes: AtomicU64,
    /// Held by the one who closes clients; until when that is known to be in vain.
    futile_until_micros: Mutex<u64>,
}

impl Default for ClientMemory {
    fn default() -> Self {
        ClientMemory { limit_bytes: AtomicU64::new(NONE), futile_until_micros: Mutex::default() }
    }
}

impl ClientMemory {
    /// The limit in bytes, if there is one.
    pub fn limit_bytes(&self) -> Option<u64> {
        Some(self.limit_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != NONE)
    }
}

/// What the directives come to: bytes, or a percentage of `maxmemory`, which is nothing if that
/// has no limit.
fn limit_of(clients: i64, memory_bytes: u64) -> u64 {
    let bytes = match clients {
        0 => return NONE,
        ..0 if memory_bytes == 0 => return NONE,
        ..0 => (memory_bytes as f64 * clients.unsigned_abs() as f64 / 100.0) as u64,
        bytes => bytes.unsigned_abs(),
    };
    bytes.max(LIMIT_BYTES_MIN)
}

impl Node {
    /// Takes over what the directives say.
    pub(super) fn refresh_client_memory(&self) {
        let clients = self.config.int(Directive::MaxMemoryClients);
        let limit = limit_of(clients, self.config.memory(Directive::MaxMemory));
        self.client_memory.limit_bytes.store(limit, Ordering::Relaxed);
        *self.futile_until() = 0;
    }

    fn futile_until(&self) -> std::sync::MutexGuard<'_, u64> {
        let futile = &self.client_memory.futile_until_micros;
        futile.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// DEBUG CLIENT-EVICTION: how many clients may be closed, by what they hold. None without a
    /// limit.
    pub(crate) fn client_buckets(&self) -> Option<String> {
        self.client_memory.limit_bytes()?;
        let mut buckets = [(0, 0); BUCKETS];
        for card in self.clients.all() {
            if !card.is_killed() && !card.has_flag(ClientFlags::NO_EVICT) {
                let bytes = card.counted_bytes();
                let order = bytes.checked_ilog2().unwrap_or(0).saturating_sub(FIRST_BUCKET_LOG);
                let (total, count) = &mut buckets[(order as usize).min(BUCKETS - 1)];
                (*total, *count) = (*total + bytes, *count + 1);
            }
        }
        let line = |(index, (bytes, clients)): (usize, &(u64, u64))| {
            let end = 1_u64 << (FIRST_BUCKET_LOG as usize + 1 + index);
            let begin = if index == 0 { 0 } else { end / 2 };
            let range = match index {
                _ if index + 1 < BUCKETS => format!("{begin:10} - {:10}", end - 1),
                _ => format!("{begin:10}+            "),
            };
            format!("bucket {range}: tot-mem: {bytes:10}, clients: {clients}\n")
        };
        Some(buckets.iter().enumerate().map(line).collect())
    }

    /// A client's memory was counted: closes the largest if all have too much.
    #[inline]
    pub fn limit_client_memory(&self) {
        let limit = self.client_memory.limit_bytes.load(Ordering::Relaxed);
        if self.clients.memory_bytes() > limit {
            self.evict_clients(limit, &mut |_| None);
        }
    }

    /// The same after a change of the limit: whoever has changed it is answered when the others are
    /// closed.
    pub(crate) fn limit_client_memory_for(&self, session: &mut Session) {
        let limit = self.client_memory.limit_bytes.load(Ordering::Relaxed);
        if self.clients.memory_bytes() > limit {
            let caller = session.id();
            self.evict_clients(limit, &mut |id| (id != caller).then(|| session.ask_others()));
        }
    }

    #[cold]
    fn evict_clients(&self, limit: u64, receipt_for: &mut dyn FnMut(u64) -> Option<Receipt>) {
        let mut futile_until = match self.client_memory.futile_until_micros.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poison)) => poison.into_inner(),
            // Somebody else does.
            Err(TryLockError::WouldBlock) => return,
        };
        let now = self.clock.monotonic_micros();
        if *futile_until > now {
            return;
        }
        let cards = self.clients.all();
        let (closing, mut open): (Vec<_>, Vec<_>) = cards.iter().partition(|card| card.is_killed());
        let bytes = |cards: &[&Arc<ClientCard>]| cards.iter().map(|it| it.counted_bytes()).sum();
        let leaving: u64 = bytes(&closing);
        let mut used = self.clients.memory_bytes().saturating_sub(leaving);
        open.retain(|card| !card.has_flag(ClientFlags::NO_EVICT));
        // Read once: they change meanwhile, and what is sorted must not.
        let mut sizes: Vec<_> = open.into_iter().map(|card| (card.counted_bytes(), card)).collect();
        sizes.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, card) in sizes.into_iter().take_while(|(bytes, _)| *bytes > 0) {
            if used <= limit {
                return;
            }
            used = used.saturating_sub(bytes);
            self.stats.evicted_clients.fetch_add(1, Ordering::Relaxed);
            let (id, address) = (card.id, &card.address);
            let why = format!("{bytes} bytes, and maxmemory-clients is reached");
            self.host.note(&format!("Client id={id} addr={address} evicted: {why}"));
            card.kill(receipt_for(card.id));
        }
        *futile_until = now + FUTILE_FOR_MICROS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestClients;

    /// CLIENT LIST still showed clients behind the change of the limit that had closed them.
    #[test]
    fn a_lower_limit_is_answered_when_clients_are_closed() {
        let mut clients = TestClients::of(2);
        let id = clients.say(1, "CLIENT ID").parse().expect("a number");
        let node = clients.node();
        let card = node.clients.find(id).expect("it is there");
        card.query_bytes.store(1 << 20, Ordering::Relaxed);
        node.clients.count_memory(&card, node.keyspace.used_memory());
        assert_eq!(clients.say(0, "CONFIG SET maxmemory-clients 500000"), "(blocked)");
        assert_eq!(clients.read(1), "(closed)");
        clients.end_turn(1);
        assert_eq!(clients.read(0), "+OK");
        assert_eq!(clients.say(0, "CONFIG SET maxmemory-clients 0"), "+OK");
    }

    #[test]
    fn a_percentage_is_one_of_maxmemory() {
        let mebibyte = 1 << 20;
        assert_eq!(limit_of(0, mebibyte), NONE);
        assert_eq!(limit_of(5 << 20, 0), 5 << 20);
        assert_eq!(limit_of(-50, mebibyte), mebibyte / 2);
        assert_eq!(limit_of(-50, 0), NONE);
        assert_eq!(limit_of(-1, mebibyte), LIMIT_BYTES_MIN);
        assert_eq!(limit_of(1, 0), LIMIT_BYTES_MIN);
    }
}
