//! Places nearby.

use crate::error::{Error, Result};
use crate::key::{Family, Scope};
use crate::kit::Kit;
use crate::member::Member;
use crate::observe::stats;
use crate::reply::{Envelope, Reply};
use crate::spread::{check_bound, check_ttl};
use crate::step::{Safe, Step};
use std::time::Duration;

const FAMILY: Family = Family { purpose: "social.nearby", version: 1 };
/// The most places of one category.
const PLACES_MAX: u32 = 10_000_000;
/// The most places of a page.
const PAGE_MAX: u32 = 1000;
/// As far from the equator as places can be.
const LATITUDE_MAX: f64 = 85.051_128_78;
/// More than half around the Earth.
const RADIUS_M_MAX: f64 = 25_000_000.0;

pub(super) static PLACE: Step<Safe> = Step::new("nearby_place", include_str!("nearby_place.lua"));
pub(super) static SEARCH: Step<Safe> =
    Step::read_only("nearby_search", include_str!("nearby_search.lua"));

/// What is kept of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearbySettings {
    /// How many places a category has.
    pub places_max: u32,
    /// How long they are kept after the last change.
    pub ttl: Duration,
}

/// A point on the Earth, in degrees.
#[derive(Clone, Copy, PartialEq)]
pub struct Point {
    longitude: f64,
    latitude: f64,
}

impl Point {
    /// Refuses what is no point, or too near the poles for the store (85.05 degrees).
    pub fn new(longitude: f64, latitude: f64) -> Result<Self> {
        if !(-180.0..=180.0).contains(&longitude) {
            return Err(Error::invalid("the longitude"));
        }
        if !(-LATITUDE_MAX..=LATITUDE_MAX).contains(&latitude) {
            return Err(Error::invalid("the latitude"));
        }
        Ok(Point { longitude, latitude })
    }
}

/// Says nothing of where: it may be where a user is.
impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Point")
    }
}

/// What putting a place did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Placed {
    /// It was not there before.
    New,
    /// It was there already, perhaps elsewhere.
    Moved,
    /// The category has `places_max` others.
    Full,
}

/// A place that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What was put there.
    pub place: Member,
    /// From where was searched, in metres.
    pub distance_m: f64,
}

/// Where a page ends.
#[derive(Clone, Debug, PartialEq)]
pub struct NearbyCursor {
    distance_m: f64,
    place: Member,
    seen: u32,
}

/// Some places, the nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct NearbyPage {
    /// Of this page.
    pub places: Vec<Found>,
    /// None behind the last. A search ends after 10,000 places.
    pub next: Option<NearbyCursor>,
}

/// Places by category: shops, drivers, bicycles.
///
/// Invariant: a place that stays where it is is on one page of a search, and pages go on where the
/// one before ended.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::Kit;
/// use russet::social::{Nearby, NearbySettings, Point};
/// use std::time::Duration;
///
/// let kit = Kit::embedded(Default::default())?;
/// let ttl = Duration::from_secs(24 * 60 * 60);
/// let shops = Nearby::new(&kit, NearbySettings { places_max: 100_000, ttl })?;
/// let _placed = shops.put("coffee", "shop-1", Point::new(13.4, 52.5)?).await?;
/// let page = shops.search("coffee", Point::new(13.41, 52.5)?, 5000.0, None, 10).await?;
/// assert_eq!(page.places[0].place, "shop-1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Nearby {
    kit: Kit,
    settings: NearbySettings,
    counts: Counts,
}

stats! {
    /// What a handle has seen in this process.
    NearbyStats counted by Counts {
        /// Places that were new.
        placed,
        /// Places that were there.
        moved,
        /// Places that were taken away.
        removed,
        /// Places that were refused because there were as many as may be.
        rejected,
        /// Pages of searches.
        searched,
    }
}

