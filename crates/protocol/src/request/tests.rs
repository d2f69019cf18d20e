//! Requests whole, in pieces, malformed and random. What is accepted and refused, and in which
//! arguments, was asked of a real Valkey 9.1 over a socket.

use super::*;

type Call = Vec<Vec<u8>>;

fn owned(args: Args<'_>) -> Call {
    args.iter().map(<[u8]>::to_vec).collect()
}

fn args(texts: &[&str]) -> Call {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// All commands of a stream that arrives `piece` bytes at a time, and the error that ends it.
fn one_by_one(stream: &[u8], piece: usize, limits: &RequestLimits) -> Outcomes {
    let mut parser = RequestParser::new();
    let mut outcomes = Outcomes::default();
    let (mut start, mut arrived) = (0, 0);
    while arrived < stream.len() {
        arrived = (arrived + piece).min(stream.len());
        loop {
            let buffer = &stream[start..arrived];
            match parser.parse(buffer, limits) {
                Ok(Step::Command { consumed }) => {
                    outcomes.commands.push(owned(parser.args(buffer)));
                    start += consumed;
                }
                Ok(Step::Empty { consumed }) => start += consumed,
                Ok(Step::Incomplete { needed }) => {
                    assert!(needed > buffer.len(), "a hint must ask for more than there is");
                    break;
                }
                Err(error) => {
                    outcomes.error = Some(error);
                    return outcomes;
                }
            }
        }
    }
    outcomes.left = stream.len() - start;
    outcomes
}

#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    commands: Vec<Call>,
    error: Option<ProtocolError>,
    left: usize,
}

/// The same through batches of `commands_max`.
fn batched(stream: &[u8], piece: usize, commands_max: usize) -> Outcomes {
    let limits = RequestLimits::default();
    let mut batch = Batch::new();
    let mut outcomes = Outcomes::default();
    let (mut start, mut arrived) = (0, 0);
    while arrived < stream.len() {
        arrived = (arrived + piece).min(stream.len());
        loop {
            let buffer = &stream[start..arrived];
            let found = match batch.parse_batch(buffer, &limits, commands_max) {
                Ok(found) => found,
                Err(error) => {
                    outcomes.error = Some(error);
                    return outcomes;
                }
            };
            assert!(found <= commands_max && found == batch.len());
            for index in 0..found {
                outcomes.commands.push(owned(batch.command(index, buffer)));
            }
            start += batch.consumed();
            if found == 0 && batch.consumed() == 0 {
                break;
            }
        }
    }
    outcomes.left = stream.len() - start;
    outcomes
}

fn corpus() -> Vec<(Vec<u8>, Vec<Call>)> {
    let long = vec![b'x'; 1234];
    let mut big = encode(&[&b"SET"[..], b"k", &long]);
    encode_into(&["GET", ""], &mut big);
    let many: Vec<String> = (0..150).map(|index| index.to_string()).collect();
    let many_args = many.iter().map(|text| text.as_bytes().to_vec()).collect();
    vec![
        (encode(&["PING"]), vec![args(&["PING"])]),
        (
            b"*3\r\n$3\r\nSET\r\n$14\r\nkey:0000000001\r\n\
              $2\r\n\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
                .to_vec(),
            vec![args(&["SET", "key:0000000001", "\r\n"]), args(&["GET", "a"])],
        ),
        (
            b"PING\r\n\r\n*0\r\n*-1\r\n  GET  a \n*1\r\n$0\r\n\r\n\
              set k \"a b\\x41\\n\" 'c'\r\n"
                .to_vec(),
            vec![
                args(&["PING"]),
                args(&["GET", "a"]),
                args(&[""]),
                args(&["set", "k", "a bA\n", "c"]),
            ],
        ),
        (
            b"echo \"1\"\r\necho 2\r\necho '3' 4\r\n\
              *1\r\n$4\r\nPING\r\necho \"5\"\r\n*1\r\n$4"
                .to_vec(),
            vec![
                args(&["echo", "1"]),
                args(&["echo", "2"]),
                args(&["echo", "3", "4"]),
                args(&["PING"]),
                args(&["echo", "5"]),
            ],
        ),
        (big, vec![vec![b"SET".to_vec(), b"k".to_vec(), long], args(&["GET", ""])]),
        (encode(&many), vec![many_args]),
    ]
}

