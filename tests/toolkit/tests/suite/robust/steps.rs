//! Steps as programs in other languages call them, with what the kit would not send.

use super::{command, flat, keys};
use crate::raw_step;
use russet::key::{Family, Scope};
use russet::social::{Follow, FollowSettings, Follows, Unfollow};
use russet::{Error, Kit};

russet_toolkit_tests::on_every_backend! {
    numbers_have_digits_only
    a_flag_has_a_switch
    a_charge_that_was_given_back_in_part_stays_charged
    a_bucket_has_a_largest_capacity
    a_field_past_its_deadline_counts_from_nothing
    changes_that_nobody_confirms_are_bounded
    an_older_invalidation_does_not_shorten_what_is_known
    an_object_leaves_an_index_that_has_lost_its_values
    a_sale_that_was_lost_knows_its_reservations
    a_position_ahead_of_the_outbox_forgets_nothing
    a_marker_that_is_none_is_corrupt
    a_half_that_is_lost_is_told_again
    what_is_no_session_keeps_none_from_being_revoked
}

/// `1e+15` was taken for a number that a command then refused, with half of the changes made.
async fn numbers_have_digits_only(kit: Kit) {
    let keys = keys(&kit, ["request", "packed"]);
    let args = ["0", "60000", "WRAP", "u8", "0", "1", "u53", "8", "1e+15"];
    let refused = raw_step(&kit, "counter_packed", &keys, &args).await;
    assert_eq!(refused, Err(Error::Invalid("by".into())));
    assert_eq!(command(&kit, "EXISTS", &keys[1], &[]).await.as_int(), Some(0));
}

/// What had no switch was stored, and counted by nobody.
async fn a_flag_has_a_switch(kit: Kit) {
    let keys = keys(&kit, ["flags", "audit"]);
    for flag in ["a", "b"] {
        let args = [flag, "ops", "define", "60000", "1", "10", "1", "rollout", "50"];
        let refused = raw_step(&kit, "flag_change", &keys, &args).await;
        assert_eq!(refused, Err(Error::Invalid("attributes".into())));
    }
    assert_eq!(command(&kit, "EXISTS", &keys[0], &[]).await.as_int(), Some(0));
}

/// A refund of a part let the same request be charged again as a whole.
async fn a_charge_that_was_given_back_in_part_stays_charged(kit: Kit) {
    let [marker, refund, window] = keys(&kit, ["request", "refund", "window"]);
    let args = ["60000", "c1", "TAKE", "5", "WINDOW", "100", "60000", "0"];
    let take =
        async || raw_step(&kit, "limit_check", &[marker.clone(), window.clone()], &args).await;
    let charged = take().await.unwrap();
    let numbers = charged.as_list().unwrap()[4].as_list().unwrap();
    let ends = numbers[3].as_int().unwrap().to_string();
    let give_back = [refund, marker.clone(), window.clone()];
    let args = ["60000", "c1/5", "1", "WINDOW", "100", "60000", ends.as_str()];
    let returned = raw_step(&kit, "limit_refund", &give_back, &args).await.unwrap();
    assert_eq!(flat(&returned), "REFUNDED returned 1");
    take().await.unwrap();
    assert_eq!(command(&kit, "GET", &window, &[]).await.as_bytes(), Some(b"4".as_slice()));
}

async fn a_bucket_has_a_largest_capacity(kit: Kit) {
    let keys = keys(&kit, ["request", "bucket"]);
    let args = ["0", "c", "TAKE", "1", "BUCKET", "1", "1000000000000", "1000000"];
    let refused = raw_step(&kit, "limit_check", &keys, &args).await;
    assert_eq!(refused, Err(Error::Invalid("extra".into())));
    let args = ["0", "c", "1", "1", "1000000000000", "1000000"];
    let refused = raw_step(&kit, "limit_bucket", &keys, &args).await;
    assert_eq!(refused, Err(Error::Invalid("burst".into())));
}

