//! MODULE: there are no modules, and none can be loaded.

use super::not_allowed;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::node::config::Directive;
use russet_base::Args;

pub(crate) fn module_list(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.reply.array(0);
    DONE
}

/// `enable-module-command` can be nothing but `no`.
pub(crate) fn module_refused(ctx: &mut Ctx, _args: Args) -> Outcome {
    Err(not_allowed(ctx.command, Directive::EnableModuleCommand))
}
