//! Random users send random calls to Russet and to a peer: the same replies, and the same ACL LOG.
//! Rules and most calls are those of the test of rules.

use super::{CALLS, change, connect, number, one, say};
use russet_base::random::Random;
use russet_tests::client::{Client, Reply};
use russet_tests::differ::compare::Rules;
use russet_tests::differ::grammar::Grammar;
use russet_tests::server::{Kind, Server};
use std::time::{Duration, Instant};

/// How long users are compared, unless `RUSSET_DIFFER_SECONDS` says otherwise.
const SECONDS_DEFAULT: u64 = 3;
const SESSIONS_PER_ROUND: usize = 4;
const STEPS_PER_SESSION: usize = 6;
const DRY_RUNS_PER_ROUND: usize = 40;
/// More than there are.
const ACL_LOG: &str = "ACL LOG 1000";

/// Data that makes calls run to their end.
const DATA: &[&str] = &[
    "FLUSHALL",
    "SET a1 1",
    "SET b1 2",
    "RPUSH l1 3 1 2",
    "RPUSH a2 2 1",
    "HSET h1 f v",
    "SET w_1 3",
    "SET w_2 2",
    "SET w_3 1",
    "ACL LOG RESET",
    "ACL DELUSER u v",
];

/// What the table of the rules' test does not have.
const MORE_CALLS: &[&str] = &[
    "SORT l1",
    "SORT l1 BY w_*",
    "SORT l1 BY nosort GET #",
    "SORT l1 BY w_* GET w_* GET #",
    "SORT l1 GET w_*",
    "SORT a2 BY w_* STORE b2",
    "SORT_RO a2 GET #",
    "SORT_RO l1 BY x",
    "BLPOP a1 l1 0.01",
    "BLMOVE a2 l1 LEFT RIGHT 0.01",
    "MGET a1 a2 b1",
    "MSET a1 1 c1 1 b1 1",
    "SUNIONSTORE a1 c1",
    "LMOVE a2 b2 LEFT RIGHT",
    "SMOVE a1 b1 x",
    "RENAMENX b1 c1",
    "COPY a1 b1 DB 3 REPLACE",
    "MOVE a1 x",
    "SWAPDB 0 3",
    "SWAPDB 1 x",
    "SET a1 x KEEPTTL",
    "SET a1 1 GET",
    "GETSET a1 x",
    "BITFIELD a1 GET u8 0",
    "BITFIELD a1 SET u8 0 1",
    "BITFIELD_RO b1 GET u8 0",
    "OBJECT FREQ a1",
    "OBJECT REFCOUNT c1",
    "CONFIG GET maxmemory-policy",
    "CONFIG RESETSTAT",
    "CLIENT GETNAME",
    "CLIENT SETNAME n",
    "CLIENT NO-EVICT on",
    "CLIENT NOSUCH",
    "CONFIG",
    "GET",
    "NOSUCH a1",
    "ACL GETUSER u",
    "ACL LOG x",
    "ACL CAT nosuch",
    "AUTH nosuch x",
    "AUTH v p",
    "HELLO 3 AUTH nosuch x",
    "HELLO 9",
    "PUBLISH d m",
    "SPUBLISH ch1 m",
    "PUBSUB NUMPAT",
    "DISCARD",
    "UNWATCH",
    "ECHO x",
    "DEBUG OBJECT a1",
    "DEBUG SLEEP 0",
    "MODULE LOAD /nowhere",
    "MODULE UNLOAD nosuch",
    "SCRIPT EXISTS x",
    "EVALSHA x 1 a1",
    "EVAL_RO x 1 b1",
    "FUNCTION FLUSH",
    "FCALL_RO f 1 a1",
    "XGROUP CREATE a1 g 0",
    "XINFO STREAM a1",
    "XACK a1 g 1",
    "ZADD c1 1 m",
    "ZUNION 2 a1 c1",
    "ZDIFFSTORE c1 1 c1",
    "GEOADD c1 1 1 m",
    "PFADD c1 x",
    "EXPIRE a1 1000",
    "PERSIST c1",
    "TYPE b1",
    "UNLINK c1",
    "DUMP b1",
    "RESTORE c1 0 x",
    "WAIT 0 0",
    "LASTSAVE",
    "TIME",
    "ROLE",
    "LOLWUT",
    "MIGRATE 127.0.0.1 1 a1 0 10",
    "MIGRATE 127.0.0.1 1 * 0 10",
];

/// Calls whose first words are these are not sent, each for its reason.
const LEFT_OUT: &[(&str, &str)] =
    &[("BLPOP a1 b1 0", "waits for good"), ("CLIENT KILL", "ends connections of this test")];

