//! DEBUG: for tests of the server itself. All shards are locked while it runs.

mod digest;
mod full;
mod keys;
mod protocol;
mod replay;

pub(crate) use replay::Gathered;

use super::protected_refusal;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::Crash;
use crate::node::snapshot::Meeting;
use russet_base::escape::escape;
use russet_base::glob::Glob;
use russet_base::{Args, Random, num};
use std::sync::atomic::Ordering;
use std::time::Duration;

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ASSERT",
    "    End the process as if an assertion had failed.",
    "CHANGE-REPL-ID",
    "    Do nothing: there are no replicas yet.",
    "DIGEST [FULL [<unix-time-ms>]]",
    "    Print a signature of all data; FULL: with deadlines, groups of streams, requests of ONCE",
    "    and functions, as they are at that time.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Print a signature of each value.",
    "ERROR <text>",
    "    Answer with this error.",
    "HTSTATS <db>",
    "    Print figures of a database's tables.",
    "HTSTATS-KEY <key>",
    "    The same for the table of a value.",
    "LISTPACK <key>",
    "    Tell whether the value is packed.",
    "LOG <text>",
    "    Write a line to the log.",
    "OBJECT <key> [fast]",
    "    Print how the value is kept.",
    "PANIC",
    "    End the process by a panic.",
    "PAUSE-CRON <0|1>",
    "    Stop, or start again, what runs in the background.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Make <count> string keys <prefix>:<number>.",
    "PROTOCOL <type>",
    "    Answer with a value of this type: string, integer, double, bignum, null, array, set,",
    "    map, attrib, push, verbatim, true, false.",
    "QUICKLIST <key>",
    "    Tell whether the value is a large list.",
    "RECORD START|TAKE|COMMANDS|STOP",
    "    Gather records of what is changed; answer with those since the last time; with the",
    "    commands that were recorded; end it.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Save, empty all databases, and load again; MERGE lets keys of the file replace others.",
    "REPLAY <db> <command> [<arg> ...]",
    "    Run a record again: nothing expires meanwhile.",
    "SDSLEN <key>",
    "    Print the lengths of a key and its string.",
    "SEGFAULT",
    "    End the process by a write to memory that it does not have.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop, or start again, removing expired keys that nobody asks for.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Let scripts call DEBUG, or not any more.",
    "SLEEP <seconds>",
    "    Do nothing for that long, with all keys locked.",
    "STRINGMATCH-TEST",
    "    Match random patterns with random texts.",
    "STRUCTSIZE",
    "    Print the sizes of some structures.",
    "HELP",
    "    Print this help.",
];

pub(crate) fn debug(ctx: &mut Ctx, args: Args) -> Outcome {
    if let Some(refusal) = protected_refusal(ctx.node, ctx.session, ctx.command) {
        return Err(refusal);
    }
    let name = args.at(1).to_ascii_lowercase();
    match (name.as_slice(), args.len()) {
        (b"help", 2) => {
            ctx.reply.array(HELP.len());
            HELP.iter().for_each(|line| ctx.reply.status(line));
            DONE
        }
        (b"segfault", 2) => crash(ctx, Crash::Fault),
        (b"panic", 2) => crash(ctx, Crash::Panic),
        (b"assert", 2) => crash(ctx, Crash::Assertion),
        (b"sleep", 3) => sleep(ctx, args.at(2)),
        (b"error", 3) => Err(Refusal::text(escape(args.at(2)).into_owned())),
        (b"log", 3) => {
            ctx.node.host.log(&format!("DEBUG LOG: {}", String::from_utf8_lossy(args.at(2))));
            ok(ctx)
        }
        (b"protocol", 3) => protocol::reply(ctx, args.at(2)),
        (b"set-active-expire", 3) => {
            let is_off = leading_int(args.at(2)) == 0;
            ctx.node.is_active_expire_off.store(is_off, Ordering::Relaxed);
            ok(ctx)
        }
        (b"pause-cron", 3) => {
            let is_paused = leading_int(args.at(2)) != 0;
            ctx.node.is_housekeeping_paused.store(is_paused, Ordering::Relaxed);
            ok(ctx)
        }
        (b"set-disable-deny-scripts", 3) => {
            let may_debug = leading_int(args.at(2)) != 0;
            ctx.node.scripts.may_debug.store(may_debug, Ordering::Relaxed);
            ok(ctx)
        }
        (b"set-skip-checksum-validation", 3) => {
            let skips = leading_int(args.at(2)) != 0;
            ctx.node.saves.skips_sums.store(skips, Ordering::Relaxed);
            ok(ctx)
        }
        (b"quicklist-packed-threshold", 3) => packed_threshold(ctx, args.at(2)),
        (b"record", 3) => replay::record(ctx, args),
        (b"replay", 4..) => replay::replay(ctx, args),
        (b"replybuffer", 4) => reply_buffer(ctx, args),
        (b"stringmatch-test", 2) => match_at_random(ctx),
        (b"reload", _) => reload(ctx, args),
        (b"loadaof", 2) => load_log(ctx),
        (b"client-eviction", 2) => {
            let disabled = Refusal::text("ERR maxmemory-clients is disabled.");
            let text = ctx.node.client_buckets().ok_or(disabled)?;
            ctx.reply.verbatim(b"txt", text.as_bytes());
            DONE
        }
        (b"config-rewrite-force-all", 2) => super::config_rewrite(ctx, args),
        (name, args_len) if is_accepted(name, args_len) => ok(ctx),
        (name, _) => keys::run(ctx, name, args),
    }
}

