//! The process around the commands: what it uses, and what it leaves in the system.

use std::time::{Duration, Instant};

use russet_tests::client::{Client, Reply};
use russet_tests::server::{Kind, Server, run_russet};
use russet_tests::wait::{SOON, eventually};

/// A figure of INFO.
fn info(client: &mut Client, section: &str, name: &str) -> String {
    let Reply::Bulk(text) = client.call(&["INFO", section]).unwrap() else {
        panic!("INFO gave no text")
    };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

/// `used_cpu_user_main_thread` was the time of the thread that waits for the end of the process,
/// and so it was 0 for ever: whoever watches it to see how busy a server is saw nothing.
#[test]
fn the_time_of_the_threads_that_run_commands_is_reported() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let started = Instant::now();
    while info(&mut client, "cpu", "used_cpu_user_main_thread") == "0.000000" {
        assert!(started.elapsed() < SOON, "still 0 after much work");
        client.call(&["EVAL", "local n = 0 for i = 1, 200000 do n = n + i end", "0"]).unwrap();
    }
}

/// The figures were hundredths of a second, so that a server which had answered some commands had
/// used none.
#[test]
fn the_time_of_a_few_commands_is_reported() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let mut shown = || -> f64 {
        let figures = ["user", "sys"].map(|kind| {
            let figure = info(&mut client, "cpu", &format!("used_cpu_{kind}_main_thread"));
            assert_eq!(figure.split_once('.').map(|(_, decimals)| decimals.len()), Some(6));
            figure.parse::<f64>().unwrap()
        });
        figures.iter().sum()
    };
    let first = shown();
    assert!(first > 0.0, "the thread has taken a client in, and that took time");
    let hundredths = |seconds: f64| seconds * 100.0;
    let all = [(); 30].map(|()| shown());
    let is_fine = all.iter().any(|seconds| (hundredths(*seconds).fract() - 0.5).abs() < 0.49);
    assert!(is_fine, "{all:?} are hundredths of a second");
    assert!(all.is_sorted(), "{all:?} go back");
}

/// Sets the limit of open files of a running process: `soft:` or `soft:hard`.
fn limit_open_files(server: &Server, limits: &str) {
    let limit = format!("--nofile={limits}");
    let pid = server.pid().to_string();
    let status = std::process::Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(status.unwrap().success());
}

/// When the process had no file left for a connection, the ones in the queue were not looked at
/// again until the next one came, even if there was room for them long since.
#[test]
fn connections_that_found_no_room_are_accepted_when_there_is() {
    let server = Server::start(Kind::Russet, &["--threads", "1"]).unwrap();
    let mut first = Client::connect(server.address()).unwrap();
    assert_eq!(first.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    // It keeps those that it has, and gets no other. The system takes the client in all the same.
    limit_open_files(&server, "3:");
    let mut second = Client::connect(server.address()).unwrap();
    second.send(&[b"PING".to_vec()]).unwrap();
    assert!(second.read(Duration::from_millis(300)).is_err());
    assert_eq!(first.call(&["PING"]).unwrap(), Reply::Status(b"PONG".to_vec()));
    limit_open_files(&server, "1000:");
    assert_eq!(second.read(SOON).unwrap(), Reply::Status(b"PONG".to_vec()));
}

/// `maxclients` was 10,000 whatever `ulimit -n` said: clients beyond it were taken in by the system
/// and never answered, instead of being told that there are too many.
#[test]
fn maxclients_is_what_the_limit_of_open_files_allows() {
    let server = Server::start(Kind::Russet, &["--threads", "1"]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    limit_open_files(&server, "200:200");
    let refused = client.call(&["CONFIG", "SET", "maxclients", "5000"]).unwrap();
    let text = String::from_utf8(refused.text().unwrap().to_vec()).unwrap();
    assert!(text.contains("not able to handle the specified number of clients"), "{text}");
    let allowed = text.rsplit(' ').next().unwrap().to_owned();
    assert!((100..200).contains(&allowed.parse::<u64>().unwrap()), "{text}");
    let set = ["CONFIG", "SET", "maxclients", &allowed];
    assert_eq!(client.call(&set).unwrap(), Reply::Status(b"OK".to_vec()));
    let kept: Vec<Client> =
        (0..250).map_while(|_| Client::connect(server.address()).ok()).collect();
    for mut other in kept {
        let _refusal_or_pong = other.send(&[b"PING".to_vec()]);
        let reply = other.read(SOON).unwrap();
        let is_refused = reply == Reply::Error(b"ERR max number of clients reached".to_vec());
        assert!(is_refused || reply == Reply::Status(b"PONG".to_vec()), "{reply:?}");
    }
}

/// The same at the start: the number is lowered, and the log says so.
#[test]
fn a_low_limit_of_open_files_lowers_maxclients_at_the_start() {
    let server = Server::start_limited(100, &["--threads", "1"]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let Reply::Array(pair) = client.call(&["CONFIG", "GET", "maxclients"]).unwrap() else {
        panic!("CONFIG GET gave no array")
    };
    let allowed: u64 = String::from_utf8_lossy(pair[1].text().unwrap()).parse().unwrap();
    assert!((50..100).contains(&allowed), "{allowed}");
    let warning = server.lines_before_ready().iter().find(|line| line.contains("maxclients"));
    assert!(warning.is_some_and(|line| line.contains("ulimit -n")), "{warning:?}");
}

/// `pidfile` was accepted and not written, so that scripts could not find the process to end.
#[test]
fn the_pid_file_is_there_while_the_server_runs() {
    let mut server = Server::start(Kind::Russet, &["--pidfile", "russet.pid"]).unwrap();
    let path = server.dir().join("russet.pid");
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), server.pid().to_string());
    server.signal("TERM").unwrap();
    assert_eq!(server.exit_code(SOON), Some(0));
    assert!(!path.exists());
}

/// Ends a process in the background, even if the test fails.
struct Background(String);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = std::process::Command::new("kill").args(["-KILL", &self.0]).output();
    }
}