/// Calls whose replies say what is each server's own, or are read in more than one piece: of these
/// only what is refused is compared.
const OWN_REPLIES: &[&str] = &[
    "CLIENT ID",
    "COMMAND",
    "DUMP",
    "FUNCTION",
    "HELLO",
    "INFO",
    "LASTSAVE",
    "LATENCY",
    "LOLWUT",
    "OBJECT HELP",
    "ROLE",
    "SLOWLOG",
    "TIME",
    "XADD",
    "XREAD",
    "XREADGROUP",
    "XINFO",
];

/// Ways to send a call through a script.
const SCRIPTS: &[&str] = &[
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) return type(r) == 'table' and r.err or 'none'",
    "return redis.acl_check_cmd(unpack(ARGV))",
    "redis.pcall('get', 'b1') return redis.call(unpack(ARGV))",
    "redis.call('select', '1') return redis.call(unpack(ARGV))",
];

/// The arguments of a line; a selector in parentheses is one.
fn args(line: &str) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match args.last_mut() {
            Some(open) if open.starts_with('(') && !open.ends_with(')') => {
                open.push(' ');
                open.push_str(word);
            }
            _ => args.push(word.to_owned()),
        }
    }
    args
}

fn random_call(random: &mut Random) -> Vec<String> {
    loop {
        let table = if random.index(2) == 0 { CALLS } else { MORE_CALLS };
        let call = one(random, table);
        if !LEFT_OUT.iter().any(|(left_out, _reason)| call.starts_with(left_out)) {
            return args(call);
        }
    }
}

/// A call, by itself or in a script.
fn wrapped_call(random: &mut Random) -> Vec<String> {
    let call = random_call(random);
    if random.index(4) != 0 {
        return call;
    }
    let script = one(random, SCRIPTS);
    let eval = one(random, &["EVAL", "EVAL", "EVAL_RO"]);
    let keys: &[&str] = if random.index(2) == 0 { &["0"] } else { &["1", "a1"] };
    let head = [&[eval, script], keys].concat();
    head.into_iter().map(str::to_owned).chain(call).collect()
}

/// Whether a call is answered by pushes, or changes what the connection is.
fn ends_session(call: &[String]) -> bool {
    let name = call[0].to_ascii_uppercase();
    ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "RESET", "HELLO"]
        .contains(&name.as_str())
}

/// What a call comes to: in a script, the call that it was given.
fn called(call: &[String]) -> &[String] {
    let is_wrapped = call.get(1).is_some_and(|script| SCRIPTS.contains(&script.as_str()));
    let keys = call.get(2).and_then(|count| count.parse::<usize>().ok());
    match keys {
        Some(keys) if is_wrapped => &call[3 + keys..],
        _ => call,
    }
}

/// docs/differences.md, "errors that name the server or the table `redis`".
fn in_our_words(reply: &Reply) -> Reply {
    let ours = |bytes: &[u8]| {
        // What is no text is data.
        let Ok(text) = std::str::from_utf8(bytes) else { return bytes.to_vec() };
        text.replace("This Valkey", "This Redis").replace("to server.", "to redis.").into_bytes()
    };
    match reply {
        Reply::Error(text) => Reply::Error(ours(text)),
        Reply::Bulk(text) => Reply::Bulk(ours(text)),
        other => other.clone(),
    }
}

/// As `1.5`, `1 ` and `+1` do, which C takes for 1.
fn begins_as_number(arg: &[u8]) -> bool {
    let text = String::from_utf8_lossy(arg);
    let is_number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    let digits = text.trim_start().trim_start_matches(['+', '-']);
    digits.starts_with(|first: char| first.is_ascii_digit()) && !is_number
}

fn shown(reply: &Reply) -> String {
    match (reply, reply.text()) {
        (Reply::Array(parts), _) => format!("{:?}", parts.iter().map(shown).collect::<Vec<_>>()),
        (_, Some(text)) => String::from_utf8_lossy(text).into_owned(),
        (other, None) => format!("{other:?}"),
    }
}

/// Both servers, and what they were sent.
struct Both {
    servers: [Server; 2],
    admins: [Client; 2],
    users: [Client; 2],
    rules: Rules,
    grammar: Grammar,
    seed: u64,
    sent: Vec<String>,
    calls: usize,
    /// Of these, for want of a right.
    refused: usize,
    /// What EXEC will run.
    queued: Vec<Vec<String>>,
}

