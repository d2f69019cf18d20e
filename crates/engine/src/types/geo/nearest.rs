//! The results of a search, in the order and number that were asked for. Where only the nearest few
//! are wanted, a place that is surely further than those costs no more than its approximation.

use super::Point;
use super::distance::Limit;
use super::filter::{Filter, GridPoint};
use std::cmp::Ordering;

/// The order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the map was walked.
    AsFound,
    NearestFirst,
    FurthestFirst,
}

/// A place that was found, and what the caller knows it by.
#[derive(Clone, Copy, Debug)]
pub struct Hit<T> {
    pub label: T,
    pub score: f64,
    pub point: Point,
    /// From the middle of the shape; 0 if nobody asked.
    pub distance_m: f64,
    /// Which one it was in the walk: equal distances keep this order.
    turn: usize,
}

/// Collects hits.
pub struct Hits<'f, T> {
    filter: &'f Filter<'f>,
    order: Order,
    /// Most that are wanted.
    count_max: usize,
    /// The first ones found will do.
    takes_any: bool,
    needs_distance: bool,
    /// Once there are `count_max` of them in an order, a heap with the least wanted on top.
    hits: Vec<Hit<T>>,
    turns: usize,
    /// Approximations on the wrong side of this can't be among the wanted.
    worst: Option<Limit>,
}

impl<'f, T: Copy> Hits<'f, T> {
    pub fn new(filter: &'f Filter<'f>, order: Order, count_max: Option<usize>) -> Self {
        Hits {
            filter,
            order,
            count_max: count_max.unwrap_or(usize::MAX),
            takes_any: false,
            needs_distance: order != Order::AsFound,
            hits: Vec::new(),
            turns: 0,
            worst: None,
        }
    }

    /// Has distances computed even if the order does not need them.
    #[must_use]
    pub fn with_distances(mut self, is_wanted: bool) -> Self {
        self.needs_distance |= is_wanted;
        self
    }

    /// Ends the walk with the number that is wanted, whichever they are.
    #[must_use]
    pub fn taking_any(mut self, takes_any: bool) -> Self {
        self.takes_any = takes_any;
        self
    }

    /// Looks at a place; false once nothing more is wanted.
    #[inline]
    pub fn offer(&mut self, score: f64, label: impl FnOnce() -> T) -> bool {
        if let Some(point) = self.filter.pass(GridPoint::of_score(score)) {
            self.take(point, score, label);
        }
        !self.takes_any || self.hits.len() < self.count_max
    }

    fn take(&mut self, point: Point, score: f64, label: impl FnOnce() -> T) {
        let turn = self.turns;
        self.turns += 1;
        if let Some(worst) = self.worst
            && let Some(haversine) = self.filter.haversine(point)
        {
            let is_hopeless = match self.order {
                Order::FurthestFirst => haversine < worst.within,
                _ => haversine > worst.beyond,
            };
            if is_hopeless {
                return;
            }
        }
        let distance_m = if self.needs_distance { self.filter.distance_m(point) } else { 0.0 };
        let hit = Hit { label: label(), score, point, distance_m, turn };
        if self.hits.len() < self.count_max {
            self.hits.push(hit);
            if self.hits.len() == self.count_max && self.order != Order::AsFound {
                self.build_heap();
            }
        } else if self.before(&hit, &self.hits[0]) {
            self.hits[0] = hit;
            self.sink(0);
            self.note_worst();
        }
    }

    /// Whether one comes before another in the reply.
    fn before(&self, one: &Hit<T>, other: &Hit<T>) -> bool {
        compare(self.order, one, other) == Ordering::Less
    }

    fn build_heap(&mut self) {
        for at in (0..self.hits.len() / 2).rev() {
            self.sink(at);
        }
        self.note_worst();
    }

    fn note_worst(&mut self) {
        self.worst = Some(Limit::of_distance(self.hits[0].distance_m));
    }

    /// Lets a hit sink to where those below it come before it.
    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (at * 2 + 1, at * 2 + 2);
            let mut last = at;
            for child in [left, right] {
                if child < self.hits.len() && self.before(&self.hits[last], &self.hits[child]) {
                    last = child;
                }
            }
            if last == at {
                return;
            }
            self.hits.swap(at, last);
            at = last;
        }
    }

    /// All that was found, in order.
    pub fn into_sorted(mut self) -> Vec<Hit<T>> {
        if self.order != Order::AsFound {
            let order = self.order;
            self.hits.sort_unstable_by(|one, other| compare(order, one, other));
        }
        self.hits
    }
}

fn compare<T>(order: Order, one: &Hit<T>, other: &Hit<T>) -> Ordering {
    let by_distance = one.distance_m.total_cmp(&other.distance_m);
    let by_distance = match order {
        Order::AsFound => Ordering::Equal,
        Order::NearestFirst => by_distance,
        Order::FurthestFirst => by_distance.reverse(),
    };
    by_distance.then(one.turn.cmp(&other.turn))
}
