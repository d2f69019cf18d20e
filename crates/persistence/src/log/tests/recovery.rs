//! A log that can't be written, and what makes it good again.

use super::*;

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WAIT_MAX, "{what}");
        std::thread::yield_now();
    }
}

/// Replaces the log by a base of all that was appended; whether that worked.
fn rewrite(run: &Run) -> bool {
    let log = run.log.as_ref().unwrap();
    assert!(log.claim_rewrite());
    log.rewrite(format!("{BASE}{}{END}", run.units.join("\x01")).into_bytes(), Form::Rdb);
    wait_until("the rewrite does not end", || !log.is_rewriting());
    !log.status().is_rewrite_bad
}

fn wipe(disk: &SimulatedDisk) {
    let dir = Path::new("/data/appendonlydir");
    disk.list(dir).unwrap().iter().for_each(|name| disk.remove(&dir.join(name)).unwrap());
}

/// Someone removed the files of the log. When it next failed it went on in a new file, said that it
/// could be written again, and left a manifest of files that were not there: no server could have
/// started with it.
#[test]
fn a_log_whose_files_are_gone_needs_a_base_before_it_goes_on() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    wipe(&disk);
    disk.fail_at(disk.operations(), Fault::Error);
    let second = run.append(1);
    assert!(!run.is_durable(second));
    let status = || run.log.as_ref().unwrap().status();
    // The first failure is that of the disk; why it can't go on is known at the next attempt.
    let why = || run.journal.failure();
    wait_until("it does not miss its files", || why().contains("removed or replaced"));
    assert!(status().needs_base && status().is_failed && run.journal.durable() < second);
    assert!(rewrite(&run));
    assert!(!status().is_failed && !status().needs_base && run.journal.durable() == second);
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    let other = LogDirectory::open(Arc::new(disk.clone()), names()).err();
    assert!(matches!(other, Some(LogError::InUse { .. })), "it is locked again: {other:?}");
    let third = run.append(2);
    assert!(run.is_durable(third));
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// A rewrite begins with a new increment, and the manifest named it beside files that were not
/// there: had the base failed then, the log would have gone on so.
#[test]
fn a_rewrite_of_a_log_whose_files_are_gone_commits_nothing_before_its_base() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    wipe(&disk);
    // Making the directory, locking it and creating the base are the next operations.
    (1..=4).for_each(|at| disk.fail_at(disk.operations() + at, Fault::Error));
    assert!(!rewrite(&run));
    assert!(run.log.as_ref().unwrap().status().is_failed);
    let names = disk.list(Path::new("/data/appendonlydir")).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".manifest")), "{names:?}");
    disk.mend();
    assert!(rewrite(&run));
    let second = run.append(1);
    assert!(run.is_durable(second));
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
}

/// Writes to a file that was removed succeed, and were acknowledged until a restart missed them.
#[test]
fn a_log_whose_files_are_removed_fails_though_it_can_be_written() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    wipe(&disk);
    wait_until("it is not noticed", || run.log.as_ref().unwrap().status().is_failed);
    assert!(rewrite(&run));
    let second = run.append(1);
    assert!(run.is_durable(second));
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
}

/// The manifest was not looked at: without it no server starts, and with another's it loads other
/// data.
#[test]
fn a_manifest_that_was_removed_or_replaced_is_missed() {
    let path = Path::new("/data/appendonlydir/appendonly.aof.manifest");
    for text in [None, Some(&b"file appendonly.aof.1.incr.aof seq 1 type i\n"[..])] {
        let disk = disk();
        let mut run = Run::start(&disk, Policy::Always).unwrap();
        let first = run.append(0);
        assert!(run.is_durable(first));
        let log = || run.log.as_ref().unwrap();
        log().check_files();
        assert!(!log().status().needs_base && !log().status().is_failed);
        match text {
            None => disk.remove(path).unwrap(),
            Some(text) => disk.create(path).unwrap().write_all(text).unwrap(),
        }
        log().check_files();
        assert!(log().status().needs_base && log().status().is_failed);
        let why = run.journal.failure();
        assert!(why.contains("appendonly.aof.manifest was removed or replaced"), "{why}");
        assert!(rewrite(&run));
        run.stop();
        assert_eq!(load(&disk).unwrap().0, run.units);
    }
}

