//! What clients send while they wait: it is read as it comes and run when they may go on, as if
//! they had not waited. Over sockets, against the real binary.

use std::net::Shutdown;
use std::time::Instant;

use russet_tests::client::{Client, REPLY_WAIT, ReadError, Reply, encode};
use russet_tests::server::{Kind, Server};

/// Behind a call that waits, more than is run in one turn.
const LONG_PIPELINE: usize = 40_000;

fn args(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

/// One field of a client's line in CLIENT LIST.
fn figure(admin: &mut Client, client: &Client, name: &str) -> usize {
    let list = admin.call(&["CLIENT", "LIST"]).unwrap();
    let list = String::from_utf8_lossy(list.text().unwrap()).into_owned();
    let address = format!("addr={} ", client.local_address().unwrap());
    let line = list.lines().find(|line| line.contains(&address)).unwrap();
    let field = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    field.unwrap().parse().unwrap()
}

/// Sends pieces, and waits until the server has read them all.
fn send_pieces(admin: &mut Client, client: &mut Client, pieces: &[&[u8]]) {
    let name = "tot-net-in";
    let wanted =
        figure(admin, client, name) + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    pieces.iter().for_each(|piece| client.send_raw(piece).unwrap());
    let deadline = Instant::now() + REPLY_WAIT;
    while figure(admin, client, name) < wanted {
        assert!(Instant::now() < deadline, "not all was read");
    }
}

/// A client that waits for an element of `queue`.
fn blocked(server: &Server, admin: &mut Client) -> Client {
    let mut client = connect(server);
    client.call(&["PING"]).unwrap();
    let call = encode(&args("BLPOP queue 0"));
    send_pieces(admin, &mut client, &[&call]);
    client
}

fn unblock(admin: &mut Client, client: &mut Client) {
    assert_eq!(admin.call(&["RPUSH", "queue", "element"]).unwrap(), Reply::Int(1));
    assert!(matches!(client.read(REPLY_WAIT).unwrap(), Reply::Array(pair) if pair.len() == 2));
}

/// Replies until the one to `ECHO end`, or until the server closes.
fn replies(client: &mut Client) -> Vec<Reply> {
    let mut replies = Vec::new();
    loop {
        match client.read(REPLY_WAIT) {
            Ok(Reply::Bulk(text)) if text == b"end" => return replies,
            Ok(reply) => replies.push(reply),
            Err(ReadError::Closed | ReadError::Io(_)) => {
                replies.push(Reply::Null);
                return replies;
            }
            Err(why) => panic!("{why} after {} replies", replies.len()),
        }
    }
}

/// Requests of all shapes; every second pipeline ends in an error.
fn pipeline(random: &mut impl FnMut(usize) -> usize, turn: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..4 + random(12) {
        let value = vec![b'a' + random(26) as u8; 65_536 + random(200_000)];
        match random(9) {
            0 => bytes.extend(encode(&[b"SET".to_vec(), b"long".to_vec(), value])),
            1 => bytes.extend(encode(
                &[args("MSET a"), vec![value.clone()], args("b"), vec![value]].concat(),
            )),
            2 => bytes.extend(encode(&args("INCR n")).repeat(1 + random(4000))),
            3 => bytes.extend(b"\r\n*0\r\n\r\nset quoted 'a b'\r\n"),
            4 => {
                bytes.extend(encode(&[args("SET short"), vec![value[..65_535].to_vec()]].concat()))
            }
            5 => bytes.extend(encode(&[args("RPUSH list"), vec![b"x".to_vec(); 5000]].concat())),
            6 => bytes.extend(encode(&args("STRLEN long"))),
            7 => bytes.extend(b"GET quoted\r\n"),
            _ => bytes.extend(encode(&args("MGET a b short n"))),
        }
    }
    match turn % 4 {
        1 => bytes.extend(b"*1\r\n!bad\r\n*1\r\n$4\r\nPING\r\n"),
        3 => {
            bytes.extend(b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n");
            bytes.extend([&[b'x'; 70_000], &b"\r\n$x\r\n*1\r\n$4\r\nPING\r\n"[..]].concat());
        }
        _ => bytes.extend(encode(&args("ECHO end"))),
    }
    bytes
}

#[test]
fn a_pipeline_behind_a_blocked_call_is_answered_as_any_other() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut admin = connect(&server);
    let mut state = 0x5851_f42d_4c95_7f2d_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    };
    for turn in 0..24 {
        let bytes = pipeline(&mut random, turn);
        admin.call(&["FLUSHALL"]).unwrap();
        let mut plain = connect(&server);
        plain.send_raw(&bytes).unwrap();
        let expected = replies(&mut plain);

        admin.call(&["FLUSHALL"]).unwrap();
        let mut client = blocked(&server, &mut admin);
        let piece_max = [100_000, 20_000, 500_000][turn % 3];
        let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(1 + random(piece_max)));
            pieces.push(piece);
            rest = behind;
        }
        send_pieces(&mut admin, &mut client, &pieces);
        assert_eq!(figure(&mut admin, &client, "obl"), 0, "{turn}: nothing is answered too early");
        assert!(!client.is_answered().unwrap(), "{turn}");
        unblock(&mut admin, &mut client);
        assert!(replies(&mut client) == expected, "{turn}");
        if turn % 2 == 0 {
            assert_eq!(figure(&mut admin, &client, "qbuf"), 0);
        }
    }
}

