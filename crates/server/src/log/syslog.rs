//! `syslog-enabled`: each line of the log also goes to the machine's syslog, over its local socket.

use super::Level;
use super::line::syslog_time;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where syslog listens.
pub const SOCKET: &str = "/dev/log";
/// Numbers of facilities; `local1` to `local7` follow.
const USER: u8 = 1;
const LOCAL0: u8 = 16;

pub struct Syslog {
    path: PathBuf,
    socket: UnixDatagram,
    ident: String,
    facility: u8,
}

impl Syslog {
    pub fn open(path: &Path, ident: &str, facility: &str) -> std::io::Result<Syslog> {
        let socket = UnixDatagram::unbound()?;
        // A logger that does not read must not stop who logs.
        socket.set_nonblocking(true)?;
        let facility = match facility.strip_prefix("local").and_then(|n| n.parse::<u8>().ok()) {
            Some(number) => LOCAL0 + number,
            None => USER,
        };
        Ok(Syslog { path: path.to_owned(), socket, ident: ident.to_owned(), facility })
    }

    /// Sends a line. It is lost if nobody listens, as with every user of syslog.
    pub fn send(&self, level: Level, since: Duration, text: &str) {
        let severity = match level {
            Level::Debug => 7,
            Level::Verbose => 6,
            Level::Notice => 5,
            Level::Warning => 4,
        };
        let priority = self.facility * 8 + severity;
        let (time, ident, pid) = (syslog_time(since), &self.ident, std::process::id());
        let line = format!("<{priority}>{time} {ident}[{pid}]: {text}");
        // By its path each time: syslog may have been restarted.
        let _sent = self.socket.send_to(line.as_bytes(), &self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_with_priority_and_name() {
        let dir = std::env::temp_dir().join(format!("russet-syslog-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("log");
        let logger = UnixDatagram::bind(&path).unwrap();
        let syslog = Syslog::open(&path, "kv", "local3").unwrap();
        syslog.send(Level::Warning, Duration::ZERO, "disk full");
        let mut line = [0; 100];
        let len = logger.recv(&mut line).unwrap();
        let expected = format!("<156>Jan  1 00:00:00 kv[{}]: disk full", std::process::id());
        assert_eq!(String::from_utf8_lossy(&line[..len]), expected);
        drop(logger);
        // Nobody listens.
        syslog.send(Level::Warning, Duration::ZERO, "disk full");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
