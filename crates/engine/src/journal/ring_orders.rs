//! The memory orders of the ring, under loom: `ring.rs`, compiled against atomics that may show any
//! value that their orders allow. Two writers reserve and complete in any order while the reader
//! takes what is complete: nothing is lost, doubled or seen half-way, and what one writer has seen
//! of the other comes after it.

mod sync {
    pub(super) use loom::sync::Mutex;
    pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

    pub(super) fn pass() {
        loom::thread::yield_now();
    }
}

// Compiled once more on purpose: against other primitives.
#[path = "ring.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod ring;

use loom::sync::Arc;
use ring::Ring;
use std::sync::atomic::{AtomicUsize, Ordering};

const PREEMPTIONS_MAX: usize = 4;

/// How many schedules met a slot that was reserved, or filled behind one that was not.
static INCOMPLETE: AtomicUsize = AtomicUsize::new(0);

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(check);
}

/// Takes all that is there from `next` on.
fn drain(ring: &Ring<Vec<u8>>, next: &mut u64, taken: &mut Vec<u8>) {
    while ring.pop(*next, |content| {
        assert_eq!(content.len(), 2, "what is taken is complete");
        taken.push(content[0]);
        content.clear();
    }) {
        *next += 1;
    }
    if ring.reserved() > *next {
        INCOMPLETE.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_is_complete_is_read_once_and_in_order() {
    model(|| {
        let ring = Arc::new(Ring::<Vec<u8>>::new(4));
        let (mut next, mut taken) = (0, Vec::new());
        // The slots of the last writers are those that the reader has emptied before.
        [b'x', b'y'].iter().for_each(|name| _ = ring.push(&mut vec![*name, 0]));
        drain(&ring, &mut next, &mut taken);
        let writer = |names: &'static [u8]| {
            let ring = ring.clone();
            let push = move |name: &u8| ring.push(&mut vec![*name, 0]);
            loom::thread::spawn(move || names.iter().map(push).collect::<Vec<u64>>())
        };
        let (first, second) = (writer(b"ab"), writer(b"c"));
        drain(&ring, &mut next, &mut taken);
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        drain(&ring, &mut next, &mut taken);
        assert_eq!((taken.len(), ring.reserved()), (5, 5));
        for (name, number) in b"abc".iter().zip(first.iter().chain(&second)) {
            assert_eq!(taken[*number as usize], *name, "the order is that of the reservations");
        }
        assert!(first[0] < first[1]);
    });
    assert!(INCOMPLETE.load(Ordering::Relaxed) > 0, "no schedule met an incomplete slot");
}
