//! Numbers as programs in other languages may spell them: a step takes one spelling, and refuses
//! all others before it writes anything.

use crate::raw_step;
use russet::key::{Family, Key};
use russet::{Error, Kit, Reply, Request};
use std::collections::BTreeSet;

russet_toolkit_tests::on_every_backend! {
    an_odd_number_is_refused_before_anything_is_written
    a_transition_is_made_whole_or_not_at_all
    packed_changes_that_overlap_are_all_made_or_none
}

const FAMILY: Family = Family { purpose: "numbers", version: 1 };

/// What Lua reads as a number, and commands do not, or not as the same one.
const ODD: &[&str] = &[
    "1e300",
    "nan",
    "inf",
    "-0",
    "0x10",
    " 5",
    "5 ",
    "1e1",
    "05",
    "+5",
    "1.5",
    "9007199254740993",
    "x",
];
/// How many of them each argument is tried with; others with others.
const TRIES: usize = 3;
/// The same where fractions are allowed.
const ODD_FRACTIONS: &[&str] = &["1e300", "nan", "inf", "0x1", " 0.5", "0.5 ", "x"];

/// Each step that takes numbers: its name, how many keys it has, and a call that it takes. `#`
/// marks whole numbers, `~` fractions; `_` is nothing, `T` a token of 32 bytes.
const CALLS: &str = "
    cache_drop 3 #1 #1000
    cache_put 3 _ value v json _ #1000 #2000 #1 #1
    cache_read 2 t #1000 _ ~0.5
    cache_renew 1 t #1000
    cache_tag 1 t #1000
    counter_add 2 #1000 #1 #1000 #2
    counter_ids 1 #1 server #10 #1000
    counter_packed 2 #1000 #1000 FAIL u8 #0 #1 u8 #8 #1
    counter_read 1 #1000 #1
    daily_mark 2 #1 #900000000000000 #1000 #10 ann
    dedupe_first 3 #1000 id #1 #900000000000000 #10
    dedupe_has 2 id #1 #900000000000000
    draft_discount 3 #1000 TAX #1 #1 #1000
    draft_item 3 #1000 sku #1 #1 #1 #10 #1000
    expiry_put 2 item state #1000 #10 #1000
    expiry_read 2 #1
    expiry_remove 2 item #1
    expiry_renew 2 item #1000 #1000
    expiry_take 3 #1000 #1
    feed_begin 3 post #10 #10 #1000
    feed_progress 2 post cursor #1000
    feed_push 1 post #1 #10 #1000
    feed_scroll 1 #1 #1 post
    filter_add 2 bits #1000 #10 ~0.01 t #1 #2
    filter_complete 2 bits #1000 #10 ~0.01 #64 _
    flag_audit 1 #1
    flag_change 2 flag actor set #1000 #10 #10 1 switch on
    flag_member_add 1 group ann #1000 #10
    follow_apply 2 ann SET #1 #10 #1000 #1000
    follow_change 3 bob SET #10 #1000
    follow_confirm 1 bob #1
    follow_mutual 2 #1
    follow_page 1 #1 #1 bob
    idempotency_claim 1 owner print #1000 #2000
    idempotency_complete 1 owner body #1000
    idempotency_fail 1 owner FAILED_FINAL why #1000
    idempotency_mark 1 t #1000
    idempotency_renew 1 owner #1000
    index_change 1 SET ann #10 #1000
    index_combine 1 ALL #1
    index_move 2 ann #10 #1000
    index_scan 1 0 #1
    jobs_claim 9 #1000 T #1 #1000 5 #1 #1000 #10 5
    jobs_cron 9 name #900000000000 pay #1 _ #10 #1000
    jobs_extend 8 receipt #1000 #1000
    jobs_letters 2 #1 #1
    jobs_requeue 10 #1000 id #10 #1000 #10
    jobs_retry 10 #1000 T:0:id #1 why #1 #1000 #10 #10
    jobs_schedule 10 #1000 id pay #1 #0 #1 _ #10 #1000 #10
    jobs_stats 7 #10
    lease_acquire 1 t #1000 #1000
    lease_fair_acquire 3 t #1000 #1000 #1000 #10
    lease_fair_release 3 t #1000
    lease_fenced_write 1 #1 #1 #1000 1 v
    lease_hold_renew 4 o:h #1000 #1000 #1
    lease_permit_acquire 2 t #1000 #1000 #10
    lease_permit_renew 2 t #1000 #1000 #1
    lease_read 4 o:h #1000 #1000 #10
    lease_release 1 t #1000
    lease_renew 1 t #1000 #1000 #1
    lease_write 4 o:h #1000 #1000 #10 #1000
    like 1 ann SET #10 #1000
    likes_read 1 #1 FIRST
    limit_bucket 2 #1000 c #1 #10 #1000 #10
    limit_check 3 #1000 c TAKE #1 WINDOW #10 #1000 0 LOG #10 #1000 0
    limit_check 3 #1000 c TAKE #1 BUCKET #10 #1000 #10 QUOTA #10 DAY #0
    limit_refund 3 #1000 c/1 #1 WINDOW #10 #1000 #1
    limit_release 2 c/1 #1
    limit_renew 2 c/1 #1 #1000
    list_pop 2 #1000 oldest #1000
    list_push 2 #1000 pay #10 reject #1000
    nearby_place 1 SET place ~1.5 ~1.5 #10 #1000
    nearby_search 1 ~1.5 ~1.5 ~10 #1 ~1 place #1
    object_increment 2 #1000 field #1 #0 #10
    object_touch 1 #1000
    object_write 2 #1000 UPDATE #1 #1000 KEEP #1 #1 field v #1000
    presence_beat 1 ann #1000 #10
    presence_list 1 #1000 #1
    ranking_add 4 #1000 ann #1 ADD #0 #0 #1000 #10
    ranking_finish 2 #0 #1000
    ranking_near 2 _ entry #1 #1 #0 #0
    ranking_page 1 #0 #1 #0 #0
    ranking_remove 3 ann #0 #0
    recent_list 1 #1
    recent_push 2 #1000 item #10 #1000 KEEP
    reliable_push 8 #1000 id pay #10 #1000
    reliable_requeue 8 #1000 id #10 #1000
    reliable_retry 8 #1000 T:0:id why #1 #1000 #10
    reliable_take 7 #1000 T #1 #1000 #5 #1000 #10
    reset_issue 1 digest tenant subject #1000
    sale_open 3 #1 #0 #0 #1000 #0 #1000 #10
    sale_outbox 1 - #1
    sale_reclaim 4 #1
    session_create 4 m user tenant ACTIVE BASIC #1000 #1000 #5 reject _ _ _
    session_mfa_begin 1 digest #1000 #5
    session_mfa_fail 2 #1000 #5
    session_mfa_verify 2 #1000 digest #5
    session_revoke 2 why #1000 - m
    session_touch 2 m #1000 #25 0
    sign_in 2 #1 #900000000000000 #1 #1 #1000
    sign_in_streak 1 #1 #900000000000000 #1
    state_apply 2 #1000 B A #0 #1000 #1 ge n ~1 set a 1 add n #1
    state_create 2 #1000 v #1000
    state_index_find 2 v _ #1
    state_index_put 5 #1000 id v #1000 #10 #0 f v
    state_index_sweep 3 #1
    state_open 2 #1000 A #1000 f v
    stream_add 2 #1000 pay #10 #1000
    stream_claim 3 #1000 #1 #1000 #5 #1000 #10
    stream_extend 1 1-1\u{a0}1 #1000
    stream_letters 1 - #1
    stream_requeue 3 #1000 1-1 #10 #1000
    stream_retry 3 #1000 1-1\u{a0}1 #1 why #1 #1000 #1000 #10
    token_deny 1 #1000 why
    token_issue 2 m tenant subject access scopes #1000 #1 #5
    visitors_visit 1 #1 #900000000000000 #1000 ann
