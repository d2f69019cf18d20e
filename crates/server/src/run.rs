//! From the command line to an orderly end.

use crate::daemon::{self, PidFile};
use crate::event_loop::Fleet;
use crate::host::{Process, ProcessHost};
use crate::log::{Level, Log};
use crate::open_files::OpenFiles;
use crate::service::RussetService;
use russet_commands::node::Node;
use russet_commands::node::config::{Config, Directive, Startup};
use russet_embedded::Engine;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long replies under way may take to be written when the process ends.
const GRACE: Duration = Duration::from_secs(10);

const USAGE: &str = "\
Usage: russet [file] [--name value ...]
       russet --check-config file

  file             a redis.conf-style file, or - for standard input
  --name value     any directive of such a file, e.g. --port 7000 --dir /var/lib/russet
  --check-config   says what each line of the file does, and starts nothing
  --help, -h       this text
  --version, -v    the version

Without arguments it listens on 127.0.0.1:6379.
";

/// Runs the server; the exit code says how it ended.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let config = match Startup::parse(&args) {
        Ok(Startup::Run(config)) => *config,
        Ok(Startup::Check(report)) => {
            print!("{report}");
            return if report.is_accepted() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Ok(Startup::Help) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(Startup::Version) => {
            println!("russet {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&error.to_string()),
    };
    let is_detached = daemon::is_detached();
    if config.flag(Directive::Daemonize) && !is_detached {
        return match daemon::start(&args, &config) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => fail(&text),
        };
    }
    if is_detached {
        daemon::leave_session();
    }
    let log = match Log::open(&config) {
        Ok(log) => Arc::new(log),
        Err(text) => return fail(&text),
    };
    match serve(config, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            if is_detached {
                log.say(Level::Warning, &text);
            }
            fail(&text)
        }
    }
}

fn fail(text: &str) -> ExitCode {
    eprintln!("russet: {text}");
    ExitCode::from(1)
}

fn serve(config: Config, log: &Arc<Log>) -> Result<(), String> {
    let dir = config.string(Directive::Dir);
    std::env::set_current_dir(&dir).map_err(|error| format!("cannot use dir {dir}: {error}"))?;
    let threads = match config.int(Directive::Threads) {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        given => given as usize,
    };
    fit_clients(&config, threads, log)?;
    let process = Arc::new(Process::default());
    let listeners = process.listeners.open(&config)?;
    let keepalive = u32::try_from(config.int(Directive::TcpKeepalive)).unwrap_or(0);

    let _is_first = process.log.set(log.clone());
    let host = Box::new(ProcessHost(process.clone()));
    let engine = Engine::with_host(config, host).map_err(|error| error.to_string())?;
    let node = engine.node().clone();
    let (stop, stopped) = mpsc::channel::<()>();
    introduce(&process, &node, threads, stop.clone());
    catch_signals(stop).map_err(|error| format!("cannot catch signals: {error}"))?;
    let service = Arc::new(RussetService { node: node.clone() });
    let threads_min = (node.config.int(Directive::ThreadsMin) as usize).min(threads);
    let fleet = Fleet::start(service, threads_min..=threads)
        .map_err(|error| format!("cannot start the event loops: {error}"))?;
    fleet.set_keepalive_seconds(keepalive);
    let _is_first = process.fleet.set(fleet.clone());

    announce(log, &node, threads, &dir);
    let pid_file = PidFile::write(&node.config, log);
    node.note_startup_memory();
    fleet.listen(listeners);
    log.say(Level::Notice, "Ready to accept connections tcp");

    // A closed channel would mean that the signal thread is gone, and with it the way to be told.
    let _told = stopped.recv();
    log.say(Level::Notice, "Asked to stop: finishing replies under way");
    fleet.shut_down();
    if !fleet.wait(GRACE) {
        log.say(Level::Warning, "A command is still running: stopping without it");
    }
    drop(engine);
    let path = node.config.string(Directive::UnixSocket);
    if !path.is_empty() {
        let _removed = std::fs::remove_file(path);
    }
    drop(pid_file);
    log.say(Level::Notice, "Bye");
    Ok(())
}

/// Lowers `maxclients` to what the system allows: a client more would be taken and then lost.
fn fit_clients(config: &Config, threads: usize, log: &Log) -> Result<(), String> {
    let files = OpenFiles::new(threads);
    let asked = u64::try_from(config.int(Directive::MaxClients)).unwrap_or(0);
    let needed = files.needed(asked);
    match files.allow(asked) {
        allowed if allowed == asked => {}
        0 => {
            return Err(format!(
                "the limit of open files (ulimit -n) leaves none for clients: maxclients {asked} \
                 needs {needed}"
            ));
        }
        allowed => {
            let text = format!(
                "maxclients is {allowed} instead of {asked}, which needs {needed} open files: \
                 raise their limit (ulimit -n)"
            );
            log.say(Level::Warning, &text);
            config.replace_int(Directive::MaxClients, allowed as i64);
        }
    }
    Ok(())
}

/// Tells the host about what did not exist when it was made.
fn introduce(process: &Process, node: &Arc<Node>, threads: usize, stop: mpsc::Sender<()>) {
    let _is_first = process.threads.set(threads);
    let _is_first = process.node.set(Arc::downgrade(node));
    let stop = std::sync::Mutex::new(stop);
    let ask_to_stop = move || {
        let stop = stop.lock().unwrap_or_else(|poison| poison.into_inner());
        // Nobody to tell means that the process is ending already.
        let _told = stop.send(());
    };
    let _is_first = process.stop.set(Box::new(ask_to_stop));
}

fn announce(log: &Log, node: &Node, threads: usize, dir: &str) {
    let version = env!("CARGO_PKG_VERSION");
    log.say(Level::Notice, &format!("Russet {version}, pid {}", std::process::id()));
    let port = node.config.int(Directive::Port);
    let bind = node.config.string(Directive::Bind);
    log.say(Level::Notice, &format!("Listening on {bind} port {port}"));
    let shards = node.keyspace.shards();
    log.say(Level::Notice, &format!("{threads} event-loop threads, {shards} shards"));
    let place =
        std::env::current_dir().map_or_else(|_| dir.to_owned(), |p| p.display().to_string());
    log.say(Level::Notice, &format!("Working directory {place}"));
    node.config.start_warnings().iter().for_each(|line| log.say(Level::Warning, line));
}

fn catch_signals(stop: mpsc::Sender<()>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let run = move || {
        for signal in signals.forever() {
            if signal != SIGHUP && stop.send(()).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(run).map(drop)
}
