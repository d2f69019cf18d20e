//! The scripts that were compiled, by their digest and by their source.

use super::compiling::Compiling;
use super::key_use::is_narrow_on;
use super::shebang::{self, ScriptFlags};
use crate::error::Refusal;
use russet_base::hash::KeyHasher;
use russet_engine::types::capacity::{allocated_bytes, allocated_for, table_bytes};
use russet_scripting::{Chunk, Purpose};
use sha1::{Digest, Sha1};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Beyond so many scripts that came by EVAL and not by SCRIPT LOAD, those that were not run for
/// longest are forgotten.
pub const EVAL_SCRIPTS_MAX: usize = 500;
/// The name that errors give to every script.
const CHUNK_NAME: &[u8] = b"@user_script";
pub const SHA_DIGITS: usize = 40;

/// The SHA-1 digest of a source, as hexadecimal digits.
pub type Sha = [u8; SHA_DIGITS];

pub fn sha1_hex(bytes: &[u8]) -> Sha {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha1::digest(bytes);
    let mut sha = [0; SHA_DIGITS];
    for (pair, byte) in sha.chunks_exact_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    sha
}

/// What runs of one script came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    pub calls: u64,
    pub errors: u64,
    pub micros: u64,
    pub micros_max: u64,
    /// Commands that it called.
    pub operations: u64,
    /// When the last of them ended, in microseconds of the monotonic clock.
    pub last_at: u64,
}

/// A part of the counts, on a line of memory of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    calls: AtomicU64,
    errors: AtomicU64,
    micros: AtomicU64,
    micros_max: AtomicU64,
    operations: AtomicU64,
    /// When the last run ended, in microseconds of the monotonic clock.
    last_at: AtomicU64,
}

/// Threads that run one script at the same time count in different stripes, as a rule.
const STRIPES: usize = 4;

/// Counts the runs of one script.
#[derive(Debug, Default)]
pub struct RunStats {
    stripes: [Stripe; STRIPES],
}

impl RunStats {
    pub fn has_run(&self) -> bool {
        self.stripes.iter().any(|stripe| stripe.calls.load(Ordering::Relaxed) > 0)
    }

    /// Adds a run on the worker of this number.
    pub fn count(&self, worker: usize, run: RunTotals) {
        let stripe = &self.stripes[worker % STRIPES];
        stripe.calls.fetch_add(run.calls, Ordering::Relaxed);
        // Most are short and few fail: what adds nothing is not added.
        let sums = [
            (&stripe.micros, run.micros),
            (&stripe.operations, run.operations),
            (&stripe.errors, run.errors),
        ];
        for (sum, more) in sums {
            if more > 0 {
                sum.fetch_add(more, Ordering::Relaxed);
            }
        }
        stripe.last_at.store(run.last_at, Ordering::Relaxed);
        if stripe.micros_max.load(Ordering::Relaxed) < run.micros_max {
            stripe.micros_max.fetch_max(run.micros_max, Ordering::Relaxed);
        }
    }

    pub fn totals(&self) -> RunTotals {
        let mut totals = RunTotals::default();
        for stripe in &self.stripes {
            totals.calls += stripe.calls.load(Ordering::Relaxed);
            totals.errors += stripe.errors.load(Ordering::Relaxed);
            totals.micros += stripe.micros.load(Ordering::Relaxed);
            totals.micros_max = totals.micros_max.max(stripe.micros_max.load(Ordering::Relaxed));
            totals.operations += stripe.operations.load(Ordering::Relaxed);
            totals.last_at = totals.last_at.max(stripe.last_at.load(Ordering::Relaxed));
        }
        totals
    }
}

#[derive(Debug)]
pub struct Script {
    pub sha: Sha,
    pub source: Box<[u8]>,
    pub chunk: Chunk,
    pub flags: ScriptFlags,
    /// It may reach keys that its caller does not name.
    pub is_wide: bool,
    /// Names the script in every machine that has loaded it.
    pub number: u64,
    pub stats: RunStats,
    /// What its compilation took, until its first run takes that into account.
    compile_micros: AtomicU64,
}

impl Script {
    /// Compiles a source; the error is the compiler's, in its own words.
    pub fn compile(source: &[u8], compiling: &Compiling) -> Result<Script, Refusal> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let (flags, code) = shebang::parse(source)?;
        let failed = "Error compiling script (new function)";
        let chunk = compiling.compile(Purpose::Script, (code, CHUNK_NAME), failed)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (sha, stats) = (sha1_hex(source), RunStats::default());
        let is_wide =
            !chunk.keys_use().script_is_narrow(&|call| is_narrow_on(compiling.node(), call));
        let (source, chunk) = (source.into(), chunk.without_keys_use());
        let compile_micros = AtomicU64::new(compiling.elapsed_micros());
        Ok(Script { sha, source, chunk, flags, is_wide, number, stats, compile_micros })
    }

    /// What it takes up: its source, its code and itself.
    fn memory_bytes(&self) -> usize {
        // The counts of the `Arc` lie before it, as far as its alignment asks.
        allocated_bytes(align_of::<Script>() + size_of::<Script>())
            + allocated_bytes(self.source.len())
            + chunk_bytes(&self.chunk)
    }

    /// What its compilation took, once.
    pub fn take_compile_micros(&self) -> u64 {
        match self.compile_micros.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.compile_micros.swap(0, Ordering::Relaxed),
        }
    }
}

