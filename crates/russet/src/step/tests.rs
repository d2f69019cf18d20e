//! Steps as scripts and as functions.

use super::*;
use crate::error::Error;
use crate::kit::Kit;
use crate::request::Request;
use crate::retry::RequestId;

static COUNT: Step<WithRequestId> =
    Step::new("test_count", "-- Counts.\nreturn {'OK', 'n', redis.call('INCR', KEYS[2])}\n");
static READ: Step<Safe> =
    Step::read_only("test_read", "return {'OK', 'n', redis.call('GET', KEYS[1])}\n");

#[test]
fn a_step_is_a_script() {
    assert!(COUNT.info().source().contains("remember(KEYS[1], ARGV[1], step(KEYS, ARGV))"));
    assert!(COUNT.info().source().contains("call('INCR', KEYS[2])"));
    assert_eq!(COUNT.info().sha1().len(), 40);
    assert_eq!(COUNT.info().documentation(), "Counts.");
    assert!(READ.info().is_read_only());
}

#[test]
fn names_are_not_used_twice() {
    let mut names: Vec<&str> = all().map(StepInfo::name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Acknowledging and releasing were refused when memory was full, which then stayed full.
#[test]
fn what_frees_memory_runs_when_memory_is_full() {
    for name in ALLOW_OOM {
        let step = all().find(|step| step.name() == *name).unwrap();
        assert!(!step.is_read_only(), "{name}");
        assert!(step.source().starts_with("#!lua flags=allow-oom\n"), "{name}");
    }
    assert!(!COUNT.info().allows_oom() && functions().contains("flags = {'allow-oom'}"));
}

/// The page gave the marker of other languages without its digest: the same request, repeated by a
/// program in another language, counted again.
#[cfg(feature = "embedded")]
#[test]
fn the_page_says_how_markers_are_made() {
    static SCHEDULE: Step<WithRequestId> = Step::new("jobs_schedule", "return {'OK'}\n");
    let kit = Kit::builder().app("shop").embedded(crate::Options::default()).unwrap();
    let keys = kit.keys(crate::key::Family { purpose: "jobs", version: 1 }, "mails").unwrap();
    let id = RequestId::from("r1");
    let marker = kit.step_of_request(&SCHEDULE, &keys, Some(&id)).about("job-7").marker();
    let marker = String::from_utf8(marker.unwrap().as_bytes().to_vec()).unwrap();
    let digest = reference::EXAMPLE_DIGEST;
    assert_eq!(marker, format!("shop:jobs:v1:{{mails}}:request:r1:{digest}"));
    assert!(reference().contains(&marker));
}

#[cfg(feature = "embedded")]
#[tokio::test]
async fn a_request_counts_once() {
    let kit = Kit::embedded(crate::Options::default()).unwrap();
    let keys = kit.keys(crate::key::Family { purpose: "test", version: 1 }, "a").unwrap();
    let add = async |request: Option<&RequestId>| {
        let call = kit.step_of_request(&COUNT, &keys, request).key(keys.key("n"));
        call.run().await.unwrap().int("n").unwrap()
    };
    let id = RequestId::random();
    assert_eq!(add(Some(&id)).await, 1);
    assert_eq!(add(Some(&id)).await, 1);
    assert_eq!(add(None).await, 2);
    assert_eq!(add(None).await, 3);
    let read = kit.step(&READ).key(keys.key("n")).run().await.unwrap();
    assert_eq!(read.int("n"), Ok(3));
}

#[cfg(feature = "embedded")]
mod own {
    use super::*;
    use crate::key::{Family, Keys};
    use crate::reply::Reply;

    static MOVE: Step<WithRequestId> = Step::declare(
        "test_move",
        Takes { keys: &["from", "to"], args: &["count"] },
        "-- `call` is a name like any other here, and so is \" refuse(\" in a text.
         local call = redis.call
         local count = whole(count, 1, 100)
         if not count then return refuse('count') end
         if (tonumber(call('GET', from)) or 0) < count then return {'SHORT'}, true end
         call('DECRBY', from, count)
         return {'OK', 'moved', redis.call('INCRBY', to, count), 'word', ' refuse('}",
    );
    static WRONG: Step<WithRequestId> = Step::declare(
        "test_wrong",
        Takes { keys: &["n"], args: &[] },
        "return redis.call('INCR', n)",
    );
    static READ: Step<Safe> = Step::declare(
        "test_own_read",
        Takes { keys: &["n"], args: &[] },
        "return {'OK', 'n', tonumber(redis.call('GET', n)) or 0, 'now', now_ms()}",
    );

    fn kit() -> (Kit, Keys) {
        let kit = Kit::embedded(crate::Options::default()).unwrap();
        let keys = kit.keys(Family { purpose: "test", version: 1 }, "a").unwrap();
        (kit, keys)
    }

    async fn read(kit: &Kit, keys: &Keys, part: &'static str) -> i64 {
        kit.step(&READ).key(keys.key(part)).run().await.unwrap().int("n").unwrap()
    }

    #[tokio::test]
    async fn a_request_runs_once_and_what_changed_nothing_is_not_remembered() {
        let (kit, keys) = kit();
        let id = RequestId::random();
        let shift = async |count: u32| {
            let call = kit.dedup(&id, &MOVE, &keys).key(keys.key("a")).key(keys.key("b"));
            call.arg(count).run().await
        };
        assert_eq!(shift(0).await, Err(Error::Invalid("count".into())));
        assert!(shift(3).await.unwrap().is("SHORT"));
        kit.call(&Request::new("SET").key(&keys.key("a")).arg(10)).await.unwrap();
        for _ in 0..3 {
            let mut moved = shift(3).await.unwrap();
            assert_eq!((moved.int("moved"), moved.string("word")), (Ok(3), Ok(" refuse(".into())));
        }
        assert_eq!((read(&kit, &keys, "a").await, read(&kit, &keys, "b").await), (7, 3));
        // The same id for another object is another request.
        for part in ["b", "c"] {
            let call = kit.dedup(&id, &MOVE, &keys).key(keys.key("a")).key(keys.key(part));
            let moved = call.bound_to(part).arg(1).run().await;
            assert!(moved.is_ok_and(|reply| reply.is("OK")));
        }
        assert_eq!((read(&kit, &keys, "b").await, read(&kit, &keys, "c").await), (4, 1));
    }

    #[tokio::test]
    async fn what_is_missing_or_elsewhere_is_refused_before_it_runs() {
        let (kit, keys) = kit();
        let id = RequestId::random();
        let of_other = kit.keys(Family { purpose: "test", version: 1 }, "b").unwrap();
        let one_key = kit.dedup(&id, &MOVE, &keys).key(keys.key("a")).arg(1).run().await;
        let no_arg = kit.dedup(&id, &MOVE, &keys).key(keys.key("a")).key(keys.key("b")).run().await;
        let two_slots = kit.dedup(&id, &MOVE, &keys).key(keys.key("a")).key(of_other.key("b"));
        for refused in [one_key, no_arg, two_slots.arg(1).run().await] {
            assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        }
        assert_eq!(kit.call(&Request::new("DBSIZE")).await, Ok(Reply::Int(0)));
    }

    /// It would have run again with each repetition of the request.
    #[tokio::test]
    async fn a_step_that_returns_no_envelope_runs_once_all_the_same() {
        let (kit, keys) = kit();
        let id = RequestId::random();
        for _ in 0..2 {
            let wrong = kit.dedup(&id, &WRONG, &keys).key(keys.key("n")).run().await;
            assert!(matches!(wrong, Err(Error::Corrupt(_))), "{wrong:?}");
        }
        assert_eq!(read(&kit, &keys, "n").await, 1);
    }

    #[tokio::test]
    async fn own_steps_lock_their_keys_only() {
        let (kit, _keys) = kit();
        for info in [MOVE.info(), WRONG.info(), READ.info()] {
            let load = Request::new("SCRIPT").arg("LOAD").arg(info.source());
            kit.call(&load).await.unwrap();
        }
        let stats = kit.call(&Request::new("SCRIPT").arg("STATS")).await.unwrap();
        let rows = stats.into_list().unwrap();
        let is_narrow = |row: &Reply| {
            row.as_list().is_some_and(|row| row.iter().any(|it| it.as_bytes() == Some(b"narrow")))
        };
        assert!(rows.len() == 3 && rows.iter().all(is_narrow), "{rows:?}");
    }

    /// A space before the parenthesis is lawful Lua. The step counted, failed behind that, and
    /// counted again with each repetition of the request.
    #[tokio::test]
    async fn what_the_body_names_is_there_however_it_is_called() {
        static SPACED: Step<WithRequestId> = Step::declare(
            "test_spaced",
            Takes { keys: &["n"], args: &[] },
            "local total = redis.call('INCR', n)
             local clock = now_ms
             return {'OK', 'total', total, 'is_later', 'at '..whole (clock (), 1, 1e15)}",
        );
        let (kit, keys) = kit();
        let id = RequestId::random();
        for _ in 0..2 {
            let reply = kit.dedup(&id, &SPACED, &keys).key(keys.key("n")).run().await.unwrap();
            assert_eq!(reply.int("total"), Ok(1));
        }
    }

    fn declare(keys: &'static [&'static str], args: &'static [&'static str]) {
        let _: Step<Safe> = Step::declare("x", Takes { keys, args }, "");
    }

    #[test]
    #[should_panic(expected = "not one of Lua's")]
    fn names_must_be_lua_names() {
        declare(&["a-b"], &[]);
    }

    /// `end` was no Lua, `KEYS` left the keys behind it without a value, and an argument hid the
    /// key of its name.
    #[test]
    fn names_that_would_hide_something_are_refused() {
        type Names = &'static [&'static str];
        let refused: [(Names, Names); 8] = [
            (&["end"], &[]),
            (&["a"], &["while"]),
            (&["KEYS", "b"], &[]),
            (&["a"], &["ARGV"]),
            (&["redis"], &[]),
            (&["a", "a"], &[]),
            (&[], &["a", "b", "a"]),
            (&["a"], &["b", "a"]),
        ];
        for (keys, args) in refused {
            let declared = std::panic::catch_unwind(|| declare(keys, args));
            assert!(declared.is_err(), "{keys:?} {args:?}");
        }
        declare(&["ends", "keys"], &["KEY", "Redis", "an"]);
    }
}

