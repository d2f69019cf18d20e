//! Outputs in chunks against plain buffers, and what they take up.

use super::*;
use crate::{BulkWriter, Resp, RespWriter, Sink};
use std::sync::Arc;

fn collected(output: &Output) -> Vec<u8> {
    output.bytes_from(0).into_owned()
}

/// Sends all, `step` bytes at a time, as a slow socket takes them.
fn drained(output: &mut Output, step: usize) -> Vec<u8> {
    let mut sent = Vec::new();
    while output.unsent_bytes() > 0 {
        let mut slices = [IoSlice::new(&[]); 4];
        let count = output.runs(&mut slices);
        let runs: Vec<u8> = slices[..count].iter().flat_map(|run| run.to_vec()).collect();
        let taken = runs.len().min(step);
        sent.extend_from_slice(&runs[..taken]);
        output.advance(taken);
    }
    sent
}

fn script(sink: &mut dyn Sink, long: &SharedBytes) {
    sink.bulk(b"short");
    sink.bulk_shared(long);
    let outer = sink.begin_array();
    for size in [1, 99, 100, 5000, CHUNK_BYTES, 3 * CHUNK_BYTES] {
        sink.bulk(&vec![b'x'; size]);
        let inner = sink.begin_map();
        (0..20_000).for_each(|at| sink.int(at));
        sink.bulk_shared(long);
        sink.end_map(inner, 10_000);
    }
    sink.double(0.5);
    sink.end_array(outer, 12);
    let last = sink.begin_set();
    sink.bulk_shared(long);
    sink.end_set(last, 1);
}

#[test]
fn an_output_in_chunks_has_the_bytes_of_one_buffer() {
    let long: SharedBytes = Arc::new(vec![b'l'; LONG_STRING_BYTES + 5]);
    for resp in [Resp::V2, Resp::V3] {
        let (mut plain, mut output) = (Vec::new(), Output::default());
        script(&mut RespWriter::new(&mut plain, resp), &long);
        script(&mut RespWriter::new(&mut output, resp), &long);
        assert_eq!(output.len(), plain.len());
        assert!(collected(&output) == plain);
        assert!(*output.bytes_from(plain.len() - 9) == plain[plain.len() - 9..]);
        assert!(*output.bytes_from(70_000) == plain[70_000..]);
        for step in [7777, usize::MAX] {
            let mut output = Output::default();
            script(&mut RespWriter::new(&mut output, resp), &long);
            assert!(drained(&mut output, step) == plain, "{step}");
            assert!(output.is_empty() && output.only_run() == Some(b""));
        }
    }
}

/// Two hundred replies of a megabyte each that nobody read cost as much as they held.
#[test]
fn a_long_string_that_waits_to_be_sent_takes_no_room() {
    let long: SharedBytes = Arc::new(vec![b'l'; 1 << 20]);
    let mut output = Output::default();
    for _ in 0..200 {
        RespWriter::new(&mut output, Resp::V2).bulk_shared(&long);
    }
    assert!(output.unsent_bytes() > 200 << 20);
    assert!(output.capacity() < 64 * 1024, "{}", output.capacity());
    output.advance(100 << 20);
    assert_eq!(Arc::strong_count(&long), 102);
    output.truncate(output.len() - (50 << 20));
    output.advance(output.unsent_bytes());
    assert_eq!(Arc::strong_count(&long), 1);
}

/// 100 MB of messages that nobody read, and values that were deleted while they waited to be
/// sent, were nobody's memory.
#[test]
fn bytes_that_nobody_else_has_count_for_the_output_that_has_them() {
    const BYTES: usize = 1 << 20;
    // What is not shared: a few short chunks.
    const REST_BYTES: usize = 1024;
    let string = || -> SharedBytes { Arc::new(vec![b'l'; BYTES]) };
    let takes = |output: &mut Output, bytes: usize| {
        output.recount_shared();
        let taken = output.capacity();
        assert!((bytes..bytes + REST_BYTES).contains(&taken), "{taken}, not {bytes}");
    };
    let (mut one, mut other, stored) = (Output::default(), Output::default(), string());
    RespWriter::new(&mut one, Resp::V2).bulk_shared(&stored);
    takes(&mut one, 0);
    drop(stored);
    takes(&mut one, BYTES);
    let message = string();
    other.push_message(message.clone());
    one.push_message(message);
    takes(&mut one, BYTES * 3 / 2);
    takes(&mut other, BYTES / 2);
    drop(other);
    takes(&mut one, 2 * BYTES);
    one.advance(one.unsent_bytes());
    takes(&mut one, 0);
}

/// A message of 100 kB that waited to be sent counted as its bytes, 13 % less than what the
/// allocator gives for it.
#[test]
fn shared_bytes_count_as_what_the_allocator_gives_for_them() {
    let message: SharedBytes = Arc::new(vec![b'm'; 100_000]);
    let taken_bytes = 112 * 1024;
    let (mut one, mut other) = (Output::default(), Output::default());
    one.push_message(message.clone());
    other.push_message(message);
    for output in [&mut one, &mut other] {
        output.recount_shared();
        assert_eq!(output.capacity(), taken_bytes / 2);
    }
    drop(other);
    one.recount_shared();
    assert_eq!(one.capacity(), taken_bytes);
}

#[test]
fn many_small_replies_take_little_more_than_their_bytes() {
    let mut output = Output::default();
    for at in 0..100_000 {
        RespWriter::new(&mut output, Resp::V2).bulk_int(at);
    }
    let mut bulks = BulkWriter::new(&mut output);
    (0..100_000).for_each(|at| bulks.bulk_int(at));
    bulks.finish();
    let bytes = output.unsent_bytes();
    assert!(output.capacity() < bytes + bytes / 10 + CHUNK_BYTES, "{}", output.capacity());
    output.advance(bytes / 2);
    let bytes = output.unsent_bytes();
    assert!(output.capacity() < bytes + bytes / 10 + 2 * CHUNK_BYTES, "{}", output.capacity());
}

#[test]
fn what_is_cut_off_is_gone() {
    let long: SharedBytes = Arc::new(vec![b'l'; LONG_STRING_BYTES]);
    let mut output = Output::default();
    output.extend_from_slice(b"+kept\r\n");
    let mut expected = collected(&output);
    for _ in 0..2 {
        let before = output.len();
        output.push_message(long.clone());
        output.extend_from_slice(b"+gone\r\n");
        output.truncate(before);
        assert_eq!(collected(&output), expected);
        output.extend_from_slice(b"+more\r\n");
        expected.extend_from_slice(b"+more\r\n");
    }
    assert_eq!(collected(&output), expected);
    assert_eq!(Arc::strong_count(&long), 1);
}
