//! Backlogs as they come from a socket, cut anywhere, against the same stream run at once.

use super::super::input::READ_BYTES;
use super::*;
use mio::net::UnixStream;
use russet_base::limits::LONG_STRING_BYTES;
use russet_protocol::request::encode;
use std::io::Write;

type Commands = Vec<Vec<Vec<u8>>>;

/// A backlog and the socket that it is read from.
struct Waiting {
    backlog: Backlog,
    ours: Stream,
    theirs: UnixStream,
    limits: RequestLimits,
}

impl Waiting {
    fn new(begin: Input) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (backlog, limits) = (Backlog::new(begin), RequestLimits::default());
        Waiting { backlog, ours: Stream::Unix(ours), theirs, limits }
    }

    /// Sends, and reads all of it.
    fn send(&mut self, bytes: &[u8]) {
        let mut buffer = vec![0; READ_BYTES];
        for piece in bytes.chunks(READ_BYTES / 2) {
            self.theirs.write_all(piece).unwrap();
            let mut left = piece.len();
            while left > 0 {
                left -= self.backlog.read(&mut self.ours, &mut buffer).unwrap().0;
                self.backlog.scan(&self.limits);
                self.check();
            }
        }
    }

    /// The counts are what they count.
    fn check(&self) {
        let sum = |of: fn(&Input) -> usize| self.backlog.whole.list.iter().map(of).sum::<usize>();
        assert_eq!(self.backlog.whole.len_bytes, sum(Input::len_bytes));
        assert_eq!(self.backlog.whole.capacity_bytes, sum(Input::capacity_bytes));
        assert!(self.backlog.len_bytes() <= self.backlog.capacity_bytes());
    }

    /// All that waits, as a client that may run gets it. The last input may be cut short.
    fn run(mut self) -> (Commands, Result<Input, ProtocolError>) {
        let mut commands = Commands::new();
        loop {
            self.check();
            match self.backlog.next(&self.limits) {
                Next::Whole(input) => {
                    let left = run(input, &self.limits, &mut commands).unwrap();
                    assert_eq!(left.len_bytes(), 0, "the segment was not whole");
                }
                Next::Last(input) => {
                    let left = run(input, &self.limits, &mut commands);
                    return (commands, left);
                }
                Next::Refused(error) => return (commands, Err(error)),
            }
        }
    }
}

/// Runs an input as a turn does, one command at a time, each of which is given up once; what is
/// left of it.
fn run(
    mut input: Input,
    limits: &RequestLimits,
    commands: &mut Commands,
) -> Result<Input, ProtocolError> {
    while input.long.is_none() && input.batch.parse_batch(&input.bytes, limits, 3)? > 0 {
        input.batch.truncate(0);
        assert!(input.batch.parse_batch(&input.bytes, limits, 3)? > 0);
        let args = input.batch.command(0, &input.bytes);
        commands.push(args.iter().map(<[u8]>::to_vec).collect());
        input.batch.truncate(1);
        input.bytes.drain(..input.batch.consumed());
    }
    if input.long.is_none() {
        input.bytes.drain(..input.batch.consumed());
    }
    Ok(input)
}

fn run_at_once(stream: &[u8], limits: &RequestLimits) -> (Commands, Option<ProtocolError>) {
    let mut commands = Commands::new();
    let error = run(Input::of_bytes(stream.to_vec()), limits, &mut commands).err();
    (commands, error)
}

fn long(fill: u8, more: usize) -> Vec<u8> {
    vec![fill; LONG_STRING_BYTES + more]
}

