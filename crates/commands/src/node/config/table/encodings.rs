//! Up to where a collection stays packed.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    int(D::HashMaxListpackEntries, 512, 0..=i64::MAX, "Fields of a packed hash")
        .alias(&["hash-max-ziplist-entries"]),
    memory(D::HashMaxListpackValue, 64, 0..=LONG_MAX, "Longest field or value of a packed hash")
        .alias(&["hash-max-ziplist-value"]),
    int(
        D::ListMaxListpackSize,
        -2,
        INT_MIN..=INT_MAX,
        "Elements of a list chunk, or from -1 to -5 its size: 4, 8, 16, 32 or 64 kilobytes",
    )
    .alias(&["list-max-ziplist-size"]),
    int(
        D::ListCompressDepth,
        0,
        0..=INT_MAX,
        "Chunks at each end of a list that stay uncompressed; 0 compresses none",
    )
    .without_effect(),
    int(D::SetMaxIntsetEntries, 512, 0..=i64::MAX, "Members of an integer set"),
    int(D::SetMaxListpackEntries, 128, 0..=i64::MAX, "Members of a packed set"),
    int(D::SetMaxListpackValue, 64, 0..=i64::MAX, "Longest member of a packed set"),
    int(D::ZsetMaxListpackEntries, 128, 0..=i64::MAX, "Members of a packed sorted set")
        .alias(&["zset-max-ziplist-entries"]),
    memory(D::ZsetMaxListpackValue, 64, 0..=LONG_MAX, "Longest member of a packed sorted set")
        .alias(&["zset-max-ziplist-value"]),
    memory(
        D::HllSparseMaxBytes,
        3000,
        0..=LONG_MAX,
        "Bytes up to which a HyperLogLog stays sparse",
    ),
    memory(D::StreamNodeMaxBytes, 4096, 0..=LONG_MAX, "Bytes of a stream node; 0 is no limit"),
    int(D::StreamNodeMaxEntries, 100, 0..=i64::MAX, "Entries of a stream node; 0 is no limit"),
    choice(
        D::SanitizeDumpPayload,
        "no",
        &["no", "yes", "clients"],
        "How deeply RESTORE and loading check their input",
    )
    .without_effect(),
];