/// A write of the manifest that fails behind its renaming leaves one that nobody else has made.
#[test]
fn a_manifest_that_could_not_be_made_durable_is_nobody_elses() {
    // A file that can't be written is followed by another: one of these operations makes the new
    // name of the manifest durable.
    for at in 6..14 {
        let disk = disk();
        let mut run = Run::start(&disk, Policy::Always).unwrap();
        let first = run.append(0);
        assert!(run.is_durable(first));
        let now = disk.operations();
        [now, now + at].iter().for_each(|at| disk.fail_at(*at, Fault::Error));
        let second = run.append(2);
        wait_until("it does not recover", || run.journal.durable() == second);
        assert!(!run.log.as_ref().unwrap().status().needs_base, "{at}");
        disk.mend();
        run.stop();
        assert_eq!(load(&disk).unwrap().0, run.units, "{at}");
    }
}

/// A log that had filled the disk could not be rewritten, though a base takes little and the files
/// that it replaces make room: writes were refused until someone helped.
#[test]
fn a_log_that_has_filled_the_disk_goes_on_after_a_rewrite() {
    for policy in [Policy::Always, Policy::EverySecond, Policy::Never] {
        let disk = disk();
        let mut run = Run::start(&disk, policy).unwrap();
        run.append(3);
        wait_until("it is not written", || run.journal.backlog_bytes() == 0);
        // Room for a base of the last unit, but not for what is appended.
        disk.set_bytes_max(Some(disk.bytes() + 500));
        [3, 3, 0].iter().for_each(|number| _ = run.append(*number));
        let status = || run.log.as_ref().unwrap().status();
        wait_until("it does not fail", || status().is_failed);
        run.units.drain(..run.units.len() - 1);
        assert!(rewrite(&run), "{policy:?}");
        assert!(!status().is_failed, "{policy:?}");
        assert_eq!(run.journal.durable(), run.journal.offset(), "{policy:?}");
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
        run.append(0);
        run.stop();
        assert_eq!(load(&disk).unwrap().0, run.units, "{policy:?}");
    }
}

/// With `everysec` a full disk had the file cut where the last sync was: what calls had been told
/// to be written since was in memory alone for as long as the disk stayed full.
#[test]
fn what_was_written_before_the_disk_was_full_stays_and_becomes_durable() {
    for policy in [Policy::EverySecond, Policy::Never] {
        let disk = disk();
        let mut run = Run::start(&disk, policy).unwrap();
        let last = run.append(3);
        wait_until("it is not written", || match policy {
            Policy::Never => run.journal.backlog_bytes() == 0,
            _ => run.log.as_ref().unwrap().status().unsynced_bytes > 0,
        });
        let kept = run.units.clone();
        disk.set_bytes_max(Some(disk.bytes() + 10));
        let refused = run.append(3);
        wait_until("it does not fail", || run.log.as_ref().unwrap().status().is_failed);
        wait_until("it is not made durable", || run.journal.durable() >= last);
        assert!(run.journal.durable() < refused, "{policy:?}");
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, kept, "{policy:?}");
        disk.set_bytes_max(None);
        wait_until("it does not recover", || run.journal.durable() == refused);
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    }
}

