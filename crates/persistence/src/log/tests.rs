//! The log on a disk that fails, tears, forgets and lies: what was durable is there afterwards,
//! once and in order, and what happened at once is there as a whole or not at all.

mod cut;
mod large;
mod left;
mod long;
mod measured;
mod recovery;

use super::*;
use crate::data_file::Form;
use crate::disk::simulated::{Fault, Loss, SimulatedDisk};
use crate::disk::{Disk, DiskFile};
use russet_base::Args;
use russet_engine::barrier::Barrier;
use russet_engine::journal::{Journal, Mode};
use russet_engine::record::{Destination, Records};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(20);
/// Seeds for what chance decides after the power went.
const SEEDS: u64 = 3;

/// What was reported: warnings, and what was measured.
#[derive(Default)]
struct Warnings(Mutex<Vec<String>>, Mutex<Vec<&'static str>>);

impl LogEvents for Warnings {
    fn warn(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn took(&self, event: &'static str, _time: Duration) {
        self.1.lock().unwrap().push(event);
    }
}

/// What a base of these tests begins and ends with.
const BASE: &str = "REDIS-";
const END: &str = "\x02";

/// What was loaded: a line for each unit.
#[derive(Default)]
struct Loaded {
    db: String,
    units: Vec<String>,
    /// Commands of the unit under way.
    unit: Vec<String>,
    is_in_unit: bool,
}

impl Target for Loaded {
    fn command(&mut self, _at: u64, args: Args<'_>) -> Result<(), Refused> {
        let text: Vec<_> = args.iter().map(String::from_utf8_lossy).collect();
        match text[0].as_ref() {
            "SELECT" => self.db = text[1].to_string(),
            _ => self.unit.push(format!("{}> {}", self.db, text.join(" "))),
        }
        if !self.is_in_unit {
            self.end_unit();
        }
        Ok(())
    }

    fn edge_of_unit(&mut self, is_begin: bool) {
        self.is_in_unit = is_begin;
        if !is_begin {
            self.end_unit();
        }
    }

    /// Bases of these tests are lists of units.
    fn rdb(&mut self, source: &mut dyn Read) -> Result<u64, Refused> {
        self.base(source).map_err(|why| (0, why))
    }
}

impl Loaded {
    fn end_unit(&mut self) {
        if !self.unit.is_empty() {
            self.units.push(std::mem::take(&mut self.unit).join(" | "));
        }
    }

    fn base(&mut self, source: &mut dyn Read) -> Result<u64, String> {
        let mut text = String::new();
        source.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let lines =
            text.strip_prefix(BASE).ok_or("it was cut")?.strip_suffix(END).ok_or("it was cut")?;
        self.units.extend(lines.split('\x01').filter(|it| !it.is_empty()).map(str::to_owned));
        Ok(text.len() as u64)
    }
}

fn names() -> LogNames {
    LogNames {
        root: PathBuf::from("/data"),
        dir: "appendonlydir".to_owned(),
        file: "appendonly.aof".to_owned(),
    }
}

fn disk() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new("/data")).unwrap();
    disk
}

fn load(disk: &SimulatedDisk) -> Result<(Vec<String>, LoadReport), LogError> {
    let directory = LogDirectory::open(Arc::new(disk.clone()), names())?;
    let mut loaded = Loaded { db: "0".to_owned(), ..Loaded::default() };
    let report = directory.load(&mut loaded, true)?;
    Ok((loaded.units, report))
}

/// Units as calls record them, and as they are loaded.
fn unit(number: usize) -> (Records, String) {
    let mut records = Records::recording();
    let text = number.to_string();
    let shown = match number % 5 {
        0 => {
            records.push(0, ["SET", "k", &text]);
            format!("0> SET k {text}")
        }
        1 => {
            records.push(3, ["INCR", "n"]);
            records.push(0, ["RPUSH", "l", &text]);
            format!("3> INCR n | 0> RPUSH l {text}")
        }
        2 => {
            records.push(0, ["PUBLISH", "c", &text]);
            records.destination = Destination::Nobody;
            records.push(0, ["DEL", "never"]);
            format!("0> PUBLISH c {text}")
        }
        3 => {
            let reply = "x".repeat(600);
            records.push(2, ["INCR", "m"]);
            records.push(2, ["ONCE", "id", "PXAT", &text, "ff", &reply]);
            format!("2> INCR m | 2> ONCE id PXAT {text} ff {reply}")
        }
        _ => {
            records.push(9, ["SET", "a\r\n#RUSSET:SUM 0 0 0\r\n", &text]);
            format!("9> SET a\r\n#RUSSET:SUM 0 0 0\r\n {text}")
        }
    };
    records.end_unit();
    (records, shown)
}

