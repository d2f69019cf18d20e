//! What RDB is read from: no bytes may panic, or take more memory than they are worth; what was
//! read can be written, and read again.

use crate::source::Source;
use russet_base::UnixMillis;
use russet_base::crc64::crc64;
use russet_base::hash::KeyHasher;
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::Keyspace;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::NewValue;
use russet_engine::types::hash::HashLimits;
use russet_engine::types::list::ListLimits;
use russet_engine::types::set::SetRules;
use russet_engine::types::zset::ZsetLimits;
use russet_engine::value::Object;
use russet_persistence::rdb::load::{LoadOptions, LoadedKey, Target, load};
use russet_persistence::rdb::payload::{self, Dumping, Restored};
use russet_persistence::rdb::{FieldTtlFormat, Rules};

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const VERSIONS: [u16; 5] = [9, 10, 12, 14, 80];
/// Files of real servers, and one with all that is old.
const FILES: [&[u8]; 3] = [
    include_bytes!("../../rdb/version-9.rdb"),
    include_bytes!("../../rdb/redis-7.0.rdb"),
    include_bytes!("../../rdb/valkey-9.rdb"),
];

fn rules(hasher: KeyHasher) -> Rules {
    Rules {
        set: SetRules {
            intset_entries_max: 512,
            listpack_entries_max: 128,
            listpack_value_bytes_max: 64,
            hasher,
        },
        hash: HashLimits::default(),
        list: ListLimits::default(),
        zset: ZsetLimits::default(),
    }
}

/// Runs with the keys of a keyspace of its own.
fn with_keys(action: impl FnOnce(&mut Keys, &Rules)) {
    let hasher = KeyHasher::with_seed(11);
    let keyspace = Keyspace::new(1, 16, hasher);
    let mut effects = Effects::default();
    let locked = keyspace.lock(keyspace.all_shards());
    let mut keys = keyspace.keys(locked, &mut effects, (0, NOW));
    action(&mut keys, &rules(hasher));
}

/// A payload whose version and sum are right, of bytes that need not be.
pub fn check_payload(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let version = VERSIONS[source.below(VERSIONS.len())];
    let mut payload = source.rest().to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    payload.extend_from_slice(&crc64(&payload).to_le_bytes());
    with_keys(|keys, rules| restore_twice(keys, rules, &payload));
}

/// What a payload gives is dumped, and that gives the same again.
fn restore_twice(keys: &mut Keys, rules: &Rules, payload: &[u8]) {
    let mut dump_of = |key: &[u8], payload: &[u8]| {
        let put = &mut |value: NewValue<'_, Object>| keys.put(key, value, None);
        let restored = payload::restore(payload, (rules, NOW.0), put).ok()?;
        let dumping =
            Dumping { compresses: false, field_ttl: FieldTtlFormat::Valkey, hides_ms: NOW.0 };
        let entry = keys.peek(key);
        assert_eq!(entry.is_none(), restored == Restored::Nothing, "a value, or nothing");
        entry.map(|entry| payload::dump(&entry, dumping))
    };
    let Some(first) = dump_of(b"first", payload) else { return };
    let second = dump_of(b"second", &first).expect("what was dumped can be restored");
    assert_eq!(first.len(), second.len(), "{first:?} {second:?}");
}

/// A file of a real server with some of its bytes changed, or a piece of it gone.
pub fn check_file(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut file = FILES[source.below(FILES.len())].to_vec();
    for _ in 0..source.below(4) {
        let at = source.below(file.len());
        match source.below(4) {
            0 => file.truncate(at.max(1)),
            1 => {
                let end = (at + source.below(64)).min(file.len());
                file.drain(at..end);
            }
            _ => file[at] = source.byte(),
        }
        if file.is_empty() {
            return;
        }
    }
    with_keys(|keys, rules| {
        let options = LoadOptions { rules, now: NOW, checks_sum: false, tries_any_version: true };
        // An error is as good as a file.
        let _report = load(&*file, options, &mut KeysTarget(keys));
    });
}

/// Puts keys where they belong, and forgets the rest.
struct KeysTarget<'t, 'k>(&'t mut Keys<'k>);

impl Target for KeysTarget<'_, '_> {
    fn databases(&self) -> usize {
        16
    }

    fn key(&mut self, loaded: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String> {
        self.0.in_db(loaded.db, |keys| keys.put(loaded.key, value, loaded.expiry));
        Ok(())
    }

    fn function(&mut self, _source: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn request(&mut self, _db: usize, _id: &[u8], _record: OnceRecord<'_>) {}
}
