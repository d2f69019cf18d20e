//! What attempts leave behind that failed or did not end: it takes no room for long, and is never
//! taken for a part of the log.

use super::*;

fn listed(disk: &SimulatedDisk) -> Vec<String> {
    disk.list(Path::new("/data/appendonlydir")).unwrap()
}

/// Files beside those that the manifest names, the manifest and the lock.
fn left(disk: &SimulatedDisk) -> Vec<String> {
    let manifest = String::from_utf8(content(disk, "appendonly.aof.manifest")).unwrap();
    let is_left = |name: &String| {
        !manifest.contains(&format!("file {name} "))
            && name != "appendonly.aof.manifest"
            && name != "appendonly.aof.lock"
    };
    listed(disk).into_iter().filter(is_left).collect()
}

fn begin_with_base(disk: &SimulatedDisk) -> Result<(), LogError> {
    let mut directory = LogDirectory::open(Arc::new(disk.clone()), names())?;
    directory.begin_with_base(format!("{BASE}0> SET k v{END}").as_bytes(), Form::Rdb)
}

/// The power went, or the disk was full, while the first base was written: the directory refused
/// to be opened ever after, for there was a file and no manifest.
#[test]
fn a_first_base_that_is_not_complete_keeps_nobody_out() {
    for fault in [Fault::PowerOff, Fault::Error, Fault::Short] {
        for at in 0.. {
            let disk = disk();
            disk.fail_at(at, fault);
            let begun = begin_with_base(&disk);
            let is_past_the_end = disk.operations() <= at;
            let whole = vec!["0> SET k v".to_owned()];
            for seed in 0..SEEDS {
                for loss in [Loss::All, Loss::Tail, Loss::Any] {
                    let case = format!("{fault:?} at operation {at}, {loss:?}, seed {seed}");
                    let after = disk.after_power_loss(loss, seed);
                    let units = load(&after).unwrap_or_else(|why| panic!("{case}: {why}")).0;
                    assert!(units == whole || (begun.is_err() && units.is_empty()), "{case}");
                    Run::start(&after, Policy::Always).unwrap().stop();
                    assert_eq!(left(&after), [""; 0], "{case}");
                    assert_eq!(load(&after).unwrap().0, units, "{case}");
                }
            }
            disk.mend();
            begin_with_base(&disk).unwrap_or_else(|why| panic!("{fault:?} at {at}: {why}"));
            assert_eq!(load(&disk).unwrap().0, whole, "{fault:?} at {at}");
            if is_past_the_end {
                break;
            }
        }
    }
}

