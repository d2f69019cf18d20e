//! What certificates mean: who may connect, as which user, and how they are replaced while the
//! server runs.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Kind, Server, run_russet};
use russet_tests::tls::{self, Certificates, Wire};
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

/// A client with a certificate of this name, or none.
fn client_as(server: &Server, certificates: &Certificates, name: Option<&str>) -> Client {
    let stream = tls::connect(server.address(), &certificates.client_config(name)).unwrap();
    Client::over(Wire::Tls(Box::new(stream)))
}

/// `tls-auth-clients`: yes wants a certificate of the authority's, optional takes one, no asks for
/// none.
#[test]
fn clients_are_asked_for_certificates() {
    let certificates = Certificates::make().unwrap();
    let strangers = Certificates::make().unwrap();
    let server =
        Server::start_with_certificates(&certificates, &["--tls-auth-clients", "yes"]).unwrap();
    let pong = Reply::Status(b"PONG".to_vec());
    let mut known = client_as(&server, &certificates, Some("client"));
    assert_eq!(known.call(&["PING"]).unwrap(), pong);
    assert!(client_as(&server, &certificates, None).call(&["PING"]).is_err());
    // The server's name is right to them, and theirs is not known to the server.
    let mut config = (*certificates.client_config(None)).clone();
    let other = strangers.client_config(Some("client"));
    config.client_auth_cert_resolver = other.client_auth_cert_resolver.clone();
    let stream = tls::connect(server.address(), &Arc::new(config.clone())).unwrap();
    let mut stranger = Client::over(Wire::Tls(Box::new(stream)));
    assert!(stranger.call(&["PING"]).is_err());

    assert_eq!(known.call(&["CONFIG", "SET", "tls-auth-clients", "optional"]).unwrap(), ok());
    assert_eq!(client_as(&server, &certificates, None).call(&["PING"]).unwrap(), pong);
    let stream = tls::connect(server.address(), &Arc::new(config)).unwrap();
    let mut stranger = Client::over(Wire::Tls(Box::new(stream)));
    assert!(stranger.call(&["PING"]).is_err());
    assert_eq!(known.call(&["PING"]).unwrap(), pong);
}

