//! A base that is taken while calls go on: what calls before the cut append, however late, stands
//! in the file that closes, and what newer ones append behind it.

use super::*;
use std::ops::Range;

/// Appends as a call of this version; the journal's offset behind it.
fn append(run: &mut Run, number: usize, version: u64) -> u64 {
    let (mut records, shown) = unit(number);
    run.units.push(shown);
    let frame = records.encoded_mut();
    frame.version = version;
    run.journal.append(frame)
}

/// Units by number, and the version of the call that appended each.
const UNITS: [u64; 9] = [0, 0, 1, 0, 1, 0, 1, 1, 1];
/// Those that were appended before, and while the cut is made.
const BEFORE: usize = 2;
const JOINED: usize = 6;

/// Rewrites the log as a snapshot does; the journal's offsets behind the units.
fn rewrite(run: &mut Run, gives_up: bool) -> Vec<u64> {
    let mut offsets = Vec::new();
    let mut append_units = |run: &mut Run, numbers: Range<usize>| {
        offsets.extend(numbers.map(|number| append(run, number, UNITS[number])));
    };
    append_units(run, 0..BEFORE);
    assert!(run.log.as_ref().unwrap().claim_rewrite());
    run.log.as_ref().unwrap().expect_cut(1);
    append_units(run, BEFORE..JOINED);
    let of_cut = |(number, _): &(usize, &String)| UNITS[*number] == 0;
    let held: Vec<String> =
        run.units.iter().enumerate().filter(of_cut).map(|(_, unit)| unit.clone()).collect();
    let log = run.log.as_ref().unwrap();
    log.cut_is_made();
    match log.await_base_file().filter(|_| !gives_up) {
        Some(file) => {
            let written = file.disk.create(&file.path).and_then(|mut opened| {
                opened.write_all(format!("{BASE}{}{END}", held.join("\x01")).as_bytes())?;
                opened.sync_data()
            });
            file.written(written);
        }
        None if gives_up => {}
        None => log.give_up_rewrite(),
    }
    append_units(run, JOINED..UNITS.len());
    offsets
}

/// What was loaded holds, of each version, the first units, all that were durable among them.
fn check(run: &Run, loaded: &[String], durable: &[bool], case: &str) {
    let mut count = 0;
    for version in [0, 1] {
        let numbers: Vec<usize> =
            (0..UNITS.len()).filter(|number| UNITS[*number] == version).collect();
        let is_own = |unit: &&String| {
            numbers.iter().any(|number| run.units.get(*number).is_some_and(|own| own == *unit))
        };
        let found: Vec<&String> = loaded.iter().filter(is_own).collect();
        let expected: Vec<&String> =
            numbers.iter().filter_map(|number| run.units.get(*number)).collect();
        assert!(expected.starts_with(&found), "{case}: {loaded:?}");
        let needed = numbers.iter().filter(|number| durable.get(**number) == Some(&true)).count();
        assert!(found.len() >= needed, "{case}: {loaded:?}");
        count += found.len();
    }
    assert_eq!(count, loaded.len(), "{case}: each once: {loaded:?}");
}

#[test]
fn older_calls_are_before_the_cut_and_newer_ones_behind_it() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let offsets = rewrite(&mut run, false);
    assert!(run.is_durable(*offsets.last().unwrap()));
    let log = run.log.as_ref().unwrap();
    let started = Instant::now();
    while log.is_rewriting() {
        assert!(started.elapsed() < WAIT_MAX);
        std::thread::yield_now();
    }
    assert_eq!((log.status().rewrites, log.status().is_rewrite_bad), (1, false));
    run.stop();
    let loaded = load(&disk).unwrap().0;
    let order = [0, 1, 3, 5, 2, 4, 6, 7, 8].map(|number: usize| run.units[number].clone());
    assert_eq!(loaded, order);
    let listed = disk.list(Path::new("/data/appendonlydir")).unwrap();
    assert!(!listed.contains(&FIRST.to_owned()), "{listed:?}");
}

/// What newer calls append is not durable before older ones can append no more.
#[test]
fn newer_calls_wait_until_the_cut_is_made() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    assert!(run.log.as_ref().unwrap().claim_rewrite());
    run.log.as_ref().unwrap().expect_cut(1);
    let newer = append(&mut run, 0, 1);
    let older = append(&mut run, 1, 0);
    std::thread::sleep(Duration::from_millis(50));
    assert!(run.journal.durable() < newer);
    run.log.as_ref().unwrap().give_up_rewrite();
    assert!(run.is_durable(older) && run.is_durable(newer), "nothing is set aside any more");
    assert!(!run.log.as_ref().unwrap().is_rewriting());
    run.stop();
    let mut loaded = load(&disk).unwrap().0;
    loaded.sort();
    let mut expected = run.units.clone();
    expected.sort();
    assert_eq!(loaded, expected);
}

/// Whatever fails, and whenever the power goes, nothing that was durable is lost or doubled.
#[test]
fn a_rewrite_beside_calls_loses_nothing_and_doubles_nothing() {
    let mut bases = 0;
    for (fault, gives_up) in [
        (Fault::PowerOff, false),
        (Fault::Error, false),
        (Fault::Short, false),
        (Fault::PowerOff, true),
    ] {
        for at in 0.. {
            let disk = disk();
            disk.fail_at(at, fault);
            let Ok(mut run) = Run::start(&disk, Policy::Always) else { continue };
            let offsets = rewrite(&mut run, gives_up);
            run.is_durable(*offsets.last().unwrap());
            let durable = run.journal.durable();
            let durable: Vec<bool> = offsets.iter().map(|offset| *offset <= durable).collect();
            run.stop();
            for seed in 0..SEEDS {
                for loss in [Loss::All, Loss::Tail, Loss::Any] {
                    let after = disk.after_power_loss(loss, seed);
                    let case = format!("{fault:?} at operation {at}, {loss:?}, seed {seed}");
                    let loaded = load(&after).unwrap_or_else(|why| panic!("{case}: {why}"));
                    check(&run, &loaded.0, &durable, &case);
                }
            }
            let listed = disk.list(Path::new("/data/appendonlydir")).unwrap();
            bases += usize::from(listed.iter().any(|name| name.ends_with(".base.rdb")));
            if disk.operations() <= at {
                break;
            }
        }
    }
    assert!(bases > 10, "only {bases}");
}
