//! From arguments to a value and back: what each kind of directive accepts, what it answers to
//! anything else, and how CONFIG GET and a rewritten file print it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use russet_base::num::{parse_i64, parse_memory_bytes, parse_u64};

use super::amounts::{self, ClientClass};
use super::directive::Directive;
use super::events::EventFlags;
use super::spec::{Kind, Spec, TextCheck};

/// What a directive is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Of flags, numbers, amounts and choices, as `Kind` says.
    Number(i64),
    /// Of everything else, as CONFIG GET prints it.
    Text(Arc<[u8]>),
}

impl Value {
    pub(super) fn text(text: impl AsRef<[u8]>) -> Value {
        Value::Text(Arc::from(text.as_ref()))
    }

    pub(super) fn number(&self) -> i64 {
        match self {
            Value::Number(number) => *number,
            Value::Text(_) => 0,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Value::Number(_) => b"",
            Value::Text(text) => text,
        }
    }
}

const SHUTDOWN_SAVE: i64 = 1;
const SHUTDOWN_NOSAVE: i64 = 1 << 1;
/// Longest host name.
const HOST_NAME_BYTES_MAX: usize = 255;
/// What may stand between braces in `proc-title-template`.
const TITLE_FIELDS: [&str; 7] =
    ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];

impl Spec {
    /// The value before anything is said.
    pub(super) fn default_value(&self) -> Value {
        match self.kind {
            Kind::Flag { default } => Value::Number(i64::from(default)),
            Kind::Integer { default, .. } | Kind::Octal { default, .. } => Value::Number(default),
            Kind::Memory { default, .. } => Value::Number(default.cast_signed()),
            Kind::Choice { default, names } => {
                Value::Number(position(names, default.as_bytes()).unwrap_or(0))
            }
            Kind::MemoryOrPercent | Kind::Choices { .. } | Kind::EventClasses => Value::Number(0),
            Kind::Text { default, .. } | Kind::List { default, .. } => Value::text(default),
            Kind::SavePoints => Value::text(amounts::SAVE_DEFAULT),
            Kind::BufferLimits => Value::text(amounts::BUFFER_LIMITS_DEFAULT),
            Kind::OomScores => Value::text(amounts::OOM_SCORES_DEFAULT),
            Kind::Percentiles => Value::text(amounts::PERCENTILES_DEFAULT),
        }
    }

    /// Reads a value. `current` is what it replaces, which matters where a value has parts. The
    /// error is what CONFIG SET says behind the dash.
    pub(super) fn parse<W: AsRef<[u8]>>(
        &self,
        args: &[W],
        current: &Value,
    ) -> Result<Value, String> {
        match args {
            [arg] if !self.takes_many() => self.parse_one(arg.as_ref()),
            _ if !self.takes_many() => Err("wrong number of arguments".to_owned()),
            _ => self.parse_many(args, current),
        }
    }

    /// The value as it is named when it asks for a feature that is not there yet.
    pub(super) fn unsupported(&self, value: &Value) -> Option<String> {
        if self.supported.is_empty() {
            return None;
        }
        let printed = self.print(value);
        let is_supported = self.supported.contains(&printed.as_str());
        (!is_supported).then(|| format!("{} '{printed}'", self.directive.name()))
    }

    fn parse_one(&self, arg: &[u8]) -> Result<Value, String> {
        let number = match self.kind {
            Kind::Flag { .. } => parse_flag(arg)?,
            Kind::Integer { min, max, clamp, .. } => {
                let number = parse_i64(arg)
                    .ok_or_else(|| "argument couldn't be parsed into an integer".to_owned())?;
                within(number, min, max)?;
                clamp.map_or(number, |(low, high)| number.clamp(low, high))
            }
            Kind::Octal { max, .. } => parse_octal(arg, max)?,
            Kind::Memory { min, max, .. } => {
                let bytes = parse_memory_bytes(arg)
                    .ok_or_else(|| "argument must be a memory value".to_owned())?;
                within(bytes, min, max)?;
                bytes.cast_signed()
            }
            Kind::MemoryOrPercent => parse_memory_or_percent(arg)?,
            // COMPAT: of `oom-score-adj` it is another word for `yes`, and shown so.
            Kind::Choice { names, .. }
                if self.directive == Directive::OomScoreAdj
                    && arg.eq_ignore_ascii_case(b"relative") =>
            {
                position(names, b"yes").ok_or_else(|| one_of(names))?
            }
            Kind::Choice { names, .. } => position(names, arg).ok_or_else(|| one_of(names))?,
            Kind::EventClasses => match EventFlags::parse(arg) {
                Some(flags) => i64::from(flags.0),
                None => {
                    let fault = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
                    return Err(fault.to_owned());
                }
            },
            Kind::Text { check, .. } => return self.parse_text(arg, check),
            _ => return Err("wrong number of arguments".to_owned()),
        };
        Ok(Value::Number(number))
    }

