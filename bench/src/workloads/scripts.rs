//! Workloads of scripts, functions and transactions: those that people build on Redis.

use super::{Count, Pattern, Preparation, Target, Workload};

/// A script by the name that templates call it by.
pub fn source(name: &str) -> Option<&'static str> {
    Some(match name {
        "fixed_window" => include_str!("../../../tests/seeds/fixed_window.lua"),
        "sliding_window" => include_str!("../../../tests/seeds/sliding_window.lua"),
        "compare_and_set" => include_str!("../../../tests/seeds/compare_and_set.lua"),
        "lock_release" => include_str!("../../../tests/seeds/lock_release.lua"),
        "quota_lib" => include_str!("../../../tests/seeds/quota_lib.lua"),
        "loop_1000" => "local s=0 for i=1,1000 do s=s+i end return s",
        "get" => "return redis.call('GET', KEYS[1])",
        "wide" => "return redis.call('INCR', 'wide:' .. ARGV[1])",
        "wide_job" => {
            "local id = redis.call('INCR', KEYS[1] .. 'id') local key = KEYS[1] .. id \
             redis.call('HSET', key, 'name', ARGV[1], 'data', ARGV[2]) \
             redis.call('LPUSH', KEYS[1] .. 'wait', id) redis.call('RPOP', KEYS[1] .. 'wait') \
             redis.call('DEL', key) return id"
        }
        "get_lib" => {
            "#!lua name=get_lib\n\
             redis.register_function{function_name='get_one', flags={'no-writes'}, \
             callback=function(keys) return redis.call('GET', keys[1]) end}"
        }
        _ => return None,
    })
}

const fn once(request: &'static str) -> Preparation {
    Preparation::new(request, Count::Times(1))
}

static FIXED_WINDOW: Preparation = once("SCRIPT LOAD {script:fixed_window}");
static SLIDING_WINDOW: Preparation = once("SCRIPT LOAD {script:sliding_window}");
static COMPARE_AND_SET: Preparation = once("SCRIPT LOAD {script:compare_and_set}");
static LOCK_RELEASE: Preparation = once("SCRIPT LOAD {script:lock_release}");
static LOOP_1000: Preparation = once("SCRIPT LOAD {script:loop_1000}");
static WIDE: Preparation = once("SCRIPT LOAD {script:wide}");
static WIDE_KEYS: Preparation = Preparation::new("SET wide:{s} 1", Count::Keys);
static WIDE_JOB: Preparation = once("SCRIPT LOAD {script:wide_job}");
pub static QUOTA: Preparation = once("FUNCTION LOAD REPLACE {script:quota_lib}");
static STATES: Preparation = Preparation::new("SET state:{s} A PX 900000", Count::Keys);

const fn scripted(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
) -> Workload {
    Workload { name, request, needs, pattern: Pattern::Pipelined, target: Target::Sixteen(0.7) }
}

/// Of keys that a script puts together: it holds the whole keyspace.
const fn wide(
    name: &'static str,
    request: &'static str,
    needs: &'static [&'static Preparation],
) -> Workload {
    Workload { target: Target::Sixteen(1.0), ..scripted(name, request, needs) }
}

pub static WORKLOADS: &[Workload] = &[
    scripted(
        "EVALSHA-FIXED-WINDOW",
        "EVALSHA 4dde4ee384b1c023f14aa3e52e51b309a53252a0 1 rl:{r} 100 60",
        &[&FIXED_WINDOW],
    ),
    scripted(
        "EVALSHA-SLIDING-WINDOW",
        "EVALSHA 6338e0f1278d70d87dbf237cd7b7a3d0b165f1d4 1 sw:{i:1000} {s} 1000 100 req-{s} 65",
        &[&SLIDING_WINDOW],
    ),
    scripted(
        "EVALSHA-COMPARE-AND-SET",
        "EVALSHA 7b114db06b1864a445988fd7a9cf618ad3b8c1d2 1 state:{r} A A",
        &[&COMPARE_AND_SET, &STATES],
    ),
    scripted(
        "EVALSHA-LOCK-RELEASE",
        "SET lock:{k} me NX PX 60000 ; \
         EVALSHA cb735a9ec6bff563dcbc930dc15a206922d3ce60 1 lock:{k} me",
        &[&LOCK_RELEASE],
    ),
    scripted(
        "EVALSHA-LOOP-1000",
        "EVALSHA 0fff746a5bd9d93eed3ae8f4c839ab17b5f48017 0",
        &[&LOOP_1000],
    ),
    wide(
        "EVALSHA-WIDE",
        "EVALSHA d5653b52f3d3f79f39f254aa0606fc15bab803e3 0 {r}",
        &[&WIDE, &WIDE_KEYS],
    ),
    wide(
        "EVALSHA-WIDE-JOB",
        "EVALSHA 38e69e10e7df71853082970b5a81f1f5075ed592 1 job:{i:1000}: send {v:32}",
        &[&WIDE_JOB],
    ),
    scripted("FCALL-FIXED-WINDOW", "FCALL fixed_window_allow 1 fc:{r} 100 60", &[&QUOTA]),
    scripted("MULTI-EXEC-3", "MULTI ; INCR m:{k}:a ; INCR m:{k}:b ; INCR m:{k}:c ; EXEC", &[]),
];