/// A field past its deadline is not there for readers, but was added to.
async fn a_field_past_its_deadline_counts_from_nothing(kit: Kit) {
    let keys = keys(&kit, ["request", "record"]);
    let fields = ["n", "5", "n.expires_at_ms", "1", "version", "1"];
    command(&kit, "HSET", &keys[1], &fields).await;
    command(&kit, "PEXPIRE", &keys[1], &["60000"]).await;
    let args = ["0", "n", "2", "0", "100"];
    let reply = raw_step(&kit, "object_increment", &keys, &args).await.unwrap();
    assert_eq!(flat(&reply), "OK value 2 version 2");
    let read = raw_step(&kit, "object_load", &keys[1..], &["n", "0"]).await.unwrap();
    assert!(flat(&read).ends_with("values 2"), "{}", flat(&read));
    let left = command(&kit, "HEXISTS", &keys[1], &["n.expires_at_ms"]).await;
    assert_eq!(left.as_int(), Some(0));
}

/// Changes whose other side is never told were kept without a bound.
async fn changes_that_nobody_confirms_are_bounded(kit: Kit) {
    let keys = keys(&kit, ["following", "pending", "version"]);
    for page in 0..10 {
        let members: Vec<String> =
            (0..1000).flat_map(|at| ["1".into(), format!("user-{page}-{at}")]).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        command(&kit, "ZADD", &keys[1], &members).await;
    }
    let args = ["other", "SET", "100", "60000"];
    raw_step(&kit, "follow_change", &keys, &args).await.unwrap();
    assert_eq!(command(&kit, "ZCARD", &keys[1], &[]).await.as_int(), Some(10_000));
    assert_eq!(command(&kit, "ZRANK", &keys[1], &["other"]).await.as_int(), Some(9999));
}

/// An invalidation with a short memory made the store forget a version that it had to know longer.
async fn an_older_invalidation_does_not_shorten_what_is_known(kit: Kit) {
    let keys = keys(&kit, ["entry", "lock", "version"]);
    raw_step(&kit, "cache_drop", &keys, &["5", "600000"]).await.unwrap();
    raw_step(&kit, "cache_drop", &keys, &["5", "1000"]).await.unwrap();
    let ttl_ms = command(&kit, "PTTL", &keys[2], &[]).await.as_int().unwrap();
    assert!(ttl_ms > 60_000, "{ttl_ms}");
}

/// An object that was removed stayed in an index that had lost what each object was under.
async fn an_object_leaves_an_index_that_has_lost_its_values(kit: Kit) {
    let all = keys(&kit, ["request", "object", "index", "values", "deadlines"]);
    let args = ["0", "id-1", "blue", "60000", "10", "0", "f", "v"];
    raw_step(&kit, "state_index_put", &all, &args).await.unwrap();
    command(&kit, "UNLINK", &all[3], &[]).await;
    let removed = raw_step(&kit, "state_index_remove", &all[1..], &["id-1"]).await.unwrap();
    assert_eq!(flat(&removed), "REMOVED");
    assert_eq!(command(&kit, "ZCARD", &all[2], &[]).await.as_int(), Some(0));
}

/// With sale and reservations lost, reservations counted as paid and never came back.
async fn a_sale_that_was_lost_knows_its_reservations(kit: Kit) {
    let all = keys(&kit, ["request", "sale", "orders", "holds", "outbox"]);
    let open = ["10", "0", "0", "3600000", "60000", "60000", "100"];
    raw_step(&kit, "sale_open", &all[1..4], &open).await.unwrap();
    for user in ["ann", "bob"] {
        raw_step(&kit, "sale_buy", &all, &["0", user, user]).await.unwrap();
    }
    raw_step(&kit, "sale_pay", &all[1..], &["bob", "bob"]).await.unwrap();
    command(&kit, "UNLINK", &all[1], &[]).await;
    command(&kit, "UNLINK", &all[3], &[]).await;
    raw_step(&kit, "sale_open", &all[1..4], &open).await.unwrap();
    let stats = raw_step(&kit, "sale_stats", &[all[1].clone(), all[4].clone()], &[]).await.unwrap();
    assert!(flat(&stats).starts_with("OK total 10 stock 8 held 1 paid 1"), "{}", flat(&stats));
    // An order that is none is said to be.
    command(&kit, "HSET", &all[2], &["ann", "\u{7f}"]).await;
    let corrupt = raw_step(&kit, "sale_pay", &all[1..], &["ann", "ann"]).await;
    assert!(matches!(corrupt, Err(Error::Corrupt(_))), "{corrupt:?}");
}

