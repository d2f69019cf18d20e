//! Requests as prebuilt bytes. A template is written once as text and turned into the image of one
//! request in which every field has a fixed width, so that making the next request is no more than
//! overwriting a few digits in place.
//!
//! | text | becomes |
//! |---|---|
//! | `{r}` | a random key number, 12 digits |
//! | `{k}` | one random key number for the whole request, 12 digits |
//! | `{s}`, `{s:D}` | the next of a sequence, the same in the whole request, 12 or D digits |
//! | `{n}` | a random integer of 9 digits that does not begin with 0 |
//! | `{i:N}` | a random integer below N, with as many digits as the largest of them |
//! | `{x:N}` | N random letters |
//! | `{lon}`, `{lat}` | a random point on the globe, in degrees |
//! | `{v:N}` | N bytes of filler |
//! | `{hex:DIGITS}` | bytes, two digits each |
//! | `{script:NAME}` | the script of this name in `tests/seeds` |
//! | `10x[ a b ]` | the arguments between the brackets, ten times |
//! | `;` | ends one command of the request and begins the next |

use crate::failure::{Failure, Result};
use crate::workloads::scripts;
use russet_protocol::request::encode_into;
use std::ops::Range;

const KEY_DIGITS: usize = 12;
const NUMBER_DIGITS: usize = 9;
const NUMBER_MIN: u64 = 100_000_000;
const NUMBER_MAX: u64 = 999_999_999;
const DEGREE_BYTES: usize = "+179.000000".len();
const DEGREE_PARTS: u64 = 1_000_000;
/// Longest filler: well over the largest value that any workload wants.
const FILLER_BYTES_MAX: usize = 64 << 20;

/// Where key numbers and sequence numbers come from.
#[derive(Clone, Debug)]
pub struct Source {
    state: u64,
    keys: u64,
    sequence: u64,
}

impl Source {
    /// The same seed gives the same numbers.
    pub fn seeded(seed: u64) -> Source {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Source { state, keys: 1, sequence: 0 }
    }

    /// Random key numbers lie below `keys`.
    pub fn among(self, keys: u64) -> Source {
        Source { keys: keys.max(1), ..self }
    }

    /// Another source over the same keys, with random numbers of its own.
    pub fn fork(&mut self) -> Source {
        Source { sequence: self.sequence, ..Source::seeded(self.random()).among(self.keys) }
    }

    /// xorshift64*: cheap, and uniform enough to choose keys with.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A random number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        self.random() as f64 / u64::MAX as f64
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.random()) * u128::from(bound)) >> 64) as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    RandomKey,
    SharedKey,
    Sequence,
    Number,
    Below(u64),
    Letters,
    /// Within so many degrees of zero, on either side.
    Degrees(u64),
}

#[derive(Clone, Copy, Debug)]
struct Patch {
    offset: usize,
    len: usize,
    field: Field,
}

/// One request: a command, or several that belong together.
#[derive(Clone, Debug)]
pub struct Template {
    image: Vec<u8>,
    patches: Vec<Patch>,
    commands: usize,
}

impl Template {
    pub fn parse(text: &str) -> Result<Template> {
        let args = expand(text)?;
        let mut template = Template { image: Vec::new(), patches: Vec::new(), commands: 0 };
        for command in args.split(|arg| arg == ";") {
            template.add_command(command, text)?;
        }
        Ok(template)
    }

    /// Replies that one request gets.
    pub fn replies(&self) -> usize {
        self.commands
    }

    fn add_command(&mut self, args: &[String], text: &str) -> Result<()> {
        if args.is_empty() {
            return Err(Failure::Usage(format!("an empty command in the template '{text}'")));
        }
        let mut filled = Vec::with_capacity(args.len());
        let mut fields = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            filled.push(fill(arg, |at, field| fields.push((index, at, field)))?);
        }
        let start = self.image.len();
        encode_into(&filled, &mut self.image);
        let args_start = arg_offsets(&filled, start);
        for (arg, at, field) in fields {
            self.patches.push(Patch { offset: args_start[arg] + at.start, len: at.len(), field });
        }
        self.commands += 1;
        Ok(())
    }
}

/// Where each argument's bytes begin in the encoding of a command that begins at `start`.
fn arg_offsets(args: &[Vec<u8>], start: usize) -> Vec<usize> {
    let header = |number: usize| format!("*{number}\r\n").len();
    let mut at = start + header(args.len());
    args.iter()
        .map(|arg| {
            let begin = at + header(arg.len());
            at = begin + arg.len() + 2;
            begin
        })
        .collect()
}