/// What compiled code takes up.
pub(crate) fn chunk_bytes(chunk: &Chunk) -> usize {
    let mut total = 0;
    chunk.allocations(|bytes| total += allocated_bytes(bytes));
    total
}

/// When a script has run last, as far as it was looked at; among equal times, what was looked at
/// first.
type LastUse = (u64, u64);

#[derive(Debug)]
pub struct Cache {
    by_sha: HashMap<Sha, Arc<Script>>,
    /// A quick hash of the source: EVAL need not make a digest of a script that is known.
    by_source: HashMap<u64, Arc<Script>>,
    hasher: KeyHasher,
    /// Those that came by EVAL, by when each had run last when that was looked at.
    evictable: BTreeSet<(LastUse, Sha)>,
    /// How often a script was put among them.
    uses: u64,
    /// What the scripts take up.
    script_bytes: usize,
    pub evicted: u64,
    /// Changes when scripts are forgotten: machines then let go of theirs.
    pub epoch: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            by_sha: HashMap::new(),
            by_source: HashMap::new(),
            hasher: KeyHasher::with_seed(russet_base::Random::from_entropy().next_u64()),
            evictable: BTreeSet::new(),
            uses: 0,
            script_bytes: 0,
            evicted: 0,
            epoch: 0,
        }
    }
}

impl Cache {
    pub fn len(&self) -> usize {
        self.by_sha.len()
    }

    /// What the scripts and the ways to find them take up.
    pub fn memory_bytes(&self) -> usize {
        self.script_bytes
            + table_bytes::<Sha, Arc<Script>>(self.by_sha.capacity())
            + table_bytes::<u64, Arc<Script>>(self.by_source.capacity())
            + allocated_for::<(LastUse, Sha)>(self.evictable.len())
    }

    pub fn scripts(&self) -> impl Iterator<Item = &Arc<Script>> {
        self.by_sha.values()
    }

    /// By a digest in any letter case.
    pub fn by_sha(&self, sha: &[u8]) -> Option<Arc<Script>> {
        let mut sha: Sha = sha.try_into().ok()?;
        sha.make_ascii_lowercase();
        self.by_sha.get(&sha).cloned()
    }

    pub fn by_source(&self, source: &[u8]) -> Option<Arc<Script>> {
        let found = self.by_source.get(&self.hasher.hash(source))?;
        (*found.source == *source).then(|| found.clone())
    }

    /// Adds a script; one of the same digest that is there already stays. With a time, in
    /// microseconds of the monotonic clock, it may be forgotten.
    pub fn add(&mut self, script: Arc<Script>, evictable_at: Option<u64>) -> Arc<Script> {
        if let Some(known) = self.by_sha.get(&script.sha) {
            let known = known.clone();
            if evictable_at.is_none() {
                self.evictable.retain(|(_, sha)| *sha != known.sha);
            }
            return known;
        }
        if let Some(now) = evictable_at {
            if self.evictable.len() >= EVAL_SCRIPTS_MAX {
                self.evict_one();
            }
            self.put_in_order(script.sha, now);
        }
        self.script_bytes += script.memory_bytes();
        self.by_sha.insert(script.sha, script.clone());
        self.by_source.insert(self.hasher.hash(&script.source), script.clone());
        script
    }

    fn put_in_order(&mut self, sha: Sha, last_at: u64) {
        self.uses += 1;
        self.evictable.insert(((last_at, self.uses), sha));
    }

    /// Forgets the one that was not run for longest. A run need not change any order: who has run
    /// since it was put in order is put there again when its turn comes.
    fn evict_one(&mut self) {
        let oldest = loop {
            let Some(((seen_at, _), sha)) = self.evictable.pop_first() else { return };
            let last_at = self.by_sha.get(&sha).map_or(0, |script| script.stats.totals().last_at);
            if last_at <= seen_at {
                break sha;
            }
            self.put_in_order(sha, last_at);
        };
        if let Some(script) = self.by_sha.remove(&oldest) {
            self.by_source.remove(&self.hasher.hash(&script.source));
            self.script_bytes -= script.memory_bytes();
            self.evicted += 1;
            self.epoch += 1;
        }
    }

