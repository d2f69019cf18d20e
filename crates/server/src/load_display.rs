//! How far the load of the data is: a bar where the log goes to a terminal, elsewhere a line of the
//! log now and then.

use crate::log::{Level, Log};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use russet_base::num::human_bytes;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time between two lines: a load that is over before the first needs none.
const LINE_EVERY: Duration = Duration::from_secs(5);
const TEMPLATE: &str = "Loading [{wide_bar}] {bytes} of {total_bytes}, {eta} left";

#[derive(Default)]
pub struct LoadDisplay(Mutex<Option<Shown>>);

struct Shown {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

impl Shown {
    fn new(log: &Log) -> Self {
        let bar = log.is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            match ProgressStyle::with_template(TEMPLATE) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Shown { bar, last_line: Instant::now() }
    }
}

impl LoadDisplay {
    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    pub fn show(&self, log: &Log, (loaded, total): (u64, u64)) {
        let mut shown = self.shown();
        let shown = shown.get_or_insert_with(|| Shown::new(log));
        if let Some(bar) = &shown.bar {
            bar.set_length(total);
            return bar.set_position(loaded);
        }
        if shown.last_line.elapsed() >= LINE_EVERY {
            shown.last_line = Instant::now();
            let percent = 100 * loaded / total.max(1);
            let (loaded, total) = (human_bytes(loaded), human_bytes(total));
            log.say(Level::Notice, &format!("Loading: {percent} % ({loaded} of {total})"));
        }
    }

    /// All is loaded.
    pub fn end(&self) {
        if let Some(bar) = self.shown().take().and_then(|shown| shown.bar) {
            bar.finish_and_clear();
        }
    }
}