/// What concerns parts that work otherwise here: there is nothing to switch.
fn is_accepted(name: &[u8], args_len: usize) -> bool {
    match name {
        b"change-repl-id" => args_len == 2,
        b"dict-resizing"
        | b"hashtable-can-abort-shrink"
        | b"client-enforce-reply-list"
        | b"pause-after-fork"
        | b"delay-rdb-client-free-second"
        | b"aof-flush-sleep"
        | b"set-disable-protected-configs"
        | b"drop-cluster-packet-filter"
        | b"close-cluster-link-on-packet-drop" => args_len == 3,
        _ => false,
    }
}

fn ok(ctx: &mut Ctx) -> Outcome {
    ctx.reply.ok();
    DONE
}

/// COMPAT: as C's `atoi`, where what is no number is 0.
fn leading_int(arg: &[u8]) -> i64 {
    let digits = arg.iter().skip(usize::from(arg.first() == Some(&b'-')));
    let len = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let end = len + usize::from(arg.first() == Some(&b'-'));
    num::parse_i64(&arg[..end]).unwrap_or(0)
}

/// COMPAT: what is no number is no time at all, as C's `strtod` has it.
fn crash(ctx: &mut Ctx, how: Crash) -> Outcome {
    ctx.node.host.crash(how);
    Err(Refusal::text("ERR the process is not this server's to end"))
}

fn sleep(ctx: &mut Ctx, arg: &[u8]) -> Outcome {
    let seconds = num::parse_f64(arg).unwrap_or(0.0).max(0.0);
    // A longer time would overflow; nobody waits for that.
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    ctx.node.host.sleep(time);
    ok(ctx)
}

fn packed_threshold(ctx: &mut Ctx, arg: &[u8]) -> Outcome {
    const BYTES_MAX: u64 = 1 << 32;
    match num::parse_memory_bytes(arg) {
        Some(bytes) if bytes <= BYTES_MAX => ok(ctx),
        _ => Err(Refusal::text(
            "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
        )),
    }
}

fn reply_buffer(ctx: &mut Ctx, args: Args) -> Outcome {
    let is = |index: usize, arg: &[u8]| args.at(index).eq_ignore_ascii_case(arg);
    if is(2, b"peak-reset-time") {
        if !is(3, b"never") && !is(3, b"reset") {
            num::parse_i64(args.at(3)).ok_or(Refusal::NotInteger)?;
        }
        return ok(ctx);
    }
    if is(2, b"resizing") {
        return ok(ctx);
    }
    Err(unknown(args))
}