#[test]
fn a_request_may_be_cut_anywhere() {
    for (stream, commands) in corpus() {
        let whole = one_by_one(&stream, stream.len(), &RequestLimits::default());
        assert_eq!(whole.commands, commands);
        assert_eq!(whole.error, None);
        for piece in 1..stream.len().min(300) {
            assert_eq!(one_by_one(&stream, piece, &RequestLimits::default()), whole);
            for commands_max in [1, 2, 32] {
                assert_eq!(batched(&stream, piece, commands_max), whole);
            }
        }
        // Cut once, at every byte.
        for cut in 0..stream.len() {
            let mut batch = Batch::new();
            let limits = RequestLimits::default();
            let mut seen = Vec::new();
            let first = batch.parse_batch(&stream[..cut], &limits, 32).expect("sound");
            seen.extend((0..first).map(|index| owned(batch.command(index, &stream[..cut]))));
            let rest = &stream[batch.consumed()..];
            let second = batch.parse_batch(rest, &limits, 32).expect("sound");
            seen.extend((0..second).map(|index| owned(batch.command(index, rest))));
            assert_eq!(seen, commands, "cut at {cut}");
        }
    }
}

/// Streams that end in an error, in any pieces.
const REFUSED: &[(&[u8], ProtocolError)] = &[
    (b"*\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*abc\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*03\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*+1\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*-0\r\n", ProtocolError::InvalidMultibulkLength),
    (b"* 1\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*1 \r\n", ProtocolError::InvalidMultibulkLength),
    (b"*\n\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*1\n$4\r\nPING\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*1\x00\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*2147483648\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*9223372036854775808\r\n", ProtocolError::InvalidMultibulkLength),
    (b"*1\r\nfoo\r\n", ProtocolError::ExpectedDollar(b'f')),
    (b"*1\r\nfoo\rX", ProtocolError::ExpectedDollar(b'f')),
    (b"*1\r\n\r\n", ProtocolError::ExpectedDollar(b'\r')),
    (b"*1\r\n\rX", ProtocolError::ExpectedDollar(b'\r')),
    (b"*1\r\n\xff\r\n", ProtocolError::ExpectedDollar(0xff)),
    (b"*1\r\n\x00\r\n", ProtocolError::ExpectedDollar(0)),
    (b"*1\r\n$-1\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$-0\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$04\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$+4\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$4\x00\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$536870913\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$99999999999999999999\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\r\n$9223372036854775807\r\n", ProtocolError::InvalidBulkLength),
    (b"*1\rX", ProtocolError::InvalidLineEnd),
    (b"*0\rX", ProtocolError::InvalidLineEnd),
    (b"*abc\rX", ProtocolError::InvalidLineEnd),
    (b"*1\r\n$x\rX", ProtocolError::InvalidLineEnd),
    (b"*1\r\n$4\r\nPINGXY", ProtocolError::InvalidLineEnd),
    (b"*1\r\n$4\r\nPING\rY", ProtocolError::InvalidLineEnd),
    (b"*1\r\n$4\r\nPINGX\n", ProtocolError::InvalidLineEnd),
    (b"ECHO \"abc\r\n", ProtocolError::UnbalancedQuotes),
    (b"ECHO 'abc\r\n", ProtocolError::UnbalancedQuotes),
    (b"ECHO a\"\r\n", ProtocolError::UnbalancedQuotes),
    (b"ECHO \"a\\x41\r\n", ProtocolError::UnbalancedQuotes),
    (b"ECHO \"a\\\" \r\n", ProtocolError::UnbalancedQuotes),
    (b"ECHO \"\\\"\" x\"\r\n", ProtocolError::UnbalancedQuotes),
];

#[test]
fn every_refusal_comes_after_the_commands_before_it() {
    for (bad, error) in REFUSED {
        let mut stream = encode(&["PING"]);
        encode_into(&["GET", "a"], &mut stream);
        stream.extend_from_slice(bad);
        for piece in 1..=stream.len() {
            let outcomes = one_by_one(&stream, piece, &RequestLimits::default());
            assert_eq!(outcomes.commands.len(), 2, "{}", bad.escape_ascii());
            assert_eq!(outcomes.error, Some(*error), "{}", bad.escape_ascii());
            assert_eq!(batched(&stream, piece, 32), outcomes);
        }
    }
}

