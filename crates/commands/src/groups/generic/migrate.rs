//! MIGRATE: moves keys to another server. Their values are dumped, and the keys marked, while their
//! shards are locked; a thread of its own carries them over, with nothing locked; then the call is
//! made again, and deletes those that have arrived. Until then nobody may use them (see
//! `engine/src/moving.rs`), and whatever goes wrong, they stay. A client that goes meanwhile leaves
//! the rest to housekeeping (`migrate/running.rs`).
//!
//! Inside a transaction, a script or ONCE there is no later: there the shards stay locked
//! meanwhile, as the whole server does in Redis.

mod running;
mod transfer;

use super::dump::dumping;
use crate::call::client::Hold;
use crate::call::ctx::{Ctx, DONE, Flow, Outcome};
use crate::call::invoke::Origin;
use crate::error::Refusal;
use russet_base::{Args, UnixMillis, num};
use russet_catalog::migrate_keyword;
use russet_persistence::rdb::payload;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transfer::{Failure, Item, Job, Login, Task, Transferred};

pub use running::{Migration, Migrations};

/// What a timeout of 0 or less means.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);

struct Request<'a> {
    keys: Vec<&'a [u8]>,
    db: i64,
    timeout: Duration,
    is_copying: bool,
    is_replacing: bool,
    login: Option<Login>,
}

impl<'a> Request<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Refusal> {
        let (mut is_copying, mut is_replacing, mut login) = (false, false, None);
        let mut keys = vec![args.at(3)];
        let end = migrate_keyword(args).unwrap_or(args.len());
        let mut options = (6..end).map(|at| args.at(at));
        while let Some(option) = options.next() {
            let mut next_arg = || options.next().map(<[u8]>::to_vec).ok_or(Refusal::Syntax);
            match option.to_ascii_lowercase().as_slice() {
                b"copy" => is_copying = true,
                b"replace" => is_replacing = true,
                b"auth" => login = Some(Login { user: None, password: next_arg()? }),
                b"auth2" => login = Some(Login { user: Some(next_arg()?), password: next_arg()? }),
                _ => return Err(Refusal::Syntax),
            }
        }
        if end < args.len() {
            if !args.at(3).is_empty() {
                return Err(Refusal::text(
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                     empty string",
                ));
            }
            keys = args.from(end + 1).iter().collect();
        }
        let timeout = num::parse_i64(args.at(5)).ok_or(Refusal::NotInteger)?;
        let db = num::parse_i64(args.at(4)).ok_or(Refusal::NotInteger)?;
        let timeout = match u64::try_from(timeout) {
            Ok(ms) if ms > 0 => Duration::from_millis(ms),
            _ => TIMEOUT_DEFAULT,
        };
        Ok(Request { keys, db, timeout, is_copying, is_replacing, login })
    }
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password]
/// [KEYS key ...]`
pub fn migrate(ctx: &mut Ctx, args: Args) -> Outcome {
    if let Some(migration) = ctx.session.migration.take() {
        return match migration.end(ctx.keys) {
            Some(result) => {
                migration.is_answered.store(true, Ordering::Relaxed);
                answer(ctx, result)
            }
            None => wait(ctx, migration),
        };
    }
    let request = Request::parse(args)?;
    let items = dump_all(ctx, &request.keys);
    if items.is_empty() {
        ctx.reply.status("NOKEY");
        return DONE;
    }
    let keys: Vec<Box<[u8]>> = items.iter().map(|item| item.key.clone()).collect();
    let is_copying = request.is_copying;
    let job = Job {
        host: String::from_utf8_lossy(args.at(1)).into_owned(),
        port: num::parse_i64(args.at(2)).and_then(|port| u16::try_from(port).ok()),
        timeout: request.timeout,
        login: request.login,
        db: request.db,
        is_replacing: request.is_replacing,
        items,
        clock: ctx.node.clock.clone(),
    };
    let task = Task::new(job, ctx.node.host.connector());
    if !ctx.may_block || ctx.origin != Origin::Client {
        task.run();
        let outcome = task.outcome().unwrap_or_else(Transferred::never_begun);
        if !is_copying {
            running::delete_arrived(ctx.keys, &keys, &outcome.arrived);
        }
        return answer(ctx, outcome.failure.map_or(Ok(()), Err));
    }
    let db = ctx.keys.db;
    let moving = Mutex::new(Some(ctx.keys.keyspace().moving().mark(db, keys.clone())));
    let mailbox = ctx.session.mailbox.clone();
    let is_answered = AtomicBool::new(false);
    let migration = Migration { task, db, keys, is_copying, moving, mailbox, is_answered };
    let migration = Arc::new(migration);
    start_when_durable(ctx, &migration)?;
    ctx.node.migrations.add(migration.clone());
    wait(ctx, migration)
}

/// With `appendfsync always` nothing leaves before what it shows is durable, to other servers
/// neither. The transaction that can't wait for that has its own writes in it, which are not even
/// in the journal.
fn start_when_durable(ctx: &Ctx, migration: &Arc<Migration>) -> Result<(), Refusal> {
    let (journal, offset) = (ctx.node.keyspace.journal(), ctx.keys.last_write());
    if journal.is_released(offset) {
        return start(migration.clone());
    }
    let migration = migration.clone();
    journal.defer(
        offset,
        Box::new(move || {
            if start(migration.clone()).is_err() {
                migration.abandon();
            }
            None
        }),
    );
    Ok(())
}

/// The values that are there, in the order of their keys, each once.
fn dump_all(ctx: &mut Ctx, keys: &[&[u8]]) -> Vec<Item> {
    let dumping = dumping(ctx);
    let mut items: Vec<Item> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for key in keys.iter().filter(|key| seen.insert(**key)) {
        if let Some(entry) = ctx.keys.read(key) {
            let expiry = entry.expiry().map(UnixMillis);
            let payload = payload::dump(&entry, dumping);
            items.push(Item { key: (*key).into(), expiry, payload });
        }
    }
    items
}

fn start(migration: Arc<Migration>) -> Result<(), Refusal> {
    let run = move || migration.run();
    let started = std::thread::Builder::new().name("migrate".into()).spawn(run);
    started.map(drop).map_err(|_| Refusal::text(Failure::Connecting.text()))
}

/// The call is given again when the transfer is over.
fn wait(ctx: &mut Ctx, migration: Arc<Migration>) -> Outcome {
    ctx.session.migration = Some(migration);
    ctx.session.hold = Hold::Job;
    Ok(Flow::Later)
}

fn answer(ctx: &mut Ctx, result: Result<(), Failure>) -> Outcome {
    // COMPAT: what has arrived is gone from here, and the reply is an error even so
    // (tests/tests/migrate.rs).
    result.map_err(|failure| Refusal::text(failure.text()))?;
    ctx.reply.ok();
    DONE
}
