#![forbid(unsafe_code)]
//! MIGRATE: to and from real servers, and to one that closes, refuses, stalls or says nothing.
//! While keys are on their way nobody uses them, everybody else goes on, and whatever happens no
//! key is lost.

use russet_tests::client::{Client, REPLY_WAIT, Reply, decode};
use russet_tests::server::{Kind, Server};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn status(text: &str) -> Reply {
    Reply::Status(text.as_bytes().to_vec())
}

fn error(text: &str) -> Reply {
    Reply::Error(text.as_bytes().to_vec())
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

fn args(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.replace("''", "").into_bytes()).collect()
}

fn call(client: &mut Client, line: &str) -> Reply {
    client.call(&args(line)).unwrap()
}

fn send(client: &mut Client, line: &str) {
    client.send(&args(line)).unwrap();
}

/// A server that does what a test scripts.
struct Target {
    port: u16,
    /// Each connection's bytes up to now, whenever some came.
    seen: Receiver<usize>,
    answers: Sender<Vec<u8>>,
}

/// What a target does with what it is sent: answers so, or closes.
#[derive(Clone, Copy)]
enum Manner {
    /// Answers each command with what the test says, when it says it.
    Scripted,
    /// One answer for each command.
    Always(&'static [u8]),
    CloseAtOnce,
    CloseAfterRequest,
    Silent,
    /// Begins a reply and never ends it.
    Drip,
}

impl Target {
    fn start(manner: Manner) -> Target {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, seen) = channel();
        let (answers, answer) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, manner, &tell, &answer);
            }
        });
        Target { port, seen, answers }
    }

    /// Waits until a command has come.
    fn await_command(&self) {
        self.seen.recv_timeout(REPLY_WAIT).expect("a command comes");
    }

    fn answer(&self, bytes: &[u8]) {
        self.answers.send(bytes.to_vec()).unwrap();
    }
}

fn serve(mut stream: TcpStream, manner: Manner, seen: &Sender<usize>, answer: &Receiver<Vec<u8>>) {
    if matches!(manner, Manner::CloseAtOnce) {
        return;
    }
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 65536]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
        while let Ok(Some((_, used))) = decode(&bytes) {
            bytes.drain(..used);
            let _the_test_may_be_over = seen.send(used);
            match manner {
                Manner::Scripted => match answer.recv_timeout(REPLY_WAIT) {
                    Ok(reply) if reply.is_empty() => return,
                    Ok(reply) => stream.write_all(&reply).unwrap(),
                    Err(_) => return,
                },
                Manner::Always(reply) => stream.write_all(reply).unwrap(),
                Manner::CloseAfterRequest => return,
                Manner::CloseAtOnce | Manner::Silent => {}
                Manner::Drip => return drip(stream),
            }
        }
    }
}

/// A byte now and then, until nobody reads them.
fn drip(mut stream: TcpStream) {
    let mut sent = stream.write_all(b"$1000000000\r\n");
    while sent.is_ok() {
        std::thread::sleep(Duration::from_millis(20));
        sent = stream.write_all(b"x");
    }
}

fn peers() -> Vec<Server> {
    let kinds = [Kind::Valkey, Kind::Redis];
    kinds.into_iter().filter_map(|kind| Server::start_if_there(kind, &[])).collect()
}

const ALL: &str = "string number expiring list set zset hash stream";

fn fill(client: &mut Client) {
    for line in [
        "SET string value",
        "SET number 42",
        "SET expiring value PX 1000000",
        "RPUSH list a b c",
        "SADD set a b c",
        "ZADD zset 1 a 2.5 b",
        "HSET hash f v g w",
        "XADD stream 1-1 f v",
    ] {
        assert!(!call(client, line).is_error(), "{line}");
    }
    let long = "x".repeat(300_000);
    assert!(!client.call(&["RPUSH", "list", &long]).unwrap().is_error());
}

/// What the keys hold, as far as it does not depend on the order of a set.
fn seen(client: &mut Client) -> Vec<Reply> {
    let lines = [
        "GET string",
        "GET number",
        "GET expiring",
        "LRANGE list 0 -1",
        "SISMEMBER set c",
        "SCARD set",
        "ZRANGE zset 0 -1 WITHSCORES",
        "HGET hash g",
        "XRANGE stream - +",
    ];
    lines.iter().map(|line| call(client, line)).collect()
}

