//! When two replies count as the same. Everything that may differ between Russet and a peer, with
//! its reason, is here.

use std::time::Instant;

use super::ordered::is_ordered;
use crate::client::Reply;

/// A server may take the time once for a whole batch of calls.
const CLOCK_APART_MS: i64 = 200;
/// And tells seconds rounded.
const SECONDS_APART: i64 = 1;

/// How two sets of replies of one plan are compared.
pub struct Rules {
    started: Instant,
}

impl Rules {
    /// From the moment before the first call.
    pub fn from_now() -> Rules {
        Rules { started: Instant::now() }
    }

    /// How far two readings of one deadline may be apart: one server is asked after the other, but
    /// both were asked since the plan began.
    fn apart_ms(&self) -> i64 {
        self.started.elapsed().as_millis() as i64 + CLOCK_APART_MS
    }

    fn apart_seconds(&self) -> i64 {
        self.apart_ms() / 1_000 + SECONDS_APART
    }

    /// Whether both servers answered the same to this call.
    pub fn is_same(&self, args: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
        match upper(args, 0).as_str() {
            _ if is_same(args, russet, peer) => true,
            "TTL" | "EXPIRETIME" => is_near(russet, peer, self.apart_seconds()),
            "PTTL" | "PEXPIRETIME" => is_near(russet, peer, self.apart_ms()),
            "HTTL" | "HEXPIRETIME" => are_near(russet, peer, self.apart_seconds()),
            "HPTTL" | "HPEXPIRETIME" => are_near(russet, peer, self.apart_ms()),
            "OBJECT" if upper(args, 1) == "IDLETIME" => {
                let pair = (russet, peer);
                matches!(pair, (Reply::Int(a), Reply::Int(b)) if
                    a.abs_diff(*b) <= self.apart_seconds() as u64)
            }
            _ => false,
        }
    }

    /// A reply to EXEC: each part by the rules of the call that was queued.
    pub fn is_same_exec(&self, queued: &[Vec<Vec<u8>>], russet: &Reply, peer: &Reply) -> bool {
        match (russet, peer) {
            (Reply::Array(ours), Reply::Array(theirs)) => {
                ours.len() == theirs.len()
                    && ours.len() == queued.len()
                    && queued
                        .iter()
                        .zip(ours.iter().zip(theirs))
                        .all(|(args, (a, b))| self.is_same(args, a, b))
            }
            _ => russet == peer,
        }
    }
}

/// Whether both answers are the same, whenever they were given.
fn is_same(args: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    if russet == peer {
        return true;
    }
    if let (Reply::Error(ours), Reply::Error(theirs)) = (russet, peer) {
        let quotes_nul = args.iter().any(|arg| arg.contains(&0));
        return is_same_text(ours, theirs)
            || ours == &as_redis(theirs)
            // A script sees the text up to the NUL.
            || (quotes_nul && theirs.starts_with(ours));
    }
    let name = upper(args, 0);
    match name.as_str() {
        // Each server has its own hash order.
        "KEYS" | "HKEYS" | "HVALS" => sorted(russet) == sorted(peer),
        "SCAN" => is_same_page(args, russet, peer),
        "HGETALL" => pairs(russet).is_some() && pairs(russet) == pairs(peer),
        "HSCAN" => is_same_page(&args[1..], russet, peer),
        "HRANDFIELD" => is_same_choice(russet, peer),
        // A peer writes a score by how it stores the set, and SORT changes that.
        "ZSCAN" if !args.iter().any(|arg| arg.eq_ignore_ascii_case(b"NOSCORES")) => {
            is_same_page(&args[1..], &with_scores(russet), &with_scores(peer))
        }
        "SSCAN" | "ZSCAN" => is_same_page(&args[1..], russet, peer),
        "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "SPOP" => sorted(russet) == sorted(peer),
        // Payloads of one value differ by version and compression; `rdb.rs` exchanges them.
        "DUMP" => matches!((russet, peer), (Reply::Bulk(_), Reply::Bulk(_))),
        "SRANDMEMBER" => is_same_sample(russet, peer),
        "ZRANDMEMBER" => match (russet, peer) {
            (Reply::Array(ours), Reply::Array(theirs)) => ours.len() == theirs.len(),
            _ => is_same_sample(russet, peer),
        },
        "RANDOMKEY" => is_nothing(russet) == is_nothing(peer),
        "OBJECT" => is_same_object(&upper(args, 1), russet, peer),
        // Sizes of our own structures; present or absent is the same.
        // Valkey also tells the size of a key whose time is over.
        "MEMORY" => {
            let is_none = matches!(russet, Reply::NullBulk | Reply::Null);
            matches!(peer, Reply::Int(_)) && (is_none || matches!(russet, Reply::Int(_)))
        }
        "XPENDING" => is_same_pending(russet, peer),
        "XINFO" => is_same_but_moments(russet, peer),
        "COMMAND" => has_odd_count(args) && russet.is_error(),
        "SORT" | "SORT_RO" => is_same_sort(args, russet, peer),
        "CONFIG" if upper(args, 1) == "GET" => {
            pairs(russet).is_some() && pairs(russet) == pairs(peer)
        }
        "CLIENT" => is_same_client(&upper(args, 1), russet, peer),
        "PUBSUB" if upper(args, 1).ends_with("CHANNELS") => sorted(russet) == sorted(peer),
        _ => false,
    }
}

