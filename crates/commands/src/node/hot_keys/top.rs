//! `hotkeys-top-k`: the keys that are called most, always known. Calls are counted for a window of
//! time; what HOTKEYS GET tells is of the last one that is over.

use super::{HotKeys, Part, State, heaviest, sum_up};
use crate::node::Node;
use crate::node::config::Directive;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes before a counted key that say which database it is in.
pub const DB_BYTES: usize = size_of::<u16>();

/// A key, and about how often it was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    pub key: Vec<u8>,
    pub db: usize,
    pub calls_per_second: u64,
}

#[derive(Debug)]
pub(super) struct Top {
    pub count: usize,
    window_ms: u64,
    /// When the window under way began, by the monotonic clock.
    began_ms: u64,
    pub parts: Vec<Arc<Part>>,
    hottest: Vec<HotKey>,
}

impl Top {
    fn new(count: usize, window_ms: u64, now_ms: u64) -> Self {
        Top { count, window_ms, began_ms: now_ms, parts: Vec::new(), hottest: Vec::new() }
    }

    /// Ends the window under way, if it is long enough.
    fn end_window_if_due(&mut self, now_ms: u64) {
        let took_ms = now_ms.saturating_sub(self.began_ms);
        if took_ms < self.window_ms {
            return;
        }
        let calls = self.take_calls();
        let hottest = heaviest(calls, self.count).into_iter();
        // It has taken as long as it has, on a busy machine longer than it should.
        self.hottest = hottest.map(|(key, calls)| hot_key(&key, calls, took_ms)).collect();
        self.began_ms = now_ms;
    }

    /// What all workers have counted, who go on from nothing.
    fn take_calls(&mut self) -> HashMap<Vec<u8>, u64> {
        let mut calls = HashMap::new();
        for part in &self.parts {
            sum_up(&mut calls, part.take_calls().as_ref());
        }
        // Who holds a part but us is a worker that adds to it, or a tracking that will be read.
        self.parts.retain(|part| Arc::strong_count(part) > 1);
        calls
    }

    fn reset(&mut self, now_ms: u64) {
        self.take_calls();
        self.hottest.clear();
        self.began_ms = now_ms;
    }
}

fn hot_key(key: &[u8], calls: u64, took_ms: u64) -> HotKey {
    let (db, key) = key.split_first_chunk::<DB_BYTES>().unwrap_or((&[0; DB_BYTES], key));
    let calls_per_second = calls.saturating_mul(1000).div_ceil(took_ms.max(1));
    HotKey { key: key.to_vec(), db: usize::from(u16::from_be_bytes(*db)), calls_per_second }
}

impl HotKeys {
    fn note_hottest(&self, top: Option<&Top>) {
        let hottest = top.and_then(|top| top.hottest.first());
        let calls_per_second = hottest.map_or(0, |key| key.calls_per_second);
        self.hottest_calls_per_second.store(calls_per_second, Ordering::Relaxed);
    }
}

impl State {
    pub(super) fn reset_top(&mut self, now_ms: u64) {
        if let Some(top) = &mut self.top {
            top.reset(now_ms);
        }
    }
}

impl Node {
    /// `hotkeys-top-k` or `hotkeys-window-seconds` has changed: what was counted is forgotten.
    pub(crate) fn refresh_top_keys(&self) {
        let number = |of| self.config.int(of).unsigned_abs();
        let count = number(Directive::HotkeysTopK);
        let window_ms = number(Directive::HotkeysWindowSeconds) * 1000;
        let mut state = self.hot_keys.state();
        if let Some(mut old) = state.top.take() {
            old.take_calls();
        }
        let top = Top::new(count as usize, window_ms, self.monotonic_ms());
        state.top = (count > 0).then_some(top);
        self.hot_keys.note_hottest(state.top.as_ref());
        self.hot_keys.renumber(&state);
    }

    pub(super) fn monotonic_ms(&self) -> u64 {
        self.clock.monotonic_micros() / 1000
    }

    /// About ten times in a second.
    pub(crate) fn end_hot_key_window_if_due(&self) {
        if self.hot_keys.is_on()
            && let Some(top) = &mut self.hot_keys.state().top
        {
            top.end_window_if_due(self.monotonic_ms());
            self.hot_keys.note_hottest(Some(&*top));
        }
    }

