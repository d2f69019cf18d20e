//! DEBUG PROTOCOL: one reply of each type.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_protocol::Resp;

/// COMPAT: 3.141 is what the peers' clients are tested with, not a careless pi.
#[allow(clippy::approx_constant)]
pub(super) fn reply(ctx: &mut Ctx, kind: &[u8]) -> Outcome {
    let reply = &mut *ctx.reply;
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        // COMPAT: not quite pi.
        b"double" => reply.double(3141.0 / 1000.0),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|value| reply.int(value));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|value| reply.int(value));
        }
        b"map" => {
            reply.map(3);
            (0..3).for_each(|key| {
                reply.int(key);
                reply.boolean(key == 1);
            });
        }
        b"attrib" => {
            if reply.resp() == Resp::V3 {
                reply.attribute(1);
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.int(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if reply.resp() == Resp::V2 {
                return Err(Refusal::text("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.int(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(Refusal::text(
                "ERR Wrong protocol type name. Please use one of the following: string|integer|\
                 double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    DONE
}
