//! Listening, and the limits of a request on the wire.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    // DIFFERS: Redis listens on every interface unless told otherwise; we start on loopback.
    list(D::Bind, "127.0.0.1", 16, "Addresses to listen on; `-` before one makes it optional"),
    int(D::Port, 6379, 0..=PORT_MAX, "TCP port; 0 listens on no TCP port"),
    flag(D::ProtectedMode, true, "Refuse remote clients while there is no password"),
    int(D::TcpBacklog, 511, 0..=INT_MAX, "Connections that may wait to be accepted").at_start(),
    int(D::TcpKeepalive, 300, 0..=INT_MAX, "Seconds between TCP keepalive probes"),
    text(D::UnixSocket, "", "Path of a Unix socket to listen on; empty is none").at_start(),
    octal(D::UnixSocketPerm, 0, 0o777, "Mode of the Unix socket, octal; 0 leaves it").at_start(),
    text(D::UnixSocketGroup, "", "Group that owns the Unix socket; empty leaves it").at_start(),
    int(D::Timeout, 0, 0..=INT_MAX, "Seconds until an idle client is closed; 0 is never"),
    int(
        D::LoginTimeout,
        60,
        0..=INT_MAX,
        "Seconds until a client that must log in and has not is closed; 0 is never",
    ),
    text(D::BindSourceAddr, "", "Local address of outgoing connections").without_effect(),
    int(D::SocketMarkId, 0, 0..=UINT_MAX, "Packet mark of sockets").at_start().only(&["0"]),
    int(
        D::MaxNewConnectionsPerCycle,
        10,
        1..=1000,
        "Connections accepted in one turn of an event loop",
    )
    .without_effect(),
    flag(D::Mptcp, false, "Listen with multipath TCP").at_start().only(&["no"]),
    list(D::RdmaBind, "", 16, "Addresses to listen on for RDMA").only(&[""]),
    int(D::RdmaPort, 0, 0..=PORT_MAX, "RDMA port; 0 is none").only(&["0"]),
    int(D::RdmaRxSize, 1 << 20, 65536..=16_777_216, "Bytes of an RDMA receive buffer")
        .at_start()
        .without_effect(),
    int(D::RdmaCompletionVector, -1, -1..=1024, "RDMA completion vector; -1 is any")
        .at_start()
        .without_effect(),
    memory(
        D::ProtoMaxBulkLen,
        BULK_BYTES_MAX as u64,
        MEBIBYTE..=LONG_MAX,
        "Longest string that a request may carry",
    ),
    int(D::Lookahead, 16, 1..=INT_MAX, "Commands of a pipeline that are parsed ahead")
        .without_effect(),
    int(D::PrefetchBatchMaxSize, 16, 0..=128, "Keys looked up ahead of a batch of commands")
        .without_effect(),
];
