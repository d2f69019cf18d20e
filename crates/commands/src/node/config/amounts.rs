//! Directives whose value has parts: save points, output buffer limits, percentiles, OOM scores.
//! Each is kept as its printed text; here it is checked, printed and taken apart again.

use russet_base::num::{parse_f64, parse_i64, parse_memory_bytes};

/// A snapshot is due after this many seconds, if there were this many changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    pub seconds: u64,
    pub changes: u64,
}

pub(super) const SAVE_DEFAULT: &str = "3600 1 300 100 60 10000";
pub(super) const BUFFER_LIMITS_DEFAULT: &str =
    "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";
pub(super) const OOM_SCORES_DEFAULT: &str = "0 200 800";
pub(super) const PERCENTILES_DEFAULT: &str = "50 99 99.9";

const OOM_SCORE_MAX: i64 = 2000;

/// A kind of client that has its own output buffer limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientClass {
    Normal,
    Replica,
    Pubsub,
}

impl ClientClass {
    pub const ALL: [ClientClass; 3] =
        [ClientClass::Normal, ClientClass::Replica, ClientClass::Pubsub];

    /// As CONFIG GET prints it.
    pub const fn name(self) -> &'static str {
        match self {
            ClientClass::Normal => "normal",
            ClientClass::Replica => "slave",
            ClientClass::Pubsub => "pubsub",
        }
    }

    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is("normal") => Some(ClientClass::Normal),
            () if is("slave") || is("replica") => Some(ClientClass::Replica),
            () if is("pubsub") => Some(ClientClass::Pubsub),
            () => None,
        }
    }
}

/// When a client is closed for what it has not read: at once above `hard_bytes`, and after
/// `soft_seconds` above `soft_bytes`. Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BufferLimit {
    pub hard_bytes: u64,
    pub soft_bytes: u64,
    pub soft_seconds: u64,
}

/// The limits of each class, in the order of `ClientClass::ALL`.
pub(super) type BufferLimits = [BufferLimit; ClientClass::ALL.len()];

pub(super) fn parse_save_points<W: AsRef<[u8]>>(args: &[W]) -> Result<Vec<SavePoint>, String> {
    let number = |arg: &W, min: i64| {
        let value =
            parse_i64(arg.as_ref()).filter(|value| (min..=i64::from(i32::MAX)).contains(value));
        value.and_then(|value| u64::try_from(value).ok())
    };
    args.chunks(2)
        .map(|pair| match pair {
            [seconds, changes] => {
                Some(SavePoint { seconds: number(seconds, 1)?, changes: number(changes, 0)? })
            }
            _ => None,
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| "Invalid save parameters".to_owned())
}

pub(super) fn print_save_points(points: &[SavePoint]) -> String {
    let pairs = points.iter().map(|point| format!("{} {}", point.seconds, point.changes));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Reads limits of some classes; the others stay what they are in `limits`.
pub(super) fn parse_buffer_limits<W: AsRef<[u8]>>(
    args: &[W],
    mut limits: BufferLimits,
) -> Result<BufferLimits, String> {
    if !args.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    for args in args.chunks_exact(4) {
        let [class, hard, soft, seconds] = args else { continue };
        let Some(class) = ClientClass::named(class.as_ref()) else {
            return Err("Invalid client class specified in buffer limit configuration.".to_owned());
        };
        let seconds = parse_i64(seconds.as_ref())
            .filter(|seconds| *seconds <= i64::from(i32::MAX))
            .and_then(|seconds| u64::try_from(seconds).ok());
        let (Some(hard_bytes), Some(soft_bytes), Some(soft_seconds)) =
            (parse_memory_bytes(hard.as_ref()), parse_memory_bytes(soft.as_ref()), seconds)
        else {
            let fault =
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
            return Err(fault.to_owned());
        };
        limits[class as usize] = BufferLimit { hard_bytes, soft_bytes, soft_seconds };
    }
    Ok(limits)
}

/// Takes apart what `print_buffer_limits` wrote.
pub(super) fn read_buffer_limits(text: &[u8]) -> BufferLimits {
    let args: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
    parse_buffer_limits(&args, BufferLimits::default()).unwrap_or_default()
}

pub(super) fn print_buffer_limit(class: ClientClass, limit: BufferLimit) -> String {
    format!("{} {} {} {}", class.name(), limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
}

pub(super) fn print_buffer_limits(limits: &BufferLimits) -> String {
    let classes = ClientClass::ALL.iter().zip(limits);
    classes.map(|(class, limit)| print_buffer_limit(*class, *limit)).collect::<Vec<_>>().join(" ")
}

pub(super) fn parse_percentiles<W: AsRef<[u8]>>(args: &[W]) -> Result<Vec<f64>, String> {
    args.iter()
        .map(|arg| match parse_f64(arg.as_ref()) {
            None => Err("Invalid latency-tracking-info-percentiles parameters".to_owned()),
            Some(percentile) if (0.0..=100.0).contains(&percentile) => Ok(percentile),
            Some(_) => Err("latency-tracking-info-percentiles parameters should sit between \
                            [0.0,100.0]"
                .to_owned()),
        })
        .collect()
}

/// Six decimals at most, without zeros at the end.
pub(super) fn print_percentiles(percentiles: &[f64]) -> String {
    let texts = percentiles.iter().map(|percentile| {
        let text = format!("{percentile:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    });
    texts.collect::<Vec<_>>().join(" ")
}

pub(super) fn parse_oom_scores<W: AsRef<[u8]>>(args: &[W]) -> Result<String, String> {
    if args.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let score = |arg: &W| {
        parse_i64(arg.as_ref()).filter(|score| (-OOM_SCORE_MAX..=OOM_SCORE_MAX).contains(score))
    };
    let scores = args.iter().map(score).collect::<Option<Vec<_>>>().ok_or_else(|| {
        "Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned()
    })?;
    Ok(scores.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}
