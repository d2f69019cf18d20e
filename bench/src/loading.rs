//! How long a start takes with data: from an RDB file, and from a log. Valkey has written the
//! files, so that both load the same bytes.

use crate::failure::{Doing, Failure, Result};
use crate::find::Field;
use crate::load::{Loader, Plan, Until};
use crate::options::Options;
use crate::report::{Table, cost, figure, goal};
use crate::servers::{Kind, Launch, Server};
use crate::template::{Source, Template};
use crate::throughput::refuse_errors;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 10;
const PIPELINE: usize = 100;
const FILL: &str = "SET key:{s} {v:32}";
const ROUNDS_MAX: usize = 3;
/// Of Valkey's time.
const RATIO_MAX: f64 = 0.5;
/// How long a log may take to be on its way to the disk.
const LOG_WRITE_WAIT: Duration = Duration::from_secs(2);

/// What is loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Rdb,
    Log,
}

impl Kept {
    fn name(self) -> &'static str {
        match self {
            Kept::Nothing => "nothing",
            Kept::Rdb => "RDB file",
            Kept::Log => "log",
        }
    }

    /// More arguments for whoever loads it.
    fn arguments(self) -> &'static [&'static str] {
        if self == Kept::Log { &["--appendonly", "yes"] } else { &["--appendonly", "no"] }
    }
}

/// A directory that is removed at the end.
struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        let _left_to_the_system = fs::remove_dir_all(&self.0);
    }
}

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Load: a start with data",
        ["from", "server", "keys", "load ms", "CPU ms", "÷ Valkey", "goal", "CPU ÷ Valkey"],
    );
    let valkey = field.launches.iter().find(|launch| launch.kind == Kind::Valkey);
    let valkey = valkey.ok_or_else(|| Failure::Usage("load needs a Valkey".into()))?;
    let keys = options.load_keys;
    for kept in [Kept::Rdb, Kept::Log] {
        let files = make(valkey, kept, options)?;
        let mut times: Vec<(Kind, Vec<(f64, f64)>)> = Vec::new();
        for round in 0..options.rounds.min(ROUNDS_MAX) {
            for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
                let took = measure(launch, kept, (&files.0, keys))?;
                eprintln!("load: {} {} round {round} done", kept.name(), launch.kind.name());
                match times.iter_mut().find(|(kind, _)| *kind == launch.kind) {
                    Some((_, all)) => all.push(took),
                    None => times.push((launch.kind, vec![took])),
                }
            }
        }
        let medians: Vec<(Kind, (f64, f64))> =
            times.into_iter().map(|(kind, all)| (kind, median(all))).collect();
        let peer = medians.iter().find(|(kind, _)| *kind == Kind::Valkey).map(|(_, took)| *took);
        for (kind, (wall, cpu)) in medians {
            let is_ours = kind == Kind::Russet;
            let ratio = peer.map(|(peer, _)| wall / peer).filter(|_| is_ours);
            table.row(vec![
                kept.name().to_owned(),
                kind.name().to_owned(),
                keys.to_string(),
                figure(Some(wall)),
                figure(Some(cpu)),
                cost(ratio),
                goal(is_ours.then_some(RATIO_MAX), ratio),
                cost(peer.map(|(_, peer)| cpu / peer).filter(|_| is_ours)),
            ]);
        }
    }
    table.notes.push(
        "Files that Valkey has written: a dump, and a log of SETs. Time from the start of the \
         process until PING is answered, less that of a start without data; medians."
            .to_owned(),
    );
    Ok(table)
}

/// Of each column by itself.
fn median(mut all: Vec<(f64, f64)>) -> (f64, f64) {
    let middle = all.len() / 2;
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let wall = all[middle].0;
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    (wall, all[middle].1)
}

/// Has Valkey write the files.
fn make(valkey: &Launch, kept: Kept, options: &Options) -> Result<Files> {
    let mut launch = valkey.clone();
    let arguments = kept.arguments().iter().chain(&["--auto-aof-rewrite-percentage", "0"]);
    launch.arguments.extend(arguments.map(|arg| (*arg).to_owned()));
    let server = launch.start()?;
    let template = Template::parse(FILL)?;
    let mut loader = Loader::connect(server.port, CONNECTIONS)?;
    let until = Until::Requests(options.load_keys);
    let plan = Plan { template: &template, pipeline: PIPELINE, until };
    let outcome = loader.run(plan, &mut Source::seeded(options.seed).among(options.load_keys))?;
    refuse_errors(server.kind, FILL, &outcome)?;
    match kept {
        Kept::Log => std::thread::sleep(LOG_WRITE_WAIT),
        _ => drop(server.client()?.ask(&["SAVE"])?),
    }
    let files = Files(server.directory().with_extension(kept.name().replace(' ', "-")));
    let name = if kept == Kept::Log { "appendonlydir" } else { "dump.rdb" };
    copy(&server.directory().join(name), &files.0.join(name))?;
    Ok(files)
}

/// A file, or a directory and what is in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let doing = || format!("copying {}", from.display());
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).doing(doing())?;
    }
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).doing(doing());
    }
    fs::create_dir_all(to).doing(doing())?;
    for entry in fs::read_dir(from).doing(doing())? {
        let entry = entry.doing(doing())?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Milliseconds of a start with data beyond one without: on the clock, and of CPU.
fn measure(launch: &Launch, kept: Kept, (files, keys): (&Path, u64)) -> Result<(f64, f64)> {
    let (empty, _) = start(launch, Kept::Nothing, None)?;
    let (loaded, server) = start(launch, kept, Some(files))?;
    let found = server.client()?.number(&["DBSIZE"])?;
    if u64::try_from(found).ok() != Some(keys) {
        let what = format!("has {found} keys instead of {keys}");
        return Err(Failure::server(launch.kind.name(), what));
    }
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let (wall, cpu) = (loaded.0.saturating_sub(empty.0), loaded.1.saturating_sub(empty.1));
    Ok((milliseconds(wall), milliseconds(cpu)))
}

fn start(
    launch: &Launch,
    kept: Kept,
    files: Option<&Path>,
) -> Result<((Duration, Duration), Server)> {
    let mut launch = launch.clone();
    launch.arguments.extend(kept.arguments().iter().map(|arg| (*arg).to_owned()));
    launch.files = files.map(Path::to_owned);
    let started = Instant::now();
    let server = launch.start()?;
    // What was copied is not part of it.
    let wall = started.elapsed().saturating_sub(server.prepared_in());
    // The threads that load have ended.
    let cpu = server.cpu_total()?;
    Ok(((wall, cpu), server))
}
