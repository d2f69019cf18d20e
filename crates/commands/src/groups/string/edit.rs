//! Changing strings in place.

use super::{check_length, integer};
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;
use russet_engine::event::Event;
use russet_engine::types::blob::Blob;
use russet_engine::types::string;

pub fn append(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, more) = (args.at(1), args.at(2));
    let old_len = match ctx.keys.peek(key) {
        None => None,
        Some(entry) => Some(string::text(&entry)?.len()),
    };
    let len = match old_len {
        None => {
            ctx.keys.put_arg(key, (args, 2), None);
            more.len()
        }
        Some(old_len) => {
            let len = check_length(ctx, old_len, more.len())?;
            if let Some(mut entry) = ctx.keys.write(key) {
                string::edit(&mut entry, len)?.splice(old_len, 0, &[more]);
            }
            len
        }
    };
    ctx.keys.wrote(key, Event::string("append"));
    ctx.reply.int(len as i64);
    DONE
}

pub fn setrange(ctx: &mut Ctx, args: Args) -> Outcome {
    let (key, value) = (args.at(1), args.at(3));
    let offset = usize::try_from(integer(args.at(2))?)
        .map_err(|_| Refusal::text("ERR offset is out of range"))?;
    let old_len = match ctx.keys.peek(key) {
        None => None,
        Some(entry) => Some(string::text(&entry)?.len()),
    };
    if value.is_empty() {
        ctx.reply.int(old_len.unwrap_or(0) as i64);
        return DONE;
    }
    let end = check_length(ctx, offset, value.len())?;
    if old_len.is_some() {
        if let Some(mut entry) = ctx.keys.write(key) {
            string::edit(&mut entry, end)?.write(offset, value);
        }
    } else {
        // Zeroed memory comes from the system as it is, without being written.
        let mut bytes = vec![0; end];
        bytes[offset..].copy_from_slice(value);
        ctx.keys.put(key, string::adopt(&mut bytes), None);
    }
    ctx.keys.wrote(key, Event::string("setrange"));
    ctx.reply.int(old_len.unwrap_or(0).max(end) as i64);
    DONE
}
