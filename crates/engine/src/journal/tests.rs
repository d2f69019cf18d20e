//! The order of frames, what is deferred, and who waits.

use super::*;
use crate::record::Records;
use std::sync::atomic::AtomicUsize;

fn journal(mode: Mode) -> Journal {
    let journal = Journal::new(Arc::default());
    journal.set_mode(mode);
    journal
}

fn frame(text: &str) -> Encoded {
    let mut records = Records::default();
    records.set_on(true);
    records.push(0, text.split(' '));
    records.end_unit();
    std::mem::take(records.encoded_mut())
}

/// The names of commands that are complete from `next` on.
fn taken(journal: &Journal, next: &mut u64) -> Vec<String> {
    let mut names = Vec::new();
    *next = journal.take(*next..u64::MAX, |frame| {
        names.extend(frame.iter().map(|it| String::from_utf8_lossy(it.name()).into_owned()));
        true
    });
    names
}

#[test]
fn frames_come_in_the_order_of_their_offsets() {
    let journal = journal(Mode::Lazy);
    let offsets: Vec<u64> =
        ["a 1", "b 2", "c 3"].iter().map(|text| journal.append(&mut frame(text))).collect();
    assert_eq!(offsets, [1, 2, 3]);
    let mut next = 0;
    assert_eq!(taken(&journal, &mut next), ["a", "b", "c"]);
    assert_eq!((next, taken(&journal, &mut next).len()), (3, 0));
    assert!(journal.backlog_bytes() > 0);
    journal.set_durable(3, journal.backlog_bytes());
    assert_eq!((journal.durable(), journal.backlog_bytes()), (3, 0));
}

#[test]
fn many_writers_fill_the_ring_again_and_again() {
    const WRITERS: usize = 3;
    const FRAMES: usize = 4 * FRAMES_MAX;
    let journal = &journal(Mode::Lazy);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in 0..FRAMES {
                    journal.append(&mut frame(&format!("{writer} {number}")));
                }
            });
        }
        let (mut next, mut seen) = (0, [0; WRITERS]);
        while next < (WRITERS * FRAMES) as u64 {
            next = journal.take(next..u64::MAX, |frame| {
                for record in frame.iter() {
                    let args = record.args();
                    let number = |at| std::str::from_utf8(args.as_args().at(at)).unwrap().parse();
                    let writer: usize = number(0).unwrap();
                    assert_eq!(number(1), Ok(seen[writer]), "a writer's own order is kept");
                    seen[writer] += 1;
                }
                true
            });
        }
    });
    assert!(!journal.barriers().is_up(Barrier::Backlog), "all of it was taken");
}

/// What depends on a write must not leave before it, nor before what was to leave earlier.
#[test]
fn what_is_deferred_is_done_in_order_when_it_is_durable() {
    let journal = journal(Mode::Strict);
    let done = Arc::new(Mutex::new(Vec::new()));
    let defer = |offset, name: &'static str| {
        let done = done.clone();
        let action = move || {
            lock(&done).push(name);
            None
        };
        journal.defer(offset, Box::new(action));
    };
    defer(0, "at once");
    assert_eq!(*lock(&done), ["at once"]);
    let first = journal.append(&mut frame("SET"));
    let second = journal.append(&mut frame("SET"));
    defer(second, "second");
    defer(0, "behind it");
    defer(first, "first, but later");
    assert_eq!(lock(&done).len(), 1);
    journal.set_durable(first, 0);
    assert_eq!(lock(&done).len(), 1, "all of them wait for the second");
    journal.set_durable(second, 0);
    assert_eq!(lock(&done)[1..], ["second", "behind it", "first, but later"]);
    let third = journal.append(&mut frame("SET"));
    defer(third, "no longer strict");
    assert_eq!(journal.deferred_count().waiting, 1);
    journal.set_mode(Mode::Lazy);
    assert_eq!(lock(&done).last(), Some(&"no longer strict"));
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The first of many that was woken took the processor of the thread that had yet to tell the
/// others.
#[test]
fn nobody_is_woken_before_all_are_told() {
    const CLIENTS: usize = 5;
    let journal = journal(Mode::Strict);
    let (told, woken) = (Arc::<Woken>::default(), Arc::<Woken>::default());
    let offset = journal.append(&mut frame("SET"));
    for _ in 0..CLIENTS {
        let (told, woken) = (told.clone(), woken.clone());
        let action = move || {
            assert_eq!(woken.0.load(Ordering::SeqCst), 0);
            told.wake();
            Some(woken as Arc<dyn Wake>)
        };
        journal.defer(offset, Box::new(action));
    }
    assert_eq!(journal.deferred_count(), DeferredCount { waiting: CLIENTS, released: 0 });
    journal.set_durable(offset, 0);
    let count = |who: &Woken| who.0.load(Ordering::SeqCst);
    assert_eq!((count(&told), count(&woken)), (CLIENTS, CLIENTS));
    assert_eq!(journal.deferred_count(), DeferredCount { waiting: 0, released: CLIENTS as u64 });
}

