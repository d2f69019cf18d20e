//! What one large call leaves behind: resident memory after its reply, less that before it.

use crate::client::Client;
use crate::failure::Result;
use crate::find::Field;
use crate::memory::{resident_bytes, steady_bytes};
use crate::options::Options;
use crate::report::Table;
use crate::servers::{Kind, Launch};
use std::iter::{once, repeat_n};
use std::thread;
use std::time::Duration;

/// Between two looks.
const WAIT: Duration = Duration::from_secs(1);
const LOOKS: usize = 3;
/// Notifications that the calls' server is to make.
const NOTIFICATIONS: &[&str] = &["CONFIG", "SET", "notify-keyspace-events", "KEA"];

/// Many calls of one kind, or one with many words.
struct Case {
    name: &'static str,
    /// Keys, members or channels.
    count: usize,
    /// What is asked before memory is looked at.
    setup: &'static [&'static [&'static str]],
    /// The requests for so many, and how many replies come.
    requests: fn(usize) -> (Vec<Vec<String>>, usize),
}

const fn case(
    name: &'static str,
    count: usize,
    requests: fn(usize) -> (Vec<Vec<String>>, usize),
) -> Case {
    Case { name, count, setup: &[], requests }
}

static CASES: &[Case] = &[
    case("MGET of missing keys", 500_000, |count| (vec![named(&["MGET"], count, &[])], 1)),
    case("DEL of missing keys", 500_000, |count| (vec![named(&["DEL"], count, &[])], 1)),
    case("MSET and DEL of keys", 200_000, |count| {
        let values = (0..count).flat_map(|number| [name(number), "value".to_owned()]);
        let set = once("MSET".to_owned()).chain(values).collect();
        (vec![set, named(&["DEL"], count, &[])], 2)
    }),
    Case {
        setup: &[NOTIFICATIONS],
        ..case("script of SETs, notifications on", 200_000, |count| {
            (vec![script("for i = 1, N do redis.call('SET', KEYS[1], i) end", count)], 1)
        })
    },
    case("script that sorts elements with a comparator that builds strings", 200_000, |count| {
        let code = "local t = {} for i = 1, N do t[i] = (i * 7919) % N end \
                    table.sort(t, function(a, b) return 'm' .. a < 'm' .. b end) return #t";
        (vec![script(code, count)], 1)
    }),
    case("SUBSCRIBE and UNSUBSCRIBE of channels", 200_000, |count| {
        (vec![named(&["SUBSCRIBE"], count, &[]), named(&["UNSUBSCRIBE"], count, &[])], 2 * count)
    }),
    case("EXEC of GETs", 200_000, |count| {
        let word = |word: &str| vec![word.to_owned()];
        let get = vec!["GET".to_owned(), name(0)];
        let requests = once(word("MULTI")).chain(repeat_n(get, count)).chain(once(word("EXEC")));
        (requests.collect(), count + 2)
    }),
    case("WATCH of keys, UNWATCH", 200_000, |count| {
        (vec![named(&["WATCH"], count, &[]), vec!["UNWATCH".to_owned()]], 2)
    }),
    case("BLPOP of keys", 200_000, |count| (vec![named(&["BLPOP"], count, &["0.1"])], 1)),
];

fn name(number: usize) -> String {
    format!("missing:{number:08}")
}

fn named(before: &[&str], count: usize, after: &[&str]) -> Vec<String> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    owned(before).into_iter().chain((0..count).map(name)).chain(owned(after)).collect()
}

fn script(code: &str, count: usize) -> Vec<String> {
    ["EVAL", &code.replace('N', &count.to_string()), "1", "key"].map(str::to_owned).to_vec()
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Resident memory after large single calls, in MB over that before",
        [
            "call",
            "how many",
            "Russet at once",
            "after 1 s",
            "after 2 s",
            "Valkey at once",
            "after 1 s",
            "after 2 s",
        ],
    );
    for case in CASES {
        let count = if options.is_quick { case.count / 100 } else { case.count };
        let mut row = vec![case.name.to_owned(), count.to_string()];
        for kind in [Kind::Russet, Kind::Valkey] {
            let launch = field.launches.iter().find(|launch| launch.kind == kind);
            let found = launch.map(|launch| measure(launch, case, count)).transpose()?;
            row.extend((0..LOOKS).map(|look| {
                found.as_ref().map_or("-".to_owned(), |found| format!("{:.1}", found[look]))
            }));
        }
        eprintln!("{}", row.join("  "));
        table.row(row);
    }
    table.notes.push(
        "A fresh server for each, with an idle second connection. At once: when the client had \
         read the reply, which itself took up to a second."
            .into(),
    );
    Ok(table)
}

/// MB over those before, at each look.
fn measure(launch: &Launch, case: &Case, count: usize) -> Result<[f64; LOOKS]> {
    let server = launch.start()?;
    let _idle = server.client()?;
    let mut client: Client = server.client()?;
    for words in case.setup {
        client.ask(words)?;
    }
    let before = steady_bytes(server.pid())?;
    let (requests, replies) = (case.requests)(count);
    client.exchange(&requests, replies, drop)?;
    let mut found = [0.0; LOOKS];
    for (look, megabytes) in found.iter_mut().enumerate() {
        if look > 0 {
            thread::sleep(WAIT);
        }
        *megabytes = (resident_bytes(server.pid())? as f64 - before as f64) / 1e6;
    }
    Ok(found)
}