/// `DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE]`: saves, empties all databases and loads again.
fn reload(ctx: &mut Ctx, args: Args) -> Outcome {
    let (mut meeting, mut flushes, mut saves) = (Meeting::Refuse, true, true);
    for arg in args.from(2).iter() {
        match arg.to_ascii_lowercase().as_slice() {
            b"merge" => meeting = Meeting::Replace,
            b"noflush" => flushes = false,
            b"nosave" => saves = false,
            _ => {
                return Err(Refusal::text(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let failed =
        |reason: String| Refusal::text(format!("ERR Error trying to load the RDB dump: {reason}"));
    if saves {
        ctx.node.save(ctx.keys).map_err(failed)?;
    }
    let found = ctx.node.check_snapshot(ctx.keys, (!flushes).then_some(meeting));
    found.and_then(|found| found.ok_or_else(|| "there is no file".to_owned())).map_err(failed)?;
    if flushes {
        let databases = ctx.keys.keyspace().databases();
        ctx.keys.flush(0..databases);
        ctx.node.scripts.remove_libraries();
    }
    let loaded = ctx.node.load(ctx.keys, meeting).map_err(failed)?;
    // What was emptied and loaded is in no record: unless it is what was there, the log has to
    // begin with it.
    if !(saves && flushes && loaded.is_some()) {
        ctx.node.schedule_new_base();
    }
    ok(ctx)
}

/// What a transaction has written so far is not in the log: there it is refused.
fn load_log(ctx: &mut Ctx) -> Outcome {
    let loaded = match ctx.is_inner() {
        true => Err("not inside a transaction".to_owned()),
        false => ctx.node.reload_log(ctx.keys),
    };
    loaded.map_err(|why| {
        Refusal::text(format!("ERR Error trying to load the AOF files, check server logs: {why}"))
    })?;
    ok(ctx)
}

fn match_at_random(ctx: &mut Ctx) -> Outcome {
    const ROUNDS: usize = 10_000;
    let mut random = Random::from_entropy();
    for _ in 0..ROUNDS {
        let mut pattern = vec![0; random.index(32)];
        let mut text = vec![0; random.index(32)];
        random.fill(&mut pattern);
        random.fill(&mut text);
        for byte in &mut pattern {
            *byte = b"a*?[]^-\\bc"[usize::from(*byte) % 10];
        }
        // Only that it comes to an end matters.
        let _ = Glob::new(&pattern).matches(&text);
    }
    ctx.reply.status("Apparently the server did not crash: test passed");
    DONE
}

fn unknown(args: Args) -> Refusal {
    let name = escape(&args.at(1)[..args.at(1).len().min(128)]).into_owned();
    Refusal::text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."
    ))
}

#[cfg(test)]
mod tests {
    use crate::node::config::Directive;
    use crate::testing::TestServer;

    /// What is no record ended the process: its handler counts on the number of its arguments.
    #[test]
    fn only_records_are_replayed() {
        let mut server = TestServer::new();
        for line in ["GET", "GET k", "SET k", "MULTI", "DEBUG REPLAY 0 SET k v", "SUBSCRIBE c"] {
            let reply = server.say(&format!("DEBUG REPLAY 0 {line}"));
            assert_eq!(reply, "-ERR this is no record", "{line}");
        }
        assert_eq!(server.say("DEBUG REPLAY 0 SET k v"), "+OK");
        assert_eq!(server.say("GET k"), "\"v\"");
    }

    /// Whether a request has a mark beside its record depends on where its id and its key lie, and
    /// that on the seed: two servers with the same data had different digests.
    #[test]
    fn where_a_request_is_kept_is_no_part_of_a_digest() {
        let mut server = TestServer::new();
        let mut other = TestServer::new();
        for id in 0..200 {
            let call = format!("ONCE id{id} PX 100000 SET k v");
            let record = server.records_of(&call).join(" ");
            let record = record.split_once("ONCE").map(|(_, kept)| format!("ONCE{kept}"));
            // The same request under another key's shard, as another seed would have it.
            let elsewhere = record.unwrap().replace(" k", " {other}");
            other.say(&format!("DEBUG REPLAY 0 {elsewhere}"));
        }
        server.say("DEL k");
        assert_eq!(server.say("DEBUG DIGEST FULL"), other.say("DEBUG DIGEST FULL"));
    }

    /// The fuzzer found that a database whose only key was over, but not reclaimed yet, still
    /// counted: a refused command that came across the key changed the digest.
    #[test]
    fn keys_whose_time_is_over_are_no_part_of_a_digest() {
        let mut server = TestServer::new();
        let nothing = server.say("DEBUG DIGEST");
        server.say("SET a 1 PX 5");
        assert_ne!(server.say("DEBUG DIGEST"), nothing);
        server.clock.advance_ms(10);
        assert_eq!(server.say("DEBUG DIGEST"), nothing);
    }

    #[test]
    fn a_digest_does_not_depend_on_the_order() {
        let mut server = TestServer::new();
        let nothing = server.say("DEBUG DIGEST");
        assert_eq!(nothing, format!("+{}", "0".repeat(40)));
        server.say("SET a 1");
        server.say("SET b 2");
        let first = server.say("DEBUG DIGEST");
        server.say("DEL a");
        assert_ne!(server.say("DEBUG DIGEST"), first);
        server.say("SET a 1");
        assert_eq!(server.say("DEBUG DIGEST"), first);
        server.say("SET a 2");
        assert_ne!(server.say("DEBUG DIGEST"), first);
        assert_eq!(server.say("DEBUG POPULATE 3 x 10"), "+OK");
        assert_eq!(server.say("GET x:2"), "\"value:2\\x00\\x00\\x00\"");
    }

    /// Where `enable-debug-command` lets those of this machine: the third of its names.
    const DEBUG_FOR_LOCAL: i64 = 2;

    #[test]
    fn a_refusal_says_how_to_allow_it() {
        let mut server = TestServer::new();
        assert!(server.say("DEBUG OBJECT nosuch").contains("no such key"));
        assert!(server.say("DEBUG nosuch").contains("Try DEBUG HELP."));
        server.worker.node.config.replace_int(Directive::EnableDebugCommand, DEBUG_FOR_LOCAL);
        server.session.card = std::sync::Arc::new(crate::node::clients::ClientCard::new(
            2,
            "10.0.0.1:5".to_owned(),
            "10.0.0.2:6379".to_owned(),
            3,
            0,
        ));
        assert!(server.say("DEBUG HELP").contains("ERR DEBUG command not allowed."));
    }
}