struct Run {
    journal: Arc<Journal>,
    log: Option<Log>,
    warnings: Arc<Warnings>,
    /// Units that were appended.
    units: Vec<String>,
}

impl Run {
    fn start(disk: &SimulatedDisk, policy: Policy) -> Result<Run, LogError> {
        let journal = Arc::new(Journal::new(Arc::default()));
        let directory = LogDirectory::open(Arc::new(disk.clone()), names())?;
        let warnings = Arc::<Warnings>::default();
        journal.set_mode(if policy == Policy::Always { Mode::Strict } else { Mode::Lazy });
        let log = Log::start(directory, journal.clone(), policy, warnings.clone())?;
        Ok(Run { journal, log: Some(log), warnings, units: Vec::new() })
    }

    fn append(&mut self, number: usize) -> u64 {
        let (mut records, shown) = unit(number);
        self.units.push(shown);
        self.journal.append(records.encoded_mut())
    }

    /// Whether a unit became durable before something failed.
    fn is_durable(&self, offset: u64) -> bool {
        let started = Instant::now();
        while self.journal.durable() < offset {
            if self.journal.barriers().is_up(Barrier::Failed) {
                return false;
            }
            assert!(started.elapsed() < WAIT_MAX, "neither durable nor failed");
            std::thread::yield_now();
        }
        true
    }

    fn stop(&mut self) {
        self.log = None;
    }
}

#[test]
fn what_is_written_is_loaded() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let disk = disk();
        let mut all = Vec::new();
        for round in 0..3 {
            let mut run = Run::start(&disk, policy).unwrap();
            (0..20).for_each(|number| _ = run.append(100 * round + number));
            run.stop();
            all.append(&mut run.units);
            let (units, report) = load(&disk).unwrap();
            assert_eq!(units, all, "{policy:?}");
            assert_eq!(report.warnings, [""; 0]);
        }
        let after = disk.after_power_loss(Loss::All, 1);
        assert_eq!(load(&after).unwrap().0, all, "the end makes all of it durable");
    }
}

#[test]
fn a_second_process_is_kept_out() {
    let disk = disk();
    let run = Run::start(&disk, Policy::Always).unwrap();
    let refused = Run::start(&disk, Policy::Always).err().unwrap();
    assert!(matches!(refused, LogError::InUse { .. }), "{refused}");
    drop(run);
    Run::start(&disk, Policy::Always).unwrap();
}

/// What `no` had left to the system was never synced when the policy became stricter, until the
/// next write: with `always` every reply waited for that.
#[test]
fn a_stricter_policy_covers_what_was_left_to_the_system() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let disk = disk();
        let mut run = Run::start(&disk, Policy::Never).unwrap();
        let offset = run.append(1);
        let started = Instant::now();
        while run.journal.backlog_bytes() > 0 {
            assert!(started.elapsed() < WAIT_MAX, "it is not written");
            std::thread::yield_now();
        }
        assert_eq!(run.journal.durable(), 0);
        run.journal.set_mode(if policy == Policy::Always { Mode::Strict } else { Mode::Lazy });
        run.log.as_ref().unwrap().set_policy(policy);
        assert!(run.is_durable(offset));
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    }
}