/// The arguments of a process as every user of the machine can read them.
fn visible_args(pid: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// `--requirepass secret` stayed readable in /proc for as long as the server ran.
#[test]
fn a_secret_on_the_command_line_is_not_left_there() {
    let secrets = ["--requirepass", "TOPSECRET", "--user", "u", "on", ">TOPSECRET", "+ping"];
    let plain = Server::start(Kind::Russet, &secrets).unwrap();
    assert!(!visible_args(&plain.pid().to_string()).contains("TOPSECRET"));
    let long = ["--requirepass", "TOPSECRET", "--set-proc-title", "no", "--hz", "10"];
    let long = Server::start(Kind::Russet, &long).unwrap();
    let shown = visible_args(&long.pid().to_string());
    assert!(shown.contains(" --requirepass (hidden) --set-proc-title no --hz 10 "), "{shown}");
    // Four times what is shown for a secret is longer than what stood there.
    let args = [&secrets[..], &["--set-proc-title", "no"]].concat();
    let server = Server::start(Kind::Russet, &args).unwrap();
    let shown = visible_args(&server.pid().to_string());
    assert!(shown.contains("--requirepass * --user * * * * "), "{shown}");
    assert!(shown.contains("--port ") && !shown.contains("TOPSECRET"), "{shown}");
    let mut client = Client::connect(server.address()).unwrap();
    assert!(
        matches!(client.call(&["PING"]).unwrap(), Reply::Error(text) if text.starts_with(b"NOAUTH"))
    );
    assert_eq!(client.call(&["AUTH", "TOPSECRET"]).unwrap(), Reply::Status("OK".into()));
    assert_eq!(client.call(&["AUTH", "u", "TOPSECRET"]).unwrap(), Reply::Status("OK".into()));
}

/// `set-proc-title` was without effect: of several servers on a machine `ps` showed what they were
/// started with, and not where they listen.
#[test]
fn the_title_says_where_the_server_listens() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let address = server.address();
    let pid = server.pid().to_string();
    let title = || visible_args(&pid).trim_end().to_owned();
    assert!(title().ends_with(&format!("russet {address}")), "{}", title());
    let mut client = Client::connect(address).unwrap();
    let mut set = |name: &str, value: &str| client.call(&["CONFIG", "SET", name, value]).unwrap();
    let ok = || Reply::Status("OK".into());
    let long = "x".repeat(900);
    for (template, shown) in [
        ("{port}", address.port().to_string()),
        ("a {config-file}|{tls-port}|{unixsocket}|{server-mode}| ", "a -|0|||".to_owned()),
        // Longer than the arguments were, so that it reaches into the environment.
        (&*format!("{long} {{listen-addr}}"), format!("{long} {address}")),
        ("x", "x".to_owned()),
    ] {
        assert_eq!(set("proc-title-template", template), ok());
        assert_eq!(title(), shown);
    }
    for template in ["", " ", "{title}", "{title} {server-mode}", "{bad}", "{port", "{}", "{PORT}"]
    {
        let text = "ERR CONFIG SET failed (possibly related to argument 'proc-title-template') - \
                    template format is invalid or contains unknown variables";
        assert_eq!(set("proc-title-template", template), Reply::Error(text.into()), "{template}");
    }
    assert_eq!(title(), "x");
    assert_eq!(set("proc-title-template", "{port}"), ok());
    let port = russet_tests::server::free_port().unwrap().to_string();
    assert_eq!(set("port", &port), ok());
    assert_eq!(title(), port);
}

