//! Who gets in: limits before a login, the number of clients, protected mode, the Unix socket.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, skip};

const WAIT: Duration = Duration::from_secs(20);

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

/// Who never logged in could keep a connection for good.
#[test]
fn a_client_that_does_not_log_in_is_closed() {
    let extra = ["--requirepass", "pw", "--login-timeout", "2"];
    let server = Server::start(Kind::Russet, &extra).unwrap();
    let connect = || Client::connect(server.address()).unwrap();
    let (mut silent, mut busy, mut known) = (connect(), connect(), connect());
    assert_eq!(known.call(&["AUTH", "pw"]).unwrap(), ok());
    // Refusals do not make the time longer.
    while let Ok(reply) = busy.call(&["PING"]) {
        assert!(reply.is_error());
    }
    assert!(silent.is_closed(WAIT));
    assert_eq!(known.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    assert_eq!(known.call(&["CONFIG", "SET", "login-timeout", "0"]).unwrap(), ok());
}

/// The socket could be connected to before it had its mode.
#[test]
fn the_unix_socket_has_the_mode_that_was_asked_for() {
    let extra = ["--unixsocket", "russet.sock", "--unixsocketperm", "710"];
    let server = Server::start(Kind::Russet, &extra).unwrap();
    let path = server.dir().join("russet.sock");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o710);
    assert!(UnixStream::connect(&path).is_ok());
}

/// Of a group that it was not made by, where this process may choose one.
#[test]
fn the_unix_socket_has_the_group_that_was_asked_for() {
    if !std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return skip("only root may give a file to any group");
    }
    let extra = ["--unixsocket", "russet.sock", "--unixsocketgroup", "daemon"];
    let server = Server::start(Kind::Russet, &extra).unwrap();
    let group = std::fs::metadata(server.dir().join("russet.sock")).unwrap().gid();
    assert_eq!(group, 1);
    let unknown = ["--unixsocket", "russet.sock", "--unixsocketgroup", "no-such-group"];
    assert!(Server::start(Kind::Russet, &unknown).is_err());
}

/// An address of this machine that is not loopback, if it has one.
fn outer_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// A default user that was switched off, but needs no password, let others in.
#[test]
fn protected_mode_asks_for_a_password() {
    let Some(ip) = outer_address() else {
        return skip("this machine has no address but loopback");
    };
    let bind = format!("127.0.0.1 {ip}");
    let server = Server::start(Kind::Russet, &["--bind", &bind]).unwrap();
    let outer = SocketAddr::new(ip, server.address().port());
    let assert_denied = || {
        let mut client = Client::connect(outer).unwrap();
        // It is said before the first request: one that comes after the end would reset it.
        let reply = client.read(WAIT).unwrap();
        assert!(matches!(&reply, Reply::Error(text) if text.starts_with(b"DENIED")), "{reply:?}");
        assert!(client.is_closed(WAIT));
    };
    let mut admin = Client::connect(server.address()).unwrap();
    assert_denied();
    assert_eq!(admin.call(&["ACL", "SETUSER", "default", "off"]).unwrap(), ok());
    assert_denied();
    assert_eq!(admin.call(&["ACL", "SETUSER", "default", "on", ">pw"]).unwrap(), ok());
    let mut client = Client::connect(outer).unwrap();
    let reply = client.call(&["PING"]).unwrap();
    assert!(matches!(&reply, Reply::Error(text) if text.starts_with(b"NOAUTH")), "{reply:?}");
    assert_eq!(client.call(&["AUTH", "pw"]).unwrap(), ok());
}

/// What is in the log has the commands' own names, whatever clients call them.
#[test]
fn a_log_is_loaded_whatever_commands_are_called() {
    let dir = std::env::temp_dir().join(format!("russet-names-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let place = dir.to_str().unwrap();
    let log = ["--appendonly", "yes", "--appendfsync", "always", "--dir", place];
    let renamed = ["--rename-command", "SET", "put", "--rename-command", "RPUSH", "push"];
    let server = Server::start(Kind::Russet, &[&log[..], &renamed].concat()).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["PUT", "k", "v"]).unwrap(), ok());
    assert_eq!(client.call(&["PUSH", "l", "a", "b"]).unwrap(), Reply::Int(2));
    drop(server);
    let server = Server::start(Kind::Russet, &log).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"v".to_vec()));
    assert_eq!(client.call(&["LLEN", "l"]).unwrap(), Reply::Int(2));
    drop(server);
    std::fs::remove_dir_all(&dir).unwrap();
}