/// A sync that fails right after `appendfsync` became stricter leaves what was written with `no` to
/// a disk that may have lost it, and a sync that succeeds later proves nothing. It counted as
/// durable even so, and a power failure showed that it was not.
#[test]
fn what_a_failed_sync_was_to_cover_is_durable_with_the_next_base() {
    for policy in [Policy::Always, Policy::EverySecond] {
        let disk = disk();
        let mut run = Run::start(&disk, Policy::Never).unwrap();
        let left = run.append(0);
        let started = Instant::now();
        while run.journal.backlog_bytes() > 0 {
            assert!(started.elapsed() < WAIT_MAX);
            std::thread::yield_now();
        }
        disk.fail_at(disk.operations(), Fault::Error);
        let log = run.log.as_ref().unwrap();
        run.journal.set_mode(if policy == Policy::Always { Mode::Strict } else { Mode::Lazy });
        log.set_policy(policy);
        while !log.status().needs_base || log.status().is_failed {
            assert!(started.elapsed() < WAIT_MAX, "the failed sync is not noticed");
            std::thread::yield_now();
        }
        let later = run.append(1);
        let log = run.log.as_ref().unwrap();
        while log.status().unsynced_bytes > 0 || run.journal.backlog_bytes() > 0 {
            assert!(started.elapsed() < WAIT_MAX, "what comes later is not written");
            std::thread::yield_now();
        }
        assert!(run.journal.durable() < left, "{policy:?}: nobody knows");
        // What the disk has lost is not loaded; a hole before what is there is refused.
        if let Ok((found, ..)) = load(&disk.after_power_loss(Loss::All, 1)) {
            assert!(!found.contains(&run.units[0]), "the disk has lost it");
        }
        assert!(log.claim_rewrite());
        log.rewrite(format!("{BASE}{}{END}", run.units.join("\x01")).into_bytes(), Form::Rdb);
        while run.journal.durable() < later || log.status().needs_base {
            assert!(started.elapsed() < WAIT_MAX, "the base covers it");
            std::thread::yield_now();
        }
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    }
}

/// An orderly end left it to the system, too.
#[test]
fn the_end_makes_durable_what_was_left_to_the_system() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Never).unwrap();
    run.append(1);
    let started = Instant::now();
    while run.journal.backlog_bytes() > 0 {
        assert!(started.elapsed() < WAIT_MAX, "it is not written");
        std::thread::yield_now();
    }
    run.stop();
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
}

/// Whatever the disk has forgotten when the power goes, at every operation of a run: all that was
/// durable is loaded, and nothing but a beginning of what was appended.
#[test]
fn no_power_loss_loses_what_was_durable() {
    const UNITS: usize = 6;
    let mut seen_torn = 0;
    for at in 0.. {
        let disk = disk();
        disk.fail_at(at, Fault::PowerOff);
        let (mut durable, mut appended) = (0, Vec::new());
        let has_ended = disk.operations() > at;
        if let Ok(mut run) = Run::start(&disk, Policy::Always) {
            for number in 0..UNITS {
                let offset = run.append(number);
                if run.is_durable(offset) {
                    durable = number + 1;
                }
            }
            run.stop();
            appended = std::mem::take(&mut run.units);
        }
        let is_past_the_end = disk.operations() <= at;
        for seed in 0..SEEDS {
            for loss in [Loss::All, Loss::Tail, Loss::Any] {
                let after = disk.after_power_loss(loss, seed);
                let case = format!("operation {at}, {loss:?}, seed {seed}");
                let (units, report) = load(&after).unwrap_or_else(|why| panic!("{case}: {why}"));
                assert!(units.len() >= durable, "{case}: {units:?}, durable {durable}");
                assert!(appended.starts_with(&units), "{case}: {units:?}");
                seen_torn += usize::from(!report.warnings.is_empty());
                // What was cut stays cut, and the log goes on.
                let mut run = Run::start(&after, Policy::Always).unwrap();
                let offset = run.append(70);
                assert!(run.is_durable(offset), "{case}");
                run.stop();
                let (again, _) = load(&after).unwrap_or_else(|why| panic!("{case}: {why}"));
                assert_eq!(again[..again.len() - 1], units, "{case}");
            }
        }
        if is_past_the_end && !has_ended {
            assert!(at > 10 && seen_torn > 0, "{at} operations, {seen_torn} torn ends");
            return;
        }
    }
}

/// An operation fails, or writes half of what it should, and the disk is well again: nothing is
/// lost or there twice, and all of it is durable in the end.
#[test]
fn a_log_recovers_when_the_disk_does() {
    const UNITS: usize = 6;
    for fault in [Fault::Error, Fault::Short] {
        for at in 0.. {
            let disk = disk();
            disk.fail_at(at, fault);
            let Ok(mut run) = Run::start(&disk, Policy::Always) else { continue };
            let mut has_failed = false;
            for number in 0..UNITS {
                let offset = run.append(number);
                has_failed |= !run.is_durable(offset);
            }
            let started = Instant::now();
            while run.journal.durable() < UNITS as u64 {
                assert!(started.elapsed() < WAIT_MAX, "operation {at}: it does not recover");
                std::thread::yield_now();
            }
            let is_past_the_end = disk.operations() <= at;
            let after = disk.after_power_loss(Loss::All, 1);
            let (units, _) = load(&after).unwrap_or_else(|why| panic!("operation {at}: {why}"));
            assert_eq!(units, run.units, "{fault:?} at operation {at}");
            run.stop();
            assert_eq!(load(&disk).unwrap().0, run.units, "{fault:?} at operation {at}");
            let warnings = run.warnings.0.lock().unwrap().len();
            assert_eq!(warnings > 0, has_failed || warnings > 0);
            if is_past_the_end {
                break;
            }
        }
    }
}

