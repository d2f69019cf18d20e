//! Which test holds what: the mistakes in the code of the seeds, the invariant of each pattern,
//! and the bugs of other libraries. Each name must be that of a test, and each mistake and bug
//! must stand in what is said above its test.

use std::collections::HashMap;
use std::path::Path;

/// Where it is made, what it is, and the tests that hold it.
type Row = (&'static str, &'static str, &'static [&'static str]);

/// Mistakes in the seeds' code.
const MISTAKES: &[Row] = &[
    (
        "S3",
        "sale: keys made within the script, in other slots; a missing stock is an error",
        &["sale::keys_of_a_sale_share_a_slot", "sale::a_sale_that_was_not_opened_has_nothing"],
    ),
    (
        "S4 §13",
        "an empty challenge verifies even a revoked session",
        &["session::a_challenge_is_met_once_and_only_by_its_answer"],
    ),
    (
        "S1 §9",
        "BUSY for what failed and may be tried again; no fingerprint",
        &[
            "idempotency::a_retryable_failure_lets_the_next_try",
            "idempotency::another_request_under_the_same_key_is_a_mismatch",
        ],
    ),
    ("S1 §10", "a retry at the limit is denied", &["limit::a_request_is_charged_once"]),
    (
        "S4 §11",
        "an update of an expired session makes a hash of one field without TTL",
        &["session::what_is_gone_is_not_made_anew", "object::an_update_never_creates"],
    ),
    (
        "S3",
        "the interceptor reads the whole hash, has the raw token in the key, expires each time",
        &[
            "session::the_hot_path_reads_no_whole_hash",
            "session::ids_are_not_stored",
            "session::the_ttl_is_renewed_when_little_is_left_and_never_past_the_deadline",
        ],
    ),
    (
        "S2 §12",
        "no reaper, no attempts, no receipt: a stale worker acknowledges another's claim",
        &[
            "queue::jobs::a_stale_worker_acknowledges_nothing",
            "queue::jobs::a_lost_worker_loses_no_job",
        ],
    ),
    ("S0 §16", "the TTL in a second command", &["activity::days_end_with_their_retention"]),
    (
        "S2 §6",
        "the TTL of a bucket is prolonged by each event",
        &["activity::duplicates_at_the_edge_of_a_bucket_do_not_pass"],
    ),
    (
        "S1 §11",
        "the index keeps ids of sessions that have expired",
        &["session::an_index_never_leaks"],
    ),
    (
        "S3 ids",
        "more than 2^32 of a day run into the time",
        &["counter::ids_survive_overflow", "counter::ids_survive_clock_steps"],
    ),
    ("S3 ids", "keys of days have no TTL", &["counter::a_generator_that_is_not_used_is_gone"]),
    (
        "S3 feed",
        "a cursor of the moment alone skips or repeats ties",
        &["social::scrolling_neither_skips_nor_repeats"],
    ),
    ("S3 likes", "a toggle that looks and then writes", &["social::a_like_is_set_not_toggled"]),
    (
        "S3",
        "cache: a lock without an owner is removed by another",
        &["cache::a_long_load_keeps_its_lock", "lease::only_the_holder_releases"],
    ),
    (
        "S0 §7",
        "a bad TTL leaves an immortal counter; a TTL of 0 never limits",
        &["limit::arguments_are_refused_before_anything_is_written"],
    ),
    ("S0 §24", "five per minute, not per ten", &["limit::one_time_passwords"]),
    (
        "S0 §5",
        "no owner: a stale worker completes; a crash blocks for days",
        &[
            "idempotency::a_stale_worker_can_not_complete",
            "idempotency::a_crash_blocks_no_longer_than_the_claim",
        ],
    ),
    ("S0 §25", "consuming is not safe to retry", &["token::a_retried_consume_says_the_same"]),
    ("S1 §3", "a raw key without its tenant", &["idempotency::tenants_do_not_share_keys"]),
    (
        "S1 §4",
        "keys of one step in different slots; the old index is never removed",
        &[
            "limit::one_step_has_one_slot",
            "cache::the_keys_of_an_entry_share_a_slot",
            "state::indexed::the_old_entry_goes_with_the_change",
            "object::sets::a_member_moves_in_one_piece",
        ],
    ),
    (
        "S1 §5",
        "EXPIRE on each success; WATCH leaks on an exception",
        &[
            "limit::a_watched_window_does_not_slide",
            "state::optimistic::a_watch_does_not_outlive_a_panic",
        ],
    ),
    (
        "S1 §9",
        "the owner's own retry is BUSY or fails; no renewal; a final failure is BUSY",
        &[
            "idempotency::the_same_owner_may_claim_complete_and_fail_again",
            "idempotency::long_work_keeps_its_claim",
            "idempotency::a_final_failure_is_said_again",
        ],
    ),
    (
        "S1 §10",
        "a fast client clock purges others' entries",
        &[
            "limit::a_window_ends_by_the_servers_clock",
            "lease::kinds::a_semaphore_admits_no_more_than_its_permits",
            "activity::collections::presence_goes_by_the_servers_clock",
        ],
    ),
    (
        "S1 §10",
        "a reused id reports 2 and holds 1",
        &["limit_many::a_reused_id_reports_what_it_holds"],
    ),
    (
        "S1 §11",
        "the index's TTL shrinks below a session's; tag by user against look-up by session",
        &[
            "state::indexed::the_index_lives_as_long_as_its_objects",
            "session::keys_of_a_user_share_a_slot_and_users_spread",
        ],
    ),
    (
        "S2 §3",
        "a shared blocking connection; a failed push loses the job",
        &[
            "queue::lists::a_pop_that_waits_blocks_nobody_else",
            "queue::lists::a_failed_push_loses_no_item",
        ],
    ),
    (
        "S2 §5",
        "no EXPIRE; a maximum of 0 keeps everything",
        &[
            "activity::collections::a_list_keeps_the_latest",
            "activity::collections::a_list_ends_without_new_items",
            "ranking::every_key_has_a_ttl",
        ],
    ),
    ("S2 §11", "top(0) returns the whole board", &["ranking::top_of_none_is_empty"]),
    (
        "S2 §12",
        "the payload expires before the job is due; no limit",
        &[
            "queue::jobs::the_payload_does_not_expire_before_the_job_is_due",
            "queue::jobs::nonsense_is_refused_before_anything_is_written",
        ],
    ),
    (
        "S2 §14",
        "what was renewed after the scan is deleted",
        &["activity::collections::what_was_renewed_after_the_scan_stays"],
    ),
    (
        "S2 §15",
        "connections without TTL; a global, unbounded read",
        &[
            "activity::collections::the_silent_are_gone",
            "activity::collections::a_full_room_says_so",
        ],
    ),
    (
        "S3",
        "cache: null for ever, no second look, no physical TTL",
        &[
            "cache::a_stale_value_is_served_while_one_loads_it_anew",
            "cache::an_entry_expires_in_real_time",
            "cache::many_processes_load_once",
            "cache::what_does_not_exist_is_remembered",
        ],
    ),
    (
        "S3",
        "cache: a rejected rebuild leaves the lock",
        &["cache::a_rejected_rebuild_leaves_no_lock"],
    ),
    ("S3 ids", "low bits are the daily volume", &["counter::ids_do_not_show_how_many_there_are"]),
    ("S3 ids", "local time taken for UTC", &["activity::the_users_day_is_meant"]),
    (
        "S3, locks",
        "a thread's number is not unique across processes",
        &["lease::kinds::a_reentrant_lease_is_free_when_the_last_guard_is_gone"],
    ),
    (
        "S3, flash sale",
        "a retry says already bought; no order id, bound, window, compensation",
        &[
            "sale::a_retry_after_success_gets_its_order",
            "sale::an_outbox_that_nobody_empties_stops_the_sale",
            "sale::a_cancelled_order_goes_back_on_sale",
            "queue::clock::a_reservation_that_times_out_goes_back_on_sale",
        ],
    ),
    (
        "S3 feed",
        "fan-out is not resumable; inboxes are unbounded",
        &[
            "social::a_publication_that_was_cut_off_goes_on",
            "social::inboxes_are_bounded",
            "social::a_half_done_follow_is_repaired",
        ],
    ),
    ("S3 geo", "pages repeat", &["social::places_nearby_page_by_page"]),
    (
        "S3 sign-in",
        "a day is missed; not signed in yet breaks the streak",
        &["activity::a_streak_goes_on_across_months_and_years"],
    ),
    ("S3 visitors", "keys without TTL", &["activity::visitors_of_a_day_end_with_their_retention"]),
    (
        "S3 follows",
        "common follows taken for mutual ones",
        &["social::mutual_follows_are_not_common_follows"],
    ),
    (
        "S4 §10",
        "an absent time becomes 1970; throws instead of corrupt",
        &[
            "session::half_a_session_is_corrupt",
            "object::what_is_not_whole_is_corrupt",
            "state::half_a_record_is_corrupt",
        ],
    ),
    ("S4 §10", "save overwrites REVOKED", &["session::no_write_brings_a_revoked_session_back"]),
    (
        "S4 §11",
        "the idle refresh passes the absolute deadline",
        &["session::the_ttl_is_renewed_when_little_is_left_and_never_past_the_deadline"],
    ),
    (
        "S4 §13",
        "no cap on attempts; HSET clears the field's TTL",
        &["session::attempts_have_an_end", "session::a_challenge_ends_in_real_time"],
    ),
    (
        "S4 §16",
        "a missing key: valid or revoked?",
        &["token::what_is_not_known_is_said_to_be_unknown", "token::tokens_are_not_stored"],
    ),
    (
        "S4 §22",
        "level 2 is unreachable; a retry and a missing case look the same",
        &["state::every_level_is_reached_and_no_more", "state::missing_and_repeated_differ"],
    ),
    ("S1 §19", "at most 100 of 1,000", &["limit::exactly_the_limit_is_admitted"]),
];

