//! LOLWUT: a picture, and the version under it.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::config::Directive;
use russet_base::{Args, Random, num};

const WIDTH: usize = 60;
const HEIGHT: usize = 16;
/// From bare metal to rust.
const SHADES: &[u8] = b" .:-=+*#%@";

pub(crate) fn lolwut(ctx: &mut Ctx, args: Args) -> Outcome {
    let options: Vec<&[u8]> = args.from(1).iter().collect();
    match options.as_slice() {
        [name, number, ..] if name.eq_ignore_ascii_case(b"version") => {
            // Every version has the same picture here.
            num::parse_i64(number).ok_or(Refusal::NotInteger)?;
        }
        _ => {}
    }
    let mut text = picture(&mut Random::from_entropy());
    let version = ctx.node.config.string(Directive::RedisVersion);
    text.push_str(&format!("\nRusset {}. Redis ver. {version}\n", env!("CARGO_PKG_VERSION")));
    ctx.reply.verbatim(b"txt", text.as_bytes());
    DONE
}

/// Rust spreads from a few spots over a sheet of metal: each place is as dark as its nearest spot
/// is near.
fn picture(random: &mut Random) -> String {
    const SPOTS: usize = 7;
    let spots: Vec<(f64, f64, f64)> = (0..SPOTS)
        .map(|_| {
            let (x, y) = (random.unit() * WIDTH as f64, random.unit() * HEIGHT as f64);
            (x, y, 3.0 + random.unit() * 7.0)
        })
        .collect();
    let mut text = String::with_capacity((WIDTH + 1) * HEIGHT);
    for row in 0..HEIGHT {
        for column in 0..WIDTH {
            let near = spots.iter().map(|(x, y, radius)| {
                // A character is about twice as high as it is wide.
                let (across, down) = (column as f64 - x, (row as f64 - y) * 2.0);
                1.0 - across.hypot(down) / (radius * 2.0)
            });
            let grain = (random.unit() - 0.5) * 0.2;
            let depth = (near.fold(0.0, f64::max) + grain).clamp(0.0, 0.999);
            text.push(char::from(SHADES[(depth * SHADES.len() as f64) as usize]));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}
