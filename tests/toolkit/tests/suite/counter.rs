//! Counters: counted once, exact sums, declared widths, ids that never repeat.

use russet::counter::{
    Ids, Overflow, PackedCounters, PackedOutcome, ShardedCounter, Width, WindowCounter, Windows,
};
use russet::key::{Family, Scope};
use russet::{Error, Kit, ManualTime, Options, Request, RequestId};
use std::collections::HashSet;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    an_id_counts_once_for_each_counter
    a_window_counts_each_once
    a_request_counts_once
    counters_have_a_ttl
    shards_add_up
    shards_are_in_different_slots
    a_request_of_a_sharded_counter_counts_once
    packed_counters_keep_to_their_widths
    packed_counters_change_at_once
    packed_counters_have_a_ttl
    ids_are_unique
    ids_of_many_processes_are_unique
    ids_survive_the_loss_of_their_state
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const FAMILY: Family = Family { purpose: "counter", version: 1 };

async fn a_window_counts_each_once(kit: Kit) {
    let counter = WindowCounter::new(&kit, "n", Windows::of(YEAR).unwrap()).unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..20 {
                    seen.push(counter.add("a", 1, None).await.unwrap().count);
                }
                seen
            })
        })
        .collect();
    let mut seen = HashSet::new();
    for task in tasks {
        seen.extend(task.await.unwrap());
    }
    assert_eq!(seen.len(), 320, "each saw a count of its own");
    assert_eq!(counter.read("a", 0).await.unwrap().count, 320);
    assert_eq!(counter.add("a", -20, None).await.unwrap().count, 300);
}

async fn a_request_counts_once(kit: Kit) {
    let counter = WindowCounter::new(&kit, "n", Windows::of(YEAR).unwrap()).unwrap();
    let request = RequestId::random();
    for _ in 0..3 {
        assert_eq!(counter.add("a", 5, Some(&request)).await.unwrap().count, 5);
    }
    assert_eq!(counter.read("a", 0).await.unwrap().count, 5);
    assert!(matches!(counter.add("a", 0, None).await, Err(Error::Invalid(_))));
    assert!(matches!(counter.read("a", 2).await, Err(Error::Invalid(_))));
}

/// S0 §7, §26.2: INCR without a TTL is a key that never disappears.
async fn counters_have_a_ttl(kit: Kit) {
    let minute = Duration::from_secs(60);
    let counter = WindowCounter::new(&kit, "n", Windows::of(minute).unwrap()).unwrap();
    counter.add("a", 1, None).await.unwrap();
    let key = kit.keys(FAMILY, "a").unwrap().item("windows", "n");
    let ttl = kit.call(&Request::new("PTTL").key(&key)).await.unwrap().into_int().unwrap();
    assert!((60_000..=120_000).contains(&ttl), "{ttl}");
}

async fn shards_add_up(kit: Kit) {
    let windows = Windows::of(YEAR).unwrap();
    let counter = ShardedCounter::new(&kit, "n", windows, 8).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    counter.add("a", 2, None).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.exact("a", 0).await.unwrap().count, 400);
    let age_max = Duration::from_secs(3600);
    assert_eq!(counter.fast("a", 0, age_max).await.unwrap(), 400);
    counter.add("a", 1, None).await.unwrap();
    assert_eq!(counter.exact("a", 0).await.unwrap().count, 401);
    assert_eq!(counter.fast("a", 0, age_max).await.unwrap(), 400, "as old as allowed");
}

/// S0 §10: all shards carried the tenant's tag, and fell into one slot.
async fn shards_are_in_different_slots(kit: Kit) {
    let windows = Windows::of(YEAR).unwrap();
    let counter = ShardedCounter::new(&kit, "n", windows, 16).unwrap();
    for _ in 0..300 {
        counter.add("a", 1, None).await.unwrap();
    }
    let mut slots = HashSet::new();
    for shard in 0..16 {
        let key = kit.keys(FAMILY, Scope::from("a").shard(shard)).unwrap().item("windows", "n");
        let exists = kit.call(&Request::new("EXISTS").key(&key)).await.unwrap();
        assert_eq!(exists.as_int(), Some(1), "shard {shard} is never used");
        slots.insert(key.slot());
    }
    assert!(slots.len() > 12);
}