/// All forms in which a step is sent.
fn scripts(step: &'static StepInfo) -> impl Iterator<Item = &'static Script> {
    let forms: &[bool] = match step.class {
        RetryClass::WithRequestId => &[false, true],
        RetryClass::Safe | RetryClass::Unsafe => &[false],
    };
    forms.iter().map(|remembers| step.script(*remembers))
}

/// A script that the engine can't prove to use its keys only holds all shards while it runs.
#[cfg(feature = "embedded")]
#[tokio::test]
async fn every_step_locks_its_own_keys_only() {
    let kit = Kit::embedded(crate::Options::default()).unwrap();
    kit.call(&Request::new("FUNCTION").arg("LOAD").arg(functions())).await.unwrap();
    for step in all() {
        for script in scripts(step) {
            let load = Request::new("SCRIPT").arg("LOAD").arg(&script.source);
            kit.call(&load).await.unwrap();
        }
        // It refuses its arguments, but has run.
        let keys = ["a", "b", "c", "d", "e", "f"].map(|key| format!("{{x}}{key}"));
        let call = Request::new("FCALL").arg(step.function()).arg(keys.len());
        let call = keys.iter().fold(call, |call, key| call.arg(key));
        let _ = kit.call(&call).await;
    }
    let stats = kit.call(&Request::new("SCRIPT").arg("STATS")).await.unwrap();
    let rows = stats.into_list().unwrap();
    let count = all().map(|step| 1 + scripts(step).count()).sum::<usize>();
    assert_eq!(rows.len(), count);
    for row in rows {
        let row = row.into_list().unwrap();
        let value = |name: &str| {
            let at = row.iter().position(|it| it.as_bytes() == Some(name.as_bytes()))?;
            row[at + 1].as_bytes().map(|text| String::from_utf8_lossy(text).into_owned())
        };
        let sha1 = value("sha1");
        let is_it = |script: &Script| Some(&script.sha1) == sha1.as_ref();
        let script = all().find(|step| scripts(step).any(is_it));
        let name = script.map(StepInfo::function).or_else(|| value("function"));
        assert_eq!(value("locks").as_deref(), Some("narrow"), "{name:?}");
    }
}

/// A step without its last arguments wrote the first half, and left a key without a TTL.
#[cfg(feature = "embedded")]
#[tokio::test]
async fn calls_with_too_few_keys_or_arguments_change_nothing() {
    let kit = Kit::embedded(crate::Options::default()).unwrap();
    kit.call(&Request::new("FUNCTION").arg("LOAD").arg(functions())).await.unwrap();
    for step in all() {
        let whole = (step.count_of("KEYS:"), step.count_of("ARGV:"));
        let short = [(whole.0.saturating_sub(1), whole.1), (whole.0, whole.1.saturating_sub(1))];
        for (keys, args) in short.into_iter().filter(|it| *it != whole) {
            let call = Request::new("FCALL").arg(step.function()).arg(keys);
            let call = (0..keys).fold(call, |call, key| call.arg(format!("{{x}}{key}")));
            let call = (0..args).fold(call, |call, _| call.arg("1"));
            let refused = kit.call(&call).await;
            assert_eq!(refused, Err(Error::Invalid("count".into())), "{}", step.name());
        }
    }
    let left = kit.call(&Request::new("DBSIZE")).await.unwrap();
    assert_eq!(left.as_int(), Some(0));
}
