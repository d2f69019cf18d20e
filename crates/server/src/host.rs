//! What the process tells the commands about itself.

use crate::event_loop::Fleet;
use crate::listen;
use crate::service::RussetService;
use russet_commands::config::Directive;
use russet_commands::node::{AllocatorReport, Host, Node};
use std::sync::{Arc, OnceLock, Weak};
use tikv_jemalloc_ctl::{epoch, stats};

/// The loops exist only after the node does, so the host learns of them later.
#[derive(Default)]
pub struct Process {
    pub fleet: OnceLock<Arc<Fleet<RussetService>>>,
    pub node: OnceLock<Weak<Node>>,
    pub stop: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub threads: OnceLock<usize>,
}

pub struct ProcessHost(pub Arc<Process>);

impl Host for ProcessHost {
    fn allocator(&self) -> AllocatorReport {
        // The figures are cached until the epoch moves. Failing to read one is no reason to fail.
        let _advanced = epoch::advance();
        AllocatorReport {
            allocated_bytes: stats::allocated::read().unwrap_or(0) as u64,
            active_bytes: stats::active::read().unwrap_or(0) as u64,
            resident_bytes: stats::resident::read().unwrap_or(0) as u64,
            process_rss_bytes: resident_set_bytes().unwrap_or(0),
        }
    }

    fn shut_down(&self) {
        if let Some(stop) = self.0.stop.get() {
            stop();
        }
    }

    fn directive_changed(&self, directive: Directive) -> Result<(), String> {
        match directive {
            Directive::TcpKeepalive | Directive::Port | Directive::Bind => {
                match (self.0.fleet.get(), self.0.node.get().and_then(Weak::upgrade)) {
                    (Some(fleet), Some(node)) => listen::apply(fleet, &node, directive),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn threads(&self) -> usize {
        self.0.threads.get().copied().unwrap_or(1)
    }
}

fn resident_set_bytes() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}
