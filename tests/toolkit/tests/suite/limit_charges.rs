//! Charges: made once whoever repeats them, and given back up to what they cost.

use crate::raw_step;
use russet::key::{Family, Key};
use russet::limit::{Limit, Limiter, Outage, Period};
use russet::{Error, Kit, Reply, Request};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_repeated_charge_has_its_slots_once
    two_limits_do_not_share_a_key
    a_refund_is_no_more_than_the_charge
    a_refund_is_known_for_as_long_as_the_charge_counts
}

const FAMILY: Family = Family { purpose: "limit", version: 1 };

fn keys(kit: &Kit, count: usize) -> Vec<Key> {
    let keys = kit.keys(FAMILY, "ann").unwrap();
    (0..count).map(|index| keys.item("charge", index.to_string())).collect()
}

fn status(reply: &Reply) -> &[u8] {
    reply.as_list().unwrap()[0].as_bytes().unwrap()
}

/// The charge as the reply has it, and the first of its numbers: what remains.
fn charged(reply: &Reply) -> (String, i64) {
    let parts = reply.as_list().unwrap();
    let charge = String::from_utf8(parts[2].as_bytes().unwrap().to_vec()).unwrap();
    (charge, parts[4].as_list().unwrap()[0].as_int().unwrap())
}

/// S2 §13: a reused id reports 2 and holds 1. A client that sends its call again with the charge
/// that it had, and no request id, has what it had.
async fn a_repeated_charge_has_its_slots_once(kit: Kit) {
    for kind in ["LOG", "CONCURRENCY"] {
        let keys = keys(&kit, 2);
        let take = async |charge: &str, cost: &str| {
            let args = ["0", charge, "TAKE", cost, kind, "4", "60000", "0"];
            raw_step(&kit, "limit_check", &keys, &args).await.unwrap()
        };
        for _ in 0..3 {
            assert_eq!(charged(&take("one", "2").await), ("one/2".to_owned(), 2), "{kind}");
        }
        // Of a larger one, what is missing.
        assert_eq!(charged(&take("one", "3").await).1, 1, "{kind}");
        assert_eq!(status(&take("two", "2").await), b"DENIED", "{kind}");
        assert_eq!(charged(&take("two", "1").await).1, 0, "{kind}");
        // Who has places keeps them when there are no others.
        assert_eq!(charged(&take("one", "3").await).1, 0, "{kind}");
        kit.call(&Request::new("DEL").key(&keys[1])).await.unwrap();
    }
}

async fn two_limits_do_not_share_a_key(kit: Kit) {
    let mut keys = keys(&kit, 3);
    keys[2] = keys[1].clone();
    let args = ["0", "c", "TAKE", "1", "LOG", "4", "1000", "0", "LOG", "4", "1000", "0"];
    let refused = raw_step(&kit, "limit_check", &keys, &args).await;
    assert_eq!(refused, Err(Error::Invalid("limits".into())));
}

/// A program that gave back more than it had been charged made room for others.
async fn a_refund_is_no_more_than_the_charge(kit: Kit) {
    for (kind, window) in
        [("WINDOW", "60000"), ("QUOTA", "DAY"), ("SLIDING", "60000"), ("BUCKET", "60000")]
    {
        let keys = keys(&kit, 3);
        let extra = if kind == "BUCKET" { "10" } else { "0" };
        let take = async |charge: &str, cost: &str| {
            let args = ["0", charge, "TAKE", cost, kind, "10", window, extra];
            let keys = [keys[0].clone(), keys[2].clone()];
            raw_step(&kit, "limit_check", &keys, &args).await.unwrap()
        };
        let _others = take("others", "5").await;
        let own = take("own", "2").await;
        let numbers = own.as_list().unwrap()[4].as_list().unwrap().to_vec();
        let of_window = numbers[3].as_int().unwrap().to_string();
        let (charge, _left) = charged(&own);
        let refund = async |charge: &str, amount: &str| {
            let args = ["0", charge, amount, kind, "10", window, &of_window];
            raw_step(&kit, "limit_refund", &keys, &args).await
        };
        assert_eq!(refund(&charge, "3").await, Err(Error::Invalid("amount".into())), "{kind}");
        // Without what it cost it is no charge.
        assert_eq!(refund("own", "2").await, Err(Error::Invalid("charge".into())), "{kind}");
        let returned = refund(&charge, "2").await.unwrap();
        assert_eq!(returned.as_list().unwrap()[2].as_list().unwrap()[0].as_int(), Some(2));
        assert_eq!(charged(&take("last", "1").await).1, 4, "{kind}");
        kit.call(&Request::new("DEL").key(&keys[2])).await.unwrap();
    }
}

/// A second refund after the request was forgotten, of a quota that lasts longer, counted again.
async fn a_refund_is_known_for_as_long_as_the_charge_counts(kit: Kit) {
    let limits = [Limit::quota("month", 10, Period::Month).unwrap()];
    let limiter = Limiter::new(&kit, "api", limits, Outage::Deny).unwrap();
    let decision = limiter.check("ann", 2, None).await.unwrap();
    let charge = decision.charge().unwrap();
    assert_eq!(limiter.refund(charge).await.unwrap().returned, [2]);
    let marker = kit.keys(FAMILY, "ann").unwrap().key("request");
    let pattern = [marker.as_bytes(), b"*"].concat();
    // A node of a cluster knows its own only: there may be none here.
    let found = kit.call(&Request::new("KEYS").arg(pattern)).await.unwrap().into_list().unwrap();
    let month = Duration::from_secs(30 * 86_400);
    for key in found {
        let asked = Request::new("PTTL").arg(key.into_bytes().unwrap().unwrap());
        let ttl_ms = kit.call(&asked).await.unwrap().as_int().unwrap();
        assert!(ttl_ms > month.as_millis() as i64, "forgotten after {ttl_ms} ms");
    }
}
