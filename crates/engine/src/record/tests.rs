//! Records, encoded and read again.

use super::*;
use russet_base::args::Span;

#[test]
fn a_script_decides_who_gets_its_records() {
    let mut records = Records::default();
    records.push(0, ["SET", "k", "v"]);
    assert!(records.is_empty(), "nobody listens");
    records.set_on(true);
    for (destination, expected) in [
        (Destination::Everyone, 1),
        (Destination::LogOnly, 2),
        (Destination::ReplicasOnly, 3),
        (Destination::Nobody, 3),
    ] {
        records.destination = destination;
        records.push(0, ["SET", "k", "v"]);
        assert_eq!(records.len(), expected, "{destination:?}");
        assert_eq!(
            records.all().last().map(|record| record.destination),
            Some(destination)
                .filter(|kind| *kind != Destination::Nobody)
                .or(Some(Destination::ReplicasOnly))
        );
    }
    records.clear();
    assert_eq!(records.destination, Destination::Everyone);
}

#[test]
fn a_long_list_goes_on_in_a_further_command() {
    let mut records = Records::default();
    let third = vec![b'x'; LIST_BYTES_MAX / 2];
    records.push_list(0, &[b"RPUSH", b"l"], [&third]);
    assert!(records.is_empty(), "nobody listens");
    records.set_on(true);
    records.push_list(0, &[b"RPUSH", b"l"], [[0u8; 0]; 0]);
    assert!(records.is_empty(), "there is nothing to push");
    records.push_list(3, &[b"RPUSH", b"l"], [&third[..], &third, b"last"]);
    let lens: Vec<usize> = records.all().iter().map(|record| record.args.as_args().len()).collect();
    assert_eq!(lens, [4, 3]);
    let last = &records.all()[1];
    let args: Vec<&[u8]> = last.args.as_args().iter().collect();
    assert_eq!((last.db, args), (3, vec![&b"RPUSH"[..], b"l", b"last"]));
}

/// A key that expired while a script ran that had asked for no records stayed for ever on the
/// replicas.
#[test]
fn what_expires_during_a_script_is_recorded_for_everyone() {
    let mut records = Records::default();
    records.set_on(true);
    records.destination = Destination::Nobody;
    records.for_everyone(|records| records.push(0, ["DEL", "k"]));
    assert_eq!(records.all()[0].destination, Destination::Everyone);
    assert_eq!(records.destination, Destination::Nobody);
}

#[test]
fn what_only_replicas_get_obeys_the_script_too() {
    let mut records = Records::default();
    records.set_on(true);
    let message: OwnedArgs = ["PUBLISH", "c", "m"].iter().collect();
    for (destination, is_kept) in [
        (Destination::Everyone, true),
        (Destination::ReplicasOnly, true),
        (Destination::LogOnly, false),
        (Destination::Nobody, false),
    ] {
        records.clear();
        records.destination = destination;
        records.push_for_replicas(0, message.as_args());
        assert_eq!(records.len() == 1, is_kept, "{destination:?}");
    }
}

#[test]
fn a_command_in_resp_is_recorded_as_it_came() {
    let mut records = Records::recording();
    let command = b"*2\r\n$4\r\nincr\r\n$1\r\nk\r\n";
    let spans = [(8, 4), (18, 1)].map(|(start, len)| Span { start, len });
    let sent = Args::of_resp(command, &spans);
    records.push_args(1, sent);
    records.push_args(2, OwnedArgs::from(sent).as_args());
    records.end_unit();
    let encoded: Vec<_> = records.encoded_mut().iter().collect();
    assert_eq!(encoded.len(), 2);
    for (record, db) in encoded.iter().zip([1, 2]) {
        assert_eq!((record.whole(), record.db), (Some(&command[..]), db));
        assert_eq!(record.name(), b"incr");
    }
    assert!(!encoded[0].ends_unit && encoded[1].ends_unit);
}

/// What is written is what is read, whoever wrote it, with long arguments where they belong.
#[test]
fn records_come_back_as_they_went_in() {
    let mut records = Records::default();
    records.set_on(true);
    let long = SharedBytes::new(vec![b'v'; 70_000]);
    let mut call: OwnedArgs = ["MSET", "a"].iter().collect();
    call.push_shared(long.clone());
    call.push(b"b");
    call.push_shared(SharedBytes::new(b"other".to_vec()));
    records.push_args(3, call.as_args());
    records.end_unit();
    let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    records.push(1, many.iter());
    records.push(0, ["DEL", ""]);
    records.end_unit();
    records.end_unit();
    let all = records.all();
    assert_eq!(all.len(), 3);
    assert_eq!((all[0].db, all[0].args.as_args().len()), (3, 5));
    assert!(all[0].args.as_args().iter().eq(call.as_args().iter()));
    assert!(all[1].args.as_args().iter().eq(many.iter().map(|arg| arg.as_bytes())));
    assert_eq!(all[2].args.as_args().at(1), b"");
    let encoded = records.encoded_mut();
    assert!(encoded.bytes.len() < 1000 && encoded.bytes_total() > 70_000, "nothing is copied");
    let ends: Vec<bool> = encoded.iter().map(|record| record.ends_unit).collect();
    assert_eq!(ends, [true, false, true]);
    let names: Vec<&[u8]> = encoded.iter().map(|record| record.name()).collect();
    assert_eq!(names, [&b"MSET"[..], b"0", b"DEL"]);
    for (record, args) in encoded.iter().zip(&all) {
        let args = args.args.as_args();
        (0..args.len()).for_each(|at| assert_eq!(record.arg(at), args.get(at), "{at}"));
        assert_eq!(record.arg(args.len()), None);
    }
}

#[test]
fn a_record_is_a_command_in_resp_whatever_its_lengths() {
    for lens in [&[0][..], &[3, 1, 9, 10], &[4, 99, 100, 999, 1000, 16_000], &[1; 9], &[2; 123]] {
        let args: Vec<Vec<u8>> = lens.iter().map(|len| vec![b'x'; *len]).collect();
        let mut expected = format!("*{}\r\n", args.len()).into_bytes();
        for arg in &args {
            expected.extend([format!("${}\r\n", arg.len()).as_bytes(), arg, b"\r\n"].concat());
        }
        let mut records = Records::recording();
        records.push(0, args.iter());
        records.push_owned(0, args.iter().collect());
        records.end_unit();
        for record in records.encoded_mut().iter() {
            assert!(record.whole() == Some(&expected[..]), "{lens:?}");
        }
    }
}