#[test]
fn keys_move_to_real_servers_and_back() {
    let ours = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = connect(&ours);
    for peer in peers() {
        let mut other = connect(&peer);
        fill(&mut client);
        let before = seen(&mut client);
        let to_peer = format!("MIGRATE 127.0.0.1 {} '' 0 5000 KEYS {ALL}", peer.address().port());
        assert_eq!(call(&mut client, &to_peer), status("OK"));
        assert_eq!(call(&mut client, "DBSIZE"), Reply::Int(0));
        assert_eq!(seen(&mut other), before);
        let Reply::Int(ttl_ms) = call(&mut other, "PTTL expiring") else { panic!("no time left") };
        assert!((900_000..=1_000_000).contains(&ttl_ms), "{ttl_ms}");
        let back = format!("MIGRATE 127.0.0.1 {} '' 0 5000 KEYS {ALL}", ours.address().port());
        assert_eq!(call(&mut other, &back), status("OK"));
        assert_eq!(call(&mut other, "DBSIZE"), Reply::Int(0));
        assert_eq!(seen(&mut client), before);
        options(&mut client, &mut other, peer.address().port());
        call(&mut client, "FLUSHALL");
    }
}

/// COPY, REPLACE, passwords and databases, with a real server.
fn options(client: &mut Client, other: &mut Client, port: u16) {
    let migrate = |options: &str| format!("MIGRATE 127.0.0.1 {port} string {options}");
    assert_eq!(call(client, &migrate("0 5000 COPY")), status("OK"));
    let busy = "ERR Target instance replied with error: BUSYKEY Target key name already exists.";
    assert_eq!(call(client, &migrate("0 5000 COPY")), error(busy));
    assert_eq!(call(client, "GET string"), bulk("value"));
    call(other, "SET string old");
    assert_eq!(call(client, &migrate("0 5000 COPY REPLACE")), status("OK"));
    assert_eq!(call(other, "GET string"), bulk("value"));
    let range = "ERR Target instance replied with error: ERR DB index is out of range";
    assert_eq!(call(client, &migrate("1000 5000")), error(range));
    call(other, "CONFIG SET requirepass secret");
    let reply = call(client, &migrate("9 5000"));
    assert!(matches!(&reply, Reply::Error(text) if text.ends_with(b"Authentication required.")));
    let reply = call(client, &migrate("9 5000 AUTH wrong"));
    let is_wrong = |text: &[u8]| text.windows(9).any(|part| part == b"WRONGPASS");
    assert!(matches!(&reply, Reply::Error(text) if is_wrong(text)), "{reply:?}");
    assert_eq!(call(client, "EXISTS string"), Reply::Int(1));
    assert_eq!(call(client, &migrate("9 5000 AUTH2 default secret")), status("OK"));
    assert_eq!(call(client, "EXISTS string"), Reply::Int(0));
    call(other, "SELECT 9");
    assert_eq!(call(other, "GET string"), bulk("value"));
    call(other, "FLUSHALL");
}

/// The replies of calls that go wrong, in the order of the calls; with which keys are left.
fn faults(client: &mut Client) -> Vec<(String, Reply)> {
    let mut replies = Vec::new();
    let answers: &[&'static [u8]] =
        &[b"-ERR no\r\n", b"+OK\r\n", b"-NOAUTH Authentication required.\r\n"];
    let manners = answers.iter().map(|answer| Manner::Always(answer)).chain([
        Manner::CloseAtOnce,
        Manner::CloseAfterRequest,
        Manner::Silent,
    ]);
    for manner in manners {
        call(client, "SET k v");
        call(client, "SET l v");
        let target = Target::start(manner);
        let line = format!("MIGRATE 127.0.0.1 {} '' 0 200 KEYS k nokey l", target.port);
        let reply = call(client, &line);
        replies.push((line.replace(&target.port.to_string(), "port"), reply));
        replies.push(("EXISTS k l".to_owned(), call(client, "EXISTS k l")));
    }
    call(client, "SET k v");
    let line = "MIGRATE no.such.host.invalid 6379 k 0 200";
    replies.push((line.to_owned(), call(client, line)));
    replies
}

/// A target that closes, refuses, or says nothing: the replies are those of Valkey, and no key that
/// has not arrived is gone.
#[test]
fn faults_are_answered_as_by_valkey() {
    let ours = Server::start(Kind::Russet, &[]).unwrap();
    let replies = faults(&mut connect(&ours));
    let left: Vec<&Reply> = replies.iter().skip(1).step_by(2).map(|(_, reply)| reply).collect();
    let two = Reply::Int(2);
    assert_eq!(left, [&two, &Reply::Int(0), &two, &two, &two, &two]);
    let Some(peer) = Server::start_if_there(Kind::Valkey, &[]) else { return };
    assert_eq!(replies, faults(&mut connect(&peer)));
}

/// Two keys arrive and the one between them is refused: those that have arrived are gone.
#[test]
fn keys_that_arrive_go_though_others_are_refused() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = connect(&server);
    call(&mut client, "MSET a 1 b 2 c 3");
    let target = Target::start(Manner::Scripted);
    send(&mut client, &format!("MIGRATE 127.0.0.1 {} '' 0 5000 KEYS a b c", target.port));
    for answer in [&b"+OK\r\n"[..], b"+OK\r\n", b"-ERR two\r\n", b"+OK\r\n"] {
        target.await_command();
        target.answer(answer);
    }
    let refused = error("ERR Target instance replied with error: ERR two");
    assert_eq!(client.read(REPLY_WAIT).unwrap(), refused);
    let left = Reply::Array(vec![Reply::NullBulk, bulk("2"), Reply::NullBulk]);
    assert_eq!(call(&mut client, "MGET a b c"), left);
}