/// The invariant of each pattern: a test with many tasks and one that calls again.
const PATTERNS: &[(&str, &str, &str)] = &[
    ("1 claim", "idempotency::one_of_many_is_claimed", "idempotency::a_marker_is_set_once"),
    (
        "2 idempotency",
        "idempotency::a_closure_runs_once_among_many_tasks",
        "idempotency::the_same_owner_may_claim_complete_and_fail_again",
    ),
    ("3 window", "counter::a_window_counts_each_once", "counter::a_request_counts_once"),
    (
        "4 one-time passwords",
        "limit_many::five_attempts_of_many_are_let_through",
        "limit_many::five_attempts_of_many_are_let_through",
    ),
    (
        "5 reset token",
        "token::a_reset_token_is_used_once_among_many",
        "token::a_retried_consume_says_the_same",
    ),
    ("6 compare and set", "state::one_of_many_swaps", "state::a_repeated_swap_is_a_swap"),
    (
        "7 single flight",
        "cache::many_processes_load_once",
        "lost_replies::a_value_is_loaded_once_and_stored",
    ),
    ("8 flags", "flag::changes_are_counted_and_written_down", "flag::a_repeated_change_is_one"),
    (
        "9 daily active",
        "activity::marks_of_many_tasks_are_all_there",
        "faults::activity::members_have_one_index_each",
    ),
    (
        "10 packed",
        "faults::data::packed_counters_count_once",
        "counter::packed_counters_change_at_once",
    ),
    ("11 sharded", "counter::shards_add_up", "counter::a_request_of_a_sharded_counter_counts_once"),
    ("12 ids", "counter::ids_are_unique", "faults::workflows::no_id_is_given_out_twice"),
    ("13 lease", "lease::one_holder_at_a_time", "lease::a_lost_reply_does_not_lose_the_lease"),
    (
        "14 reentrant",
        "lease::kinds::many_owners_take_a_reentrant_lease",
        "lease::kinds::a_repeated_attempt_does_not_count_twice",
    ),
    (
        "14 all servers",
        "lease::many::one_holder_over_all_servers",
        "lease::many::what_may_be_held_is_given_back",
    ),
    (
        "15 fencing",
        "lease::of_many_writers_the_last_holder_stays",
        "lease::a_late_write_of_the_same_holder_is_refused",
    ),
    ("16 request ids", "ranking::many_at_once_lose_nothing", "counter::a_request_counts_once"),
    (
        "17 watched quota",
        "limit::a_watched_quota_is_exact",
        "limit::a_watched_quota_charges_a_request_once",
    ),
    (
        "18 object and index",
        "state::indexed::an_object_stands_once_in_the_index",
        "state::indexed::a_repeated_put_is_one",
    ),
    (
        "19 sessions",
        "session::log_ins_and_revoke_all_at_the_same_time",
        "lost_replies::sessions_are_made_rotated_and_revoked_once",
    ),
    ("20 MFA", "session::attempts_have_an_end", "session::a_retried_failure_counts_once"),
    (
        "21 tokens",
        "token::a_user_has_no_more_tokens_than_allowed",
        "lost_replies::tokens_are_issued_and_consumed_once",
    ),
    (
        "22 records",
        "object::increments_of_many_tasks_all_count",
        "object::a_request_is_written_once",
    ),
    (
        "22 drafts",
        "object::sets::a_draft_of_many_tasks",
        "object::sets::a_draft_is_for_its_version",
    ),
    (
        "23 escalation",
        "state::every_level_is_reached_and_no_more",
        "state::missing_and_repeated_differ",
    ),
    (
        "24 list",
        "faults::queues::every_item_of_a_list_is_popped_once",
        "queue::lists::a_failed_push_loses_no_item",
    ),
    (
        "25 reliable list",
        "queue::lists::many_takers_share_a_list",
        "faults::queues::every_job_of_a_list_is_acknowledged_once",
    ),
    (
        "26 recent",
        "faults::activity::each_item_is_pushed_once",
        "activity::collections::a_request_is_pushed_once",
    ),
    ("27 dedupe", "activity::an_id_is_new_once", "activity::a_first_sight_can_be_asked_for_again"),
    (
        "28 sets",
        "object::sets::a_member_moves_in_one_piece",
        "faults::data::no_member_is_lost_on_its_way",
    ),
    ("29 board", "ranking::many_at_once_lose_nothing", "ranking::a_request_is_counted_once"),
    (
        "30 jobs",
        "queue::jobs::many_workers_share_the_jobs",
        "queue::jobs::a_retried_request_has_one_effect",
    ),
    (
        "30 streams",
        "queue::streams::many_workers_share_a_stream",
        "queue::streams::a_repeated_request_on_a_stream_has_one_effect",
    ),
    (
        "31 worker",
        "queue::workers::two_workers_run_each_job_once",
        "faults::connections::a_worker_goes_on_after_an_outage",
    ),
    ("32 limits", "limit::exactly_the_limit_is_admitted", "limit::a_request_is_charged_once"),
    (
        "33 expiry index",
        "activity::collections::each_due_item_goes_to_one",
        "faults::activity::each_deadline_is_met",
    ),
    (
        "34 presence",
        "faults::activity::everyone_is_present_once",
        "faults::activity::everyone_is_present_once",
    ),
    (
        "35 cache",
        "cache::many_callers_load_once",
        "faults::data::what_was_invalidated_does_not_come_back",
    ),
    (
        "36 session of a request",
        "session::no_write_brings_a_revoked_session_back",
        "faults::people::sessions_are_made_and_ended_once",
    ),
    ("37 sale", "sale::exactly_the_stock_is_sold", "sale::a_retry_after_success_gets_its_order"),
    ("38 likes", "social::likes_of_many_tasks", "social::a_like_is_set_not_toggled"),
    (
        "38 follows",
        "social::follows_and_unfollows_at_the_same_time_agree",
        "faults::people::both_sides_of_a_follow_agree",
    ),
    (
        "38 feed",
        "faults::people::posts_reach_every_follower_once",
        "social::a_publication_that_was_cut_off_goes_on",
    ),
    (
        "39 nearby",
        "faults::people::each_place_is_found_once",
        "faults::people::each_place_is_found_once",
    ),
    ("39 sign-in", "activity::a_sign_in_counts_once", "faults::activity::a_day_is_signed_in_once"),
    (
        "39 visitors",
        "faults::activity::each_visitor_is_counted_once",
        "faults::activity::each_visitor_is_counted_once",
    ),
];