impl Both {
    fn start(seed: u64) -> Option<Both> {
        // What a directive forbids is refused before a user's rights are looked at.
        let extra = ["--enable-debug-command", "no"];
        let peer = Server::start_if_there(Kind::Valkey, &extra)?;
        let servers = [Server::start(Kind::Russet, &extra).unwrap(), peer];
        let admins = servers.each_ref().map(connect);
        let users = servers.each_ref().map(connect);
        let rules = Rules::from_now();
        let grammar = Grammar::of_peer(servers[1].address()).unwrap();
        Some(Both {
            servers,
            admins,
            users,
            rules,
            grammar,
            seed,
            sent: Vec::new(),
            calls: 0,
            refused: 0,
            queued: Vec::new(),
        })
    }

    fn as_admin(&mut self, call: &[String]) {
        self.sent.push(format!("admin> {}", call.join(" ")));
        let [ours, theirs] = self.admins.each_mut().map(|admin| admin.call(call).unwrap());
        self.must_be_same(call, &ours, &theirs);
    }

    fn as_user(&mut self, call: &[String]) {
        self.sent.push(format!("user> {}", call.join(" ")));
        let [ours, theirs] = self.users.each_mut().map(|user| user.call(call).unwrap());
        self.calls += 1;
        self.refused += usize::from(theirs.text().is_some_and(|text| text.starts_with(b"NOPERM")));
        self.must_be_same(call, &ours, &theirs);
    }

    fn must_be_same(&mut self, call: &[String], ours: &Reply, theirs: &Reply) {
        let queued = match call[0].as_str() {
            "EXEC" => std::mem::take(&mut self.queued),
            _ => Vec::new(),
        };
        let is_same = match (ours, theirs) {
            (Reply::Array(ours), Reply::Array(theirs)) if call[0] == "EXEC" => {
                let mut pairs = ours.iter().zip(theirs).zip(&queued);
                (ours.len(), theirs.len()) == (queued.len(), queued.len())
                    && pairs.all(|((ours, theirs), call)| self.is_same(call, ours, theirs))
            }
            _ => self.is_same(call, ours, theirs),
        };
        let (seed, sent) = (self.seed, self.sent.join("\n"));
        let (ours_shown, theirs_shown) = (shown(ours), shown(theirs));
        assert!(
            is_same,
            "seed {seed}: {call:?}\nours {ours_shown}\ntheirs {theirs_shown}\nafter\n{sent}"
        );
        if *theirs == Reply::Status(b"QUEUED".to_vec()) {
            self.queued.push(call.to_vec());
        }
    }

    fn is_same(&self, call: &[String], ours: &Reply, theirs: &Reply) -> bool {
        let call = called(call);
        let line = call.join(" ");
        let is_own = OWN_REPLIES.iter().any(|own| line.starts_with(own));
        let bytes: Vec<Vec<u8>> = call.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        self.rules.is_same(&bytes, ours, &in_our_words(theirs))
            || is_own && !ours.is_error() && !theirs.is_error()
    }

    fn log_in(&mut self, random: &mut Random) {
        self.users = self.servers.each_ref().map(connect);
        self.queued.clear();
        let protocol = one(random, &["2", "3"]);
        self.sent.push(format!("user> HELLO {protocol}"));
        for user in &mut self.users {
            assert!(!say(user, &format!("HELLO {protocol}")).is_error());
        }
        self.as_user(&args(one(random, &["AUTH u x", "AUTH u x", "AUTH u p", "AUTH v p"])));
    }

    /// Random calls, some of them in a transaction whose user may lose or get rights meanwhile.
    fn session(&mut self, random: &mut Random) {
        self.log_in(random);
        for _ in 0..STEPS_PER_SESSION {
            if random.index(4) == 0 {
                self.as_user(&args(one(random, &["SELECT 0", "SELECT 1", "SELECT 3"])));
            }
            if random.index(5) == 0 {
                return self.transaction(random);
            }
            let call = wrapped_call(random);
            self.as_user(&call);
            if ends_session(&call) {
                return;
            }
            if random.index(8) == 0 {
                self.as_admin(&change(random));
            }
        }
    }

    fn transaction(&mut self, random: &mut Random) {
        self.as_user(&args("MULTI"));
        for _ in 0..1 + random.index(3) {
            let call = wrapped_call(random);
            if !ends_session(&call) {
                self.as_user(&call);
            }
        }
        if random.index(2) == 0 {
            self.as_admin(&change(random));
        }
        self.as_user(&args(one(random, &["EXEC", "EXEC", "EXEC", "DISCARD"])));
    }

