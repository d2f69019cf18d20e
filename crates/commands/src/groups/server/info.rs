//! INFO: which sections are asked for, and the text that they make. It locks no shard, but for
//! `keysizes`, which locks one after the other.

mod activity;
mod commands;
mod process;
mod storage;

use super::key_sizes::{self, SizesWalk};
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use crate::node::{AllocatorReport, Node, ProcessReport};
use russet_base::{Args, num};
use russet_engine::barrier::Barrier;
use russet_engine::keys::DbCounts;

/// About as much as all sections that are shown by default.
const TEXT_BYTES: usize = 8 << 10;

/// The sections that are about data: what they say waits for the writes that it counts.
const ABOUT_DATA: [&str; 2] = ["keyspace", "keysizes"];

/// When a section is shown without being named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    ByDefault,
    /// With `all` and `everything`.
    WithAll,
    /// Only by its name.
    Named,
}

struct Section {
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&mut Report),
}

const fn section(
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&mut Report),
) -> Section {
    Section { name, title, shown, write }
}

/// In the order of printing.
const SECTIONS: &[Section] = &[
    section("server", "Server", Shown::ByDefault, process::server),
    section("tls", "TLS", Shown::ByDefault, process::tls),
    section("clients", "Clients", Shown::ByDefault, activity::clients),
    section("memory", "Memory", Shown::ByDefault, storage::memory),
    section("persistence", "Persistence", Shown::ByDefault, storage::persistence),
    section("stats", "Stats", Shown::ByDefault, activity::stats),
    section("replication", "Replication", Shown::ByDefault, activity::replication),
    section("cpu", "CPU", Shown::ByDefault, process::cpu),
    section("modules", "Modules", Shown::ByDefault, |_| {}),
    section("commandstats", "Commandstats", Shown::WithAll, commands::commandstats),
    section("errorstats", "Errorstats", Shown::ByDefault, commands::errorstats),
    section("latencystats", "Latencystats", Shown::WithAll, commands::latencystats),
    section("cluster", "Cluster", Shown::ByDefault, |report| report.line("cluster_enabled", 0)),
    section("keyspace", "Keyspace", Shown::ByDefault, storage::keyspace),
    section("keysizes", "Keysizes", Shown::Named, storage::key_sizes),
    section("hotkeys", "Hotkeys", Shown::Named, activity::hot_keys),
    section("debug", "Debug", Shown::Named, activity::debug),
];

/// The text so far, and what the sections are about. What costs a look at the system is looked at
/// once.
struct Report<'n> {
    node: &'n Node,
    process: ProcessReport,
    allocator: AllocatorReport,
    /// How large keys are, if that was asked.
    sizes: Option<SizesWalk>,
    /// By database.
    counts: Vec<DbCounts>,
    text: String,
}

impl Report<'_> {
    fn line(&mut self, name: &str, value: impl Figure) {
        self.show(name, &value);
    }

    fn lines(&mut self, lines: &[(&str, &dyn Figure)]) {
        lines.iter().for_each(|(name, value)| self.show(name, *value));
    }

    fn show(&mut self, name: &str, value: &dyn Figure) {
        self.text.push_str(name);
        self.text.push(':');
        value.write_to(&mut self.text);
        self.text.push_str("\r\n");
    }
}

/// What a line says: a text, or a whole number. Any other figure is made a text first.
trait Figure {
    fn write_to(&self, text: &mut String);
}

impl<T: Figure + ?Sized> Figure for &T {
    fn write_to(&self, text: &mut String) {
        (**self).write_to(text);
    }
}