/// `oom-score-adj` was refused, unless it was `no`.
#[test]
fn the_kernel_is_told_how_soon_to_end_the_server() {
    let score_of = |pid: &str| -> i64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let base = score_of("self");
    let args = ["--oom-score-adj", "relative", "--oom-score-adj-values", "10", "20", "30"];
    let server = Server::start(Kind::Russet, &args).unwrap();
    let pid = server.pid().to_string();
    let limited = |score: i64| score.clamp(-1000, 1000);
    assert_eq!(score_of(&pid), limited(base + 10));
    let mut client = Client::connect(server.address()).unwrap();
    let mut set = |name: &str, value: &str| client.call(&["CONFIG", "SET", name, value]).unwrap();
    let ok = || Reply::Status("OK".into());
    for (name, value, score) in [
        ("oom-score-adj-values", "40 50 60", limited(base + 40)),
        ("oom-score-adj-values", "2000 0 0", 1000),
        ("oom-score-adj", "absolute", 1000),
        ("oom-score-adj-values", "999 0 0", 999),
        ("oom-score-adj", "no", base),
        ("oom-score-adj-values", "50 0 0", base),
        ("oom-score-adj", "yes", limited(base + 50)),
    ] {
        assert_eq!(set(name, value), ok(), "{name} {value}");
        assert_eq!(score_of(&pid), score, "{name} {value}");
    }
    // What somebody else has set meanwhile is what it counts from.
    assert_eq!(set("oom-score-adj", "no"), ok());
    let own = limited(base + 2);
    std::fs::write(format!("/proc/{pid}/oom_score_adj"), own.to_string()).unwrap();
    assert_eq!(set("oom-score-adj-values", "1 1 1"), ok());
    assert_eq!(score_of(&pid), own);
    assert_eq!(set("oom-score-adj", "yes"), ok());
    assert_eq!(score_of(&pid), limited(own + 1));
    // Whether it may be lowered is the machine's affair.
    let reply = set("oom-score-adj-values", "-2000 0 0");
    if reply == ok() {
        assert_eq!(score_of(&pid), -1000);
    } else {
        let text = "ERR CONFIG SET failed (possibly related to argument 'oom-score-adj-values') - \
                    Failed to set current oom_score_adj. Check server logs.";
        assert_eq!(reply, Reply::Error(text.into()));
        assert_eq!(score_of(&pid), limited(own + 1));
        let line = server.next_line(SOON).unwrap();
        assert!(line.contains("Unable to write oom_score_adj: Permission denied"), "{line}");
    }
    let shown = client.call(&["CONFIG", "GET", "oom-score-adj"]).unwrap();
    let expected = ["oom-score-adj", "yes"].map(|text| Reply::Bulk(text.into()));
    assert_eq!(shown, Reply::Array(expected.to_vec()));
}

/// What the environment says is still so when the title lies over it.
#[test]
fn a_title_leaves_the_environment_alone() {
    let notify = std::env::temp_dir().join(format!("russet-notify-{}", std::process::id()));
    let socket = std::os::unix::net::UnixDatagram::bind(&notify).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let template = format!("{{title}} {}", "x".repeat(3000));
    let variables = [("NOTIFY_SOCKET", notify.to_str().unwrap())];
    let args = ["--supervised", "systemd", "--proc-title-template", &template];
    let server = Server::start_in(&variables, &args).unwrap();
    assert!(visible_args(&server.pid().to_string()).contains("xxx"));
    let mut message = [0; 512];
    let length = socket.recv(&mut message).unwrap();
    assert!(length > 0);
    std::fs::remove_file(notify).unwrap();
}

/// `daemonize yes`, as Debian's redis.conf has it, was refused.
#[test]
fn a_daemon_runs_on_in_a_session_of_its_own() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let dir = std::env::temp_dir().join(format!("russet-daemon-{}", address.port()));
    std::fs::create_dir_all(&dir).unwrap();
    let (pid_file, log) = (dir.join("pid"), dir.join("log"));
    let port = address.port().to_string();
    let output = run_russet(&[
        "--daemonize",
        "yes",
        "--port",
        &port,
        "--pidfile",
        pid_file.to_str().unwrap(),
        "--logfile",
        log.to_str().unwrap(),
        "--dir",
        dir.to_str().unwrap(),
        "--masterauth",
        "TOPSECRET",
    ])
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let pid = eventually("pid file", || {
        let text = std::fs::read_to_string(&pid_file).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    });
    let _background = Background(pid.clone());
    let mut client = eventually("listener", || Client::connect(address).ok());
    assert_eq!(info(&mut client, "server", "process_id"), pid);
    let shown = visible_args(&pid);
    assert!(shown.trim_end().ends_with(&format!("russet {address}")), "{shown}");
    // Behind the name: state, parent, process group, session.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).map(str::to_owned);
    assert_eq!(session, Some(pid.clone()));
    assert!(std::fs::read_to_string(&log).unwrap().contains("Ready to accept connections"));
    let _closes = client.call(&["SHUTDOWN", "NOSAVE"]);
    eventually("end", || (!pid_file.exists()).then_some(()));
    eventually("end of the process", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stat.is_empty() || stat.contains(") Z ")).then_some(())
    });
    std::fs::remove_dir_all(dir).unwrap();
}
