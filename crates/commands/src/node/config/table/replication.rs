//! Replication. Until it is there, nothing here may switch it on.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    list(D::ReplicaOf, "", 2, "Host and port to copy from; empty is none")
        .alias(&["slaveof"])
        .at_start()
        .only(&[""]),
    text(D::MasterAuth, "", "Password for the primary")
        .alias(&["primaryauth"])
        .secret()
        .without_effect(),
    text(D::MasterUser, "", "User for the primary")
        .alias(&["primaryuser"])
        .secret()
        .without_effect(),
    flag(D::ReplicaServeStaleData, true, "Answer while not in sync")
        .alias(&["slave-serve-stale-data"])
        .without_effect(),
    flag(D::ReplicaReadOnly, true, "Refuse writes on a replica")
        .alias(&["slave-read-only"])
        .without_effect(),
    flag(D::ReplicaLazyFlush, true, "Free old data in background at a sync")
        .alias(&["slave-lazy-flush"])
        .without_effect(),
    flag(D::ReplicaIgnoreMaxmemory, true, "Leave eviction to the primary")
        .alias(&["slave-ignore-maxmemory"])
        .without_effect(),
    int(D::ReplicaPriority, 100, 0..=INT_MAX, "Rank in a failover; 0 is never")
        .alias(&["slave-priority"])
        .without_effect(),
    flag(D::ReplicaAnnounced, true, "Show the replica to Sentinel").without_effect(),
    text(D::ReplicaAnnounceIp, "", "Address to announce")
        .alias(&["slave-announce-ip"])
        .without_effect(),
    int(D::ReplicaAnnouncePort, 0, 0..=PORT_MAX, "Port to announce")
        .alias(&["slave-announce-port"])
        .without_effect(),
    flag(D::ReplicaIgnoreDiskWriteErrors, false, "Go on when a replica's disk fails")
        .without_effect(),
    memory(
        D::ReplicaFullSyncBufferLimit,
        0,
        0..=LONG_MAX,
        "Writes held back during a full sync; 0 follows the replica output limit",
    )
    .without_effect(),
    flag(D::ReplDisklessSync, true, "Send snapshots without a file").without_effect(),
    int(
        D::ReplDisklessSyncDelay,
        5,
        0..=INT_MAX,
        "Seconds to wait for more replicas before a snapshot is sent",
    )
    .without_effect(),
    int(
        D::ReplDisklessSyncMaxReplicas,
        0,
        0..=INT_MAX,
        "Replicas that end the wait; 0 waits it out",
    )
    .without_effect(),
    choice(
        D::ReplDisklessLoad,
        "disabled",
        &["disabled", "on-empty-db", "swapdb", "flush-before-load"],
        "Whether a replica loads without a file",
    )
    .without_effect(),
    flag(D::ReplRdbChannel, false, "Send snapshots over their own connection").without_effect(),
    flag(
        D::DualChannelReplicationEnabled,
        false,
        "Valkey's way to send snapshots over their own connection",
    )
    .without_effect(),
    flag(D::ReplDisableTcpNodelay, false, "Gather small packets").without_effect(),
    flag(D::ReplMptcp, false, "Replicate over multipath TCP").at_start().only(&["no"]),
    int(D::ReplPingReplicaPeriod, 10, 1..=INT_MAX, "Seconds between pings to replicas")
        .alias(&["repl-ping-slave-period"])
        .without_effect(),
    int(D::ReplTimeout, 60, 1..=INT_MAX, "Seconds until the other side is given up")
        .without_effect(),
    memory(
        D::ReplBacklogSize,
        10 * MEBIBYTE,
        1..=LONG_MAX,
        "Bytes kept for replicas that come back",
    )
    .without_effect(),
    int(
        D::ReplBacklogTtl,
        3600,
        0..=i64::MAX,
        "Seconds that they are kept without a replica; 0 is for ever",
    )
    .without_effect(),
    int(D::MinReplicasToWrite, 0, 0..=INT_MAX, "Replicas without which writes are refused")
        .alias(&["min-slaves-to-write"])
        .only(&["0"]),
    int(D::MinReplicasMaxLag, 10, 0..=INT_MAX, "Seconds of lag up to which a replica counts")
        .alias(&["min-slaves-max-lag"])
        .without_effect(),
    choice(
        D::PropagationErrorBehavior,
        "ignore",
        &["ignore", "panic", "panic-on-replicas"],
        "What to do when a replicated command fails",
    )
    .without_effect(),
];
