//! Which of many places lie in a shape. Most are decided by bits alone, nearly all others by a
//! short polynomial; the formula itself is left for those near the edge.

use super::Point;
use super::cover::{ScoreSpan, cover};
use super::distance::{ANGLE_MAX, Approximation, EARTH_RADIUS_M, Limit, distance_m, radians};
use super::geohash::{Cell, Grid, STEPS_MAX, bits_of_score};
use super::shape::{Extents, Shape};
use smallvec::SmallVec;

/// A place as its score gives it, not yet decoded into degrees.
#[derive(Clone, Copy, Debug)]
pub struct GridPoint(Grid);

impl GridPoint {
    #[inline]
    pub fn of_score(score: f64) -> GridPoint {
        GridPoint(Grid::of_bits(bits_of_score(score)))
    }

    #[inline]
    pub fn point(self) -> Point {
        self.0.point()
    }
}

/// Grid lines between which a place must lie, in one direction; the map goes round.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

const GRID_MASK: u32 = (1 << STEPS_MAX) - 1;

impl Span {
    /// All of the map.
    const ALL: Span = Span { start: 0, len: u32::MAX };

    /// About `center` degrees, `radius` to each side, and a little more; `max` is where the map
    /// ends on both sides.
    fn about(center: f64, radius: f64, max: f64) -> Span {
        let parts_per_degree = f64::from(GRID_MASK + 1) / (max + max);
        let radius = (radius * parts_per_degree).ceil() + 2.0;
        if radius.is_nan() || radius * 2.0 >= f64::from(GRID_MASK) {
            return Span::ALL;
        }
        let middle = (center + max) * parts_per_degree;
        let start = (middle - radius).floor() as i64 as u32 & GRID_MASK;
        Span { start, len: radius as u32 * 2 + 1 }
    }

    #[inline]
    fn has(self, part: u32) -> bool {
        part.wrapping_sub(self.start) & GRID_MASK <= self.len
    }

    /// Whether it reaches into the part of a coarser grid.
    fn meets(self, part: u32, steps: u32) -> bool {
        let unused = STEPS_MAX - steps;
        let first = part << unused;
        self.has(first) || self.start.wrapping_sub(first) & GRID_MASK < 1 << unused
    }
}

/// A part of a cell is worth a look of its own if it holds about this many places,
const POINTS_PER_PART: usize = 12;
/// and if it is no smaller than a cell that was quartered this often.
const DEPTH_MAX: u32 = 3;

/// What can be decided without the formula.
#[derive(Clone, Copy)]
enum Quick {
    Circle(Limit),
    /// By the distance along a parallel only; the latitude is exact already.
    Box(Limit),
    None,
}

/// How far the places that are left can be from the middle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nearness {
    Near,
    /// Only their latitudes are near.
    NearInLatitude,
    Far,
}

/// A shape, prepared for many places.
pub struct Filter<'s> {
    shape: &'s Shape,
    longitudes: Span,
    latitudes: Span,
    near: Approximation,
    quick: Quick,
}

impl<'s> Filter<'s> {
    pub fn new(shape: &'s Shape) -> Self {
        let metres = shape.unit.metres();
        let mut filter = Filter {
            shape,
            longitudes: Span::ALL,
            latitudes: Span::ALL,
            near: Approximation::new(shape.center),
            quick: Quick::None,
        };
        match shape.extents {
            Extents::Circle { radius } => {
                let radius_m = radius * metres;
                match filter.narrow(radius_m / EARTH_RADIUS_M) {
                    Nearness::Far => {}
                    nearness => {
                        if nearness == Nearness::NearInLatitude {
                            filter.near.make_wide();
                        }
                        filter.quick = Quick::Circle(Limit::of_distance(radius_m));
                    }
                }
            }
            Extents::Box { width, height } => {
                let (half_width, half_height) = (width * metres / 2.0, height * metres / 2.0);
                let diagonal = half_width.hypot(half_height) * 1.5;
                if filter.narrow(diagonal / EARTH_RADIUS_M) == Nearness::Near {
                    filter.quick = Quick::Box(Limit::of_distance(half_width));
                }
            }
            Extents::Polygon(_) => {}
        }
        filter
    }

