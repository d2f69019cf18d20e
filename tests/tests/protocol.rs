//! What a conversation in a file can't show of the protocol: depth, size, timing, a deaf client.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use russet_tests::client::{Client, REPLY_WAIT, Reply, encode};
use russet_tests::server::{Kind, Server};

fn args(parts: &[&str]) -> Vec<Vec<u8>> {
    parts.iter().map(|part| part.as_bytes().to_vec()).collect()
}

#[test]
fn a_deep_pipeline_is_answered_in_order() {
    const DEPTH: i64 = 100_000;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let mut sender = client.sender().unwrap();
    let request = encode(&args(&["INCR", "n"])).repeat(DEPTH as usize);
    // Written beside the reading: neither side's buffers hold it all.
    let writing = std::thread::spawn(move || sender.write_all(&request));
    for n in 1..=DEPTH {
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(n));
    }
    writing.join().unwrap().unwrap();
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let value = b"a\r\n$3\r\n\0*1\r\n".to_vec();
    let set = encode(&[b"SET".to_vec(), b"k".to_vec(), value.clone()]);
    let all = [set, b"PING\r\n".to_vec(), encode(&args(&["GET", "k"]))].concat();
    for byte in &all {
        client.send_raw(std::slice::from_ref(byte)).unwrap();
    }
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()));
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"PONG".to_vec()));
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Bulk(value.clone()));

    // And in two parts, cut at every byte.
    for cut in 1..all.len() {
        client.send_raw(&all[..cut]).unwrap();
        client.send_raw(&all[cut..]).unwrap();
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()), "cut {cut}");
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"PONG".to_vec()), "cut {cut}");
        assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Bulk(value.clone()), "cut {cut}");
    }
}

#[test]
fn large_values_and_many_arguments() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let value = vec![b'x'; 20 << 20];
    client.send(&[b"SET".to_vec(), b"k".to_vec(), value.clone()]).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()));
    assert!(client.call(&["GET", "k"]).unwrap() == Reply::Bulk(value));

    let mut push = args(&["RPUSH", "l"]);
    push.extend((0..100_000).map(|n: u32| n.to_string().into_bytes()));
    client.send(&push).unwrap();
    assert_eq!(client.read(REPLY_WAIT).unwrap(), Reply::Int(100_000));
    let Reply::Array(items) = client.call(&["LRANGE", "l", "0", "-1"]).unwrap() else {
        panic!("LRANGE gave no array")
    };
    assert_eq!(items.len(), 100_000);
    assert_eq!(items[99_999], Reply::Bulk(b"99999".to_vec()));
}

/// A web page can make a browser send an HTTP request to a local port, and the lines of its body
/// ran as inline commands: `POST / HTTP/1.1 ... Host: x` and `SET pwned yes` in the body wrote the
/// key. Padding was no hindrance: what lay behind more than one read ran, too.
#[test]
fn an_http_request_closes_the_connection_and_nothing_of_it_runs() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let padding = "X-Padding: y\r\n".repeat(40_000);
    let requests = [
        "POST / HTTP/1.1\r\nHost: x\r\n\r\nSET pwned yes\r\n".to_owned(),
        "GET / HTTP/1.1\r\nhost: x\r\n\r\nSET pwned yes\r\n".to_owned(),
        "MULTI\r\nSET pwned yes\r\nHost: x\r\nEXEC\r\n".to_owned(),
        format!("POST / HTTP/1.1\r\n{padding}SET pwned yes\r\n"),
    ];
    for request in &requests {
        let mut page = Client::connect(server.address()).unwrap();
        // The server closes before it has read all of the longest.
        let _may_be_cut_short = page.send_raw(request.as_bytes());
        while page.read(REPLY_WAIT).is_ok() {}
        assert!(page.is_closed(REPLY_WAIT), "{}", &request[..30]);
    }
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["EXISTS", "pwned"]).unwrap(), Reply::Int(0));
    let logged = server.next_line(REPLY_WAIT).unwrap();
    assert!(logged.contains("POST or Host:") && logged.contains("127.0.0.1:"), "{logged}");
    assert!(server.next_line(Duration::ZERO).is_none(), "one warning a minute is enough");
}

