//! Values as lines of JSON: one object for each key. Bytes that are no text in UTF-8 are objects
//! themselves, `{"base64": "..."}`. The members of each type are in docs/tools.md.

use super::Sink;
use crate::rdb::FieldTtlFormat;
use crate::rdb::payload::{Dumping, dump};
use russet_base::{float, num};
use russet_engine::store::raw::table::EntryRef;
use russet_engine::types;
use russet_engine::types::element::Element;
use russet_engine::types::hash::HashRef;
use russet_engine::types::stream::{Group, IdRange, Order, StreamId, StreamRef};
use russet_engine::types::zset::{Direction, ZsetRef};
use russet_engine::value::{Object, Type, type_of};
use std::io::{self, Write};
use std::ops::ControlFlow;

const KNOWN: &str = "the type was looked at just now";

pub struct JsonWriter<W> {
    sink: Sink<W>,
    /// Fields whose time is over by then are left out.
    hides_ms: i64,
    /// What the next member of a list or an object is preceded by.
    needs_comma: bool,
}

impl<W: Write> JsonWriter<W> {
    pub fn new(out: W, hides_ms: i64) -> Self {
        JsonWriter { sink: Sink::new(out), hides_ms, needs_comma: false }
    }

    fn comma(&mut self) {
        if std::mem::replace(&mut self.needs_comma, true) {
            self.sink.put(b",");
        }
    }

    fn open(&mut self, bracket: &[u8]) {
        self.comma();
        self.sink.put(bracket);
        self.needs_comma = false;
    }

    fn close(&mut self, bracket: &[u8]) {
        self.sink.put(bracket);
        self.needs_comma = true;
    }

    /// The name of a member; its value is next.
    fn name(&mut self, name: &str) {
        self.comma();
        self.quoted(name);
        self.sink.put(b":");
        self.needs_comma = false;
    }