/// DIFFERS: where an error names the server, it says Redis, as scripts expect to read.
fn as_redis(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text).replace("Valkey", "Redis").into_bytes()
}

/// DIFFERS: an error that quotes the request shows it to its end; peers end at a NUL.
fn is_same_text(russet: &[u8], peer: &[u8]) -> bool {
    fn until_nul(text: &[u8]) -> &[u8] {
        text.split(|byte| *byte == 0).next().unwrap_or_default()
    }
    // Some go on behind the word that was cut.
    let is_cut = russet.contains(&0) && until_nul(peer).starts_with(until_nul(russet));
    is_cut || (russet.contains(&0) && until_nul(russet) == until_nul(peer))
}

/// The list of XPENDING: for how long each entry has been idle does not count.
fn is_same_pending(russet: &Reply, peer: &Reply) -> bool {
    let (Reply::Array(ours), Reply::Array(theirs)) = (russet, peer) else { return false };
    let is_same_entry = |pair: (&Reply, &Reply)| match pair {
        (Reply::Array(a), Reply::Array(b)) if a.len() == 4 && b.len() == 4 => {
            (&a[0], &a[1], &a[3]) == (&b[0], &b[1], &b[3])
        }
        (a, b) => a == b,
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same_entry)
}

/// XINFO STREAM FULL tells when things happened. DIFFERS: a block whose entries are all gone is
/// gone; peers may keep it as long as its last entry was deleted by name.
pub fn is_same_but_moments(russet: &Reply, peer: &Reply) -> bool {
    const MOMENT_MS_MIN: i64 = 1_000_000_000_000;
    match (russet, peer) {
        (Reply::Array(ours), Reply::Array(theirs)) => {
            let is_emptied = ours.get(1) == Some(&Reply::Int(0));
            let is_block_count = |at: usize| is_emptied && (at == 3 || at == 5);
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .enumerate()
                    .all(|(at, (a, b))| is_block_count(at) || is_same_but_moments(a, b))
        }
        (Reply::Int(a), Reply::Int(b)) => a == b || *a.min(b) > MOMENT_MS_MIN,
        _ => russet == peer,
    }
}

fn upper(args: &[Vec<u8>], at: usize) -> String {
    args.get(at).map_or_else(String::new, |arg| String::from_utf8_lossy(arg).to_uppercase())
}

fn is_near(a: &Reply, b: &Reply, apart: i64) -> bool {
    match (a, b) {
        (Reply::Int(a), Reply::Int(b)) => *a > 0 && *b > 0 && a.abs_diff(*b) <= apart as u64,
        _ => false,
    }
}

fn is_nothing(reply: &Reply) -> bool {
    matches!(reply, Reply::Null | Reply::NullBulk | Reply::NullArray)
}

/// As `is_near` for each of several, where -1 and -2 are answers, too.
fn are_near(a: &Reply, b: &Reply, apart: i64) -> bool {
    let (Reply::Array(a), Reply::Array(b)) = (a, b) else { return false };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || is_near(a, b, apart))
}

/// Something, and as much of it: which it is, is drawn by each server for itself.
fn is_same_choice(russet: &Reply, peer: &Reply) -> bool {
    match (russet, peer) {
        (Reply::Array(ours), Reply::Array(theirs)) => ours.len() == theirs.len(),
        _ => is_nothing(russet) == is_nothing(peer) && !russet.is_error() && !peer.is_error(),
    }
}