/// Bugs of other libraries, by their class.
const BUGS: &[Row] = &[
    (
        "Redisson issues 7272 and 1626",
        "watchdog races",
        &["lease::keep_alive_does_not_outlive_its_guard"],
    ),
    (
        "Redisson issues 3194 and 5698",
        "watchdog races",
        &["lease::keep_alive_goes_on_after_an_outage"],
    ),
    ("Redisson issue 4698", "watchdog races", &["lease::a_watcher_hears_of_a_loss"]),
    (
        "Redisson issues 3599 and 3835",
        "lost delayed messages",
        &["queue::clock::a_delayed_job_needs_nobody_to_move_it"],
    ),
    (
        "BullMQ issues 452 and 1658",
        "lost delayed messages",
        &["faults::connections::a_worker_goes_on_after_an_outage"],
    ),
    ("Bucket4j 305 and Redisson 3756", "leaking token keys", &["limit::keys_have_a_ttl"]),
    (
        "redis-py issue 3847",
        "leaking token keys",
        &["lease::a_release_that_fails_or_is_cancelled_is_made_good"],
    ),
    (
        "sidekiq-unique-jobs issues 861 and 560",
        "leaking token keys",
        &["queue::jobs::a_unique_job_leaves_no_lock_behind"],
    ),
    (
        "BullMQ issues 652 and 1497",
        "double runs past visibility",
        &["queue::workers::a_slow_handler_keeps_its_job"],
    ),
    (
        "apalis issue 530",
        "double runs past visibility",
        &["queue::workers::a_slow_handler_keeps_its_job"],
    ),
    ("apalis issue 504", "jobs of the dead", &["queue::jobs::a_lost_worker_loses_no_job"]),
    (
        "Sidekiq issue 4441",
        "double runs",
        &["queue::workers::a_shutdown_waits_and_then_gives_back"],
    ),
    (
        "Sidekiq issue 4807",
        "fail-open limiters",
        &["limit_outage::an_outage_is_decided_by_the_policy"],
    ),
    (
        "Bucket4j issue 339",
        "fail-open limiters",
        &["limit_outage::an_outage_is_decided_by_the_policy"],
    ),
    (
        "Redisson issues 1104, 2099 and 6150",
        "stuck fair locks",
        &["lease::time::all_dead_waiters_are_passed_over_at_once"],
    ),
    (
        "Redisson issues 2278 and 2883",
        "stuck fair locks",
        &["lease::kinds::many_take_a_fair_lease"],
    ),
    (
        "rslock pull request 36",
        "waits too long",
        &["lease::time::who_gives_up_does_not_wait_any_longer"],
    ),
];