async fn a_request_of_a_sharded_counter_counts_once(kit: Kit) {
    let windows = Windows::of(YEAR).unwrap();
    let counter = ShardedCounter::new(&kit, "n", windows, 16).unwrap();
    for _ in 0..20 {
        let request = RequestId::random();
        for _ in 0..3 {
            counter.add("a", 1, Some(&request)).await.unwrap();
        }
    }
    assert_eq!(counter.exact("a", 0).await.unwrap().count, 20);
}

fn packed(kit: &Kit, overflow: Overflow) -> PackedCounters {
    let fields = [
        ("tiny", Width::unsigned(1).unwrap()),
        ("small", Width::unsigned(8).unwrap()),
        ("signed", Width::signed(8).unwrap()),
        ("wide", Width::unsigned(53).unwrap()),
    ];
    let name = format!("{overflow:?}");
    PackedCounters::new(kit, &name, fields, overflow, Duration::from_secs(60)).unwrap()
}

/// S0 §17: width and what happens beyond it are declared.
async fn packed_counters_keep_to_their_widths(kit: Kit) {
    let saturating = packed(&kit, Overflow::Saturate);
    let changes = [("small", 300), ("signed", -200), ("tiny", 5)];
    let added = saturating.add("a", &changes, None).await.unwrap();
    assert_eq!(added, PackedOutcome::Added(vec![255, -128, 1]));
    let wrapping = packed(&kit, Overflow::Wrap);
    let added = wrapping.add("a", &[("small", 300), ("signed", 200)], None).await.unwrap();
    assert_eq!(added, PackedOutcome::Added(vec![44, -56]));
    let most = (1 << 53) - 1;
    let added = wrapping.add("a", &[("wide", most)], None).await;
    assert!(matches!(added, Err(Error::Invalid(_))), "beyond what one call adds: {added:?}");
    for _ in 0..2 {
        let _ = saturating.add("a", &[("wide", 9_000_000_000_000_000)], None).await.unwrap();
    }
    assert_eq!(saturating.read("a").await.unwrap(), [1, 255, -128, most]);
    assert_eq!(saturating.read("b").await.unwrap(), [0, 0, 0, 0]);
    assert!(Width::unsigned(54).is_err() && Width::signed(0).is_err());
}

async fn packed_counters_change_at_once(kit: Kit) {
    let refusing = packed(&kit, Overflow::Refuse);
    let request = RequestId::random();
    for _ in 0..2 {
        let added = refusing.add("a", &[("small", 255), ("signed", 1)], Some(&request)).await;
        assert_eq!(added.unwrap(), PackedOutcome::Added(vec![255, 1]));
    }
    let added = refusing.add("a", &[("signed", 1), ("small", 1)], None).await.unwrap();
    assert_eq!(added, PackedOutcome::Overflow { field: "small".into() });
    assert_eq!(refusing.read("a").await.unwrap(), [0, 255, 1, 0], "nothing was changed");
    let twice = refusing.add("a", &[("signed", 1), ("signed", 1)], None).await;
    assert!(matches!(twice, Err(Error::Invalid(_))));
}

async fn packed_counters_have_a_ttl(kit: Kit) {
    let counters = packed(&kit, Overflow::Saturate);
    let _ = counters.add("a", &[("small", 1)], None).await.unwrap();
    let key = kit.keys(FAMILY, "a").unwrap().item("packed", "Saturate");
    let ttl = kit.call(&Request::new("PTTL").key(&key)).await.unwrap().into_int().unwrap();
    assert!((1..=60_000).contains(&ttl), "{ttl}");
}

