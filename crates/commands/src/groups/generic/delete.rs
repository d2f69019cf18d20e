//! DEL and UNLINK.

use crate::call::ctx::{Ctx, DONE, Outcome};
use russet_base::Args;
use russet_engine::event::Event;

/// DEL and UNLINK: what is costly to free is always freed elsewhere.
pub fn del(ctx: &mut Ctx, args: Args) -> Outcome {
    let mut deleted = 0;
    for key in args.from(1).iter() {
        if ctx.keys.remove(key) {
            ctx.keys.wrote(key, Event::DEL);
            deleted += 1;
        }
    }
    ctx.reply.int(deleted);
    DONE
}
