//! The subcommands of DEBUG that look at keys.

use super::digest::Digest;
use super::full;
use super::unknown;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_base::{Args, num};
use russet_engine::access::idle_seconds;
use russet_engine::store::raw::table::{Cursor, EntryRef, View};
use russet_engine::types::hash;
use russet_engine::types::list::ListRef;
use russet_engine::types::set::{self, SetRef};
use russet_engine::types::string::{self, Text};
use russet_engine::types::zset;
use russet_engine::value::{self, Object, PackedTag};

const NO_TABLE: &str =
    "ERR The value stored at the specified key is not represented using an hash table";

pub(super) fn run(ctx: &mut Ctx, name: &[u8], args: Args) -> Outcome {
    match (name, args.len()) {
        (b"object", 3) => object(ctx, args.at(2), false),
        (b"object", 4) if args.at(3).eq_ignore_ascii_case(b"fast") => object(ctx, args.at(2), true),
        (b"digest", 2) => digest(ctx),
        (b"digest", 3..=4) if args.at(2).eq_ignore_ascii_case(b"full") => full::run(ctx, args),
        (b"digest-value", 3..) => digest_values(ctx, args.from(2)),
        (b"htstats", 3..=4) => table_stats(ctx, args.at(2)),
        (b"htstats-key", 3..=4) => {
            entry(ctx, args.at(2))?;
            Err(Refusal::text(NO_TABLE))
        }
        (b"listpack", 3) => encoded(ctx, args.at(2), "listpack"),
        (b"quicklist", 3..=4) => encoded(ctx, args.at(2), "quicklist"),
        (b"sdslen", 3) => lengths(ctx, args.at(2)),
        (b"structsize", 2) => struct_sizes(ctx),
        (b"populate", 3..=5) => populate(ctx, args),
        _ => Err(unknown(args)),
    }
}

fn entry<'k>(ctx: &'k mut Ctx, key: &[u8]) -> Result<EntryRef<'k, Object>, Refusal> {
    ctx.keys.peek(key).ok_or(Refusal::NoSuchKey)
}

fn object(ctx: &mut Ctx, key: &[u8], is_fast: bool) -> Outcome {
    let now = ctx.keys.now;
    // COMPAT: a key whose time is over is shown as long as it is there.
    let found = ctx.keys.peek_stored(key).ok_or(Refusal::NoSuchKey)?;
    let idle = idle_seconds(found.access(), now);
    let serialized = match is_fast {
        true => String::new(),
        false => format!(" serializedlength:{}", serialized_len(&found)),
    };
    let line = format!(
        "Value at:{:p} refcount:1 encoding:{}{serialized} lru:{} lru_seconds_idle:{idle}",
        found.key().as_ptr(),
        value::encoding(&found),
        found.access(),
    );
    ctx.reply.status(&line);
    DONE
}

fn list_of<'a>(entry: &EntryRef<'a, Object>) -> Option<ListRef<'a>> {
    match entry.value() {
        View::Packed(tag, bytes) if PackedTag::from_u8(tag) == PackedTag::List => {
            Some(ListRef::of_bytes(bytes))
        }
        View::Object(Object::List(list)) => Some(ListRef::Large(list)),
        _ => None,
    }
}

/// Bytes that the value takes in a dump without compression.
fn serialized_len(entry: &EntryRef<'_, Object>) -> usize {
    if let Some(list) = list_of(entry) {
        return list.size().bytes + list.len();
    }
    if let Ok(zset) = zset::stored::zset(entry) {
        return zset.size_bytes();
    }
    if let Ok(hash) = hash::stored::hash(entry) {
        let mut bytes = 0;
        hash.for_each(|field| {
            bytes += field.name.with_bytes(<[u8]>::len) + field.value.with_bytes(<[u8]>::len) + 2;
        });
        return bytes;
    }
    if let Ok(set) = set::stored::set(entry) {
        return set_len(set);
    }
    match string::text(entry) {
        Ok(Text::Int(value)) if i8::try_from(value).is_ok() => 2,
        Ok(Text::Int(value)) if i16::try_from(value).is_ok() => 3,
        Ok(Text::Int(value)) if i32::try_from(value).is_ok() => 5,
        Ok(text) => match text.len() {
            len @ ..64 => len + 1,
            len @ 64..16384 => len + 2,
            len => len + 5,
        },
        Err(_) => 0,
    }
}

fn set_len(set: SetRef<'_>) -> usize {
    let mut bytes = 0;
    set.for_each(&mut |member| bytes += member.with_bytes(<[u8]>::len) + 1);
    bytes
}

