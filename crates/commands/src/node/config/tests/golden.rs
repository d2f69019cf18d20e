//! Replies and defaults, proved on a real Valkey 9.1.2.

use russet_base::text::split_args;

use super::*;

/// DIFFERS: what we set otherwise on purpose.
const OTHER_DEFAULTS: [(&str, &str); 2] = [("bind", "127.0.0.1"), ("syslog-ident", "russet")];

#[test]
fn replies_are_those_of_valkey() {
    let config = Config::default();
    let mut lines = include_str!("replies.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    while let (Some(request), Some(reply)) = (lines.next(), lines.next()) {
        let expected = reply.strip_prefix('>').expect(reply).trim_start();
        let args = split_args(request.as_bytes()).unwrap();
        let args: Vec<&str> = args.iter().map(|arg| str::from_utf8(arg).unwrap()).collect();
        let found = match args.as_slice() {
            ["get", name] => shown(&config, name),
            ["set", pairs @ ..] => {
                let pairs: Vec<(&str, &str)> =
                    pairs.chunks(2).map(|pair| (pair[0], pair[1])).collect();
                set(&config, &pairs).err().unwrap_or_else(|| "OK".to_owned())
            }
            _ => panic!("{request}"),
        };
        assert_eq!(found, expected, "CONFIG {request}");
        count += 1;
    }
    assert!(count > 150);
}

#[test]
fn defaults_are_those_of_valkey() {
    let config = Config::default();
    for line in include_str!("defaults.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let other = OTHER_DEFAULTS.iter().find(|(known, _)| *known == name);
        let value = other.map_or(value, |(_, value)| value);
        assert_eq!(shown(&config, name), value, "{name}");
    }
    assert_eq!(shown(&config, "save"), "3600 1 300 100 60 10000");
    assert_eq!(shown(&config, "port"), "6379");
}

#[test]
fn what_is_missing_is_refused() {
    let config = Config::default();
    for (name, value) in
        [("tls-replication", "yes"), ("activedefrag", "yes"), ("min-replicas-to-write", "1")]
    {
        let text = format!(
            "ERR CONFIG SET failed (possibly related to argument '{name}') - {name} '{value}' is \
             not supported by this version of Russet"
        );
        assert_eq!(set(&config, &[(name, value)]), Err(text));
    }
    let values = [("appendonly", "no"), ("maxmemory", "1gb"), ("maxmemory-policy", "allkeys-lru")];
    assert_eq!(set(&config, &values), Ok(()));
}
