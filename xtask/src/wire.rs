//! `cargo xtask wire`: proving wire files against a real server, and recording its answers.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use russet_tests::client::Resp;
use russet_tests::server::{Kind, Server};
use russet_tests::wire::known::Known;
use russet_tests::wire::record::record_file;
use russet_tests::wire::{Endpoint, files_under, root, run_file};

#[derive(Default)]
struct Options {
    record: bool,
    print: bool,
    against: Option<String>,
    start: Option<Kind>,
    server_kind: Option<Kind>,
    paths: Vec<PathBuf>,
}

/// Whether everything was as expected.
pub fn main(args: &[String]) -> Result<bool, String> {
    let options = parse(args)?;
    let started = match options.start {
        Some(kind) => Some(Server::start(kind, PEER_OPTIONS)?),
        None => None,
    };
    let address = match (&started, &options.against) {
        (Some(server), _) => server.address(),
        (None, Some(text)) => resolve(text)?,
        (None, None) => return Err("wire: --against host:port or --start kind".to_owned()),
    };
    let mut endpoint = Endpoint::of(address)?;
    if let Some(kind) = options.server_kind.or(options.start) {
        endpoint.kind = kind;
    }
    match options.record {
        true => record(&options, &endpoint),
        false => run(&options, &endpoint),
    }
}

/// DEBUG is refused by peers unless it is allowed at start.
const PEER_OPTIONS: &[&str] = &["--enable-debug-command", "yes"];

fn run(options: &Options, endpoint: &Endpoint) -> Result<bool, String> {
    let paths = match options.paths.is_empty() {
        true => vec![root()],
        false => options.paths.clone(),
    };
    let mut known = Known::of(endpoint)?;
    let files = files_under(&paths);
    let (mut run, mut differed, mut failed) = (0, 0, 0);
    let mut skipped: Vec<(String, usize)> = Vec::new();
    for path in &files {
        let reports = [Resp::V2, Resp::V3].map(|resp| run_file(path, endpoint, resp));
        let left_out = reports.iter().map(|report| report.skipped).sum();
        if left_out > 0 {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            skipped.push((name.into_owned(), left_out));
        }
        for report in reports {
            run += report.run;
            let (expected, unexpected): (Vec<_>, Vec<_>) =
                report.failures.iter().partition(|failure| known.explains(failure));
            differed += expected.len();
            failed += unexpected.len();
            unexpected.iter().for_each(|failure| println!("{failure}"));
        }
    }
    for entry in known.unmet(&files) {
        println!("listed as a difference, and is none: {entry}");
        failed += 1;
    }
    for (reason, count) in known.reasons() {
        println!("known difference, {count} cases: {reason}");
    }
    let total: usize = skipped.iter().map(|(_, count)| count).sum();
    if total > 0 {
        let names = skipped.iter().map(|(name, count)| format!("{name} {count}"));
        println!("the server lacks, cases skipped: {}", names.collect::<Vec<_>>().join(", "));
    }
    println!(
        "{run} cases run, {failed} failed, {differed} differ as listed, {total} skipped ({:?})",
        endpoint.kind
    );
    Ok(failed == 0)
}

fn record(options: &Options, endpoint: &Endpoint) -> Result<bool, String> {
    for path in files_under(&options.paths) {
        let text = match record_file(&path, endpoint) {
            Ok(text) => text,
            Err(why) => {
                eprintln!("{}: {why}", path.display());
                continue;
            }
        };
        if options.print {
            print!("{text}");
        } else {
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(true)
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    let kind = |name: Option<&String>| {
        let name = name.ok_or("a server's kind is missing")?;
        Kind::from_name(name).ok_or_else(|| format!("no such server: {name}"))
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "record" => options.record = true,
            "--print" => options.print = true,
            "--against" => {
                options.against = Some(args.next().ok_or("--against wants host:port")?.clone());
            }
            "--start" => options.start = Some(kind(args.next())?),
            "--server-kind" => options.server_kind = Some(kind(args.next())?),
            other if other.starts_with("--") => return Err(format!("no such option: {other}")),
            // A path may be given from here or from where the wire files are.
            path if Path::new(path).exists() => options.paths.push(PathBuf::from(path)),
            path if root().join(path).exists() => options.paths.push(root().join(path)),
            path => return Err(format!("no such path: {path}")),
        }
    }
    Ok(options)
}

fn resolve(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
    found.next().ok_or_else(|| format!("{text}: no address"))
}
