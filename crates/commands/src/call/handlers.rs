//! Which function runs which command. The match is exhaustive: a command of the catalog without a
//! handler does not compile.

use crate::call::ctx::Handler;
use crate::groups::connection::{client, tracking};
use crate::groups::pubsub::{inspect, publish, subscribe};
use crate::groups::scripting::{function, once};
use crate::groups::server::command;
use crate::groups::{
    acl, bitmap, bloom, cluster, connection, generic, geo, hash, help, hyperloglog, list,
    replication, scripting, server, set, stream, string, transactions, zset,
};
use russet_catalog::Command;

pub(crate) const fn of(call: Command) -> Handler {
    match call {
        // connection
        Command::Hello => connection::login::hello,
        Command::Auth => connection::login::auth,
        Command::Ping => connection::ping,
        Command::Echo => connection::echo,
        Command::Quit => connection::quit,
        Command::Reset => connection::reset,
        Command::Select => connection::select,
        Command::Client => help::container,
        Command::ClientId => client::id,
        Command::ClientGetname => client::getname,
        Command::ClientSetname => client::setname,
        Command::ClientSetinfo => client::setinfo,
        Command::ClientInfo => connection::list::info,
        Command::ClientList => connection::list::list,
        Command::ClientKill => connection::kill::kill,
        Command::ClientNoEvict => client::no_evict,
        Command::ClientNoTouch => client::no_touch,
        Command::ClientCapa => client::capa,
        Command::ClientReply => client::reply,
        Command::ClientPause => connection::pause::pause,
        Command::ClientUnpause => connection::pause::unpause,
        Command::ClientUnblock => connection::pause::unblock,
        Command::ClientImportSource => client::import_source,
        Command::ClientHelp => help::help,
        Command::ClientCaching => tracking::caching,
        Command::ClientGetredir => tracking::getredir,
        Command::ClientTracking => tracking::tracking,
        Command::ClientTrackinginfo => tracking::trackinginfo,
        Command::ClientMaintNotifications => tracking::maint_notifications,
        // generic
        Command::Del => generic::del,
        Command::Unlink => generic::del,
        Command::Exists => generic::exists,
        Command::Type => generic::type_,
        Command::Keys => generic::keys,
        Command::Scan => generic::scan,
        Command::Randomkey => generic::randomkey,
        Command::Rename => generic::rename,
        Command::Renamenx => generic::renamenx,
        Command::Copy => generic::copy,
        Command::Dump => generic::dump,
        Command::Restore | Command::RestoreAsking => generic::restore,
        Command::Migrate => generic::migrate,
        Command::Move => generic::move_,
        Command::Touch => generic::touch,
        Command::Expire => generic::expire,
        Command::Pexpire => generic::pexpire,
        Command::Expireat => generic::expireat,
        Command::Pexpireat => generic::pexpireat,
        Command::Ttl => generic::ttl,
        Command::Pttl => generic::pttl,
        Command::Expiretime => generic::expiretime,
        Command::Pexpiretime => generic::pexpiretime,
        Command::Persist => generic::persist,
        Command::Sort => generic::sort,
        Command::SortRo => generic::sort_ro,
        Command::Object => help::container,
        Command::ObjectEncoding => generic::object_encoding,
        Command::ObjectFreq => generic::object_freq,
        Command::ObjectIdletime => generic::object_idletime,
        Command::ObjectRefcount => generic::object_refcount,
        Command::ObjectHelp => generic::object_help,
        // string
        Command::Get => string::read::get,
        Command::Set => string::write::set,
        Command::Getex => string::write::getex,
        Command::Getdel => string::write::getdel,
        Command::Getset => string::write::getset,
        Command::Setnx => string::write::setnx,
        Command::Setex => string::write::setex,
        Command::Psetex => string::write::psetex,
        Command::Mget => string::many::mget,
        Command::Mset => string::many::mset,
        Command::Msetnx => string::many::msetnx,
        Command::Msetex => string::many::msetex,
        Command::Append => string::edit::append,
        Command::Strlen => string::read::strlen,
        Command::Getrange => string::read::getrange,
        Command::Substr => string::read::getrange,
        Command::Setrange => string::edit::setrange,
        Command::Incr => string::counter::incr,
        Command::Decr => string::counter::decr,
        Command::Incrby => string::counter::incrby,
        Command::Decrby => string::counter::decrby,
        Command::Incrbyfloat => string::counter::incrbyfloat,
        Command::Increx => string::increx::increx,
        Command::Digest => string::compare::digest,
        Command::Lcs => string::compare::lcs,
        Command::Delex => string::delete::delex,
        Command::Delifeq => string::delete::delifeq,
        // bitmap
        Command::Setbit => bitmap::bit::setbit,
        Command::Getbit => bitmap::bit::getbit,
        Command::Bitcount => bitmap::range::bitcount,
        Command::Bitpos => bitmap::range::bitpos,
        Command::Bitop => bitmap::operation::bitop,
        Command::Bitfield => bitmap::field::bitfield,
        Command::BitfieldRo => bitmap::field::bitfield_ro,
        // list
        Command::Lpush => list::lpush,
        Command::Rpush => list::rpush,
        Command::Lpushx => list::lpushx,
        Command::Rpushx => list::rpushx,
        Command::Lpop => list::lpop,
        Command::Rpop => list::rpop,
        Command::Llen => list::llen,
        Command::Lrange => list::lrange,
        Command::Ltrim => list::ltrim,
        Command::Lindex => list::lindex,
        Command::Lset => list::lset,
        Command::Linsert => list::linsert,
        Command::Lrem => list::lrem,
        Command::Lpos => list::lpos,
        Command::Lmove => list::lmove,
        Command::Rpoplpush => list::rpoplpush,
        Command::Lmpop => list::lmpop,
        Command::Lmovem => list::lmovem,
        Command::Blpop => list::blpop,
        Command::Brpop => list::brpop,
        Command::Blmove => list::blmove,
        Command::Brpoplpush => list::brpoplpush,
        Command::Blmpop => list::blmpop,
        Command::Blmovem => list::blmovem,
        // set
        Command::Sadd => set::sadd,
        Command::Srem => set::srem,
        Command::Sismember => set::sismember,
        Command::Smismember => set::smismember,
        Command::Scard => set::scard,
        Command::Smembers => set::smembers,
        Command::Spop => set::spop,
        Command::Srandmember => set::srandmember,
        Command::Smove => set::smove,
        Command::Sscan => set::sscan,
        Command::Sinter => set::sinter,
        Command::Sunion => set::sunion,
        Command::Sdiff => set::sdiff,
        Command::Sinterstore => set::sinterstore,
        Command::Sunionstore => set::sunionstore,
        Command::Sdiffstore => set::sdiffstore,
        Command::Sintercard => set::sintercard,
        Command::Sunioncard => set::sunioncard,
        Command::Sdiffcard => set::sdiffcard,
        // sorted set
        Command::Zadd => zset::zadd,
        Command::Zincrby => zset::zincrby,
        Command::Zrem => zset::zrem,
        Command::Zremrangebyrank => zset::zremrangebyrank,
        Command::Zremrangebyscore => zset::zremrangebyscore,
        Command::Zremrangebylex => zset::zremrangebylex,
        Command::Zcard => zset::zcard,
        Command::Zscore => zset::zscore,
        Command::Zmscore => zset::zmscore,
        Command::Zrank => zset::zrank,
        Command::Zrevrank => zset::zrevrank,
        Command::Zcount => zset::zcount,
        Command::Zlexcount => zset::zlexcount,
        Command::Zrange => zset::zrange,
        Command::Zrevrange => zset::zrevrange,
        Command::Zrangebyscore => zset::zrangebyscore,
        Command::Zrevrangebyscore => zset::zrevrangebyscore,
        Command::Zrangebylex => zset::zrangebylex,
        Command::Zrevrangebylex => zset::zrevrangebylex,
        Command::Zrangestore => zset::zrangestore,
        Command::Zpopmin => zset::zpopmin,
        Command::Zpopmax => zset::zpopmax,
        Command::Zmpop => zset::zmpop,
        Command::Bzpopmin => zset::bzpopmin,
        Command::Bzpopmax => zset::bzpopmax,
        Command::Bzmpop => zset::bzmpop,
        Command::Zunion => zset::zunion,
        Command::Zunionstore => zset::zunionstore,
        Command::Zinter => zset::zinter,
        Command::Zinterstore => zset::zinterstore,
        Command::Zintercard => zset::zintercard,
        Command::Zdiff => zset::zdiff,
        Command::Zdiffstore => zset::zdiffstore,
        Command::Zrandmember => zset::zrandmember,
        Command::Zscan => zset::zscan,
        // hash
        Command::Hset => hash::hset,
        Command::Hmset => hash::hmset,
        Command::Hsetnx => hash::hsetnx,
        Command::Hget => hash::hget,
        Command::Hmget => hash::hmget,
        Command::Hgetall => hash::hgetall,
        Command::Hkeys => hash::hkeys,
        Command::Hvals => hash::hvals,
        Command::Hlen => hash::hlen,
        Command::Hstrlen => hash::hstrlen,
        Command::Hexists => hash::hexists,
        Command::Hdel => hash::hdel,
        Command::Hincrby => hash::hincrby,
        Command::Hincrbyfloat => hash::hincrbyfloat,
        Command::Hrandfield => hash::hrandfield,
        Command::Hscan => hash::hscan,
        Command::Hgetdel => hash::hgetdel,
        Command::Hgetex => hash::hgetex,
        Command::Hsetex => hash::hsetex,
        Command::Hexpire => hash::hexpire,
        Command::Hpexpire => hash::hpexpire,
        Command::Hexpireat => hash::hexpireat,
        Command::Hpexpireat => hash::hpexpireat,
        Command::Httl => hash::httl,
        Command::Hpttl => hash::hpttl,
        Command::Hexpiretime => hash::hexpiretime,
        Command::Hpexpiretime => hash::hpexpiretime,
        Command::Hpersist => hash::hpersist,
        // stream
        Command::Xadd => stream::xadd,
        Command::Xlen => stream::xlen,
        Command::Xrange => stream::xrange,
        Command::Xrevrange => stream::xrevrange,
        Command::Xread => stream::xread,
        Command::Xreadgroup => stream::xreadgroup,
        Command::Xgroup => help::container,
        Command::XgroupCreate => stream::create,
        Command::XgroupCreateconsumer => stream::createconsumer,
        Command::XgroupDelconsumer => stream::delconsumer,
        Command::XgroupDestroy => stream::destroy,
        Command::XgroupSetid => stream::setid,
        Command::XgroupHelp => help::help,
        Command::Xack => stream::xack,
        Command::Xackdel => stream::xackdel,
        Command::Xnack => stream::xnack,
        Command::Xdel => stream::xdel,
        Command::Xdelex => stream::xdelex,
        Command::Xpending => stream::xpending,
        Command::Xclaim => stream::xclaim,
        Command::Xautoclaim => stream::xautoclaim,
        Command::Xtrim => stream::xtrim,
        Command::Xsetid => stream::xsetid,
        Command::Xcfgset => stream::xcfgset,
        Command::Xinfo => help::container,
        Command::XinfoStream => stream::info_stream,
        Command::XinfoGroups => stream::info_groups,
        Command::XinfoConsumers => stream::info_consumers,
        Command::XinfoHelp => help::help,
        // geo
        Command::Geoadd => geo::geoadd,
        Command::Geodist => geo::geodist,
        Command::Geohash => geo::geohash,
        Command::Geopos => geo::geopos,
        Command::Geosearch => geo::geosearch,
        Command::Geosearchstore => geo::geosearchstore,
        Command::Georadius => geo::georadius,
        Command::GeoradiusRo => geo::georadius_ro,
        Command::Georadiusbymember => geo::georadiusbymember,
        Command::GeoradiusbymemberRo => geo::georadiusbymember_ro,
        // hyperloglog
        Command::Pfadd => hyperloglog::pfadd,
        Command::Pfcount => hyperloglog::pfcount,
        Command::Pfmerge => hyperloglog::pfmerge,
        Command::Pfdebug => hyperloglog::pfdebug,
        Command::Pfselftest => hyperloglog::pfselftest,
        // bloom
        Command::BfReserve => bloom::bf_reserve,
        Command::BfAdd => bloom::bf_add,
        Command::BfMadd => bloom::bf_madd,
        Command::BfInsert => bloom::bf_insert,
        Command::BfExists => bloom::bf_exists,
        Command::BfMexists => bloom::bf_mexists,
        Command::BfCard => bloom::bf_card,
        Command::BfInfo => bloom::bf_info,
        // transactions
        Command::Multi => transactions::multi,
        Command::Exec => transactions::exec,
        Command::Discard => transactions::discard,
        Command::Watch => transactions::watch,
        Command::Unwatch => transactions::unwatch,
        // pubsub
        Command::Subscribe => subscribe::subscribe,
        Command::Unsubscribe => subscribe::unsubscribe,
        Command::Psubscribe => subscribe::psubscribe,
        Command::Punsubscribe => subscribe::punsubscribe,
        Command::Ssubscribe => subscribe::ssubscribe,
        Command::Sunsubscribe => subscribe::sunsubscribe,
        Command::Publish => publish::publish,
        Command::Spublish => publish::spublish,
        Command::Pubsub => help::container,
        Command::PubsubChannels => inspect::channels,
        Command::PubsubNumsub => inspect::numsub,
        Command::PubsubNumpat => inspect::numpat,
        Command::PubsubShardchannels => inspect::shardchannels,
        Command::PubsubShardnumsub => inspect::shardnumsub,
        Command::PubsubHelp => help::help,
        // server
        Command::Info => server::info,
        Command::Config => help::container,
        Command::ConfigGet => server::config_get,
        Command::ConfigSet => server::config_set,
        Command::ConfigResetstat => server::config_resetstat,
        Command::ConfigRewrite => server::config_rewrite,
        Command::ConfigHelp => help::help,
        Command::Command => command::info::all,
        Command::CommandCount => command::count,
        Command::CommandList => command::list,
        Command::CommandInfo => command::info::info,
        Command::CommandDocs => command::docs::docs,
        Command::CommandGetkeys => command::getkeys,
        Command::CommandGetkeysandflags => command::getkeysandflags,
        Command::CommandHelp => help::help,
        Command::Dbsize => server::dbsize,
        Command::Flushdb => server::flushdb,
        Command::Flushall => server::flushall,
        Command::Swapdb => server::swapdb,
        Command::Time => server::time,
        Command::Lolwut => server::lolwut,
        Command::Memory => help::container,
        Command::MemoryUsage => server::memory_usage,
        Command::MemoryStats => server::memory_stats,
        Command::MemoryDoctor => server::memory_doctor,
        Command::MemoryMallocStats => server::memory_malloc_stats,
        Command::MemoryPurge => server::memory_purge,
        Command::MemoryHelp => help::help,
        Command::Debug => server::debug,
        Command::Slowlog => help::container,
        Command::SlowlogGet => server::slowlog_get,
        Command::SlowlogLen => server::slowlog_len,
        Command::SlowlogReset => server::slowlog_reset,
        Command::SlowlogHelp => help::help,
        Command::Commandlog => help::container,
        Command::CommandlogGet => server::commandlog_get,
        Command::CommandlogLen => server::commandlog_len,
        Command::CommandlogReset => server::commandlog_reset,
        Command::CommandlogHelp => help::help,
        Command::Latency => help::container,
        Command::LatencyLatest => server::latency_latest,
        Command::LatencyHistory => server::latency_history,
        Command::LatencyReset => server::latency_reset,
        Command::LatencyGraph => server::latency_graph,
        Command::LatencyDoctor => server::latency_doctor,
        Command::LatencyHistogram => server::latency_histogram,
        Command::LatencyHelp => help::help,
        Command::Hotkeys => help::container,
        Command::HotkeysGet => server::hotkeys_get,
        Command::HotkeysHelp => help::help,
        Command::HotkeysReset => server::hotkeys_reset,
        Command::HotkeysStart => server::hotkeys_start,
        Command::HotkeysStop => server::hotkeys_stop,
        Command::Shutdown => server::shutdown,
        Command::Monitor => server::monitor,
        Command::Bgrewriteaof => server::bgrewriteaof,
        Command::Bgsave => server::bgsave,
        Command::Lastsave => server::lastsave,
        Command::Save => server::save,
        Command::Module => help::container,
        Command::ModuleHelp => help::help,
        Command::ModuleList => server::module_list,
        Command::ModuleLoad | Command::ModuleLoadex | Command::ModuleUnload => {
            server::module_refused
        }
        // acl
        Command::Acl => help::container,
        Command::AclCat => acl::cat,
        Command::AclDeluser => acl::deluser,
        Command::AclDryrun => acl::dryrun,
        Command::AclGenpass => acl::genpass,
        Command::AclGetuser => acl::getuser,
        Command::AclHelp => help::help,
        Command::AclList => acl::list,
        Command::AclLoad => acl::load,
        Command::AclLog => acl::log,
        Command::AclSave => acl::save,
        Command::AclSetuser => acl::setuser,
        Command::AclUsers => acl::users,
        Command::AclWhoami => acl::whoami,
        // replication
        Command::Role => replication::role,
        Command::Replicaof | Command::Slaveof => replication::replicaof,
        Command::Failover => replication::failover,
        Command::Sync | Command::Psync => replication::sync,
        Command::Replconf => replication::replconf,
        Command::Wait => replication::wait,
        Command::Waitaof => replication::waitaof,
        // cluster
        Command::Readonly => cluster::readonly,
        Command::Readwrite => cluster::readwrite,
        Command::Cluster => help::container,
        Command::ClusterKeyslot => cluster::keyslot,
        Command::Asking
        | Command::ClusterAddslots
        | Command::ClusterAddslotsrange
        | Command::ClusterBumpepoch
        | Command::ClusterCancelslotmigrations
        | Command::ClusterCountFailureReports
        | Command::ClusterCountkeysinslot
        | Command::ClusterDelslots
        | Command::ClusterDelslotsrange
        | Command::ClusterFailover
        | Command::ClusterFlushslot
        | Command::ClusterFlushslots
        | Command::ClusterForget
        | Command::ClusterGetkeysinslot
        | Command::ClusterGetslotmigrations
        | Command::ClusterHelp
        | Command::ClusterInfo
        | Command::ClusterLinks
        | Command::ClusterMeet
        | Command::ClusterMigrateslots
        | Command::ClusterMyid
        | Command::ClusterMyshardid
        | Command::ClusterNodes
        | Command::ClusterReplicas
        | Command::ClusterReplicate
        | Command::ClusterReset
        | Command::ClusterSaveconfig
        | Command::ClusterSetConfigEpoch
        | Command::ClusterSetslot
        | Command::ClusterShards
        | Command::ClusterSlaves
        | Command::ClusterSlotStats
        | Command::ClusterSlots
        | Command::ClusterSyncslots => cluster::refused,
        // scripting
        Command::Eval => scripting::eval,
        Command::Evalsha => scripting::evalsha,
        Command::EvalRo => scripting::eval_ro,
        Command::EvalshaRo => scripting::evalsha_ro,
        Command::Fcall => function::fcall,
        Command::FcallRo => function::fcall_ro,
        Command::Once => once::once,
        Command::Script => help::container,
        Command::ScriptLoad => scripting::load,
        Command::ScriptExists => scripting::exists,
        Command::ScriptShow => scripting::show,
        Command::ScriptFlush => scripting::flush,
        Command::ScriptKill => scripting::kill,
        Command::ScriptDebug => scripting::debug,
        Command::ScriptStats => scripting::stats,
        Command::ScriptHelp => help::help,
        Command::Function => help::container,
        Command::FunctionLoad => function::load_command,
        Command::FunctionDelete => function::delete,
        Command::FunctionList => function::list,
        Command::FunctionStats => function::stats,
        Command::FunctionKill => function::kill,
        Command::FunctionDump => function::dump,
        Command::FunctionRestore => function::restore,
        Command::FunctionFlush => function::flush,
        Command::FunctionHelp => help::help,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_catalog::spec::Group;
    use std::collections::HashMap;

    /// The rooms of `groups` that may have handlers of a group of the catalog. Of the server's some
    /// have a room of their own, as they have a file of their own in the catalog.
    fn rooms(group: Group) -> &'static [&'static str] {
        match group {
            Group::SortedSet => &["zset"],
            Group::Module => &["bloom"],
            Group::Server => &["server", "acl", "replication"],
            Group::Generic => &["generic", "replication"],
            Group::Connection => &["connection"],
            Group::Cluster => &["cluster"],
            Group::Scripting => &["scripting"],
            Group::Transactions => &["transactions"],
            Group::PubSub => &["pubsub"],
            Group::String => &["string"],
            Group::Bitmap => &["bitmap"],
            Group::List => &["list"],
            Group::Set => &["set"],
            Group::Hash => &["hash"],
            Group::Stream => &["stream"],
            Group::Geo => &["geo"],
            Group::HyperLogLog => &["hyperloglog"],
            Group::Sentinel => &[],
        }
    }

    /// Modules that are imported by a shorter name, and the rooms that they are in.
    fn short_names(source: &'static str) -> HashMap<&'static str, &'static str> {
        let imports = source.lines().filter_map(|line| line.strip_prefix("use crate::groups::"));
        let inner = imports.filter_map(|path| path.trim_end_matches(';').split_once("::"));
        let each = inner.flat_map(|(room, names)| {
            names.trim_matches(['{', '}']).split(", ").map(move |name| (name, room))
        });
        each.collect()
    }

    /// COMMAND lived with CLIENT, and FLUSHALL and DELEX with DEL: who looked for a command by its
    /// group did not find it.
    #[test]
    fn a_handler_lives_in_the_room_of_its_group() {
        let source = include_str!("handlers.rs");
        let short_names = short_names(source);
        let mut found = 0;
        for command in Command::ALL {
            let arm = format!("        Command::{command:?} => ");
            let Some((_, rest)) = source.split_once(&arm) else { continue };
            let first = rest.split([':', ',']).next().unwrap();
            let room = *short_names.get(first).unwrap_or(&first);
            let spec = command.spec();
            found += 1;
            // What all containers have in common is in a file beside the rooms.
            let is_home = room == "help" || rooms(spec.group).contains(&room);
            assert!(is_home, "{} of {:?} is in {room}", spec.full_name, spec.group);
        }
        assert!(found > 300, "{found}");
    }
}
