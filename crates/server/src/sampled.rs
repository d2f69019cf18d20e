//! Figures that are dear to get: who asks again soon gets the same.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How old a figure may be. COMPAT: Redis takes these of its memory as often.
const AGE_MAX: Duration = Duration::from_millis(100);

pub struct Sampled<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Sampled<T> {
    fn default() -> Self {
        Sampled(Mutex::default())
    }
}

impl<T: Clone> Sampled<T> {
    /// The figure, taken anew if it is too old.
    pub fn get(&self, take: impl FnOnce() -> T) -> T {
        let mut sample = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        match &*sample {
            Some((taken, figure)) if taken.elapsed() < AGE_MAX => figure.clone(),
            _ => {
                let figure = take();
                *sample = Some((Instant::now(), figure.clone()));
                figure
            }
        }
    }

    /// It has changed, and whoever asks next is to see that.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(|poison| poison.into_inner()) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_taken_again_when_it_is_old_or_has_changed() {
        let sampled = Sampled::default();
        assert_eq!(sampled.get(|| 1), 1);
        sampled.forget();
        assert_eq!(sampled.get(|| 2), 2);
        std::thread::sleep(AGE_MAX);
        assert_eq!(sampled.get(|| 3), 3);
        let mut taken = 3;
        let started = Instant::now();
        while started.elapsed() < AGE_MAX / 2 {
            taken = sampled.get(|| 4);
        }
        // The machine may have stood still meanwhile.
        assert!(taken == 3 || started.elapsed() >= AGE_MAX);
    }
}
