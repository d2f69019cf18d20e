//! With `appendfsync always`: what shows writes beside the keys that it names.

use super::{strict, sync};
use crate::groups::scripting::REGISTRY_SHARD;
use crate::node::Host;
use crate::node::config::Config;
use crate::node::outbound::{Connection, Connector};
use crate::testing::{TestClients, TestServer};
use russet_base::hash::KeyHasher;
use russet_base::{ManualClock, UnixMillis};
use russet_engine::journal::{Journal, Mode};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A library without a blank.
const LIBRARY: &str = "#!lua\tname=l\nredis.register_function{function_name='f',\
                       callback=function()return(1)end,flags={'no-writes'}}";
/// What another client could see of it.
const SHOWN: [&str; 5] =
    ["FCALL f 0", "FCALL_RO f 0", "FUNCTION LIST", "FUNCTION DUMP", "FUNCTION STATS"];

/// A function was called, and listed, by others before its FUNCTION LOAD was durable.
#[test]
fn functions_are_shown_once_they_are_durable() {
    let change = [format!("FUNCTION LOAD {LIBRARY}"), "FUNCTION DELETE l".to_owned()];
    for (call, command) in SHOWN.into_iter().flat_map(|call| change.iter().map(move |c| (call, c)))
    {
        let mut clients = strict(3);
        if command.contains("DELETE") {
            assert_eq!(clients.say_and_send(0, &change[0]), "(held)");
            sync(&clients);
        }
        assert_ne!(clients.say_and_send(1, call), "(held)", "{call} before {command}");
        assert_eq!(clients.say_and_send(0, command), "(held)");
        assert_eq!(clients.say_and_send(1, call), "(held)", "{call} after {command}");
        assert_eq!(clients.say_and_send(2, "PING"), "+PONG");
        sync(&clients);
        assert_ne!(clients.say_and_send(1, call), "(held)", "{call} after {command}");
    }
}

#[test]
fn functions_that_were_flushed_or_restored_are_shown_once_that_is_durable() {
    let mut clients = strict(3);
    clients.say_and_send(0, &format!("FUNCTION LOAD {LIBRARY}"));
    clients.say_and_send(0, "FUNCTION FLUSH");
    assert_eq!(clients.say_and_send(1, "FCALL f 0"), "(held)");
    sync(&clients);
    assert!(clients.say_and_send(1, "FCALL f 0").contains("Function not found"));
}

/// What runs other calls depends on what these show: EXEC did not wait for a DBSIZE in it.
#[test]
fn transactions_and_scripts_wait_for_functions_and_counts() {
    let mut clients = strict(4);
    clients.say_and_send(0, &format!("FUNCTION LOAD {LIBRARY}"));
    clients.say(1, "MULTI");
    clients.say(1, "FCALL f 0");
    assert_eq!(clients.say_and_send(1, "EXEC"), "(held)");
    sync(&clients);
    assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    clients.say(2, "MULTI");
    clients.say(2, "DBSIZE");
    assert_eq!(clients.say_and_send(2, "EXEC"), "(held)");
    assert_eq!(clients.say_and_send(3, "EVAL_RO return(redis.call('dbsize')) 0"), "(held)");
    sync(&clients);
    assert_ne!(clients.say_and_send(2, "PING"), "(held)");
}

/// A library is seen by others as soon as it is there, and that is before its record has a place in
/// the journal: who finds functions then waits for the client that changes them.
#[test]
fn who_sees_a_change_that_is_under_way_waits_for_its_record() {
    let calls = ["FCALL f 0", "FUNCTION LIST", "FUNCTION DUMP"];
    let mut clients = strict(1 + calls.len() as u64);
    clients.say_and_send(0, &format!("FUNCTION LOAD {LIBRARY}"));
    sync(&clients);
    clients.while_shard_is_busy(REGISTRY_SHARD, |clients| {
        assert_eq!(clients.say_and_send(1, "FCALL f 0"), "1", "nobody changes them");
        clients.node().scripts.changes.set_under_way(true);
        for (at, call) in calls.into_iter().enumerate() {
            assert_eq!(clients.say_and_send(1 + at, call), "(busy)", "{call}");
        }
        assert_ne!(clients.say_and_send(0, "FUNCTION STATS"), "(busy)");
        clients.node().scripts.changes.set_under_way(false);
    });
    for (at, call) in calls.into_iter().enumerate() {
        let reply = clients.say_and_send(1 + at, call);
        assert!(reply != "(busy)" && reply != "(held)", "{call}: {reply}");
    }
}