";

const NONE: &[&str] = &[];

/// An argument of a call, and what it must not be.
struct Arg {
    text: String,
    odd: &'static [&'static str],
}

impl Arg {
    fn read(arg: &str) -> Arg {
        let mut arg = arg.replace('\u{a0}', " ");
        if arg == "T" || arg.starts_with("T:") {
            arg.replace_range(..1, &"t".repeat(32));
        }
        let (text, odd) = match arg.strip_prefix('#') {
            Some(text) => (text, ODD),
            None => match arg.strip_prefix('~') {
                Some(text) => (text, ODD_FRACTIONS),
                None => (if arg == "_" { "" } else { arg.as_str() }, NONE),
            },
        };
        Arg { text: text.to_owned(), odd }
    }
}

/// A step that has written something when it finds out has written half, as when
/// `state_apply` and `counter_packed` took `0x10` and failed at their second change.
async fn an_odd_number_is_refused_before_anything_is_written(kit: Kit) {
    let mut number = 0;
    for line in CALLS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut args = line.split(' ');
        let (step, keys) = (args.next().unwrap(), args.next().unwrap().parse().unwrap());
        let args: Vec<Arg> = args.map(Arg::read).collect();
        for (position, arg) in args.iter().enumerate() {
            for odd in arg.odd.iter().cycle().skip(number as usize).take(arg.odd.len().min(TRIES)) {
                number += 1;
                let keys = keys_of(&kit, number, keys);
                let mut texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                texts[position] = odd;
                let refused = raw_step(&kit, step, &keys, &texts).await;
                let what = format!("{step} with {odd:?} as argument {}", position + 1);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{what}: {refused:?}");
                assert_eq!(written(&kit, &keys).await, 0, "{what} has written something");
            }
        }
    }
}

