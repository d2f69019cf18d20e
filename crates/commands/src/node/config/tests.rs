//! Laws of the table, and each way in and out of the configuration.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::table;
use super::*;

mod effects;
mod golden;
mod users;

/// A directory of its own for each test, removed at its end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("russet-config-{}-{id}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TempDir(fs::canonicalize(path).unwrap())
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn start<A: Into<OsString> + Clone>(args: &[A]) -> Result<Box<Config>, String> {
    let args: Vec<OsString> = args.iter().cloned().map(Into::into).collect();
    match Startup::parse(&args) {
        Ok(Startup::Run(config)) => Ok(config),
        Ok(other) => Err(format!("{other:?}")),
        Err(fault) => Err(fault.to_string()),
    }
}

fn start_file(path: &std::path::Path) -> Result<Box<Config>, String> {
    start(&[path.as_os_str().to_owned()])
}

fn set(config: &Config, pairs: &[(&str, &str)]) -> Result<(), String> {
    let pairs: Vec<(&[u8], &[u8])> =
        pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    config.set(&pairs, Requester::Local, &mut |_| Ok(())).map(drop)
}

fn shown(config: &Config, name: &str) -> String {
    let directive = Directive::named(name.as_bytes()).expect(name);
    String::from_utf8(config.shown(directive)).unwrap()
}

#[test]
fn names_are_unique_and_lower_case() {
    let mut seen = std::collections::HashSet::new();
    for (_, name) in table::names() {
        assert!(seen.insert(name), "{name} twice");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_0123456789".contains(&byte))
        );
    }
    for name in table::RETIRED.iter().chain(table::MISSING) {
        assert!(!seen.contains(name), "{name} is known and not");
    }
}

/// A default must be a value that could be given: it prints, reads back, and is supported.
#[test]
fn every_default_reads_back() {
    for directive in Directive::ALL {
        let spec = directive.spec();
        assert_eq!(spec.directive, *directive);
        assert!(!spec.doc.is_empty() && !spec.doc.ends_with('.'), "{directive:?}");
        let default = spec.default_value();
        assert_eq!(spec.unsupported(&default), None, "{directive:?}");
        if *directive == Directive::Dir {
            continue;
        }
        for line in spec.lines(&default) {
            let args = russet_base::text::split_args(&line).unwrap();
            assert_eq!(args[0], directive.name().as_bytes());
            if !spec.repeats() {
                let rest = &args[1..];
                assert_eq!(spec.parse(rest, &default), Ok(default.clone()), "{directive:?}");
            }
        }
    }
}

#[test]
fn lock_free_values_are_typed() {
    let config = Config::default();
    assert_eq!(config.int(Directive::MaxClients), 10_000);
    assert!(config.flag(Directive::ProtectedMode));
    assert_eq!(config.memory(Directive::ProtoMaxBulkLen), 512 << 20);
    assert_eq!(config.choice(Directive::LogLevel), "notice");
    assert_eq!(&*config.text(Directive::RedisVersion), b"8.0.0");
    assert_eq!(config.list(Directive::Bind), ["127.0.0.1"]);
    assert_eq!(config.percentiles(), [50.0, 99.0, 99.9]);
    assert_eq!(config.save_points().len(), 3);
    assert_eq!(config.save_points()[0], SavePoint { seconds: 3600, changes: 1 });
    let pubsub = config.output_buffer_limit(ClientClass::Pubsub);
    let expected = BufferLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_seconds: 60 };
    assert_eq!(pubsub, expected);
    assert_eq!(config.event_flags(), EventFlags(0));
    set(&config, &[("notify-keyspace-events", "KEA"), ("maxmemory", "18446744073709551615")])
        .unwrap();
    assert_eq!(config.event_flags(), EventFlags::parse(b"AKE").unwrap());
    assert_eq!(config.memory(Directive::MaxMemory), u64::MAX);
    assert_eq!(shown(&config, "maxmemory"), "18446744073709551615");
}

