//! Logs, the slow log, latency and keyspace notifications.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const LOG_LEVELS: &[&str] = &["debug", "verbose", "notice", "warning", "nothing"];
const FACILITIES: &[&str] =
    &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"];

pub(super) const SPECS: &[Spec] = &[
    choice(D::LogLevel, "notice", LOG_LEVELS, "How much to log"),
    text(D::LogFile, "", "Where to log; empty is standard output").at_start(),
    choice(D::LogFormat, "legacy", &["legacy", "logfmt", "json"], "Shape of log lines"),
    choice(
        D::LogTimestampFormat,
        "legacy",
        &["legacy", "iso8601", "milliseconds"],
        "Shape of the time in log lines, in UTC",
    ),
    flag(D::SyslogEnabled, false, "Log to syslog too").at_start(),
    text(D::SyslogIdent, "russet", "Name in syslog").at_start(),
    choice(D::SyslogFacility, "local0", FACILITIES, "Facility of syslog").at_start(),
    flag(D::AlwaysShowLogo, false, "Print a banner at start").at_start().without_effect(),
    flag(D::HideUserDataFromLog, true, "Keep clients' data out of the log").without_effect(),
    flag(D::CrashLogEnabled, true, "Log a report on a crash"),
    flag(D::CrashMemcheckEnabled, true, "Test memory after a crash").without_effect(),
    int(
        D::SlowlogLogSlowerThan,
        10_000,
        -1..=i64::MAX,
        "Microseconds from which a command is slow; 0 is every command, -1 none",
    )
    .alias(&["commandlog-execution-slower-than"]),
    int(D::SlowlogMaxLen, 128, 0..=i64::MAX, "Entries of the slow log")
        .alias(&["commandlog-slow-execution-max-len"]),
    int(
        D::CommandlogRequestLargerThan,
        MEBIBYTE as i64,
        -1..=i64::MAX,
        "Bytes from which a request is large; -1 is none",
    ),
    int(D::CommandlogLargeRequestMaxLen, 128, 0..=i64::MAX, "Entries of the log of large requests"),
    int(
        D::CommandlogReplyLargerThan,
        MEBIBYTE as i64,
        -1..=i64::MAX,
        "Bytes from which a reply is large; -1 is none",
    ),
    int(D::CommandlogLargeReplyMaxLen, 128, 0..=i64::MAX, "Entries of the log of large replies"),
    int(
        D::CommandlogShardWaitLongerThan,
        10_000,
        -1..=i64::MAX,
        "Microseconds from which a wait for keys that another call holds is remembered; -1 is none",
    ),
    int(D::CommandlogShardWaitMaxLen, 128, 0..=i64::MAX, "Entries of the log of such waits"),
    int(
        D::LatencyMonitorThreshold,
        0,
        0..=i64::MAX,
        "Milliseconds from which an event is a latency spike; 0 watches none",
    ),
    int(
        D::HotkeysTopK,
        0,
        0..=64,
        "How many of the keys that are called most HOTKEYS GET always knows; 0 counts none",
    ),
    int(
        D::HotkeysWindowSeconds,
        1,
        1..=3600,
        "For how long their calls are counted; what is told is of the last such time",
    ),
    flag(D::LatencyTracking, true, "Keep a histogram of each command's latency"),
    percentiles(
        D::LatencyTrackingInfoPercentiles,
        "Percentiles that INFO shows of those histograms",
    ),
    event_classes(D::NotifyKeyspaceEvents, "Which changes of keys are published, by letter"),
    int(
        D::MetricsPort,
        0,
        0..=PORT_MAX,
        "Port for /metrics, /health/live and /health/ready over HTTP, where `bind` says; 0 is none",
    )
    .at_start(),
];