    /// The keys that were called most in the last window, most called first. None if nobody wants
    /// to know always.
    pub fn top_keys(&self) -> Option<Vec<HotKey>> {
        self.hot_keys.state().top.as_ref().map(|top| top.hottest.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::HotKey;
    use crate::call::hot_keys::{Cost, HotKeySampler};
    use crate::testing::TestServer;
    use russet_base::OwnedArgs;
    use russet_catalog::resolve;

    struct Counted {
        server: TestServer,
        sampler: HotKeySampler,
    }

    impl Counted {
        fn new(count: usize) -> Self {
            let mut counted =
                Counted { server: TestServer::new(), sampler: HotKeySampler::default() };
            assert_eq!(counted.say(&format!("CONFIG SET hotkeys-top-k {count}")), "+OK");
            counted
        }

        fn say(&mut self, line: &str) -> String {
            self.server.say(line)
        }

        fn call(&mut self, db: usize, line: &str) {
            let args: OwnedArgs = line.split(' ').collect();
            let command = resolve(args.as_args()).expect("there is such a command");
            let node = &*self.server.worker.node;
            let cost = Cost { micros: Some(1), net_bytes: 10, db };
            self.sampler.note((node, node.clock.now()), (command, args.as_args()), cost);
            self.sampler.flush(node.clock.now());
        }

        /// What is told after the window.
        fn told(&mut self) -> Vec<(String, usize, u64)> {
            self.server.clock.advance_ms(1000);
            self.server.worker.node.tick();
            let keys = self.server.worker.node.top_keys().expect("it is on");
            let shown = |HotKey { key, db, calls_per_second }: HotKey| {
                (String::from_utf8_lossy(&key).into_owned(), db, calls_per_second)
            };
            keys.into_iter().map(shown).collect()
        }
    }

    #[test]
    fn the_keys_of_the_last_window_are_told_most_called_first() {
        let mut counted = Counted::new(2);
        assert_eq!(counted.say("HOTKEYS GET"), "[]", "no window is over yet");
        for call in ["GET a", "GET b", "MGET a b", "GET a", "SET c 1"] {
            counted.call(0, call);
        }
        assert_eq!(counted.told(), [("a".to_owned(), 0, 3), ("b".to_owned(), 0, 2)]);
        let reply = counted.say("HOTKEYS GET");
        assert!(reply.contains("qps") && reply.find("\"a\"") < reply.find("\"b\""), "{reply}");
        assert_eq!(counted.server.worker.node.hot_keys.hottest_calls_per_second(), 3);
        // Nothing was called in the window after it.
        assert!(counted.told().is_empty());
        assert_eq!(counted.server.worker.node.hot_keys.hottest_calls_per_second(), 0);
        assert_eq!(counted.say("CONFIG SET hotkeys-top-k 0"), "+OK");
        assert_eq!(counted.say("HOTKEYS GET"), TestServer::new().say("HOTKEYS GET"));
        let hot_keys = &counted.server.worker.node.hot_keys;
        assert!(!hot_keys.is_on());
        assert_eq!(hot_keys.memory_bytes(), 0);
    }

    #[test]
    fn keys_of_one_name_in_two_databases_are_two() {
        let mut counted = Counted::new(10);
        for db in [0, 3, 3] {
            counted.call(db, "GET k");
        }
        assert_eq!(counted.told(), [("k".to_owned(), 3, 2), ("k".to_owned(), 0, 1)]);
    }

    /// A tracking that somebody starts goes on beside it, and neither ends the other.
    #[test]
    fn a_tracking_beside_it_changes_nothing() {
        let mut counted = Counted::new(10);
        counted.call(0, "GET k");
        assert_eq!(counted.say("HOTKEYS START METRICS 1 NET"), "+OK");
        counted.call(0, "GET k");
        assert_eq!(counted.say("HOTKEYS STOP"), "+OK");
        counted.call(0, "GET k");
        assert_eq!(counted.told(), [("k".to_owned(), 0, 3)]);
        let of_tracking = counted.say("HOTKEYS GET");
        assert!(of_tracking.contains("by-net-bytes"), "{of_tracking}");
        assert_eq!(counted.say("HOTKEYS RESET"), "+OK");
        assert_eq!(counted.say("HOTKEYS GET"), "[]");
        assert!(counted.server.worker.node.hot_keys.is_on());
    }
}
