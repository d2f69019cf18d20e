//! Values of every kind, to bytes and back; files that are cut off and payloads that are changed.

use super::load::{LoadOptions, LoadedKey, Report, Target, load};
use super::payload::{self, Dumping, PayloadError, Restored};
use super::save::{SaveOptions, Writer};
use super::{FieldTtlFormat, RdbError, Rules, VERSION, kind, ziplist, zipmap};
use russet_base::UnixMillis;
use russet_base::crc64::crc64;
use russet_base::hash::KeyHasher;
use russet_engine::keys::{Effects, Keys};
use russet_engine::keyspace::Keyspace;
use russet_engine::once::OnceRecord;
use russet_engine::store::raw::table::{Cursor, NewValue};
use russet_engine::types::bloom::{Bloom, Wish};
use russet_engine::types::element::Element;
use russet_engine::types::hash::{HashBuilder, HashLimits};
use russet_engine::types::list::{ListBuilder, ListLimits};
use russet_engine::types::set::{Encoding, NewSet, SetRules, stored as sets};
use russet_engine::types::stream::{Count, Group, StreamBuilder, StreamId};
use russet_engine::types::string;
use russet_engine::types::zset::stored::Draft;
use russet_engine::types::zset::{Extent, ZsetLimits};
use russet_engine::value::Object;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
const LATER_MS: i64 = NOW.0 + 1_000_000;

fn rules() -> Rules {
    Rules {
        set: SetRules {
            intset_entries_max: 512,
            listpack_entries_max: 128,
            listpack_value_bytes_max: 64,
            hasher: KeyHasher::with_seed(3),
        },
        hash: HashLimits::default(),
        list: ListLimits::default(),
        zset: ZsetLimits::default(),
    }
}

fn with_keys<R>(action: impl FnOnce(&mut Keys) -> R) -> R {
    let keyspace = Keyspace::new(4, 16, KeyHasher::with_seed(3));
    let mut effects = Effects::default();
    let locked = keyspace.lock(keyspace.all_shards());
    action(&mut keyspace.keys(locked, &mut effects, (0, NOW)))
}

fn put_list(keys: &mut Keys, key: &[u8], count: usize) {
    let mut list = ListBuilder::new();
    (0..count).for_each(|at| list.push(Element::parse(format!("{at}x").as_bytes())));
    list.push(Element::Int(-7));
    list.push(Element::Bytes(&vec![b'L'; count * 10]));
    list.put(rules().list, |value| keys.put(key, value, None));
}

fn put_set(keys: &mut Keys, key: &[u8], members: &[&[u8]], count: i64) {
    let rules = rules().set;
    let mut set = NewSet::new(Encoding::Intset, 0, &rules);
    members.iter().for_each(|member| assert!(set.add(Element::parse(member), &rules)));
    (0..count).for_each(|at| assert!(set.add(Element::Int(at * 1000), &rules)));
    sets::put(set, |value| keys.put(key, value, None));
}

fn put_zset(keys: &mut Keys, key: &[u8], count: usize) {
    let limits = rules().zset;
    let mut zset = Draft::new(Extent::default(), limits);
    for at in 0..count {
        let score = match at % 4 {
            0 => at as f64,
            1 => at as f64 / 3.0,
            2 => f64::NEG_INFINITY,
            _ => -1e300,
        };
        zset.upsert(format!("m{at}").as_bytes(), limits, |_| Some(score));
    }
    zset.put(|value| keys.put(key, value, None));
}

fn put_hash(keys: &mut Keys, key: &[u8], count: usize, every: usize) {
    let mut hash = HashBuilder::new(rules().hash, rules().set.hasher);
    for at in 0..count {
        let deadline = (every > 0 && at % every == 0).then_some(LATER_MS + at as i64);
        assert!(hash.add((format!("f{at}").as_bytes(), at.to_string().as_bytes()), deadline));
    }
    hash.put(|value| keys.put(key, value, None));
}