/// A directory of authorities does as well as a file, whatever else is in it.
#[test]
fn authorities_may_stand_in_a_directory() {
    let certificates = Certificates::make().unwrap();
    let dir = certificates.path("authorities");
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(certificates.path("ca.crt"), format!("{dir}/0a1b2c3d.0")).unwrap();
    std::fs::write(format!("{dir}/README"), "no certificate").unwrap();
    let args = ["--tls-auth-clients", "yes", "--tls-ca-cert-file", "", "--tls-ca-cert-dir", &dir];
    let server = Server::start_with_certificates(&certificates, &args).unwrap();
    let mut known = client_as(&server, &certificates, Some("client"));
    assert_eq!(known.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    assert!(client_as(&server, &certificates, None).call(&["PING"]).is_err());
}

/// `tls-auth-clients-user`: the certificate logs its client in, or says nothing of it.
#[test]
fn a_certificate_names_its_user() {
    let certificates = Certificates::make().unwrap();
    certificates.issue("app", "app", "URI:urn:unknown,URI:urn:user:app,DNS:app").unwrap();
    let args = ["--tls-auth-clients", "optional", "--tls-auth-clients-user", "CN"];
    let server = Server::start_with_certificates(&certificates, &args).unwrap();
    let mut admin = client_as(&server, &certificates, None);
    for user in ["app", "urn:user:app"] {
        // Their rules have no password: nobody but the certificate says who they are.
        let rule = ["ACL", "SETUSER", user, "on", "~app:*", "+get", "+acl|whoami"];
        assert_eq!(admin.call(&rule).unwrap(), ok());
    }
    let who = |name: Option<&str>| {
        let mut client = client_as(&server, &certificates, name);
        let reply = client.call(&["ACL", "WHOAMI"]).unwrap();
        String::from_utf8_lossy(reply.text().unwrap()).into_owned()
    };
    assert_eq!(who(Some("app")), "app");
    assert_eq!(who(None), "default");
    assert_eq!(who(Some("client")), "default");
    let stats = admin.call(&["INFO", "stats"]).unwrap();
    let stats = String::from_utf8_lossy(stats.text().unwrap()).into_owned();
    assert!(stats.contains("acl_access_denied_tls_cert:1\r\n"), "{stats}");
    let log = admin.call(&["ACL", "LOG", "1"]).unwrap();
    let log = format!("{log:?}");
    for word in ["tls-cert", "client"] {
        let bytes = format!("{:?}", word.as_bytes());
        assert!(log.contains(&bytes), "{word} is not in {log}");
    }
    let mut app = client_as(&server, &certificates, Some("app"));
    assert!(app.call(&["SET", "app:x", "1"]).unwrap().is_error());
    assert_eq!(app.call(&["GET", "app:x"]).unwrap(), Reply::NullBulk);

    assert_eq!(admin.call(&["CONFIG", "SET", "tls-auth-clients-user", "URI"]).unwrap(), ok());
    assert_eq!(who(Some("app")), "urn:user:app");
    assert_eq!(admin.call(&["CONFIG", "SET", "requirepass", "secret"]).unwrap(), ok());
    assert_eq!(who(Some("app")), "urn:user:app");
    let refused = client_as(&server, &certificates, Some("client")).call(&["ACL", "WHOAMI"]);
    assert!(refused.unwrap().is_error());
    assert_eq!(admin.call(&["CONFIG", "SET", "tls-auth-clients-user", "off"]).unwrap(), ok());
    let refused = client_as(&server, &certificates, Some("app")).call(&["ACL", "WHOAMI"]);
    assert!(refused.unwrap().is_error());
}

/// The certificate that a new client is shown.
fn shown(server: &Server, certificates: &Certificates) -> Vec<u8> {
    let mut stream = tls::connect(server.address(), &certificates.client_config(None)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.read_exact(&mut [0; 7]).unwrap();
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

/// New certificates are there for who connects next; who is connected stays so. What is broken is
/// refused, and the old goes on.
#[test]
fn certificates_are_replaced_while_the_server_runs() {
    let certificates = Certificates::make().unwrap();
    let server = Server::start_with_certificates(&certificates, &[]).unwrap();
    let mut old = client_as(&server, &certificates, None);
    let first = certificates.certificate("server.crt").to_vec();
    assert_eq!(shown(&server, &certificates), first);

    // The same names with other contents.
    certificates.issue("server", "localhost", tls::SERVER_NAMES).unwrap();
    let second = certificates.certificate("server.crt").to_vec();
    assert_eq!(shown(&server, &certificates), first);
    let (cert, key) = (certificates.path("server.crt"), certificates.path("server.key"));
    let again = ["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key];
    assert_eq!(old.call(&again).unwrap(), ok());
    await_that(|| shown(&server, &certificates) == second);

    // A key of another certificate, no file at all, and garbage.
    certificates.issue("other", "localhost", tls::SERVER_NAMES).unwrap();
    certificates.write("garbage", "garbage").unwrap();
    for path in ["other.crt", "missing.crt", "garbage"] {
        let path = certificates.path(path);
        let refused = old.call(&["CONFIG", "SET", "tls-cert-file", &path]).unwrap();
        let text = "ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - \
                    Unable to update TLS configuration. Check server logs.";
        assert_eq!(refused, Reply::Error(text.as_bytes().to_vec()));
        assert_eq!(shown(&server, &certificates), second);
    }
    let kept = old.call(&["CONFIG", "GET", "tls-cert-file"]).unwrap();
    let expected = ["tls-cert-file", &cert].map(|text| Reply::Bulk(text.as_bytes().to_vec()));
    assert_eq!(kept, Reply::Array(expected.to_vec()));

    // By a signal, first with a broken file.
    certificates.issue("server", "localhost", tls::SERVER_NAMES).unwrap();
    let third = certificates.certificate("server.crt").to_vec();
    std::fs::rename(&key, format!("{key}.away")).unwrap();
    server.signal("HUP").unwrap();
    await_line(&server, "the certificates stay as they were");
    assert_eq!(shown(&server, &certificates), second);
    std::fs::rename(format!("{key}.away"), &key).unwrap();
    server.signal("HUP").unwrap();
    await_line(&server, "were read again");
    await_that(|| shown(&server, &certificates) == third);

    // By itself.
    let interval = ["CONFIG", "SET", "tls-auto-reload-interval", "1"];
    assert_eq!(old.call(&interval).unwrap(), ok());
    certificates.issue("server", "localhost", tls::SERVER_NAMES).unwrap();
    let fourth = certificates.certificate("server.crt").to_vec();
    // The first look only remembers, so the change may have to be made again.
    let deadline = Instant::now() + REPLY_WAIT;
    let mut latest = fourth;
    while shown(&server, &certificates) != latest {
        assert!(Instant::now() < deadline, "it was not seen");
        if server.next_line(Duration::from_secs(3)).is_none() {
            certificates.issue("server", "localhost", tls::SERVER_NAMES).unwrap();
            latest = certificates.certificate("server.crt").to_vec();
        }
    }
    assert_eq!(old.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
}

fn await_that(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + REPLY_WAIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not so in time");
    }
}

fn await_line(server: &Server, part: &str) {
    let deadline = Instant::now() + REPLY_WAIT;
    while Instant::now() < deadline {
        if server.next_line(REPLY_WAIT).is_some_and(|line| line.contains(part)) {
            return;
        }
    }
    panic!("the log does not say: {part}");
}

/// CONFIG SET opens a port for TLS beside the plain one, and closes it.
#[test]
fn a_tls_port_can_be_opened_and_closed() {
    let certificates = tls::shared().unwrap();
    let server = Server::start(Kind::Russet, &["--tls-auth-clients", "no"]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let port = russet_tests::server::free_port().unwrap().to_string();
    let refused = client.call(&["CONFIG", "SET", "tls-port", &port]).unwrap();
    let text = "ERR CONFIG SET failed (possibly related to argument 'tls-port') - \
                Unable to update TLS configuration. Check server logs.";
    assert_eq!(refused, Reply::Error(text.as_bytes().to_vec()));
    let (cert, key) = (certificates.path("server.crt"), certificates.path("server.key"));
    let files = ["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key];
    assert_eq!(client.call(&files).unwrap(), ok());
    assert_eq!(client.call(&["CONFIG", "SET", "tls-port", &port]).unwrap(), ok());
    let mut address = server.address();
    address.set_port(port.parse().unwrap());
    let connect = || {
        let stream = tls::connect(address, &certificates.client_config(None)).unwrap();
        Client::over(Wire::Tls(Box::new(stream)))
    };
    let mut encrypted = connect();
    assert_eq!(encrypted.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    assert_eq!(client.call(&["CONFIG", "SET", "tls-port", "0"]).unwrap(), ok());
    await_that(|| TcpStream::connect(address).is_err());
    assert_eq!(encrypted.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
}

/// `tls-protocols` and `tls-ciphersuites` say what is spoken.
#[test]
fn versions_and_ciphers_are_those_that_were_asked_for() {
    let server =
        Server::start_tls(&["--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"]).unwrap();
    let spoken = || {
        let config = tls::shared().unwrap().client_config(None);
        let mut stream = tls::connect(server.address(), &config).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.read_exact(&mut [0; 7]).unwrap();
        let suite = stream.conn.negotiated_cipher_suite().unwrap().suite();
        (stream.conn.protocol_version().unwrap(), suite)
    };
    let suite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    assert_eq!(spoken(), (ProtocolVersion::TLSv1_3, suite));
    let mut client = Client::connect(server.address()).unwrap();
    let set = [("tls-protocols", "TLSv1.2"), ("tls-ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256")];
    for (name, value) in set {
        assert_eq!(client.call(&["CONFIG", "SET", name, value]).unwrap(), ok());
    }
    let suite = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    await_that(|| spoken() == (ProtocolVersion::TLSv1_2, suite));
    for (name, value) in [("tls-protocols", "TLSv1.1"), ("tls-ciphers", "NULL")] {
        assert!(client.call(&["CONFIG", "SET", name, value]).unwrap().is_error());
    }
}

/// A start that can't have what it asks for ends with a reason.
#[test]
fn a_start_with_unusable_certificates_is_refused() {
    let certificates = tls::shared().unwrap();
    certificates.openssl("pkcs8 -topk8 -in server.key -out shut.key -passout pass:secret").unwrap();
    certificates.openssl("ec -in server.key -out old.key -aes128 -passout pass:secret").unwrap();
    let start = |extra: &[&str]| {
        let port = russet_tests::server::free_port().unwrap().to_string();
        let mut args: Vec<String> = ["--port", "0", "--tls-port", &port].map(str::to_owned).into();
        args.extend(certificates.server_args());
        args.extend(extra.iter().map(|&arg| arg.to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = run_russet(&args).unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (shut, old) = (certificates.path("shut.key"), certificates.path("old.key"));
    let text = start(&["--tls-key-file", &shut, "--tls-key-file-pass", "verysecret"]);
    assert!(text.contains("shut.key: the password is wrong"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    let text = start(&["--tls-key-file", &shut]);
    assert!(text.contains("shut.key: the key needs a password, and there is none"), "{text}");
    let text = start(&["--tls-key-file", &old, "--tls-key-file-pass", "secret"]);
    assert!(text.contains("convert it with 'openssl pkcs8 -topk8'"), "{text}");
    let text = start(&["--tls-ca-cert-file", ""]);
    assert!(text.contains("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir"), "{text}");
    let text = start(&["--tls-cert-file", ""]);
    assert!(text.contains("no tls-cert-file"), "{text}");
    let text = start(&["--tls-key-file", &certificates.path("client.key")]);
    assert!(text.contains("client.key is not the key of"), "{text}");
    let text = start(&["--tls-protocols", "TLSv1"]);
    assert!(text.contains("TLSv1 is broken and not supported"), "{text}");
}

/// `tls-key-file-pass`: keys as OpenSSL encrypts them, by default and in other ways.
/// A wrong password changes nothing, and no password is in the log.
#[test]
fn a_key_may_need_a_password() {
    let certificates = Certificates::make().unwrap();
    let ways = ["-v2 des3", "-v2 aes-256-cbc", "-v2 aes-128-cbc -v2prf hmacWithSHA1", "-scrypt"];
    for (number, way) in ways.iter().enumerate() {
        let made = format!(
            "pkcs8 -topk8 -in server.key -out shut{number}.key {way} -passout pass:secret{number}"
        );
        certificates.openssl(&made).unwrap();
    }
    let shut = |number: usize| certificates.path(&format!("shut{number}.key"));
    let args = ["--tls-key-file", &shut(0), "--tls-key-file-pass", "secret0"];
    let server = Server::start_with_certificates(&certificates, &args).unwrap();
    let first = certificates.certificate("server.crt").to_vec();
    assert_eq!(shown(&server, &certificates), first);
    let mut client = client_as(&server, &certificates, None);
    assert_eq!(client.call(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]).unwrap(), ok());
    for (number, way) in ways.iter().enumerate().skip(1) {
        let (key, password) = (shut(number), format!("secret{number}"));
        let set = ["CONFIG", "SET", "tls-key-file", &key, "tls-key-file-pass", &password];
        assert_eq!(client.call(&set).unwrap(), ok(), "{way}");
        assert_eq!(shown(&server, &certificates), first);
    }
    let refused = client.call(&["CONFIG", "SET", "tls-key-file-pass", "secret9"]).unwrap();
    let text = "ERR CONFIG SET failed (possibly related to argument 'tls-key-file-pass') - \
                Unable to update TLS configuration. Check server logs.";
    assert_eq!(refused, Reply::Error(text.as_bytes().to_vec()));
    let why = server.next_line(REPLY_WAIT).unwrap();
    assert!(why.ends_with("shut3.key: the password is wrong"), "{why}");
    assert_eq!(shown(&server, &certificates), first);
    // As in Redis: who may ask for the configuration is shown all of it.
    let kept = client.call(&["CONFIG", "GET", "tls-key-file-pass"]).unwrap();
    let expected = ["tls-key-file-pass", "secret3"].map(|text| text.as_bytes().to_vec());
    assert_eq!(kept, Reply::Array(expected.map(Reply::Bulk).to_vec()));
    let slow = format!("{:?}", client.call(&["SLOWLOG", "GET"]).unwrap());
    for password in ["secret1", "secret9"] {
        assert!(!slow.contains(&format!("{:?}", password.as_bytes())), "{slow}");
    }
}

/// `tls-cluster`, which was refused: MIGRATE encrypts, shows the certificate for clients, and
/// trusts whom the authority vouches for.
#[test]
fn migrate_speaks_tls_with_a_certificate_of_its_own() {
    let certificates = Certificates::make().unwrap();
    let strangers = Certificates::make().unwrap();
    certificates
        .openssl("pkcs8 -topk8 -in client.key -out shut.key -passout pass:clientsecret")
        .unwrap();
    let args = ["--tls-auth-clients", "yes", "--tls-auth-clients-user", "CN"];
    let users = ["--user", "client", "on", "~*", "+@all", "--user", "default", "off"];
    let args = [&args[..], &users].concat();
    let target = Server::start_with_certificates(&certificates, &args).unwrap();
    let stranger = Server::start_with_certificates(&strangers, &[]).unwrap();

    let mut args = certificates.server_args();
    let (own, key) = (certificates.path("client.crt"), certificates.path("shut.key"));
    let of_client = ["--tls-client-cert-file", &own, "--tls-client-key-file", &key];
    let others = ["--tls-client-key-file-pass", "clientsecret", "--tls-cluster", "yes"];
    args.extend([of_client, others].concat().iter().map(|&arg| arg.to_owned()));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let source = Server::start(Kind::Russet, &args).unwrap();
    let mut client = Client::connect(source.address()).unwrap();
    let migrate = |client: &mut Client, server: &Server| {
        assert_eq!(client.call(&["SET", "k", "v"]).unwrap(), ok());
        let port = server.address().port().to_string();
        let call = ["MIGRATE", "127.0.0.1", &port, "k", "0", "20000", "REPLACE"];
        client.call(&call).unwrap()
    };
    let is_error = |reply: &Reply, part: &str| match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).contains(part),
        _ => false,
    };
    assert_eq!(migrate(&mut client, &target), ok());
    let mut there = client_as(&target, &certificates, Some("client"));
    assert_eq!(there.call(&["GET", "k"]).unwrap(), Reply::Bulk(b"v".to_vec()));
    let refused = migrate(&mut client, &stranger);
    assert!(is_error(&refused, "IOERR"), "{refused:?}");
    // Nobody was told why.
    let why = format!("Cannot connect to {} over TLS: ", stranger.address());
    await_line(&source, &format!("{why}invalid peer certificate"));

    // What can't be used changes nothing.
    let wrong = ["CONFIG", "SET", "tls-client-key-file-pass", "x"];
    let refused = client.call(&wrong).unwrap();
    assert!(is_error(&refused, "Unable to update TLS configuration"), "{refused:?}");
    assert_eq!(migrate(&mut client, &target), ok());
    // Without one for clients it shows that of the server, which names no user of the target.
    let none = ["CONFIG", "SET", "tls-client-cert-file", "", "tls-client-key-file", ""];
    assert_eq!(client.call(&none).unwrap(), ok());
    let refused = migrate(&mut client, &target);
    assert!(is_error(&refused, "NOAUTH"), "{refused:?}");
    assert_eq!(client.call(&["CONFIG", "SET", "tls-cluster", "no"]).unwrap(), ok());
    let refused = migrate(&mut client, &target);
    assert!(is_error(&refused, "IOERR"), "{refused:?}");
    assert_eq!(client.call(&["CONFIG", "SET", "tls-ca-cert-file", ""]).unwrap(), ok());
    let refused = client.call(&["CONFIG", "SET", "tls-cluster", "yes"]).unwrap();
    assert!(is_error(&refused, "Unable to update TLS configuration"), "{refused:?}");
}

/// A reload of certificates that had begun before CONFIG SET put what it had read in place behind
/// it: MIGRATE sent its password in plain text, with `tls-cluster yes`.
#[test]
fn a_reload_does_not_undo_tls_cluster() {
    const ROUNDS: usize = 8;
    let certificates = Certificates::make().unwrap();
    // It takes a while to open, and so there is a while between the two.
    let slow = "pkcs8 -topk8 -in server.key -out slow.key -iter 100000 -passout pass:secret";
    certificates.openssl(slow).unwrap();
    let (key, own) = (certificates.path("slow.key"), certificates.path("client.crt"));
    let own_key = certificates.path("client.key");
    let of_server = ["--tls-key-file", &key, "--tls-key-file-pass", "secret"];
    let of_client = ["--tls-client-cert-file", &own, "--tls-client-key-file", &own_key];
    let args = [of_server, of_client].concat();
    let server = Server::start_with_certificates(&certificates, &args).unwrap();
    let target = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = target.local_addr().unwrap().port().to_string();
    let mut client = client_as(&server, &certificates, None);
    assert_eq!(client.call(&["SET", "k", "v"]).unwrap(), ok());
    for _ in 0..ROUNDS {
        server.signal("HUP").unwrap();
        assert_eq!(client.call(&["CONFIG", "SET", "tls-cluster", "yes"]).unwrap(), ok());
        await_line(&server, "The certificates of TLS were read again");
        let call = ["MIGRATE", "127.0.0.1", &port, "k", "0", "20000", "AUTH", "hunter2"];
        client.send(&call.map(|arg| arg.as_bytes().to_vec())).unwrap();
        let (mut stream, _) = target.accept().unwrap();
        let mut first = [0];
        stream.read_exact(&mut first).unwrap();
        drop(stream);
        const HANDSHAKE: u8 = 0x16;
        assert_eq!(first, [HANDSHAKE], "a record of TLS");
        assert!(client.read(REPLY_WAIT).unwrap().is_error());
        assert_eq!(client.call(&["CONFIG", "SET", "tls-cluster", "no"]).unwrap(), ok());
    }
}

/// A session that was resumed is as good as a new one, and knows its certificate.
#[test]
fn sessions_are_resumed_with_their_certificates() {
    let certificates = Certificates::make().unwrap();
    let args = ["--tls-auth-clients", "yes", "--tls-auth-clients-user", "CN"];
    let server = Server::start_with_certificates(&certificates, &args).unwrap();
    let config = certificates.client_config(Some("client"));
    let connect = || {
        let mut stream = tls::connect(server.address(), &config).unwrap();
        stream.write_all(b"ACL WHOAMI\r\n").unwrap();
        let mut reply = [0; 12];
        stream.read_exact(&mut reply).unwrap();
        (stream.conn.handshake_kind().unwrap(), String::from_utf8_lossy(&reply).into_owned())
    };
    let mut admin = client_as(&server, &certificates, Some("client"));
    let rule = ["ACL", "SETUSER", "client", "on", "+@all", "allkeys"];
    assert_eq!(admin.call(&rule).unwrap(), ok());
    let who = "$6\r\nclient\r\n".to_owned();
    assert_eq!(connect(), (HandshakeKind::Full, who.clone()));
    assert_eq!(connect(), (HandshakeKind::Resumed, who));
    assert_eq!(admin.call(&["CONFIG", "SET", "tls-session-caching", "no"]).unwrap(), ok());
    await_that(|| connect().0 == HandshakeKind::Full);
    assert_eq!(connect().0, HandshakeKind::Full);
}
