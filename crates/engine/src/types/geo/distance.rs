//! Distances on a sphere by the haversine formula: exactly as the peers compute them, and faster
//! where it is enough to know on which side of a limit they lie.

use super::Point;

/// The radius of the earth that the peers take.
pub(super) const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

pub(super) fn degrees(radians: f64) -> f64 {
    // Divided, not multiplied by the inverse: the last digit differs.
    radians / RADIANS_PER_DEGREE
}

/// Along a meridian.
pub(super) fn latitude_distance_m(one: Point, other: Point) -> f64 {
    EARTH_RADIUS_M * (radians(other.latitude) - radians(one.latitude)).abs()
}

/// Along a great circle.
pub fn distance_m(one: Point, other: Point) -> f64 {
    let v = ((radians(other.longitude) - radians(one.longitude)) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance_m(one, other);
    }
    let (latitude1, latitude2) = (radians(one.latitude), radians(other.latitude));
    let u = ((latitude2 - latitude1) / 2.0).sin();
    let a = u * u + latitude1.cos() * latitude2.cos() * v * v;
    2.0 * EARTH_RADIUS_M * a.sqrt().asin()
}

/// The haversine of a distance: grows with it, and needs no arc sine to compare.
pub(super) fn haversine_of(distance_m: f64) -> f64 {
    let half_angle = distance_m / EARTH_RADIUS_M / 2.0;
    if half_angle >= std::f64::consts::FRAC_PI_2 {
        // No two places are further apart.
        return f64::INFINITY;
    }
    let sine = half_angle.sin();
    sine * sine
}

/// Largest angle that [`Approximation`] is good for.
pub(super) const ANGLE_MAX: f64 = 0.5;
/// How far an approximated haversine may be off: this share of it, and this much besides, for the
/// rounding of coordinates.
const ERROR_SHARE: f64 = 1e-8;
const ERROR: f64 = 1e-20;

/// A limit that approximated haversines are compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Surely within.
    pub within: f64,
    /// Surely beyond.
    pub beyond: f64,
}

impl Limit {
    pub fn of_distance(distance_m: f64) -> Limit {
        let haversine = haversine_of(distance_m);
        Limit {
            within: haversine * (1.0 - ERROR_SHARE) - ERROR,
            beyond: haversine * (1.0 + ERROR_SHARE) + ERROR,
        }
    }
}

/// Haversines of places near one place, by short polynomials.
#[derive(Clone, Copy, Debug)]
pub(super) struct Approximation {
    center: Point,
    cosine: f64,
    sine: f64,
    /// Longitudes may differ by any angle.
    is_wide: bool,
}

/// The terms of an approximated haversine.
pub(super) struct Parts {
    /// Of the difference in latitude alone.
    pub latitude: f64,
    /// Of the difference in longitude, on the equator.
    pub longitude: f64,
    /// The cosine of the other place's latitude.
    pub cosine: f64,
}

impl Approximation {
    pub fn new(center: Point) -> Self {
        let latitude = radians(center.latitude);
        let (sine, cosine) = (latitude.sin(), latitude.cos());
        Approximation { center, cosine, sine, is_wide: false }
    }

    /// For places around a pole, at some cost.
    pub fn make_wide(&mut self) {
        self.is_wide = true;
    }

    /// Both differences must be at most [`ANGLE_MAX`]; that of longitudes only unless it is wide.
    #[inline]
    pub fn parts(&self, other: Point) -> Parts {
        let latitude = radians(other.latitude - self.center.latitude);
        let longitude = wrapped(radians(other.longitude - self.center.longitude));
        let half = half_versine(latitude * latitude);
        let cosine = self.cosine * (1.0 - 2.0 * half) - self.sine * sine(latitude);
        let longitude = if self.is_wide {
            wide_half_versine(longitude)
        } else {
            half_versine(longitude * longitude)
        };
        Parts { latitude: half, longitude, cosine }
    }

    #[inline]
    pub fn haversine(&self, other: Point) -> f64 {
        let parts = self.parts(other);
        parts.latitude + self.cosine * parts.cosine * parts.longitude
    }
}

/// A difference in longitude, the short way round.
#[inline]
fn wrapped(angle: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    if angle > PI {
        angle - TAU
    } else if angle < -PI {
        angle + TAU
    } else {
        angle
    }
}

/// sin²(x/2), from x².
#[inline]
fn half_versine(square: f64) -> f64 {
    let series = 1.0 / 360.0 - square * (1.0 / 20_160.0 - square * (1.0 / 1_814_400.0));
    square * 0.25 * (1.0 - square * (1.0 / 12.0 - square * series))
}

/// The same for any angle, from that of its eighth: sin²(2x) is 4 sin²(x) (1 - sin²(x)).
#[inline]
fn wide_half_versine(angle: f64) -> f64 {
    let eighth = angle / 8.0;
    let doubled = |square: f64| 4.0 * square * (1.0 - square);
    doubled(doubled(doubled(half_versine(eighth * eighth))))
}

#[inline]
fn sine(x: f64) -> f64 {
    let square = x * x;
    let series = 1.0 / 120.0
        - square * (1.0 / 5_040.0 - square * (1.0 / 362_880.0 - square * (1.0 / 39_916_800.0)));
    x * (1.0 - square * (1.0 / 6.0 - square * series))
}