    /// The same for calls of every command of the catalog, which are not run.
    fn dry_runs(&mut self, random: &mut Random) {
        let rules = [
            "ACL SETUSER u reset +@all %R~k* %W~x* ~{t}a &c*",
            "ACL SETUSER u reset +@all ~k[12] %R~* &news.* db=0,1",
            "ACL SETUSER u reset +@all %W~* %R~k1 (+@read ~k2) (-@all +@write +@pubsub ~{t}* &c1)",
            "ACL SETUSER u ~k* %R~{t}a",
            "ACL SETUSER u reset +@read +@blocking -@dangerous ~*",
        ];
        self.as_admin(&args(one(random, &rules)));
        for _ in 0..DRY_RUNS_PER_ROUND {
            let call = match random.index(8) {
                0 => self.grammar.blocking(random),
                1 => self.grammar.pubsub(random),
                _ => self.grammar.plain(random),
            };
            if self.hides_keys(&call) {
                continue;
            }
            let mut dry_run = ["ACL", "DRYRUN", "u"].map(|arg| arg.as_bytes().to_vec()).to_vec();
            dry_run.extend(call);
            let [ours, theirs] = self.admins.each_mut().map(|admin| admin.call(&dry_run).unwrap());
            let asked: Vec<_> = dry_run.iter().map(|arg| arg.escape_ascii().to_string()).collect();
            let (seed, sent) = (self.seed, self.sent.join("\n"));
            let [ours, theirs] = [shown(&ours), shown(&theirs)];
            assert_eq!(ours, theirs, "seed {seed}: {asked:?}\nafter\n{sent}");
        }
    }

    /// Whether the servers don't find the same keys in a call that both will refuse:
    /// docs/differences.md, "a call whose keys can't all be found".
    fn hides_keys(&mut self, call: &[Vec<u8>]) -> bool {
        let mut asked = ["COMMAND", "GETKEYS"].map(|arg| arg.as_bytes().to_vec()).to_vec();
        asked.extend_from_slice(call);
        let invalid = Reply::Error(b"ERR Invalid arguments specified for command".to_vec());
        let [ours, theirs] = self.admins.each_mut().map(|admin| admin.call(&asked).unwrap());
        theirs == invalid || ours == invalid && call.iter().any(|arg| begins_as_number(arg))
    }

    /// The log, without what is each server's own: ages, numbers, times, lines about clients.
    fn logs_must_be_same(&mut self) {
        let [ours, theirs] = self.admins.each_mut().map(|admin| entries(&say(admin, ACL_LOG)));
        let (seed, sent) = (self.seed, self.sent.join("\n"));
        assert_eq!(ours, theirs, "seed {seed}: ACL LOG\nafter\n{sent}");
    }
}

fn entries(log: &Reply) -> Vec<String> {
    let Reply::Array(entries) = log else { panic!("{log:?}") };
    entries.iter().map(entry).collect()
}

/// Count, reason, context, object and user name are its first five fields.
fn entry(entry: &Reply) -> String {
    let Reply::Array(fields) = entry else { panic!("{entry:?}") };
    let shown = fields.iter().take(10).map(|field| match field {
        Reply::Int(count) => count.to_string(),
        other => String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Issue 14: verdicts were compared by ACL DRYRUN alone, and what is logged not at all.
#[test]
fn random_users_are_refused_and_logged_as_by_a_peer() {
    let seed = number("RUSSET_DIFFER_SEED").unwrap_or_else(|| Random::from_entropy().next_u64());
    let Some(mut both) = Both::start(seed) else { return };
    let seconds = number("RUSSET_DIFFER_SECONDS").unwrap_or(SECONDS_DEFAULT);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut random = Random::from_seed(seed);
    while Instant::now() < until {
        both.sent.clear();
        DATA.iter().for_each(|line| both.as_admin(&args(line)));
        let start = [
            "ACL SETUSER u on nopass +@all ~*",
            "ACL SETUSER u on nopass +@all ~a* ~l* &ch* -@dangerous",
            "ACL SETUSER u on nopass +@read +@write +eval +multi +exec %R~* %W~a*",
            "ACL SETUSER u on nopass +@all allkeys db=0,1",
            "ACL SETUSER u on nopass (+@all ~a* &ch1) (+@read ~b*) +@transaction +@scripting",
            "ACL SETUSER u on nopass +@connection",
        ];
        both.as_admin(&args(one(&mut random, &start)));
        for _ in 0..SESSIONS_PER_ROUND {
            for _ in 0..random.index(3) {
                both.as_admin(&change(&mut random));
            }
            both.session(&mut random);
            both.logs_must_be_same();
        }
        both.dry_runs(&mut random);
    }
    println!("{} calls, {} refused, from seed {seed}", both.calls, both.refused);
    assert!(both.refused > 0, "nothing was refused");
}