fn put_stream(keys: &mut Keys, key: &[u8], count: u64, has_more: bool) {
    let mut stream = StreamBuilder::new();
    for at in 1..=count {
        if at % 10 == 1 {
            stream.begin_block();
        }
        let value = at.to_string();
        let pairs: &[&[u8]] = match at % 3 {
            0 => &[b"own", b"name", b"and", b"more"],
            _ => &[b"name", value.as_bytes()],
        };
        assert!(stream.append(StreamId::new(at / 3 + 1, at), pairs.iter().copied()));
    }
    if has_more {
        let mut group = Group::new(StreamId::new(2, 3), Some(3));
        let alice = group.add_consumer(b"alice", 77);
        group.add_consumer(b"bob", 78);
        group.deliver(StreamId::new(1, 1), alice, 99);
        group.claim(StreamId::new(1, 2), alice, 55, Count::Set(4));
        group.give_back(StreamId::new(2, 3), Count::Set(2));
        assert!(stream.stream.add_group(b"group", group));
        assert!(stream.stream.add_group(b"idle", Group::new(StreamId::MIN, None)));
        stream.stream.idempotency_mut().note(b"producer", b"message", StreamId::new(1, 1));
        stream.stream.log.last_id = StreamId::new(9000, 0);
        stream.stream.log.max_deleted_id = StreamId::new(3, 0);
        stream.stream.log.entries_added += 5;
    }
    stream.put(|value| keys.put(key, value, None));
}

/// Every type in several sizes.
fn fill(keys: &mut Keys) -> Vec<Vec<u8>> {
    let long = vec![b's'; 100_000];
    for (at, text) in [&b""[..], b"text", b"-1", b"123456789012", &long].iter().enumerate() {
        keys.put(format!("string:{at}").as_bytes(), string::encode(text), None);
    }
    for count in [1, 30, 300, 3000] {
        let key = |kind: &str| format!("{kind}:{count}").into_bytes();
        put_list(keys, &key("list"), count);
        put_set(keys, &key("ints"), &[], count as i64);
        put_set(keys, &key("set"), &[b"a", b"", b"77"], count as i64);
        put_zset(keys, &key("zset"), count);
        put_hash(keys, &key("hash"), count, 0);
        put_hash(keys, &key("leases"), count, 7);
        put_stream(keys, &key("stream"), count as u64, false);
        put_stream(keys, &key("groups"), count as u64, true);
    }
    let wish = Wish { error_rate: 0.01, capacity: 20, expansion: Some(2) };
    let mut bloom = Bloom::new(wish).unwrap();
    (0..100u32).for_each(|item| assert!(bloom.add(&item.to_le_bytes()).is_ok()));
    keys.put(b"bloom", NewValue::Object(Box::new(Object::Bloom(bloom))), None);
    keys.put(b"expiring", string::encode(b"v"), Some(UnixMillis(LATER_MS)));
    all_keys(keys)
}

fn all_keys(keys: &mut Keys) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for shard in 0..keys.keyspace().shards() {
        let mut cursor = Cursor::START;
        loop {
            cursor = keys.scan(shard, cursor, &mut |entry| found.push(entry.key().to_vec()));
            if cursor.is_end() {
                break;
            }
        }
    }
    found.sort();
    found
}

fn dumping(field_ttl: FieldTtlFormat) -> Dumping {
    Dumping { compresses: true, field_ttl, hides_ms: NOW.0 }
}

fn dump(keys: &mut Keys, key: &[u8]) -> Vec<u8> {
    payload::dump(&keys.peek(key).unwrap(), dumping(FieldTtlFormat::Valkey))
}

#[test]
fn every_value_survives_a_payload() {
    with_keys(|keys| {
        for key in fill(keys) {
            for format in [FieldTtlFormat::Valkey, FieldTtlFormat::Redis] {
                let first = payload::dump(&keys.peek(&key).unwrap(), dumping(format));
                let mut found = None;
                let put = &mut |value: NewValue<'_, Object>| {
                    keys.put(b"copy", value, None);
                    found = Some(());
                };
                payload::restore(&first, (&rules(), NOW.0), put).unwrap();
                assert!(found.is_some());
                let name = String::from_utf8_lossy(&key).into_owned();
                let (encoding, copied) = (encoding(keys, &key), encoding(keys, b"copy"));
                assert_eq!(encoding, copied, "{name}");
                let second = payload::dump(&keys.peek(b"copy").unwrap(), dumping(format));
                assert_eq!(first.len(), second.len(), "{name} {format:?}");
                keys.remove(b"copy");
            }
        }
    });
}

fn encoding(keys: &mut Keys, key: &[u8]) -> &'static str {
    russet_engine::value::encoding(&keys.peek(key).unwrap())
}

