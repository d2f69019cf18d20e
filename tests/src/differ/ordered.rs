//! Calls whose outcome depends on an order or on chance, turned into calls for which both servers
//! must come to the same.
//!
//! For this some keys are kept apart: all members of a `lex` key have the same score, a `list1` is
//! a list without a NUL in it, and nothing is ever deleted from a `log` stream.

use russet_base::random::Random;

use super::values::{self, pick};

const LEX_KEYS: &[&[u8]] = &[b"lex1", b"lex2"];
const LIST_KEY: &[u8] = b"list1";
const LOG_KEYS: &[&[u8]] = &[b"log1", b"log2"];
/// More than any set of a plan holds.
const ALL_MEMBERS: &[u8] = b"100000";

/// Whether this key holds the same order on both sides.
pub fn is_ordered(key: &[u8]) -> bool {
    LEX_KEYS.contains(&key) || key == LIST_KEY
}

/// A sorted set whose members have one score, or, at times, a key of another type.
pub fn lex_key(random: &mut Random) -> Vec<u8> {
    if random.chance(0.05) { values::counter_key(random) } else { pick(random, LEX_KEYS) }
}

/// A call that adds to one of the keys that are kept apart.
pub fn making(random: &mut Random) -> Vec<Vec<u8>> {
    let count = 1 + random.index(4);
    match random.index(4) {
        0 => {
            let id = format!("{}-{}", random.index(40), random.index(4));
            vec![b"XADD".to_vec(), pick(random, LOG_KEYS), id.into(), b"f".to_vec(), text(random)]
        }
        1 => {
            let mut args = vec![b"RPUSH".to_vec(), LIST_KEY.to_vec()];
            args.extend((0..count).map(|_| text(random)));
            args
        }
        _ => {
            let mut args = vec![b"ZADD".to_vec(), pick(random, LEX_KEYS)];
            for _ in 0..count {
                args.push(b"0".to_vec());
                args.push(values::text(random));
            }
            args
        }
    }
}

/// A text without a NUL.
fn text(random: &mut Random) -> Vec<u8> {
    loop {
        let text = values::text(random);
        if !text.contains(&0) {
            return text;
        }
    }
}

/// Makes the outcome of a drawn call the same on both sides.
pub fn fix(random: &mut Random, args: &mut Vec<Vec<u8>>) {
    if args[0].to_ascii_uppercase().starts_with(b"Z") {
        begin_at_first(args);
    }
    match args[0].to_ascii_uppercase().as_slice() {
        b"SPOP" => take_all(args),
        b"SORT" | b"SORT_RO" if args.len() > 1 => sort(random, args),
        b"XREAD" => read_last(random, args),
        b"ZRANGE" | b"ZRANGESTORE" if find(args, "BYLEX").is_some() => {
            let keys = if args[0].len() == b"ZRANGE".len() { 1 } else { 2 };
            for arg in args.iter_mut().skip(1).take(keys) {
                *arg = pick(random, LEX_KEYS);
            }
        }
        _ => {}
    }
}

fn find(args: &[Vec<u8>], name: &str) -> Option<usize> {
    args.iter().skip(2).position(|arg| arg.eq_ignore_ascii_case(name.as_bytes())).map(|at| at + 2)
}

/// SPOP that leaves members behind leaves others on each side.
fn take_all(args: &mut Vec<Vec<u8>>) {
    let count = args.get(2).map(|arg| String::from_utf8_lossy(arg).parse::<i64>());
    match count {
        None if args.len() == 2 => args.push(ALL_MEMBERS.to_vec()),
        Some(Ok(count)) if count > 0 => args[2] = ALL_MEMBERS.to_vec(),
        _ => {}
    }
}

/// Elements that are equal by a text from elsewhere come in any order, so that only these texts are
/// asked for; a sort that is left out keeps the order of those keys that have one.
fn sort(random: &mut Random, args: &mut Vec<Vec<u8>>) {
    let by = find(args, "BY").and_then(|at| args.get(at + 1)).cloned();
    let is_alpha = find(args, "ALPHA").is_some();
    match by {
        Some(pattern) if pattern.contains(&b'*') && is_alpha => {
            let mut only = vec![args[0].clone(), args[1].clone(), b"BY".to_vec()];
            only.extend([pattern.clone(), b"GET".to_vec(), pattern, b"ALPHA".to_vec()]);
            if let Some(at) = find(args, "LIMIT") {
                only.extend(args.iter().skip(at).take(3).cloned());
            }
            if find(args, "DESC").is_some() {
                only.push(b"DESC".to_vec());
            }
            *args = only;
        }
        Some(pattern) if !pattern.contains(&b'*') && random.chance(0.7) => {
            args[1] = if random.chance(0.5) { LIST_KEY.to_vec() } else { pick(random, LEX_KEYS) };
        }
        // What is stored or cut off is not seen, and may have a NUL.
        _ if is_alpha
            && ["STORE", "LIMIT", "GET"].iter().any(|name| find(args, name).is_some()) =>
        {
            args[1] = LIST_KEY.to_vec();
        }
        _ => {}
    }
}

/// LIMIT with an offset that is not negative: what a peer makes of one depends on its encoding,
/// which is another after a SORT. The wire files have these.
fn begin_at_first(args: &mut [Vec<u8>]) {
    let at = args.iter().position(|arg| arg.eq_ignore_ascii_case(b"LIMIT"));
    let offset = at.and_then(|at| args.get_mut(at + 1));
    if let Some(offset) = offset.filter(|offset| offset.starts_with(b"-")) {
        *offset = b"0".to_vec();
    }
}

/// XREAD with `+` where the last entry is there. DIFFERS: where it was deleted, Russet and Redis
/// tell the last that is left, Valkey none.
fn read_last(random: &mut Random, args: &mut [Vec<u8>]) {
    let Some(at) = args.iter().position(|arg| arg.eq_ignore_ascii_case(b"STREAMS")) else {
        return;
    };
    let count = (args.len() - at - 1) / 2;
    for index in at + 1..at + 1 + count {
        if args[index + count] == b"+" {
            args[index] = pick(random, LOG_KEYS);
        }
    }
    // With an argument too many or too few an ID stands where a key should.
    let is_odd = (args.len() - at - 1) % 2 == 1;
    if is_odd {
        args.iter_mut().skip(at).filter(|arg| *arg == b"+").for_each(|arg| *arg = b"0".to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> String {
        let mut args: Vec<Vec<u8>> = text.split(' ').map(|arg| arg.into()).collect();
        fix(&mut Random::from_seed(1), &mut args);
        let args: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
        args.join(" ")
    }

    #[test]
    fn members_are_taken_all_or_none() {
        assert_eq!(fixed("SPOP k1"), "SPOP k1 100000");
        assert_eq!(fixed("SPOP k1 3"), "SPOP k1 100000");
        assert_eq!(fixed("SPOP k1 -1"), "SPOP k1 -1");
    }

    #[test]
    fn a_sort_by_texts_from_elsewhere_asks_for_these() {
        let args = "SORT k1 BY k* LIMIT 0 2 GET # ALPHA STORE k2";
        assert_eq!(fixed(args), "SORT k1 BY k* GET k* ALPHA LIMIT 0 2");
    }

    #[test]
    fn the_last_entry_is_read_where_it_is_there() {
        assert!(fixed("XREAD STREAMS k1 k2 0 +").starts_with("XREAD STREAMS k1 log"));
        assert!(fixed("ZRANGESTORE k1 k2 - + BYLEX").starts_with("ZRANGESTORE lex"));
    }
}