fn digest(ctx: &mut Ctx) -> Outcome {
    let mut digest = Digest::default();
    for db in 0..ctx.keys.keyspace().databases() {
        ctx.keys.in_db(db, |keys| {
            let held: Vec<usize> = keys.held().iter().collect();
            if held.iter().all(|shard| keys.shard(*shard).table(db).is_empty()) {
                return;
            }
            // A database counts by its first key that is not over: others may lie in the table.
            let mut is_mixed = false;
            for shard in held {
                keys.expire_fields_of(shard);
                let mut cursor = Cursor::START;
                let now_ms = keys.now.0;
                loop {
                    let mut add = |entry: EntryRef<'_, Object>| {
                        if !std::mem::replace(&mut is_mixed, true) {
                            digest.mix_database(db);
                        }
                        digest.add_entry(&entry, now_ms);
                    };
                    cursor = keys.scan(shard, cursor, &mut add);
                    if cursor.is_end() {
                        break;
                    }
                }
            }
        });
    }
    ctx.reply.status(&digest.hex());
    DONE
}

fn digest_values(ctx: &mut Ctx, keys: Args) -> Outcome {
    ctx.reply.array(keys.len());
    for key in keys.iter() {
        let now_ms = ctx.keys.now.0;
        let found = ctx.keys.peek(key).map(|entry| Digest::of_value(&entry, now_ms));
        ctx.reply.status(&found.unwrap_or_default().hex());
    }
    DONE
}

fn table_stats(ctx: &mut Ctx, arg: &[u8]) -> Outcome {
    let db = num::parse_i64(arg).ok_or(Refusal::NotInteger)?;
    let databases = ctx.keys.keyspace().databases();
    let db = usize::try_from(db).ok().filter(|db| *db < databases);
    let db = db.ok_or_else(|| Refusal::text("ERR Out of range database"))?;
    let (mut keys, mut expires, mut bytes) = (0, 0, 0);
    for shard in ctx.keys.held().iter() {
        let held = ctx.keys.shard(shard);
        keys += held.table(db).len();
        expires += held.table(db).expires_len();
        bytes += held.memory_bytes(db);
    }
    let shards = ctx.keys.held().iter().count();
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n tables: {shards}\n \
         number of entries: {keys}\n bytes: {bytes}\n rehashing index: -1\n\
         [Expires HT]\nHash table 0 stats (main hash table):\n number of entries: {expires}\n"
    );
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

fn encoded(ctx: &mut Ctx, key: &[u8], encoding: &str) -> Outcome {
    let found = entry(ctx, key)?;
    if value::encoding(&found) != encoding {
        return Err(Refusal::text(format!("ERR Not a {encoding} encoded object.")));
    }
    let line = match encoding {
        "listpack" => "Listpack structure printed on stdout",
        _ => "Quicklist structure printed on stdout",
    };
    ctx.reply.status(line);
    DONE
}

fn lengths(ctx: &mut Ctx, key: &[u8]) -> Outcome {
    let found = entry(ctx, key)?;
    let Ok(text) = string::text(&found) else {
        return Err(Refusal::text("ERR Not an sds encoded string."));
    };
    let line = format!(
        "key_sds_len:{} key_sds_avail:0 obj_alloc:{} val_sds_len:{} val_sds_avail:0 val_alloc:0",
        key.len(),
        found.block_bytes(),
        text.len()
    );
    ctx.reply.status(&line);
    DONE
}

fn struct_sizes(ctx: &mut Ctx) -> Outcome {
    let line = format!("bits:{} object:{} ", usize::BITS, size_of::<Object>());
    ctx.reply.bulk(line.as_bytes());
    DONE
}

fn populate(ctx: &mut Ctx, args: Args) -> Outcome {
    let number = |at: usize| match args.get(at) {
        None => Ok(None),
        Some(arg) => num::parse_i64(arg).map(Some).ok_or(Refusal::NotInteger),
    };
    let positive = |value: i64| u64::try_from(value).map_err(|_| Refusal::NotPositive);
    let count = positive(number(2)?.unwrap_or(0))?;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = number(4)?.map(positive).transpose()?;
    if size.is_some_and(|size| size > ctx.node.config.memory(Directive::ProtoMaxBulkLen)) {
        return Err(Refusal::NotPositive);
    }
    for index in 0..count {
        let key = [prefix, b":", index.to_string().as_bytes()].concat();
        if ctx.keys.exists(&key) {
            continue;
        }
        let mut bytes = format!("value:{index}").into_bytes();
        if let Some(size) = size.filter(|size| *size > 0) {
            bytes.resize(size as usize, 0);
        }
        ctx.keys.put_string(&key, &bytes, None);
        ctx.keys.changed(&key);
        ctx.keys.record([b"SET", &*key, &*bytes]);
    }
    ctx.reply.ok();
    DONE
}
