//! A stream as commands: its entries, its counters, its groups with their consumers and what is
//! pending.

use super::CommandWriter;
use russet_engine::types::stream::{Group, IdRange, Order, StreamId, StreamRef};
use std::io::Write;
use std::ops::ControlFlow;

impl<W: Write> CommandWriter<W> {
    pub(super) fn stream(&mut self, key: &[u8], stream: StreamRef<'_>) {
        stream.visit(IdRange::ALL, Order::Forward, |entry| {
            self.begin(3 + 2 * entry.fields_len);
            self.arg(b"XADD");
            self.arg(key);
            self.arg(entry.id.text().as_bytes());
            entry.for_each_field(|name, value| {
                self.element(name);
                self.element(value);
            });
            ControlFlow::Continue(())
        });
        if stream.is_empty() {
            // An entry that is gone at once makes a stream without any.
            let id = stream.last_id().max(StreamId { ms: 0, seq: 1 });
            let id = id.text();
            self.command(&[b"XADD", key, b"MAXLEN", b"0", id.as_bytes(), b"x", b"y"]);
        }
        self.begin(7);
        self.arg(b"XSETID");
        self.arg(key);
        self.arg(stream.last_id().text().as_bytes());
        self.arg(b"ENTRIESADDED");
        self.number(stream.entries_added() as i64);
        self.arg(b"MAXDELETEDID");
        self.arg(stream.max_deleted_id().text().as_bytes());
        for (name, group) in stream.groups().into_iter().flatten() {
            self.group(key, name, group);
        }
    }

    fn group(&mut self, key: &[u8], name: &[u8], group: &Group) {
        self.begin(if group.entries_read.is_some() { 7 } else { 5 });
        self.arg(b"XGROUP");
        self.arg(b"CREATE");
        self.arg(key);
        self.arg(name);
        self.arg(group.last_id.text().as_bytes());
        if let Some(read) = group.entries_read {
            self.arg(b"ENTRIESREAD");
            self.number(read);
        }
        for consumer in group.consumers() {
            self.command(&[b"XGROUP", b"CREATECONSUMER", key, name, &consumer.name]);
        }
        // What was given back belongs to nobody: the first consumer has it, as in RDB files.
        let first = group.consumers().next();
        for (id, pending) in group.pending_in(IdRange::ALL) {
            let owner = pending.owner.map(|owner| group.consumer(owner)).or(first);
            let Some(owner) = owner else { continue };
            self.begin(12);
            self.arg(b"XCLAIM");
            self.arg(key);
            self.arg(name);
            self.arg(&owner.name);
            self.arg(b"0");
            self.arg(id.text().as_bytes());
            self.arg(b"TIME");
            self.number(pending.delivered_ms);
            self.arg(b"RETRYCOUNT");
            self.number(pending.deliveries as i64);
            self.arg(b"FORCE");
            self.arg(b"JUSTID");
        }
    }
}
