//! Long arguments that are read apart from their request.

use super::*;
use russet_base::SharedBytes;
use std::sync::Arc;

/// Reads a stream as a connection does, `piece` bytes at a time. Each command is refused once
/// before it is taken, as if its shard were busy.
fn read_apart(stream: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
    let limits = RequestLimits::default();
    let (mut batch, mut input, mut commands) = (Batch::new(), Vec::new(), Vec::new());
    let mut long: Option<Vec<u8>> = None;
    for mut bytes in stream.chunks(piece) {
        if let Some(part) = &mut long {
            let wanted = batch.long_arg().unwrap().len - part.len();
            let (own, rest) = bytes.split_at(wanted.min(bytes.len()));
            part.extend_from_slice(own);
            bytes = rest;
            if own.len() < wanted {
                continue;
            }
            batch.supply(Arc::new(long.take().unwrap()));
        }
        input.extend_from_slice(bytes);
        while batch.parse_batch(&input, &limits, 3)? > 0 {
            batch.truncate(0);
            assert!(batch.parse_batch(&input, &limits, 3)? > 0);
            let args = batch.command(0, &input);
            commands.push(args.iter().map(<[u8]>::to_vec).collect());
            batch.truncate(1);
            input.drain(..batch.consumed());
        }
        input.drain(..batch.consumed());
        if let Some(arg) = batch.long_arg() {
            let mut part = input.split_off(arg.start);
            input.extend(part.split_off(part.len().min(arg.len)));
            if part.len() == arg.len {
                batch.supply(Arc::new(part));
            } else {
                long = Some(part);
            }
        }
    }
    Ok(commands)
}

#[test]
fn a_long_argument_arrives_in_whole_however_it_is_cut() {
    let long = |fill: u8, more: usize| vec![fill; LONG_STRING_BYTES + more];
    let commands: Vec<Vec<Vec<u8>>> = vec![
        vec![b"PING".to_vec()],
        vec![b"SET".to_vec(), b"k".to_vec(), long(b'a', 0)],
        vec![b"MSET".to_vec(), b"a".to_vec(), long(b'b', 9), b"b".to_vec(), long(b'c', 70_000)],
        vec![long(b'd', 1)],
        vec![b"GET".to_vec(), b"k".to_vec()],
        vec![b"SET".to_vec(), long(b'k', 3), b"v".to_vec(), b"NX".to_vec()],
        vec![b"SET".to_vec(), b"k".to_vec(), vec![b's'; LONG_STRING_BYTES - 1]],
    ];
    let stream: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
    for piece in [1000, 4099, 65_536, 65_573, 131_072, 200_000, usize::MAX] {
        assert!(read_apart(&stream, piece).unwrap() == commands, "{piece}");
    }
}

#[test]
fn nobody_else_has_a_long_argument_once_its_command_is_done() {
    let limits = RequestLimits::default();
    let bytes: SharedBytes = Arc::new(vec![b'v'; LONG_STRING_BYTES]);
    let request = encode(&[b"SET", &b"k"[..], &bytes]);
    let head = request.len() - bytes.len() - 2;
    let mut batch = Batch::new();
    assert_eq!(batch.parse_batch(&request[..head], &limits, 9), Ok(0));
    assert_eq!(batch.long_arg(), Some(LongArg { start: head, len: bytes.len() }));
    batch.supply(bytes.clone());
    assert_eq!((batch.long_arg(), batch.supplied_bytes()), (None, bytes.len()));
    let input = [&request[..head], b"\r\n*1\r\n$4\r\nPING\r\n"].concat();
    assert_eq!(batch.parse_batch(&input, &limits, 9), Ok(1));
    assert!(Arc::ptr_eq(batch.command(0, &input).shared(2).unwrap(), &bytes));
    batch.truncate(0);
    assert_eq!(batch.parse_batch(&input, &limits, 9), Ok(1));
    assert_eq!(Arc::strong_count(&bytes), 2);
    batch.truncate(1);
    assert_eq!(Arc::strong_count(&bytes), 1);
    assert_eq!(batch.parse_batch(&input[batch.consumed()..], &limits, 9), Ok(1));
}

#[test]
fn a_long_argument_must_end_its_line() {
    let mut request = encode(&[b"SET", &b"k"[..], &vec![b'v'; LONG_STRING_BYTES]]);
    let end = request.len() - 2;
    request[end] = b'x';
    assert_eq!(read_apart(&request, 5000), Err(ProtocolError::InvalidLineEnd));
}

/// What was wrong behind a long argument was forgotten with it, and what followed was taken for
/// its bytes.
#[test]
fn an_error_keeps_the_long_arguments_before_it() {
    let limits = RequestLimits { bulk_bytes_max: LONG_STRING_BYTES, ..RequestLimits::default() };
    let bytes: SharedBytes = Arc::new(vec![b'v'; LONG_STRING_BYTES]);
    let mut batch = Batch::new();
    let head = format!("*3\r\n$1\r\nx\r\n${LONG_STRING_BYTES}\r\n");
    assert_eq!(batch.parse_batch(head.as_bytes(), &limits, 9), Ok(0));
    batch.supply(bytes.clone());
    let input = [head.as_bytes(), b"\r\n$70000\r\n"].concat();
    for _ in 0..2 {
        let refused = batch.parse_batch(&input, &limits, 9);
        assert_eq!(refused, Err(ProtocolError::InvalidBulkLength));
        assert_eq!((batch.supplied_bytes(), batch.long_arg()), (bytes.len(), None));
    }
    assert_eq!(batch.parse_batch(&input, &RequestLimits::default(), 9), Ok(0));
    assert_eq!(batch.long_arg(), Some(LongArg { start: input.len(), len: 70_000 }));
    batch.supply(Arc::new(vec![b'w'; 70_000]));
    let input = [&input[..], b"\r\n"].concat();
    assert_eq!(batch.parse_batch(&input, &limits, 9), Ok(1));
    assert!(Arc::ptr_eq(batch.command(0, &input).shared(1).unwrap(), &bytes));
    assert_eq!(batch.kept_end(), 0);
    batch.truncate(0);
    assert_eq!(batch.kept_end(), input.len());
}
