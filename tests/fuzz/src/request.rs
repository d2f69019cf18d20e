//! The parser of requests: however a stream is cut, and whether it is read one request at a time or
//! in batches, the same commands and the same error come out of it.

use crate::source::Source;
use russet_base::Args;
use russet_protocol::request::encode;
use russet_protocol::{Batch, ProtocolError, RequestLimits, RequestParser, Step};

type OwnedCommand = Vec<Vec<u8>>;

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    commands: Vec<OwnedCommand>,
    error: Option<ProtocolError>,
    /// Bytes of a request that is not complete.
    left: usize,
}

fn owned(args: Args<'_>) -> OwnedCommand {
    args.iter().map(<[u8]>::to_vec).collect()
}

/// The first bytes choose the limits and how the rest is cut.
pub fn check(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let limits = limits(&mut source);
    let cuts = [1 + source.below(16), 1 + source.below(256)];
    let commands_max = 1 + source.below(20);
    let stream = source.rest();

    let whole = one_by_one(stream, stream.len().max(1), &limits);
    for cut in cuts {
        assert_eq!(one_by_one(stream, cut, &limits), whole, "in pieces of {cut}");
        assert_eq!(batched(stream, cut, commands_max, &limits), whole, "batches of {commands_max}");
    }
    again(&whole.commands);
}

fn limits(source: &mut Source) -> RequestLimits {
    let usual = RequestLimits::default();
    match source.below(4) {
        0 => usual,
        1 => RequestLimits { authenticated: false, ..usual },
        2 => RequestLimits { inline_bytes_max: 64, ..usual },
        _ => RequestLimits { bulk_bytes_max: 16, arguments_max: 4, ..usual },
    }
}

fn one_by_one(stream: &[u8], cut: usize, limits: &RequestLimits) -> Outcome {
    let mut parser = RequestParser::new();
    let mut outcome = Outcome::default();
    let (mut start, mut arrived) = (0, 0);
    while arrived < stream.len() {
        arrived = (arrived + cut).min(stream.len());
        loop {
            let buffer = &stream[start..arrived];
            match parser.parse(buffer, limits) {
                Ok(Step::Command { consumed }) => {
                    assert!(consumed <= buffer.len(), "no more is consumed than there is");
                    outcome.commands.push(owned(parser.args(buffer)));
                    start += consumed;
                }
                Ok(Step::Empty { consumed }) => start += consumed,
                Ok(Step::Incomplete { needed }) => {
                    assert!(needed > buffer.len(), "a hint asks for more than there is");
                    break;
                }
                Err(error) => {
                    outcome.error = Some(error);
                    return outcome;
                }
            }
        }
    }
    outcome.left = stream.len() - start;
    outcome
}

/// Every other batch is given up half-way, as for a client that blocks.
fn batched(stream: &[u8], cut: usize, commands_max: usize, limits: &RequestLimits) -> Outcome {
    let mut batch = Batch::new();
    let mut outcome = Outcome::default();
    let (mut start, mut arrived, mut turn) = (0, 0, 0);
    while arrived < stream.len() {
        arrived = (arrived + cut).min(stream.len());
        loop {
            let buffer = &stream[start..arrived];
            let count = match batch.parse_batch(buffer, limits, commands_max) {
                Ok(count) => count,
                Err(error) => {
                    outcome.error = Some(error);
                    return outcome;
                }
            };
            turn += 1;
            let kept = if turn % 2 == 0 { count } else { count.div_ceil(2) };
            for index in 0..kept {
                outcome.commands.push(owned(batch.command(index, buffer)));
            }
            batch.truncate(kept);
            start += batch.consumed();
            if count == 0 {
                break;
            }
        }
    }
    outcome.left = stream.len() - start;
    outcome
}

/// What was read can be written as a client writes it, and is read again as the same args.
fn again(commands: &[OwnedCommand]) {
    let limits = RequestLimits::default();
    for args in commands.iter().filter(|args| !args.is_empty()) {
        let request = encode(args);
        let outcome = one_by_one(&request, request.len(), &limits);
        assert_eq!(outcome.commands, std::slice::from_ref(args));
        assert_eq!((outcome.error, outcome.left), (None, 0));
    }
}

/// Streams that look like requests, for runs without a fuzzer's feedback.
pub fn likely_stream(choices: &[u8]) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"*1\r\n$0\r\n\r\n",
        b"\r\n",
        b"PING\r\n",
        b"set k \"a b\\x41\\n\" 'it\\'s'\r\n",
        b"get \"open\r\n",
        b"*1\r\n",
        b"*2\n",
        b"$3\r\n",
        b"$-1\r\n",
        b"$99999999999999999999\r\n",
        b"*99999999\r\n",
        b"*1\r\n$5\r\nhel\r\n",
        b"\n",
        b"\0",
        b" ",
        b"*01\r\n$04\r\nPING\r\n",
    ];
    let mut source = Source::new(choices);
    let mut stream = source.take(4).to_vec();
    while !source.is_empty() {
        if source.one_in(12) {
            stream.extend_from_slice(source.take(12));
        } else {
            stream.extend_from_slice(source.pick(PIECES));
        }
    }
    stream
}