/// A key `k` on its way to a target that has got it and not answered yet.
fn begin(server: &Server) -> (Client, Target) {
    begin_as(server, "PING")
}

/// The same, by a client that says something first.
fn begin_as(server: &Server, first: &str) -> (Client, Target) {
    let (mut client, target) = (connect(server), Target::start(Manner::Scripted));
    assert!(!call(&mut client, first).is_error());
    send(&mut client, &format!("MIGRATE 127.0.0.1 {} {{t}}k 0 60000", target.port));
    target.await_command();
    target.answer(b"+OK\r\n");
    target.await_command();
    (client, target)
}

/// While a key is on its way, calls that would use it wait, however they come to it, and all others
/// go on: those of other keys in its shard, too.
#[test]
fn clients_of_a_key_wait_while_it_is_on_its_way() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut free = connect(&server);
    call(&mut free, "SET {t}k v");
    call(&mut free, "SET {t}other v");
    let mut mover = connect(&server);
    send(&mut mover, "BLMOVE {t}from {t}k LEFT LEFT 0");
    let (mut client, target) = begin(&server);
    let lines = [
        "GET {t}k",
        "BLPOP {t}k 0.01",
        "BLMPOP 0.01 2 {t}none {t}k LEFT",
        "SET {t}k new KEEPTTL",
        "EVAL return(redis.call('EXISTS',KEYS[1])) 1 {t}k",
        "EVAL return(redis.call('EXISTS','{t}'..ARGV[1])) 0 k",
        "COPY {t}other {t}k DB 0 REPLACE",
        "MIGRATE 127.0.0.1 1 {t}k 0 1000",
        "ONCE id PX 60000 INCR {t}k",
    ];
    let mut waiting: Vec<Client> = lines.iter().map(|_| connect(&server)).collect();
    waiting.iter_mut().zip(lines).for_each(|(client, line)| send(client, line));
    let mut transaction = connect(&server);
    for line in ["MULTI", "SET {t}x 1", "GET {t}k"] {
        call(&mut transaction, line);
    }
    send(&mut transaction, "EXEC");
    let mut flusher = connect(&server);
    send(&mut flusher, "SWAPDB 5 6");
    // Others go on, in a pipeline as well.
    for line in ["GET {t}other", "DBSIZE", "KEYS *", "SCAN 0", "PING", "SET {t}y 1"] {
        assert!(!call(&mut free, line).is_error(), "{line}");
    }
    assert_eq!(call(&mut free, "RPUSH {t}from element"), Reply::Int(1));
    (0..20).for_each(|_| send(&mut free, "INCR {t}counter"));
    let counts: Vec<_> = (0..20).map(|_| free.read(REPLY_WAIT).unwrap()).collect();
    assert_eq!(counts.last(), Some(&Reply::Int(20)));
    for (client, line) in waiting.iter_mut().zip(lines) {
        assert_eq!(client.glance().unwrap(), None, "{line}");
    }
    for client in [&mut transaction, &mut flusher, &mut mover, &mut client] {
        assert_eq!(client.glance().unwrap(), None);
    }
    target.answer(b"+OK\r\n");
    assert_eq!(client.read(REPLY_WAIT).unwrap(), status("OK"));
    for client in waiting.iter_mut().chain([&mut transaction, &mut flusher]) {
        client.read(REPLY_WAIT).unwrap();
    }
    mover.read(REPLY_WAIT).unwrap();
}