/// A script that selects another database publishes what it has changed so far, and is not over.
#[test]
fn keys_are_counted_when_nobody_changes_them() {
    let mut clients = strict(1);
    clients.while_shard_is_busy(REGISTRY_SHARD, |clients| {
        assert_eq!(clients.say_and_send(0, "DBSIZE"), "(busy)");
    });
    assert_eq!(clients.say_and_send(0, "DBSIZE"), "0");
}

/// The reply waited, the message did not. `say` sends nothing: a reply that waits would keep every
/// later message back.
#[test]
fn messages_wait_for_what_they_show() {
    const PUBLISHING: &str = "FUNCTION LOAD #!lua\tname=p\nredis.register_function{\
        function_name='p',callback=function()return(redis.call('publish','c','m'))end}";
    const COUNTING: &str = "EVAL redis.call('publish','c',redis.call('info','keyspace')) 1 other";
    let own = (0, "SET k v", "PUBLISH c m");
    for (who, change, call) in [(1, PUBLISHING, "FCALL p 0"), (1, "SET k v", COUNTING), own] {
        let mut clients = strict(3);
        assert!(clients.are_apart("k", "other"));
        clients.say(2, "SUBSCRIBE c");
        clients.say(0, change);
        clients.say(who, call);
        assert_eq!(clients.read(2), "(none)", "{call} after {change}");
        sync(&clients);
        assert!(clients.read(2).contains("message"), "{call} after {change}");
    }
}

#[test]
fn figures_about_all_keys_wait_for_their_writes() {
    let mut clients = strict(2);
    for call in ["INFO", "INFO keyspace", "INFO keysizes", "INFO everything", "MEMORY STATS"] {
        assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
        assert_eq!(clients.say_and_send(1, call), "(held)", "{call}");
        sync(&clients);
        assert_ne!(clients.say_and_send(1, call), "(held)", "{call}");
    }
    assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    assert!(clients.say_and_send(1, "INFO server").contains("redis_version"));
}

/// Who wants to know why nothing is written must not be kept waiting for that to end.
#[test]
fn while_the_log_fails_info_leaves_the_keyspace_out() {
    let mut clients = strict(2);
    assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    clients.node().keyspace.journal().set_failure(Some("No space left on device".to_owned()));
    let info = clients.say_and_send(1, "INFO");
    assert!(info.contains("# Persistence") && !info.contains("# Keyspace"), "{info}");
    assert!(clients.say_and_send(1, "INFO keyspace").contains("MISCONF"));
    assert!(clients.say_and_send(1, "INFO server keysizes").contains("MISCONF"));
    assert!(clients.say_and_send(1, "MEMORY STATS").contains("MISCONF"));
    clients.node().keyspace.journal().set_failure(None);
    sync(&clients);
    assert!(clients.say_and_send(1, "INFO").contains("db0:keys=1"));
}

