//! The scripts and functions of the documents that the project began with, word for word: what
//! each answers, and what it keeps when 32 clients call it at once, over sockets.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use russet_tests::client::{Client, Reply};
use russet_tests::replay::Recorded;
use russet_tests::server::Server;

const CLIENTS: usize = 32;

macro_rules! seed {
    ($name:literal) => {
        include_str!(concat!("../seeds/", $name, ".lua"))
    };
}

fn server() -> Recorded {
    Recorded::start(&[])
}

/// Runs a test of many clients as the server comes, where one loop may serve them all, and with
/// four loops, so that they meet in the keyspace.
fn on_one_and_on_four_loops(test: impl Fn(&Server)) {
    for args in [&[][..], &["--threads", "4", "--threads-min", "4"]] {
        test(&Recorded::start(args));
    }
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

/// A command, its arguments parted by spaces.
fn call(client: &mut Client, line: &str) -> Reply {
    let args: Vec<&str> = line.split(' ').collect();
    let reply = client.call(&args).unwrap();
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn reply_of(client: &mut Client, script: &str, keys: &[&str], args: &[&str]) -> Reply {
    let count = keys.len().to_string();
    let args: Vec<&str> =
        ["EVAL", script, &count].iter().chain(keys).chain(args).copied().collect();
    client.call(&args).unwrap()
}

/// What a script answers, written down: `1`, `'text'`, `nil`, `[1 'text']`, `-ERR text`.
fn eval(client: &mut Client, script: &str, keys: &[&str], args: &[&str]) -> String {
    show(&reply_of(client, script, keys, args))
}

fn show(reply: &Reply) -> String {
    match reply {
        Reply::Int(number) => number.to_string(),
        Reply::Bulk(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Reply::Status(text) => format!("+{}", String::from_utf8_lossy(text)),
        Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
        Reply::NullBulk | Reply::NullArray => "nil".to_owned(),
        Reply::Array(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    }
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Int(number) => *number,
        other => panic!("not a number: {other:?}"),
    }
}

/// Each of the clients, on a thread of its own and all at once, with its number.
fn on_all_clients(server: &Server, work: impl Fn(&mut Client, usize) + Sync) {
    let start = std::sync::Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for index in 0..CLIENTS {
            let (mut client, start, work) = (connect(server), &start, &work);
            scope.spawn(move || {
                start.wait();
                work(&mut client, index);
            });
        }
    });
}

/// The arguments of the call that a thread makes for its n-th request.
type CallArgs<'a> = dyn Fn(usize) -> Vec<String> + Sync + 'a;

#[test]
fn counters_with_a_first_expiry() {
    let server = server();
    let client = &mut connect(&server);
    for script in [seed!("window_counter"), seed!("otp_attempts")] {
        call(client, "DEL c");
        assert_eq!(eval(client, script, &["c"], &["60000"]), "1");
        assert!((1..=60_000).contains(&number(&call(client, "PTTL c"))));
        call(client, "PEXPIRE c 1000000");
        assert_eq!(eval(client, script, &["c"], &["60000"]), "2");
        assert!(number(&call(client, "PTTL c")) > 60_000, "only the first sets the time");
    }
}

#[test]
fn compare_and_set_keeps_the_time() {
    let (server, script) = (server(), seed!("compare_and_set"));
    let client = &mut connect(&server);
    assert_eq!(eval(client, script, &["s"], &["PROCESSING", "COMPLETED"]), "0");
    call(client, "SET s PROCESSING PX 100000");
    assert_eq!(eval(client, script, &["s"], &["OTHER", "COMPLETED"]), "0");
    assert_eq!(eval(client, script, &["s"], &["PROCESSING", "COMPLETED"]), "1");
    assert_eq!(show(&call(client, "GET s")), "'COMPLETED'");
    assert!((1..=100_000).contains(&number(&call(client, "PTTL s"))));
    assert_eq!(eval(client, script, &["s"], &["PROCESSING", "COMPLETED"]), "0");
}

#[test]
fn a_token_is_consumed_once() {
    on_one_and_on_four_loops(consume_a_token);
}

fn consume_a_token(server: &Server) {
    let script = seed!("consume_token");
    let client = &mut connect(server);
    assert_eq!(eval(client, script, &["t"], &[]), "0");
    call(client, "SET t U-123");
    assert_eq!(eval(client, script, &["t"], &[]), "'U-123'");
    assert_eq!(eval(client, script, &["t"], &[]), "0");
    call(client, "SET t U-123");
    let winners = AtomicUsize::new(0);
    on_all_clients(server, |client, _| {
        if eval(client, script, &["t"], &[]) != "0" {
            winners.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert_eq!(winners.into_inner(), 1);
}

#[test]
fn fixed_window() {
    let (server, script) = (server(), seed!("fixed_window"));
    let client = &mut connect(&server);
    let key = "rl:v1:{tenant-123}:api:2026-07-02T14:00";
    assert_eq!(eval(client, script, &[key], &["2", "60"]), "[1 1]");
    assert_eq!(eval(client, script, &[key], &["2", "60"]), "[1 2]");
    assert_eq!(eval(client, script, &[key], &["2", "60"]), "[0 3]");
    assert!((1..=60).contains(&number(&call(client, &format!("TTL {key}")))));
}

/// 1,000 requests by 32 clients: exactly the limit is admitted, by EVAL, EVALSHA and FCALL.
#[test]
fn limiters_never_admit_more_than_their_limit() {
    on_one_and_on_four_loops(call_limiters);
}

fn call_limiters(server: &Server) {
    const REQUESTS: usize = 1_000;
    const LIMIT: &str = "100";
    let client = &mut connect(server);
    let sha = |client: &mut Client, script: &str| {
        let reply = client.call(&["SCRIPT", "LOAD", script]).unwrap();
        String::from_utf8(reply.text().unwrap().to_vec()).unwrap()
    };
    let fixed = sha(client, seed!("fixed_window"));
    let sliding = sha(client, seed!("sliding_window"));
    let members = sha(client, seed!("sliding_window_members"));
    let loaded = client.call(&["FUNCTION", "LOAD", seed!("quota_lib")]).unwrap();
    assert_eq!(show(&loaded), "'quota_lib'");
    let limiters: [(&str, &CallArgs<'_>); 4] = [
        ("fixed window", &|_| args(&["EVALSHA", &fixed, "1", "{rl}:fixed", LIMIT, "60"])),
        ("sliding window", &|request| {
            let id = format!("req-{request}");
            let now = (1_000_000 + request).to_string();
            args(&["EVALSHA", &sliding, "1", "{rl}:zset", &now, "60000", LIMIT, &id, "65"])
        }),
        ("sliding window of members", &|request| {
            let id = format!("req-{request}");
            let now = (1_000_000 + request).to_string();
            args(&["EVALSHA", &members, "1", "{rl}:members", &now, "60000", LIMIT, &id, "65"])
        }),
        ("function", &|_| {
            args(&["FCALL", "fixed_window_allow", "1", "{rl}:function", LIMIT, "60"])
        }),
    ];
    let admitted: Vec<AtomicUsize> = limiters.iter().map(|_| AtomicUsize::new(0)).collect();
    let next = AtomicUsize::new(0);
    let requests: Vec<Vec<Vec<String>>> = (0..REQUESTS)
        .map(|request| limiters.iter().map(|(_, args)| args(request)).collect())
        .collect();
    on_all_clients(server, |client, _| {
        loop {
            let request = next.fetch_add(1, Ordering::Relaxed);
            let Some(calls) = requests.get(request) else { return };
            for (at, args) in calls.iter().enumerate() {
                match client.call(args).unwrap() {
                    Reply::Array(parts) if parts[0] == Reply::Int(1) => {
                        admitted[at].fetch_add(1, Ordering::Relaxed);
                    }
                    Reply::Array(_) => {}
                    other => panic!("{}: {other:?}", limiters[at].0),
                }
            }
        }
    });
    for ((name, _), admitted) in limiters.iter().zip(admitted) {
        assert_eq!(admitted.into_inner(), 100, "{name}");
    }
}

fn args(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

#[test]
fn sliding_windows_forget_and_name_the_oldest() {
    let server = server();
    let client = &mut connect(&server);
    let script = seed!("sliding_window");
    let mut at = |now: &str, id: &str| eval(client, script, &["z"], &[now, "1000", "2", id, "5"]);
    assert_eq!(at("10000", "a"), "[1 1 '']");
    assert_eq!(at("10500", "b"), "[1 2 '']");
    assert_eq!(at("10900", "c"), "[0 2 '10000']");
    assert_eq!(at("11000", "d"), "[1 2 '']");
    let script = seed!("sliding_window_members");
    let mut at = |now: &str, id: &str| eval(client, script, &["m"], &[now, "1000", "2", id, "5"]);
    assert_eq!(at("10000", "a"), "[1 1]");
    assert_eq!(at("10500", "b"), "[1 2]");
    assert_eq!(at("10900", "c"), "[0 2]");
    assert_eq!(at("11000", "d"), "[1 2]");
    assert!((1..=5).contains(&number(&call(client, "TTL m"))));
}

#[test]
fn a_lock_is_released_by_its_owner_only() {
    let server = server();
    let client = &mut connect(&server);
    for script in [seed!("lock_release"), seed!("lock_release_short")] {
        assert_eq!(eval(client, script, &["lock"], &["me"]), "0");
        call(client, "SET lock me NX PX 60000");
        assert_eq!(eval(client, script, &["lock"], &["stranger"]), "0");
        assert_eq!(show(&call(client, "GET lock")), "'me'");
        assert_eq!(eval(client, script, &["lock"], &["me"]), "1");
        assert_eq!(number(&call(client, "EXISTS lock")), 0);
    }
}

/// All clients take and release one lock: while one holds it, nobody else's release takes it away.
#[test]
fn a_lock_is_never_released_by_a_stranger() {
    on_one_and_on_four_loops(take_and_release_a_lock);
}

fn take_and_release_a_lock(server: &Server) {
    let script = seed!("lock_release");
    let holders = AtomicUsize::new(0);
    let rounds = AtomicUsize::new(0);
    on_all_clients(server, |client, index| {
        for round in 0..30 {
            let token = format!("{index}:{round}");
            let taken = call_nil(client, &format!("SET lock {token} NX PX 600000"));
            if !taken {
                assert_eq!(eval(client, script, &["lock"], &[&token]), "0");
                continue;
            }
            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
            assert_eq!(show(&call(client, "GET lock")), format!("'{token}'"));
            holders.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(eval(client, script, &["lock"], &[&token]), "1");
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(rounds.into_inner() > 0);
    assert_eq!(number(&call(&mut connect(server), "EXISTS lock")), 0);
}

/// Whether a SET with NX was done.
fn call_nil(client: &mut Client, line: &str) -> bool {
    show(&call(client, line)) == "+OK"
}

#[test]
fn an_idempotency_claim_has_one_winner() {
    on_one_and_on_four_loops(claim_idempotency_keys);
}

fn claim_idempotency_keys(server: &Server) {
    let (claim, complete) = (seed!("idempotency_claim"), seed!("idempotency_complete"));
    let client = &mut connect(server);
    assert_eq!(eval(client, claim, &["i"], &["me", "1000", "60"]), "['CLAIMED']");
    assert_eq!(eval(client, claim, &["i"], &["other", "1001", "60"]), "['BUSY' 'IN_PROGRESS']");
    assert_eq!(eval(client, complete, &["i"], &["other", "200", "body", "600"]), "0");
    assert_eq!(eval(client, complete, &["i"], &["me", "200", "body", "600"]), "1");
    assert_eq!(eval(client, complete, &["i"], &["me", "200", "body", "600"]), "0");
    assert_eq!(eval(client, claim, &["i"], &["x", "1002", "60"]), "['REPLAY' '200' 'body']");
    assert!((61..=600).contains(&number(&call(client, "TTL i"))));
    for round in 0..20 {
        let key = format!("idem:{round}");
        let (winners, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        on_all_clients(server, |client, index| {
            let owner = format!("owner-{index}");
            let answer = eval(client, claim, &[&key], &[&owner, "1000", "60"]);
            let completed = eval(client, complete, &[&key], &[&owner, "200", &owner, "600"]);
            let is_winner = answer == "['CLAIMED']";
            assert_eq!(completed, if is_winner { "1" } else { "0" });
            winners.fetch_add(usize::from(is_winner), Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!((winners.into_inner(), done.into_inner()), (1, CLIENTS));
    }
}

#[test]
fn a_session_and_its_index_are_written_at_once() {
    let (server, script) = (server(), seed!("session_and_index"));
    let client = &mut connect(&server);
    let keys = ["session:{u1}:s1", "user:{u1}:sessions"];
    assert_eq!(eval(client, script, &keys, &["s1", "u1", "1000", "60"]), "1");
    assert_eq!(show(&call(client, "HGET session:{u1}:s1 lastSeenAt")), "'1000'");
    assert_eq!(number(&call(client, "SISMEMBER user:{u1}:sessions s1")), 1);
    assert!((1..=60).contains(&number(&call(client, "TTL session:{u1}:s1"))));
    assert!((61..=120).contains(&number(&call(client, "TTL user:{u1}:sessions"))));
    assert_eq!(eval(client, seed!("read_hash"), &["nothing"], &[]), "[]");
    let read = reply_of(client, seed!("read_hash"), &keys[..1], &[]);
    let Reply::Array(fields) = read else { panic!("{read:?}") };
    assert_eq!(fields.len(), 6);
}

#[test]
fn the_quota_library() {
    let server = server();
    let client = &mut connect(&server);
    client.call(&["FUNCTION", "LOAD", seed!("quota_lib")]).unwrap();
    let line = "FCALL fixed_window_allow 1 quota:v1:{tenant-123}:api:minute 2 60";
    for expected in ["[1 1]", "[1 2]", "[0 3]"] {
        assert_eq!(show(&call(client, line)), expected);
    }
    assert!((1..=60).contains(&number(&call(client, "TTL quota:v1:{tenant-123}:api:minute"))));
}

#[test]
fn keys_that_a_script_finds_by_itself() {
    let (server, script) = (server(), seed!("delete_by_pattern"));
    let client = &mut connect(&server);
    call(client, "MSET tenant:1:quota 1 tenant:2:quota 2 tenant:2:other 3");
    assert_eq!(eval(client, script, &[], &[]), "nil");
    assert_eq!(number(&call(client, "EXISTS tenant:1:quota tenant:2:quota tenant:2:other")), 1);
}

#[test]
fn recent_things_and_things_seen_before() {
    on_one_and_on_four_loops(see_things);
}

fn see_things(server: &Server) {
    let client = &mut connect(server);
    for n in 1..=5 {
        let value = n.to_string();
        let expected = n.min(3).to_string();
        assert_eq!(eval(client, seed!("recent_list"), &["l"], &[&value, "3"]), expected);
    }
    assert_eq!(show(&call(client, "LRANGE l 0 -1")), "['5' '4' '3']");
    assert_eq!(eval(client, seed!("dedupe"), &["d"], &["event-1", "60"]), "1");
    assert_eq!(eval(client, seed!("dedupe"), &["d"], &["event-1", "60"]), "0");
    assert!((1..=60).contains(&number(&call(client, "TTL d"))));
    let first = AtomicUsize::new(0);
    on_all_clients(server, |client, _| {
        let added = eval(client, seed!("dedupe"), &["d"], &["event-2", "60"]);
        first.fetch_add(usize::from(added == "1"), Ordering::Relaxed);
    });
    assert_eq!(first.into_inner(), 1);
}

#[test]
fn due_jobs_are_claimed_once() {
    on_one_and_on_four_loops(claim_due_jobs);
}

fn claim_due_jobs(server: &Server) {
    const JOBS: usize = 1_000;
    let script = seed!("claim_due_jobs");
    let client = &mut connect(server);
    for job in 0..JOBS {
        call(client, &format!("ZADD {{jobs}}:delayed {job} job-{job}"));
    }
    call(client, "ZADD {jobs}:delayed 999999 later");
    let keys = ["{jobs}:delayed", "{jobs}:processing"];
    let claimed = std::sync::Mutex::new(Vec::new());
    on_all_clients(server, |client, _| {
        loop {
            let reply = reply_of(client, script, &keys, &["1000", "7", "61000"]);
            let Reply::Array(jobs) = reply else { panic!("{reply:?}") };
            if jobs.is_empty() {
                return;
            }
            claimed.lock().unwrap().extend(jobs.iter().map(show));
        }
    });
    let claimed = claimed.into_inner().unwrap();
    let different: HashSet<&String> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (JOBS, JOBS));
    assert_eq!(number(&call(client, "ZCARD {jobs}:processing")), JOBS as i64);
    assert_eq!(number(&call(client, "ZCARD {jobs}:delayed")), 1);
}

#[test]
fn a_flash_sale_neither_oversells_nor_sells_twice() {
    on_one_and_on_four_loops(sell_in_a_flash);
}

fn sell_in_a_flash(server: &Server) {
    const STOCK: usize = 50;
    const USERS: usize = 100;
    let script = seed!("flash_sale");
    let client = &mut connect(server);
    call(client, &format!("SET promo:stock:P1 {STOCK}"));
    let sold = std::sync::Mutex::new(Vec::new());
    // Every user tries from several clients.
    on_all_clients(server, |client, index| {
        for n in 0..USERS {
            let user = format!("user-{}", (n + index * 7) % USERS);
            match eval(client, script, &["P1"], &[&user]).as_str() {
                "0" => sold.lock().unwrap().push(user),
                "1" | "2" => {}
                other => panic!("{other}"),
            }
        }
    });
    let sold = sold.into_inner().unwrap();
    let buyers: HashSet<&String> = sold.iter().collect();
    assert_eq!((sold.len(), buyers.len()), (STOCK, STOCK));
    assert_eq!(show(&call(client, "GET promo:stock:P1")), "'0'");
    assert_eq!(number(&call(client, "SCARD promo:users:P1")), STOCK as i64);
    assert_eq!(number(&call(client, "XLEN order:stream")), STOCK as i64);
    assert_eq!(eval(client, script, &["P1"], &["user-late"]), "1");
    let missing = eval(client, script, &["P2"], &["user-1"]);
    assert!(missing.starts_with("-ERR") && missing.contains("user_script:3"), "{missing}");
}

#[test]
fn transitions_of_hashes() {
    let server = server();
    let client = &mut connect(&server);
    let script = seed!("verify_mfa");
    call(client, "HSET session mfaChallengeId c1 mfaChallengeHash h status MFA_REQUIRED");
    assert_eq!(eval(client, script, &["session"], &["wrong", "5"]), "-CHALLENGE_MISMATCH");
    assert_eq!(eval(client, script, &["session"], &["c1", "5"]), "'OK'");
    assert_eq!(show(&call(client, "HGET session status")), "'MFA_VERIFIED'");
    assert_eq!(number(&call(client, "HEXISTS session mfaChallengeHash")), 0);
    assert_eq!(eval(client, script, &["session"], &["c1", "5"]), "-CHALLENGE_MISMATCH");

    let script = seed!("escalate_case");
    assert_eq!(eval(client, script, &["case"], &["5", "3"]), "-INVALID_STATUS");
    call(client, "HSET case status OPEN escalationLevel 3");
    assert_eq!(eval(client, script, &["case"], &["5", "3"]), "-MAX_ESCALATION");
    call(client, "HSET case escalationLevel 1 stateVersion 7");
    assert_eq!(eval(client, script, &["case"], &["5", "3"]), "['OK' '2' '8']");
    assert_eq!(eval(client, script, &["case"], &["5", "3"]), "-INVALID_STATUS");
    assert_eq!(show(&call(client, "HGET case lastTransitionReason")), "'AUTO_ESCALATION'");
}
