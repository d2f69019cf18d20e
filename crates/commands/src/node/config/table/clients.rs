//! What clients may take: connections, buffers, tracking.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    int(D::MaxClients, 10_000, 1..=UINT_MAX, "Connections open at once"),
    memory(
        D::ClientQueryBufferLimit,
        GIBIBYTE,
        MEBIBYTE..=LONG_MAX,
        "Most bytes that one client's unfinished request may hold",
    ),
    buffer_limits(
        D::ClientOutputBufferLimit,
        "Per class of client: hard bytes, soft bytes, soft seconds; 0 is no limit",
    ),
    memory_or_percent(
        D::MaxMemoryClients,
        "Memory that all clients may hold before the largest are closed; 0 is no limit",
    ),
    int(
        D::TrackingTableMaxKeys,
        1_000_000,
        0..=i64::MAX,
        "Keys remembered for client-side caching; 0 is no limit",
    ),
];