/// A database whose position was ahead of the outbox made it forget events that nobody had seen.
async fn a_position_ahead_of_the_outbox_forgets_nothing(kit: Kit) {
    let [outbox] = keys(&kit, ["outbox"]);
    let entry = ["5-1", "kind", "ordered", "order", "a", "user", "ann"];
    command(&kit, "XADD", &outbox, &entry).await;
    command(&kit, "PEXPIRE", &outbox, &["60000"]).await;
    let confirm = async |position: &str| {
        let reply =
            raw_step(&kit, "sale_confirm", std::slice::from_ref(&outbox), &[position]).await;
        flat(&reply.unwrap())
    };
    assert_eq!(confirm("5-2").await, "AHEAD last 5-1");
    assert_eq!(confirm("6-0").await, "AHEAD last 5-1");
    assert_eq!(confirm("5-1").await, "OK forgotten 1");
}

/// What stood under a marker and was no reply failed with the words of the interpreter.
async fn a_marker_that_is_none_is_corrupt(kit: Kit) {
    let keys = keys(&kit, ["request", "packed"]);
    command(&kit, "SET", &keys[0], &["\u{1}", "PX", "60000"]).await;
    let args = ["60000", "60000", "WRAP", "u8", "0", "1"];
    let result = raw_step(&kit, "counter_packed", &keys, &args).await;
    assert!(matches!(result, Err(Error::Corrupt(_))), "{result:?}");
}

/// One key that was no session, or no token, failed the end of all others of its user.
async fn what_is_no_session_keeps_none_from_being_revoked(kit: Kit) {
    let [index, bad, good] = keys(&kit, ["index", "bad", "good"]);
    let all = [index.clone(), bad.clone(), good.clone()];
    let set_up = async |fields: &[&str]| {
        command(&kit, "ZADD", &index, &["1e14", "bad", "1e14", "good"]).await;
        command(&kit, "PEXPIRE", &index, &["60000"]).await;
        command(&kit, "SET", &bad, &["x", "PX", "60000"]).await;
        command(&kit, "DEL", &good, &[]).await;
        command(&kit, "HSET", &good, fields).await;
        command(&kit, "PEXPIRE", &good, &["60000"]).await;
    };
    set_up(&["status", "ACTIVE"]).await;
    let args = ["stolen", "60000", "", "bad", "good"];
    let revoked = raw_step(&kit, "session_revoke", &all, &args).await.unwrap();
    assert_eq!(flat(&revoked), "REVOKED revoked_count 1");
    let status = command(&kit, "HGET", &good, &["status"]).await;
    assert_eq!(status.as_bytes(), Some(b"REVOKED".as_slice()));
    assert_eq!(command(&kit, "EXISTS", &bad, &[]).await.as_int(), Some(0));

    set_up(&["expires_at_ms", "100000000000000"]).await;
    let args = ["stolen", "all", "bad", "good"];
    let revoked = raw_step(&kit, "token_revoke", &all, &args).await.unwrap();
    assert_eq!(flat(&revoked), "REVOKED revoked_count 1");
    assert_eq!(command(&kit, "HEXISTS", &good, &["revoked_at_ms"]).await.as_int(), Some(1));
}

/// Both halves of a follow end by themselves: when one was gone, following or unfollowing again
/// changed nothing, and the other half stayed as it was.
async fn a_half_that_is_lost_is_told_again(kit: Kit) {
    let settings = FollowSettings { following_max: 10, followers_max: 10, ttl: super::HOUR };
    let follows = Follows::new(&kit, settings).unwrap();
    let part = |user: &str, part: &'static str| {
        let family = Family { purpose: "social.follows", version: 1 };
        kit.keys(family, Scope::from(user)).unwrap().key(part)
    };
    let counts = async || {
        let (following, _) = follows.counts("ann").await.unwrap();
        let (_, followers) = follows.counts("bob").await.unwrap();
        (following, followers)
    };
    assert_eq!(follows.follow("ann", "bob").await.unwrap(), Follow::New);
    command(&kit, "UNLINK", &part("ann", "following"), &[]).await;
    assert_eq!(follows.unfollow("ann", "bob").await.unwrap(), Unfollow::NotFollowed);
    assert_eq!(counts().await, (0, 0));
    assert_eq!(follows.follow("ann", "bob").await.unwrap(), Follow::New);
    command(&kit, "UNLINK", &part("bob", "followers"), &[]).await;
    assert_eq!(follows.follow("ann", "bob").await.unwrap(), Follow::Already);
    assert_eq!(counts().await, (1, 1));
}
