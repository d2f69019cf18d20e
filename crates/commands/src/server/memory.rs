//! MEMORY: where the memory goes.

use crate::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::{AllocatorReport, Node};
use russet_base::{Args, num};
use russet_engine::store::raw::table::View;
use std::sync::atomic::Ordering;

/// What one connection takes besides its buffers: its session, card and socket state.
const CLIENT_BYTES: u64 = 2048;

/// The figures that INFO and MEMORY STATS share.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryReport {
    pub used_bytes: u64,
    pub peak_bytes: u64,
    pub startup_bytes: u64,
    pub clients_bytes: u64,
    /// Everything that is not the users' data.
    pub overhead_bytes: u64,
}

impl MemoryReport {
    pub fn of(node: &Node, allocator: AllocatorReport) -> Self {
        let used_bytes = allocator.allocated_bytes + node.keyspace.memory_bytes();
        let peak_bytes = node.stats.memory_peak_bytes.load(Ordering::Relaxed).max(used_bytes);
        let startup_bytes = node.stats.memory_startup_bytes.load(Ordering::Relaxed).min(used_bytes);
        let of_client = |card: &crate::clients::ClientCard| {
            let buffers = [&card.query_bytes, &card.query_free_bytes, &card.output_bytes];
            let held = buffers.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum::<u64>();
            CLIENT_BYTES + held + card.queued_bytes.load(Ordering::Relaxed)
        };
        let clients_bytes: u64 = node.clients.all().iter().map(|card| of_client(card)).sum();
        let overhead_bytes = (startup_bytes + clients_bytes).min(used_bytes);
        MemoryReport { used_bytes, peak_bytes, startup_bytes, clients_bytes, overhead_bytes }
    }

    pub fn dataset_bytes(&self) -> u64 {
        self.used_bytes - self.overhead_bytes
    }

    pub fn peak_percent(&self) -> f64 {
        self.used_bytes as f64 * 100.0 / self.peak_bytes.max(1) as f64
    }

    /// Of what came after the start.
    pub fn dataset_percent(&self) -> f64 {
        let since_start = self.used_bytes - self.startup_bytes;
        self.dataset_bytes() as f64 * 100.0 / since_start.max(1) as f64
    }
}

pub(crate) fn memory_usage(ctx: &mut Ctx, args: Args) -> Outcome {
    let mut at = 3;
    while let Some(option) = args.get(at) {
        let (true, Some(word)) = (option.eq_ignore_ascii_case(b"samples"), args.get(at + 1)) else {
            return Err(Refusal::Syntax);
        };
        // The figure is exact, so that there is nothing to sample.
        if num::parse_i64(word).ok_or(Refusal::NotInteger)? < 0 {
            return Err(Refusal::Syntax);
        }
        at += 2;
    }
    let Some(entry) = ctx.keys.peek(args.at(2)) else {
        ctx.reply.null();
        return DONE;
    };
    let object_bytes = match entry.value() {
        View::Object(object) => object.memory_bytes(),
        _ => 0,
    };
    let bytes = entry.memory_bytes() + object_bytes;
    ctx.reply.int(i64::try_from(bytes).unwrap_or(i64::MAX));
    DONE
}

pub(crate) fn memory_purge(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.node.host.purge();
    ctx.reply.ok();
    DONE
}

pub(crate) fn memory_malloc_stats(ctx: &mut Ctx, _args: Args) -> Outcome {
    let text = ctx.node.host.allocator_text();
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}
