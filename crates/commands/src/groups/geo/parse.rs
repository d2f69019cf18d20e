//! The arguments of a search. COMPAT: they are read with the source at hand, as the peers do: a
//! member that is not there is reported before an arg that makes no sense, if it stands before it.

use super::position::position_of;
use super::{point, unit};
use crate::error::Refusal;
use crate::groups::zset::float;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};
use russet_engine::types::geo::{Extents, Order, Point, Shape, Unit};
use russet_engine::types::zset::ZsetRef;

/// Which command the arguments belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Search,
    SearchStore,
    Radius { may_store: bool },
    RadiusByMember { may_store: bool },
}

impl Form {
    /// Where the options begin.
    fn options_at(self) -> usize {
        match self {
            Form::Search => 2,
            Form::SearchStore => 3,
            Form::Radius { .. } => 6,
            Form::RadiusByMember { .. } => 5,
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    fn may_store(self) -> bool {
        matches!(self, Form::Radius { may_store: true } | Form::RadiusByMember { may_store: true })
    }
}

/// Where results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    pub key: &'a [u8],
    /// Distances instead of places.
    pub distances: bool,
}

/// What was asked for.
#[derive(Debug)]
pub struct Query<'a> {
    /// None if the source is missing, so that nothing can be found.
    pub shape: Option<Shape>,
    pub order: Order,
    pub count_max: Option<usize>,
    pub takes_any: bool,
    pub with_distance: bool,
    pub with_hash: bool,
    pub with_coordinates: bool,
    pub store: Option<Store<'a>>,
}

/// Reads the arguments one after the other.
struct Parser<'a, 'z> {
    form: Form,
    args: Args<'a>,
    at: usize,
    source: Option<ZsetRef<'z>>,
    query: Query<'a>,
    center: Option<Center>,
    extents: Option<(Extents, Unit)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Center {
    GridPoint(Point),
    /// None if there is no source to look it up in.
    Member(Option<Point>),
}

impl Center {
    fn point(self) -> Option<Point> {
        match self {
            Center::GridPoint(point) => Some(point),
            Center::Member(point) => point,
        }
    }
}

pub fn parse<'a>(
    form: Form,
    args: Args<'a>,
    source: Option<ZsetRef<'_>>,
) -> Result<Query<'a>, Refusal> {
    let query = Query {
        shape: None,
        order: Order::AsFound,
        count_max: None,
        takes_any: false,
        with_distance: false,
        with_hash: false,
        with_coordinates: false,
        store: None,
    };
    let at = form.options_at();
    let mut parser = Parser { form, args, at, source, query, center: None, extents: None };
    parser.fixed_args()?;
    while parser.at < args.len() {
        parser.option()?;
    }
    parser.finish()
}

