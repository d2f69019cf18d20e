//! What is found quickly must be what the formula gives; what is cut short must be what a full sort
//! begins with.

use super::cover::{ScoreSpan, cover};
use super::geohash::Cell;
use super::{
    Extents, Filter, GridPoint, Hits, LATITUDE_MAX, LONGITUDE_MAX, Order, Point, Shape, Unit,
    distance_m, geohash_text, point_of_score, score_of_point,
};
use russet_base::Random;

fn point(longitude: f64, latitude: f64) -> Point {
    Point { longitude, latitude }
}

/// Some near the poles and the edges of the map.
fn random_point(random: &mut Random) -> Point {
    let between = |random: &mut Random, max: f64| match random.below(6) {
        0 => max - random.unit(),
        1 => random.unit() - max,
        _ => (random.unit() * 2.0 - 1.0) * max,
    };
    point(between(random, LONGITUDE_MAX), between(random, LATITUDE_MAX))
}

/// From centimetres to more than the earth.
fn random_length(random: &mut Random) -> f64 {
    10f64.powf(random.unit() * 9.5 - 2.0)
}

fn random_shape(random: &mut Random) -> Shape {
    let (center, unit) = (random_point(random), Unit::Metre);
    let extents = match random.below(3) {
        0 => {
            let corners = (0..3 + random.below(4)).map(|_| random_point(random)).collect();
            return Shape::polygon(corners);
        }
        1 => Extents::Circle { radius: random_length(random) },
        _ => Extents::Box { width: random_length(random), height: random_length(random) },
    };
    Shape { center, unit, extents }
}

/// A place that has a good chance to be near the edge of the shape.
fn random_score_for(shape: &Shape, random: &mut Random) -> f64 {
    let near = match shape.extents {
        Extents::Circle { radius } => radius,
        Extents::Box { width, height } => width.max(height),
        Extents::Polygon(_) => 1e7,
    };
    let degrees = near / 111_000.0;
    let aside = |random: &mut Random| (random.unit() * 2.0 - 1.0) * degrees * 1.2;
    let squeeze = shape.center.latitude.to_radians().cos();
    let longitude = shape.center.longitude + aside(random) / squeeze;
    let latitude = (shape.center.latitude + aside(random)).clamp(-LATITUDE_MAX, LATITUDE_MAX);
    let longitude = (longitude + 540.0).rem_euclid(360.0) - 180.0;
    score_of_point(point(longitude, latitude))
}

#[test]
fn points_survive_their_scores() {
    // Proved by GEOADD and GEOPOS on a real server.
    let palermo = score_of_point(point(13.361389, 38.115556));
    assert_eq!(palermo, 3_479_099_956_230_698.0);
    let read = point_of_score(palermo);
    assert_eq!(format!("{:.17}", read.longitude), "13.36138933897018433");
    assert_eq!(format!("{:.17}", read.latitude), "38.11555639549629859");
    assert_eq!(&geohash_text(read), b"sqc8b49rny0");
    let catania = point_of_score(score_of_point(point(15.087269, 37.502669)));
    assert_eq!(format!("{:.4}", distance_m(read, catania)), "166274.1516");
    let mut random = Random::from_seed(1);
    for _ in 0..10_000 {
        let point = random_point(&mut random);
        let read = point_of_score(score_of_point(point));
        assert!(distance_m(point, read) < 0.5, "{point:?}");
        assert_eq!(score_of_point(read), score_of_point(point));
    }
}

#[test]
fn no_score_is_too_odd() {
    for score in [0.0, -1.0, 0.5, 1e15, 1e19, 1e300, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        let read = point_of_score(score);
        assert!(read.is_valid(), "{score}");
        geohash_text(read);
    }
}

#[test]
fn neighbours_lead_back() {
    let mut random = Random::from_seed(2);
    for _ in 0..1000 {
        let cell = Cell::at(random_point(&mut random), 1 + random.below(26) as u32);
        for (east, north) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
            let there = cell.neighbour((east, north));
            assert_eq!(there.neighbour((-east, -north)), cell);
        }
    }
}

#[test]
fn the_filter_tells_what_the_formula_tells() {
    let mut random = Random::from_seed(3);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..3000 {
        let shape = random_shape(&mut random);
        let filter = Filter::new(&shape);
        for turn in 0..100 {
            let score = match turn % 10 {
                0 => score_of_point(random_point(&mut random)),
                _ => random_score_for(&shape, &mut random),
            };
            let exact = shape.contains(point_of_score(score));
            let quick = filter.pass(GridPoint::of_score(score));
            assert_eq!(quick.is_some(), exact, "{shape:?} {:?}", point_of_score(score));
            *(if exact { &mut inside } else { &mut outside }) += 1;
        }
    }
    assert!(inside > 50_000 && outside > 50_000, "{inside} {outside}");
}