    /// Narrows the grid to an angle about the middle; whether all that is left is near enough for
    /// approximation.
    fn narrow(&mut self, angle: f64) -> Nearness {
        use super::{LATITUDE_MAX, LONGITUDE_MAX};
        const NEAR: f64 = ANGLE_MAX * 0.9;
        let center = self.shape.center;
        let latitude = radians(center.latitude).abs();
        let slack = 1.000_001;
        self.latitudes = Span::about(center.latitude, (angle * slack).to_degrees(), LATITUDE_MAX);
        let near_in_latitude = if angle <= NEAR { Nearness::NearInLatitude } else { Nearness::Far };
        // Around a pole there is no longitude that is out of reach.
        let is_clear = latitude + angle < radians(89.0);
        if !is_clear {
            return near_in_latitude;
        }
        // The meridians that touch a circle of this angle.
        let aside = (angle.sin() / latitude.cos()).min(1.0).asin() * slack;
        self.longitudes =
            Span::about(center.longitude, (aside * slack).to_degrees(), LONGITUDE_MAX);
        if angle <= NEAR && aside <= NEAR { Nearness::Near } else { near_in_latitude }
    }

    /// The scores to look at in a map of so many places, in the order of [`cover`]. Its cells are
    /// much larger than the shape: where they hold many places, parts that are out of reach are
    /// left out.
    pub fn spans(&self, points: usize) -> SmallVec<[ScoreSpan; 16]> {
        let mut spans = SmallVec::new();
        for cell in cover(self.shape) {
            let mut expected = points >> (2 * cell.steps).min(63);
            let mut depth = 0;
            while expected >= POINTS_PER_PART * 4 && cell.steps + depth < STEPS_MAX {
                expected /= 4;
                depth += 1;
            }
            self.add_spans(cell, cell.steps + depth.min(DEPTH_MAX), &mut spans);
        }
        spans
    }

    fn add_spans(&self, cell: Cell, steps_max: u32, spans: &mut SmallVec<[ScoreSpan; 16]>) {
        let grid = Grid::of_bits(cell.bits);
        let is_met = self.longitudes.meets(grid.longitude, cell.steps)
            && self.latitudes.meets(grid.latitude, cell.steps);
        if !is_met {
            return;
        }
        if cell.steps < steps_max {
            return cell.quarters().into_iter().for_each(|it| self.add_spans(it, steps_max, spans));
        }
        let span = ScoreSpan::of(cell);
        match spans.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => spans.push(span),
        }
    }

    /// The point, if the shape holds it.
    #[inline]
    pub fn pass(&self, at: GridPoint) -> Option<Point> {
        if !self.longitudes.has(at.0.longitude) || !self.latitudes.has(at.0.latitude) {
            return None;
        }
        let point = at.point();
        self.contains(point).then_some(point)
    }

    #[inline]
    fn contains(&self, point: Point) -> bool {
        let (haversine, limit) = match self.quick {
            Quick::Circle(limit) => (self.near.haversine(point), limit),
            Quick::Box(limit) => {
                let parts = self.near.parts(point);
                let along = parts.cosine * parts.cosine * parts.longitude;
                if along > limit.beyond {
                    return false;
                }
                if along < limit.within {
                    return self.shape.is_level(point);
                }
                return self.shape.contains(point);
            }
            Quick::None => return self.shape.contains(point),
        };
        if haversine > limit.beyond {
            false
        } else {
            haversine < limit.within || self.shape.contains(point)
        }
    }

    /// From the middle of the shape.
    pub fn distance_m(&self, point: Point) -> f64 {
        distance_m(self.shape.center, point)
    }

    /// A number that grows with the distance from the middle, nearly: off by no more than the
    /// limits of [`Limit`] allow. None where only the formula will do.
    #[inline]
    pub(super) fn haversine(&self, point: Point) -> Option<f64> {
        match self.quick {
            Quick::None => None,
            _ => Some(self.near.haversine(point)),
        }
    }
}
