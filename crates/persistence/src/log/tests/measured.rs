//! What is measured of the log, for LATENCY.

use super::*;

fn was_measured(run: &Run, event: &str) -> bool {
    run.warnings.1.lock().unwrap().contains(&event)
}

#[test]
fn writes_and_syncs_are_measured_by_what_goes_on_beside_them() {
    let disk = disk();
    let mut run = Run::start(&disk, Policy::Always).unwrap();
    let first = run.append(0);
    assert!(run.is_durable(first));
    for event in ["aof-write", "aof-write-alone", "aof-fsync-always"] {
        assert!(was_measured(&run, event), "{event}");
    }
    assert!(!was_measured(&run, "aof-write-active-child"));
    let log = run.log.as_ref().unwrap();
    assert!(log.claim_rewrite());
    log.expect_cut(1);
    log.cut_is_made();
    let base = log.await_base_file().unwrap();
    let second = run.append(0);
    assert!(run.is_durable(second));
    assert!(was_measured(&run, "aof-write-active-child"));
    drop(base);
    run.stop();
    assert_eq!(load(&disk).unwrap().0, run.units);
}
