//! Which directives do something: the table's word is held against the code and the manual, and
//! what the server says of it against the table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of directives that product code reads. INFO, which only shows them, and tests don't
/// count, nor does the table itself.
fn read_by_code() -> BTreeSet<String> {
    let mut files = Vec::new();
    for dir in fs::read_dir(repository().join("crates")).unwrap().flatten() {
        sources(&dir.path().join("src"), &mut files);
    }
    let is_product = |path: &&PathBuf| {
        let path = path.to_string_lossy().into_owned();
        // They say what a directive may hold.
        let described = ["/config/table/", "/config/directive.rs", "/config/value.rs"];
        let shown = ["/server/info/", "/server/src/metrics/"];
        let skipped = [&described[..], &shown, &["tests"]].concat();
        !skipped.iter().any(|part| path.contains(part))
    };
    let mut names = BTreeSet::new();
    for path in files.iter().filter(is_product) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for rest in code.split("Directive::").skip(1) {
            names.insert(rest.chars().take_while(char::is_ascii_alphanumeric).collect());
        }
    }
    names
}

/// Some hundred directives were accepted and read by nobody, and nothing said so.
#[test]
fn a_directive_is_marked_without_effect_if_nobody_reads_it() {
    let read = read_by_code();
    let shown_by_info = ["LatencyTrackingInfoPercentiles", "AvailabilityZone"];
    for directive in Directive::ALL {
        let spec = directive.spec();
        let name = format!("{directive:?}");
        let is_read = read.contains(&name) || shown_by_info.contains(&name.as_str());
        match spec.effect {
            Effect::None => assert!(!is_read, "{name} is read, but marked without effect"),
            // A single value that says what is so anyway need not be read.
            Effect::Full if !spec.supported.is_empty() => {}
            Effect::Full => assert!(is_read, "{name} is read by nobody: it has no effect"),
            Effect::Promise { .. } => {}
        }
    }
}