    fn parse_text(&self, arg: &[u8], check: TextCheck) -> Result<Value, String> {
        if check == TextCheck::Directory {
            return parse_directory(arg);
        }
        check_text(self.directive, arg, check)?;
        Ok(Value::text(arg))
    }

    fn parse_many<W: AsRef<[u8]>>(&self, args: &[W], current: &Value) -> Result<Value, String> {
        // A lone empty argument says that there is none.
        let args = match args {
            [arg] if arg.as_ref().is_empty() => &[],
            _ => args,
        };
        Ok(match self.kind {
            Kind::Choices { names } => Value::Number(parse_choices(args, names)?),
            Kind::List { len_max, .. } => self.parse_list(args, len_max)?,
            Kind::SavePoints => {
                Value::text(amounts::print_save_points(&amounts::parse_save_points(args)?))
            }
            Kind::BufferLimits => {
                let limits = amounts::read_buffer_limits(current.bytes());
                let limits = amounts::parse_buffer_limits(args, limits)?;
                Value::text(amounts::print_buffer_limits(&limits))
            }
            Kind::OomScores => Value::text(amounts::parse_oom_scores(args)?),
            Kind::Percentiles => {
                Value::text(amounts::print_percentiles(&amounts::parse_percentiles(args)?))
            }
            _ => return Err("wrong number of arguments".to_owned()),
        })
    }

    fn parse_list<W: AsRef<[u8]>>(&self, args: &[W], len_max: usize) -> Result<Value, String> {
        if self.directive == Directive::ReplicaOf {
            let is = |arg: &W, name: &[u8]| arg.as_ref().eq_ignore_ascii_case(name);
            match args {
                [] => {}
                [no, one] if is(no, b"no") && is(one, b"one") => return Ok(Value::text("")),
                [_, port] => {
                    let port = parse_u64(port.as_ref()).filter(|port| (1..=65535).contains(port));
                    port.ok_or_else(|| "Invalid master port".to_owned())?;
                }
                _ => return Err("wrong number of arguments".to_owned()),
            }
        }
        if args.len() > len_max {
            return Err("Too many bind addresses specified.".to_owned());
        }
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        Ok(Value::text(args.join(&b' ')))
    }

    /// As CONFIG GET prints it. Bytes that are no UTF-8 are replaced.
    pub(super) fn print(&self, value: &Value) -> String {
        let number = value.number();
        match self.kind {
            Kind::Flag { .. } => (if number == 0 { "no" } else { "yes" }).to_owned(),
            Kind::Integer { .. } => number.to_string(),
            Kind::Octal { .. } => format!("{number:o}"),
            Kind::Memory { .. } => number.cast_unsigned().to_string(),
            Kind::MemoryOrPercent if number < 0 => format!("{}%", number.unsigned_abs()),
            Kind::MemoryOrPercent => number.to_string(),
            Kind::Choice { names, .. } => {
                let name = usize::try_from(number).ok().and_then(|index| names.get(index));
                name.copied().unwrap_or("").to_owned()
            }
            Kind::Choices { names } => print_choices(number, names),
            Kind::EventClasses => EventFlags(u32::try_from(number).unwrap_or(0)).shown(),
            _ => String::from_utf8_lossy(value.bytes()).into_owned(),
        }
    }

    /// What is allowed, for a person.
    pub(super) fn allowed(&self) -> String {
        match self.kind {
            Kind::Flag { .. } => "yes or no".to_owned(),
            Kind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Octal { max, .. } => format!("an octal number up to {max:o}"),
            Kind::Memory { min, .. } => {
                format!("an amount of memory such as 100mb, at least {min} bytes")
            }
            Kind::MemoryOrPercent => {
                "an amount of memory such as 100mb, or a percentage".to_owned()
            }
            Kind::Choice { names, .. } => format!("one of {}", names.join(", ")),
            Kind::Choices { names } => format!("any of {}", names.join(", ")),
            Kind::Text { .. } => "one value, in quotes if it has spaces".to_owned(),
            Kind::List { len_max, .. } => format!("up to {len_max} words"),
            Kind::SavePoints => "pairs of seconds and changes, or \"\"".to_owned(),
            Kind::BufferLimits => {
                "a class (normal, replica, pubsub), hard limit, soft limit, soft seconds".to_owned()
            }
            Kind::OomScores => "three whole numbers from -2000 to 2000".to_owned(),
            Kind::Percentiles => "numbers from 0 to 100".to_owned(),
            Kind::EventClasses => "letters of g$lshzxetdKEAmnoc".to_owned(),
        }
    }