#[test]
fn what_is_cut_short_waits() {
    for stream in [
        &b"*"[..],
        b"*1",
        b"*1\r",
        b"*1\r\n",
        b"*1\r\nfoo",
        b"*1\r\nfoo\r",
        b"*1\r\n\r",
        b"*1\r\n$536870913\r",
        b"*1\r\n$536870912\r\n",
        b"*1\r\n$4\r\nPINGX",
        b"*1\n$4\nPING\n",
        b"*1048576\r\n$4\r\nPING\r\n",
        b"PING",
        b"PING\r",
        b"PING\0\r\nPING\r\n",
        b"\0PING\r\n",
    ] {
        let outcomes = one_by_one(stream, 1, &RequestLimits::default());
        let waits = Outcomes { left: stream.len(), ..Outcomes::default() };
        assert_eq!(outcomes, waits, "{}", stream.escape_ascii());
        assert_eq!(batched(stream, stream.len(), 32), waits);
    }
}

#[test]
fn a_big_bulk_string_says_how_much_room_it_wants() {
    let mut parser = RequestParser::new();
    let head = b"*2\r\n$3\r\nGET\r\n$1000000\r\nabc";
    let step = parser.parse(head, &RequestLimits::default());
    assert_eq!(step, Ok(Step::Incomplete { needed: head.len() - 3 + 1_000_002 }));
    let mut batch = Batch::new();
    let stream = [&b"*1\r\n$4\r\nPING\r\n"[..], head].concat();
    assert_eq!(batch.parse_batch(&stream, &RequestLimits::default(), 32), Ok(1));
    assert_eq!((batch.consumed(), batch.needed()), (14, head.len() - 3 + 1_000_002));
}

#[test]
fn lines_are_bounded() {
    let limits = RequestLimits { inline_bytes_max: 100, ..RequestLimits::default() };
    let digits = "1".repeat(200);
    for (line, error) in [
        (format!("*{digits}"), ProtocolError::TooBigMultibulkCount),
        (format!("*{digits}\r\n"), ProtocolError::TooBigMultibulkCount),
        (format!("*1\r\n${digits}"), ProtocolError::TooBigBulkCount),
        (digits.clone(), ProtocolError::TooBigInline),
        (format!("{digits}\r\n"), ProtocolError::TooBigInline),
        (format!("\0\r\n{digits}"), ProtocolError::TooBigInline),
    ] {
        for piece in 1..=line.len() {
            assert_eq!(one_by_one(line.as_bytes(), piece, &limits).error, Some(error), "{line}");
        }
    }
    // Exactly at the limit nothing is wrong yet.
    assert_eq!(one_by_one(&digits.as_bytes()[..100], 7, &limits).error, None);
    assert!(one_by_one(&digits.as_bytes()[..101], 7, &limits).error.is_some());
    let line = format!("ECHO {}\r\n", "a".repeat(93));
    assert_eq!(one_by_one(line.as_bytes(), 7, &limits).commands.len(), 1);
}

#[test]
fn counts_are_bounded() {
    let limits = RequestLimits { arguments_max: 5, bulk_bytes_max: 8, ..RequestLimits::default() };
    let error = |stream: &[u8]| one_by_one(stream, 1, &limits).error;
    assert_eq!(error(b"*5\r\n$8\r\n"), None);
    assert_eq!(error(b"*6\r\n"), Some(ProtocolError::InvalidMultibulkLength));
    assert_eq!(error(b"*1\r\n$9\r\n"), Some(ProtocolError::InvalidBulkLength));
}

#[test]
fn a_request_stays_under_four_gibibytes() {
    let limits = RequestLimits { bulk_bytes_max: usize::MAX, ..RequestLimits::default() };
    let error = |stream: &[u8]| one_by_one(stream, 1, &limits).error;
    assert_eq!(error(b"*1\r\n$4293918700\r\n"), None);
    assert_eq!(error(b"*1\r\n$4293918701\r\n"), Some(ProtocolError::InvalidBulkLength));
    assert_eq!(error(b"*1\r\n$9223372036854775807\r\n"), Some(ProtocolError::InvalidBulkLength));
}