/// What is loaded goes into the keys; requests and functions are noted.
struct Loaded<'t, 'k> {
    keys: &'t mut Keys<'k>,
    others: Vec<String>,
}

impl Target for Loaded<'_, '_> {
    fn databases(&self) -> usize {
        16
    }

    fn key(&mut self, loaded: LoadedKey<'_>, value: NewValue<'_, Object>) -> Result<(), String> {
        self.keys.in_db(loaded.db, |keys| keys.put(loaded.key, value, loaded.expiry));
        Ok(())
    }

    fn function(&mut self, source: &[u8]) -> Result<(), String> {
        self.others.push(format!("function {}", source.escape_ascii()));
        Ok(())
    }

    fn request(&mut self, db: usize, id: &[u8], record: OnceRecord<'_>) {
        self.others.push(format!("request {db} {} {record:?}", id.escape_ascii()));
    }
}

fn load_into(keys: &mut Keys, file: &[u8]) -> (Result<Report, RdbError>, Vec<String>) {
    let rules = rules();
    let options =
        LoadOptions { rules: &rules, now: NOW, checks_sum: true, tries_any_version: false };
    let mut target = Loaded { keys, others: Vec::new() };
    (load(file, options, &mut target), target.others)
}

fn save(keys: &mut Keys, wanted: &[Vec<u8>]) -> Vec<u8> {
    let options = SaveOptions {
        compresses: true,
        has_sum: true,
        field_ttl: FieldTtlFormat::Valkey,
        has_expiring_fields: true,
    };
    let mut writer = Writer::begin(Vec::new(), options, &[("redis-ver", "7.0.0")]).unwrap();
    writer.function(b"#!lua name=x").unwrap();
    let reply = b"+OK\r\n";
    let record = OnceRecord { digest: 5, reply, expires: UnixMillis(LATER_MS) };
    writer.request(3, b"id", record).unwrap();
    let over = OnceRecord { expires: NOW, ..record };
    writer.request(3, b"over", over).unwrap();
    writer.database(0, (wanted.len() as u64, 1)).unwrap();
    for key in wanted {
        writer.key(&keys.peek(key).unwrap(), None).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn a_file_gives_back_all_that_it_was_given() {
    with_keys(|keys| {
        let wanted = fill(keys);
        let file = save(keys, &wanted);
        let before: Vec<usize> = wanted.iter().map(|key| dump(keys, key).len()).collect();
        with_keys(|other| {
            let (report, others) = load_into(other, &file);
            let report = report.unwrap();
            assert_eq!(report.keys_loaded, wanted.len() as u64);
            assert_eq!((report.bytes, report.version), (file.len() as u64, 80));
            assert_eq!(others.len(), 2, "{others:?}");
            assert_eq!(all_keys(other), wanted);
            for (key, len) in wanted.iter().zip(&before) {
                assert_eq!(dump(other, key).len(), *len, "{}", key.escape_ascii());
            }
            assert_eq!(other.peek(b"expiring").unwrap().expiry(), Some(LATER_MS));
        });
    });
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_an_error_there() {
    with_keys(|keys| {
        fill(keys);
        let few: Vec<Vec<u8>> = ["string:1", "list:30", "ints:30", "set:1", "zset:30", "hash:1"]
            .iter()
            .chain(&["leases:30", "stream:30", "groups:30", "bloom", "expiring"])
            .map(|key| key.as_bytes().to_vec())
            .collect();
        let file = save(keys, &few);
        for len in 0..file.len() {
            let error = with_keys(|other| load_into(other, &file[..len]).0).unwrap_err();
            assert!(error.offset <= len as u64, "{error}");
        }
        // One bit that is another is noticed, by the sum at the latest.
        for at in 0..file.len() - 8 {
            let mut changed = file.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(with_keys(|other| load_into(other, &changed).0).is_err(), "byte {at}");
        }
    });
}

fn sealed(body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&version.to_le_bytes());
    let sum = crc64(&payload);
    payload.extend_from_slice(&sum.to_le_bytes());
    payload
}

fn restored(body: &[u8], version: u16) -> Result<(Restored, Vec<u8>), PayloadError> {
    with_keys(|keys| {
        let put = &mut |value: NewValue<'_, Object>| keys.put(b"k", value, None);
        let restored = payload::restore(&sealed(body, version), (&rules(), NOW.0), put)?;
        let shown =
            keys.peek(b"k").map(|entry| payload::dump(&entry, dumping(FieldTtlFormat::Redis)));
        Ok((restored, shown.unwrap_or_default()))
    })
}

/// A list whose only node was empty became a list of one empty element; the peers refuse it.
#[test]
fn a_node_of_a_list_has_bytes() {
    let body = |container: u8| [kind::LIST_QUICKLIST_2, 1, container, 0];
    for container in [kind::NODE_PLAIN, kind::NODE_PACKED] {
        let found = restored(&body(container as u8), VERSION);
        assert!(matches!(found, Err(PayloadError::Value(_))), "{found:?}");
    }
}

/// No bit of a value can be changed so that reading panics, or gives what can't be dumped.
#[test]
fn changed_values_are_errors_or_values() {
    with_keys(|keys| {
        fill(keys);
        for key in ["string:1", "list:30", "ints:30", "set:1", "zset:30", "hash:30", "leases:1"]
            .iter()
            .chain(&["stream:30", "groups:30", "bloom"])
        {
            let plain = Dumping { compresses: false, ..dumping(FieldTtlFormat::Redis) };
            let payload = payload::dump(&keys.peek(key.as_bytes()).unwrap(), plain);
            let (body, footer) = payload.split_at(payload.len() - 10);
            let version = u16::from_le_bytes([footer[0], footer[1]]);
            for at in 0..body.len() {
                let mut changed = body.to_vec();
                changed[at] ^= 1 << (at % 8);
                let _no_panic = restored(&changed, version);
            }
        }
    });
}

#[test]
fn old_encodings_are_read() {
    let string = |text: &[u8]| [&[text.len() as u8][..], text].concat();
    let pairs: [(&[u8], &[u8]); 2] = [(b"f", b"v"), (b"n", b"42")];
    let zipmap = zipmap::tests::packed(&pairs);
    let list = ziplist::tests::packed(&[b"f", b"v", b"n", b"42"]);
    let hashes = [
        [&[kind::HASH_ZIPMAP][..], &string(&zipmap)].concat(),
        [&[kind::HASH_ZIPLIST][..], &string(&list)].concat(),
        b"\x04\x02\x01f\x01v\x01n\xc0\x2a".to_vec(),
    ];
    let expected = restored(&hashes[2], 9).unwrap().1;
    for hash in hashes {
        assert_eq!(restored(&hash, 9).unwrap(), (Restored::Same, expected.clone()));
    }
    // Redis 7.4's hashes with deadlines: relative ones, absolute ones, and packed.
    let least = LATER_MS.to_le_bytes();
    let early = [&b"\x16\x01\x81"[..], &LATER_MS.to_be_bytes(), b"\x01f\x01v"].concat();
    let relative = [&b"\x18"[..], &least, b"\x01\x01\x01f\x01v"].concat();
    assert_eq!(restored(&early, 12).unwrap().1, restored(&relative, 12).unwrap().1);
    // Valkey's, with a field that is over: it is left out.
    let field = |name: &[u8], at_ms: i64| [name, &at_ms.to_le_bytes()].concat();
    let valkey = [&b"\x16\x02"[..], &field(b"\x01f\x01v", LATER_MS), &field(b"\x01g\x01w", 5)];
    assert_eq!(restored(&valkey.concat(), 80).unwrap().0, Restored::Other);
    assert_eq!(restored(&valkey.concat(), 80).unwrap().1, restored(&relative, 12).unwrap().1);
    let over = [&b"\x16\x01"[..], &field(b"\x01g\x01w", 5)].concat();
    assert_eq!(restored(&over, 80).unwrap(), (Restored::Nothing, Vec::new()));
}

#[test]
fn contradictions_are_errors() {
    for body in [
        &b"\x02\x02\x01a\x01a"[..],
        b"\x04\x02\x01a\x01b\x01a\x01b",
        b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f",
        b"\x03\x01\x01a\xfd",
        b"\x03\x01\x01a\x03abc",
        b"\x12\x00",
        b"\x12\x01\x03\x01a",
        b"\x01\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x01a",
        b"\x07\x81\x00\x00\x00\x00\x00\x00\x04\x04\x00",
        b"\x06\x00",
        b"\x1d\x00",
        b"",
    ] {
        assert!(restored(body, 10).is_err(), "{}", body.escape_ascii());
    }
    for version in [15, 79, 81] {
        assert!(matches!(restored(b"\x00\x01v", version), Err(PayloadError::Footer)));
    }
}