/// The deadline is so far that the test would not end without the wake-up.
#[test]
fn the_reader_sleeps_until_as_many_wait_as_it_expects() {
    let journal = &journal(Mode::Strict);
    let offset = journal.append(&mut frame("SET"));
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            journal.set_reader(Some(std::thread::current()));
            let deadline = Instant::now() + std::time::Duration::from_secs(3600);
            journal.await_deferred(2, deadline)
        });
        (0..2).for_each(|_| journal.defer(offset, Box::new(|| None)));
        assert_eq!(reader.join().unwrap(), 2);
    });
    let now = Instant::now();
    assert_eq!(journal.await_deferred(3, now), 2, "nobody else comes before the deadline");
}

#[test]
fn writers_wait_while_too_much_is_waiting() {
    let journal = journal(Mode::Lazy);
    let writer = Arc::<Woken>::default();
    assert!(!journal.delay(writer.clone()));
    let mut large = frame(&"x".repeat(1000));
    journal.set_backlog_bytes_max(500);
    let offset = journal.append(&mut large);
    assert!(journal.barriers().is_up(Barrier::Backlog) && !journal.barriers().may_expire());
    assert!(journal.delay(writer.clone()));
    journal.raise(Barrier::Late, true);
    journal.set_durable(offset, journal.backlog_bytes());
    assert_eq!(writer.0.load(Ordering::SeqCst), 0, "it is late as well");
    journal.raise(Barrier::Late, false);
    assert_eq!(writer.0.load(Ordering::SeqCst), 1);
    assert!(journal.barriers().are_down() && journal.barriers().may_expire());
}

/// The barrier stayed up for ever: what was waiting was gone before it was up, and nobody looked
/// again.
#[test]
fn nobody_is_held_back_for_what_is_gone() {
    let journal = journal(Mode::Strict);
    let offset = journal.append(&mut frame(&"x".repeat(1000)));
    journal.backlog_bytes_max.store(500, Ordering::Relaxed);
    let mut has_fallen = false;
    journal.look_at_backlog_and(|| {
        if !std::mem::replace(&mut has_fallen, true) {
            journal.set_durable(offset, journal.backlog_bytes());
        }
    });
    assert!(has_fallen && journal.barriers().are_down());
}

/// Each call found a buffer that had gone round with the whole ring, in no cache any more.
#[test]
fn the_buffer_of_a_frame_that_was_taken_is_used_for_the_next() {
    let journal = journal(Mode::Lazy);
    let mut call = frame("SET key value");
    journal.append(&mut call);
    assert!(call.is_empty() && call.capacity() > 0, "there is room for the next");
    let mut next = 0;
    assert_eq!(taken(&journal, &mut next), ["SET"]);
    assert_eq!(lock(&journal.spares).len(), 1);
    journal.append(&mut frame("GET"));
    assert_eq!(lock(&journal.spares).len(), 0, "the call has it");
    (0..2 * SPARES_MAX).for_each(|_| _ = journal.append(&mut frame("SET")));
    while !taken(&journal, &mut next).is_empty() {}
    assert_eq!(lock(&journal.spares).len(), SPARES_MAX);
}

#[test]
fn a_ring_that_fills_holds_writers_back_before_it_is_full() {
    let journal = journal(Mode::Lazy);
    (0..FRAMES_WAITING_MAX + 1).for_each(|_| _ = journal.append(&mut frame("SET")));
    assert!(journal.barriers().is_up(Barrier::Backlog));
    let mut next = 0;
    while !taken(&journal, &mut next).is_empty() {}
    assert!(journal.barriers().are_down());
}

/// Each wait that had timed out stayed until its offset was durable: with `appendfsync no`, for
/// ever.
#[test]
fn who_waits_no_more_is_forgotten() {
    struct Nobody;
    impl Wake for Nobody {
        fn wake(&self) {}
    }
    let journal = journal(Mode::Lazy);
    journal.append(&mut frame("a 1"));
    let stays: Arc<dyn Wake> = Arc::new(Nobody);
    assert!(journal.when_durable(1, &stays));
    for _ in 0..10_000 {
        let gone: Arc<dyn Wake> = Arc::new(Nobody);
        assert!(journal.when_durable(1, &gone));
    }
    assert!(lock(&journal.awaiting).len() < 200);
    journal.set_durable(1, 0);
    assert_eq!(lock(&journal.awaiting).len(), 0);
    assert!(!journal.when_durable(1, &stays));
}
