//! The fuzz drivers with random bytes from fixed seeds: no fuzzer, no nightly, the same every time.
//! `RUSSET_FUZZ_ROUNDS` asks for more rounds than an ordinary test run wants.

use russet_base::Random;
use russet_fuzzing::{commands, log, rdb, request, scripts};

fn rounds(usual: u64) -> u64 {
    let asked = std::env::var("RUSSET_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(usual)
}

fn bytes(random: &mut Random, length_max: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.index(length_max) + 1];
    random.fill(&mut bytes);
    bytes
}

/// Runs a driver on each seed's bytes, and says which seed it was that failed.
fn each_seed(count: u64, run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in 0..count {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn requests_are_read_the_same_however_they_are_cut() {
    each_seed(rounds(3000), |seed| {
        let mut random = Random::from_seed(seed);
        let choices = bytes(&mut random, 80);
        request::check(&request::likely_stream(&choices));
    });
}

#[test]
fn arbitrary_bytes_are_read_the_same_however_they_are_cut() {
    each_seed(rounds(3000), |seed| {
        request::check(&bytes(&mut Random::from_seed(seed), 300));
    });
}

#[test]
fn commands_agree_about_the_data() {
    each_seed(rounds(60), |seed| {
        commands::check(&bytes(&mut Random::from_seed(seed), 12_000));
    });
}

#[test]
fn scripts_stay_in_their_sandbox() {
    each_seed(rounds(150), |seed| {
        scripts::check(&bytes(&mut Random::from_seed(seed), 4_000));
    });
}

#[test]
fn broken_payloads_are_errors() {
    each_seed(rounds(20_000), |seed| {
        rdb::check_payload(&bytes(&mut Random::from_seed(seed), 60));
    });
}

#[test]
fn broken_files_are_errors() {
    each_seed(rounds(1500), |seed| {
        rdb::check_file(&bytes(&mut Random::from_seed(seed), 40));
    });
}

#[test]
fn broken_logs_are_torn_or_refused() {
    each_seed(rounds(3000), |seed| {
        log::check_file(&bytes(&mut Random::from_seed(seed), 120));
    });
}

#[test]
fn broken_manifests_are_refused() {
    each_seed(rounds(5000), |seed| {
        log::check_manifest(&bytes(&mut Random::from_seed(seed), 60));
    });
}
