//! Single places: GEODIST, GEOHASH and GEOPOS.

use super::reply::{reply_distance, reply_point};
use super::{read, unit};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::types::geo::{Point, Unit, distance_m, geohash_text, point_of_score};
use russet_engine::types::zset::ZsetRef;

/// Where a member is.
pub(super) fn position_of(zset: ZsetRef, member: &[u8]) -> Option<Point> {
    zset.score(member).map(point_of_score)
}

pub fn geodist(ctx: &mut Ctx, args: Args) -> Outcome {
    let unit = match args.len() {
        4 => Unit::Metre,
        5 => unit(args.at(4))?,
        _ => return Err(Refusal::Syntax),
    };
    let zset = read(ctx.keys, args.at(1))?;
    let point = |index| zset.and_then(|zset| position_of(zset, args.at(index)));
    match (point(2), point(3)) {
        (Some(one), Some(other)) => {
            reply_distance(ctx.reply, distance_m(one, other) / unit.metres());
        }
        _ => ctx.reply.null(),
    }
    DONE
}

pub fn geohash(ctx: &mut Ctx, args: Args) -> Outcome {
    let (zset, members) = (read(ctx.keys, args.at(1))?, args.from(2));
    ctx.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| position_of(zset, member)) {
            Some(point) => ctx.reply.bulk(&geohash_text(point)),
            None => ctx.reply.null(),
        }
    }
    DONE
}

pub fn geopos(ctx: &mut Ctx, args: Args) -> Outcome {
    let (zset, members) = (read(ctx.keys, args.at(1))?, args.from(2));
    ctx.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| position_of(zset, member)) {
            Some(point) => reply_point(ctx.reply, point),
            None => ctx.reply.null_array(),
        }
    }
    DONE
}