#[test]
fn strangers_are_held_short_until_they_authenticate() {
    let stranger = RequestLimits { authenticated: false, ..RequestLimits::default() };
    let error = |stream: &[u8]| one_by_one(stream, stream.len(), &stranger).error;
    assert_eq!(error(b"*10\r\n$16384\r\n"), None);
    assert_eq!(error(b"*11\r\n"), Some(ProtocolError::UnauthenticatedMultibulkLength));
    assert_eq!(error(b"*1\r\n$16385\r\n"), Some(ProtocolError::UnauthenticatedBulkLength));
    assert_eq!(error(b"*1\r\n$536870913\r\n"), Some(ProtocolError::InvalidBulkLength));

    // AUTH and a big command in one pipeline: the wider limits hold once AUTH has run.
    let mut stream = encode(&["AUTH", "p"]);
    let big: Vec<String> = (0..20).map(|index| index.to_string()).collect();
    encode_into(&big, &mut stream);
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&stream, &stranger, 32), Ok(1));
    let rest = &stream[batch.consumed()..];
    assert_eq!(batch.parse_batch(rest, &RequestLimits::default(), 32), Ok(1));
    assert_eq!(batch.command(0, rest).len(), 20);
}

#[test]
fn every_oddity_of_the_peer() {
    let whole = |line: &[u8]| one_by_one(line, line.len(), &RequestLimits::default()).commands;
    let echoed = |text: &str| whole(format!("ECHO {text}\r\n").as_bytes());
    let echo = |text: &str| vec![args(&["ECHO", text])];
    assert_eq!(echoed(r#""a\x41\n\q\"b""#), echo("aA\nq\"b"));
    assert_eq!(echoed(r"'a\'b\n'"), echo(r"a'b\n"));
    assert_eq!(echoed(r#""abc"d"#), echo("abcd"));
    assert_eq!(echoed(r#"a"b"'c'"d""#), echo("abcd"));
    assert_eq!(echoed(r#""a""b""#), echo("ab"));
    assert_eq!(echoed(r#""abc\""#), echo(r"abc\"));
    assert_eq!(echoed(r#""abc\\\""#), echo(r"abc\\"));
    assert_eq!(echoed(r"'\\'"), echo(r"\\"));
    assert_eq!(echoed(r"'\\' b'"), echo(r"\' b"));
    assert_eq!(echoed(r#"abc\"def""#), echo(r"abc\def"));
    assert_eq!(echoed(r#""\x4""#), echo("x4"));
    assert_eq!(echoed(r#""\b\a\t\r\n\f\v\0\e\$""#), echo("\x08\x07\t\r\nfv0e$"));
    assert_eq!(echoed(r"\x41"), echo(r"\x41"));
    assert_eq!(echoed("\x0c\x0bb"), echo("b"));
    assert_eq!(echoed("a\x0bb"), echo("a\x0bb"));
    assert_eq!(echoed("\"a\"\x0b\"b\""), echo("a\x0bb"));
    assert_eq!(echoed("a\rb"), vec![args(&["ECHO", "a", "b"])]);
    assert_eq!(whole(b"\"\"\r\n"), vec![args(&[""])]);
    assert_eq!(whole(b"PING\r\r\n"), vec![args(&["PING"])]);
    assert_eq!(whole(b"\n\n   \r\n\rPING\n"), vec![args(&["PING"])]);
    assert_eq!(whole(b"$4\r\nPING\r\n"), vec![args(&["$4"]), args(&["PING"])]);
    assert_eq!(whole(b"*-99\r\nPING\r\n"), vec![args(&["PING"])]);
    // A NUL hides the line end, so the line can only grow too big.
    assert!(whole(b"PING\0\r\nPING\r\n").is_empty());
}

#[test]
fn a_batch_may_be_given_up_half_way() {
    let mut stream = Vec::new();
    (0..5).for_each(|index| encode_into(&["GET".to_string(), index.to_string()], &mut stream));
    let whole_len = stream.len();
    stream.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$1");
    let limits = RequestLimits::default();
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&stream, &limits, 32), Ok(5));
    assert_eq!(batch.consumed(), whole_len);
    batch.truncate(2);
    assert_eq!((batch.len(), batch.consumed()), (2, batch.end(1)));
    assert_eq!(batch.command(1, &stream).at(1), b"1");
    let mut rest = stream[batch.consumed()..].to_vec();
    rest.extend_from_slice(b"\r\n5\r\n");
    assert_eq!(batch.parse_batch(&rest, &limits, 32), Ok(4));
    assert_eq!(batch.command(0, &rest).at(1), b"2");
    assert_eq!(batch.command(3, &rest).at(1), b"5");
    batch.truncate(0);
    assert_eq!((batch.len(), batch.consumed()), (0, 0));
}

#[test]
fn a_huge_command_leaves_no_memory_behind() {
    let many = vec!["x"; SPANS_KEPT_MAX * 2];
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&encode(&many), &RequestLimits::default(), 32), Ok(1));
    assert_eq!(batch.parse_batch(&encode(&["PING"]), &RequestLimits::default(), 32), Ok(1));
    assert!(batch.spans.capacity() <= SPANS_KEPT_MAX);
}

#[test]
fn error_texts_on_the_wire() {
    let wire = |error: ProtocolError| {
        let mut out = Vec::new();
        error.write_reply(&mut out);
        out
    };
    for (error, text) in [
        (ProtocolError::InvalidMultibulkLength, "invalid multibulk length"),
        (ProtocolError::TooBigMultibulkCount, "too big mbulk count string"),
        (ProtocolError::UnauthenticatedMultibulkLength, "unauthenticated multibulk length"),
        (ProtocolError::ExpectedDollar(b'x'), "expected '$', got 'x'"),
        (ProtocolError::ExpectedDollar(b'\n'), "expected '$', got ' '"),
        (ProtocolError::TooBigBulkCount, "too big bulk count string"),
        (ProtocolError::InvalidBulkLength, "invalid bulk length"),
        (ProtocolError::UnauthenticatedBulkLength, "unauthenticated bulk length"),
        (ProtocolError::InvalidLineEnd, "invalid CRLF in request"),
        (ProtocolError::TooBigInline, "too big inline request"),
        (ProtocolError::UnbalancedQuotes, "unbalanced quotes in request"),
    ] {
        assert_eq!(wire(error), format!("-ERR Protocol error: {text}\r\n").into_bytes());
    }
    assert_eq!(
        wire(ProtocolError::ExpectedDollar(0xff)),
        b"-ERR Protocol error: expected '$', got '\xff'\r\n"
    );
}

#[test]
fn random_bytes_never_panic_and_pieces_never_matter() {
    const ALPHABET: &[u8] = b"*$0123456789\r\n\r\n\r\n-+ab \"'\\x\0\xff";
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    };
    let sound = corpus();
    for _ in 0..20_000 {
        // Half of the streams are sound ones with a few bytes changed.
        let mut stream = Vec::new();
        if next(2) == 0 {
            let (base, _) = &sound[next(4)];
            stream.extend_from_slice(base);
            for _ in 0..=next(3) {
                let at = next(stream.len());
                stream[at] = ALPHABET[next(ALPHABET.len())];
            }
        } else {
            (0..next(60)).for_each(|_| stream.push(ALPHABET[next(ALPHABET.len())]));
        }
        let whole = one_by_one(&stream, stream.len().max(1), &RequestLimits::default());
        let piece = 1 + next(9);
        assert_eq!(one_by_one(&stream, piece, &RequestLimits::default()), whole);
        assert_eq!(batched(&stream, piece, 1 + next(4)), whole);
    }
}

/// The short way takes nothing that the careful one would refuse, and finds the same arguments.
#[test]
fn the_short_way_agrees_with_the_careful_one() {
    let agree = |stream: &[u8]| {
        let mut careful = RequestParser::new();
        let step = careful.parse(stream, &RequestLimits::default());
        let mut spans = vec![Span { start: 7, len: 7 }];
        match short::command(stream, &mut spans) {
            Some(consumed) => {
                assert_eq!(step, Ok(Step::Command { consumed }), "{}", stream.escape_ascii());
                assert_eq!(owned(Args::new(stream, &spans[1..])), owned(careful.args(stream)));
                true
            }
            None => {
                assert_eq!(spans.len(), 1);
                false
            }
        }
    };
    for count in 1..=99 {
        for len in [0, 1, 9, 10, 99, 100, 999] {
            let mut stream = encode(&vec!["x".repeat(len); count]);
            assert!(agree(&stream), "{count} arguments of {len} bytes");
            let line_end = stream.len() - 1;
            for cut in [line_end, line_end - 1, stream.len() / 2, 4, 3, 2, 1, 0] {
                assert!(!agree(&stream[..cut]));
            }
            stream[line_end] = b'x';
            assert!(!agree(&stream));
        }
    }
    // Every byte that can stand at every place of a small request.
    for args in [&["GET", "key:00000001"][..], &["SET", "k", ""], &["PING"], &["a"; 12]] {
        let sound = encode(args);
        for (at, byte) in (0..sound.len()).flat_map(|at| (0..=u8::MAX).map(move |b| (at, b))) {
            let mut stream = sound.clone();
            stream[at] = byte;
            agree(&stream);
        }
    }
    for refused in REFUSED {
        assert!(!agree(refused.0));
    }
}

#[test]
fn narrow_limits_close_the_short_way() {
    let call = encode(&["GET", "key:00000001"]);
    for limits in [
        RequestLimits { bulk_bytes_max: 8, ..RequestLimits::default() },
        RequestLimits { arguments_max: 1, ..RequestLimits::default() },
    ] {
        assert!(Batch::new().parse_batch(&call, &limits, 32).is_err());
    }
}

/// After an error nothing is looked at again but what was wrong, so that the call can be repeated:
/// here all that was understood before is overwritten in between.
#[test]
fn an_error_is_found_again_where_it_was_found() {
    let limits = RequestLimits::default();
    for (bad, error) in REFUSED {
        let mut batch = Batch::new();
        let stream = [b"\r\n", &encode(&["GET", "a"])[..], b"\r\n*0\r\n", bad].concat();
        assert_eq!(batch.parse_batch(&stream, &limits, 32), Ok(1));
        let rest = [&stream[batch.consumed()..], b"*1\r\n$4\r\nPING\r\n"].concat();
        for _ in 0..3 {
            assert_eq!(batch.parse_batch(&rest, &limits, 32), Err(*error));
            assert_eq!((batch.consumed(), batch.len()), (0, 0), "{}", bad.escape_ascii());
        }
        let mut batch = Batch::new();
        let stream = [b"\r\n*0\r\n", *bad].concat();
        assert_eq!(batch.parse_batch(&stream, &limits, 32), Err(*error));
        let rest = &stream[batch.consumed()..];
        assert_eq!(batch.parse_batch(rest, &limits, 32), Err(*error), "{}", bad.escape_ascii());
    }
    let mut stream = [b"*9\r\n", &b"$2\r\nxy\r\n".repeat(7)[..], b"!2\r\n"].concat();
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&stream, &limits, 32), Err(ProtocolError::ExpectedDollar(b'!')));
    let at = stream.len() - 4;
    stream[..at].fill(b'?');
    assert_eq!(batch.parse_batch(&stream, &limits, 32), Err(ProtocolError::ExpectedDollar(b'!')));
}

/// A request that was refused goes on where it stood once wider limits hold.
#[test]
fn what_narrow_limits_refuse_goes_on_by_wider_ones() {
    let narrow = RequestLimits { bulk_bytes_max: 8, ..RequestLimits::default() };
    let call = ["SET", "key", "ten letters", "EX", "10"];
    let mut stream = encode(&call);
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&stream, &narrow, 32), Err(ProtocolError::InvalidBulkLength));
    stream[..4].fill(b'?');
    assert_eq!(batch.parse_batch(&stream, &RequestLimits::default(), 32), Ok(1));
    assert_eq!(owned(batch.command(0, &stream)), args(&call));
    assert_eq!(batch.consumed(), stream.len());
}
