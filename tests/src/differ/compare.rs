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
        return is_same_text(ours, theirs);
    }
    let name = upper(words, 0);
    match name.as_str() {
        "TTL" | "EXPIRETIME" => is_near(russet, peer, TTL_APART_MS / 1_000),
        "PTTL" | "PEXPIRETIME" => is_near(russet, peer, TTL_APART_MS),
        // Each server has its own hash order.
        "KEYS" => sorted(russet) == sorted(peer),
        "SCAN" => is_same_page(words, russet, peer),
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
        "COMMAND" => has_odd_count(words) && russet.is_error(),
        "PUBSUB" if upper(words, 1).ends_with("CHANNELS") => sorted(russet) == sorted(peer),
        _ => false,
    }
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

/// DIFFERS: an error that quotes the request shows bytes that are no text as U+FFFD, and what
/// stands behind a NUL as well; peers send the bytes as they are and end at the NUL.
fn is_same_text(russet: &[u8], peer: &[u8]) -> bool {
    let until_nul = |text: &[u8]| -> String {
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    };
    let is_plain = |text: &[u8]| text.iter().all(u8::is_ascii) && !text.contains(&0);
    !(is_plain(russet) && is_plain(peer)) && until_nul(russet) == until_nul(peer)
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
/// embeds a string by the size of the whole entry, key included; Russet and Redis by its own.
pub fn is_same_encoding(russet: &Reply, peer: &Reply) -> bool {
    let pair = (russet.text().unwrap_or_default(), peer.text().unwrap_or_default());
    let may_differ: [(&[u8], &[u8]); 3] =
        [(b"listpack", b"quicklist"), (b"raw", b"embstr"), (b"embstr", b"raw")];
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
