//! `supervised`: tells systemd or upstart how far the server is, and systemd's watchdog that it
//! still works.

use russet_commands::node::config::{Config, Directive};
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The variables by which supervisors make themselves known.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_MICROS: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
const UPSTART_JOB: &str = "UPSTART_JOB";
/// A watchdog that wants to hear more often than this asks for too much.
const WATCHDOG_MICROS_MIN: u64 = 1000;
/// How long a supervisor that does not read is waited for, and in which steps.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

/// Who has started the server, and wants to know of it.
#[derive(Debug, Default)]
pub enum Supervisor {
    #[default]
    None,
    Systemd(Systemd),
    Upstart,
}

impl Supervisor {
    /// The one that `supervised` names. The text says why there is none although it was asked for.
    /// `environment` is the process's, which tests replace.
    pub fn find(
        config: &Config,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> (Supervisor, Option<String>) {
        let choice = config.choice(Directive::Supervised);
        let (is_auto, socket) = (choice == "auto", environment(NOTIFY_SOCKET));
        let missing = |variable: &str| Some(format!("supervised {choice}: no {variable} is set"));
        match choice {
            "systemd" | "auto" if socket.is_some() => match Systemd::open(&environment) {
                Ok(systemd) => (Supervisor::Systemd(systemd), None),
                Err(error) => (Supervisor::None, Some(format!("supervised {choice}: {error}"))),
            },
            "upstart" | "auto" if environment(UPSTART_JOB).is_some() => (Supervisor::Upstart, None),
            "systemd" => (Supervisor::None, missing(NOTIFY_SOCKET)),
            "upstart" => (Supervisor::None, missing(UPSTART_JOB)),
            _ => {
                debug_assert!(is_auto || choice == "no");
                (Supervisor::None, None)
            }
        }
    }

    pub fn name(&self) -> Option<&'static str> {
        match self {
            Supervisor::None => None,
            Supervisor::Systemd(_) => Some("systemd"),
            Supervisor::Upstart => Some("upstart"),
        }
    }

    /// A supervisor keeps the process in sight: it does not go to the background.
    pub fn is_none(&self) -> bool {
        matches!(self, Supervisor::None)
    }

    /// All is loaded, and clients are served.
    pub fn ready(&self) {
        match self {
            Supervisor::None => {}
            Supervisor::Systemd(systemd) => {
                systemd.send_patiently("READY=1\nSTATUS=Ready to accept connections\n");
            }
            // Upstart waits for the process to stop itself, and then lets it go on.
            Supervisor::Upstart => {
                let _ = rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::STOP,
                );
            }
        }
    }

    /// One line for people, such as `systemctl status` shows.
    pub fn status(&self, text: &str) {
        if let Supervisor::Systemd(systemd) = self {
            systemd.send(&format!("STATUS={text}\n"));
        }
    }

    pub fn stopping(&self) {
        if let Supervisor::Systemd(systemd) = self {
            systemd.send_patiently("STOPPING=1\nSTATUS=Saving and ending\n");
            systemd.is_stopping.store(true, Ordering::Relaxed);
        }
    }

    /// Tells the watchdog that the server works, as long as `ticks` are counted on.
    pub fn keep_watchdog(self: &Arc<Self>, ticks: Arc<AtomicU64>) -> io::Result<()> {
        let Supervisor::Systemd(Systemd { watchdog: Some(period), .. }) = &**self else {
            return Ok(());
        };
        let (period, supervisor) = (*period, Arc::downgrade(self));
        let run = move || {
            let mut seen = None;
            while let Some(supervisor) = supervisor.upgrade() {
                let count = ticks.load(Ordering::Relaxed);
                supervisor.feed(seen.replace(count) != Some(count));
                drop(supervisor);
                std::thread::sleep(period);
            }
        };
        std::thread::Builder::new().name("watchdog".into()).spawn(run).map(drop)
    }

    fn feed(&self, has_moved: bool) {
        if let Supervisor::Systemd(systemd) = self
            && (has_moved || systemd.is_stopping.load(Ordering::Relaxed))
        {
            systemd.send("WATCHDOG=1\n");
        }
    }
}

#[derive(Debug)]
pub struct Systemd {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How often the watchdog is to hear of us: twice in the time that it waits.
    watchdog: Option<Duration>,
    /// What is saved at the end may take long, and then nothing else is done.
    is_stopping: AtomicBool,
}

