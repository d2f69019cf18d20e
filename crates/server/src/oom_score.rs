//! `oom-score-adj`: how soon the kernel ends this process when memory runs out. Of the three values
//! only that of a primary counts: there are no replicas yet, and no children.

use russet_commands::node::config::{Config, Directive};
use std::io;
use std::sync::Mutex;

const FILE: &str = "/proc/self/oom_score_adj";
/// What the kernel takes, on either side of zero.
const SCORE_MAX: i64 = 1000;

/// What the score was before it was changed, if it is.
#[derive(Default)]
pub struct OomScore(Mutex<Option<i64>>);

impl OomScore {
    /// Brings the score to what the directives say; with `no`, back to what it was.
    pub fn apply(&self, config: &Config) -> io::Result<()> {
        let mut before = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let mode = config.choice(Directive::OomScoreAdj);
        let base = match (*before, mode) {
            (None, "no") => return Ok(()),
            (Some(base), _) => base,
            (None, _) => {
                let text = std::fs::read_to_string(FILE)?;
                text.trim().parse().map_err(io::Error::other)?
            }
        };
        let scores = config.string(Directive::OomScoreAdjValues);
        let own = scores.split(' ').next().and_then(|score| score.parse().ok()).unwrap_or(0);
        std::fs::write(FILE, wanted(mode, base, own).to_string())?;
        // From then on it is whoever's: what it is when it is changed again counts.
        *before = (mode != "no").then_some(base);
        Ok(())
    }
}

fn wanted(mode: &str, base: i64, own: i64) -> i64 {
    let score = match mode {
        "no" => base,
        "absolute" => own,
        _ => base + own,
    };
    score.clamp(-SCORE_MAX, SCORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_stay_within_what_the_kernel_takes() {
        assert_eq!(wanted("no", 15, 10), 15);
        assert_eq!(wanted("yes", 15, 10), 25);
        assert_eq!(wanted("absolute", 15, 10), 10);
        assert_eq!(wanted("absolute", 15, 2000), 1000);
        assert_eq!(wanted("yes", -900, -200), -1000);
    }
}
