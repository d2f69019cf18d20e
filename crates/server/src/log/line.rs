//! The shape of one line of the log: `log-format` and `log-timestamp-format`, as in Valkey.

use super::Level;
use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const SECONDS_PER_DAY: u64 = 86_400;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    #[default]
    Legacy,
    Logfmt,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Timestamp {
    #[default]
    Legacy,
    Iso8601,
    Milliseconds,
}

impl Format {
    pub fn named(name: &str) -> Self {
        match name {
            "logfmt" => Format::Logfmt,
            "json" => Format::Json,
            _ => Format::Legacy,
        }
    }
}

impl Timestamp {
    pub fn named(name: &str) -> Self {
        match name {
            "iso8601" => Timestamp::Iso8601,
            "milliseconds" => Timestamp::Milliseconds,
            _ => Timestamp::Legacy,
        }
    }

    /// A moment, given as the time since 1970. DIFFERS: in UTC, where Valkey writes local time.
    fn print(self, since: Duration) -> String {
        if self == Timestamp::Milliseconds {
            return since.as_millis().to_string();
        }
        let (year, month, day) = civil_from_days((since.as_secs() / SECONDS_PER_DAY) as i64);
        let seconds = since.as_secs() % SECONDS_PER_DAY;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let millis = since.subsec_millis();
        match self {
            Timestamp::Iso8601 => format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}+00:00"
            ),
            _ => {
                let month = MONTHS[month as usize - 1];
                format!("{day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02}.{millis:03}")
            }
        }
    }
}

/// The shapes of the parts of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub format: Format,
    pub timestamp: Timestamp,
}

impl Shape {
    /// One line, its end included.
    pub fn line(self, level: Level, since: Duration, text: &str) -> String {
        let (pid, time) = (std::process::id(), self.timestamp.print(since));
        let name = level.name();
        match self.format {
            Format::Legacy => format!("{pid}:M {time} {} {}\n", level.mark(), one_line(text)),
            Format::Logfmt => {
                // COMPAT: double quotes become single ones, as Valkey writes them.
                let text = one_line(text).replace('"', "'");
                format!(
                    "pid={pid} role=primary timestamp=\"{time}\" level={name} message=\"{text}\"\n"
                )
            }
            Format::Json => {
                let mut line = format!(
                    "{{\"pid\":{pid},\"role\":\"primary\",\"timestamp\":\"{time}\",\
                     \"level\":\"{name}\",\"message\":\""
                );
                push_json(&mut line, text);
                line.push_str("\"}\n");
                line
            }
        }
    }
}

/// One call is one line of the log: nobody can forge another, or send a terminal commands.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        false => Cow::Borrowed(text),
        true => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
    }
}

/// Control characters are escaped, so it is one line, too.
fn push_json(line: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' | '\\' => line.extend(['\\', character]),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            control if control.is_control() => {
                // Writing to a string can't fail.
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
            other => line.push(other),
        }
    }
}

/// The Gregorian date of a day counted from 1970, by eras of 400 years that begin in March.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
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

/// `Nov 16 13:11:06`, as syslog has it: days below ten with a space.
pub fn syslog_time(since: Duration) -> String {
    let (_, month, day) = civil_from_days((since.as_secs() / SECONDS_PER_DAY) as i64);
    let seconds = since.as_secs() % SECONDS_PER_DAY;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {day:2} {hour:02}:{minute:02}:{second:02}", MONTHS[month as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(11_016), (2000, 2, 29));
        assert_eq!(civil_from_days(20_772), (2026, 11, 15));
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
    }

    /// Shapes that a Valkey 9.1.2 wrote for the same moment, and the process id is ours.
    #[test]
    fn lines_have_the_shapes_of_valkey() {
        let moment = Duration::from_millis(1_794_834_666_806);
        let pid = std::process::id();
        let line = |format, timestamp| {
            Shape { format, timestamp }.line(Level::Notice, moment, "Loaded \"x\" \\")
        };
        use {super::Format as F, super::Timestamp as T};
        assert_eq!(
            line(F::Legacy, T::Legacy),
            format!("{pid}:M 16 Nov 2026 13:11:06.806 * Loaded \"x\" \\\n")
        );
        assert_eq!(
            line(F::Legacy, T::Iso8601),
            format!("{pid}:M 2026-11-16T13:11:06.806+00:00 * Loaded \"x\" \\\n")
        );
        assert_eq!(
            line(F::Logfmt, T::Milliseconds),
            format!(
                "pid={pid} role=primary timestamp=\"1794834666806\" level=notice \
                 message=\"Loaded 'x' \\\"\n"
            )
        );
        assert_eq!(
            line(F::Json, T::Iso8601),
            format!(
                "{{\"pid\":{pid},\"role\":\"primary\",\
                 \"timestamp\":\"2026-11-16T13:11:06.806+00:00\",\"level\":\"notice\",\
                 \"message\":\"Loaded \\\"x\\\" \\\\\"}}\n"
            )
        );
        assert_eq!(syslog_time(moment), "Nov 16 13:11:06");
        assert_eq!(syslog_time(Duration::ZERO), "Jan  1 00:00:00");
    }

    /// JSON had blanks for them, too, as the other formats, in which they would forge lines.
    #[test]
    fn control_characters_are_escaped_in_json_and_blank_elsewhere() {
        let line = |format| {
            let shape = Shape { format, ..Shape::default() };
            shape.line(Level::Notice, Duration::ZERO, "a\tb\nc\rd\u{8}e\u{c}f\u{1}g")
        };
        let json = "\"message\":\"a\\tb\\nc\\rd\\be\\ff\\u0001g\"}\n";
        assert!(line(Format::Json).ends_with(json), "{}", line(Format::Json));
        assert!(line(Format::Legacy).ends_with(" a b c d e f g\n"));
        assert!(line(Format::Logfmt).ends_with("\"a b c d e f g\"\n"));
    }
}
