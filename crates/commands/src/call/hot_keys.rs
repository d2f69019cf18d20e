//! HOTKEYS, as one worker sees it: which of its calls are looked at, and what they cost.
//!
//! While a tracking is under way each call with keys adds to two sums. What is dear, to find the
//! keys of a call and to count them, is done for every call only as long as these are few; of many,
//! one in [`CALLS_PER_SAMPLE`] is looked at and counts for as many.
//! DIFFERS: Redis looks at every call.

use crate::node::Node;
use crate::node::hot_keys::sketch::KEY_BYTES_MAX;
use crate::node::hot_keys::top::DB_BYTES;
use crate::node::hot_keys::{Noted, Part};
use russet_base::{Args, Random, UnixMillis};
use russet_catalog::spec::Flags;
use russet_catalog::{Command, keys as key_positions};
use std::sync::Arc;

/// Every call is looked at until so many were within a window of time.
const EXACT_CALLS_MAX: u32 = 1000;
const WINDOW_MS: i64 = 128;
/// Of those beyond, one in so many is looked at on average.
const CALLS_PER_SAMPLE: u64 = 64;
/// What waits while somebody reads the worker's part; what is more is given up.
const SAMPLES_MAX: usize = 4096;

/// What a call has cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// None: an equal share of its batch's time, which is known at the end of it.
    pub micros: Option<u64>,
    /// Of the request and of the reply.
    pub net_bytes: u64,
    /// Where its keys are.
    pub db: usize,
}

/// One key's part of a call that was looked at. The key stands behind its database.
#[derive(Clone, Copy, Debug)]
struct Sample {
    key_start: usize,
    key_end: usize,
    /// Keys that share the call's cost, and calls that it counts for.
    shared_by: u64,
    weight: u64,
    nanos: Option<u64>,
    net_bytes: u64,
}

#[derive(Debug)]
pub struct HotKeySampler {
    /// The tracking that it notes for.
    number: u64,
    part: Option<Arc<Part>>,
    /// Calls until the next one that is looked at, and how many that will count for.
    calls_left: u64,
    weight: u64,
    window: i64,
    window_calls: u32,
    random: Random,
    // What was noted and not added to the part yet:
    /// Calls with a share of their batch's time.
    batch_calls: u64,
    nanos: u64,
    net_bytes: u64,
    samples: Vec<Sample>,
    keys: Vec<u8>,
}