async fn ids_are_unique(kit: Kit) {
    let ids = Ids::new(&kit, "orders", 10).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let ids = ids.clone();
            tokio::spawn(async move {
                let mut made = Vec::new();
                for _ in 0..100 {
                    made.push(ids.next().await.unwrap());
                }
                made
            })
        })
        .collect();
    let mut made = HashSet::new();
    for task in tasks {
        made.extend(task.await.unwrap());
    }
    assert_eq!(made.len(), 800);
    assert!(made.iter().all(|id| i64::try_from(id.value()).is_ok()), "the sign bit is 0");
    // They suit sharding: no remainder is much more frequent.
    for shard in 0..8 {
        let count = made.iter().filter(|id| id.value() % 8 == shard).count();
        assert!((50..=150).contains(&count), "{count} of 800 in shard {shard}");
    }
}

async fn ids_of_many_processes_are_unique(kit: Kit) {
    let mut made = HashSet::new();
    for _ in 0..10 {
        let process = Ids::new(&kit, "orders", 7).unwrap();
        for _ in 0..20 {
            assert!(made.insert(process.next().await.unwrap()));
        }
    }
    let other = Ids::new(&kit, "invoices", 7).unwrap();
    let _same_numbers_are_fine_here = other.next().await.unwrap();
}