/// All that waits is counted, and the limit of what may wait holds.
#[test]
fn what_waits_is_within_the_limit_of_queries() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut admin = connect(&server);
    let limit = ["CONFIG", "SET", "client-query-buffer-limit", "3mb"];
    assert_eq!(admin.call(&limit).unwrap(), ok());
    let long = encode(&[args("SET k"), vec![vec![b'x'; 500_000]]].concat());
    let parts = [encode(&args("GET k")).repeat(10_000), long, b"*1\r\n!bad\r\n".to_vec()];
    let garbage = vec![b'x'; 500_000];
    let mut client = blocked(&server, &mut admin);
    let mut sent = 0;
    for part in parts.iter().chain([&garbage, &garbage]) {
        send_pieces(&mut admin, &mut client, &[part]);
        sent += part.len();
        assert_eq!(figure(&mut admin, &client, "qbuf"), sent);
        assert!(figure(&mut admin, &client, "tot-mem") >= sent);
    }
    // The server may close before it has taken all.
    let _may_be_cut_short = client.send_raw(&garbage.repeat(4));
    assert!(matches!(client.read(REPLY_WAIT), Err(ReadError::Closed | ReadError::Io(_))));
}

/// A request is read by the limits that hold when its turn comes.
#[test]
fn a_raised_limit_holds_for_what_waits() {
    let server = Server::start(Kind::Russet, &["--proto-max-bulk-len", "1mb"]).unwrap();
    let mut admin = connect(&server);
    for is_raised in [false, true] {
        let mut client = blocked(&server, &mut admin);
        let value = vec![b'v'; 1_500_000];
        let set = encode(&[args("MSET a b c"), vec![value]].concat());
        let rest = encode(&args("STRLEN c"));
        send_pieces(&mut admin, &mut client, &[&rest, &set[..40], &set[40..], &rest]);
        if is_raised {
            let raise = ["CONFIG", "SET", "proto-max-bulk-len", "2mb"];
            assert_eq!(admin.call(&raise).unwrap(), ok());
        }
        unblock(&mut admin, &mut client);
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(0));
        if is_raised {
            assert_eq!(client.read(REPLY_WAIT).unwrap(), ok());
            assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(1_500_000));
        } else {
            let refused = client.read(REPLY_WAIT).unwrap();
            assert!(refused.is_error(), "{refused:?}");
            assert!(client.is_closed(REPLY_WAIT));
        }
    }
}

/// A client that closes has all carried out that it has sent behind a call that a busy shard holds
/// up, though it is more than one turn runs.
#[test]
fn a_long_pipeline_that_waited_is_run_to_its_end() {
    let server = Server::start(Kind::Russet, &["--threads", "4", "--threads-min", "4"]).unwrap();
    let [mut busy, mut probe, mut client] = [(); 3].map(|()| connect(&server));
    client.call(&["PING"]).unwrap();
    let script = "local start = os.clock() while os.clock() - start < 0.5 do end \
                  return redis.call('SET', KEYS[1], '0')";
    busy.send(&[b"EVAL", script.as_bytes(), b"1", b"n"].map(<[u8]>::to_vec)).unwrap();
    probe.send(&args("EXISTS n")).unwrap();
    let pipeline = encode(&args("INCR n")).repeat(LONG_PIPELINE);
    client.send_raw(&pipeline).unwrap();
    client.sender().unwrap().shutdown(Shutdown::Write).unwrap();
    for n in 1..=LONG_PIPELINE {
        // Whether the script came first or not, none is missing.
        let Reply::Int(count) = client.read(REPLY_WAIT).unwrap() else { panic!("no count") };
        assert!(count <= n as i64);
    }
    assert!(client.is_closed(REPLY_WAIT));
}

/// A blank line and the begin of a request, read together ahead of the client's turn, made the rest
/// of the request a protocol error.
#[test]
fn a_request_that_is_cut_behind_a_blank_line_is_read_ahead() {
    let server = Server::start(Kind::Russet, &["--threads", "1"]).unwrap();
    let mut clients: Vec<Client> = (0..16).map(|_| connect(&server)).collect();
    for _ in 0..100 {
        clients.iter_mut().for_each(|client| client.send_raw(b"\r\n*1\r\n$4\r\nPI").unwrap());
        clients.iter_mut().for_each(|client| client.send_raw(b"NG\r\n").unwrap());
        for client in &mut clients {
            assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"PONG".to_vec()));
        }
    }
}
