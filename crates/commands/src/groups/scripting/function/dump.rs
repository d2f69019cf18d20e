//! FUNCTION DUMP and RESTORE: all libraries as one payload, in the format that Redis and Valkey
//! exchange: for each library the byte 0xF5 and its source as an RDB string, then the version of
//! the format (two bytes) and a CRC-64 of all before it (eight bytes), both little-endian.

use super::edit::wrong_arity;
use super::load;
use super::{Libraries, Library};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::groups::scripting::compiling::Compiling;
use russet_base::escape::escape;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, crc64, lzf};

const LIBRARY: u8 = 0xf5;
/// What Redis 7.2 writes, which newer ones read.
const VERSION: u16 = 11;
/// The newest that is read; Valkey 9 writes 80.
const VERSION_MAX: u16 = 80;
const FOOTER_BYTES: usize = 10;
/// A string of 32-bit length; one of 64-bit length; one that is compressed.
const LENGTH_32: u8 = 0x80;
const COMPRESSED: u8 = 0xc3;

pub fn dump(ctx: &mut Ctx, _args: Args) -> Outcome {
    let mut payload = Vec::new();
    for library in ctx.node.scripts.libraries().iter() {
        payload.push(LIBRARY);
        write_length(&mut payload, library.source.len());
        payload.extend_from_slice(&library.source);
    }
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64::crc64(&payload);
    payload.extend_from_slice(&crc.to_le_bytes());
    ctx.reply.bulk(&payload);
    DONE
}

fn write_length(out: &mut Vec<u8>, len: usize) {
    match len {
        0..64 => out.push(len as u8),
        64..16_384 => out.extend_from_slice(&(0x4000 | len as u16).to_be_bytes()),
        _ => {
            out.push(LENGTH_32);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

/// What is done about libraries that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Append,
    Replace,
    Flush,
}

pub fn restore(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() > 4 {
        return Err(wrong_arity(args.at(1)));
    }
    let policy = match args.get(3) {
        None => Policy::Append,
        Some(arg) if eq_ignore_case(arg, b"append") => Policy::Append,
        Some(arg) if eq_ignore_case(arg, b"replace") => Policy::Replace,
        Some(arg) if eq_ignore_case(arg, b"flush") => Policy::Flush,
        Some(_) => {
            return Err(Refusal::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let sources = read_payload(args.at(2))?;
    let compiling = Compiling::of_call(ctx, args);
    let loaded = sources.iter().map(|source| load::parse(source, &compiling));
    let loaded = loaded.collect::<Result<Vec<Library>, Refusal>>()?;
    drop(compiling);
    ctx.node.scripts.change_libraries(|libraries| merge(libraries, loaded, policy))?;
    ctx.keys.effects.dirty += 1;
    ctx.reply.ok();
    DONE
}

/// Adds what was restored; all of it or nothing.
fn merge(libraries: &mut Libraries, loaded: Vec<Library>, policy: Policy) -> Result<(), Refusal> {
    let mut merged = match policy {
        Policy::Flush => Libraries { epoch: libraries.epoch + 1, ..Libraries::default() },
        _ => libraries.clone(),
    };
    for library in loaded {
        if policy == Policy::Append && merged.has(&library.name) {
            let name = escape(&library.name);
            return Err(Refusal::text(format!("ERR Library {name} already exists")));
        }
        if let Some(function) = merged.clash(&library) {
            let function = escape(&function);
            return Err(Refusal::text(format!("ERR Function {function} already exists")));
        }
        merged.put(library);
    }
    *libraries = merged;
    Ok(())
}

/// The sources in a payload whose version and sum are right.
fn read_payload(payload: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
    let wrong = || Refusal::text("ERR DUMP payload version or checksum are wrong");
    let Some((body, footer)) = payload.split_last_chunk::<FOOTER_BYTES>() else {
        return Err(wrong());
    };
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let [_, _, crc @ ..] = *footer;
    let sum = crc64::crc64(&payload[..payload.len() - crc.len()]);
    if version > VERSION_MAX || (u64::from_le_bytes(crc) != sum && crc != [0; 8]) {
        return Err(wrong());
    }
    let mut rest = body;
    let mut sources = Vec::new();
    while let Some((&kind, after)) = rest.split_first() {
        if kind != LIBRARY {
            return Err(Refusal::text("ERR given type is not a function"));
        }
        let broken = || Refusal::text("ERR Failed loading library data");
        let (source, after) = read_string(after).ok_or_else(broken)?;
        sources.push(source);
        rest = after;
    }
    Ok(sources)
}

fn read_string(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(&[COMPRESSED]) {
        let (packed_len, rest) = read_length(rest)?;
        let (len, rest) = read_length(rest)?;
        let packed = rest.get(..packed_len)?;
        return Some((lzf::decompress(packed, len)?, &rest[packed_len..]));
    }
    let (len, rest) = read_length(bytes)?;
    Some((rest.get(..len)?.to_vec(), &rest[len..]))
}

fn read_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first >> 6 {
        0 => Some((usize::from(first), rest)),
        1 => {
            let (&low, rest) = rest.split_first()?;
            Some((usize::from(u16::from_be_bytes([first & 0x3f, low])), rest))
        }
        _ if first == LENGTH_32 => {
            let (len, rest) = rest.split_first_chunk()?;
            Some((u32::from_be_bytes(*len) as usize, rest))
        }
        _ => None,
    }
}
