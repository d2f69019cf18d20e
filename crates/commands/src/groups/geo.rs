//! Places in sorted sets: what their commands share. Each family of verbs has a file of its own;
//! geohashes, distances and shapes are the engine's.

mod add;
mod parse;
mod position;
mod reply;
mod search;
#[cfg(test)]
mod tests;

pub use add::geoadd;
pub use position::{geodist, geohash, geopos};
pub use search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};

use crate::error::Refusal;
use crate::groups::zset::float;
use russet_engine::keys::Keys;
use russet_engine::types::geo::{Point, Unit};
use russet_engine::types::zset::{ZsetRef, stored};
use russet_engine::value::WrongType;

/// The sorted set under a key, to read.
fn read<'k>(keys: &'k mut Keys, key: &[u8]) -> Result<Option<ZsetRef<'k>>, WrongType> {
    keys.read(key).map(|entry| stored::zset(&entry)).transpose()
}

/// A place in degrees, on the map.
fn point([longitude, latitude]: [&[u8]; 2]) -> Result<Point, Refusal> {
    let point = Point {
        longitude: float(longitude, Refusal::NotFloat)?,
        latitude: float(latitude, Refusal::NotFloat)?,
    };
    if point.is_valid() {
        return Ok(point);
    }
    let Point { longitude, latitude } = point;
    Err(Refusal::text(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

fn unit(arg: &[u8]) -> Result<Unit, Refusal> {
    Unit::parse(arg).ok_or(Refusal::text("ERR unsupported unit provided. please use M, KM, FT, MI"))
}