#[test]
fn options_are_read_as_redis_server_reads_them() {
    let config = start(&["--maxclients", "100", "--bind", "1.2.3.4", "-::1", "--save", "60", "5"]);
    let config = config.unwrap();
    assert_eq!(config.int(Directive::MaxClients), 100);
    assert_eq!(config.list(Directive::Bind), ["1.2.3.4", "-::1"]);
    assert_eq!(config.save_points(), [SavePoint { seconds: 60, changes: 5 }]);
    assert_eq!(shown(&start(&["--maxclients 77"]).unwrap(), "maxclients"), "77");
    assert_eq!(shown(&start(&["--save", ""]).unwrap(), "save"), "");
    assert_eq!(shown(&start(&["--save"]).unwrap(), "save"), "");
    let config = start(&["--save", "--port", "0", "--SAVE", "1 2 3 4"]).unwrap();
    assert_eq!((shown(&config, "save"), config.int(Directive::Port)), ("1 2 3 4".to_owned(), 0));
    let config = start(&["--save", "1 2", "--save", "3", "4"]).unwrap();
    assert_eq!(shown(&config, "save"), "1 2 3 4");
    // An option without an argument takes the next argument, even with dashes.
    assert_eq!(
        &*start(&["--requirepass", "--secret"]).unwrap().text(Directive::RequirePass),
        b"--secret"
    );
    assert_eq!(
        start(&["--slowlog-log-slower-than", "-1"]).unwrap().int(Directive::SlowlogLogSlowerThan),
        -1
    );
    assert_eq!(start(&["--help"]).unwrap_err(), "Help");
    assert_eq!(start(&["-v"]).unwrap_err(), "Version");
    assert_eq!(start::<&str>(&[]).unwrap().int(Directive::Port), 6379);
    let config = start(&["--client-output-buffer-limit", "pubsub 1mb 2 3 normal 4 5 6"]).unwrap();
    assert_eq!(config.output_buffer_limit(ClientClass::Pubsub).hard_bytes, 1 << 20);
    assert_eq!(config.output_buffer_limit(ClientClass::Normal).soft_seconds, 6);
    assert_eq!(config.output_buffer_limit(ClientClass::Replica).soft_seconds, 60);
}

#[test]
fn wrong_options_are_reported_in_one_line() {
    for (args, text) in [
        (
            &["--maxclient", "5"][..],
            "unknown directive '--maxclient', did you mean '--maxclients'?",
        ),
        (&["--zzzzzz", "5"], "unknown directive '--zzzzzz'"),
        (
            &["--port", "x"],
            "--port: bad value 'x': argument couldn't be parsed into an integer \
                            (allowed: a whole number from 0 to 65535)",
        ),
        (
            &["--port"],
            "--port: bad value '': wrong number of arguments (allowed: a whole number \
                       from 0 to 65535)",
        ),
        (
            &["--loglevel", "loud"],
            "--loglevel: bad value 'loud': argument(s) must be one of the \
                       following: debug, verbose, notice, warning, nothing (allowed: one of \
                       debug, verbose, notice, warning, nothing)",
        ),
        (
            &["--requirepass", "a", "b"],
            "--requirepass: bad value: wrong number of arguments \
                       (allowed: one value, in quotes if it has spaces)",
        ),
        (
            &["--cluster-enabled", "yes"],
            "--cluster-enabled 'yes' is not supported by this version of Russet",
        ),
        (
            &["--replicaof", "host", "6379"],
            "--replicaof 'host 6379' is not supported by this version of Russet",
        ),
        (
            &["--tls-replication", "yes"],
            "--tls-replication 'yes' is not supported by this version of Russet",
        ),
        (&["--loadmodule", "x.so"], "--loadmodule is not supported by this version of Russet"),
        (&["--search-timeout", "5"], "--search-timeout is not supported by this version of Russet"),
        (&["/nonexistent/a.conf"], "can't read '/nonexistent/a.conf': No such file or directory"),
        (&["-x"], "unexpected argument '-x': options start with '--'"),
        (&["--bind \"a"], "unbalanced quotes"),
    ] {
        assert_eq!(start(args).unwrap_err(), text);
    }
    // What a later option takes back was never promised.
    assert!(start(&["--daemonize", "yes", "--daemonize", "no"]).is_ok());
    assert!(start(&["--replicaof", "no", "one"]).is_ok());
    assert!(start(&["--io-threads-do-reads", "yes"]).is_ok());
}