/// No step that takes numbers is missing above.
#[test]
fn every_step_that_takes_numbers_is_tried() {
    let tried: BTreeSet<&str> =
        CALLS.lines().filter_map(|line| line.trim().split(' ').next()).collect();
    let takes_numbers =
        |source: &str| source.contains("whole(ARGV") || source.contains("decimal(ARGV");
    let missing: Vec<&str> = russet::step::all()
        .filter(|step| takes_numbers(step.source()) && !tried.contains(step.name()))
        .map(|step| step.name())
        .collect();
    // Only asked of a filter that is there.
    assert_eq!(missing, ["filter_has"]);
}

fn keys_of(kit: &Kit, number: u32, count: usize) -> Vec<Key> {
    let keys = kit.keys(FAMILY, number.to_string()).unwrap();
    (0..count).map(|index| keys.item("k", index.to_string())).collect()
}

async fn written(kit: &Kit, keys: &[Key]) -> i64 {
    let exists = keys.iter().fold(Request::new("EXISTS"), |request, key| request.key(key));
    kit.call(&exists).await.unwrap().as_int().unwrap()
}

/// A field was set, and then what it was set to was no number to add to.
async fn a_transition_is_made_whole_or_not_at_all(kit: Kit) {
    let keys = keys_of(&kit, 0, 2);
    let call = async |args: &[&str]| raw_step(&kit, args[0], &keys, &args[1..]).await;
    call(&["state_open", "0", "A", "60000", "n", "1"]).await.unwrap();
    let apply = ["state_apply", "0", "B", "A", "0", "0", "0"];
    for (changes, is_made) in [
        (["set", "n", "many", "add", "n", "1"], false),
        (["set", "n", "9000000000000000", "add", "n", "1"], false),
        (["set", "n", "8", "add", "n", "-3"], true),
    ] {
        let made = call(&[apply.as_slice(), &changes].concat()).await;
        assert_eq!(made.is_ok(), is_made, "{made:?}");
        let read = Request::new("HMGET").key(&keys[1]).arg("n").arg("state").arg("version");
        let read = kit.call(&read).await.unwrap().into_list().unwrap();
        let text = |text: &str| Reply::Text(text.into());
        let wanted = if is_made { ["5", "B", "2"] } else { ["1", "A", "1"] };
        assert_eq!(read, wanted.map(text));
    }
}

/// Each change fits what is stored, but not what the one before it leaves.
async fn packed_changes_that_overlap_are_all_made_or_none(kit: Kit) {
    let keys = keys_of(&kit, 0, 2);
    let changes = ["0", "60000", "FAIL", "u8", "8", "1", "u8", "0", "200", "u8", "0", "100"];
    let refused = raw_step(&kit, "counter_packed", &keys, &changes).await.unwrap();
    assert_eq!(refused.as_list().unwrap()[0], Reply::Text(b"OVERFLOW".to_vec()));
    assert_eq!(written(&kit, &keys).await, 0);
    let made = raw_step(&kit, "counter_packed", &keys, &changes[..9]).await.unwrap();
    assert_eq!(made.as_list().unwrap()[0], Reply::Text(b"OK".to_vec()));
    let _ = raw_step(&kit, "counter_packed", &keys, &changes).await.unwrap();
    let stored = kit.call(&Request::new("GET").key(&keys[1])).await.unwrap();
    assert_eq!(stored.into_bytes().unwrap(), Some(vec![200, 1]));
}