/// Messages that waited for a log which could not be written were kept without a bound, those of
/// clients that had written nothing among them.
#[test]
fn while_the_log_fails_no_more_messages_are_kept() {
    let mut clients = strict(4);
    clients.say(3, "SUBSCRIBE c");
    let fail = |clients: &TestClients| {
        let why = "No space left on device".to_owned();
        clients.node().keyspace.journal().set_failure(Some(why));
    };
    fail(&clients);
    assert_eq!(clients.say(1, "PUBLISH c m"), "1", "nothing is kept");
    assert!(clients.read(3).contains("message"));
    clients.node().keyspace.journal().set_failure(None);
    clients.say(0, "SET k v");
    assert_eq!(clients.say(0, "PUBLISH c m"), "1");
    assert_eq!(clients.read(3), "(none)");
    fail(&clients);
    for call in ["PUBLISH c m", "SPUBLISH c m"] {
        assert!(clients.say(1, call).contains("MISCONF"), "{call}");
    }
    clients.say(1, "MULTI");
    assert!(clients.say(1, "PUBLISH c m").contains("MISCONF"));
    clients.node().keyspace.journal().set_failure(None);
    sync(&clients);
    assert!(clients.read(3).contains("message"));
    assert_eq!(clients.say(2, "PUBLISH c m"), "1");
}

/// The same where the disk is only slow: they count as what waits for the log.
#[test]
fn messages_that_wait_are_part_of_the_backlog() {
    let mut clients = strict(3);
    let journal = clients.node().keyspace.journal().clone();
    clients.say(2, "SUBSCRIBE c");
    clients.say(0, "SET k v");
    let before = journal.backlog_bytes();
    let publish = format!("PUBLISH c {}", "m".repeat(10_000));
    assert_eq!(clients.say(0, &publish), "1");
    assert!(journal.backlog_bytes() >= before + 10_000);
    journal.set_backlog_bytes_max(before + 10_000);
    assert_eq!(clients.say(1, "PUBLISH c m"), "(busy)");
    sync(&clients);
    assert!(journal.backlog_bytes() <= before);
    clients.read(1);
    assert!(clients.may_run(1), "it goes on");
}

/// One message of 5 MB to 60 subscribers was counted 60 times, and held all writers back.
#[test]
fn a_message_to_many_is_part_of_the_backlog_once() {
    let mut clients = strict(4);
    let journal = clients.node().keyspace.journal().clone();
    (1..4).for_each(|reader| drop(clients.say(reader, "SUBSCRIBE c")));
    clients.say(0, "SET k v");
    let before = journal.backlog_bytes();
    assert_eq!(clients.say(0, &format!("PUBLISH c {}", "m".repeat(10_000))), "3");
    let kept = journal.backlog_bytes() - before;
    assert!((10_000..20_000).contains(&kept), "{kept}");
}

/// Who was due next to nothing was closed, because a call had written much.
#[test]
fn nobody_is_closed_for_what_others_write() {
    let mut clients = strict(4);
    let journal = clients.node().keyspace.journal().clone();
    clients.say(0, "CONFIG SET notify-keyspace-events Em");
    clients.say(2, "SUBSCRIBE __keyevent@0__:keymiss");
    journal.set_backlog_bytes_max(1_000);
    clients.say(0, &format!("SET k {}", "v".repeat(10_000)));
    clients.say(1, "GET absent");
    sync(&clients);
    let read: Vec<String> = (0..10).map(|_| clients.read(2)).collect();
    assert!(read.iter().any(|line| line.contains("absent")), "{read:?}");
    assert!(!read.iter().any(|line| line == "(closed)"), "{read:?}");
}

/// Calls that only read go on while the log fails, and have messages as well: nobody bounded them.
#[test]
fn who_is_due_too_much_behind_a_failed_log_is_closed() {
    let mut clients = strict(4);
    let journal = clients.node().keyspace.journal().clone();
    clients.say(0, "CONFIG SET notify-keyspace-events Em");
    clients.say(2, "MONITOR");
    clients.say(3, "SUBSCRIBE __keyevent@0__:keymiss");
    clients.say(0, "SET k v");
    journal.set_failure(Some("No space left on device".to_owned()));
    journal.set_backlog_bytes_max(10_000);
    let mut counts = Vec::new();
    for _ in 0..100 {
        clients.say(1, &format!("GET absent{}", "x".repeat(1_000)));
        counts.push(journal.backlog_bytes());
    }
    assert!(counts[50] > 10_000 && counts[50] == counts[99], "{counts:?}");
    for receiver in [2, 3] {
        let read = (0..10).map(|_| clients.read(receiver)).find(|shown| shown == "(closed)");
        assert!(read.is_some(), "{receiver}");
    }
}