/// The names in backquotes between a heading of the manual and the next one.
fn documented(heading: &str) -> BTreeSet<String> {
    let path = repository().join("docs/configuration.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}

#[test]
fn the_manual_lists_every_directive_without_effect() {
    let marked = |is: fn(&Effect) -> bool| -> BTreeSet<String> {
        let of = Directive::ALL.iter().filter(|directive| is(&directive.spec().effect));
        of.map(|directive| directive.name().to_owned()).collect()
    };
    let mut none = marked(|effect| *effect == Effect::None);
    none.extend(table::RETIRED.iter().map(|name| (*name).to_owned()));
    assert_eq!(documented("Directives without effect"), none);
    let promises = marked(|effect| matches!(effect, Effect::Promise { .. }));
    assert_eq!(documented("Promises that are not kept yet"), promises);
    let refused = Directive::ALL.iter().filter(|directive| !directive.spec().supported.is_empty());
    let mut refused: BTreeSet<String> = refused.map(|of| of.name().to_owned()).collect();
    refused.extend(table::MISSING.iter().map(|name| (*name).to_owned()));
    assert_eq!(documented("Values that are refused"), refused);
}

/// A directive that promises something which does not happen was accepted in silence.
#[test]
fn a_start_warns_of_promises_and_of_what_has_no_effect() {
    let warnings = |args: &[&str]| start(args).unwrap().start_warnings();
    assert_eq!(warnings(&[]), Vec::<String>::new());
    let kept = ["--save", "60 1", "--maxmemory", "1mb", "--maxmemory-policy", "allkeys-lru"];
    assert_eq!(warnings(&kept), Vec::<String>::new());
    let given = warnings(&["--shutdown-on-sigterm", "safe"]);
    assert_eq!(given.len(), 1, "{given:?}");
    assert!(given[0].contains("shutdown-on-sigterm 'safe' has no effect"));
    let options = ["--save", "", "--hz", "50", "--hz", "10", "--lua-replicate-commands", "yes"];
    let expected = "No effect in this version of Russet: hz, lua-replicate-commands";
    assert_eq!(warnings(&options), [expected]);
    let secret = warnings(&["--save", "", "--masterauth", "hidden"]);
    assert_eq!(secret, ["No effect in this version of Russet: masterauth"]);
}

/// The pass phrase of a key came to the log, with the remark that it has no effect.
#[test]
fn a_secret_is_in_no_warning() {
    let secrets = Directive::ALL.iter().filter(|directive| directive.spec().is_secret);
    let mut warned = 0;
    for directive in secrets {
        let config = start(&[&format!("--{}", directive.name()), "open-sesame"]).unwrap();
        let set = config.set_warning(*directive);
        let warnings: Vec<String> = config.start_warnings().into_iter().chain(set).collect();
        assert!(!warnings.iter().any(|line| line.contains("sesame")), "{warnings:?}");
        warned += warnings.len();
    }
    assert!(warned > 0);
}

#[test]
fn config_set_warns_once_for_each_directive() {
    let config = start(&["--save", "", "--dynamic-hz", "no"]).unwrap();
    assert_eq!(config.start_warnings().len(), 1);
    let warning = |directive| config.set_warning(directive);
    assert_eq!(warning(Directive::DynamicHz), None, "said at the start");
    assert_eq!(warning(Directive::Hz), Some("hz has no effect in this version of Russet".into()));
    assert_eq!(warning(Directive::Hz), None);
    assert_eq!(warning(Directive::Port), None);
    let sigterm = Directive::ShutdownOnSigterm;
    assert_eq!(warning(sigterm), None, "the default promises nothing");
    set(&config, &[("shutdown-on-sigterm", "safe")]).unwrap();
    assert!(warning(sigterm).is_some_and(|line| line.contains("replicas")));
    assert_eq!(warning(sigterm), None);
}

fn check(path: &Path) -> CheckReport {
    match Startup::parse(&["--check-config".into(), path.as_os_str().to_owned()]).unwrap() {
        Startup::Check(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_line_of_a_file_is_judged() {
    let dir = TempDir::new();
    dir.write("more.conf", "hz 50\nrequirepass open-sesame\nmasterauth open-sesame\n");
    let content = "# a comment\nport 7000\nappendonly yes\ninclude more.conf\n\nsave 60 1\n\
                   user default on >open-sesame\nport 70000\nbind 'a\nports 1\nappendonly no\n\
                   lua-replicate-commands yes\ntls-replication yes\nmaxmemory 1mb\n";
    let content = content.replace("more.conf", dir.0.join("more.conf").to_str().unwrap());
    let file = dir.write("redis.conf", &content);
    let report = check(&file);
    assert!(!report.is_accepted());
    let shown = report.to_string().replace(&format!("{}/", dir.0.display()), "");
    assert!(!shown.contains("sesame"), "{shown}");
    let expected = [
        "redis.conf:2: effective: port 7000",
        "redis.conf:3: without effect: appendonly yes (a later line replaces it)",
        "redis.conf:4: effective: include more.conf",
        "more.conf:1: without effect: hz 50",
        "more.conf:2: effective: requirepass",
        "more.conf:3: without effect: masterauth",
        "redis.conf:6: effective: save 60 1",
        "redis.conf:7: effective: user",
        "redis.conf:8: refused: port 70000 (port: bad value '70000'",
        "redis.conf:9: refused:  (unbalanced quotes)",
        "redis.conf:10: refused: ports (unknown directive 'ports', did you mean 'port'?)",
        "redis.conf:11: effective: appendonly no",
        "redis.conf:12: without effect: lua-replicate-commands",
        "redis.conf:13: refused: tls-replication yes (tls-replication 'yes' is not supported",
        "redis.conf:14: effective: maxmemory 1mb",
        "7 effective, 4 without effect, 4 refused",
    ];
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{shown}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
}

#[test]
fn a_file_without_directives_is_accepted() {
    let dir = TempDir::new();
    let report = check(&dir.write("empty.conf", "\n"));
    assert!(report.is_accepted());
    let shown = report.to_string();
    assert_eq!(shown, "0 effective, 0 without effect, 0 refused\n");
    assert!(Startup::parse(&["--check-config".into()]).is_err());
    assert!(Startup::parse(&["--check-config".into(), "/no/such/file".into()]).is_err());
}