/// What is appended while the base is written stands behind it, and a base that fails costs
/// nothing: the blocks are kept, and written once there is room.
#[test]
fn a_base_that_fails_on_a_full_disk_loses_nothing() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    disk.set_bytes_max(Some(disk.bytes() + 10));
    let second = run.append(1);
    assert!(!run.is_durable(second));
    assert!(!rewrite(&run), "there is no room for a base");
    assert!(run.log.as_ref().unwrap().claim_rewrite());
    let log = run.log.as_ref().unwrap();
    log.expect_cut(1);
    log.cut_is_made();
    let file = log.await_base_file().expect("it may be tried on a log that fails");
    let held = run.units.join("\x01");
    let (mut records, shown) = unit(4);
    records.encoded_mut().version = 1;
    let third = run.journal.append(records.encoded_mut());
    disk.set_bytes_max(None);
    let written = file.disk.create(&file.path).and_then(|mut opened| {
        opened.write_all(format!("{BASE}{held}{END}").as_bytes())?;
        opened.sync_data()
    });
    file.written(written);
    run.units.push(shown);
    wait_until("it does not recover", || run.journal.durable() == third);
    assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
    run.append(1);
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// No server started on a full disk, though all that the log held could have been read.
#[test]
fn a_log_goes_on_though_there_is_no_room_for_an_increment() {
    for room in [0, 30] {
        let disk = disk();
        let mut run = Run::start(&disk, Policy::Always).unwrap();
        let first = run.append(0);
        assert!(run.is_durable(first));
        run.stop();
        let units = run.units;
        disk.set_bytes_max(Some(disk.bytes() + room));
        let mut run = Run::start(&disk, Policy::Always).unwrap();
        run.units = units.clone();
        let status = || run.log.as_ref().unwrap().status();
        assert!(status().is_failed && !status().needs_base);
        assert!(run.journal.barriers().is_up(Barrier::Failed));
        assert!(run.journal.failure().contains("manifest"), "{}", run.journal.failure());
        // An end without room costs nothing.
        run.stop();
        assert_eq!(load(&disk).unwrap().0, units);
        let mut run = Run::start(&disk, Policy::Always).unwrap();
        run.units = units.clone();
        disk.set_bytes_max(None);
        wait_until("it does not recover", || !run.log.as_ref().unwrap().status().is_failed);
        let second = run.append(1);
        assert!(run.is_durable(second));
        assert_eq!(load(&disk.after_power_loss(Loss::All, 1)).unwrap().0, run.units);
        // So does a base.
        run.stop();
        disk.set_bytes_max(Some(disk.bytes() + room));
        let mut other = Run::start(&disk, Policy::Always).unwrap();
        other.units = run.units;
        disk.set_bytes_max(Some(disk.bytes() + 1000));
        assert!(rewrite(&other));
        let third = other.append(2);
        assert!(other.is_durable(third));
        other.stop();
        assert_eq!(load(&disk).unwrap().0, other.units);
    }
    // One that is new has nothing to be read.
    let disk = disk();
    disk.set_bytes_max(Some(10));
    assert!(Run::start(&disk, Policy::Always).is_err());
}

/// A torn end that could not be kept left the part of it that was written.
#[test]
fn a_torn_end_that_can_not_be_kept_is_not_cut() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    run.stop();
    let path = Path::new("/data/appendonlydir/appendonly.aof.1.incr.aof");
    disk.append(path).unwrap().write_all(b"*3\r\n$3\r\nSET").unwrap();
    let names = || disk.list(Path::new("/data/appendonlydir")).unwrap();
    let (before, len) = (names(), disk.len(path).unwrap());
    disk.set_bytes_max(Some(disk.bytes() + 5));
    assert!(load(&disk).unwrap_err().to_string().contains("cut its end"));
    assert_eq!((names(), disk.len(path).unwrap()), (before, len));
    disk.set_bytes_max(None);
    assert_eq!(load(&disk).unwrap().0, run.units);
}

/// A value that is a copy of a log has its lines. The server was killed while it was written, and
/// the next start refused the log: what those lines say was taken for what the file's own do.
#[test]
fn a_copy_of_a_log_that_is_cut_short_proves_nothing() {
    let copy = content(&small().0, FIRST);
    let lines: Vec<usize> = memchr::memmem::find_iter(&copy, b"\n#RUSSET:SUM ").collect();
    let head = format!("*3\r\n$3\r\nSET\r\n$6\r\nbackup\r\n${}\r\n", copy.len());
    for end in [lines[2], copy.len()] {
        let (disk, units) = small();
        // No line of its own says that anything was durable.
        let own = &copy[..=lines[0]];
        replace(&disk, FIRST, &[own, head.as_bytes(), &copy[..end]].concat());
        let (loaded, report) = load(&disk).unwrap();
        assert!(units.starts_with(&loaded) && loaded.len() == 1, "{loaded:?}");
        assert!(!report.warnings.is_empty());
    }
}
