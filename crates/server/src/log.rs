//! The log: one line per event, to standard output or `logfile`. It never holds keys, values or
//! secrets of its own accord; what a script logs is the script's affair.

use russet_commands::node::config::{Config, Directive};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Debug,
    Verbose,
    Notice,
    Warning,
}

impl Level {
    /// As scripts number them: 0 is debug, 3 is a warning.
    pub fn from_number(number: u8) -> Level {
        match number {
            0 => Level::Debug,
            1 => Level::Verbose,
            2 => Level::Notice,
            _ => Level::Warning,
        }
    }
}

/// The least level that `loglevel` lets through, as a number; beyond all of them is nothing.
fn threshold(loglevel: &str) -> u8 {
    match loglevel {
        "debug" => Level::Debug as u8,
        "verbose" => Level::Verbose as u8,
        "notice" => Level::Notice as u8,
        "warning" => Level::Warning as u8,
        _ => u8::MAX,
    }
}

pub struct Log {
    file: Option<Mutex<File>>,
    threshold: AtomicU8,
}

impl Log {
    pub fn open(config: &Config) -> Result<Log, String> {
        let path = config.string(Directive::LogFile);
        let file = if path.is_empty() {
            None
        } else {
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            Some(Mutex::new(
                opened.map_err(|error| format!("cannot open logfile {path}: {error}"))?,
            ))
        };
        let threshold = AtomicU8::new(threshold(config.choice(Directive::LogLevel)));
        Ok(Log { file, threshold })
    }

    /// CONFIG SET loglevel.
    pub fn set_level(&self, loglevel: &str) {
        self.threshold.store(threshold(loglevel), Ordering::Relaxed);
    }

    pub fn say(&self, level: Level, text: &str) {
        if (level as u8) < self.threshold.load(Ordering::Relaxed) {
            return;
        }
        let mark = match level {
            Level::Debug => '.',
            Level::Verbose => '-',
            Level::Notice => '*',
            Level::Warning => '#',
        };
        let line = format!("{}:M {} {mark} {text}\n", std::process::id(), timestamp());
        // A log that can't be written is no reason to stop serving.
        let _written = match &self.file {
            Some(file) => {
                file.lock().unwrap_or_else(|poison| poison.into_inner()).write_all(line.as_bytes())
            }
            None => std::io::stdout().write_all(line.as_bytes()),
        };
    }
}

/// UTC, to the millisecond.
fn timestamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = ((since.as_secs() / 86_400) as i64, since.as_secs() % 86_400);
    let (year, month, day) = civil_from_days(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

/// The Gregorian date of a day counted from 1970, by eras of 400 years that begin in March.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::civil_from_days;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(11_016), (2000, 2, 29));
        assert_eq!(civil_from_days(20_772), (2026, 11, 15));
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
    }
}