/// The key arrives, and a client that waited for it finds nothing; or it does not, and the client
/// finds it as it was.
#[test]
fn those_who_waited_find_what_became_of_the_key() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut reader = connect(&server);
    for (answer, found) in [(&b"+OK\r\n"[..], Reply::NullBulk), (b"-ERR no\r\n", bulk("v"))] {
        call(&mut reader, "SET {t}k v");
        let (mut client, target) = begin(&server);
        send(&mut reader, "GET {t}k");
        target.answer(answer);
        client.read(REPLY_WAIT).unwrap();
        assert_eq!(reader.read(REPLY_WAIT).unwrap(), found);
    }
    // The target is gone before it has answered.
    let (mut client, target) = begin(&server);
    send(&mut reader, "GET {t}k");
    target.answer(b"");
    let broken = error("IOERR error or timeout reading to target instance");
    assert_eq!(client.read(REPLY_WAIT).unwrap(), broken);
    assert_eq!(reader.read(REPLY_WAIT).unwrap(), bulk("v"));
}

/// A client that was killed while its key was on its way left the key on both sides: the transfer
/// went on, and nobody was there to delete the key when it had arrived.
#[test]
fn a_client_that_goes_leaves_no_key_on_both_sides() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut other = connect(&server);
    let mut reader = connect(&server);
    for (answer, found) in [(&b"+OK\r\n"[..], Reply::NullBulk), (b"-ERR no\r\n", bulk("v"))] {
        for ends in ["CLIENT KILL", "ACL DELUSER mover", "it closes"] {
            call(&mut other, "SET {t}k v");
            call(&mut other, "ACL SETUSER mover on nopass ~* +@all");
            let (mut client, target) = begin_as(&server, "AUTH mover any");
            send(&mut reader, "GET {t}k");
            let address = client.local_address().unwrap();
            match ends {
                "it closes" => drop(client),
                _ => {
                    let line = ends.replace("KILL", &format!("KILL ADDR {address}"));
                    assert_eq!(call(&mut other, &line), Reply::Int(1), "{ends}");
                    assert!(client.is_closed(REPLY_WAIT), "{ends}");
                }
            }
            assert_eq!(reader.glance().unwrap(), None, "{ends}: it is not known yet");
            target.answer(answer);
            assert_eq!(reader.read(REPLY_WAIT).unwrap(), found, "{ends}");
        }
    }
}