/// Splits into arguments and writes out the repetitions.
fn expand(text: &str) -> Result<Vec<String>> {
    let mut args = Vec::new();
    let mut group: Option<(usize, usize)> = None;
    for arg in text.split_ascii_whitespace() {
        if let Some(times) = arg.strip_suffix("x[").and_then(|times| times.parse().ok()) {
            group = Some((times, args.len()));
        } else if arg == "]" {
            let (times, start) = group.take().ok_or_else(|| unclosed(text))?;
            let repeated: Vec<String> = args.drain(start..).collect();
            (0..times).for_each(|_| args.extend_from_slice(&repeated));
        } else {
            args.push(arg.to_owned());
        }
    }
    if group.is_some() { Err(unclosed(text)) } else { Ok(args) }
}

fn unclosed(text: &str) -> Failure {
    Failure::Usage(format!("unbalanced brackets in the template '{text}'"))
}

/// An argument with room for its fields; reports where each field is.
fn fill(arg: &str, mut found: impl FnMut(Range<usize>, Field)) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(arg.len());
    let mut rest = arg;
    while let Some(open) = rest.find('{') {
        out.extend_from_slice(&rest.as_bytes()[..open]);
        let Some(close) = rest[open..].find('}').map(|at| open + at) else { break };
        let name = &rest[open + 1..close];
        let unknown = || Failure::Usage(format!("unknown field '{{{name}}}' in '{arg}'"));
        if let Some(bytes) = parameter(name, "v:", FILLER_BYTES_MAX as u64) {
            add_filler(&mut out, bytes as usize);
        } else if let Some(digits) = name.strip_prefix("hex:") {
            out.extend(bytes_of(digits).ok_or_else(unknown)?);
        } else if let Some(name) = name.strip_prefix("script:") {
            out.extend_from_slice(scripts::source(name).ok_or_else(unknown)?.as_bytes());
        } else {
            let (len, field) = field(name).ok_or_else(unknown)?;
            found(reserve(&mut out, len), field);
        }
        rest = &rest[close + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// The number after a prefix, if it is not too large.
fn parameter(name: &str, prefix: &str, max: u64) -> Option<u64> {
    name.strip_prefix(prefix)?.parse().ok().filter(|number| (1..=max).contains(number))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// A field that is filled anew for each request, and its width.
fn field(name: &str) -> Option<(usize, Field)> {
    if let Some(digits) = parameter(name, "s:", KEY_DIGITS as u64) {
        return Some((digits as usize, Field::Sequence));
    }
    if let Some(bound) = parameter(name, "i:", 1_000_000_000_000) {
        return Some(((bound - 1).checked_ilog10().unwrap_or(0) as usize + 1, Field::Below(bound)));
    }
    if let Some(letters) = parameter(name, "x:", 1024) {
        return Some((letters as usize, Field::Letters));
    }
    Some(match name {
        "r" => (KEY_DIGITS, Field::RandomKey),
        "k" => (KEY_DIGITS, Field::SharedKey),
        "s" => (KEY_DIGITS, Field::Sequence),
        "n" => (NUMBER_DIGITS, Field::Number),
        "lon" => (DEGREE_BYTES, Field::Degrees(179)),
        "lat" => (DEGREE_BYTES, Field::Degrees(84)),
        _ => return None,
    })
}

fn reserve(out: &mut Vec<u8>, len: usize) -> Range<usize> {
    let offset = out.len();
    out.resize(offset + len, b'0');
    offset..offset + len
}

/// Letters without a pattern: no server may store them shorter than they are.
fn add_filler(out: &mut Vec<u8>, bytes: usize) {
    let mut source = Source::seeded(bytes as u64);
    out.extend((0..bytes).map(|_| b'a' + source.below(26) as u8));
}

/// The requests of one pipeline, side by side in one buffer that is used again and again.
#[derive(Debug)]
pub struct Pipeline<'a> {
    template: &'a Template,
    bytes: Vec<u8>,
}

impl<'a> Pipeline<'a> {
    pub fn new(template: &'a Template, requests: usize) -> Pipeline<'a> {
        Pipeline { template, bytes: template.image.repeat(requests) }
    }

    /// The next `requests` requests, at most as many as the pipeline holds.
    pub fn next(&mut self, requests: usize, source: &mut Source) -> &[u8] {
        let size = self.template.image.len();
        let bytes = &mut self.bytes[..size * requests];
        for request in bytes.chunks_exact_mut(size) {
            patch(request, &self.template.patches, source);
        }
        bytes
    }
}

#[inline]
fn patch(request: &mut [u8], patches: &[Patch], source: &mut Source) {
    if patches.is_empty() {
        return;
    }
    let shared = source.below(source.keys);
    let sequence = source.sequence;
    source.sequence += 1;
    for patch in patches {
        let out = &mut request[patch.offset..patch.offset + patch.len];
        let value = match patch.field {
            Field::RandomKey => source.below(source.keys),
            Field::SharedKey => shared,
            Field::Sequence => sequence,
            Field::Number => NUMBER_MIN + source.below(NUMBER_MAX - NUMBER_MIN + 1),
            Field::Below(bound) => source.below(bound),
            Field::Letters => {
                put_letters(out, source);
                continue;
            }
            Field::Degrees(max) => {
                put_degrees(out, max, source);
                continue;
            }
        };
        put_digits(out, value);
    }
}

/// One draw for some letters: they need not be of equal chance, only without a pattern.
fn put_letters(out: &mut [u8], source: &mut Source) {
    for letters in out.chunks_mut(8) {
        let mut random = source.random();
        for letter in letters {
            *letter = b'a' + (random % 26) as u8;
            random /= 26;
        }
    }
}

/// A sign, three digits and six behind the point.
fn put_degrees(out: &mut [u8], max: u64, source: &mut Source) {
    let millionths = source.below(2 * max * DEGREE_PARTS);
    let (sign, rest) = match millionths.checked_sub(max * DEGREE_PARTS) {
        Some(rest) => (b'+', rest),
        None => (b'-', millionths),
    };
    out[0] = sign;
    put_digits(&mut out[1..4], rest / DEGREE_PARTS);
    out[4] = b'.';
    put_digits(&mut out[5..], rest % DEGREE_PARTS);
}

/// Decimal, right-aligned, zeros in front; a number that is too long loses its first digits.
#[inline]
fn put_digits(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(template: &str, requests: usize) -> String {
        let template = Template::parse(template).unwrap();
        let mut pipeline = Pipeline::new(&template, requests);
        let mut source = Source::seeded(7).among(1_000_000);
        pipeline.next(requests, &mut source);
        String::from_utf8(pipeline.next(requests, &mut source).to_vec()).unwrap()
    }

    #[test]
    fn a_sequence_goes_on_across_pipelines() {
        let expected = "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000002\r\n\
                        *2\r\n$3\r\nGET\r\n$16\r\nkey:000000000003\r\n";
        assert_eq!(text("GET key:{s}", 2), expected);
    }

    #[test]
    fn groups_fields_and_fillers_have_their_sizes() {
        let made = text("MSET 2x[ key:{r} {v:5} ]", 1);
        assert!(made.starts_with("*5\r\n$4\r\nMSET\r\n$16\r\nkey:000000"), "{made}");
        let lines: Vec<&str> = made.split("\r\n").collect();
        assert_eq!((lines[4].len(), lines[6].len(), lines[8].len()), (16, 5, 16));
        assert_ne!(lines[4], lines[8]);
    }

    #[test]
    fn one_key_is_shared_by_the_commands_of_a_request() {
        let template = Template::parse("SET a:{k} {n} ; GET a:{k}").unwrap();
        assert_eq!(template.replies(), 2);
        let made = text("SET a:{k} {n} ; GET a:{k}", 1);
        let lines: Vec<&str> = made.split("\r\n").collect();
        assert_eq!(lines[4], lines[11]);
        assert!(lines[6].len() == 9 && !lines[6].starts_with('0'));
    }

    #[test]
    fn numbers_letters_and_coordinates_have_their_widths() {
        let made = text("X {s:5} {i:10} {i:1000} {i:1001} {x:20} {lon} {lat}", 1);
        let lines: Vec<&str> = made.split("\r\n").collect();
        let sizes: Vec<usize> = (4..18).step_by(2).map(|at| lines[at].len()).collect();
        assert_eq!(sizes, [5, 1, 3, 4, 20, 11, 11]);
        assert!(lines[12].bytes().all(|byte| byte.is_ascii_lowercase()));
        let (lon, lat): (f64, f64) = (lines[14].parse().unwrap(), lines[16].parse().unwrap());
        assert!(lon.abs() <= 179.0 && lat.abs() <= 84.0);
    }

    #[test]
    fn bytes_can_be_written_in_hex() {
        assert_eq!(text("ECHO {hex:412d0a}", 1), "*2\r\n$4\r\nECHO\r\n$3\r\nA-\n\r\n");
    }

    #[test]
    fn bad_templates_are_refused() {
        for bad in [
            "X {i:0}",
            "X {s:13}",
            "X {x:}",
            "X {hex:4z}",
            "GET {q}",
            "MSET 3x[ a",
            "GET a ; ",
            "] a",
            "SET a {v:99999999999}",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
