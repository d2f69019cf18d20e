//! The shapes that a search looks into.

use super::distance::{EARTH_RADIUS_M, degrees, distance_m, latitude_distance_m, radians};
use super::{LATITUDE_MAX, LONGITUDE_MAX, Point, Unit};

/// Lengths as they were asked for; the unit tells what they mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Extents {
    Circle {
        radius: f64,
    },
    Box {
        width: f64,
        height: f64,
    },
    /// Its corners, at least three.
    Polygon(Vec<Point>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Distances are measured from here.
    pub center: Point,
    pub unit: Unit,
    pub extents: Extents,
}

/// A box in degrees that a shape lies in. COMPAT: near the poles it does not quite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub low: Point,
    pub high: Point,
}

impl Shape {
    /// A polygon; its middle lies in the direction of the sum of its corners.
    pub fn polygon(corners: Vec<Point>) -> Shape {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for corner in &corners {
            let (longitude, latitude) = (radians(corner.longitude), radians(corner.latitude));
            x += latitude.cos() * longitude.cos();
            y += latitude.cos() * longitude.sin();
            z += latitude.sin();
        }
        let longitude = degrees(y.atan2(x));
        let latitude = degrees(z.atan2((x * x + y * y).sqrt()));
        let center = Point { longitude, latitude };
        Shape { center, unit: Unit::Metre, extents: Extents::Polygon(corners) }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let metres = self.unit.metres();
        match &self.extents {
            Extents::Circle { radius } => self.bounds_of([metres * radius, metres * radius]),
            Extents::Box { width, height } => {
                self.bounds_of([metres * width / 2.0, metres * height / 2.0])
            }
            Extents::Polygon(corners) => {
                let mut low = Point { longitude: LONGITUDE_MAX, latitude: LATITUDE_MAX };
                let mut high = Point { longitude: -LONGITUDE_MAX, latitude: -LATITUDE_MAX };
                for corner in corners {
                    low.longitude = low.longitude.min(corner.longitude);
                    low.latitude = low.latitude.min(corner.latitude);
                    high.longitude = high.longitude.max(corner.longitude);
                    high.latitude = high.latitude.max(corner.latitude);
                }
                Bounds { low, high }
            }
        }
    }

    /// So far to the sides, so far up and down. Meridians draw together towards the poles, so the
    /// wider edge counts.
    fn bounds_of(&self, [width_m, height_m]: [f64; 2]) -> Bounds {
        let Point { longitude, latitude } = self.center;
        let up = degrees(height_m / EARTH_RADIUS_M);
        let edge = if latitude < 0.0 { latitude - up } else { latitude + up };
        let aside = degrees(width_m / EARTH_RADIUS_M / radians(edge).cos());
        Bounds {
            low: Point { longitude: longitude - aside, latitude: latitude - up },
            high: Point { longitude: longitude + aside, latitude: latitude + up },
        }
    }

    /// How far its furthest place may be from its middle.
    pub(super) fn radius_m(&self, bounds: &Bounds) -> f64 {
        let radius = match self.extents {
            Extents::Circle { radius } => radius,
            Extents::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
            Extents::Polygon(_) => {
                let Bounds { low, high } = *bounds;
                let corners = [
                    Point { longitude: low.longitude, latitude: high.latitude },
                    high,
                    low,
                    Point { longitude: high.longitude, latitude: low.latitude },
                ];
                corners
                    .map(|corner| distance_m(self.center, corner))
                    .into_iter()
                    .fold(0.0, f64::max)
            }
        };
        radius * self.unit.metres()
    }

    /// Of a box: whether a place is neither above nor below it.
    pub(super) fn is_level(&self, point: Point) -> bool {
        let Extents::Box { height, .. } = self.extents else { return true };
        let half_height_m = height * self.unit.metres() / 2.0;
        let is_beyond = latitude_distance_m(point, self.center) > half_height_m;
        !is_beyond
    }

    pub fn is_polygon(&self) -> bool {
        matches!(self.extents, Extents::Polygon(_))
    }

    /// Whether it holds a place, by the peers' own arithmetic.
    pub fn contains(&self, point: Point) -> bool {
        let metres = self.unit.metres();
        match &self.extents {
            Extents::Circle { radius } => {
                let is_beyond = distance_m(self.center, point) > radius * metres;
                !is_beyond
            }
            Extents::Box { width, .. } => {
                self.is_level(point) && {
                    let level = Point { latitude: point.latitude, ..self.center };
                    let is_beyond = distance_m(point, level) > width * metres / 2.0;
                    !is_beyond
                }
            }
            Extents::Polygon(corners) => is_inside(corners, point),
        }
    }
}

/// Counts the sides that a ray from the point to the east crosses.
fn is_inside(corners: &[Point], point: Point) -> bool {
    let mut inside = false;
    let mut before = corners.last().copied().unwrap_or_default();
    for corner in corners {
        let (one, other) = (*corner, before);
        if (one.latitude > point.latitude) != (other.latitude > point.latitude) {
            let crossing = (other.longitude - one.longitude) * (point.latitude - one.latitude)
                / (other.latitude - one.latitude)
                + one.longitude;
            if point.longitude < crossing {
                inside = !inside;
            }
        }
        before = one;
    }
    inside
}