#[test]
fn files_have_comments_quotes_aliases_and_includes() {
    let dir = TempDir::new();
    fs::create_dir(dir.0.join("conf.d")).unwrap();
    dir.write("conf.d/a.conf", "maxclients 1\ntimeout 7\n");
    dir.write("conf.d/b.conf", "maxclients 2\n");
    dir.write("conf.d/.hidden.conf", "maxclients 3\n");
    let text = format!(
        "# a comment\n\r\n  PORT 0\r\nrequirepass \"a \\x41\\n\"\nhash-max-ziplist-entries 9\n\
         save 900 1\nsave 300 10\nbind '1.1.1.1' 2.2.2.2\ninclude {0}/conf.d/*.conf\n\
         include {0}/none/*.conf\nlua-time-limit 3\nclient-output-buffer-limit replica 1 2 3\n\
         shutdown-on-sigterm nosave now\ndir {0}/conf.d/..\n",
        dir.0.display()
    );
    let config = start_file(&dir.write("r.conf", &text)).unwrap();
    assert_eq!(config.int(Directive::Port), 0);
    assert_eq!(&*config.text(Directive::RequirePass), b"a A\n");
    assert_eq!(config.int(Directive::HashMaxListpackEntries), 9);
    assert_eq!(shown(&config, "save"), "900 1 300 10");
    assert_eq!(shown(&config, "bind"), "1.1.1.1 2.2.2.2");
    assert_eq!((config.int(Directive::MaxClients), config.int(Directive::Timeout)), (2, 7));
    assert_eq!(config.int(Directive::BusyReplyThreshold), 3);
    assert_eq!(config.output_buffer_limit(ClientClass::Replica).soft_seconds, 3);
    assert_eq!(shown(&config, "shutdown-on-sigterm"), "nosave now");
    assert_eq!(shown(&config, "dir"), dir.0.display().to_string());
    assert_eq!(config.file(), Some(dir.0.join("r.conf").as_path()));
}

/// A file with the line `save`, as test suites of the peers write it, was refused; the peers take
/// it for no save point at all.
#[test]
fn save_alone_is_no_save_point() {
    let dir = TempDir::new();
    for text in ["save\n", "save 60 5\nsave \n", "save \"\"\n"] {
        let config = start_file(&dir.write("r.conf", text)).unwrap();
        assert!(config.save_points().is_empty(), "{text}");
    }
}

#[test]
fn errors_in_files_name_the_line() {
    let dir = TempDir::new();
    let at = |content: &str| {
        let path = dir.write("r.conf", content);
        let text = start_file(&path).unwrap_err();
        text.strip_prefix(&format!("{}:", path.display())).unwrap_or(&text).to_owned()
    };
    assert_eq!(
        at("\nmaxclient 5\n"),
        "2: unknown directive 'maxclient', did you mean 'maxclients'?"
    );
    assert_eq!(at("bind \"a\n"), "1: unbalanced quotes");
    assert_eq!(
        at("port 1 2"),
        "1: port: bad value '1 2': wrong number of arguments (allowed: a \
                                whole number from 0 to 65535)"
    );
    assert_eq!(
        at("rename-command NOSUCH \"\""),
        "1: rename-command: 'NOSUCH': there is no such command"
    );
    assert_eq!(
        at("dir /nonexistent/x"),
        "1: dir: bad value '/nonexistent/x': No such file or \
                                directory (allowed: one value, in quotes if it has spaces)"
    );
    assert_eq!(
        at("include /nonexistent/y"),
        "1: can't read '/nonexistent/y': No such file or directory"
    );
    let own = dir.0.join("r.conf");
    let error = at(&format!("include {}", own.display()));
    assert!(error.contains("is included too deeply"), "{error}");
    // Without a limit on all files together this would take longer than anyone waits.
    let error = at(&format!("include {}\n", own.display()).repeat(100));
    assert!(error.contains("is included too deeply"), "{error}");
}

#[test]
fn no_file_panics() {
    let dir = TempDir::new();
    let mut random = russet_base::Random::from_seed(11);
    let args: [&[u8]; 12] = [
        b"save",
        b"bind",
        b"\"",
        b"'",
        b"\\x",
        b" ",
        b"\n",
        b"\xff",
        b"0",
        b"-1",
        b"client-output-buffer-limit",
        b"99999999999999999999",
    ];
    for _ in 0..300 {
        let length = random.index(20);
        let content: Vec<u8> =
            (0..length).flat_map(|_| args[random.index(args.len())].to_vec()).collect();
        let path = dir.0.join("f.conf");
        fs::write(&path, content).unwrap();
        let _ = start_file(&path);
    }
}

