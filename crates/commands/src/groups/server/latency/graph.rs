//! LATENCY GRAPH: the spikes of one event as columns of characters, the oldest first.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::latency::{Series, Spike};
use russet_base::Args;
use russet_base::escape::escape;

/// Spikes that are drawn, and rows that they are drawn on.
const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// A row's three heights, from its bottom to its top.
const HEIGHTS: [char; 3] = ['_', 'o', '#'];

pub(crate) fn latency_graph(ctx: &mut Ctx, args: Args) -> Outcome {
    let now = ctx.node.clock.now().seconds();
    let Some((event, series)) = ctx.node.latency.find(args.at(2)) else {
        let event = escape(args.at(2)).into_owned();
        return Err(Refusal::text(format!("ERR No samples available for event '{event}'")));
    };
    ctx.reply.verbatim(b"txt", draw(event, &series, now).as_bytes());
    DONE
}

fn draw(event: &str, series: &Series, now: i64) -> String {
    let skipped = series.spikes.len().saturating_sub(COLUMNS);
    let spikes: Vec<Spike> = series.spikes.iter().skip(skipped).copied().collect();
    let high = spikes.iter().map(|spike| spike.ms).max().unwrap_or(0);
    let low = spikes.iter().map(|spike| spike.ms).min().unwrap_or(0);
    let mut text = format!(
        "{event} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        series.ms_max,
        "-".repeat(COLUMNS)
    );
    let columns: Vec<String> = spikes.iter().map(|spike| column(*spike, high, low, now)).collect();
    let depth = columns.iter().map(|column| column.len()).max().unwrap_or(0);
    for row in 0..depth {
        for column in &columns {
            text.push(column.as_bytes().get(row).copied().map_or(' ', char::from));
        }
        text.push('\n');
    }
    text
}

/// One spike from top to bottom: its bar, and below it how long ago it was.
fn column(spike: Spike, high: u32, low: u32, now: i64) -> String {
    let steps = (ROWS * HEIGHTS.len() - 1) as u64;
    let height = match high > low {
        true => u64::from(spike.ms - low) * steps / u64::from(high - low),
        false => 0,
    } as usize;
    let (top, step) = (height / HEIGHTS.len(), height % HEIGHTS.len());
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        text.push(match row {
            _ if row == top => HEIGHTS[step],
            _ if row < top => '|',
            _ => ' ',
        });
    }
    text.push(' ');
    text.push_str(&age(now.saturating_sub(spike.unix_seconds).max(0)));
    text
}

/// In the largest unit that gives at least one.
fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_spike_is_drawn_as_valkey_draws_it() {
        let mut series = Series { ms_max: 20, ..Series::default() };
        series.spikes.push_back(Spike { unix_seconds: 5, ms: 20 });
        let drawn = draw("command", &series, 5);
        let (_, bars) = drawn.split_once(&"-".repeat(COLUMNS)).expect("a rule");
        assert_eq!(bars, "\n \n \n \n_\n \n0\ns\n");
    }

    #[test]
    fn higher_is_taller() {
        let tall = column(Spike { unix_seconds: 0, ms: 100 }, 100, 0, 7200);
        let short = column(Spike { unix_seconds: 0, ms: 0 }, 100, 0, 90);
        assert_eq!((tall.as_str(), short.as_str()), ("#||| 2h", "   _ 1m"));
    }
}
