//! Keys that are not of the type that they should be: a step that finds one changes nothing.

use super::{command, flat, keys};
use crate::raw_step;
use russet::Kit;
use russet::key::Key;

russet_toolkit_tests::on_every_backend! {
    an_entry_of_a_stream_is_not_lost_for_its_dead_letter
    a_claim_of_a_stream_that_fails_costs_no_attempt
    an_item_of_a_sale_is_not_lost_for_its_reservation
    a_session_is_not_lost_for_its_list
    an_object_is_not_lost_for_its_index
    a_state_and_its_deadline_are_written_together
    a_charge_is_given_back_under_all_limits_or_none
}

/// What is no collection.
async fn spoil(kit: &Kit, key: &Key) {
    command(kit, "SET", key, &["x", "PX", "60000"]).await;
}

async fn exists(kit: &Kit, key: &Key) -> bool {
    command(kit, "EXISTS", key, &[]).await.as_int() == Some(1)
}

/// It was acknowledged before its letter was written.
async fn an_entry_of_a_stream_is_not_lost_for_its_dead_letter(kit: Kit) {
    let all = keys(&kit, ["request", "entries", "dead"]);
    let add = ["0", "work", "10", "60000"];
    raw_step(&kit, "stream_add", &all[..2], &add).await.unwrap();
    let claim = ["0", "1", "60000", "10", "60000", "10"];
    let claimed = raw_step(&kit, "stream_claim", &all, &claim).await.unwrap();
    let job = claimed.as_list().unwrap()[2].as_list().unwrap()[0].clone();
    let receipt = flat(&job.as_list().unwrap()[3]);
    spoil(&kit, &all[2]).await;
    let dead = ["0", receipt.as_str(), "0", "no", "0", "60000", "60000", "10"];
    assert!(raw_step(&kit, "stream_retry", &all, &dead).await.is_err());
    assert_eq!(command(&kit, "XLEN", &all[1], &[]).await.as_int(), Some(1));
    command(&kit, "DEL", &all[2], &[]).await;
    let died = raw_step(&kit, "stream_retry", &all, &dead).await.unwrap();
    assert_eq!(flat(&died), "DEAD attempts 1");
}

/// Entries were claimed before a letter could not be written: work that nobody got became a dead
/// letter in the end.
async fn a_claim_of_a_stream_that_fails_costs_no_attempt(kit: Kit) {
    let all = keys(&kit, ["request", "entries", "dead"]);
    raw_step(&kit, "stream_add", &all[..2], &["0", "work", "10", "60000"]).await.unwrap();
    spoil(&kit, &all[2]).await;
    let claim = ["0", "1", "60000", "10", "60000", "10"];
    assert!(raw_step(&kit, "stream_claim", &all, &claim).await.is_err());
    command(&kit, "DEL", &all[2], &[]).await;
    let claimed = raw_step(&kit, "stream_claim", &all, &claim).await.unwrap();
    let job = claimed.as_list().unwrap()[2].as_list().unwrap()[0].clone();
    assert_eq!(flat(&job.as_list().unwrap()[2]), "1");
}

/// The order was gone, and its item not on sale again.
async fn an_item_of_a_sale_is_not_lost_for_its_reservation(kit: Kit) {
    let all = keys(&kit, ["request", "sale", "orders", "holds", "outbox"]);
    let open = ["1", "0", "0", "60000", "60000", "60000", "10"];
    raw_step(&kit, "sale_open", &all[1..4], &open).await.unwrap();
    raw_step(&kit, "sale_buy", &all, &["0", "ann", "order-1"]).await.unwrap();
    for part in [&all[3], &all[4]] {
        let kept = command(&kit, "DUMP", part, &[]).await.into_bytes().unwrap().unwrap();
        spoil(&kit, part).await;
        for step in ["sale_cancel", "sale_pay"] {
            assert!(raw_step(&kit, step, &all[1..], &["ann", "order-1"]).await.is_err());
        }
        let restore = russet::Request::new("RESTORE").key(part).arg(60_000).arg(kept);
        kit.call(&restore.arg("REPLACE")).await.unwrap();
        let stock = command(&kit, "HMGET", &all[1], &["stock", "held"]).await;
        assert_eq!((flat(&stock), exists(&kit, &all[2]).await), ("0 1".to_owned(), true));
    }
    let cancelled = raw_step(&kit, "sale_cancel", &all[1..], &["ann", "order-1"]).await;
    assert_eq!(flat(&cancelled.unwrap()), "CANCELLED");
}

/// It had a new id that nobody was told.
async fn a_session_is_not_lost_for_its_list(kit: Kit) {
    let all = keys(&kit, ["old", "new", "index", "rotated"]);
    command(&kit, "HSET", &all[0], &["status", "ACTIVE", "absolute_at_ms", "1"]).await;
    command(&kit, "PEXPIRE", &all[0], &["60000"]).await;
    spoil(&kit, &all[2]).await;
    assert!(raw_step(&kit, "session_rotate", &all, &["old", "new"]).await.is_err());
    assert!(exists(&kit, &all[0]).await && !exists(&kit, &all[1]).await);
}

/// It was gone, and its entry in the index was not.
async fn an_object_is_not_lost_for_its_index(kit: Kit) {
    let all = keys(&kit, ["object", "index", "values", "deadlines"]);
    for part in &all[1..] {
        command(&kit, "HSET", &all[0], &["version", "1"]).await;
        command(&kit, "PEXPIRE", &all[0], &["60000"]).await;
        spoil(&kit, part).await;
        assert!(raw_step(&kit, "state_index_remove", &all, &["o"]).await.is_err());
        assert!(exists(&kit, &all[0]).await);
        command(&kit, "DEL", part, &[]).await;
    }
}

/// An item had a deadline and no state, or was gone though the call had failed.
async fn a_state_and_its_deadline_are_written_together(kit: Kit) {
    let all = keys(&kit, ["deadlines", "states"]);
    let put = async |item: &str| {
        raw_step(&kit, "expiry_put", &all, &[item, "state", "60000", "10", "60000"]).await
    };
    put("a").await.unwrap();
    spoil(&kit, &all[1]).await;
    assert!(put("b").await.is_err());
    assert!(raw_step(&kit, "expiry_remove", &all, &["a"]).await.is_err());
    assert_eq!(flat(&command(&kit, "ZRANGE", &all[0], &["0", "-1"]).await), "a");
}

/// The first limit gave back what it had, again with each call.
async fn a_charge_is_given_back_under_all_limits_or_none(kit: Kit) {
    let [marker, refund, window, log] = keys(&kit, ["request", "refund", "window", "log"]);
    let args = ["60000", "c", "TAKE", "5", "WINDOW", "9", "60000", "0", "LOG", "9", "60000", "0"];
    let charged = [marker.clone(), window.clone(), log.clone()];
    let taken = raw_step(&kit, "limit_check", &charged, &args).await.unwrap();
    let ends = taken.as_list().unwrap()[4].as_list().unwrap()[3].as_int().unwrap().to_string();
    let ends = ends.as_str();
    spoil(&kit, &log).await;
    let keys = [refund, marker, window.clone(), log];
    let args = ["60000", "c/5", "2", "WINDOW", "9", "60000", ends, "LOG", "9", "60000", ends];
    for _ in 0..2 {
        assert!(raw_step(&kit, "limit_refund", &keys, &args).await.is_err());
    }
    assert_eq!(flat(&command(&kit, "GET", &window, &[]).await), "5");
}