/// CONFIG GET compared each of its patterns with each name, however many there were. What is just a
/// name is looked up, and a name that was found is not compared again; only patterns that match
/// nothing cost a comparison per name.
#[test]
fn many_patterns_cost_few_comparisons() {
    let config = Config::default();
    let comparisons = |patterns: &[&str]| {
        let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        let mut count = 0;
        let found = config.matching_by(&patterns, |glob, name| {
            count += 1;
            glob.matches(name)
        });
        (found.len(), count)
    };
    let (names, once) = comparisons(&["*"]);
    assert_eq!(once, names, "each name that may be shown is compared once");
    assert_eq!(comparisons(&["*"; 1_000]), (names, names));
    assert_eq!(comparisons(&["maxclients"; 1_000]), (1, 0));
    assert_eq!(comparisons(&["no-such-name"; 1_000]), (0, 0));
    assert_eq!(comparisons(&["no-such-*"; 10]), (0, 10 * names));
}

#[test]
fn matching_lists_names_once_and_hidden_ones_only_in_full() {
    let config = Config::default();
    let names = |patterns: &[&str]| {
        let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
        let found = config.matching(&patterns).into_iter();
        found.map(|(name, _)| name.into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["maxclients", "MAXCL*"]), ["maxclients"]);
    assert_eq!(names(&["*lua*"]), ["lua-time-limit"]);
    assert_eq!(names(&["busy*", "lua*"]), ["busy-reply-threshold", "lua-time-limit"]);
    assert_eq!(names(&["use-exit-on-pani?"]), Vec::<&str>::new());
    assert_eq!(names(&["use-exit-on-panic"]), ["use-exit-on-panic"]);
    assert_eq!(names(&["nosuch"]), Vec::<&str>::new());
    assert!(names(&["*"]).len() > 237);
    assert_eq!(names(&["MaxClients", "maxclients", "max*s"])[0], "MaxClients");
    assert_eq!(names(&["maxcl*", "MAXCLIENTS"]), ["maxclients"]);
    assert_eq!(
        names(&["*", "USE-exit-on-panic"])
            .iter()
            .filter(|name| **name == "USE-exit-on-panic")
            .count(),
        1
    );
    assert_eq!(names(&[&"x".repeat(100_000)]), Vec::<&str>::new());
}

#[test]
fn a_refused_apply_rolls_everything_back() {
    let config = Config::default();
    let mut calls = Vec::new();
    let pairs: [(&[u8], &[u8]); 4] =
        [(b"maxclients", b"5"), (b"hz", b"10"), (b"timeout", b"9"), (b"port", b"1")];
    let result = config.set(&pairs, Requester::Remote, &mut |directive| {
        calls.push((directive, config.int(directive)));
        match directive {
            Directive::Port => Err("Unable to listen on this port. Check server logs.".to_owned()),
            _ => Ok(()),
        }
    });
    let text = "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on \
                this port. Check server logs.";
    assert_eq!(result.map(drop), Err(text.to_owned()));
    // hz did not change, so nobody is notified.
    let (clients, timeout, port) = (Directive::MaxClients, Directive::Timeout, Directive::Port);
    let expected = [(clients, 5), (timeout, 9), (port, 1), (clients, 10_000), (timeout, 0)];
    assert_eq!(calls, expected);
    assert_eq!(config.int(Directive::Port), 6379);
}

#[test]
fn what_was_set_can_be_put_back_unless_it_was_set_again() {
    let config = Config::default();
    let pairs: [(&[u8], &[u8]); 2] = [(b"maxclients", b"5"), (b"timeout", b"9")];
    let undo = config.set(&pairs, Requester::Remote, &mut |_| Ok(())).unwrap();
    set(&config, &[("timeout", "7")]).unwrap();
    let mut calls = Vec::new();
    config.undo(undo, &mut |directive| {
        calls.push((directive, config.int(directive)));
        Ok(())
    });
    assert_eq!(calls, [(Directive::MaxClients, 10_000)]);
    assert_eq!(config.int(Directive::Timeout), 7);
    assert!(config.check_all(&[(b"maxclients", b"x")], Requester::Remote).is_err());
    assert!(config.check_all(&[(b"maxclients", b"6")], Requester::Remote).is_ok());
    assert_eq!(config.int(Directive::MaxClients), 10_000);
}