#[test]
fn the_first_few_are_those_of_the_full_order() {
    let mut random = Random::from_seed(4);
    for _ in 0..300 {
        let shape = random_shape(&mut random);
        let filter = Filter::new(&shape);
        let scores: Vec<f64> = (0..200).map(|_| random_score_for(&shape, &mut random)).collect();
        for order in [Order::NearestFirst, Order::FurthestFirst] {
            let mut all = Hits::new(&filter, order, None);
            let mut few = Hits::new(&filter, order, Some(7));
            for (label, score) in scores.iter().chain(&scores[..20]).enumerate() {
                assert!(all.offer(*score, || label) && few.offer(*score, || label));
            }
            let labels = |hits: Hits<'_, usize>| -> Vec<usize> {
                hits.into_sorted().iter().map(|hit| hit.label).collect()
            };
            let (all, few) = (labels(all), labels(few));
            assert_eq!(few, all[..few.len()]);
            assert_eq!(few.len(), all.len().min(7));
        }
        let mut any = Hits::new(&filter, Order::AsFound, Some(3)).taking_any(true);
        let walked = scores.iter().take_while(|score| any.offer(**score, || ())).count();
        let found = any.into_sorted().len();
        assert!(found <= 3 && (found == 3) == (walked < scores.len()) || found == 3);
    }
}

#[test]
fn a_cover_has_every_point_of_a_shape_away_from_the_poles() {
    let mut random = Random::from_seed(5);
    for _ in 0..2000 {
        let center = point(random.unit() * 300.0 - 150.0, random.unit() * 120.0 - 60.0);
        let radius = random_length(&mut random).min(500_000.0);
        let shape = Shape { center, unit: Unit::Metre, extents: Extents::Circle { radius } };
        let spans: Vec<ScoreSpan> = cover(&shape).into_iter().map(ScoreSpan::of).collect();
        for _ in 0..20 {
            let score = random_score_for(&shape, &mut random);
            if shape.contains(point_of_score(score)) {
                let times =
                    spans.iter().filter(|span| (span.start..span.end).contains(&score)).count();
                assert_eq!(times, 1, "{shape:?}");
            }
        }
    }
}

#[test]
fn any_length_is_covered_without_end() {
    for length in [0.0, f64::MIN_POSITIVE, 1e-320, 1e300, f64::INFINITY] {
        for center in [point(0.0, 0.0), point(180.0, LATITUDE_MAX), point(-180.0, -LATITUDE_MAX)] {
            for extents in
                [Extents::Circle { radius: length }, Extents::Box { width: length, height: 1.0 }]
            {
                let shape = Shape { center, unit: Unit::Mile, extents };
                assert!(cover(&shape).len() <= 9);
                let filter = Filter::new(&shape);
                filter.pass(GridPoint::of_score(score_of_point(center)));
            }
        }
    }
    let around_the_pole =
        Shape::polygon(vec![point(0.0, 80.0), point(120.0, 80.0), point(-120.0, 80.0)]);
    assert!(!cover(&around_the_pole).is_empty());
}

/// What is left out of the cells holds no place that passes, and the order stays.
#[test]
fn narrower_spans_hold_all_that_passes_in_the_same_order() {
    let mut random = Random::from_seed(6);
    for points in [0, 1_000, 1_000_000, usize::MAX] {
        for _ in 0..400 {
            let shape = random_shape(&mut random);
            let filter = Filter::new(&shape);
            let cells: Vec<ScoreSpan> = cover(&shape).into_iter().map(ScoreSpan::of).collect();
            let mut scores: Vec<f64> =
                (0..60).map(|_| random_score_for(&shape, &mut random)).collect();
            scores.retain(|score| filter.pass(GridPoint::of_score(*score)).is_some());
            scores.sort_by(f64::total_cmp);
            let walk = |spans: &[ScoreSpan]| -> Vec<f64> {
                let inside = |span: &ScoreSpan| span.start..span.end;
                spans
                    .iter()
                    .flat_map(|span| scores.iter().copied().filter(|it| inside(span).contains(it)))
                    .collect()
            };
            assert_eq!(walk(&filter.spans(points)), walk(&cells), "{shape:?}");
        }
    }
}
