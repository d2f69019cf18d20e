//! What the figures were measured on, and when; and its memory, made ready.

use crate::failure::{Doing, Result};
use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// One line each, for the head of a report.
pub fn describe() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into());
    let memory_kb = field("/proc/meminfo", "MemTotal")
        .and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    let memory_gb = memory_kb.map_or(0.0, |kb| kb / f64::from(1 << 20));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_ascii_whitespace().next().unwrap_or("?").to_owned();
    vec![
        format!("Date: {}", today()),
        format!("Machine: {cpu}, {cores} cores, {memory_gb:.0} GiB, Linux {}", kernel.trim()),
        format!("Load average before the run: {load}"),
    ]
}

/// The word that has this program touch memory and end.
pub const TOUCH: &str = "touch";

/// Has memory touched once by a process that ends. A virtual machine gets much of its memory from
/// its host when it is first used, which takes several times as long as to clear it: the first
/// server to grow would pay for all that come behind it, and the more the larger its pages are.
pub fn have_memory_touched() -> Result<()> {
    let own = std::env::current_exe().doing("finding this program")?;
    let status = Command::new(own).arg(TOUCH).status().doing("having memory touched")?;
    if !status.success() {
        eprintln!("russet-bench: memory was not touched before the run ({status})");
    }
    Ok(())
}

/// Writes to half of the memory that is free.
pub fn touch_memory() {
    const BLOCK_BYTES: usize = 64 << 20;
    let free_kb = field("/proc/meminfo", "MemAvailable")
        .and_then(|line| line.split_ascii_whitespace().next()?.parse::<usize>().ok());
    let blocks = free_kb.unwrap_or(0) * 1024 / 2 / BLOCK_BYTES;
    let held: Vec<Vec<u8>> = (0..blocks).map(|_| vec![1; BLOCK_BYTES]).collect();
    black_box(&held);
}

/// The value of the first `name : value` line.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line =
        text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date of a day counted from 1970-01-01, by walking the calendar: it runs once.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_722), (2023, 12, 31));
        assert_eq!(civil(19_723), (2024, 1, 1));
    }
}