#[test]
fn protected_directives_follow_who_asks() {
    let dir = TempDir::new();
    let path = dir.0.display().to_string();
    let ask = |config: &Config, requester| {
        config.set(&[(b"dir", path.as_bytes())], requester, &mut |_| Ok(())).is_ok()
    };
    let local = start(&["--enable-protected-configs", "local"]).unwrap();
    assert_eq!((ask(&local, Requester::Local), ask(&local, Requester::Remote)), (true, false));
    let yes = start(&["--enable-protected-configs", "yes"]).unwrap();
    assert!(ask(&yes, Requester::Remote));
    assert_eq!(shown(&yes, "dir"), path);
    assert!(!ask(&Config::default(), Requester::Local));
}

#[test]
fn rewrite_changes_only_what_differs() {
    let dir = TempDir::new();
    let text = "# top\nmaxclients   00100\n";
    assert!(start_file(&dir.write("r.conf", text)).is_err(), "leading zeros");
    let text = "# top\n  maxclients   100  \n\nsave 900 1\n# mid\nsave 300 10\nMaxMemory 1048576\n\
                slave-priority 5\ntimeout 3";
    let path = dir.write("r.conf", text);
    let config = start(&[path.as_os_str().to_owned(), "--hz".into(), "20".into()]).unwrap();
    set(&config, &[("timeout", "4"), ("save", "60 1 30 2"), ("replica-priority", "6")]).unwrap();
    set(&config, &[("requirepass", "a \"b\n"), ("proto-max-bulk-len", "2mb")]).unwrap();
    set(&config, &[("notify-keyspace-events", "KEAn"), ("latency-tracking-info-percentiles", "")])
        .unwrap();
    config.rewrite(None).unwrap();
    let expected = "# top\n  maxclients   100  \n\nsave 60 1\nsave 30 2\n# mid\nMaxMemory 1048576\n\
                    replica-priority 6\ntimeout 4\n# Generated by CONFIG REWRITE\n\
                    proto-max-bulk-len 2mb\nlatency-tracking-info-percentiles \"\"\n\
                    notify-keyspace-events AKEn\nrequirepass \"a \\\"b\\n\"\nhz 20\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let again = start_file(&path).unwrap();
    for directive in Directive::ALL {
        assert_eq!(again.load(*directive), config.load(*directive), "{directive:?}");
    }
    // Nothing to do: not touched. A second append finds the signature.
    again.rewrite(None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    set(&again, &[("tcp-keepalive", "1")]).unwrap();
    again.rewrite(None).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{expected}tcp-keepalive 1\n"));
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn rewrite_outlives_includes() {
    let dir = TempDir::new();
    dir.write("more.conf", "maxclients 5\nsave 900 1\ntimeout 1\n");
    let include = format!("include {}/more.conf\n", dir.0.display());
    let path = dir.write("r.conf", &format!("timeout 2\nmaxclients 6\n{include}"));
    let config = start_file(&path).unwrap();
    let changes = [("maxclients", "7"), ("save", "60 1"), ("timeout", "0")];
    set(&config, &changes).unwrap();
    config.rewrite(None).unwrap();
    let again = start_file(&path).unwrap();
    for (name, value) in changes {
        assert_eq!(shown(&again, name), value);
    }
}

#[test]
fn rewrite_keeps_mode_and_links_and_reports_failures() {
    let config = Config::default();
    let text = "ERR The server is running without a config file";
    assert_eq!(config.rewrite(None), Err(text.to_owned()));
    let dir = TempDir::new();
    let real = dir.write("real.conf", "port 1\n");
    let link = dir.0.join("link.conf");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let config = start_file(&link).unwrap();
        set(&config, &[("port", "2")]).unwrap();
        config.rewrite(None).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&real).unwrap(), "port 2\n");
        // A file that no longer loads is left alone.
        fs::write(&real, "nonsense 1\n").unwrap();
        let error = config.rewrite(None).unwrap_err();
        assert!(error.starts_with("ERR Rewriting config file: "), "{error}");
        assert_eq!(fs::read_to_string(&real).unwrap(), "nonsense 1\n");
        // One that is gone is made anew.
        fs::remove_file(&real).unwrap();
        fs::remove_file(&link).unwrap();
        config.rewrite(None).unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "# Generated by CONFIG REWRITE\nport 2\n");
    }
}

#[test]
fn secrets_are_never_shown_in_errors() {
    for directive in Directive::ALL.iter().filter(|directive| directive.spec().is_secret) {
        let args = [format!("--{}", directive.name()), "hunter2".to_owned(), "x".to_owned()];
        let error = start(&args).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert!(Directive::RequirePass.spec().is_secret);
}
