//! A guard against web pages: a browser can be made to send an HTTP request to any port of its
//! machine, and lines of its body would run as inline commands. So a client whose input looks like
//! HTTP is closed at the first such line, and nothing after it runs.

use crate::call::session::Session;
use crate::node::Node;
use std::sync::atomic::{AtomicI64, Ordering};

/// The first args of lines that an HTTP request can't do without: one begins each request that
/// has a body, the other is a header of every request.
const HTTP_ARGS: [&[u8]; 2] = [b"post", b"host:"];
/// At most one warning in this time, so that a page which tries again and again can't fill the log.
const WARNING_INTERVAL_MS: i64 = 60_000;

/// When the last warning was logged.
#[derive(Default)]
pub struct HttpGuard {
    /// Unix time; 0 before the first.
    warned_ms: AtomicI64,
}

impl HttpGuard {
    /// Whether a warning is due; one caller in [`WARNING_INTERVAL_MS`] gets true.
    fn is_warning_due(&self, now_ms: i64) -> bool {
        let before = self.warned_ms.load(Ordering::Relaxed);
        // A clock that was set back is no reason to be silent until it has caught up.
        let is_due = before == 0 || now_ms < before || now_ms - before >= WARNING_INTERVAL_MS;
        is_due
            && self
                .warned_ms
                .compare_exchange(before, now_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// Whether a request with this first arg, which is no command's name, comes from HTTP.
pub(crate) fn is_http(first_arg: &[u8]) -> bool {
    HTTP_ARGS.iter().any(|http| first_arg.eq_ignore_ascii_case(http))
}

/// Closes the client without a reply; as in Redis, those that are not sent yet are lost with it.
pub(crate) fn close(node: &Node, session: &mut Session) {
    session.cut_off();
    if node.http_guard.is_warning_due(node.clock.now().0) {
        let address = &session.card.address;
        node.host.log(&format!(
            "Closed the connection from {address}: it sent POST or Host:, as a web page that tries \
             to run commands here would. Further ones are not logged for a minute."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_known_by_its_first_arg_alone() {
        assert!(is_http(b"POST") && is_http(b"post") && is_http(b"Host:") && is_http(b"HOST:"));
        assert!(!is_http(b"host") && !is_http(b"Host:x") && !is_http(b"posts") && !is_http(b""));
    }

    #[test]
    fn one_warning_a_minute() {
        let guard = HttpGuard::default();
        assert!(guard.is_warning_due(1_000_000));
        assert!(!guard.is_warning_due(1_059_999));
        assert!(guard.is_warning_due(1_060_000));
        assert!(guard.is_warning_due(5), "the clock was set back");
    }
}