/// What the tests of this program say of themselves, by their names.
fn tests() -> HashMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let mut tests = HashMap::new();
    read(&root, "", &mut tests);
    tests
}

fn read(directory: &Path, module: &str, tests: &mut HashMap<String, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let module = format!("{module}{name}::");
        if path.is_dir() {
            read(&path, &module, tests);
        } else {
            read_file(&std::fs::read_to_string(&path).unwrap(), &module, tests);
        }
    }
}

/// Functions at the outermost level, with the lines above them that begin with `///`.
fn read_file(text: &str, module: &str, tests: &mut HashMap<String, String>) {
    let mut said = String::new();
    for line in text.lines() {
        let function = line.trim_start_matches("pub(super) ").trim_start_matches("async ");
        if let Some(line) = line.strip_prefix("///") {
            said.push_str(line);
        } else if let Some((name, _rest)) =
            function.strip_prefix("fn ").and_then(|rest| rest.split_once(['(', '<']))
        {
            tests.insert(format!("{module}{name}"), std::mem::take(&mut said));
        } else if !line.starts_with("#[") {
            said.clear();
        }
    }
}

#[test]
fn every_mistake_and_every_bug_has_its_test() {
    let tests = tests();
    let mut wrong = Vec::new();
    for (source, what, names) in MISTAKES.iter().chain(BUGS) {
        for name in *names {
            match tests.get(*name) {
                None => wrong.push(format!("{source}, {what}: there is no test {name}")),
                Some(said) if !said.contains(source) => {
                    wrong.push(format!("{name} does not say that it is about {source}, {what}"));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_pattern_has_a_test_with_many_tasks_and_one_that_calls_again() {
    let tests = tests();
    let named = |name: &&str| !tests.contains_key(*name);
    let missing: Vec<&str> =
        PATTERNS.iter().flat_map(|(_pattern, many, again)| [*many, *again]).filter(named).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let numbers = PATTERNS.iter().filter_map(|(pattern, ..)| pattern.split(' ').next());
    let numbers: std::collections::BTreeSet<u32> =
        numbers.filter_map(|number| number.parse().ok()).collect();
    assert_eq!(numbers, (1..=39).collect());
}
