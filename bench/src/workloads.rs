//! What is asked of the servers, as a table. The templates' language is in template.rs.

pub mod collections;
pub mod scripts;

use crate::failure::{Failure, Result};

/// How many times a preparation runs.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Once for each key.
    Keys,
    Times(u64),
    /// So often for a million keys, and less often for fewer.
    PerMillion(u64),
}

/// Data that must be there first; each is loaded once per server.
#[derive(Debug)]
pub struct Preparation {
    pub request: &'static str,
    pub count: Count,
    pub pipeline: usize,
    /// From one connection, so that the requests come in their order.
    pub is_in_order: bool,
}

impl Preparation {
    pub const fn new(request: &'static str, count: Count) -> Self {
        Preparation { request, count, pipeline: 100, is_in_order: false }
    }

    pub const fn pipeline(mut self, depth: usize) -> Self {
        self.pipeline = depth;
        self
    }

    const fn in_order(mut self) -> Self {
        self.is_in_order = true;
        self
    }
}

/// How the load is laid on.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Over all connections, at each pipeline depth.
    Pipelined,
    /// Like it, but no more than so many requests per round and depth (1, deeper): the data would
    /// run out, or grow without end. LPUSH and LPOP have the same bound, so they balance.
    Bounded { single: u64, deeper: u64 },
    /// Over all connections, one request at a time on each.
    Single,
    /// Costly requests, one at a time on each of a few connections; the floor tells nothing.
    Heavy { connections: usize },
}

impl Pattern {
    /// The depths that a workload runs at, of those that are asked for.
    pub fn pipelines(self, asked: &[usize]) -> &[usize] {
        match self {
            Pattern::Heavy { .. } | Pattern::Single => &[1],
            Pattern::Pipelined | Pattern::Bounded { .. } => asked,
        }
    }
}

/// The most that Russet's CPU per request may be, as a share of Valkey's.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    ByPipeline {
        p1: f64,
        p16: f64,
        p100: f64,
    },
    /// At a pipeline of 16.
    Sixteen(f64),
    Any(f64),
    None,
}

impl Target {
    pub fn at(self, pipeline: usize) -> Option<f64> {
        match (self, pipeline) {
            (Target::Any(ratio), _) | (Target::Sixteen(ratio), 16) => Some(ratio),
            (Target::ByPipeline { p1, .. }, 1) => Some(p1),
            (Target::ByPipeline { p16, .. }, 16) => Some(p16),
            (Target::ByPipeline { p100, .. }, 100) => Some(p100),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub request: &'static str,
    pub needs: &'static [&'static Preparation],
    pub pattern: Pattern,
    pub target: Target,
}

/// Small commands in pipelines: half of what they cost is the kernel's, so that only what is above
/// the floor says how the servers differ.
const SMALL: [&str; 12] = [
    "GET",
    "SET",
    "INCR",
    "HSET",
    "HGET",
    "SADD",
    "SISMEMBER",
    "ZADD",
    "ZSCORE",
    "XADD",
    "LPUSH",
    "LPOP",
];
const ABOVE_FLOOR_MAX: f64 = 0.5;

impl Workload {
    /// The most that Russet's CPU above the floor may be, as a share of Valkey's above it.
    pub fn above_floor_max(&self, pipeline: usize) -> Option<f64> {
        (SMALL.contains(&self.name) && pipeline > 1).then_some(ABOVE_FLOOR_MAX)
    }
}

pub static KEYS: Preparation = Preparation::new("SET key:{s} {v:32}", Count::Keys);
pub static COUNTERS: Preparation = Preparation::new("SET ctr:{s} 1", Count::Keys);
pub static LISTS: Preparation =
    Preparation::new("RPUSH list:{s} 8x[ {v:16} ]", Count::Keys).pipeline(50);
static LONG_LIST: Preparation =
    Preparation::new("RPUSH longlist 100x[ {v:16} ]", Count::Times(3)).pipeline(1);
static BITMAP_A: Preparation =
    Preparation::new("SET bitmap:a {v:10485760}", Count::Times(1)).pipeline(1);
static BITMAP_B: Preparation =
    Preparation::new("SET bitmap:b {v:10485760}", Count::Times(1)).pipeline(1);
/// Ten megabytes of zeros and one bit at the very end.
static BITMAP_LAST: Preparation =
    Preparation::new("SETBIT bitmap:last 83886079 1", Count::Times(1)).pipeline(1);

const BASIC: Target = Target::ByPipeline { p1: 0.85, p16: 0.55, p100: 0.5 };
const POPS: Pattern = Pattern::Bounded { single: 100_000, deeper: 400_000 };

/// Every workload, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    PLAIN.iter().chain(collections::WORKLOADS).chain(scripts::WORKLOADS)
}

