//! Large calls, which are written before they run.

use super::*;
use russet_base::{OwnedArgs, SharedBytes};
use std::sync::mpsc::channel;

const LARGE_DB: usize = 5;
const VALUE_BYTES: usize = 3000;

/// A call with a long argument.
fn large_call(number: usize) -> OwnedArgs {
    let mut args: OwnedArgs = ["SET", &format!("large{number}")].into_iter().collect();
    args.push_shared(SharedBytes::new(vec![b'a' + number as u8; VALUE_BYTES]));
    args
}

fn shown(args: &OwnedArgs) -> String {
    let text: Vec<_> = args.as_args().iter().map(String::from_utf8_lossy).collect();
    format!("{LARGE_DB}> {}", text.join(" "))
}

impl Run {
    /// Has a call written ahead; whether it was tried.
    fn write_ahead(&self, args: &OwnedArgs) -> bool {
        let (sender, over) = channel();
        let done = Box::new(move |_why_not| sender.send(()).unwrap());
        let log = self.log.as_ref().unwrap();
        let is_begun = log.write_ahead((LARGE_DB, args.as_args()), done);
        if is_begun {
            over.recv_timeout(WAIT_MAX).expect("it is written, or can't be");
        }
        is_begun
    }

    fn append_call(&mut self, args: &OwnedArgs) -> u64 {
        let mut records = Records::recording();
        records.push_args(LARGE_DB, args.as_args());
        records.end_unit();
        self.units.push(shown(args));
        self.journal.append(records.encoded_mut())
    }

    fn append_large(&mut self, number: usize) -> u64 {
        let args = large_call(number);
        self.write_ahead(&args);
        self.append_call(&args)
    }
}

fn log_files(disk: &SimulatedDisk) -> Vec<String> {
    let names = disk.list(Path::new("/data/appendonlydir")).unwrap();
    names.into_iter().filter(|name| name.contains(".incr.")).collect()
}

fn holds_large(disk: &SimulatedDisk, name: &str) -> bool {
    let bytes = content(disk, name);
    bytes.windows(100).any(|part| part.iter().all(|byte| *byte == b'a'))
}

#[test]
fn a_large_call_is_a_file_of_its_own_in_its_place() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    run.append(0);
    run.append_large(0);
    let last = run.append(1);
    assert!(run.is_durable(last));
    let files = log_files(&disk);
    let large: Vec<bool> = files.iter().map(|name| holds_large(&disk, name)).collect();
    assert_eq!(large, [false, true, false], "{files:?}");
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    run.stop();
    let (units, report) = load(&disk).unwrap();
    assert_eq!((units, report.warnings), (run.units, Vec::new()));
}

/// The power goes, or the disk fails once, at every operation: what was durable is there, once and
/// in order.
#[test]
fn large_calls_are_durable_in_order_or_not_there() {
    const UNITS: usize = 6;
    for fault in [Fault::PowerOff, Fault::Error, Fault::Short] {
        for at in 0.. {
            let disk = disk();
            disk.fail_at(at, fault);
            let Ok(mut run) = Run::start(&disk, Policy::Always) else { continue };
            let mut durable = 0;
            for number in 0..UNITS {
                let offset = match number % 3 {
                    0 => run.append(number),
                    _ => run.append_large(number),
                };
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
                    assert!(run.units.starts_with(&loaded.0), "{case}");
                }
            }
            if disk.operations() <= at {
                assert_eq!(durable, UNITS);
                break;
            }
        }
    }
}

/// What is refused, or runs otherwise than it was foreseen, leaves no file, and holds nobody back.
#[test]
fn a_file_that_is_not_used_is_removed() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let refused = large_call(0);
    assert!(run.write_ahead(&refused));
    assert_eq!(log_files(&disk).len(), 2);
    drop(refused);
    let other = large_call(1);
    assert!(run.write_ahead(&other));
    // Not all that was recorded is what was written.
    let mut records = Records::recording();
    records.push(LARGE_DB, ["DEL", "large1"]);
    records.push_args(LARGE_DB, other.as_args());
    records.end_unit();
    run.units.push(format!("{LARGE_DB}> DEL large1 | {}", shown(&other)));
    let offset = run.journal.append(records.encoded_mut());
    assert!(run.is_durable(offset));
    let started = Instant::now();
    while log_files(&disk).len() > 1 {
        assert!(started.elapsed() < WAIT_MAX, "{:?}", log_files(&disk));
        std::thread::yield_now();
    }
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// A call of 256 MB filled the backlog, and all writers waited until it was durable.
#[test]
fn what_is_written_ahead_fills_no_backlog() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    run.journal.set_backlog_bytes_max(VALUE_BYTES as u64);
    let args = large_call(0);
    assert!(run.write_ahead(&args));
    let operations = disk.operations();
    (operations..operations + 3).for_each(|at| disk.fail_at(at, Fault::Error));
    let offset = run.append_call(&args);
    assert!(!run.is_durable(offset));
    assert!(!run.journal.barriers().is_up(Barrier::Backlog));
    disk.mend();
    let started = Instant::now();
    while run.journal.durable() < offset {
        assert!(started.elapsed() < WAIT_MAX);
        std::thread::yield_now();
    }
    let second = run.append_call(&large_call(1));
    assert!(run.is_durable(second));
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// With another policy nobody waits for it, and behind a cut it belongs to another file.
#[test]
fn what_was_written_ahead_in_vain_is_written_in_its_place() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let args = large_call(0);
    assert!(run.write_ahead(&args));
    run.journal.set_mode(Mode::Lazy);
    run.log.as_ref().unwrap().set_policy(Policy::EverySecond);
    run.append_call(&args);
    assert!(!run.write_ahead(&large_call(1)));
    run.stop();
    assert_eq!(log_files(&disk).len(), 1);
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// The end of a log does not wait for what has not run.
#[test]
fn what_is_written_ahead_ends_with_the_log() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let args = large_call(0);
    assert!(run.write_ahead(&args));
    run.stop();
    assert_eq!(log_files(&disk).len(), 1);
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// A call that the disk had no room for ran all the same, and stopped the log for everybody when it
/// was written in its place.
#[test]
fn what_could_not_be_written_ahead_says_why() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    disk.set_bytes_max(Some(disk.bytes() + VALUE_BYTES / 2));
    let (sender, over) = channel();
    let done = Box::new(move |why_not| sender.send(why_not).unwrap());
    let args = large_call(0);
    assert!(run.log.as_ref().unwrap().write_ahead((LARGE_DB, args.as_args()), done));
    let why_not: Option<String> = over.recv_timeout(WAIT_MAX).unwrap();
    assert!(why_not.is_some_and(|why| !why.is_empty()));
    let offset = run.append(0);
    assert!(run.is_durable(offset), "the others go on");
    run.stop();
    assert_eq!(log_files(&disk).len(), 1);
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// In a program that survives a panic its client waited for ever, and so did all that came later.
#[test]
fn a_panic_while_a_call_is_written_ahead_holds_nobody_up() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    disk.fail_at(disk.operations(), Fault::Panic);
    assert!(run.write_ahead(&large_call(0)));
    let last = run.append_large(1);
    assert!(run.is_durable(last));
    run.stop();
    assert_eq!(log_files(&disk).len(), 3, "the second has a file of its own");
    assert_eq!(load(&disk).unwrap().0, run.units);
}