impl Systemd {
    fn open(environment: impl Fn(&str) -> Option<OsString>) -> io::Result<Systemd> {
        let name = environment(NOTIFY_SOCKET).unwrap_or_default();
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            _ => SocketAddr::from_pathname(&name)?,
        };
        let socket = UnixDatagram::unbound()?;
        // A supervisor that does not read must hold up neither a load nor the end.
        socket.set_nonblocking(true)?;
        let number = |variable: &str| environment(variable)?.to_str()?.parse::<u64>().ok();
        let is_ours = number(WATCHDOG_PID).is_none_or(|pid| pid == u64::from(std::process::id()));
        let micros = number(WATCHDOG_MICROS).filter(|micros| is_ours && *micros > 0);
        let watchdog =
            micros.map(|micros| Duration::from_micros(micros.max(WATCHDOG_MICROS_MIN) / 2));
        Ok(Systemd { socket, address, watchdog, is_stopping: AtomicBool::new(false) })
    }

    fn send(&self, text: &str) {
        // A supervisor that does not listen is no reason to stop.
        let _sent = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }

    /// As `send`, for what is said once: a supervisor that is behind gets a little time.
    fn send_patiently(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = self.socket.send_to_addr(text.as_bytes(), &self.address)
            && error.kind() == io::ErrorKind::WouldBlock
            && Instant::now() < until
        {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_commands::node::config::Startup;

    fn config(supervised: &str) -> Config {
        match Startup::parse(&["--supervised".into(), supervised.into()]).unwrap() {
            Startup::Run(config) => *config,
            other => panic!("{other:?}"),
        }
    }

    fn of(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        }
    }

    struct Listener(UnixDatagram);

    impl Listener {
        fn next(&self) -> String {
            let mut text = [0; 200];
            let len = self.0.recv(&mut text).unwrap();
            String::from_utf8_lossy(&text[..len]).into_owned()
        }
    }

    fn listener(name: &str) -> Listener {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Listener(socket)
    }

    /// `supervised systemd` was refused, and `auto` told nobody anything: a unit of type notify
    /// waited for its start until it was given up.
    #[test]
    fn systemd_is_told_of_start_and_end() {
        let name = format!("russet-supervisor-{}", std::process::id());
        let listener = listener(&name);
        let socket = format!("@{name}");
        for choice in ["systemd", "auto"] {
            let (supervisor, why) =
                Supervisor::find(&config(choice), of(&[(NOTIFY_SOCKET, &socket)]));
            assert!(!supervisor.is_none() && why.is_none(), "{why:?}");
            supervisor.status("Loading: 5 %");
            assert_eq!(listener.next(), "STATUS=Loading: 5 %\n");
            supervisor.ready();
            assert!(listener.next().starts_with("READY=1\n"));
            supervisor.stopping();
            assert!(listener.next().starts_with("STOPPING=1\n"));
        }
    }

    #[test]
    fn the_watchdog_hears_only_of_a_server_that_moves() {
        let name = format!("russet-watchdog-{}", std::process::id());
        let listener = listener(&name);
        let socket = format!("@{name}");
        let variables = [(NOTIFY_SOCKET, socket.as_str()), (WATCHDOG_MICROS, "2000")];
        let (supervisor, _) = Supervisor::find(&config("systemd"), of(&variables));
        let (supervisor, ticks) = (Arc::new(supervisor), Arc::new(AtomicU64::new(0)));
        supervisor.keep_watchdog(ticks.clone()).unwrap();
        assert_eq!(listener.next(), "WATCHDOG=1\n");
        // Without a tick nothing comes, whenever that is; the next message follows a tick.
        ticks.fetch_add(1, Ordering::Relaxed);
        assert_eq!(listener.next(), "WATCHDOG=1\n");
        supervisor.feed(false);
        supervisor.status("last");
        assert_eq!(listener.next(), "STATUS=last\n");
        supervisor.stopping();
        assert!(listener.next().starts_with("STOPPING=1\n"));
        assert_eq!(listener.next(), "WATCHDOG=1\n");
    }

    /// A supervisor that did not read its socket held up the load, and then the end.
    #[test]
    fn who_does_not_read_holds_nothing_up() {
        let name = format!("russet-deaf-{}", std::process::id());
        let listener = listener(&name);
        let socket = format!("@{name}");
        let (supervisor, _) = Supervisor::find(&config("systemd"), of(&[(NOTIFY_SOCKET, &socket)]));
        for percent in 0..10_000 {
            supervisor.status(&format!("Loading: {percent}"));
        }
        supervisor.ready();
        supervisor.stopping();
        assert_eq!(listener.next(), "STATUS=Loading: 0\n");
    }

    #[test]
    fn another_process_s_watchdog_is_not_ours() {
        let variables = [(NOTIFY_SOCKET, "@x"), (WATCHDOG_MICROS, "2000"), (WATCHDOG_PID, "1")];
        let (supervisor, _) = Supervisor::find(&config("auto"), of(&variables));
        let Supervisor::Systemd(systemd) = supervisor else { panic!("no systemd") };
        assert_eq!(systemd.watchdog, None);
    }

    #[test]
    fn who_is_not_there_is_told_nothing() {
        for choice in ["no", "auto"] {
            let (supervisor, why) = Supervisor::find(&config(choice), of(&[]));
            assert!(supervisor.is_none() && why.is_none());
        }
        let (supervisor, why) = Supervisor::find(&config("no"), of(&[(NOTIFY_SOCKET, "@x")]));
        assert!(supervisor.is_none() && why.is_none());
        for (choice, variable) in [("systemd", NOTIFY_SOCKET), ("upstart", UPSTART_JOB)] {
            let (supervisor, why) = Supervisor::find(&config(choice), of(&[]));
            assert!(supervisor.is_none() && why.unwrap().contains(variable));
        }
        let (supervisor, _) = Supervisor::find(&config("auto"), of(&[(UPSTART_JOB, "kv")]));
        assert!(matches!(supervisor, Supervisor::Upstart));
    }
}