/// A client that never reads is cut off at the limit; others feel nothing.
#[test]
fn a_client_that_never_reads_is_cut_off() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut control = Client::connect(server.address()).unwrap();
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 10mb 0 0"];
    assert_eq!(control.call(&limit).unwrap(), Reply::Status(b"OK".to_vec()));
    control.send(&[b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 1 << 20]]).unwrap();
    control.read(REPLY_WAIT).unwrap();

    let mut deaf = TcpStream::connect(server.address()).unwrap();
    let address = deaf.local_addr().unwrap().to_string();
    let request = encode(&args(&["GET", "k"])).repeat(200);
    // The server may have cut it off before all is written.
    let _ = deaf.write_all(&request);

    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let reply = control.call(&["CLIENT", "LIST"]).unwrap();
        let list = String::from_utf8_lossy(reply.text().unwrap()).into_owned();
        if !list.contains(&format!("addr={address} ")) {
            break;
        }
        assert!(Instant::now() < deadline, "still there: {list}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(control.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
}

/// One figure of a client's line in CLIENT LIST.
fn figure(line: &str, name: &str) -> u64 {
    let fields = line.split_ascii_whitespace().filter_map(|field| field.split_once('='));
    let found = fields.into_iter().find(|(field, _)| *field == name);
    found.unwrap_or_else(|| panic!("{name} in {line}")).1.parse().unwrap()
}

#[test]
fn client_list_tells_what_is_in_the_buffers() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut other = Client::connect(server.address()).unwrap();
    let mut deaf = Client::connect(server.address()).unwrap();
    let Ok(Reply::Int(id)) = deaf.call(&["CLIENT", "ID"]) else { panic!("no id") };
    let mut wait_until = |is_met: &dyn Fn(&str) -> bool| {
        let started = Instant::now();
        loop {
            let line = other.call(&["CLIENT", "LIST", "ID", &id.to_string()]).unwrap();
            let line = String::from_utf8(line.text().unwrap().to_vec()).unwrap();
            if is_met(&line) {
                return;
            }
            assert!(started.elapsed() < REPLY_WAIT, "{line}");
        }
    };
    wait_until(&|line| figure(line, "qbuf") == 0 && figure(line, "tot-mem") > 0);
    let half = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nabc";
    deaf.send_raw(half).unwrap();
    wait_until(&|line| figure(line, "qbuf") == half.len() as u64);
    deaf.send_raw(&[&[b'x'; 999_997][..], b"\r\n"].concat()).unwrap();
    assert_eq!(deaf.read(REPLY_WAIT).unwrap(), Reply::Status(b"OK".to_vec()));
    wait_until(&|line| figure(line, "qbuf") == 0 && figure(line, "qbuf-free") == 0);
    // More than the socket's buffers take.
    deaf.send_raw(&encode(&args(&["GET", "k"])).repeat(50)).unwrap();
    let is_full = |line: &str| {
        let omem = figure(line, "omem");
        figure(line, "obl") == 16384
            && omem > 1_000_000
            && figure(line, "oll") > 50
            && figure(line, "tot-mem") > omem
    };
    wait_until(&is_full);
    for _ in 0..50 {
        assert_eq!(deaf.read(REPLY_WAIT).unwrap().text().unwrap().len(), 1_000_000);
    }
    wait_until(&|line| figure(line, "omem") == 0 && figure(line, "obl") == 0);
}

/// As `printf 'PING\r\n' | nc` does: the reply, and then the end.
#[test]
fn a_client_that_sends_no_more_gets_its_replies_and_the_end() {
    use std::io::Read;
    use std::net::Shutdown;
    let server = Server::start(Kind::Russet, &[]).unwrap();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(REPLY_WAIT)).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut replies = Vec::new();
        stream.read_to_end(&mut replies).unwrap();
        assert_eq!(replies, b"+PONG\r\n");
    }
}