impl<'a> Parser<'a, '_> {
    /// What stands before the options.
    fn fixed_args(&mut self) -> Result<(), Refusal> {
        let args = self.args;
        match self.form {
            Form::Search => {}
            Form::SearchStore => {
                self.query.store = Some(Store { key: args.at(1), distances: false });
            }
            Form::Radius { .. } => {
                self.center = Some(Center::GridPoint(point([args.at(2), args.at(3)])?));
                self.extents = Some(radius([args.at(4), args.at(5)])?);
            }
            // Without a source the numbers are not even looked at.
            Form::RadiusByMember { .. } if self.source.is_none() => {}
            Form::RadiusByMember { .. } => {
                self.center = Some(self.member(args.at(2))?);
                self.extents = Some(radius([args.at(3), args.at(4)])?);
            }
        }
        Ok(())
    }

    fn member(&self, member: &[u8]) -> Result<Center, Refusal> {
        let Some(zset) = self.source else { return Ok(Center::Member(None)) };
        position_of(zset, member).map(|point| Center::Member(Some(point))).ok_or_else(|| {
            let member = escape(member);
            Refusal::text(format!("ERR member {member} does not exist"))
        })
    }

    /// How many arguments follow the one that is read.
    fn args_left(&self) -> usize {
        self.args.len() - self.at - 1
    }

    fn option(&mut self) -> Result<(), Refusal> {
        let arg = self.args.at(self.at);
        let is = |name: &str| eq_ignore_case(arg, name.as_bytes());
        let taken = if is("withdist") {
            self.query.with_distance = true;
            0
        } else if is("withhash") {
            self.query.with_hash = true;
            0
        } else if is("withcoord") {
            self.query.with_coordinates = true;
            0
        } else if is("any") {
            self.query.takes_any = true;
            0
        } else if is("asc") {
            self.query.order = Order::NearestFirst;
            0
        } else if is("desc") {
            self.query.order = Order::FurthestFirst;
            0
        } else if is("count") && self.args_left() >= 1 {
            self.query.count_max = Some(count(self.args.at(self.at + 1))?);
            1
        } else if self.form.is_search() {
            self.search_option()?
        } else {
            self.store_option()?
        };
        self.at += 1 + taken;
        Ok(())
    }

    /// STORE and STOREDIST of the older commands; how many arguments they take.
    fn store_option(&mut self) -> Result<usize, Refusal> {
        let arg = self.args.at(self.at);
        let distances = eq_ignore_case(arg, b"storedist");
        let is_store = distances || eq_ignore_case(arg, b"store");
        if !is_store || !self.form.may_store() || self.args_left() < 1 {
            return Err(Refusal::Syntax);
        }
        // DIFFERS: the same arg twice is refused. The key that a command writes to must be known
        // before it runs, and it is the one behind the first.
        let before = self.form.options_at()..self.at;
        if before.into_iter().any(|at| eq_ignore_case(self.args.at(at), arg)) {
            return Err(Refusal::Syntax);
        }
        self.query.store = Some(Store { key: self.args.at(self.at + 1), distances });
        Ok(1)
    }

    /// What only GEOSEARCH and GEOSEARCHSTORE have; how many arguments it takes.
    fn search_option(&mut self) -> Result<usize, Refusal> {
        let (args, at, left) = (self.args, self.at, self.args_left());
        let arg = args.at(at);
        let is = |name: &str| eq_ignore_case(arg, name.as_bytes());
        let is_polygon = matches!(self.extents, Some((Extents::Polygon(_), _)));
        if is("storedist") {
            if let Some(store) = &mut self.query.store {
                store.distances = true;
                return Ok(0);
            }
        } else if is("frommember") && left >= 1 && !is_polygon {
            if !matches!(self.center, Some(Center::GridPoint(_))) {
                self.center = Some(self.member(args.at(at + 1))?);
                return Ok(1);
            }
        } else if is("fromlonlat") && left >= 2 && !is_polygon {
            if !matches!(self.center, Some(Center::Member(_))) {
                self.center = Some(Center::GridPoint(point([args.at(at + 1), args.at(at + 2)])?));
                return Ok(2);
            }
        } else if is("byradius") && left >= 2 {
            if matches!(self.extents, None | Some((Extents::Circle { .. }, _))) {
                self.extents = Some(radius([args.at(at + 1), args.at(at + 2)])?);
                return Ok(2);
            }
        } else if is("bybox") && left >= 3 {
            if matches!(self.extents, None | Some((Extents::Box { .. }, _))) {
                self.extents = Some(bounding_box([1, 2, 3].map(|next| args.at(at + next)))?);
                return Ok(3);
            }
        } else if is("bypolygon") && left >= 2 {
            let is_free = self.center.is_none() && (self.extents.is_none() || is_polygon);
            if is_free {
                return self.polygon();
            }
        }
        Err(Refusal::Syntax)
    }

    fn polygon(&mut self) -> Result<usize, Refusal> {
        let arg = self.args.at(self.at + 1);
        let corners = num::parse_i64(arg).and_then(|count| i32::try_from(count).ok());
        let corners = corners.ok_or(Refusal::text("ERR invalid number of vertices"))?;
        let possible = (self.args_left() - 1) / 2;
        let corners = usize::try_from(corners).unwrap_or(0);
        if corners < 3 || possible < corners {
            return Err(Refusal::text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"));
        }
        let first = self.at + 2;
        let corner = |index: usize| {
            let at = first + index * 2;
            point([self.args.at(at), self.args.at(at + 1)])
        };
        let points: Result<Vec<Point>, Refusal> = (0..corners).map(corner).collect();
        self.extents = Some((Extents::Polygon(points?), Unit::Metre));
        Ok(1 + corners * 2)
    }

    /// Checks that need all the arguments.
    fn finish(mut self) -> Result<Query<'a>, Refusal> {
        let Query { with_distance, with_hash, with_coordinates, .. } = self.query;
        if self.query.store.is_some() && (with_distance || with_hash || with_coordinates) {
            let name = match self.form {
                Form::SearchStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return Err(Refusal::text(format!(
                "ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if self.form.is_search() {
            self.check_search()?;
        }
        if self.query.takes_any && self.query.count_max.is_none() {
            return Err(Refusal::text("ERR the ANY argument requires COUNT argument"));
        }
        if self.query.count_max.is_some()
            && self.query.order == Order::AsFound
            && !self.query.takes_any
        {
            self.query.order = Order::NearestFirst;
        }
        self.query.shape = match (self.center.and_then(Center::point), self.extents) {
            (None, Some((Extents::Polygon(corners), _))) => Some(Shape::polygon(corners)),
            (Some(center), Some((extents, unit))) => Some(Shape { center, unit, extents }),
            _ => None,
        };
        Ok(self.query)
    }

    fn check_search(&self) -> Result<(), Refusal> {
        let is_polygon = matches!(self.extents, Some((Extents::Polygon(_), _)));
        // COMPAT: the name as it was called.
        let name = || escape(self.args.at(0));
        if self.center.is_none() && !is_polygon {
            return Err(Refusal::text(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}",
                name()
            )));
        }
        if self.extents.is_none() {
            return Err(Refusal::text(format!(
                "ERR exactly one of BYRADIUS, BYBOX and BYPOLYGON can be specified for {}",
                name()
            )));
        }
        Ok(())
    }
}

fn count(arg: &[u8]) -> Result<usize, Refusal> {
    let count = num::parse_i64(arg).ok_or(Refusal::NotInteger)?;
    match usize::try_from(count) {
        Ok(0) | Err(_) => Err(Refusal::text("ERR COUNT must be > 0")),
        Ok(count) => Ok(count),
    }
}

fn radius([radius, unit_arg]: [&[u8]; 2]) -> Result<(Extents, Unit), Refusal> {
    let radius = float(radius, Refusal::text("ERR need numeric radius"))?;
    if radius < 0.0 {
        return Err(Refusal::text("ERR radius cannot be negative"));
    }
    Ok((Extents::Circle { radius }, unit(unit_arg)?))
}

fn bounding_box([width, height, unit_arg]: [&[u8]; 3]) -> Result<(Extents, Unit), Refusal> {
    let width = float(width, Refusal::text("ERR need numeric width"))?;
    let height = float(height, Refusal::text("ERR need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err(Refusal::text("ERR height or width cannot be negative"));
    }
    Ok((Extents::Box { width, height }, unit(unit_arg)?))
}
