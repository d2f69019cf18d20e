//! The table: one line for each directive, in files by area. A directive without a line, or with
//! two, does not compile.

use super::directive::Directive;
use super::spec::Spec;

mod clients;
mod cluster;
mod encodings;
mod memory;
mod network;
mod observability;
mod persistence;
mod process;
mod replication;
mod security;
mod tls;

const AREAS: &[&[Spec]] = &[
    network::SPECS,
    clients::SPECS,
    memory::SPECS,
    encodings::SPECS,
    observability::SPECS,
    security::SPECS,
    process::SPECS,
    persistence::SPECS,
    replication::SPECS,
    cluster::SPECS,
    tls::SPECS,
];

/// Directives of older versions that Redis accepts in files and forgets.
pub(super) const RETIRED: &[&str] = &[
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
    "io-threads-do-reads",
    "events-per-io-thread",
];

/// Arguments of files that are no directives with a value, and need a feature that is still
/// missing.
pub(super) const MISSING: &[&str] = &["loadmodule", "rename-command", "user", "sentinel"];

/// How the settings of the modules that come with Redis 8 start.
pub(super) const MODULE_PREFIXES: &[&str] = &["search-", "ts-", "bf-", "cf-"];

static TABLE: [Spec; Directive::COUNT] = build();

const fn build() -> [Spec; Directive::COUNT] {
    let mut table = [AREAS[0][0]; Directive::COUNT];
    let mut is_filled = [false; Directive::COUNT];
    let mut area = 0;
    while area < AREAS.len() {
        let mut line = 0;
        while line < AREAS[area].len() {
            let spec = AREAS[area][line];
            let index = spec.directive as usize;
            assert!(!is_filled[index], "a directive has two lines in the table");
            is_filled[index] = true;
            table[index] = spec;
            line += 1;
        }
        area += 1;
    }
    let mut index = 0;
    while index < is_filled.len() {
        assert!(is_filled[index], "a directive has no line in the table");
        index += 1;
    }
    table
}

impl Directive {
    /// Its line of the table.
    pub fn spec(self) -> &'static Spec {
        &TABLE[self as usize]
    }

    /// The directive of this name or alias, in any case.
    pub fn named(name: &[u8]) -> Option<Directive> {
        exact(name).map(|(directive, _)| directive)
    }
}

/// The retired directive of this name in small letters.
pub(super) fn retired(lower: &[u8]) -> Option<&'static str> {
    RETIRED.iter().copied().find(|retired| retired.as_bytes() == lower)
}

/// The directive that `name` means, and the name in the table's spelling.
pub(super) fn exact(name: &[u8]) -> Option<(Directive, &'static str)> {
    names().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Every name of every directive, aliases included.
pub(super) fn names() -> impl Iterator<Item = (Directive, &'static str)> {
    TABLE.iter().flat_map(|spec| spec.names().map(|name| (spec.directive, name)))
}
