//! Places on earth as numbers: coordinates as 52-bit geohashes that serve as scores of a sorted
//! set, distances, and the shapes that are searched. Nothing here knows where places are stored.
//!
//! Every floating-point step that can be seen in a reply is in the order that the peers have, so
//! that the same digits come out.

mod cover;
mod distance;
mod filter;
mod geohash;
mod nearest;
mod shape;
#[cfg(test)]
mod tests;

pub use cover::ScoreSpan;
pub use distance::distance_m;
pub use filter::{Filter, GridPoint};
pub use geohash::{geohash_text, point_of_score, score_of_point};
pub use nearest::{Hit, Hits, Order};
pub use shape::{Extents, Shape};

pub const LONGITUDE_MAX: f64 = 180.0;
/// Where the square map of the world ends: the poles have no place on it.
pub const LATITUDE_MAX: f64 = 85.051_128_78;

/// A place, in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

impl Point {
    /// Whether it lies on the map.
    pub fn is_valid(self) -> bool {
        self.longitude.abs() <= LONGITUDE_MAX && self.latitude.abs() <= LATITUDE_MAX
    }
}

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Metre,
    Kilometre,
    Foot,
    Mile,
}

impl Unit {
    pub fn parse(word: &[u8]) -> Option<Unit> {
        let named =
            [("m", Unit::Metre), ("km", Unit::Kilometre), ("ft", Unit::Foot), ("mi", Unit::Mile)];
        let found = named.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, unit)| unit)
    }

    pub fn metres(self) -> f64 {
        match self {
            Unit::Metre => 1.0,
            Unit::Kilometre => 1000.0,
            Unit::Foot => 0.3048,
            Unit::Mile => 1609.34,
        }
    }
}