#[test]
fn while_the_log_fails_functions_that_are_not_durable_are_refused() {
    let mut clients = strict(2);
    clients.say_and_send(0, &format!("FUNCTION LOAD {LIBRARY}"));
    clients.node().keyspace.journal().set_failure(Some("No space left on device".to_owned()));
    for call in ["FCALL_RO f 0", "FUNCTION LIST"] {
        assert!(clients.say_and_send(1, call).contains("MISCONF"), "{call}");
    }
}

/// The logs of costly calls show arguments: those of a write when it is durable.
#[test]
fn costly_calls_are_remembered_once_they_are_durable() {
    let mut clients = strict(2);
    clients.say(1, "CONFIG SET slowlog-log-slower-than 0 commandlog-request-larger-than 0");
    clients.say(1, "SLOWLOG RESET");
    clients.say(1, "COMMANDLOG RESET large-request");
    assert_eq!(clients.say_and_send(0, "SET secret v"), "(held)");
    for call in ["SLOWLOG GET", "COMMANDLOG GET -1 slow", "COMMANDLOG GET -1 large-request"] {
        let shown = clients.say_and_send(1, call);
        assert!(!shown.contains("secret") && shown != "(held)", "{call}: {shown}");
    }
    sync(&clients);
    for call in ["SLOWLOG GET", "COMMANDLOG GET -1 slow", "COMMANDLOG GET -1 large-request"] {
        assert!(clients.say_and_send(1, call).contains("secret"), "{call}");
    }
}

/// What was written before the policy became stricter.
#[test]
fn functions_of_a_laxer_time_are_covered() {
    let mut clients = strict(2);
    clients.node().keyspace.journal().set_mode(Mode::Lazy);
    assert_ne!(clients.say_and_send(0, &format!("FUNCTION LOAD {LIBRARY}")), "(held)");
    clients.node().keyspace.journal().set_mode(Mode::Strict);
    assert_eq!(clients.say_and_send(1, "FCALL f 0"), "(held)");
}

/// A way to other servers that leads nowhere, and says what was durable when it was asked for.
struct NoWay(OnceLock<Arc<Journal>>, Mutex<Sender<u64>>);

impl Connector for NoWay {
    fn connect(&self, _: &str, _: u16, _: Duration) -> io::Result<Box<dyn Connection>> {
        let durable = self.0.get().map_or(0, |journal| journal.durable());
        let _nobody_listens = self.1.lock().unwrap().send(durable);
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

struct NoWayHost(Arc<NoWay>);

impl Host for NoWayHost {
    fn connector(&self) -> Option<Arc<dyn Connector>> {
        Some(self.0.clone())
    }
}

/// MIGRATE sent a value to another server that was not durable here.
#[test]
fn what_is_migrated_is_durable_before_it_leaves() {
    let (sender, durable) = channel();
    let way = Arc::new(NoWay(OnceLock::new(), Mutex::new(sender)));
    let clock = Arc::new(ManualClock::at(UnixMillis(1_700_000_000_000)));
    let host: Box<dyn Host> = Box::new(NoWayHost(way.clone()));
    let parts = (Config::default(), host);
    let server = TestServer::with_clock(clock, parts, KeyHasher::with_seed(7));
    let mut clients = TestClients::on(server, 2);
    let journal = clients.node().keyspace.journal().clone();
    assert!(way.0.set(journal.clone()).is_ok());
    journal.set_mode(Mode::Strict);
    clients.node().keyspace.set_recording(true);
    assert_eq!(clients.say_and_send(0, "SET k v"), "(held)");
    assert_eq!(clients.say_and_send(1, "MIGRATE 127.0.0.1 1 k 0 1000"), "(busy)");
    sync(&clients);
    assert_eq!(durable.recv().unwrap(), journal.offset(), "it was sent too early");
}
