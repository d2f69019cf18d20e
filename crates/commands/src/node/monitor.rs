//! MONITOR: clients that see every command.

use crate::call::ctx::Ctx;
use crate::call::mail::{Mailbox, Posting};
use crate::node::secrets::shown_args;
use russet_base::{Args, SharedBytes, text};
use russet_catalog::spec::Flags;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

#[derive(Default)]
pub struct Monitors {
    /// By the client's id.
    listeners: RwLock<BTreeMap<u64, Arc<dyn Mailbox>>>,
    count: AtomicUsize,
}

impl Monitors {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    pub fn add(&self, id: u64, mailbox: Arc<dyn Mailbox>) {
        let mut listeners = self.listeners.write().unwrap_or_else(|poison| poison.into_inner());
        listeners.entry(id).or_insert(mailbox);
        self.count.store(listeners.len(), Ordering::Relaxed);
    }

    pub fn remove(&self, id: u64) {
        // Who asks knows at least of its own monitor.
        if !self.is_on() {
            return;
        }
        let mut listeners = self.listeners.write().unwrap_or_else(|poison| poison.into_inner());
        listeners.remove(&id);
        self.count.store(listeners.len(), Ordering::Relaxed);
    }

    /// Shows a command to all monitors. Secrets are never shown.
    pub fn feed(&self, ctx: &mut Ctx, args: Args) {
        if !ctx.command.spec().flags.has_any(Flags::SKIP_MONITOR.or(Flags::ADMIN)) {
            self.show(ctx, args);
        }
    }

    /// Shows it whatever its flags are.
    pub fn show(&self, ctx: &mut Ctx, args: Args) {
        let Ctx { node, session, keys, command, .. } = ctx;
        let micros = node.clock.now_micros();
        let mut line = format!(
            "+{}.{:06} [{} {}]",
            micros.div_euclid(1_000_000),
            micros.rem_euclid(1_000_000),
            session.db,
            if session.is_in_script { "lua" } else { &session.card.address }
        )
        .into_bytes();
        for arg in shown_args(node, (*command, args)) {
            line.push(b' ');
            text::write_quoted(&mut line, arg);
        }
        line.extend_from_slice(b"\r\n");
        let line = SharedBytes::new(line);
        let listeners = self.listeners.read().unwrap_or_else(|poison| poison.into_inner());
        let mut posting = Posting::of(keys);
        for (id, mailbox) in listeners.iter() {
            posting.push_to((*id, mailbox), line.clone());
        }
    }
}
