//! What goes wrong between a kit and its server: what is known of a call then, what is tried again,
//! and that nothing happens twice.

mod activity;
mod claims;
mod cluster;
mod connections;
mod crashes;
mod data;
mod people;
mod queues;
mod restarts;
mod retries;
mod workflows;

use russet::counter::{WindowCounter, Windows};
use russet::retry::RetryPolicy;
use russet::{Advice, Kit, Result};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A call that is to be late has no more than this.
const HASTE: Duration = Duration::from_millis(200);
/// Later than any call waits.
const LATE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Tasks of one workload.
const TASKS: usize = 8;
/// Long enough for a server that is killed to be back.
const PATIENCE: RetryPolicy = RetryPolicy {
    attempts_max: 400,
    pause_min: Duration::from_millis(2),
    pause_max: Duration::from_millis(100),
};

type Workload = fn(Kit) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Workloads, by the modules that they are in: each does its work in several tasks and then
/// fails if an effect was lost or doubled. Each is a test of its own on every kind of server,
/// with random faults on the way; and [`ALL`] of them run at once on servers that are killed,
/// and on a cluster whose slots move.
macro_rules! workloads {
    ($($module:ident: $($name:ident)*;)*) => {
        mod under_faults {
            $(
                mod $module {
                    use super::super::$module::*;

                    russet_toolkit_tests::under_faults! { $($name)* }
                }
            )*
        }

        const ALL: &[(&str, Workload)] =
            &[$($((stringify!($name), |kit| Box::pin($module::$name(kit))),)*)*];
    };
}

workloads! {
    workflows:
        a_limit_admits_exactly_its_number
        a_lease_has_one_holder_and_its_numbers_grow
        every_job_is_acknowledged_once
        a_request_runs_once
        exactly_the_stock_is_sold
        counters_are_exact
        no_id_is_given_out_twice
        a_score_counts_once
        a_reset_token_is_used_once
        a_transition_is_made_once;
    people:
        sessions_are_made_and_ended_once
        exactly_the_allowed_tokens_are_issued
        each_change_of_a_flag_is_one_version
        likes_are_set_once
        both_sides_of_a_follow_agree
        posts_reach_every_follower_once
        each_place_is_found_once;
    data:
        what_was_invalidated_does_not_come_back
        increments_of_a_record_count_once
        the_sums_of_a_draft_agree
        no_member_is_lost_on_its_way
        swaps_lose_no_update
        watched_updates_are_made_once
        an_object_stands_once_in_its_index
        every_level_is_reached_once
        packed_counters_count_once;
    queues:
        every_item_of_a_list_is_popped_once
        every_job_of_a_list_is_acknowledged_once
        every_entry_of_a_stream_is_acknowledged_once
        an_occurrence_is_one_job;
    activity:
        members_have_one_index_each
        an_event_is_first_seen_once
        a_day_is_signed_in_once
        each_item_is_pushed_once
        everyone_is_present_once
        each_visitor_is_counted_once
        each_deadline_is_met;
}

/// All workloads at once.
fn start_all(kit: &Kit) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (name, workload) in ALL {
        let work = workload(kit.clone());
        tasks.spawn(async move {
            if let Err(error) = tokio::spawn(work).await {
                panic!("{name}: {error}");
            }
        });
    }
    tasks
}

/// Until all are done.
async fn join_all(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Runs a task so many times at once.
async fn at_once<F: Future<Output = ()> + Send + 'static>(task: impl Fn(usize) -> F) {
    let tasks: Vec<_> = (0..TASKS).map(|number| tokio::spawn(task(number))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn counter(kit: &Kit) -> WindowCounter {
    let year = Duration::from_secs(365 * 86_400);
    WindowCounter::new(kit, "n", Windows::of(year).unwrap()).unwrap()
}

async fn count(counter: &WindowCounter) -> i64 {
    counter.read("a", 0).await.unwrap().count
}

/// The same, however long a server that fails over or a machine that is busy takes.
async fn count_patiently(counter: &WindowCounter) -> i64 {
    until_done(|| counter.read("a", 0)).await.count
}

/// Calls again as long as that may help. What is called must be able to bear it.
async fn until_done<T, F: Future<Output = Result<T>>>(mut call: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) if error.advice() == Advice::GiveUp => panic!("{error}"),
            Err(error) => assert!(Instant::now() < deadline, "not done in time: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