/// Lossy failover, at its worst: the whole state is gone.
async fn ids_survive_the_loss_of_their_state(kit: Kit) {
    let key = kit.keys(FAMILY, "orders").unwrap().key("ids");
    let mut made = HashSet::new();
    for _ in 0..5 {
        let ids = Ids::new(&kit, "orders", 50).unwrap();
        for _ in 0..100 {
            assert!(made.insert(ids.next().await.unwrap()));
        }
        // What was given out is not ahead of the jump that follows.
        let wait = Request::new("DEL").key(&key);
        kit.call(&wait).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn at_new_year() -> (ManualTime, Kit) {
    let time = ManualTime::new();
    time.set_ms(1_798_761_600_000);
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    (time, kit)
}

/// S0 Lab 2: TTL is the window and a buffer; the window before can be read.
#[tokio::test]
async fn windows_follow_each_other() {
    let (time, kit) = at_new_year();
    let minute = Duration::from_secs(60);
    let windows = Windows::of(minute).unwrap().keep(3).unwrap();
    let counter = WindowCounter::new(&kit, "n", windows).unwrap();
    for n in 1..=6 {
        let count = counter.add("a", n, None).await.unwrap();
        assert_eq!((count.count, count.ends_after), (n, minute));
        assert_eq!(counter.read("a", 1).await.unwrap().count, n - 1);
        assert_eq!(counter.read("a", 2).await.unwrap().count, (n - 2).max(0));
        time.advance(minute);
    }
    let key = kit.keys(FAMILY, "a").unwrap().item("windows", "n");
    let fields = kit.call(&Request::new("HLEN").key(&key)).await.unwrap().into_int().unwrap();
    assert!(fields <= 3, "{fields} windows are kept");
    time.advance(3 * minute);
    let exists = kit.call(&Request::new("EXISTS").key(&key)).await.unwrap();
    assert_eq!(exists.as_int(), Some(0));
}

/// S3 ids: the time was the client's, and local; more than 2^32 of a day ran into it.
/// redis-id-generator 2: ids repeated when the counter expired. The clock goes back, stands still,
/// and ids go on.
#[tokio::test]
async fn ids_survive_clock_steps() {
    let (time, kit) = at_new_year();
    let mut made = HashSet::new();
    for step in 0..200 {
        let ids = Ids::new(&kit, "orders", 4096).unwrap();
        for _ in 0..10 {
            assert!(made.insert(ids.next().await.unwrap()));
        }
        match step % 3 {
            0 => time.set_ms(time.now_ms() - 3_600_000),
            1 => time.advance(Duration::from_secs(1800)),
            _ => {}
        }
    }
}

/// S3 ids: the low bits counted the orders of the day, for everyone to see.
#[tokio::test]
async fn ids_do_not_show_how_many_there_are() {
    let (time, kit) = at_new_year();
    let low_bits = |id: u64| id & 0x3f_ffff;
    // A shop with one order now and then, and one with many at once.
    for (block, pause) in [(1, Duration::from_secs(60)), (1000, Duration::ZERO)] {
        let ids = Ids::new(&kit, &format!("orders-{block}"), block).unwrap();
        let mut made = Vec::new();
        for _ in 0..200 {
            made.push(low_bits(ids.next().await.unwrap().value()));
            time.advance(pause);
        }
        let small = made.iter().filter(|bits| **bits < 10_000).count();
        assert!(small < 20, "{small} of 200 could be a count");
        let near = made.windows(2).filter(|two| two[0].abs_diff(two[1]) < 1000).count();
        assert!(near < 20, "{near} of 200 follow each other");
    }
}

/// S3 ids: more than 2^32 of a day ran into the bits of the time. Here are more blocks than a
/// millisecond has positions for, and the next one is taken.
#[tokio::test]
async fn ids_survive_overflow() {
    let (_time, kit) = at_new_year();
    let first = Ids::new(&kit, "orders", 4096).unwrap().next().await.unwrap();
    let mut made = HashSet::new();
    for _ in 0..3000 {
        let ids = Ids::new(&kit, "orders", 4096).unwrap();
        assert!(made.insert(ids.next().await.unwrap()));
    }
    let last = Ids::new(&kit, "orders", 4096).unwrap().next().await.unwrap();
    assert!(last.made_at() > first.made_at(), "the next millisecond is taken");
}

/// S3 ids: every day left a key for ever. Here one key has all it takes, with a TTL, and ids do not
/// repeat once it is gone.
#[tokio::test]
async fn a_generator_that_is_not_used_is_gone() {
    let (time, kit) = at_new_year();
    let day = Duration::from_secs(24 * 60 * 60);
    let keys = async || {
        let ttl = Request::new("PTTL").key(&kit.keys(FAMILY, "orders").unwrap().key("ids"));
        // First, since an expired key is counted until somebody looks for it.
        let has_ttl = kit.call(&ttl).await.unwrap().into_int().unwrap() > 0;
        (kit.call(&Request::new("DBSIZE")).await.unwrap().as_int(), has_ttl)
    };
    let mut made = HashSet::new();
    for _ in 0..3 {
        let ids = Ids::new(&kit, "orders", 1).unwrap();
        for _ in 0..10 {
            assert!(made.insert(ids.next().await.unwrap()));
        }
        assert_eq!(keys().await, (Some(1), true));
        time.advance(2 * day);
        assert_eq!(keys().await, (Some(0), false));
    }
}

/// A replica takes over that knows nothing of the last blocks, by a clock that is behind.
#[tokio::test]
async fn ids_survive_a_lossy_failover() {
    let mut made = HashSet::new();
    let mut state: Option<Vec<russet::Reply>> = None;
    for server in 0..5 {
        // Another engine has another run_id. Each clock is ten seconds behind the one before.
        let (time, kit) = at_new_year();
        time.set_ms(time.now_ms() - server * 10_000);
        let key = kit.keys(FAMILY, "orders").unwrap().key("ids");
        if let Some(fields) = state.take() {
            let set = Request::new("HSET").key(&key);
            let set = fields.iter().fold(set, |set, it| set.arg(it.as_bytes().unwrap()));
            kit.call(&set).await.unwrap();
        }
        for block in 0..10 {
            let ids = Ids::new(&kit, "orders", 100).unwrap();
            for _ in 0..100 {
                assert!(made.insert(ids.next().await.unwrap()));
            }
            if block == 2 {
                // All that is replicated.
                let all = kit.call(&Request::new("HGETALL").key(&key)).await.unwrap();
                state = Some(all.into_list().unwrap());
            }
            time.advance(Duration::from_millis(1));
        }
    }
}

/// A request id was remembered without the counter: the second counter of a subject stayed as it
/// was.
async fn an_id_counts_once_for_each_counter(kit: Kit) {
    let request = RequestId::from("one id");
    for name in ["views", "revenue"] {
        let counter = WindowCounter::new(&kit, name, Windows::of(YEAR).unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(counter.add("a", 5, Some(&request)).await.unwrap().count, 5, "{name}");
        }
    }
}
