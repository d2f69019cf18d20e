//! A backend that looks at every call of a test: the keys of one step share a slot, no key is
//! passed but as a key, and whatever was written has a TTL.

use russet::backend::{Backend, Connection, Listener, Pending, TracksChanges};
use russet::{Kit, Reply, Request};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What stands at the head of every key of a test: `test-` and 16 digits, then a colon.
const APP_BYTES: usize = 21;
/// How long the check of one key may take.
const CHECK_WAIT: Duration = Duration::from_secs(30);

/// What was seen of a test.
#[derive(Clone, Default)]
pub struct Record {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    keys: BTreeSet<Vec<u8>>,
    faults: Vec<String>,
}

impl Record {
    /// Fails if a call broke a rule, or if a key has no TTL. No workflow has keys that stay for
    /// ever; a test that writes one of its own removes it.
    pub async fn check(&self, kit: &Kit) {
        let Seen { keys, faults } = std::mem::take(&mut *self.lock());
        assert!(faults.is_empty(), "{faults:#?}");
        for key in keys {
            let name = String::from_utf8_lossy(&key).into_owned();
            let mut own = kit.connection(russet_base::slot::slot(&key)).await.unwrap();
            let asked = own.call(&Request::new("PTTL").arg(key), CHECK_WAIT).await;
            let ttl_ms = asked.unwrap().as_int();
            assert!(ttl_ms != Some(-1), "{name} has no TTL");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn look_at(&self, request: &Request) {
        let args: Vec<&[u8]> = request.args().collect();
        let mut seen = self.lock();
        seen.keys.extend(args.iter().filter(|arg| is_key(arg)).map(|arg| arg.to_vec()));
        if !matches!(args[0], b"EVAL" | b"EVALSHA") {
            return;
        }
        let count = std::str::from_utf8(args[2]).ok().and_then(|text| text.parse::<usize>().ok());
        let (keys, rest) = args[3..].split_at(count.unwrap_or(0));
        let slots: BTreeSet<u16> = keys.iter().map(|key| russet_base::slot::slot(key)).collect();
        if slots.len() != 1 {
            seen.faults.push(format!("keys in {} slots: {}", slots.len(), texts(keys)));
        }
        if let Some(undeclared) = rest.iter().find(|arg| is_key(arg)) {
            seen.faults.push(format!("an argument that is a key: {}", texts(&[undeclared])));
        }
    }
}

fn is_key(arg: &[u8]) -> bool {
    arg.starts_with(b"test-") && arg.get(APP_BYTES) == Some(&b':')
}

fn texts(args: &[&[u8]]) -> String {
    let texts: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
    texts.join(" ")
}

/// A kit's backend, seen by a [`Record`].
pub struct Recorder {
    kit: Kit,
    record: Record,
    name: &'static str,
}

impl Recorder {
    /// With the name of the backend that it stands for.
    pub fn new(kit: Kit, name: &'static str) -> (Self, Record) {
        let record = Record::default();
        (Recorder { kit, record: record.clone(), name }, record)
    }
}

impl Backend for Recorder {
    fn call<'a>(&'a self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        self.record.look_at(request);
        Box::pin(async move { self.kit.with_timeout(timeout).call(request).await })
    }

    fn connection(&self, slot: u16) -> Pending<'_, Box<dyn Connection>> {
        Box::pin(async move {
            let connection = self.kit.connection(slot).await?;
            let seen: Box<dyn Connection> =
                Box::new(RecordedConnection { connection, record: self.record.clone() });
            Ok(seen)
        })
    }

    fn tracks_changes(&self) -> TracksChanges {
        self.kit.tracks_changes()
    }

    fn tracking<'a>(
        &'a self,
        prefixes: &'a [Vec<u8>],
        listener: Listener,
    ) -> Pending<'a, Box<dyn Connection>> {
        Box::pin(self.kit.tracking(prefixes, listener))
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

struct RecordedConnection {
    connection: Box<dyn Connection>,
    record: Record,
}

impl Connection for RecordedConnection {
    fn call<'a>(&'a mut self, request: &'a Request, timeout: Duration) -> Pending<'a, Reply> {
        self.record.look_at(request);
        self.connection.call(request, timeout)
    }

    fn set_keeps_state(&mut self, keeps_state: bool) {
        self.connection.set_keeps_state(keeps_state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet::key::Family;

    const APP: &str = "test-0123456789abcdef";
    const FAMILY: Family = Family { purpose: "test", version: 1 };

    fn kit() -> (Kit, Kit, Record) {
        let inner = Kit::builder().app(APP).embedded(russet::Options::default()).unwrap();
        let (recorder, record) = Recorder::new(inner.clone(), "embedded");
        (inner, Kit::builder().app(APP).on(recorder).unwrap(), record)
    }

    #[tokio::test]
    #[should_panic(expected = "has no TTL")]
    async fn a_key_without_a_ttl_is_found() {
        let (inner, kit, record) = kit();
        let key = kit.keys(FAMILY, "a").unwrap().key("x");
        kit.call(&Request::new("SET").key(&key).arg(1)).await.unwrap();
        record.check(&inner).await;
    }

    #[tokio::test]
    #[should_panic(expected = "keys in 2 slots")]
    async fn keys_of_several_slots_are_found() {
        let (inner, kit, record) = kit();
        let key = |scope: &str| kit.keys(FAMILY, scope).unwrap().key("x");
        let call = Request::new("EVAL").arg("return 1").arg(2);
        kit.call(&call.key(&key("a")).key(&key("b"))).await.unwrap();
        record.check(&inner).await;
    }

    #[tokio::test]
    #[should_panic(expected = "an argument that is a key")]
    async fn a_key_that_is_not_declared_is_found() {
        let (inner, kit, record) = kit();
        let keys = kit.keys(FAMILY, "a").unwrap();
        let call = Request::new("EVAL").arg("return 1").arg(1).key(&keys.key("x"));
        kit.call(&call.arg(keys.key("y").as_bytes())).await.unwrap();
        record.check(&inner).await;
    }
}