/// While the disk fails, writes are refused; held writers and readers learn of it.
#[test]
fn a_disk_that_fails_puts_the_barrier_up() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    let operations = disk.operations();
    (operations..operations + 6).for_each(|at| disk.fail_at(at, Fault::Error));
    let second = run.append(1);
    assert!(!run.is_durable(second));
    assert!(run.log.as_ref().unwrap().status().is_failed);
    assert!(!run.journal.failure().is_empty() && !run.journal.barriers().may_expire());
    disk.mend();
    let started = Instant::now();
    while run.journal.durable() < second || run.journal.barriers().is_up(Barrier::Failed) {
        assert!(started.elapsed() < WAIT_MAX);
        std::thread::yield_now();
    }
    assert!(run.journal.barriers().are_down());
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

fn content(disk: &SimulatedDisk, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let path = Path::new("/data/appendonlydir").join(name);
    disk.read(&path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn replace(disk: &SimulatedDisk, name: &str, bytes: &[u8]) {
    let path = Path::new("/data/appendonlydir").join(name);
    let mut file: Box<dyn DiskFile> = disk.create(&path).unwrap();
    file.write_all(bytes).unwrap();
}

const FIRST: &str = "appendonly.aof.1.incr.aof";

fn small() -> (SimulatedDisk, Vec<String>) {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    for number in [0, 1, 3] {
        let offset = run.append(number);
        assert!(run.is_durable(offset));
    }
    run.stop();
    (disk, run.units)
}

/// Of 40 flipped bits Valkey loads 11 without a word, and Redis 9.
#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let (disk, units) = small();
    let mut refused = 0;
    for name in [FIRST, "appendonly.aof.manifest"] {
        let bytes = content(&disk, name);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            replace(&disk, name, &flipped);
            match load(&disk) {
                Err(_) => refused += 1,
                Ok((loaded, _)) => assert_eq!(loaded, units, "bit {bit} of {name}"),
            }
            replace(&disk, name, &bytes);
        }
    }
    assert!(refused > 1000, "only {refused}");
}

/// Bytes that were put into a file, or are missing in it, were taken for a torn end: all behind
/// them was cut, though lines there said that it had been durable, of another place in the file.
#[test]
fn bytes_that_are_put_in_or_taken_out_are_found() {
    let (disk, units) = small();
    let bytes = content(&disk, FIRST);
    let lines: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\n#RUSSET:SUM ").collect();
    // The last two lines have to be whole, or nothing tells that there was more.
    let told = lines[lines.len() - 3];
    let mut refused = 0;
    for at in 0..bytes.len() {
        let (before, behind) = bytes.split_at(at);
        let duplicate = &behind[..behind.len().min(50)];
        for changed in [
            [before, b"xyz", behind].concat(),
            [before, duplicate, behind].concat(),
            [before, &behind[1..]].concat(),
        ] {
            replace(&disk, FIRST, &changed);
            match load(&disk) {
                Err(_) => refused += 1,
                Ok((loaded, _)) => assert!(loaded == units || at > told, "at {at}: {loaded:?}"),
            }
            for name in disk.list(Path::new("/data/appendonlydir")).unwrap() {
                if name.contains("torn") {
                    disk.remove(&Path::new("/data/appendonlydir").join(name)).unwrap();
                }
            }
        }
    }
    assert!(refused > told, "only {refused}");
}

