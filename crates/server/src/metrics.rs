//! `metrics-port`: figures for Prometheus and the health of the server, over HTTP, from a thread of
//! its own. It takes no shard's lock and runs no command, so that a busy server can still be seen.

mod families;
mod http;
mod own;
mod page;
mod serve;

use crate::host::Process;
use http::{Answer, Request};
use page::Page;
use russet_commands::node::Node;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

pub use serve::start;

const PLAIN: &str = "text/plain; charset=utf-8";

/// What requests are about.
pub struct Subject {
    pub process: Arc<Process>,
    pub node: Weak<Node>,
}

impl Subject {
    fn answer(&self, request: &Request) -> Answer {
        match request.path {
            "/metrics" => self.metrics(request.wants_open_metrics),
            "/health/live" => Answer::text(200, PLAIN, "live\n".to_owned()),
            "/health/ready" => match self.process.is_ready.load(Ordering::Relaxed) {
                true => Answer::text(200, PLAIN, "ready\n".to_owned()),
                false => Answer::text(503, PLAIN, "loading or ending\n".to_owned()),
            },
            "/" => {
                let paths = "/metrics\n/health/live\n/health/ready\n";
                Answer::text(200, PLAIN, paths.to_owned())
            }
            _ => Answer::text(404, PLAIN, "no such page\n".to_owned()),
        }
    }

    fn metrics(&self, is_open: bool) -> Answer {
        let Some(node) = self.node.upgrade() else {
            return Answer::text(503, PLAIN, "ending\n".to_owned());
        };
        let mut page = Page::new(is_open);
        families::write(&mut page, &node);
        own::write(&mut page, &node);
        Answer::text(200, page.content_type(), page.finish())
    }
}
