//! After a call whose outcome is chance or a matter of time, both sides are brought to the same
//! data.

use std::time::Duration;

use super::dump::{DATABASES, call};
use super::plan::Step;
use super::run::{Side, Sides};
use super::values;
use crate::client::{REPLY_WAIT, Reply};

/// Longer than the time to live of what is to expire.
const EXPIRY_WAIT: Duration = Duration::from_millis(4);

/// Whether both answered alike; then the peer gets what Russet drew, or both wait until the key's
/// time is over.
pub(super) fn after(
    sides: &mut Sides,
    step: &Step,
    russet: &Reply,
    peer: &Reply,
) -> Result<bool, String> {
    if !step.args[0].eq_ignore_ascii_case(b"SPOP") {
        std::thread::sleep(EXPIRY_WAIT);
        return Ok(sides.rules.is_same(&step.args, russet, peer));
    }
    let (Some(ours), Some(theirs)) = (members(russet), members(peer)) else {
        return Ok(russet == peer);
    };
    let back: Vec<Vec<u8>> = theirs.iter().filter(|one| !ours.contains(one)).cloned().collect();
    let out: Vec<Vec<u8>> = ours.iter().filter(|one| !theirs.contains(one)).cloned().collect();
    // First what comes back: a set without members would be gone, and its encoding with it.
    on_peer(sides, step, "SADD", &back)?;
    // What Russet drew must have been in the set.
    let is_member = on_peer(sides, step, "SREM", &out)? == out.len() as i64;
    Ok(ours.len() == theirs.len() && is_member)
}

/// One member, several, or none at all; None: an answer of another kind.
fn members(reply: &Reply) -> Option<Vec<Vec<u8>>> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => {
            items.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect()
        }
        Reply::Bulk(member) => Some(vec![member.clone()]),
        _ => None,
    }
}

/// On the connection that made the call, whose database it is.
fn on_peer(sides: &mut Sides, step: &Step, name: &str, members: &[Vec<u8>]) -> Result<i64, String> {
    if members.is_empty() {
        return Ok(0);
    }
    let mut args = vec![name.as_bytes().to_vec(), step.args[1].clone()];
    args.extend(members.iter().cloned());
    sides.peer.send(&Step { connection: step.connection, args })?;
    match sides.peer.reply(step.connection, REPLY_WAIT)? {
        Some(Reply::Int(count)) => Ok(count),
        other => Err(format!("peer: {name} answered {other:?}")),
    }
}

/// Looks at every key, so that none whose time is over is left. Valkey counts such keys in DBSIZE
/// until it comes across them.
pub(super) fn purge(side: &mut Side) -> Result<(), String> {
    for database in DATABASES {
        call(&mut side.control, &[b"SELECT", database.as_bytes()])?;
        let mut args: Vec<&[u8]> = vec![b"EXISTS", b""];
        args.extend(values::KEYS);
        call(&mut side.control, &args)?;
    }
    Ok(())
}
