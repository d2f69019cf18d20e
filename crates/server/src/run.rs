//! From the command line to an orderly end.

use crate::check::check_machine;
use crate::command_line::CommandLine;
use crate::crash_report;
use crate::daemon::{self, PidFile};
use crate::event_loop::{Fleet, Listener};
use crate::host::{Process, ProcessHost};
use crate::listen;
use crate::log::{Level, Log};
use crate::metrics;
use crate::open_files::OpenFiles;
use crate::service::RussetService;
use crate::signals::{self, Event};
use crate::supervisor::Supervisor;
use crate::tls;
use crate::tools;
use russet_commands::node::Node;
use russet_commands::node::config::{Config, Directive, Startup};
use russet_commands::node::snapshot::EndOptions;
use russet_embedded::Engine;
use russet_persistence::rdb::load::Report;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long replies under way may take to be written when the process ends.
const GRACE: Duration = Duration::from_secs(10);

const USAGE: &str = "\
Usage: russet [file] [--name value ...]
       russet --check-config file
       russet check|convert|export ...

  file             a redis.conf-style file, or - for standard input
  --name value     any directive of such a file, e.g. --port 7000 --dir /var/lib/russet
  --check-config   says what each line of the file does, and starts nothing
  --help, -h       this text
  --version, -v    the version

  check            says whether a dump.rdb, an appendonlydir or a log file is good
  convert          makes an RDB file or a log of another one
  export           writes data as lines of JSON, or as commands for redis-cli --pipe
                   (each of them with --help says more)

Without arguments it listens on 127.0.0.1:6379.
";