/// The workloads of these names, in the order of the names.
pub fn named<N: AsRef<str>>(names: &[N]) -> Result<Vec<&'static Workload>> {
    let find = |name: &N| {
        let name = name.as_ref();
        let known = || all().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
        let unknown = || Failure::Usage(format!("no workload '{name}'; there are {}", known()));
        all().find(|workload| workload.name.eq_ignore_ascii_case(name)).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

/// Strings, lists and the keyspace.
static PLAIN: &[Workload] = &[
    Workload {
        name: "PING",
        request: "PING",
        needs: &[],
        pattern: Pattern::Pipelined,
        target: Target::None,
    },
    Workload {
        name: "GET",
        request: "GET key:{r}",
        needs: &[&KEYS],
        pattern: Pattern::Pipelined,
        target: BASIC,
    },
    Workload {
        name: "SET",
        request: "SET key:{r} {v:32}",
        needs: &[&KEYS],
        pattern: Pattern::Pipelined,
        target: BASIC,
    },
    Workload {
        name: "INCR",
        request: "INCR ctr:{r}",
        needs: &[&COUNTERS],
        pattern: Pattern::Pipelined,
        target: BASIC,
    },
    Workload {
        name: "LPUSH",
        request: "LPUSH list:{r} {v:16}",
        needs: &[&LISTS],
        pattern: POPS,
        target: BASIC,
    },
    Workload {
        name: "LPOP",
        request: "LPOP list:{r}",
        needs: &[&LISTS],
        pattern: POPS,
        target: BASIC,
    },
    Workload {
        name: "MSET10",
        request: "MSET 10x[ key:{r} {v:32} ]",
        needs: &[&KEYS],
        pattern: Pattern::Pipelined,
        target: Target::Any(0.6),
    },
    Workload {
        name: "LRANGE100",
        request: "LRANGE longlist 0 99",
        needs: &[&LONG_LIST],
        pattern: Pattern::Pipelined,
        target: Target::Any(0.6),
    },
    Workload {
        name: "MULTI3",
        request: "MULTI ; SET key:{k} {v:32} ; INCR ctr:{k} ; GET key:{k} ; EXEC",
        needs: &[&KEYS, &COUNTERS],
        pattern: Pattern::Pipelined,
        target: Target::Sixteen(0.6),
    },
    Workload {
        name: "BITCOUNT-10MB",
        request: "BITCOUNT bitmap:a",
        needs: &[&BITMAP_A],
        pattern: Pattern::Heavy { connections: 1 },
        target: Target::Any(0.7),
    },
    Workload {
        name: "BITPOS-10MB",
        request: "BITPOS bitmap:last 1",
        needs: &[&BITMAP_LAST],
        pattern: Pattern::Heavy { connections: 1 },
        target: Target::Any(0.7),
    },
    Workload {
        name: "BITOP-AND-10MB",
        request: "BITOP AND bitmap:out bitmap:a bitmap:b",
        needs: &[&BITMAP_A, &BITMAP_B],
        pattern: Pattern::Heavy { connections: 1 },
        target: Target::Any(0.7),
    },
    Workload {
        name: "SCAN-1000",
        request: "SCAN 0 COUNT 1000",
        needs: &[&KEYS],
        pattern: Pattern::Heavy { connections: 10 },
        target: Target::Any(0.7),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    #[test]
    fn every_small_command_is_a_workload() {
        let goals = all().filter_map(|workload| workload.above_floor_max(16));
        assert_eq!(goals.count(), SMALL.len());
        assert_eq!(named(&["get"]).unwrap()[0].above_floor_max(1), None);
    }

    #[test]
    fn every_template_can_be_read() {
        for workload in all() {
            assert!(Template::parse(workload.request).is_ok(), "{}", workload.name);
            for need in workload.needs {
                assert!(Template::parse(need.request).is_ok(), "{}", need.request);
            }
        }
    }
}
