//! The table: one line for each directive, in files by area. A directive without a line, or with
//! two, does not compile.

use super::directive::Directive;
use super::spec::Spec;
use std::sync::LazyLock;

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

/// Directives that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub title: &'static str,
    pub specs: &'static [Spec],
}

const fn area(title: &'static str, specs: &'static [Spec]) -> Area {
    Area { title, specs }
}

/// All areas, in the order of `Directive::ALL`.
pub const AREAS: &[Area] = &[
    area("Network", network::SPECS),
    area("Clients", clients::SPECS),
    area("Memory", memory::SPECS),
    area("Encodings", encodings::SPECS),
    area("Logs and observation", observability::SPECS),
    area("Security", security::SPECS),
    area("Process, threads and scripts", process::SPECS),
    area("Persistence", persistence::SPECS),
    area("Replication", replication::SPECS),
    area("Cluster", cluster::SPECS),
    area("TLS", tls::SPECS),
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
pub(super) const MISSING: &[&str] = &["loadmodule", "sentinel"];

/// How the settings of the modules that come with Redis 8 start.
pub(super) const MODULE_PREFIXES: &[&str] = &["search-", "ts-", "bf-", "cf-"];

static TABLE: [Spec; Directive::COUNT] = build();

const fn build() -> [Spec; Directive::COUNT] {
    let mut table = [AREAS[0].specs[0]; Directive::COUNT];
    let mut is_filled = [false; Directive::COUNT];
    let mut area = 0;
    while area < AREAS.len() {
        let mut line = 0;
        while line < AREAS[area].specs.len() {
            let spec = AREAS[area].specs[line];
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
    KNOWN.find(name).map(|at| KNOWN.names[at])
}

/// The names of all directives, in the order of the table.
pub(super) struct Known {
    pub(super) names: Vec<(Directive, &'static str)>,
    /// The numbers of names by their length and first letter: a handful each.
    alike: Vec<[Vec<u16>; LETTERS]>,
}

const LETTERS: usize = 26;

pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let names: Vec<_> = names().collect();
    let longest = names.iter().map(|(_, name)| name.len()).max().unwrap_or(0);
    let mut alike = vec![[const { Vec::new() }; LETTERS]; longest + 1];
    for (number, (_, name)) in (0..).zip(&names) {
        let letter = first_letter(name.as_bytes()).expect("every directive begins with a letter");
        alike[name.len()][letter].push(number);
    }
    Known { names, alike }
});

/// Which letter of the alphabet a name begins with, if any.
fn first_letter(name: &[u8]) -> Option<usize> {
    let letter = name.first()?.to_ascii_lowercase();
    letter.is_ascii_lowercase().then(|| usize::from(letter - b'a'))
}

impl Known {
    /// The number of a name, in whatever letters.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        let alike = &self.alike.get(name.len())?[first_letter(name)?];
        let is_same = |number: &usize| self.names[*number].1.as_bytes().eq_ignore_ascii_case(name);
        alike.iter().map(|number| usize::from(*number)).find(is_same)
    }
}

/// Every name of every directive, aliases included.
pub(super) fn names() -> impl Iterator<Item = (Directive, &'static str)> {
    TABLE.iter().flat_map(|spec| spec.names().map(|name| (spec.directive, name)))
}