/// Runs the server; the exit code says how it ended.
pub fn main(args: Vec<OsString>) -> ExitCode {
    if let Some(code) = tools::run(&args) {
        return code;
    }
    let (command_line, visible_secret) = CommandLine::take(&args);
    let config = match Startup::parse(&args) {
        Ok(Startup::Run(config)) => *config,
        Ok(Startup::Check(mut report)) => {
            check_machine(&mut report);
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
    let (supervisor, unsupervised) = Supervisor::find(&config, |name| std::env::var_os(name));
    let is_detached = daemon::is_detached();
    if config.flag(Directive::Daemonize) && supervisor.is_none() && !is_detached {
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
    crash_report::install(&config, &log);
    for why in unsupervised.iter().chain(&visible_secret) {
        log.say(Level::Warning, why);
    }
    match serve(config, &log, Arc::new(supervisor), command_line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // Who looks for the reason later finds it where the lines before it are.
            if is_detached || log.is_kept() {
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

fn serve(
    config: Config,
    log: &Arc<Log>,
    supervisor: Arc<Supervisor>,
    command_line: CommandLine,
) -> Result<(), String> {
    let dir = config.string(Directive::Dir);
    std::env::set_current_dir(&dir).map_err(|error| format!("cannot use dir {dir}: {error}"))?;
    let threads = threads_max(&config);
    fit_clients(&config, threads, log)?;
    let (process, listeners, socket_file) = prepare(&config, command_line, log, &supervisor)?;
    let metrics_listeners = listen::open_metrics(&config)?;

    let host = Box::new(ProcessHost(process.clone()));
    let engine = Engine::with_host(config, host).map_err(|error| error.to_string())?;
    let node = engine.node().clone();
    if let Some(path) = node.acl_file() {
        let loaded = node.load_acl_file(&path);
        loaded.map_err(|why| format!("cannot start because of ACL errors: {why}"))?;
    }
    let (stop, stopped) = mpsc::channel::<Event>();
    let stop_of_load = stop.clone();
    introduce(&process, &node, threads, stop.clone());
    signals::catch(stop, process.clone())
        .map_err(|error| format!("cannot catch signals: {error}"))?;
    let service = Arc::new(RussetService { node: node.clone(), log: log.clone() });
    let threads_min = (node.config.int(Directive::ThreadsMin) as usize).min(threads);
    let fleet = Fleet::start(service, threads_min..=threads)
        .map_err(|error| format!("cannot start the event loops: {error}"))?;
    for directive in [Directive::TcpKeepalive, Directive::MaxNewTlsConnectionsPerCycle] {
        listen::apply(&process.listeners, &fleet, &node, directive)?;
    }
    let _is_first = process.fleet.set(fleet.clone());

    let subject = metrics::Subject { process: process.clone(), node: Arc::downgrade(&node) };
    metrics::start(metrics_listeners, subject)
        .map_err(|error| format!("cannot serve metrics-port: {error}"))?;
    announce(log, &node, threads, &dir);
    let pid_file = PidFile::write(&node.config, log);
    node.note_startup_memory();
    fleet.listen(listeners);
    let files = (&socket_file, &pid_file);
    let loaded = load_unless_stopped((&node, log), (&stop_of_load, &stopped), files);
    process.load_display.end();
    loaded?;
    // First: who has read that it is ready may ask at once.
    process.is_ready.store(true, Ordering::Relaxed);
    say_ready(log, &node.config);
    let watched = supervisor.keep_watchdog(process.ticks.clone());
    watched.map_err(|error| format!("cannot start the watchdog's thread: {error}"))?;
    supervisor.ready();

    wait_for_end(&stopped, &node, &process);
    process.is_ready.store(false, Ordering::Relaxed);
    supervisor.stopping();
    let is_saved = end_calls(&fleet, &node, log);
    drop(engine);
    drop(socket_file);
    drop(pid_file);
    match () {
        () if node.durability.is_cut() => {
            Err("the log has ended incomplete: it can't be written".to_owned())
        }
        () if !is_saved => Err("writes of the last moment could not be saved".to_owned()),
        () => {
            log.say(Level::Notice, "Bye");
            Ok(())
        }
    }
}

/// What is prepared before there is an engine.
fn prepare(
    config: &Config,
    command_line: CommandLine,
    log: &Arc<Log>,
    supervisor: &Arc<Supervisor>,
) -> Result<(Arc<Process>, Vec<Listener>, SocketFile), String> {
    let process = Arc::new(Process::default());
    let listeners = process.listeners.open(config).map_err(|obstacle| obstacle.to_string())?;
    let socket_file = SocketFile(config.string(Directive::UnixSocket));
    let tls = tls::client_config(config).map_err(|why| format!("cannot use TLS: {why}"))?;
    process.connector.set_tls(tls);
    let _is_first = process.connector.log.set(log.clone());
    command_line.show_title(config);
    let _is_first = process.command_line.set(command_line);
    let _is_first = process.log.set(log.clone());
    let _is_first = process.supervisor.set(supervisor.clone());
    // The log says why if it could not be set: the server can do without.
    let _is_set = process.set_oom_score(config);
    Ok((process, listeners, socket_file))
}

/// Ends all calls and connections; false if some of what they wrote could not be saved.
fn end_calls(fleet: &Fleet<RussetService>, node: &Node, log: &Log) -> bool {
    log.say(Level::Notice, "Asked to stop: finishing replies under way");
    node.await_migrations();
    fleet.shut_down();
    if !fleet.wait(GRACE) {
        log.say(Level::Warning, "A command is still running: stopping without it");
        return true;
    }
    node.save_late_writes()
}

/// How many event loops there may be.
fn threads_max(config: &Config) -> usize {
    match config.int(Directive::Threads) {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
        given => given as usize,
    }
}

fn say_ready(log: &Log, config: &Config) {
    let listeners = [
        ("tcp", config.int(Directive::Port) != 0),
        ("unix", !config.string(Directive::UnixSocket).is_empty()),
        ("tls", config.int(Directive::TlsPort) != 0),
    ];
    for (name, _) in listeners.iter().filter(|(_, is_open)| *is_open) {
        log.say(Level::Notice, &format!("Ready to accept connections {name}"));
    }
}

/// The file of `unixsocket`, or an empty path. It is removed with this, so that a start that fails
/// leaves none either.
struct SocketFile(String);

impl SocketFile {
    fn remove(&self) {
        if !self.0.is_empty() {
            let _removed = std::fs::remove_file(&self.0);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Loads what was saved. COMPAT: if the process is to end before that is done, it does at once.
/// Nothing was changed, neither in memory nor on the disk, that would have to be ended.
fn load_unless_stopped(
    (node, log): (&Arc<Node>, &Log),
    (sender, events): (&mpsc::Sender<Event>, &mpsc::Receiver<Event>),
    (socket_file, pid_file): (&SocketFile, &PidFile),
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| {
            let loaded = load_data(node, log);
            // Whoever is not there any more has ended.
            let _sent = sender.send(Event::Loaded);
            loaded
        });
        match events.recv() {
            Ok(Event::Loaded) | Err(_) => {
                loading.join().unwrap_or_else(|_| Err("the load has failed".to_owned()))
            }
            Ok(_) => {
                log.say(Level::Notice, "Asked to stop while loading: the files stay as they are");
                socket_file.remove();
                pid_file.remove();
                std::process::exit(0);
            }
        }
    })
}

/// Loads what was saved, while clients are answered LOADING. A file that can't be loaded is
/// left alone, and nothing is served instead of what it holds.
fn load_data(node: &Arc<Node>, log: &Log) -> Result<(), String> {
    let started = std::time::Instant::now();
    let report = node.load_files()?;
    let seconds = started.elapsed().as_secs_f64();
    let commands = node.durability.loading.commands.load(Ordering::Relaxed);
    if commands > 0 {
        let text = format!("Loaded the log, {commands} commands, in {seconds:.3} seconds");
        log.say(Level::Notice, &text);
    }
    if let Some(report) = report {
        let Report { keys_loaded, keys_expired, version, .. } = report;
        let text = format!(
            "Loaded {keys_loaded} keys (RDB version {version}, {keys_expired} were over) in \
             {seconds:.3} seconds"
        );
        log.say(Level::Notice, &text);
    }
    Ok(())
}

/// Returns when the process is to end, and what is to be saved is.
fn wait_for_end(stopped: &mpsc::Receiver<Event>, node: &Node, process: &Process) {
    // A closed channel would mean that the signal thread is gone, and with it the signals.
    while let Ok(stop) = stopped.recv() {
        let (name, directive) = match stop {
            Event::Command => return,
            Event::Loaded => continue,
            Event::Interrupted => ("SIGINT", Directive::ShutdownOnSigint),
            Event::Terminated => ("SIGTERM", Directive::ShutdownOnSigterm),
        };
        node.host.note(&format!("Received {name}: about to stop"));
        let options = EndOptions::parse(&String::from_utf8_lossy(&node.config.shown(directive)));
        let Err(why) = node.save_at_end(options) else { return };
        // From now on a signal begins another end. First: who reads the line may send one at once.
        process.is_ending.store(false, Ordering::Release);
        node.host.log(&format!("Not stopping: {why}"));
    }
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
fn introduce(process: &Process, node: &Arc<Node>, threads: usize, stop: mpsc::Sender<Event>) {
    let _is_first = process.threads.set(threads);
    let _is_first = process.node.set(Arc::downgrade(node));
    let stop = std::sync::Mutex::new(stop);
    let ask_to_stop = move || {
        let stop = stop.lock().unwrap_or_else(|poison| poison.into_inner());
        // Nobody to tell means that the process is ending already.
        let _sent = stop.send(Event::Command);
    };
    let _is_first = process.stop.set(Box::new(ask_to_stop));
}

fn announce(log: &Log, node: &Node, threads: usize, dir: &str) {
    let version = env!("CARGO_PKG_VERSION");
    log.say(Level::Notice, &format!("Russet {version}, pid {}", std::process::id()));
    let bind = node.config.string(Directive::Bind);
    for (directive, what) in [(Directive::Port, ""), (Directive::TlsPort, " for TLS")] {
        let port = node.config.int(directive);
        if port != 0 {
            log.say(Level::Notice, &format!("Listening on {bind} port {port}{what}"));
        }
    }
    let path = node.config.string(Directive::UnixSocket);
    if !path.is_empty() {
        log.say(Level::Notice, &format!("Listening on {path}"));
    }
    let shards = node.keyspace.shards();
    log.say(Level::Notice, &format!("{threads} event-loop threads, {shards} shards"));
    let directory =
        std::env::current_dir().map_or_else(|_| dir.to_owned(), |p| p.display().to_string());
    log.say(Level::Notice, &format!("Working directory {directory}"));
    node.config.start_warnings().iter().for_each(|line| log.say(Level::Warning, line));
}