/// The pairs of a map in an order of their own.
fn pairs(reply: &Reply) -> Option<Vec<Vec<Vec<u8>>>> {
    let texts = |items: &[Reply]| -> Option<Vec<Vec<u8>>> {
        items.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect()
    };
    let mut pairs: Vec<Vec<Vec<u8>>> = match reply {
        Reply::Array(items) => items.chunks(2).map(texts).collect::<Option<_>>()?,
        Reply::Map(items) => items
            .iter()
            .map(|(name, value)| texts(&[name.clone(), value.clone()]))
            .collect::<Option<_>>()?,
        _ => return None,
    };
    pairs.sort();
    Some(pairs)
}

/// What was drawn is chance; how many were is not.
fn is_same_sample(russet: &Reply, peer: &Reply) -> bool {
    match (sorted(russet), sorted(peer)) {
        (Some(ours), Some(theirs)) => ours.len() == theirs.len(),
        (None, None) => is_nothing(russet) == is_nothing(peer),
        _ => false,
    }
}

/// The items of a flat reply in an order of their own.
fn sorted(reply: &Reply) -> Option<Vec<Vec<u8>>> {
    let (Reply::Array(items) | Reply::Set(items)) = reply else { return None };
    let mut texts: Vec<Vec<u8>> =
        items.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect::<Option<_>>()?;
    texts.sort();
    Some(texts)
}

/// DIFFERS: COMMAND GETKEYS refuses a number of keys that the command itself would refuse; peers
/// read the digits at its start.
fn has_odd_count(args: &[Vec<u8>]) -> bool {
    let is_counted = ["LMPOP", "BLMPOP", "MSETEX", "SINTERCARD", "ZMPOP", "BZMPOP", "ZINTERCARD"];
    let is_counted = is_counted.contains(&upper(args, 2).as_str())
        || ["ZUNION", "ZINTER", "ZDIFF"].iter().any(|name| upper(args, 2).starts_with(name));
    is_counted
        && args[3..].iter().take(2).any(|arg| {
            let text = String::from_utf8_lossy(arg);
            text.parse::<i64>().map_or(true, |number| number.to_string() != text)
        })
}

/// Cursors are each server's own affair; where both pages are the whole keyspace they must agree.
fn is_same_page(args: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    let (Reply::Array(ours), Reply::Array(theirs)) = (russet, peer) else { return false };
    let ([our_cursor, our_keys], [their_cursor, their_keys]) = (&ours[..], &theirs[..]) else {
        return false;
    };
    let is_whole = args.get(1).is_some_and(|cursor| cursor == b"0")
        && our_cursor == their_cursor
        && our_cursor.text() == Some(b"0");
    !is_whole || sorted(our_keys) == sorted(their_keys)
}

/// A page of a sorted set, its scores in their shortest form.
fn with_scores(page: &Reply) -> Reply {
    let mut page = page.clone();
    if let Reply::Array(parts) = &mut page
        && let Some(Reply::Array(items)) = parts.get_mut(1)
    {
        for score in items.iter_mut().skip(1).step_by(2) {
            let text = score.text().and_then(|text| std::str::from_utf8(text).ok());
            if let Some(number) = text.and_then(|text| text.parse::<f64>().ok()) {
                *score = Reply::Bulk(number.to_string().into_bytes());
            }
        }
    }
    page
}

/// A sort that is left out shows a set in each server's own order, and with LIMIT that decides what
/// is shown. DIFFERS: peers compare texts up to a NUL, so that more of them are equal.
fn is_same_sort(args: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    let at = |name: &str| (2..args.len()).find(|at| upper(args, *at) == name);
    let (Reply::Array(ours), Reply::Array(theirs)) = (russet, peer) else { return false };
    let is_left_out = at("BY").and_then(|at| args.get(at + 1)).is_some_and(|p| !p.contains(&b'*'));
    let has_nul = ours.iter().any(|item| item.text().is_some_and(|text| text.contains(&0)));
    let may_differ = (is_left_out && !is_ordered(&args[1])) || (at("ALPHA").is_some() && has_nul);
    let is_part = at("LIMIT").is_some() && ours.len() == theirs.len();
    may_differ && (is_part || sorted(russet) == sorted(peer))
}

