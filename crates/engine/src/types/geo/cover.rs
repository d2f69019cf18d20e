//! Where a search must look: the cell of the middle, at a size that suits the shape, and those of
//! its eight neighbours that the shape can reach into.

use super::geohash::{Cell, STEPS_MAX};
use super::shape::Shape;
use super::{LATITUDE_MAX, LONGITUDE_MAX, Point};
use smallvec::SmallVec;

/// Half the circumference of the square map, in metres.
const MAP_HALF_M: f64 = 20_037_726.37;

/// Scores from `start` on, up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreSpan {
    pub start: f64,
    pub end: f64,
}

impl ScoreSpan {
    pub(super) fn of(cell: Cell) -> ScoreSpan {
        let shift = 2 * (STEPS_MAX - cell.steps);
        ScoreSpan { start: (cell.bits << shift) as f64, end: ((cell.bits + 1) << shift) as f64 }
    }
}

/// How often the map is halved so that nine cells cover a circle of this radius.
fn steps_for(mut radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEPS_MAX;
    }
    let mut steps = 1i32;
    while radius_m < MAP_HALF_M {
        radius_m *= 2.0;
        steps += 1;
    }
    steps -= 2;
    // Cells are narrower towards the poles.
    if latitude.abs() > 66.0 {
        steps -= 1;
    }
    if latitude.abs() > 80.0 {
        steps -= 1;
    }
    steps.clamp(1, STEPS_MAX as i32) as u32
}

/// The directions of the neighbours, east and north, in the order in which they are looked at.
const NEIGHBOURS: [(i8, i8); 8] =
    [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The cells of all places in a shape, and of some others, in the order in which the peers look at
/// them: without a wish for another order, results come in this one.
pub(super) fn cover(shape: &Shape) -> SmallVec<[Cell; 9]> {
    let bounds = shape.bounds();
    // The middle of a polygon around a pole lies off the map.
    let center = Point {
        longitude: shape.center.longitude.clamp(-LONGITUDE_MAX, LONGITUDE_MAX),
        latitude: shape.center.latitude.clamp(-LATITUDE_MAX, LATITUDE_MAX),
    };
    let mut cell = Cell::at(center, steps_for(shape.radius_m(&bounds), center.latitude));
    // Near the edge of its cell a shape may reach beyond the neighbour.
    let is_short = cell.neighbour((0, 1)).area().high.latitude < bounds.high.latitude
        || cell.neighbour((0, -1)).area().low.latitude > bounds.low.latitude
        || cell.neighbour((1, 0)).area().high.longitude < bounds.high.longitude
        || cell.neighbour((-1, 0)).area().low.longitude > bounds.low.longitude;
    if is_short && cell.steps > 1 {
        cell = Cell::at(center, cell.steps - 1);
    }
    let area = cell.area();
    let is_fine = cell.steps >= 2;
    let (no_south, no_north) =
        (area.low.latitude < bounds.low.latitude, area.high.latitude > bounds.high.latitude);
    let (no_west, no_east) =
        (area.low.longitude < bounds.low.longitude, area.high.longitude > bounds.high.longitude);
    let mut cells: SmallVec<[Cell; 9]> = SmallVec::new();
    cells.push(cell);
    let mut last = None;
    for (east, north) in NEIGHBOURS {
        let is_too_far = (north < 0 && no_south)
            || (north > 0 && no_north)
            || (east < 0 && no_west)
            || (east > 0 && no_east);
        let neighbour = cell.neighbour((east, north));
        // On a coarse map neighbours on both sides may be the same.
        if (is_fine && is_too_far) || last == Some(neighbour) {
            continue;
        }
        last = Some(neighbour);
        cells.push(neighbour);
    }
    cells
}