/// A server that ended while a key was on its way had it when it started again, though it had
/// arrived.
#[test]
fn the_end_waits_for_keys_that_are_on_their_way() {
    for end in ["SHUTDOWN", "SHUTDOWN SAVE", "SHUTDOWN NOSAVE", "SIGTERM"] {
        let number = end.len();
        let dir = format!("russet-migrate-end-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        let options = ["--appendonly", "yes", "--dir", dir.to_str().unwrap()];
        let mut server = Server::start(Kind::Russet, &options).unwrap();
        call(&mut connect(&server), "SET {t}k v");
        let (_client, target) = begin(&server);
        let mut other = connect(&server);
        match end {
            "SIGTERM" => server.signal("TERM").unwrap(),
            _ => send(&mut other, end),
        }
        target.answer(b"+OK\r\n");
        assert_eq!(server.exit_code(REPLY_WAIT), Some(0), "{end}");
        drop(server);
        let server = Server::start(Kind::Russet, &options).unwrap();
        assert_eq!(call(&mut connect(&server), "EXISTS {t}k"), Reply::Int(0), "{end}");
        drop(server);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// The end waited twenty seconds for a server that does not answer, as long as supervisors wait for
/// all of it.
#[test]
fn the_end_does_not_wait_for_a_server_that_does_not_answer() {
    for end in ["SHUTDOWN NOSAVE", "SHUTDOWN SAVE", "SIGTERM"] {
        let dir = format!("russet-migrate-silent-{}-{}", std::process::id(), end.len());
        let dir = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        let options = ["--appendonly", "yes", "--dir", dir.to_str().unwrap()];
        let mut server = Server::start(Kind::Russet, &options).unwrap();
        call(&mut connect(&server), "SET {t}k v");
        // It does not give up before the server has ended.
        let (mut client, _target) = begin(&server);
        let mut other = connect(&server);
        match end {
            "SIGTERM" => server.signal("TERM").unwrap(),
            _ => send(&mut other, end),
        }
        let reply = client.read(REPLY_WAIT).unwrap();
        assert_eq!(reply, error("IOERR error or timeout reading to target instance"), "{end}");
        assert_eq!(server.exit_code(REPLY_WAIT), Some(0), "{end}");
        drop(server);
        let server = Server::start(Kind::Russet, &options).unwrap();
        assert_eq!(call(&mut connect(&server), "GET {t}k"), bulk("v"), "{end}");
        drop(server);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

/// A target that had queued the call, or was no such server at all, answered what no error is, and
/// the key was deleted.
#[test]
fn only_ok_means_that_a_key_has_arrived() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut reader = connect(&server);
    let answers: [&[u8]; 4] = [b"+QUEUED\r\n", b":1\r\n", b"$-1\r\n", b"$2\r\nOK\r\n"];
    for answer in answers {
        call(&mut reader, "SET {t}k v");
        let (mut client, target) = begin(&server);
        target.answer(answer);
        let reply = client.read(REPLY_WAIT).unwrap();
        assert!(reply.is_error(), "{reply:?}");
        assert_eq!(call(&mut reader, "GET {t}k"), bulk("v"));
    }
    let target = Target::start(Manner::Always(b":0\r\n"));
    let line = format!("MIGRATE 127.0.0.1 {} {{t}}k 0 60000", target.port);
    assert!(call(&mut reader, &line).is_error(), "no database was selected");
}

/// A target that sent its reply byte by byte held the key for as long as it liked: each byte had
/// the whole timeout.
#[test]
fn a_reply_has_one_timeout_however_it_comes() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = connect(&server);
    call(&mut client, "SET k v");
    let target = Target::start(Manner::Drip);
    let broken = error("IOERR error or timeout reading to target instance");
    let line = format!("MIGRATE 127.0.0.1 {} k 0 200", target.port);
    assert_eq!(call(&mut client, &line), broken);
    assert_eq!(call(&mut client, "GET k"), bulk("v"));
}

/// A server that is killed while a key is on its way has it when it starts again; one that is
/// killed afterwards does not.
#[test]
fn a_crash_loses_no_key_and_keeps_none_that_has_left() {
    let dir = std::env::temp_dir().join(format!("russet-migrate-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.to_str().unwrap();
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--dir", path];
    let server = Server::start(Kind::Russet, &options).unwrap();
    call(&mut connect(&server), "SET {t}k v");
    let (_client, _target) = begin(&server);
    server.signal("KILL").unwrap();
    drop(server);
    let server = Server::start(Kind::Russet, &options).unwrap();
    assert_eq!(call(&mut connect(&server), "GET {t}k"), bulk("v"));
    let (mut client, target) = begin(&server);
    target.answer(b"+OK\r\n");
    assert_eq!(client.read(REPLY_WAIT).unwrap(), status("OK"));
    server.signal("KILL").unwrap();
    drop(server);
    let server = Server::start(Kind::Russet, &options).unwrap();
    assert_eq!(call(&mut connect(&server), "EXISTS {t}k"), Reply::Int(0));
    drop(server);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// Inside a transaction, a script and ONCE the keys move at once.
#[test]
fn transactions_and_scripts_move_keys() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = connect(&server);
    let target = Target::start(Manner::Always(b"+OK\r\n"));
    let migrate = |key: &str| format!("MIGRATE 127.0.0.1 {} {key} 0 5000", target.port);
    call(&mut client, "MSET a 1 b 2 c 3");
    call(&mut client, "MULTI");
    call(&mut client, &migrate("a"));
    call(&mut client, "EXISTS a");
    assert_eq!(call(&mut client, "EXEC"), Reply::Array(vec![status("OK"), Reply::Int(0)]));
    let script = format!("return redis.call('MIGRATE','127.0.0.1',{},KEYS[1],0,5000)", target.port);
    assert_eq!(client.call(&["EVAL", &script, "1", "b"]).unwrap(), status("OK"));
    assert_eq!(call(&mut client, &format!("ONCE id PX 60000 {}", migrate("c"))), status("OK"));
    assert_eq!(call(&mut client, "EXISTS a b c"), Reply::Int(0));
}

/// More transfers at once than there are threads for, to a target that never answers: each ends
/// with its timeout, and the server serves others meanwhile.
#[test]
fn many_transfers_at_once_end_in_time() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let target = Target::start(Manner::Silent);
    let mut free = connect(&server);
    let mut clients: Vec<Client> = (0..80).map(|_| connect(&server)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        call(&mut free, &format!("SET k{index} v"));
        send(client, &format!("MIGRATE 127.0.0.1 {} k{index} 0 300", target.port));
    }
    let deadline = Instant::now() + REPLY_WAIT;
    let broken = error("IOERR error or timeout reading to target instance");
    for client in &mut clients {
        assert_eq!(call(&mut free, "PING"), status("PONG"));
        assert_eq!(client.read(deadline - Instant::now()).unwrap(), broken);
    }
    assert_eq!(call(&mut free, "DBSIZE"), Reply::Int(80));
}
