//! INFO: which sections are asked for, and the text that they make. It locks no shard.

mod activity;
mod commands;
mod process;
mod storage;

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::node::{AllocatorReport, Node, ProcessReport};
use russet_base::Args;
use std::fmt::{Display, Write};

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
    section("debug", "Debug", Shown::Named, activity::debug),
];

/// The text so far, and what the sections are about. What costs a look at the system is looked at
/// once.
struct Report<'n> {
    node: &'n Node,
    process: ProcessReport,
    allocator: AllocatorReport,
    text: String,
}

impl Report<'_> {
    fn line(&mut self, name: &str, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    fn lines(&mut self, lines: &[(&str, &dyn Display)]) {
        lines.iter().for_each(|(name, value)| self.line(name, value));
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

pub(crate) fn info(ctx: &mut Ctx, args: Args) -> Outcome {
    let node = ctx.node;
    let mut report = Report {
        node,
        process: node.host.process(),
        allocator: node.host.allocator(),
        text: String::new(),
    };
    for section in SECTIONS.iter().filter(|section| is_asked(section, args.from(1))) {
        if !report.text.is_empty() {
            report.text.push_str("\r\n");
        }
        let _ = write!(report.text, "# {}\r\n", section.title);
        (section.write)(&mut report);
    }
    ctx.reply.verbatim(b"txt", report.text.as_bytes());
    DONE
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

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
