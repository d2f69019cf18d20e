//! MODULE: there are no modules, and none can be loaded.

use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use russet_base::Args;

pub(crate) fn module_list(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.array(0);
    DONE
}

/// `enable-module-command` can be nothing but `no`.
pub(crate) fn module_refused(_ctx: &mut Ctx, _args: Args) -> Outcome {
    Err(Refusal::text(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", \
         you can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    ))
}
