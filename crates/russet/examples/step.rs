//! A step of a program's own: points that are earned once per order, however often the order is
//! reported. `RUSSET_URL` names a server; without it, it runs in this process.

use russet::key::{Family, Scope};
use russet::step::{Step, Takes, WithRequestId};
use russet::{Kit, RequestId};
use std::time::Duration;

const POINTS: Family = Family { purpose: "points", version: 1 };
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

static EARN: Step<WithRequestId> = Step::declare(
    "points_earn",
    Takes { keys: &["balance", "history"], args: &["order", "count", "ttl_ms"] },
    "local count, ttl = whole(count, 1, 1e6), whole(ttl_ms, 1, 1e12)
     if not count or not ttl then return refuse('count, ttl_ms') end
     local total = redis.call('INCRBY', balance, count)
     redis.call('LPUSH', history, order)
     redis.call('LTRIM', history, 0, 99)
     redis.call('PEXPIRE', balance, ttl)
     redis.call('PEXPIRE', history, ttl)
     return {'OK', 'total', total}",
);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let user = format!("example-{}", std::process::id());
    let keys = kit.keys(POINTS, Scope::from("acme").and(&user))?;
    for (order, count) in [("order-1", 10), ("order-2", 5), ("order-1", 10)] {
        let call = kit.dedup(&RequestId::from(order), &EARN, &keys);
        let call = call.key(keys.key("balance")).key(keys.key("history"));
        let reply = call.arg(order).arg(count).arg(YEAR).run().await?;
        println!("{order}: {} points when it was counted", reply.int("total")?);
    }
    Ok(())
}
