//! Writer, decoder and value sink against each other, in both protocols and in pieces.

use super::*;
use crate::sink::{Resp, Sink};
use crate::value::ValueSink;
use crate::writer::RespWriter;

type Script = fn(&mut dyn Sink);

/// One script of sink calls per reply: what RESP2 and RESP3 make of it on the wire.
const REPLIES: &[(Script, &[u8], &[u8])] = &[
    (|sink| sink.ok(), b"+OK\r\n", b"+OK\r\n"),
    (|sink| sink.error("ERR a\r\nb"), b"-ERR a  b\r\n", b"-ERR a  b\r\n"),
    (|sink| sink.int(0), b":0\r\n", b":0\r\n"),
    (|sink| sink.int(-12), b":-12\r\n", b":-12\r\n"),
    (|sink| sink.int(i64::MIN), b":-9223372036854775808\r\n", b":-9223372036854775808\r\n"),
    (|sink| sink.bulk(b""), b"$0\r\n\r\n", b"$0\r\n\r\n"),
    (|sink| sink.bulk(b"a\r\n\0\xff"), b"$5\r\na\r\n\0\xff\r\n", b"$5\r\na\r\n\0\xff\r\n"),
    (|sink| sink.bulk_int(-100), b"$4\r\n-100\r\n", b"$4\r\n-100\r\n"),
    (|sink| sink.null(), b"$-1\r\n", b"_\r\n"),
    (|sink| sink.null_array(), b"*-1\r\n", b"_\r\n"),
    (|sink| sink.array(0), b"*0\r\n", b"*0\r\n"),
    (|sink| sink.map(0), b"*0\r\n", b"%0\r\n"),
    (|sink| sink.double(3.0), b"$1\r\n3\r\n", b",3\r\n"),
    (|sink| sink.double(-0.5), b"$4\r\n-0.5\r\n", b",-0.5\r\n"),
    (
        |sink| sink.double(1.2345678901234567e300),
        b"$23\r\n1.2345678901234567e+300\r\n",
        b",1.2345678901234567e+300\r\n",
    ),
    (|sink| sink.double(f64::INFINITY), b"$3\r\ninf\r\n", b",inf\r\n"),
    (|sink| sink.double(f64::NEG_INFINITY), b"$4\r\n-inf\r\n", b",-inf\r\n"),
    (|sink| sink.boolean(true), b":1\r\n", b"#t\r\n"),
    (|sink| sink.boolean(false), b":0\r\n", b"#f\r\n"),
    (|sink| sink.verbatim(b"txt", b"a b"), b"$3\r\na b\r\n", b"=7\r\ntxt:a b\r\n"),
    (|sink| sink.big_number("-123"), b"$4\r\n-123\r\n", b"(-123\r\n"),
    (nested, NESTED_V2, NESTED_V3),
    (counted_late, b"*2\r\n:1\r\n*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n", COUNTED_LATE_V3),
];

const NESTED_V2: &[u8] =
    b"*3\r\n*4\r\n+k\r\n*1\r\n:1\r\n+l\r\n*0\r\n*2\r\n:1\r\n:2\r\n*1\r\n$-1\r\n";
const NESTED_V3: &[u8] = b">3\r\n%2\r\n+k\r\n*1\r\n:1\r\n+l\r\n~0\r\n~2\r\n:1\r\n:2\r\n*1\r\n_\r\n";
const COUNTED_LATE_V3: &[u8] = b"*2\r\n:1\r\n%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n";

fn nested(sink: &mut dyn Sink) {
    sink.push(3);
    sink.map(2);
    sink.status("k");
    sink.array(1);
    sink.int(1);
    sink.status("l");
    sink.set(0);
    sink.set(2);
    sink.int(1);
    sink.int(2);
    sink.array(1);
    sink.null();
}

fn counted_late(sink: &mut dyn Sink) {
    let outer = sink.begin_array();
    sink.int(1);
    let pairs = sink.begin_map();
    sink.bulk(b"a");
    sink.int(1);
    sink.bulk(b"b");
    let empty = sink.begin_array();
    sink.end_array(empty, 0);
    sink.end_map(pairs, 2);
    sink.end_array(outer, 2);
}

#[test]
fn bytes_decode_to_what_a_value_sink_builds() {
    for (script, v2, v3) in REPLIES {
        for (resp, wire) in [(Resp::V2, v2), (Resp::V3, v3)] {
            let mut out = b"before".to_vec();
            script(&mut RespWriter::new(&mut out, resp));
            assert_eq!(out[6..].escape_ascii().to_string(), wire.escape_ascii().to_string());
            let mut sink = ValueSink::new(resp);
            script(&mut sink);
            let built = sink.into_value().expect("the reply is whole");
            assert_eq!(decode(wire), Ok(Some((built, wire.len()))));
        }
    }
}