/// What CLIENT INFO and LIST tell of a connection, but for addresses, numbers and sizes.
fn is_same_client(what: &str, russet: &Reply, peer: &Reply) -> bool {
    let text = |reply: &Reply| reply.text().map(|text| String::from_utf8_lossy(text).into_owned());
    match (what, text(russet), text(peer)) {
        ("INFO" | "LIST", Some(ours), Some(theirs)) => comparable(&ours) == comparable(&theirs),
        // Of a map or a set the order is each server's own.
        ("TRACKINGINFO", ..) => format!("{russet:?}").len() == format!("{peer:?}").len(),
        _ => false,
    }
}

/// Each line of CLIENT LIST: the names that both servers have, and the values that a plan decides.
/// DIFFERS: `cmd` is the last call that ran; peers also tell one that was refused or queued. That a
/// watched key was changed is found at EXEC; peers tell it at once, by the flag `d` and `watch=0`.
/// Valkey says `multi=0` of whoever once watched a key, and of a transaction that can't succeed.
fn comparable(text: &str) -> Vec<Vec<String>> {
    const DECIDED: &[&str] = &[
        "name", "capa", "db", "sub", "psub", "ssub", "user", "redir", "resp", "lib-name", "lib-ver",
    ];
    // Which thread serves it: only Redis 8 and Russet tell.
    const OURS: &str = "io-thread";
    let comparable_pair = |pair: &str| match pair.split_once('=') {
        Some((OURS, _)) => None,
        Some(("flags", flags)) => Some(flags.replace(['d', 'N'], "")),
        Some((name, _)) if !DECIDED.contains(&name) => Some(name.to_owned()),
        _ => Some(pair.to_owned()),
    };
    text.lines().map(|line| line.split(' ').filter_map(comparable_pair).collect()).collect()
}

fn is_same_object(what: &str, russet: &Reply, peer: &Reply) -> bool {
    match (what, russet, peer) {
        // Peers share small integers and say so by a huge count.
        ("REFCOUNT", Reply::Int(_), Reply::Int(_)) => true,
        ("ENCODING", ours, theirs) => is_same_encoding(ours, theirs),
        _ => false,
    }
}

/// DIFFERS: a list that shrinks is packed again by its total size; peers wait for one node. Valkey
/// embeds a string by the size of the whole entry, key included; Russet and Redis by its own. A
/// small sorted set that is read by SORT stays what it was; peers make a skiplist of it. A number
/// that a script sets is a number; peers keep its text.
pub fn is_same_encoding(russet: &Reply, peer: &Reply) -> bool {
    let pair = (russet.text().unwrap_or_default(), peer.text().unwrap_or_default());
    let may_differ: [(&[u8], &[u8]); 5] = [
        (b"listpack", b"quicklist"),
        (b"listpack", b"skiplist"),
        (b"raw", b"embstr"),
        (b"embstr", b"raw"),
        (b"int", b"embstr"),
    ];
    russet == peer || may_differ.contains(&pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|arg| arg.as_bytes().to_vec()).collect()
    }

    fn bulks(texts: &[&str]) -> Reply {
        Reply::Array(texts.iter().map(|text| Reply::Bulk(text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn order_matters_except_where_there_is_none() {
        let (a, b) = (bulks(&["x", "y"]), bulks(&["y", "x"]));
        assert!(Rules::from_now().is_same(&args("KEYS *"), &a, &b));
        assert!(!Rules::from_now().is_same(&args("LRANGE k 0 -1"), &a, &b));
        assert!(!Rules::from_now().is_same(&args("KEYS *"), &a, &bulks(&["x"])));
    }

    #[test]
    fn a_time_to_live_may_be_near_but_not_missing() {
        assert!(Rules::from_now().is_same(&args("TTL k"), &Reply::Int(100), &Reply::Int(99)));
        assert!(!Rules::from_now().is_same(&args("TTL k"), &Reply::Int(100), &Reply::Int(-1)));
        assert!(!Rules::from_now().is_same(&args("TTL k"), &Reply::Int(100), &Reply::Int(50)));
    }

    #[test]
    fn the_parts_of_exec_go_by_the_queued_calls() {
        let queued = [args("KEYS *"), args("LRANGE k 0 -1")];
        let (a, b) = (bulks(&["x", "y"]), bulks(&["y", "x"]));
        let both =
            |first: &Reply, second: &Reply| Reply::Array(vec![first.clone(), second.clone()]);
        assert!(Rules::from_now().is_same_exec(&queued, &both(&a, &a), &both(&b, &a)));
        assert!(!Rules::from_now().is_same_exec(&queued, &both(&a, &a), &both(&a, &b)));
    }
}