/// The file may end anywhere: a beginning of the units is loaded, or all is refused.
#[test]
fn a_file_that_ends_anywhere_is_cut() {
    let (disk, units) = small();
    let bytes = content(&disk, FIRST);
    let mut cut = 0;
    for len in 0..bytes.len() {
        replace(&disk, FIRST, &bytes[..len]);
        let (loaded, report) = load(&disk).unwrap_or_else(|why| panic!("{len} bytes: {why}"));
        assert!(units.starts_with(&loaded), "{len} bytes");
        if !report.warnings.is_empty() && content(&disk, FIRST).len() < len {
            cut += 1;
            let kept = format!("{FIRST}.torn-at-{}", content(&disk, FIRST).len());
            assert_eq!(content(&disk, &kept), &bytes[content(&disk, FIRST).len()..len]);
            disk.remove(&Path::new("/data/appendonlydir").join(kept)).unwrap();
        }
    }
    assert!(cut > bytes.len() / 2);
}

#[test]
fn what_another_server_appended_is_loaded_with_a_warning() {
    let (disk, mut units) = small();
    let mut bytes = content(&disk, FIRST);
    bytes.extend_from_slice(
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n",
    );
    replace(&disk, FIRST, &bytes);
    units.push("0> SET x y".to_owned());
    let (loaded, report) = load(&disk).unwrap();
    assert_eq!(loaded, units);
    assert_eq!(report.warnings.len(), 1, "{:?}", report.warnings);
    bytes.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$1\r\nx\r\n");
    replace(&disk, FIRST, &bytes);
    let (loaded, report) = load(&disk).unwrap();
    assert_eq!((loaded, report.warnings.len()), (units, 2), "half a transaction is none");
}

/// A log of servers before Redis 7 is one file: it becomes the base of a directory, whatever
/// happens on the way.
#[test]
fn an_old_log_is_taken_over() {
    let old = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    for at in 0.. {
        let disk = disk();
        let mut file = disk.create(Path::new("/data/appendonly.aof")).unwrap();
        file.write_all(old).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/data")).unwrap();
        let operations = disk.operations();
        disk.fail_at(operations + at, Fault::PowerOff);
        let started = Run::start(&disk, Policy::Always).map(|mut run| run.stop());
        for seed in 0..SEEDS {
            for loss in [Loss::All, Loss::Tail, Loss::Any] {
                let after = disk.after_power_loss(loss, seed);
                let (units, _) = load(&after).unwrap_or_else(|why| panic!("{at}: {why}"));
                assert_eq!(units, ["0> SET k v"], "operation {at}, {loss:?}");
            }
        }
        if started.is_ok() && disk.operations() <= operations + at {
            return;
        }
    }
}

/// The log is rewritten while calls go on, and the power goes, or the disk fails once: what was
/// durable is there, once, and the old files are gone only when they are not needed.
#[test]
fn a_rewrite_loses_nothing_and_doubles_nothing() {
    const UNITS: usize = 4;
    let mut rewrites = 0;
    for fault in [Fault::PowerOff, Fault::Error, Fault::Short] {
        for at in 0.. {
            let disk = disk();
            disk.fail_at(at, fault);
            let Ok(mut run) = Run::start(&disk, Policy::Always) else { continue };
            let mut durable = 0;
            for number in 0..2 * UNITS {
                if number == UNITS && run.log.as_ref().unwrap().claim_rewrite() {
                    let base = format!("{BASE}{}{END}", run.units.join("\x01"));
                    run.log.as_ref().unwrap().rewrite(base.into_bytes(), Form::Rdb);
                }
                let offset = run.append(number);
                if run.is_durable(offset) {
                    durable = number + 1;
                }
            }
            run.stop();
            for seed in 0..SEEDS {
                for loss in [Loss::All, Loss::Tail, Loss::Any] {
                    let after = disk.after_power_loss(loss, seed);
                    let case = format!("{fault:?} at operation {at}, {loss:?}, seed {seed}");
                    let loaded = load(&after).unwrap_or_else(|why| panic!("{case}: {why}"));
                    assert!(loaded.0.len() >= durable, "{case}");
                    assert!(run.units.starts_with(&loaded.0), "{case}: {:?}", loaded.0);
                }
            }
            let listed = disk.list(Path::new("/data/appendonlydir")).unwrap();
            rewrites += usize::from(listed.iter().any(|name| name.ends_with(".base.rdb")));
            if disk.operations() <= at {
                assert!(!listed.contains(&FIRST.to_owned()), "{listed:?}");
                break;
            }
        }
    }
    assert!(rewrites > 30, "only {rewrites}");
}
