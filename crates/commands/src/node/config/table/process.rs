//! The process: threads, signals, scripts, the version that it reports.

use super::super::directive::Directive as D;
use super::super::spec::*;
use russet_scripting::limits::{MEMORY_BYTES_MAX, MEMORY_BYTES_MIN};

const SHUTDOWN: &[&str] = &["default", "save", "nosave", "now", "force", "safe", "failover"];

/// Ways to end that wait for no replica.
const ALONE: &[&str] = &[
    "default",
    "save",
    "save now",
    "save force",
    "save now force",
    "nosave",
    "now",
    "force",
    "nosave now",
    "nosave force",
    "now force",
    "nosave now force",
];
const ALONE_GAP: &str = "a signal ends the process without waiting for replicas";

/// Of directives that tune what works otherwise here.
const KEPT: &str = "Kept for files of Valkey; has no effect";

pub(super) const SPECS: &[Spec] = &[
    int(D::Threads, 0, 0..=THREADS_MAX, "Event loops; 0 is one for each core").at_start(),
    int(
        D::ThreadsMin,
        1,
        1..=THREADS_MAX,
        "Event loops that are open however little there is to do",
    )
    .at_start(),
    int(D::Shards, 0, 0..=SHARDS_MAX as i64, "Parts of the keyspace; 0 chooses").at_start(),
    text(D::RedisVersion, "8.0.0", "Version of Redis that clients are told")
        .at_start()
        .checked(TextCheck::Version),
    int(D::Databases, 16, 1..=INT_MAX, "Databases that SELECT can reach").at_start(),
    flag(D::Daemonize, false, "Run in the background").at_start(),
    choice(
        D::Supervised,
        "no",
        &["upstart", "systemd", "auto", "no"],
        "Supervisor to tell that the server is ready; `auto` asks the environment for it",
    )
    .at_start(),
    text(D::PidFile, "", "File that holds the process id").at_start(),
    int(D::Hz, 10, 0..=INT_MAX, "Rounds of background work in a second, 1 to 500")
        .clamped(1..=500)
        .without_effect(),
    flag(D::DynamicHz, true, "More rounds when there are many clients").without_effect(),
    int(D::IoThreads, 1, 1..=256, "Kept for files of Redis; `threads` is used").without_effect(),
    choices(D::ShutdownOnSigint, SHUTDOWN, "What SIGINT does, as the options of SHUTDOWN")
        .promises(ALONE, ALONE_GAP),
    choices(D::ShutdownOnSigterm, SHUTDOWN, "What SIGTERM does, as the options of SHUTDOWN")
        .promises(ALONE, ALONE_GAP),
    int(D::ShutdownTimeout, 10, 0..=INT_MAX, "Seconds that a shutdown waits for replicas")
        .without_effect(),
    int(
        D::BusyReplyThreshold,
        5000,
        0..=i64::MAX,
        "Milliseconds after which a running script is reported as busy",
    )
    .alias(&["lua-time-limit"]),
    int(D::OnceRecordsMax, 1_000_000, 0..=i64::MAX, "Request ids that ONCE keeps at most"),
    memory(
        D::ScriptMemoryMax,
        MEMORY_BYTES_MAX as u64,
        MEMORY_BYTES_MIN as u64..=LONG_MAX,
        "Memory that one Lua interpreter may hold",
    ),
    memory(D::OnceBytesMax, 256 << 20, 0..=LONG_MAX, "Bytes of ids and replies that ONCE keeps"),
    choice(
        D::ScriptUndeclaredKeys,
        "allow",
        &["allow", "warn", "refuse"],
        "What is done about keys that a script uses but was not given",
    ),
    flag(D::SetProcTitle, true, "Show the address in the process title").at_start(),
    text(D::ProcTitleTemplate, "{title} {listen-addr} {server-mode}", "Shape of the process title")
        .checked(TextCheck::TitleTemplate),
    text(D::LocaleCollate, "", "Locale of SORT ALPHA").only(&["", "C", "POSIX"]),
    choice(
        D::OomScoreAdj,
        "no",
        &["no", "yes", "relative", "absolute"],
        "Tell the kernel how soon to end the server when memory runs out",
    ),
    oom_scores(D::OomScoreAdjValues, "Scores of master, replica and child; the first is used"),
    flag(D::DisableThp, true, "Turn transparent huge pages off").at_start().without_effect(),
    text(D::IgnoreWarnings, "", "Warnings at start that are not fatal").without_effect(),
    text(D::HashSeed, "", "Seed of the hash function; empty is random")
        .at_start()
        .secret()
        .without_effect(),
    text(D::ServerCpulist, "", "Cores of the event loops")
        .alias(&["server_cpulist"])
        .at_start()
        .only(&[""]),
    text(D::BioCpulist, "", "Cores of background threads")
        .alias(&["bio_cpulist"])
        .at_start()
        .only(&[""]),
    text(D::AofRewriteCpulist, "", "Cores of the log's rewriting")
        .alias(&["aof_rewrite_cpulist"])
        .at_start()
        .only(&[""]),
    text(D::BgsaveCpulist, "", "Cores of snapshots")
        .alias(&["bgsave_cpulist"])
        .at_start()
        .only(&[""]),
    flag(
        D::ExtendedRedisCompatibility,
        false,
        "Valkey calls itself Redis; `redis-version` says it here",
    )
    .without_effect(),
    text(D::AvailabilityZone, "", "Zone that INFO and HELLO report"),
    flag(D::ImportMode, false, "Hold expiry back during an import").only(&["no"]),
    flag(D::UseExitOnPanic, false, "Exit instead of aborting").hidden().without_effect(),
    int(D::MinStringSizeAvoidCopyReply, 16384, 0..=INT_MAX, KEPT).hidden().without_effect(),
    int(D::MinStringSizeAvoidCopyReplyThreaded, 65536, 0..=INT_MAX, KEPT).hidden().without_effect(),
    int(D::MinIoThreadsAvoidCopyReply, 7, 0..=INT_MAX, KEPT).hidden().without_effect(),
    int(D::WatchdogPeriod, 0, 0..=INT_MAX, "Milliseconds between stall checks")
        .hidden()
        .only(&["0"]),
    text(D::DebugContext, "", "Words for a crash report").hidden().without_effect(),
];
