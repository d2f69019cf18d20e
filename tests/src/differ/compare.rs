//! When two replies count as the same. Everything that may differ between Russet and a peer, with
//! its reason, is here.

use crate::client::Reply;

/// How far two readings of one time to live may be apart: one server is asked after the other.
const TTL_APART_MS: i64 = 20_000;

/// Whether both servers answered the same to this call.
pub fn is_same(words: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    if russet == peer {
        return true;
    }
    if let (Reply::Error(ours), Reply::Error(theirs)) = (russet, peer) {
        return is_same_text(ours, theirs) || ours == &as_redis(theirs);
    }
    let name = upper(words, 0);
    match name.as_str() {
        "TTL" | "EXPIRETIME" => is_near(russet, peer, TTL_APART_MS / 1_000),
        "PTTL" | "PEXPIRETIME" => is_near(russet, peer, TTL_APART_MS),
        // Each server has its own hash order.
        "KEYS" | "HKEYS" | "HVALS" => sorted(russet) == sorted(peer),
        "SCAN" => is_same_page(words, russet, peer),
        "HGETALL" => pairs(russet).is_some() && pairs(russet) == pairs(peer),
        "HSCAN" => is_same_page(&words[1..], russet, peer),
        "HRANDFIELD" => is_same_choice(russet, peer),
        "HTTL" | "HEXPIRETIME" => are_near(russet, peer, TTL_APART_MS / 1_000),
        "HPTTL" | "HPEXPIRETIME" => are_near(russet, peer, TTL_APART_MS),
        "SSCAN" | "ZSCAN" => is_same_page(&words[1..], russet, peer),
        "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" => sorted(russet) == sorted(peer),
        "SRANDMEMBER" => is_same_sample(russet, peer),
        "ZRANDMEMBER" => match (russet, peer) {
            (Reply::Array(ours), Reply::Array(theirs)) => ours.len() == theirs.len(),
            _ => is_same_sample(russet, peer),
        },
        "RANDOMKEY" => is_nothing(russet) == is_nothing(peer),
        "OBJECT" => is_same_object(&upper(words, 1), russet, peer),
        // Sizes of our own structures; present or absent is the same.
        "MEMORY" => matches!((russet, peer), (Reply::Int(_), Reply::Int(_))),
        "XPENDING" => is_same_pending(russet, peer),
        "XINFO" => is_same_but_moments(russet, peer),
        // DIFFERS: `+` is the last entry that is there, as in Redis; Valkey looks behind the last
        // ID that was given out.
        "XREAD" => words.iter().any(|word| word == b"+"),
        "COMMAND" => has_odd_count(words) && russet.is_error(),
        "SORT" | "SORT_RO" => is_same_sort(words, russet, peer),
        "PUBSUB" if upper(words, 1).ends_with("CHANNELS") => sorted(russet) == sorted(peer),
        _ => false,
    }
}

/// DIFFERS: where an error names the server, it says Redis, as scripts expect to read.
fn as_redis(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text).replace("Valkey", "Redis").into_bytes()
}

/// A reply to EXEC: each part by the rules of the call that was queued.
pub fn is_same_exec(queued: &[Vec<Vec<u8>>], russet: &Reply, peer: &Reply) -> bool {
    match (russet, peer) {
        (Reply::Array(ours), Reply::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours.len() == queued.len()
                && queued
                    .iter()
                    .zip(ours.iter().zip(theirs))
                    .all(|(words, (a, b))| is_same(words, a, b))
        }
        _ => russet == peer,
    }
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
fn is_same_but_moments(russet: &Reply, peer: &Reply) -> bool {
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

fn upper(words: &[Vec<u8>], at: usize) -> String {
    words.get(at).map_or_else(String::new, |word| String::from_utf8_lossy(word).to_uppercase())
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
fn has_odd_count(words: &[Vec<u8>]) -> bool {
    let is_counted = ["LMPOP", "BLMPOP", "MSETEX", "SINTERCARD", "ZMPOP", "BZMPOP", "ZINTERCARD"];
    let is_counted = is_counted.contains(&upper(words, 2).as_str())
        || ["ZUNION", "ZINTER", "ZDIFF"].iter().any(|name| upper(words, 2).starts_with(name));
    is_counted
        && words[3..].iter().take(2).any(|word| {
            let text = String::from_utf8_lossy(word);
            text.parse::<i64>().map_or(true, |number| number.to_string() != text)
        })
}

/// Cursors are each server's own affair; where both pages are the whole keyspace they must agree.
fn is_same_page(words: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    let (Reply::Array(ours), Reply::Array(theirs)) = (russet, peer) else { return false };
    let ([our_cursor, our_keys], [their_cursor, their_keys]) = (&ours[..], &theirs[..]) else {
        return false;
    };
    let is_whole = words.get(1).is_some_and(|cursor| cursor == b"0")
        && our_cursor == their_cursor
        && our_cursor.text() == Some(b"0");
    !is_whole || sorted(our_keys) == sorted(their_keys)
}

/// The order of a set without a sort is each server's own affair, and so is that of elements whose
/// texts to order by are equal. With LIMIT it decides which of them are shown. DIFFERS: peers
/// compare texts up to a NUL, so that more of them are equal.
fn is_same_sort(words: &[Vec<u8>], russet: &Reply, peer: &Reply) -> bool {
    let has = |name: &str| (2..words.len()).any(|at| upper(words, at) == name);
    let (Reply::Array(ours), Reply::Array(theirs)) = (russet, peer) else { return false };
    let is_part = has("LIMIT") && ours.len() == theirs.len();
    let has_nul = ours.iter().any(|item| item.text().is_some_and(|text| text.contains(&0)));
    (has("BY") || (has("ALPHA") && has_nul)) && (is_part || sorted(russet) == sorted(peer))
}

fn is_same_object(what: &str, russet: &Reply, peer: &Reply) -> bool {
    match (what, russet, peer) {
        ("IDLETIME", Reply::Int(a), Reply::Int(b)) => a.abs_diff(*b) <= 20,
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

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn bulks(texts: &[&str]) -> Reply {
        Reply::Array(texts.iter().map(|text| Reply::Bulk(text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn order_matters_except_where_there_is_none() {
        let (a, b) = (bulks(&["x", "y"]), bulks(&["y", "x"]));
        assert!(is_same(&words("KEYS *"), &a, &b));
        assert!(!is_same(&words("LRANGE k 0 -1"), &a, &b));
        assert!(!is_same(&words("KEYS *"), &a, &bulks(&["x"])));
    }

    #[test]
    fn a_time_to_live_may_be_near_but_not_missing() {
        assert!(is_same(&words("TTL k"), &Reply::Int(100), &Reply::Int(99)));
        assert!(!is_same(&words("TTL k"), &Reply::Int(100), &Reply::Int(-1)));
        assert!(!is_same(&words("TTL k"), &Reply::Int(100), &Reply::Int(50)));
    }

    #[test]
    fn the_parts_of_exec_go_by_the_queued_calls() {
        let queued = [words("KEYS *"), words("LRANGE k 0 -1")];
        let (a, b) = (bulks(&["x", "y"]), bulks(&["y", "x"]));
        let both =
            |first: &Reply, second: &Reply| Reply::Array(vec![first.clone(), second.clone()]);
        assert!(is_same_exec(&queued, &both(&a, &a), &both(&b, &a)));
        assert!(!is_same_exec(&queued, &both(&a, &a), &both(&a, &b)));
    }
}