#[test]
fn a_reply_may_be_cut_anywhere() {
    let stream: Vec<u8> = REPLIES.iter().flat_map(|(_, v2, v3)| [*v2, *v3].concat()).collect();
    let mut expected = Vec::new();
    let mut rest = &stream[..];
    while let Some((value, size)) = decode(rest).expect("sound") {
        assert!((0..size).all(|cut| decode(&rest[..cut]) == Ok(None)));
        expected.push(value);
        rest = &rest[size..];
    }
    assert_eq!((rest.len(), expected.len()), (0, REPLIES.len() * 2));
    for piece in [1, 2, 3, 7, 64, stream.len()] {
        let mut decoder = Decoder::new();
        let mut seen = Vec::new();
        for bytes in stream.chunks(piece) {
            decoder.feed(bytes);
            while let Some(value) = decoder.next_reply().expect("sound") {
                seen.push(value);
            }
        }
        assert_eq!(seen, expected);
    }
}

#[test]
fn kinds_that_only_servers_elsewhere_send() {
    let shown = |wire: &[u8]| match decode(wire) {
        Ok(Some((value, _))) => value.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(shown(b"!5\r\nERR x\r\n"), "-ERR x");
    assert_eq!(shown(b"|1\r\n+ttl\r\n:3\r\n*1\r\n$1\r\na\r\n"), "|{+ttl: 3} [\"a\"]");
    assert_eq!(shown(b",nan\r\n"), ",nan");
    assert_eq!(shown(NESTED_V3), ">[{+k: [1], +l: ~[]}, ~[1, 2], [nil]]");
    assert_eq!(shown(b"*2\r\n*-1\r\n$2\r\n\"\xff\r\n"), "[nil-array, \"\\\"\\xff\"]");
    let mut decoder = Decoder::new();
    decoder.feed(b"|1\r\n+ttl\r\n:3\r\n+OK\r\n+NEXT\r\n");
    let first = decoder.next_reply().expect("sound").expect("whole");
    assert_eq!(first.to_string(), "|{+ttl: 3} +OK");
    assert_eq!(decoder.next_reply(), Ok(Some(Value::status("NEXT"))));
}

#[test]
fn what_is_no_reply_is_refused() {
    for (wire, error) in [
        (&b"x"[..], DecodeError::UnknownKind(b'x')),
        (b":1a\r\n", DecodeError::InvalidNumber),
        (b":\r\n", DecodeError::InvalidNumber),
        (b"$-2\r\n", DecodeError::InvalidNumber),
        (b"$?\r\n", DecodeError::InvalidNumber),
        (b"$99999999999\r\n", DecodeError::InvalidNumber),
        (b"*99999999999\r\n", DecodeError::InvalidNumber),
        (b"%-1\r\n", DecodeError::InvalidNumber),
        (b"#x\r\n", DecodeError::InvalidBoolean),
        (b"=2\r\nab\r\n", DecodeError::InvalidVerbatim),
        (b"$1\r\nabc", DecodeError::LineEndMissing),
        (b"+OK\rx", DecodeError::LineEndMissing),
    ] {
        assert_eq!(decode(wire), Err(error), "{}", wire.escape_ascii());
        let mut decoder = Decoder::new();
        decoder.feed(wire);
        assert_eq!(decoder.next_reply(), Err(error));
    }
    assert_eq!(decode(&b"*1\r\n".repeat(DEPTH_MAX + 2)), Err(DecodeError::TooDeep));
    assert_eq!(decode(&b"*1\r\n".repeat(DEPTH_MAX)), Ok(None));
    let mut line = vec![b'+'];
    line.resize(LINE_BYTES_MAX + 2, b'a');
    assert_eq!(decode(&line), Err(DecodeError::LineTooLong));
}

#[test]
fn random_bytes_never_panic() {
    const ALPHABET: &[u8] = b"+-:$*_,#!=(%~>|0123456789\r\n\r\n\r\n\r\ntfnaie.";
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut next = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    };
    for _ in 0..50_000 {
        let bytes: Vec<u8> = (0..next(40)).map(|_| ALPHABET[next(ALPHABET.len())]).collect();
        let mut decoder = Decoder::new();
        decoder.feed(&bytes);
        let whole = decode(&bytes);
        if let Ok(Some((value, _size))) = &whole {
            let shown = decoder.next_reply().map(|value| value.map(|value| value.to_string()));
            assert_eq!(shown, Ok(Some(value.to_string())));
        }
    }
}