impl Default for HotKeySampler {
    fn default() -> Self {
        HotKeySampler {
            number: 0,
            part: None,
            calls_left: 1,
            weight: 1,
            window: 0,
            window_calls: 0,
            random: Random::from_seed(0),
            batch_calls: 0,
            nanos: 0,
            net_bytes: 0,
            samples: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl HotKeySampler {
    /// Notes a call that was carried out, while a tracking is under way.
    #[inline]
    pub fn note(
        &mut self,
        (node, now): (&Node, UnixMillis),
        (command, args): (Command, Args),
        cost: Cost,
    ) {
        let spec = command.spec();
        if spec.key_specs.is_empty() {
            return;
        }
        if self.number != node.hot_keys.current() && !self.join(node) {
            return;
        }
        // Of most commands every call has a key.
        if spec.flags.has(Flags::MOVABLE_KEYS) && keys_len(command, args) == 0 {
            return;
        }
        self.net_bytes += cost.net_bytes;
        match cost.micros {
            Some(micros) => self.nanos += micros * 1000,
            None => self.batch_calls += 1,
        }
        self.calls_left -= 1;
        if self.calls_left == 0 {
            self.look_at(now, (command, args), cost);
        }
    }

    /// Begins to note for the tracking that is under way. False if there is none any more.
    #[cold]
    fn join(&mut self, node: &Node) -> bool {
        self.add_to_part();
        let Some((number, part)) = node.hot_keys.new_part() else { return false };
        let random = Random::from_seed(self.random.next_u64() ^ number);
        *self = HotKeySampler { number, random, ..HotKeySampler::default() };
        self.calls_left = self.gap(part.sample_ratio);
        self.part = Some(part);
        true
    }

    /// How many calls come to the next one that is looked at, if that is one in `mean`.
    fn gap(&mut self, mean: u64) -> u64 {
        1 + self.random.below(2 * mean - 1)
    }

    #[cold]
    fn look_at(&mut self, now: UnixMillis, (command, args): (Command, Args), cost: Cost) {
        let shared_by = keys_len(command, args);
        if shared_by > 0 && self.samples.len() < SAMPLES_MAX {
            let _all_are_found = key_positions(command, args, &mut |at| {
                self.push(args.at(at.index), shared_by, cost);
            });
        }
        self.begin_window(now);
        self.window_calls += 1;
        self.weight = if self.window_calls < EXACT_CALLS_MAX { 1 } else { CALLS_PER_SAMPLE };
        let sample_ratio = self.part.as_ref().map_or(1, |part| part.sample_ratio);
        self.calls_left = self.gap(sample_ratio * self.weight);
    }

    fn push(&mut self, key: &[u8], shared_by: u64, cost: Cost) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let key_start = self.keys.len();
        let db = u16::try_from(cost.db).unwrap_or(u16::MAX);
        self.keys.extend_from_slice(&db.to_be_bytes());
        self.keys.extend_from_slice(key);
        self.samples.push(Sample {
            key_start,
            key_end: self.keys.len(),
            shared_by,
            weight: self.weight,
            nanos: cost.micros.map(|micros| micros * 1000),
            net_bytes: cost.net_bytes,
        });
    }

    fn begin_window(&mut self, now: UnixMillis) -> bool {
        let window = now.0.div_euclid(WINDOW_MS);
        if window == self.window {
            return false;
        }
        (self.window, self.window_calls) = (window, 0);
        true
    }

    #[inline]
    pub fn has_notes(&self) -> bool {
        self.batch_calls != 0 || self.nanos != 0 || self.net_bytes != 0
    }

    /// A batch is over: so many calls have taken so much time.
    pub fn end_batch(&mut self, micros: u64, calls: u64) {
        let share_nanos = (micros * 1000).checked_div(calls).unwrap_or(0).max(1);
        self.nanos += std::mem::take(&mut self.batch_calls) * share_nanos;
        for sample in &mut self.samples {
            sample.nanos.get_or_insert(share_nanos);
        }
    }

    /// Adds what was noted to the worker's part of the tracking, unless that is being read.
    #[cold]
    pub fn flush(&mut self, now: UnixMillis) {
        if self.batch_calls > 0 {
            self.end_batch(0, 1);
        }
        self.add_to_part();
        if self.weight > 1 && self.begin_window(now) {
            self.weight = 1;
            let sample_ratio = self.part.as_ref().map_or(1, |part| part.sample_ratio);
            self.calls_left = self.gap(sample_ratio);
        }
    }

    fn add_to_part(&mut self) {
        let Some(part) = self.part.clone() else { return };
        let add = |noted: &mut Noted| {
            noted.nanos += self.nanos;
            noted.net_bytes += self.net_bytes;
            for sample in &self.samples {
                let key_in_db = &self.keys[sample.key_start..sample.key_end];
                let key = &key_in_db[DB_BYTES..];
                let scaled = |cost: u64| cost.saturating_mul(sample.weight) / sample.shared_by;
                if let Some(sketch) = &mut noted.by_cpu {
                    sketch.add(key, scaled(sample.nanos.unwrap_or(0)).max(1));
                }
                if let Some(sketch) = &mut noted.by_net {
                    sketch.add(key, scaled(sample.net_bytes));
                }
                // Every key of a call was called, as often as it stands for calls.
                if let Some(sketch) = &mut noted.by_calls {
                    sketch.add(key_in_db, sample.weight.saturating_mul(part.sample_ratio));
                }
            }
        };
        if part.try_add(add) {
            (self.nanos, self.net_bytes) = (0, 0);
            self.samples.clear();
            self.keys.clear();
        }
    }
}

fn keys_len(command: Command, args: Args) -> u64 {
    let mut len = 0;
    let found = key_positions(command, args, &mut |_| len += 1);
    if found.is_ok() { len } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::hot_keys::{Report, Wanted};
    use crate::testing::TestServer;
    use russet_base::OwnedArgs;
    use russet_catalog::resolve;

    fn started(sample_ratio: u64) -> (TestServer, HotKeySampler) {
        let server = TestServer::new();
        let wanted =
            Wanted { by_cpu: true, by_net: true, count: 3, duration_ms: Some(500), sample_ratio };
        assert!(server.worker.node.start_hot_keys(wanted));
        (server, HotKeySampler::default())
    }

    fn note(server: &TestServer, sampler: &mut HotKeySampler, line: &str, micros: Option<u64>) {
        let args: OwnedArgs = line.split(' ').collect();
        let command = resolve(args.as_args()).expect("there is such a command");
        let (node, now) = (&*server.worker.node, server.worker.node.clock.now());
        let cost = Cost { micros, net_bytes: 100, db: 0 };
        sampler.note((node, now), (command, args.as_args()), cost);
    }

    fn report(server: &TestServer) -> Report {
        server.worker.node.hot_keys_report().expect("a tracking was started")
    }

    fn shown(keys: &[(Vec<u8>, u64)]) -> Vec<(&str, u64)> {
        let text = |key| std::str::from_utf8(key).expect("keys of these tests are text");
        keys.iter().map(|(key, cost)| (text(key), *cost)).collect()
    }

    /// The keys of a call share what it took; a batch's time is shared by its calls.
    #[test]
    fn few_calls_are_noted_exactly() {
        let (server, mut sampler) = started(1);
        note(&server, &mut sampler, "MSET a 1 b 2", Some(10));
        note(&server, &mut sampler, "GET a", None);
        note(&server, &mut sampler, "PING", None);
        note(&server, &mut sampler, "EVAL code 0", Some(1000));
        sampler.end_batch(6, 2);
        sampler.flush(server.worker.node.clock.now());
        let report = report(&server);
        assert_eq!(shown(&report.by_cpu_micros), [("a", 8), ("b", 5)]);
        assert_eq!(shown(&report.by_net_bytes), [("a", 150), ("b", 50)]);
        assert_eq!((report.micros, report.net_bytes), (13, 200));
    }

    #[test]
    fn of_many_calls_some_are_looked_at_and_stand_for_the_others() {
        const CALLS: u64 = 200_000;
        let (server, mut sampler) = started(1);
        for at in 0..CALLS {
            let line = if at % 10 == 3 { "GET hot".to_owned() } else { format!("GET k{at}") };
            note(&server, &mut sampler, &line, None);
            if at % 16 == 0 {
                sampler.end_batch(16, 16);
                assert!(sampler.samples.len() <= 16);
                sampler.flush(server.worker.node.clock.now());
            }
        }
        sampler.flush(server.worker.node.clock.now());
        let report = report(&server);
        assert_eq!(report.net_bytes, CALLS * 100, "sums are of all calls");
        let (key, bytes) = shown(&report.by_net_bytes)[0];
        let hot_bytes = CALLS / 10 * 100;
        assert_eq!(key, "hot");
        assert!((hot_bytes * 2 / 3..hot_bytes * 4 / 3).contains(&bytes), "{bytes}");
        assert!(server.worker.node.hot_keys.memory_bytes() > 0);
    }

    #[test]
    fn one_in_a_ratio_is_looked_at() {
        let (server, mut sampler) = started(10);
        (0..900).for_each(|_| note(&server, &mut sampler, "GET k", Some(1)));
        sampler.flush(server.worker.node.clock.now());
        let report = report(&server);
        assert_eq!(report.net_bytes, 90_000);
        let (_, bytes) = shown(&report.by_net_bytes)[0];
        assert!((5000..14_000).contains(&bytes) && bytes == report.looked_at_net_bytes, "{bytes}");
    }

    #[test]
    fn a_tracking_ends_and_its_memory_is_given_back() {
        let (server, mut sampler) = started(1);
        let node = &server.worker.node;
        note(&server, &mut sampler, "GET k", Some(1));
        sampler.flush(node.clock.now());
        server.clock.advance_ms(500);
        node.tick();
        assert!(!node.hot_keys.is_on());
        let report = report(&server);
        assert_eq!((report.is_active, report.duration_ms), (false, 500));
        assert_eq!(shown(&report.by_net_bytes), [("k", 100)]);
        assert!(node.hot_keys.memory_bytes() > 0);
        assert!(node.reset_hot_keys() && node.hot_keys_report().is_none());
        assert_eq!(node.hot_keys.memory_bytes(), 0);
    }
}