    pub fn clear(&mut self) {
        let (hasher, epoch) = (self.hasher, self.epoch + 1);
        *self = Cache { hasher, epoch, evicted: self.evicted, ..Cache::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestServer;
    use russet_base::UnixMillis;
    use russet_base::clock::Clock;

    /// The oldest was forgotten, even if it ran all the time. And the count of those that were
    /// forgotten outlived CONFIG RESETSTAT.
    #[test]
    fn scripts_that_still_run_are_not_forgotten() {
        let mut server = TestServer::new();
        let sources: Vec<String> = (0..=EVAL_SCRIPTS_MAX).map(|n| format!("return {n}")).collect();
        let sha_of = |n: usize| {
            let digits = sha1_hex(sources[n].as_bytes());
            digits.iter().map(|digit| char::from(*digit)).collect::<String>()
        };
        for source in &sources[..EVAL_SCRIPTS_MAX] {
            server.run(&["EVAL", source, "0"]);
        }
        server.clock.advance_ms(1);
        assert_eq!(server.run(&["EVAL", &sources[0], "0"]).to_string(), "0");
        assert_eq!(server.run(&["EVALSHA", &sha_of(1), "0"]).to_string(), "1");
        server.run(&["EVAL", &sources[EVAL_SCRIPTS_MAX], "0"]);
        let node = server.worker.node.clone();
        assert_eq!((node.scripts.cached(), node.scripts.evicted()), (EVAL_SCRIPTS_MAX, 1));
        for n in [0, 1, 3, EVAL_SCRIPTS_MAX] {
            let reply = server.run(&["EVALSHA", &sha_of(n), "0"]);
            assert_eq!(reply.to_string(), n.to_string());
        }
        let reply = server.run(&["EVALSHA", &sha_of(2), "0"]).to_string();
        assert!(reply.starts_with("-NOSCRIPT"), "{reply}");
        server.say("CONFIG RESETSTAT");
        assert_eq!(node.scripts.evicted(), 0);
    }

    /// One that had run again was kept longer than others that ran after it.
    #[test]
    fn the_one_that_has_not_run_for_longest_is_forgotten() {
        let mut server = TestServer::new();
        let mut eval = |range: std::ops::Range<usize>| {
            for n in range {
                server.run(&["EVAL", &format!("return {n}"), "0"]);
                server.clock.advance_ms(1);
            }
        };
        eval(0..EVAL_SCRIPTS_MAX);
        let again = EVAL_SCRIPTS_MAX - 1;
        eval(again..again + 1);
        eval(EVAL_SCRIPTS_MAX..2 * EVAL_SCRIPTS_MAX);
        let mut is_known = |n: usize| {
            let source = format!("return {n}");
            let sha = String::from_utf8_lossy(&sha1_hex(source.as_bytes())).into_owned();
            server.run(&["SCRIPT", "EXISTS", &sha]).to_string() == "[1]"
        };
        assert!(!is_known(again));
        assert!((EVAL_SCRIPTS_MAX..2 * EVAL_SCRIPTS_MAX).all(is_known));
    }

    /// Each new script was the next to be forgotten until the clock had caught up.
    #[test]
    fn a_clock_that_is_set_back_does_not_make_new_scripts_old() {
        let mut server = TestServer::new();
        for n in 0..EVAL_SCRIPTS_MAX {
            server.run(&["EVAL", &format!("return {n}"), "0"]);
            server.clock.advance_ms(1);
        }
        let before = server.clock.now().0 - 3_600_000;
        server.clock.set(UnixMillis(before));
        let new: Vec<String> = (0..10).map(|n| format!("return 'new {n}'")).collect();
        new.iter().for_each(|source| drop(server.run(&["EVAL", source, "0"])));
        for source in &new {
            let sha = String::from_utf8_lossy(&sha1_hex(source.as_bytes())).into_owned();
            assert_eq!(server.run(&["SCRIPT", "EXISTS", &sha]).to_string(), "[1]", "{source}");
        }
    }

    #[test]
    fn one_is_forgotten_if_all_still_run() {
        let mut server = TestServer::new();
        for _ in 0..2 {
            for n in 0..EVAL_SCRIPTS_MAX {
                server.run(&["EVAL", &format!("return {n}"), "0"]);
            }
        }
        server.run(&["EVAL", "return 'new'", "0"]);
        let scripts = &server.worker.node.scripts;
        assert_eq!((scripts.cached(), scripts.evicted()), (EVAL_SCRIPTS_MAX, 1));
        let sha = String::from_utf8_lossy(&sha1_hex(b"return 'new'")).into_owned();
        assert_eq!(server.run(&["EVALSHA", &sha, "0"]).to_string(), "\"new\"");
    }
}
