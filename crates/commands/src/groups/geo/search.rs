//! Searching for places: GEOSEARCH, GEOSEARCHSTORE, and GEORADIUS in its four older forms.

use super::parse::{Form, Query, Store, parse};
use super::read;
use super::reply::{reply_distance, reply_member, reply_point};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::groups::zset::{limits, record_all};
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::geo::{Filter, Hit, Hits, Shape};
use russet_engine::types::zset::stored::Draft;
use russet_engine::types::zset::{Element, Extent, ScoreBound, ScoreRange, ZsetLimits, ZsetRef};
use russet_protocol::Sink;
use std::ops::ControlFlow;

pub fn geosearch(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::Search)
}

pub fn geosearchstore(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::SearchStore)
}

pub fn georadius(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::Radius { may_store: true })
}

pub fn georadius_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::Radius { may_store: false })
}

pub fn georadiusbymember(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::RadiusByMember { may_store: true })
}

pub fn georadiusbymember_ro(ctx: &mut Ctx, args: Args) -> Outcome {
    search(ctx, args, Form::RadiusByMember { may_store: false })
}

fn search(ctx: &mut Ctx, args: Args, form: Form) -> Outcome {
    let source = args.at(if form == Form::SearchStore { 2 } else { 1 });
    let limits = limits(ctx);
    let zset = read(ctx.keys, source)?;
    let query = parse(form, args, zset)?;
    let hits = match (&zset, &query.shape) {
        (Some(zset), Some(shape)) => find(*zset, shape, &query),
        _ => Vec::new(),
    };
    let Some(store) = query.store else {
        reply_hits(ctx.reply, &query, &hits);
        return DONE;
    };
    let stored = hits.len();
    let draft = draft(&query, store, &hits, limits);
    let name = if form == Form::SearchStore { "geosearchstore" } else { "georadiusstore" };
    let dirty = ctx.keys.effects.dirty;
    put(ctx, store.key, draft, (Event::zset(name), stored));
    // Servers that don't know it would pass over the call without a word.
    let is_polygon = query.shape.as_ref().is_some_and(Shape::is_polygon);
    if is_polygon && ctx.keys.effects.dirty != dirty {
        record_all(ctx.keys, store.key);
    }
    ctx.reply.int(stored as i64);
    DONE
}

/// Walks the cells that the shape can reach into.
fn find<'z>(zset: ZsetRef<'z>, shape: &Shape, query: &Query) -> Vec<Hit<Element<'z>>> {
    let filter = Filter::new(shape);
    let wants_distance = query.with_distance || query.store.is_some_and(|store| store.distances);
    let mut hits = Hits::new(&filter, query.order, query.count_max)
        .with_distances(wants_distance)
        .taking_any(query.takes_any);
    for span in filter.spans(zset.len()) {
        let range = ScoreRange {
            min: ScoreBound { value: span.start, is_open: false },
            max: ScoreBound { value: span.end, is_open: true },
        };
        let walked =
            zset.each_scored(&range, |pair| match hits.offer(pair.score, || pair.member) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
        if walked.is_break() {
            break;
        }
    }
    hits.into_sorted()
}

/// In the unit that was asked for.
fn distance(query: &Query, hit: &Hit<Element<'_>>) -> f64 {
    let metres = query.shape.as_ref().map_or(1.0, |shape| shape.unit.metres());
    hit.distance_m / metres
}

fn reply_hits(reply: &mut dyn Sink, query: &Query, hits: &[Hit<Element<'_>>]) {
    let facts = usize::from(query.with_distance)
        + usize::from(query.with_hash)
        + usize::from(query.with_coordinates);
    reply.array(hits.len());
    for hit in hits {
        if facts > 0 {
            reply.array(facts + 1);
        }
        reply_member(reply, hit.label);
        if query.with_distance {
            reply_distance(reply, distance(query, hit));
        }
        if query.with_hash {
            reply.int(hit.score as i64);
        }
        if query.with_coordinates {
            reply_point(reply, hit.point);
        }
    }
}

/// The hits as a sorted set of their own, before the source is let go.
fn draft(query: &Query, store: Store, hits: &[Hit<Element<'_>>], limits: ZsetLimits) -> Draft {
    let member_bytes_max =
        hits.iter().map(|hit| hit.label.with_bytes(<[u8]>::len)).max().unwrap_or(0);
    let mut draft = Draft::new(Extent { count: hits.len(), member_bytes_max }, limits);
    for hit in hits {
        let score = if store.distances { distance(query, hit) } else { hit.score };
        hit.label.with_bytes(|member| draft.upsert(member, limits, |_| Some(score)));
    }
    draft
}

/// Puts the results where they belong, or removes what was there if there are none.
fn put(ctx: &mut Ctx, key: &[u8], draft: Draft, (event, count): (Event, usize)) {
    if count == 0 {
        if ctx.keys.remove(key) {
            ctx.keys.wrote(key, Event::DEL);
        }
        return;
    }
    draft.put(|value| ctx.keys.put(key, value, None));
    ctx.keys.wrote_many(key, event, count as u64);
}
