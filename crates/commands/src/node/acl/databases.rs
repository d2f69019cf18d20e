//! Which databases a call touches: the one that its client is in, if it touches data, and those
//! that its arguments name.

use super::selector::Call;
use russet_base::num::parse_i64;
use russet_base::text::eq_ignore_case;
use russet_catalog::{Command, uses_database};

/// Where a database is named that may not be used, and which it is; none for the client's own and
/// for all of them.
type Refused = (usize, Option<i64>);

/// Whether all databases that a call touches may be used. What its arguments name counts only if
/// the call can be carried out at all.
pub fn check(call: &Call, may_use: &dyn Fn(i64) -> bool) -> Result<(), Refused> {
    let number = |index: usize| named(call, index);
    match call.command {
        Command::Select => return check_named(may_use, &[(1, number(1))]),
        Command::Swapdb => return check_named(may_use, &[(1, number(1)), (2, number(2))]),
        Command::Flushall if (0..call.db_count).all(|db| may_use(db as i64)) => return Ok(()),
        Command::Flushall => return Err((0, None)),
        Command::Move => check_named(may_use, &[(2, number(2))])?,
        Command::Copy => check_copy(call, may_use)?,
        command if !uses_database(command) => return Ok(()),
        _ => {}
    }
    if may_use(call.db as i64) { Ok(()) } else { Err((0, None)) }
}

/// The number of a database, if an argument is one.
fn named(call: &Call, index: usize) -> Option<i64> {
    let db = parse_i64(call.args.get(index)?)?;
    usize::try_from(db).is_ok_and(|db| db < call.db_count).then_some(db)
}

fn check_named(
    may_use: &dyn Fn(i64) -> bool,
    named: &[(usize, Option<i64>)],
) -> Result<(), Refused> {
    if named.iter().any(|(_, db)| db.is_none()) {
        return Ok(());
    }
    let refused = named.iter().find(|(_, db)| db.is_some_and(|db| !may_use(db)));
    refused.map_or(Ok(()), |refused| Err(*refused))
}

/// `COPY source target [DB n] [REPLACE]`.
/// COMPAT: of several databases each is looked at, though only the last is used
/// (tests/wire/acl/databases.wire).
fn check_copy(call: &Call, may_use: &dyn Fn(i64) -> bool) -> Result<(), Refused> {
    let (mut at, mut refused) = (3, None);
    while let Some(option) = call.args.get(at) {
        if eq_ignore_case(option, b"replace") {
            at += 1;
            continue;
        }
        let Some(db) = named(call, at + 1).filter(|_| eq_ignore_case(option, b"db")) else {
            return Ok(());
        };
        if refused.is_none() && !may_use(db) {
            refused = Some((at + 1, Some(db)));
        }
        at += 2;
    }
    refused.map_or(Ok(()), Err)
}