/// Requests of all shapes, and what is wrong at the end of some streams.
fn streams() -> Vec<Vec<u8>> {
    let small = encode(&["GET", "a"]);
    let shapes = [
        small.repeat(3),
        b"\r\n\r\nPING\r\n*0\r\n".to_vec(),
        b"set 'quoted key' \"v\\x41\"\r\n".to_vec(),
        encode(&[b"SET", &b"k"[..], &long(b'a', 9)]),
        encode(&[&b"MSET"[..], b"a", &long(b'b', 0), b"b", b"short", b"c", &long(b'c', 70_000)]),
        encode(&[b"SET", &b"k"[..], &vec![b's'; LONG_STRING_BYTES - 1]]),
        encode(&vec!["x"; 5000]),
        small.repeat(SEGMENT_BYTES_MAX / small.len() / 2),
    ];
    let ends: [Vec<u8>; 6] = [
        Vec::new(),
        b"*2\r\n$3\r\nGET\r\n".to_vec(),
        [b"*2\r\n$5\r\n01234\r\n!bad\r\n", &small[..]].concat(),
        [&b"*3\r\n$70000\r\n"[..], &long(b'e', 70_000 - LONG_STRING_BYTES), b"xx", &small].concat(),
        [&b"*3\r\n$70000\r\n"[..], &long(b'e', 70_000 - LONG_STRING_BYTES), b"\r\n!\r\n"].concat(),
        [b"get 'open\r\n", &small[..]].concat(),
    ];
    let mut streams = Vec::new();
    for turn in 0..shapes.len() {
        let all = (0..shapes.len()).map(|at| &shapes[(at * 3 + turn) % shapes.len()][..]);
        let all: Vec<u8> = all.collect::<Vec<_>>().concat();
        streams.push([&all[..], &ends[turn % ends.len()]].concat());
    }
    streams
}

#[test]
fn what_waited_is_what_was_sent_however_it_was_cut() {
    let limits = RequestLimits::default();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    };
    for (stream, piece_max) in
        streams().iter().flat_map(|stream| [100_000, 4_000, 300_000].map(|max| (stream, max)))
    {
        let (expected, error) = run_at_once(stream, &limits);
        let begin = random(stream.len().min(piece_max));
        let mut waiting = Waiting::new(Input::of_bytes(stream[..begin].to_vec()));
        waiting.backlog.scan(&limits);
        let mut rest = &stream[begin..];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(1 + random(piece_max)));
            waiting.send(piece);
            rest = behind;
        }
        let (commands, left) = waiting.run();
        assert!(commands == expected, "{} of {}", commands.len(), expected.len());
        assert_eq!(left.err(), error);
    }
}

/// Behind a whole request a long argument went to a buffer that was moved each time it grew.
#[test]
fn a_long_argument_has_its_own_buffer_whatever_stands_before_it() {
    let value = long(b'v', 3_000_000);
    let set = encode(&[b"SET", &b"k"[..], &value]);
    let mut waiting = Waiting::new(Input::default());
    for _ in 0..2 {
        waiting.send(&[encode(&["GET", "a"]), set[..1000].to_vec()].concat());
        let long = waiting.backlog.under_way.long.as_ref().unwrap();
        assert!(long.filled_bytes() > 900 && waiting.backlog.under_way.bytes.len() < 100);
        waiting.send(&set[1000..set.len() - 5]);
        assert!(waiting.backlog.under_way.bytes.len() < 100);
        waiting.send(&set[set.len() - 5..]);
        assert_eq!(waiting.backlog.under_way.len_bytes(), 0);
    }
    assert!(waiting.backlog.capacity_bytes() < 2 * set.len() + 1000);
    let (commands, left) = waiting.run();
    assert_eq!((commands.len(), left.unwrap().len_bytes()), (4, 0));
    assert!(commands[3][2] == value);
}