impl Figure for str {
    fn write_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

impl Figure for String {
    fn write_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

macro_rules! whole_numbers {
    ($($number:ty: $write:path as $wide:ty),*) => {
        $(impl Figure for $number {
            fn write_to(&self, text: &mut String) {
                let mut digits = [0; num::I64_TEXT_BYTES_MAX];
                let digits = $write(<$wide>::from(*self), &mut digits);
                text.push_str(str::from_utf8(digits).unwrap_or_default());
            }
        })*
    };
}

whole_numbers! {
    u8: num::u64_bytes as u64, u32: num::u64_bytes as u64, u64: num::u64_bytes as u64,
    i32: num::i64_bytes as i64, i64: num::i64_bytes as i64
}

impl Figure for usize {
    fn write_to(&self, text: &mut String) {
        (*self as u64).write_to(text);
    }
}

fn is_asked(section: &Section, args: Args) -> bool {
    if args.is_empty() {
        return section.shown == Shown::ByDefault;
    }
    args.iter().any(|arg| match arg.to_ascii_lowercase().as_slice() {
        b"default" => section.shown == Shown::ByDefault,
        b"all" | b"everything" => section.shown != Shown::Named,
        name => name == section.name.as_bytes(),
    })
}

/// The text of the sections that are asked for.
fn text(
    node: &Node,
    (sizes, counts): (Option<SizesWalk>, Vec<DbCounts>),
    is_asked: impl Fn(&Section) -> bool,
) -> String {
    let mut report = Report {
        node,
        process: node.host.process(),
        allocator: node.host.allocator(),
        sizes,
        counts,
        text: String::with_capacity(TEXT_BYTES),
    };
    for section in SECTIONS.iter().filter(|section| is_asked(section)) {
        if !report.text.is_empty() {
            report.text.push_str("\r\n");
        }
        ["# ", section.title, "\r\n"].iter().for_each(|part| report.text.push_str(part));
        (section.write)(&mut report);
    }
    report.text
}

impl Node {
    /// What INFO says without sections being named: for who shows the figures otherwise.
    pub fn info_text(&self) -> String {
        let counts = (0..self.keyspace.databases()).map(|db| self.keyspace.counts(db)).collect();
        text(self, (None, counts), |section| section.shown == Shown::ByDefault)
    }
}

pub(crate) fn info(ctx: &mut Ctx, args: Args) -> Outcome {
    let mut sizes = None;
    // DIFFERS: a transaction or a script can't give up its shards, and is shown no sizes.
    if key_sizes::is_asked(args) && ctx.origin == Origin::Client {
        sizes = key_sizes::count(ctx);
        if sizes.is_none() {
            return Ok(Flow::Again);
        }
    }
    let shows_keys = may_show_keys(ctx, args.from(1))?;
    if shows_keys {
        // Of the sections, that about memory says how many there are.
        ctx.keys.shows(ctx.node.scripts.changes.last());
    }
    let is_shown = |section: &Section| {
        is_asked(section, args.from(1)) && (shows_keys || !ABOUT_DATA.contains(&section.name))
    };
    let is_counted = SECTIONS.iter().any(|section| section.name == "keyspace" && is_shown(section));
    let databases = if is_counted { ctx.node.keyspace.databases() } else { 0 };
    let counts = (0..databases).map(|db| ctx.keys.counts(db)).collect();
    let text = text(ctx.node, (sizes, counts), is_shown);
    if SECTIONS.iter().any(|section| ABOUT_DATA.contains(&section.name) && is_shown(section)) {
        ctx.keys.shows_all();
    }
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

/// Whether it may say how many keys there are, and how large: not while that can't be made durable
/// and has to be. Who wants to know why gets the rest.
fn may_show_keys(ctx: &Ctx, asked: Args) -> Result<bool, Refusal> {
    let (journal, barriers) = (ctx.node.keyspace.journal(), ctx.node.keyspace.barriers());
    let is_durable = !journal.is_strict() || journal.offset() <= journal.durable();
    if is_durable || !barriers.is_up(Barrier::Failed) {
        return Ok(true);
    }
    let is_about_data =
        |arg: &[u8]| ABOUT_DATA.iter().any(|section| arg.eq_ignore_ascii_case(section.as_bytes()));
    match asked.iter().any(is_about_data) {
        true => Err(Refusal::LogFailed(journal.failure())),
        false => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    /// Inside a transaction it told what had been there before.
    #[test]
    fn a_transaction_is_shown_what_it_has_changed() {
        let mut server = TestServer::new();
        ["SET a 1", "SET b 1"].iter().for_each(|line| drop(server.say(line)));
        let info = "INFO keyspace";
        for line in ["MULTI", "FLUSHALL", info, "SET c 1 EX 9", info, "SWAPDB 0 1", info] {
            server.say(line);
        }
        let shown = server.say("EXEC");
        assert!(!shown.contains("keys=2"), "{shown}");
        let counts = ["db0:keys=1,expires=1", "db1:keys=1,expires=1"];
        assert!(counts.iter().all(|count| shown.matches(count).count() == 1), "{shown}");
        assert!(server.say(info).contains("db1:keys=1,expires=1"));
    }

    fn titles(server: &mut TestServer, line: &str) -> Vec<String> {
        let args: Vec<&str> = line.split(' ').collect();
        let reply = server.run(&args);
        let text = String::from_utf8_lossy(reply.as_bytes().expect("INFO is text")).into_owned();
        let titles = text.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(str::to_owned).collect()
    }

    #[test]
    fn sections_are_those_asked_for() {
        let mut server = TestServer::new();
        let by_default = titles(&mut server, "INFO");
        assert!(by_default.contains(&"Server".to_owned()));
        assert!(!by_default.contains(&"Commandstats".to_owned()));
        assert_eq!(titles(&mut server, "INFO default"), by_default);
        assert!(titles(&mut server, "INFO ALL").contains(&"Commandstats".to_owned()));
        assert_eq!(titles(&mut server, "INFO cpu SERVER nosuch"), ["Server", "CPU"]);
        assert!(titles(&mut server, "INFO nosuch").is_empty());
        let mixed = titles(&mut server, "INFO commandstats default");
        assert_eq!(mixed.len(), by_default.len() + 1);
    }

    #[test]
    fn figures_follow_what_happens() {
        let mut server = TestServer::new();
        server.say("SET a 1");
        server.say("GET a");
        server.say("GET b");
        server.say("LPUSH a");
        let text = server.say("INFO all").replace("\\r\\n", "\n");
        for line in [
            "redis_version:8.0.0",
            "server_name:russet",
            "db0:keys=1,expires=0,avg_ttl=0",
            "keyspace_hits:1",
            "keyspace_misses:1",
            "errorstat_ERR:count=1",
            "role:master",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
