//! What is kept of a request that has run: stored beside its command's first key, recorded, and
//! brought back from a record.

use super::{Homes, Request};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::Node;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, UnixMillis, num};
use russet_engine::keys::Keys;
use russet_engine::keyspace::{Keyspace, Location};
use russet_engine::once::OnceRecord;
use russet_engine::store::shard_set::ShardSet;
use std::sync::atomic::Ordering;

/// Longest reply that is kept. Of a longer one only the fact is.
const REPLY_BYTES_MAX: usize = 64 * 1024;

/// All that is known of a request before it runs.
pub(super) struct Keeping<'a> {
    id: &'a [u8],
    digest: u128,
    homes: Homes,
    expires: UnixMillis,
    /// A transaction may select another database: a repeat is looked for where the first began.
    db: usize,
    /// The first key of its command, if it will be recorded.
    key: Option<Box<[u8]>>,
}

impl<'a> Keeping<'a> {
    pub fn new(ctx: &Ctx, request: &Request<'a>, (homes, digest): (Homes, u128)) -> Self {
        let key = ctx.keys.is_recording().then(|| request.first_key(ctx.session)).flatten();
        let expires = UnixMillis(ctx.keys.now.0.saturating_add(request.ttl_ms));
        Keeping { id: request.id, digest, homes, expires, db: ctx.keys.db, key: key.map(Box::from) }
    }

    /// The request has run.
    pub fn store(&self, keys: &mut Keys, node: &Node, reply: &[u8]) {
        let too_long;
        let reply = if reply.len() <= REPLY_BYTES_MAX {
            reply
        } else {
            let len = reply.len();
            too_long = format!("-ONCELARGE it ran; its reply of {len} bytes was not kept\r\n");
            too_long.as_bytes()
        };
        let record = OnceRecord { digest: self.digest, reply, expires: self.expires };
        put(keys, (self.db, self.id), self.homes, record);
        node.once.stored.fetch_add(1, Ordering::Relaxed);
        Kept { id: self.id, record, key: self.key.as_deref() }.record(keys, self.db);
    }
}

fn put(keys: &mut Keys, (db, id): (usize, &[u8]), homes: Homes, record: OnceRecord) {
    let (id, now) = ((id, homes.id_hash), keys.now);
    keys.shard(homes.reply).once.put(db, id, record, now);
    if homes.mark != homes.reply {
        let record = OnceRecord { reply: &[], ..record };
        keys.shard(homes.mark).once.put(db, id, record, now);
    }
}

/// What is kept of a request, as it is recorded: `ONCE id PXAT ms digest reply [key]`. It is no
/// call that a client can make.
struct Kept<'a> {
    id: &'a [u8],
    record: OnceRecord<'a>,
    /// The first key of its command.
    key: Option<&'a [u8]>,
}

impl<'a> Kept<'a> {
    fn parse(args: Args<'a>) -> Option<Self> {
        if !(6..=7).contains(&args.len()) || !eq_ignore_case(args.at(2), b"pxat") {
            return None;
        }
        let expires = UnixMillis(num::parse_i64(args.at(3))?);
        let digest = std::str::from_utf8(args.at(4)).ok()?;
        let digest = u128::from_str_radix(digest, 16).ok()?;
        let record = OnceRecord { digest, reply: args.at(5), expires };
        Some(Kept { id: args.at(1), record, key: args.get(6) })
    }

    fn record(&self, keys: &mut Keys, db: usize) {
        if !keys.is_recording() {
            return;
        }
        let OnceRecord { digest, reply, expires } = self.record;
        let (expires, digest) = (expires.0.to_string(), format!("{digest:x}"));
        let call = [b"ONCE", self.id, b"PXAT", expires.as_bytes(), digest.as_bytes(), reply];
        keys.effects.records.push(db, call.into_iter().chain(self.key));
    }
}

/// The shards of a record that is brought back.
pub(super) fn shards(keyspace: &Keyspace, args: Args) -> ShardSet {
    let Some(Kept { id, key, .. }) = Kept::parse(args) else { return ShardSet::EMPTY };
    let mut shards = ShardSet::one(usize::from(keyspace.locate(id).shard));
    shards.insert(usize::from(keyspace.locate(key.unwrap_or(id)).shard));
    shards
}

/// Keeps a request again that was recorded.
pub(super) fn restore(ctx: &mut Ctx, args: Args) -> Outcome {
    let Kept { id, record, key } = Kept::parse(args).ok_or(Refusal::Syntax)?;
    let Location { shard, hash: id_hash } = ctx.keys.locate(id);
    let mark = usize::from(shard);
    let reply = key.map_or(mark, |key| usize::from(ctx.keys.locate(key).shard));
    let db = ctx.keys.db;
    put(ctx.keys, (db, id), Homes { reply, mark, id_hash }, record);
    ctx.reply.ok();
    DONE
}
