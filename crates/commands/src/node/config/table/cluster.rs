//! Redis Cluster. Until it is there, nothing here may switch it on.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    flag(D::ClusterEnabled, false, "Be a node of a cluster").at_start().only(&["no"]),
    text(D::ClusterConfigFile, "nodes.conf", "File of the cluster's state")
        .at_start()
        .without_effect(),
    choice(
        D::ClusterConfigSaveBehavior,
        "sync",
        &["sync", "best-effort"],
        "What to do when that file can't be written",
    )
    .without_effect(),
    int(D::ClusterDatabases, 1, 1..=INT_MAX, "Databases of a cluster").at_start().without_effect(),
    int(D::ClusterPort, 0, 0..=PORT_MAX, "Port of the bus; 0 is the port and 10000")
        .at_start()
        .without_effect(),
    int(
        D::ClusterNodeTimeout,
        15_000,
        0..=i64::MAX,
        "Milliseconds until a silent node counts as failing",
    )
    .without_effect(),
    int(D::ClusterPingInterval, 0, 0..=i64::MAX, "Milliseconds between pings; 0 chooses")
        .hidden()
        .without_effect(),
    int(
        D::ClusterReplicaValidityFactor,
        10,
        0..=INT_MAX,
        "How old a replica's data may be at a failover; 0 is any age",
    )
    .alias(&["cluster-slave-validity-factor"])
    .without_effect(),
    flag(D::ClusterReplicaNoFailover, false, "Never fail over by itself")
        .alias(&["cluster-slave-no-failover"])
        .without_effect(),
    int(
        D::ClusterMigrationBarrier,
        1,
        0..=INT_MAX,
        "Replicas that a primary keeps when one moves away",
    )
    .without_effect(),
    flag(D::ClusterAllowReplicaMigration, true, "Let replicas move").without_effect(),
    flag(D::ClusterRequireFullCoverage, true, "Stop when a slot has no node").without_effect(),
    flag(D::ClusterAllowReadsWhenDown, false, "Answer reads while the cluster is down")
        .without_effect(),
    flag(
        D::ClusterAllowPubsubshardWhenDown,
        true,
        "Serve sharded pub/sub while the cluster is down",
    )
    .without_effect(),
    int(
        D::ClusterManualFailoverTimeout,
        5000,
        1..=INT_MAX,
        "Milliseconds that a manual failover may take",
    )
    .without_effect(),
    int(D::ClusterBlacklistTtl, 60, 0..=i64::MAX, "Seconds until a forgotten node may join again")
        .without_effect(),
    memory(
        D::ClusterLinkSendbufLimit,
        0,
        0..=u64::MAX,
        "Bytes waiting on a link of the bus; 0 is no limit",
    )
    .without_effect(),
    text(D::ClusterAnnounceIp, "", "Address to announce").without_effect(),
    int(D::ClusterAnnouncePort, 0, 0..=PORT_MAX, "Port to announce").without_effect(),
    int(D::ClusterAnnounceTlsPort, 0, 0..=PORT_MAX, "TLS port to announce").without_effect(),
    int(D::ClusterAnnounceBusPort, 0, 0..=PORT_MAX, "Bus port to announce").without_effect(),
    text(D::ClusterAnnounceClientIpv4, "", "IPv4 announced to clients")
        .checked(TextCheck::Ipv4)
        .without_effect(),
    text(D::ClusterAnnounceClientIpv6, "", "IPv6 announced to clients")
        .checked(TextCheck::Ipv6)
        .without_effect(),
    int(D::ClusterAnnounceClientPort, 0, 0..=PORT_MAX, "Port announced to clients")
        .without_effect(),
    int(D::ClusterAnnounceClientTlsPort, 0, 0..=PORT_MAX, "TLS port announced to clients")
        .without_effect(),
    text(D::ClusterAnnounceHostname, "", "Host name to announce")
        .checked(TextCheck::HostName)
        .without_effect(),
    text(D::ClusterAnnounceHumanNodename, "", "Name in logs").without_effect(),
    choice(
        D::ClusterPreferredEndpointType,
        "ip",
        &["ip", "hostname", "unknown-endpoint"],
        "How clients are told of a node",
    )
    .without_effect(),
    flag(D::ClusterSlotStatsEnabled, false, "Count use per slot").without_effect(),
    int(
        D::ClusterCompatibilitySampleRatio,
        0,
        0..=100,
        "Percent of commands checked for what a cluster would refuse",
    )
    .without_effect(),
    int(
        D::ClusterSlotMigrationLogMaxLen,
        1000,
        0..=i64::MAX,
        "Finished migrations that are remembered",
    )
    .without_effect(),
    memory(
        D::ClusterSlotMigrationHandoffMaxLagBytes,
        MEBIBYTE,
        0..=LONG_MAX,
        "Lag at which a migration takes over",
    )
    .without_effect(),
    int(
        D::ClusterSlotMigrationWritePauseTimeout,
        10_000,
        0..=i64::MAX,
        "Milliseconds that writes may be held for a migration",
    )
    .without_effect(),
    int(
        D::SlotMigrationMaxFailoverReplBytes,
        0,
        -1..=i64::MAX,
        "Lag at which Valkey's migration takes over; -1 is any",
    )
    .without_effect(),
];
