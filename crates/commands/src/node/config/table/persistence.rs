//! Snapshots and the append-only log.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    text(D::Dir, "", "Working directory: where data files are")
        .checked(TextCheck::Directory)
        .protected(),
    save_points(D::Save, "Seconds and changes after which a snapshot is taken"),
    text(D::DbFilename, "dump.rdb", "File of the snapshot")
        .checked(TextCheck::FileName)
        .protected(),
    flag(D::RdbCompression, true, "Compress strings in snapshots"),
    flag(D::RdbChecksum, true, "End snapshots with a checksum").at_start(),
    choice(
        D::RdbVersionCheck,
        "strict",
        &["strict", "relaxed"],
        "Whether snapshots of newer versions are refused",
    ),
    choice(
        D::RdbFieldTtlFormat,
        "valkey",
        &["valkey", "redis"],
        "How deadlines of hash fields are saved: as Valkey 9 or as Redis 7.4 reads them",
    ),
    flag(D::RdbDelSyncFiles, false, "Remove snapshots made for replication").without_effect(),
    flag(D::RdbSaveIncrementalFsync, true, "Sync snapshots in steps").without_effect(),
    flag(D::StopWritesOnBgsaveError, true, "Refuse writes while snapshots fail"),
    flag(D::AppendOnly, false, "Keep the append-only log"),
    text(D::AppendFilename, "appendonly.aof", "First part of the log's file names")
        .at_start()
        .checked(TextCheck::FileName),
    text(D::AppendDirname, "appendonlydir", "Directory of the log's files")
        .at_start()
        .checked(TextCheck::DirName),
    choice(
        D::AppendFsync,
        "everysec",
        &["everysec", "always", "no"],
        "When the log is made durable",
    ),
    flag(D::NoAppendfsyncOnRewrite, false, "Don't sync the log while a snapshot is written"),
    int(
        D::AutoAofRewritePercentage,
        100,
        0..=INT_MAX,
        "Growth in percent after which the log is rewritten; 0 is never",
    ),
    memory(
        D::AutoAofRewriteMinSize,
        64 * MEBIBYTE,
        0..=LONG_MAX,
        "Size below which the log is not rewritten",
    ),
    flag(D::AofLoadTruncated, true, "Load a log whose end is cut off"),
    flag(D::AofUseRdbPreamble, true, "Rewrite the log as a snapshot"),
    flag(D::AofTimestampEnabled, false, "Note the time in the log"),
    flag(D::AofRewriteIncrementalFsync, true, "Sync the rewritten log in steps").without_effect(),
    flag(D::AofDisableAutoGc, false, "Keep the log's old files").hidden().without_effect(),
    memory(
        D::JournalBacklogMax,
        256 * MEBIBYTE,
        MEBIBYTE..=LONG_MAX,
        "Bytes on their way to the log after which calls that write wait",
    ),
    int(
        D::RdbKeySaveDelay,
        0,
        INT_MIN..=INT_MAX,
        "Microseconds to wait after each key of a snapshot, for tests",
    )
    .hidden(),
    int(
        D::KeyLoadDelay,
        0,
        INT_MIN..=INT_MAX,
        "Microseconds to wait after each key that is loaded, for tests",
    )
    .hidden(),
    int(
        D::LoadingProcessEventsIntervalBytes,
        2 << 20,
        1024..=INT_MAX,
        "Bytes loaded between looks at the clients",
    )
    .hidden()
    .without_effect(),
];
