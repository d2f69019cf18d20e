//! Geohashes: the map is halved again and again in both directions, and the halves that a point
//! lies in are its bits, latitude in the even ones and longitude in the odd.

use super::{LATITUDE_MAX, LONGITUDE_MAX, Point};

/// Halvings in each direction of a score: 52 bits, all of which a double holds.
pub(super) const STEPS_MAX: u32 = 26;
/// The alphabet of geohash texts.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Characters of a geohash text.
const TEXT_CHARS: usize = 11;
const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;

/// Moves the low 32 bits apart, to the even places.
fn spread(half: u32) -> u64 {
    let mut bits = u64::from(half);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & LATITUDE_BITS
}

/// The inverse of [`spread`].
#[inline]
fn gather(bits: u64) -> u32 {
    let mut bits = bits & LATITUDE_BITS;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

/// Which of the `2^steps` parts of the map a point lies in, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub longitude: u32,
    pub latitude: u32,
}

impl Grid {
    #[inline]
    pub fn of_bits(bits: u64) -> Grid {
        Grid { longitude: gather(bits >> 1), latitude: gather(bits) }
    }

    fn bits(self) -> u64 {
        spread(self.latitude) | spread(self.longitude) << 1
    }

    /// `latitude_max` is where the map ends. COMPAT: the last edge has a part of its own, one
    /// beyond the others; test `geo/geoadd.wire`.
    fn of_point(point: Point, steps: u32, latitude_max: f64) -> Grid {
        let parts = (1u64 << steps) as f64;
        let latitude = (point.latitude + latitude_max) / (latitude_max + latitude_max);
        let longitude = (point.longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX);
        Grid { longitude: (longitude * parts) as u32, latitude: (latitude * parts) as u32 }
    }

    /// The middle of this part, for the parts of scores.
    #[inline]
    pub fn point(self) -> Point {
        let middle = |part, max: f64| {
            let (low, high) = edges(part, STEPS_MAX, max);
            ((low + high) / 2.0).clamp(-max, max)
        };
        Point {
            longitude: middle(self.longitude, LONGITUDE_MAX),
            latitude: middle(self.latitude, LATITUDE_MAX),
        }
    }
}

/// Where a part begins and ends, in degrees.
#[inline]
fn edges(part: u32, steps: u32, max: f64) -> (f64, f64) {
    let (parts, scale) = ((1u64 << steps) as f64, max + max);
    let edge = |part: u32| -max + f64::from(part) / parts * scale;
    (edge(part), edge(part.wrapping_add(1)))
}

/// A part of the map: the first bits of all the scores in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub bits: u64,
    pub steps: u32,
}

/// Where a cell lies, in degrees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub low: Point,
    pub high: Point,
}

impl Cell {
    pub fn at(point: Point, steps: u32) -> Cell {
        Cell { bits: Grid::of_point(point, steps, LATITUDE_MAX).bits(), steps }
    }

    /// Its four quarters, in the order of their scores.
    pub fn quarters(self) -> [Cell; 4] {
        [0, 1, 2, 3].map(|quarter| Cell { bits: self.bits << 2 | quarter, steps: self.steps + 1 })
    }

    pub fn area(self) -> Area {
        let grid = Grid::of_bits(self.bits);
        let (west, east) = edges(grid.longitude, self.steps, LONGITUDE_MAX);
        let (south, north) = edges(grid.latitude, self.steps, LATITUDE_MAX);
        Area {
            low: Point { longitude: west, latitude: south },
            high: Point { longitude: east, latitude: north },
        }
    }

    /// The cell next to it: one to the east or west, one to the north or south. The map has no
    /// edges in this.
    pub fn neighbour(self, (east, north): (i8, i8)) -> Cell {
        let unused = 64 - self.steps * 2;
        let moved = |own: u64, other: u64, by: i8| {
            // The bits of the other direction are ones, so that a carry runs through them.
            let (own_mask, step) = (own >> unused, (other >> unused) + 1);
            let bits = self.bits & own;
            match by {
                0 => bits,
                1 => bits.wrapping_add(step) & own_mask,
                _ => (bits | (step - 1)).wrapping_sub(step) & own_mask,
            }
        };
        let longitude = moved(LONGITUDE_BITS, LATITUDE_BITS, east);
        let latitude = moved(LATITUDE_BITS, LONGITUDE_BITS, north);
        Cell { bits: longitude | latitude, steps: self.steps }
    }
}

/// The score of a place in a sorted set.
pub fn score_of_point(point: Point) -> f64 {
    Cell::at(point, STEPS_MAX).bits as f64
}

/// The bits of a score that may be any number: not every sorted set holds places.
/// COMPAT: what lies outside is cut as the peers' processors cut it; test `geo/geopos.wire`.
pub(super) fn bits_of_score(score: f64) -> u64 {
    const HALF: f64 = (1u64 << 63) as f64;
    if score < HALF {
        score as i64 as u64
    } else if score < HALF * 2.0 {
        score as u64
    } else {
        0
    }
}

/// The place that a score stands for.
pub fn point_of_score(score: f64) -> Point {
    Grid::of_bits(bits_of_score(score)).point()
}

/// The usual text of a geohash, for which the map ends at the poles.
/// COMPAT: the last character would need three bits more than there are, and is always 0.
pub fn geohash_text(point: Point) -> [u8; TEXT_CHARS] {
    let bits = Grid::of_point(point, STEPS_MAX, 90.0).bits();
    std::array::from_fn(|at| match at {
        10 => ALPHABET[0],
        _ => ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 31],
    })
}
