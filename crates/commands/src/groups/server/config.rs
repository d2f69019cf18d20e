//! CONFIG: what clients may read and change of the settings.

use super::is_local;
use crate::call::ctx::{Ctx, DONE, Outcome};
use crate::error::Refusal;
use crate::node::config::{Directive, Origin};
use russet_base::Args;

pub(crate) fn config_get(ctx: &mut Ctx, args: Args) -> Outcome {
    let patterns: Vec<&[u8]> = args.from(2).iter().collect();
    // COMPAT: a name that was asked for by itself is answered in the letters of the question
    // (tests/wire/server/config.wire).
    let mut found = ctx.node.config.matching(&patterns);
    found.sort_unstable_by_key(|(name, _)| name.to_ascii_lowercase());
    ctx.reply.map(found.len());
    for (name, value) in found {
        ctx.reply.bulk(name.as_bytes());
        ctx.reply.bulk(&value);
    }
    DONE
}

pub(crate) fn config_set(ctx: &mut Ctx, args: Args) -> Outcome {
    if args.len() % 2 == 1 {
        return Err(Refusal::Syntax);
    }
    let values: Vec<&[u8]> = args.from(2).iter().collect();
    let pairs: Vec<(&[u8], &[u8])> = values.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let origin = if is_local(ctx.session) { Origin::Local } else { Origin::Remote };
    let node = ctx.node;
    node.config
        .set(&pairs, origin, &mut |directive| node.directive_changed(directive))
        .map_err(Refusal::text)?;
    let directives = pairs.iter().filter_map(|(name, _)| Directive::named(name));
    for warning in directives.filter_map(|directive| node.config.set_warning(directive)) {
        node.host.log(&warning);
    }
    ctx.reply.ok();
    DONE
}

pub(crate) fn config_resetstat(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.node.reset_stats();
    ctx.reply.ok();
    DONE
}

pub(crate) fn config_rewrite(ctx: &mut Ctx, _args: Args) -> Outcome {
    ctx.node.config.rewrite().map_err(Refusal::text)?;
    ctx.reply.ok();
    DONE
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn what_is_set_holds_where_it_is_kept() {
        let mut server = TestServer::new();
        assert_eq!(server.say("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2"), "+OK");
        server.say("SET a b");
        server.say("SET a b");
        server.say("SET a b");
        assert_eq!(server.say("SLOWLOG LEN"), "2");
        server.say("CONFIG SET slowlog-max-len 1");
        assert_eq!(server.say("SLOWLOG LEN"), "1");
        assert!(server.say("CONFIG SET port").contains("wrong number of arguments"));
        let odd = server.say("CONFIG SET hz 10 port");
        assert!(odd.contains("ERR syntax error"), "{odd}");
    }
}