/// The first whole request of a client that waited was parsed again after each read.
#[test]
fn what_is_whole_is_neither_looked_at_nor_moved_again() {
    let many = encode(&vec!["x"; 100_000]);
    let mut waiting = Waiting::new(Input::default());
    waiting.send(&many);
    assert_eq!(waiting.backlog.under_way.bytes.len(), 0, "there is nothing to look at");
    let place = |waiting: &Waiting| waiting.backlog.whole.list[0].bytes.as_ptr();
    let before = place(&waiting);
    (0..100_000 / 2).for_each(|_| waiting.backlog.whole.append(b"x\n"));
    waiting.check();
    let segments = &waiting.backlog.whole.list;
    assert!(segments.iter().skip(1).all(|segment| segment.bytes.len() <= SEGMENT_BYTES_MAX));
    for _ in 0..100 {
        waiting.send(&encode(&["GET", "a"]).repeat(1000));
        waiting.send(b"*1");
        assert_eq!(waiting.backlog.under_way.bytes, b"*1");
        waiting.send(b"\r\n$4\r\nPING\r\n");
    }
    assert_eq!(place(&waiting), before);
    assert_eq!(waiting.run().0.len(), 1 + 50_000 + 100 * 1001);
}

/// An error behind a hundred thousand arguments was looked for again after each read.
#[test]
fn an_error_is_found_once_and_answered_when_its_turn_comes() {
    let mut waiting = Waiting::new(Input::default());
    waiting.send(&encode(&["PING"]));
    let bad = [b"*100001\r\n", &b"$1\r\nx\r\n".repeat(100_000)[..], b"!bad\r\n"].concat();
    waiting.send(&bad);
    let looked_at = waiting.backlog.under_way.bytes.as_ptr();
    for _ in 0..10 {
        waiting.send(&vec![b'x'; 100_000]);
        assert_eq!(waiting.backlog.under_way.bytes.len(), bad.len());
        assert_eq!(waiting.backlog.under_way.bytes.as_ptr(), looked_at);
    }
    assert_eq!(waiting.backlog.len_bytes(), 14 + bad.len() + 1_000_000);
    let (commands, left) = waiting.run();
    assert_eq!(commands, [[b"PING"]]);
    assert_eq!(left.err(), Some(ProtocolError::ExpectedDollar(b'!')));
}

/// What a client sends behind AUTH, or while `proto-max-bulk-len` is raised, is read by the limits
/// that hold when it is run.
#[test]
fn what_was_refused_by_narrower_limits_is_looked_at_again() {
    let value = long(b'v', 500);
    let requests = [
        encode(&[&b"MSET"[..], b"a", &value, b"b", &value[..200], b"c", &value]),
        encode(&["GET", "a"]),
        encode(&[b"SET", &b"k"[..], &value]),
        b"*1\r\n$4\r\nPI".to_vec(),
    ];
    let narrow = [
        RequestLimits { bulk_bytes_max: 100, ..RequestLimits::default() },
        RequestLimits { bulk_bytes_max: value.len() - 1, ..RequestLimits::default() },
        RequestLimits { arguments_max: 2, ..RequestLimits::default() },
        RequestLimits { authenticated: false, ..RequestLimits::default() },
    ];
    for limits in narrow {
        let mut waiting = Waiting::new(Input::default());
        waiting.limits = limits;
        requests.iter().for_each(|request| waiting.send(request));
        assert!(waiting.backlog.refused.is_some());
        waiting.limits = RequestLimits::default();
        let (commands, left) = waiting.run();
        assert_eq!(commands.len(), 3);
        assert!(commands[0][6] == value && commands[2][2] == value);
        assert_eq!(left.unwrap().bytes, requests[3]);
    }
}

#[test]
fn an_empty_backlog_ends_with_its_last_segment() {
    let mut waiting = Waiting::new(Input::default());
    waiting.send(&encode(&["PING"]));
    assert!(matches!(waiting.backlog.next(&waiting.limits), Next::Last(_)));
    let mut waiting = Waiting::new(Input::default());
    waiting.send(&[encode(&["PING"]), b"*".to_vec()].concat());
    assert!(matches!(waiting.backlog.next(&waiting.limits), Next::Whole(_)));
    assert!(matches!(waiting.backlog.next(&waiting.limits), Next::Last(_)));
}