    fn quoted(&mut self, text: &str) {
        self.sink.put(b"\"");
        let bytes = text.as_bytes();
        let mut plain_from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let escaped = match byte {
                b'"' => "\\\"".to_owned(),
                b'\\' => "\\\\".to_owned(),
                b'\n' => "\\n".to_owned(),
                b'\r' => "\\r".to_owned(),
                b'\t' => "\\t".to_owned(),
                0..=0x1f | 0x7f => format!("\\u{byte:04x}"),
                _ => continue,
            };
            self.sink.put(&bytes[plain_from..at]);
            self.sink.put(escaped.as_bytes());
            plain_from = at + 1;
        }
        self.sink.put(&bytes[plain_from..]);
        self.sink.put(b"\"");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.comma();
        match std::str::from_utf8(bytes) {
            Ok(text) => self.quoted(text),
            Err(_) => {
                self.sink.put(b"{\"base64\":\"");
                for group in bytes.chunks(3) {
                    self.sink.put(&base64(group));
                }
                self.sink.put(b"\"}");
            }
        }
    }

    fn element(&mut self, element: Element<'_>) {
        element.with_bytes(|text| self.bytes(text));
    }

    fn integer(&mut self, number: i64) {
        self.comma();
        let mut digits = [0; num::I64_TEXT_BYTES_MAX];
        self.sink.put(num::i64_bytes(number, &mut digits));
    }

    fn id(&mut self, id: StreamId) {
        self.bytes(id.text().as_bytes());
    }

    /// A library of functions.
    pub fn library(&mut self, source: &[u8]) -> io::Result<()> {
        self.open(b"{");
        self.name("function");
        self.bytes(source);
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.close(b"}");
        self.sink.put(b"\n");
        self.needs_comma = false;
        self.sink.outcome()
    }

    pub fn entry(&mut self, db: usize, entry: &EntryRef<'_, Object>) -> io::Result<()> {
        self.open(b"{");
        self.name("db");
        self.integer(db as i64);
        self.name("key");
        self.bytes(entry.key());
        self.name("type");
        self.bytes(type_of(entry).name().as_bytes());
        if let Some(at_ms) = entry.expiry() {
            self.name("expires_at_ms");
            self.integer(at_ms);
        }
        self.name("value");
        match type_of(entry) {
            Type::String => {
                types::string::text(entry).expect(KNOWN).with_bytes(|text| self.bytes(text));
            }
            Type::List => {
                let list = types::list::stored::list(entry).expect(KNOWN);
                self.open(b"[");
                list.for_each_in(0..list.len(), |element| self.element(element));
                self.close(b"]");
            }
            Type::Set => {
                self.open(b"[");
                let set = types::set::stored::set(entry).expect(KNOWN);
                set.for_each(&mut |member| self.element(member));
                self.close(b"]");
            }
            Type::Zset => self.zset(types::zset::stored::zset(entry).expect(KNOWN)),
            Type::Hash => self.hash(types::hash::stored::hash(entry).expect(KNOWN)),
            Type::Stream => self.stream(types::stream::stored::stream(entry).expect(KNOWN)),
            Type::Bloom => self.payload(entry),
        }
        self.end_line()
    }

    fn zset(&mut self, zset: ZsetRef<'_>) {
        let mut text = Vec::new();
        self.open(b"[");
        zset.for_each(0..zset.len(), Direction::Forward, |pair| {
            self.open(b"{");
            self.name("member");
            self.element(pair.member);
            self.name("score");
            text.clear();
            float::format_f64(pair.score, &mut text);
            // JSON has no number for it.
            match pair.score.is_finite() {
                true => self.sink.put(&text),
                false => self.bytes(&text),
            }
            self.close(b"}");
        });
        self.close(b"]");
    }

    fn hash(&mut self, hash: HashRef<'_>) {
        self.open(b"[");
        hash.hiding(self.hides_ms).for_each(|field| {
            self.open(b"{");
            self.name("field");
            self.element(field.name);
            self.name("value");
            self.element(field.value);
            if let Some(at_ms) = field.deadline_ms {
                self.name("expires_at_ms");
                self.integer(at_ms);
            }
            self.close(b"}");
        });
        self.close(b"]");
    }

    fn stream(&mut self, stream: StreamRef<'_>) {
        self.open(b"{");
        self.name("last_id");
        self.id(stream.last_id());
        self.name("max_deleted_id");
        self.id(stream.max_deleted_id());
        self.name("entries_added");
        self.integer(stream.entries_added() as i64);
        self.name("entries");
        self.open(b"[");
        stream.visit(IdRange::ALL, Order::Forward, |entry| {
            self.open(b"{");
            self.name("id");
            self.id(entry.id);
            self.name("fields");
            self.open(b"[");
            entry.for_each_field(|name, value| {
                self.open(b"[");
                self.element(name);
                self.element(value);
                self.close(b"]");
            });
            self.close(b"]");
            self.close(b"}");
            ControlFlow::Continue(())
        });
        self.close(b"]");
        self.name("groups");
        self.open(b"[");
        for (name, group) in stream.groups().into_iter().flatten() {
            self.group(name, group);
        }
        self.close(b"]");
        self.close(b"}");
    }

    fn group(&mut self, name: &[u8], group: &Group) {
        self.open(b"{");
        self.name("name");
        self.bytes(name);
        self.name("last_delivered_id");
        self.id(group.last_id);
        if let Some(read) = group.entries_read {
            self.name("entries_read");
            self.integer(read);
        }
        self.name("consumers");
        self.open(b"[");
        for consumer in group.consumers() {
            self.open(b"{");
            self.name("name");
            self.bytes(&consumer.name);
            self.name("seen_at_ms");
            self.integer(consumer.seen_ms);
            if let Some(at_ms) = consumer.active_ms {
                self.name("active_at_ms");
                self.integer(at_ms);
            }
            self.close(b"}");
        }
        self.close(b"]");
        self.name("pending");
        self.open(b"[");
        for (id, pending) in group.pending_in(IdRange::ALL) {
            self.open(b"{");
            self.name("id");
            self.id(id);
            if let Some(owner) = pending.owner {
                self.name("consumer");
                self.bytes(&group.consumer(owner).name);
            }
            self.name("delivered_at_ms");
            self.integer(pending.delivered_ms);
            self.name("deliveries");
            self.integer(pending.deliveries as i64);
            self.close(b"}");
        }
        self.close(b"]");
        self.close(b"}");
    }

    /// What DUMP gives.
    fn payload(&mut self, entry: &EntryRef<'_, Object>) {
        let field_ttl = FieldTtlFormat::default();
        let payload = dump(entry, Dumping { compresses: true, field_ttl, hides_ms: i64::MIN });
        self.open(b"{");
        self.name("dump");
        self.bytes(&payload);
        self.close(b"}");
    }

    /// Writes what is left, and gives the sink back.
    pub fn finish(self) -> io::Result<W> {
        self.sink.finish()
    }
}

/// Up to three bytes as four characters.
fn base64(group: &[u8]) -> [u8; 4] {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let mut text = [b'='; 4];
    for (index, out) in text.iter_mut().enumerate().take(group.len() + 1) {
        *out = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_bytes_encoded() {
        let mut writer = JsonWriter::new(Vec::new(), i64::MIN);
        writer.open(b"[");
        writer.bytes("a\"b\\c\n\u{1}\u{7f}é".as_bytes());
        for bytes in [&b"\xff"[..], b"\xff\xfe", b"\xff\xfe\xfd", b"\xff\0\0\0"] {
            writer.bytes(bytes);
        }
        writer.close(b"]");
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let encoded = ["/w==", "//4=", "//79", "/wAAAA=="];
        let objects = encoded.map(|text| format!("{{\"base64\":\"{text}\"}}")).join(",");
        assert_eq!(text, format!("[\"a\\\"b\\\\c\\n\\u0001\\u007fé\",{objects}]"));
    }
}