/// Each rewrite that failed left its part of a base and one more empty increment.
#[test]
fn a_rewrite_that_fails_leaves_no_base() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let offset = run.append(0);
    assert!(run.is_durable(offset));
    let rewrite = |run: &Run, disk: &SimulatedDisk, fails_at: Option<u64>| {
        let log = run.log.as_ref().unwrap();
        let operations = disk.operations();
        fails_at.iter().for_each(|at| disk.fail_at(operations + at, Fault::Error));
        assert!(log.claim_rewrite());
        log.rewrite(format!("{BASE}{}{END}", run.units.join("\x01")).into_bytes(), Form::Rdb);
        let started = Instant::now();
        while log.is_rewriting() {
            assert!(started.elapsed() < WAIT_MAX, "the rewrite does not end");
            std::thread::yield_now();
        }
        log.status().is_rewrite_bad
    };
    assert!(!rewrite(&run, &disk, None));
    let files = listed(&disk);
    for at in [0, 1, 2] {
        assert!(rewrite(&run, &disk, Some(at)), "creation, write or sync of the base, {at}");
        disk.mend();
        assert_eq!(listed(&disk), files, "operation {at}");
    }
    assert!(!rewrite(&run, &disk, None));
    let offset = run.append(1);
    assert!(run.is_durable(offset));
    run.stop();
    assert_eq!(left(&disk), [""; 0]);
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// While the disk was full each try to go on in a new file left that file behind.
#[test]
fn a_log_that_can_not_go_on_leaves_no_increments() {
    const FAILURES: u64 = 5;
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    let operations = disk.operations();
    // Each fifth fails, so that files are made which then can't be filled.
    (0..FAILURES).for_each(|at| disk.fail_at(operations + 5 * at, Fault::Error));
    let second = run.append(1);
    assert!(!run.is_durable(second));
    let started = Instant::now();
    while run.journal.durable() < second {
        assert!(started.elapsed() < WAIT_MAX);
        std::thread::sleep(Duration::from_millis(5));
    }
    disk.mend();
    assert_eq!(left(&disk).iter().filter(|name| name.ends_with(".aof")).count(), 0);
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// What a process left that was killed is removed when the log is begun again; torn ends stay.
#[test]
fn files_that_no_manifest_names_are_removed() {
    let (disk, units) = small();
    replace(&disk, "appendonly.aof.7.incr.aof", b"*1\r\n");
    replace(&disk, "appendonly.aof.8.base.rdb", b"REDIS");
    replace(&disk, "temp-appendonly.aof.9.base.rdb", b"REDIS");
    let kept = ["appendonly.aof.1.incr.aof.torn-at-3", "notes.txt"];
    kept.iter().for_each(|name| replace(&disk, name, b"x"));
    assert_eq!(load(&disk).unwrap().0, units);
    assert_eq!(left(&disk).len(), 5, "who only loads removes nothing");
    Run::start(&disk, Policy::Always).unwrap().stop();
    assert_eq!(left(&disk), kept);
    assert_eq!(load(&disk).unwrap().0, units);
}

/// Begins a log with a base that is written while something is appended behind its cut; whether
/// that worked.
fn begin_meanwhile(disk: &SimulatedDisk, base: &str) -> Result<bool, LogError> {
    let directory = LogDirectory::open(Arc::new(disk.clone()), names())?;
    let journal = Arc::new(Journal::new(Arc::default()));
    journal.set_mode(Mode::Lazy);
    let warnings = Arc::<Warnings>::default();
    let log = Log::start_for_base(directory, journal.clone(), Policy::EverySecond, warnings)?;
    assert!(log.claim_rewrite());
    log.expect_cut(1);
    log.cut_is_made();
    let file = log.await_base_file().unwrap();
    let mut records = unit(4).0;
    records.encoded_mut().version = 1;
    journal.append(records.encoded_mut());
    assert!(!log.status().is_failed && !journal.barriers().is_up(Barrier::Late));
    let written = file.disk.create(&file.path).and_then(|mut opened| {
        opened.write_all(format!("{BASE}{base}{END}").as_bytes())?;
        opened.sync_data()
    });
    file.written(written);
    log.await_rewrite();
    Ok(!log.status().is_rewrite_bad)
}

/// A log that was switched on held all keys until its base was written. Whenever the power goes, or
/// the disk fails, there is the log that was there before, or the new one with all of its base.
#[test]
fn a_log_can_begin_with_a_base_that_is_written_meanwhile() {
    let behind = unit(4).1;
    for is_new in [true, false] {
        for fault in [Fault::PowerOff, Fault::Error, Fault::Short] {
            for at in 0.. {
                let disk = disk();
                let mut before = Vec::new();
                if !is_new {
                    begin_with_base(&disk).unwrap();
                    before.push("0> SET k v".to_owned());
                }
                let operation = disk.operations() + at;
                disk.fail_at(operation, fault);
                let is_begun = begin_meanwhile(&disk, "0> SET k w") == Ok(true);
                let is_past_the_end = disk.operations() <= operation;
                let case = format!("{fault:?} at {at}, new: {is_new}");
                let after = vec!["0> SET k w".to_owned(), behind.clone()];
                for loss in [Loss::All, Loss::Tail, Loss::Any] {
                    let disk = disk.after_power_loss(loss, 1);
                    let units = load(&disk).unwrap_or_else(|why| panic!("{case}: {why}")).0;
                    let is_old = !is_begun && units == before;
                    assert!(is_old || units == after[..1] || units == after, "{case}: {units:?}");
                    assert!(!is_past_the_end || units == after, "{case}: {units:?}");
                    Run::start(&disk, Policy::Always).unwrap().stop();
                    let is_kept = |name: &String| name.contains(".torn-at-");
                    assert!(left(&disk).iter().all(is_kept), "{case}: {:?}", left(&disk));
                }
                if is_past_the_end {
                    break;
                }
            }
        }
    }
}

/// Whether files are there was asked by opening them for writing: a log that the server could only
/// read was removed if its manifest was missing, and an old log of one file was not loaded.
#[test]
fn what_may_only_be_read_is_not_taken_for_absent() {
    let disk = disk();
    begin_with_base(&disk).unwrap();
    let dir = Path::new("/data/appendonlydir");
    let base = only_base(&disk);
    disk.remove(&dir.join("appendonly.aof.manifest")).unwrap();
    disk.set_read_only(&dir.join(&base));
    let opened = LogDirectory::open(Arc::new(disk.clone()), names());
    assert!(matches!(opened, Err(LogError::Unexplained { .. })));
    assert!(listed(&disk).contains(&base));

    let old = Path::new("/data/appendonly.aof");
    let disk = super::disk();
    let file = disk.create(old).unwrap();
    file.append(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n").unwrap();
    disk.set_read_only(old);
    let directory = LogDirectory::open(Arc::new(disk.clone()), names()).unwrap();
    assert!(!directory.is_empty());
}

/// The one base that there is.
fn only_base(disk: &SimulatedDisk) -> String {
    let bases = listed(disk).into_iter().filter(|name| name.contains(".base."));
    bases.collect::<Vec<_>>().pop().unwrap()
}