    /// The lines of a file that say what holds anyway.
    pub fn default_lines(&self) -> Vec<String> {
        let value = match self.kind {
            Kind::Text { check: TextCheck::Directory, .. } => Value::text("./"),
            _ => self.default_value(),
        };
        let lines = self.lines(&value);
        lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// The lines of a file that set this value.
    pub(super) fn lines(&self, value: &Value) -> Vec<Vec<u8>> {
        let name = self.directive.name();
        let line = |rest: &[u8]| [name.as_bytes(), b" ", rest].concat();
        match self.kind {
            Kind::Memory { .. } => vec![line(amount(value.number().cast_unsigned()).as_bytes())],
            Kind::MemoryOrPercent if value.number() >= 0 => {
                vec![line(amount(value.number().cast_unsigned()).as_bytes())]
            }
            Kind::EventClasses => {
                let flags = EventFlags(u32::try_from(value.number()).unwrap_or(0));
                vec![line(&quoted_arg(flags.complete().as_bytes()))]
            }
            Kind::Text { .. } => vec![line(&quoted_arg(value.bytes()))],
            Kind::SavePoints | Kind::List { .. } | Kind::Percentiles
                if value.bytes().is_empty() =>
            {
                vec![line(b"\"\"")]
            }
            Kind::SavePoints => {
                let args: Vec<&[u8]> = value.bytes().split(|byte| *byte == b' ').collect();
                args.chunks(2).map(|pair| line(&pair.join(&b' '))).collect()
            }
            Kind::BufferLimits => {
                let limits = amounts::read_buffer_limits(value.bytes());
                let text = |(class, limit): (&ClientClass, &amounts::BufferLimit)| {
                    line(amounts::print_buffer_limit(*class, *limit).as_bytes())
                };
                ClientClass::ALL.iter().zip(&limits).map(text).collect()
            }
            Kind::List { .. } | Kind::OomScores | Kind::Percentiles => {
                let args = value.bytes().split(|byte| *byte == b' ').map(quoted_arg);
                vec![line(&args.collect::<Vec<_>>().join(&b' '))]
            }
            _ => vec![line(self.print(value).as_bytes())],
        }
    }
}

fn parse_flag(arg: &[u8]) -> Result<i64, String> {
    match arg.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(1),
        b"no" => Ok(0),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

fn parse_octal(arg: &[u8], max: i64) -> Result<i64, String> {
    let is_octal = !arg.is_empty() && arg.iter().all(|byte| matches!(byte, b'0'..=b'7'));
    let digits = std::str::from_utf8(arg).ok().filter(|_| is_octal);
    let number = digits.and_then(|digits| i64::from_str_radix(digits, 8).ok());
    let number =
        number.ok_or_else(|| "argument couldn't be parsed as an octal number".to_owned())?;
    match number <= max {
        true => Ok(number),
        false => Err(format!("argument must be between 0 and {max:o} inclusive")),
    }
}

fn parse_memory_or_percent(arg: &[u8]) -> Result<i64, String> {
    let fault = || "argument must be a memory or percent value".to_owned();
    if let [digits @ .., b'%'] = arg {
        let percent = parse_i64(digits).filter(|percent| *percent >= 0).ok_or_else(fault)?;
        return match percent <= 100 {
            true => Ok(-percent),
            false => Err("percentage argument must be less or equal to 100".to_owned()),
        };
    }
    let bytes = parse_memory_bytes(arg).ok_or_else(fault)?;
    within(bytes, 0, i64::MAX.cast_unsigned())?;
    Ok(bytes.cast_signed())
}

fn parse_choices<W: AsRef<[u8]>>(args: &[W], names: &[&str]) -> Result<i64, String> {
    if args.is_empty() {
        return Err(one_of(names));
    }
    let mut bits = 0;
    for arg in args {
        // The first name is the absence of all others.
        bits |= match position(names, arg.as_ref()).ok_or_else(|| one_of(names))? {
            0 => 0,
            index => 1 << (index - 1),
        };
    }
    if bits & SHUTDOWN_SAVE != 0 && bits & SHUTDOWN_NOSAVE != 0 {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
    }
    Ok(bits)
}

fn print_choices(bits: i64, names: &[&str]) -> String {
    let [none, some @ ..] = names else { return String::new() };
    let set = some.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    if set.is_empty() { (*none).to_owned() } else { set.join(" ") }
}

fn parse_directory(arg: &[u8]) -> Result<Value, String> {
    let path = Path::new(os_str(arg)?);
    let path = std::fs::canonicalize(path).map_err(|fault| super::error::os_text(&fault))?;
    if !path.is_dir() {
        return Err("Not a directory".to_owned());
    }
    Ok(Value::text(path.as_os_str().as_encoded_bytes()))
}

/// A path as the system has it.
pub(super) fn os_str(bytes: &[u8]) -> Result<&std::ffi::OsStr, String> {
    #[cfg(unix)]
    {
        Ok(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    {
        let text = std::str::from_utf8(bytes).map_err(|_| "not a path".to_owned())?;
        Ok(std::ffi::OsStr::new(text))
    }
}

fn check_text(directive: Directive, arg: &[u8], check: TextCheck) -> Result<(), String> {
    let name = directive.name();
    let text = std::str::from_utf8(arg).unwrap_or("\u{fffd}");
    let has_slash = || arg.contains(&b'/');
    let fault = match check {
        TextCheck::FileName if has_slash() => format!("{name} can't be a path, just a filename"),
        TextCheck::FileName if arg.is_empty() && directive != Directive::DbFilename => {
            format!("{name} can't be empty")
        }
        TextCheck::DirName if has_slash() => format!("{name} can't be a path, just a dirname"),
        TextCheck::DirName if arg.is_empty() => format!("{name} can't be empty"),
        TextCheck::HostName if arg.len() > HOST_NAME_BYTES_MAX => {
            "Hostnames must be less than 256 characters".to_owned()
        }
        TextCheck::HostName if !arg.iter().all(|byte| is_host_byte(*byte)) => {
            "Hostnames may only contain alphanumeric characters, hyphens or dots".to_owned()
        }
        TextCheck::Ipv4 if !arg.is_empty() && text.parse::<Ipv4Addr>().is_err() => {
            "Invalid IPv4 address".to_owned()
        }
        TextCheck::Ipv6 if !arg.is_empty() && text.parse::<Ipv6Addr>().is_err() => {
            "Invalid IPv6 address".to_owned()
        }
        TextCheck::TitleTemplate if !is_title_template(text) => {
            "template format is invalid or contains unknown variables".to_owned()
        }
        TextCheck::Version if !is_version(text) => {
            "argument must be numbers with dots between, such as 8.0.0".to_owned()
        }
        _ => return Ok(()),
    };
    Err(fault)
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 32 && text.split('.').count() == 3 && text.split('.').all(is_number)
}

/// Every `{` names a field that is known and is closed. COMPAT: without the name of the program
/// something must be left.
fn is_title_template(text: &str) -> bool {
    let mut parts = text.split('{');
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((field, behind)) = part.split_once('}') else { return false };
        match field {
            "title" | "server-mode" => {}
            _ if TITLE_FIELDS.contains(&field) => rest.push_str(field),
            _ => return false,
        }
        rest.push_str(behind);
    }
    !rest.trim().is_empty()
}

fn position(names: &[&str], arg: &[u8]) -> Option<i64> {
    let index = names.iter().position(|name| name.as_bytes().eq_ignore_ascii_case(arg))?;
    i64::try_from(index).ok()
}

fn one_of(names: &[&str]) -> String {
    format!("argument(s) must be one of the following: {}", names.join(", "))
}

fn within<N: PartialOrd + std::fmt::Display>(number: N, min: N, max: N) -> Result<(), String> {
    match (min <= number) && (number <= max) {
        true => Ok(()),
        false => Err(format!("argument must be between {min} and {max} inclusive")),
    }
}

/// An amount with the largest unit that loses nothing.
fn amount(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}gb", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}mb", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}kb", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// An argument as a file has it, in quotes unless it needs none.
pub(super) fn quoted_arg(bytes: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,*$-".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return bytes.to_vec();
    }
    let mut quoted = Vec::new();
    russet_base::text::write_quoted(&mut quoted, bytes);
    quoted
}