impl Nearby {
    /// Places by these settings. Refuses bounds and a TTL of zero.
    pub fn new(kit: &Kit, settings: NearbySettings) -> Result<Self> {
        check_bound("places_max", settings.places_max, PLACES_MAX)?;
        check_ttl("ttl", settings.ttl)?;
        Ok(Nearby { kit: kit.clone(), settings, counts: Counts::default() })
    }

    /// What this handle has seen.
    pub fn stats(&self) -> NearbyStats {
        self.counts.stats()
    }

    /// Puts a place, or moves it.
    pub async fn put(
        &self,
        category: impl Into<Scope>,
        place: impl Into<Member>,
        point: Point,
    ) -> Result<Placed> {
        let envelope = self.change("SET", category.into(), place.into(), point).await?;
        let (placed, counter) = match envelope.status() {
            "NEW" => (Placed::New, &self.counts.placed),
            "MOVED" => (Placed::Moved, &self.counts.moved),
            "FULL" => (Placed::Full, &self.counts.rejected),
            _ => return Err(envelope.unexpected()),
        };
        counter.add(1);
        Ok(placed)
    }

    /// Removes a place; whether it was there.
    pub async fn remove(
        &self,
        category: impl Into<Scope>,
        place: impl Into<Member>,
    ) -> Result<bool> {
        let nowhere = Point { longitude: 0.0, latitude: 0.0 };
        let envelope = self.change("CLEAR", category.into(), place.into(), nowhere).await?;
        let was_there = envelope.is("REMOVED");
        self.counts.removed.add(u64::from(was_there));
        Ok(was_there)
    }

    /// Places within a radius, the nearest first; at most 1,000 on a page.
    pub async fn search(
        &self,
        category: impl Into<Scope>,
        around: Point,
        radius_m: f64,
        after: Option<&NearbyCursor>,
        count: u32,
    ) -> Result<NearbyPage> {
        if count == 0 || count > PAGE_MAX {
            return Err(Error::invalid(format!("a page has 1 to {PAGE_MAX} places")));
        }
        if !(radius_m > 0.0 && radius_m <= RADIUS_M_MAX) {
            return Err(Error::invalid("radius_m"));
        }
        self.counts.searched.add(1);
        let seen = after.map_or(0, |cursor| cursor.seen);
        let call = self.kit.step(&SEARCH).key(self.kit.keys(FAMILY, category)?.key("places"));
        let call = call.arg(around.longitude).arg(around.latitude).arg(radius_m).arg(count);
        let call = match after {
            Some(cursor) => call.arg(cursor.distance_m).arg(&cursor.place),
            None => call.arg("").arg(""),
        };
        let mut envelope = call.arg(seen).run().await?;
        let places = found(&envelope.list("places")?)?;
        let is_last = envelope.int("is_last")? == 1;
        let last = places.last().filter(|_last| !is_last).cloned();
        let next = last.map(|Found { place, distance_m }| {
            let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
            NearbyCursor { distance_m, place, seen: seen.saturating_add(count) }
        });
        Ok(NearbyPage { places, next })
    }

    async fn change(
        &self,
        how: &'static str,
        category: Scope,
        place: Member,
        point: Point,
    ) -> Result<Envelope> {
        let place = place.checked()?;
        let call = self.kit.step(&PLACE).key(self.kit.keys(FAMILY, category)?.key("places"));
        let call = call.arg(how).arg(&place).arg(point.longitude).arg(point.latitude);
        call.arg(self.settings.places_max).arg(self.settings.ttl).run().await
    }
}

fn found(list: &[Reply]) -> Result<Vec<Found>> {
    let one = |pair: &[Reply]| {
        Some(Found { place: Member::from(pair[0].as_bytes()?), distance_m: pair[1].as_double()? })
    };
    let all: Option<Vec<Found>> = list.chunks_exact(2).map(one).collect();
    all.ok_or_else(|| Error::Corrupt("a place with its distance".into()))
}
