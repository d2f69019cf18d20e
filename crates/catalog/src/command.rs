//! [`Command`]: one variant for each spec of the table, so that a `match` over it in another crate
//! doesn't compile while a command has no handler.

use crate::groups;
use crate::spec::Spec;

/// Lists the table once; the enum and every array in the enum's order come from this list. A
/// subcommand stands right behind its container, which makes a container's family a slice.
macro_rules! commands {
    ($( $group:ident {
        $( $name:ident = $spec:ident $({ $( $sub:ident = $sub_spec:ident, )* })?, )*
    } )*) => {
        /// A command or a subcommand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Command {
            $($( $name, $($( $sub, )*)? )*)*
        }

        impl Command {
            /// Every command in the order of the table, each container followed by its
            /// subcommands.
            pub const ALL: &'static [Command] = &[
                $($( Command::$name, $($( Command::$sub, )*)? )*)*
            ];
        }

        pub(crate) static SPECS: [Spec; Command::ALL.len()] = [
            $($( groups::$group::$spec, $($( groups::$group::$sub_spec, )*)? )*)*
        ];

        const PARENTS: [Option<Command>; Command::ALL.len()] = [
            $($( None, $($( { let _ = Command::$sub; Some(Command::$name) }, )*)? )*)*
        ];
    };
}

commands! {
    connection {
        Hello = HELLO,
        Auth = AUTH,
        Ping = PING,
        Echo = ECHO,
        Quit = QUIT,
        Reset = RESET,
        Select = SELECT,
        Client = CLIENT {
            ClientId = CLIENT_ID,
            ClientGetname = CLIENT_GETNAME,
            ClientSetname = CLIENT_SETNAME,
            ClientSetinfo = CLIENT_SETINFO,
            ClientInfo = CLIENT_INFO,
            ClientList = CLIENT_LIST,
            ClientKill = CLIENT_KILL,
            ClientNoEvict = CLIENT_NO_EVICT,
            ClientNoTouch = CLIENT_NO_TOUCH,
            ClientCapa = CLIENT_CAPA,
            ClientReply = CLIENT_REPLY,
            ClientPause = CLIENT_PAUSE,
            ClientUnpause = CLIENT_UNPAUSE,
            ClientUnblock = CLIENT_UNBLOCK,
            ClientImportSource = CLIENT_IMPORT_SOURCE,
            ClientHelp = CLIENT_HELP,
            ClientCaching = CLIENT_CACHING,
            ClientGetredir = CLIENT_GETREDIR,
            ClientTracking = CLIENT_TRACKING,
            ClientTrackinginfo = CLIENT_TRACKINGINFO,
            ClientMaintNotifications = CLIENT_MAINT_NOTIFICATIONS,
        },
    }
    generic {
        Del = DEL,
        Unlink = UNLINK,
        Exists = EXISTS,
        Type = TYPE,
        Keys = KEYS,
        Scan = SCAN,
        Randomkey = RANDOMKEY,
        Rename = RENAME,
        Renamenx = RENAMENX,
        Copy = COPY,
        Dump = DUMP,
        Restore = RESTORE,
        RestoreAsking = RESTORE_ASKING,
        Migrate = MIGRATE,
        Move = MOVE,
        Touch = TOUCH,
        Expire = EXPIRE,
        Pexpire = PEXPIRE,
        Expireat = EXPIREAT,
        Pexpireat = PEXPIREAT,
        Ttl = TTL,
        Pttl = PTTL,
        Expiretime = EXPIRETIME,
        Pexpiretime = PEXPIRETIME,
        Persist = PERSIST,
        Sort = SORT,
        SortRo = SORT_RO,
        Object = OBJECT {
            ObjectEncoding = OBJECT_ENCODING,
            ObjectFreq = OBJECT_FREQ,
            ObjectIdletime = OBJECT_IDLETIME,
            ObjectRefcount = OBJECT_REFCOUNT,
            ObjectHelp = OBJECT_HELP,
        },
    }
    string {
        Get = GET,
        Set = SET,
        Getex = GETEX,
        Getdel = GETDEL,
        Getset = GETSET,
        Setnx = SETNX,
        Setex = SETEX,
        Psetex = PSETEX,
        Mget = MGET,
        Mset = MSET,
        Msetnx = MSETNX,
        Msetex = MSETEX,
        Append = APPEND,
        Strlen = STRLEN,
        Getrange = GETRANGE,
        Substr = SUBSTR,
        Setrange = SETRANGE,
        Incr = INCR,
        Decr = DECR,
        Incrby = INCRBY,
        Decrby = DECRBY,
        Incrbyfloat = INCRBYFLOAT,
        Increx = INCREX,
        Digest = DIGEST,
        Lcs = LCS,
        Delex = DELEX,
        Delifeq = DELIFEQ,
    }
    bitmap {
        Setbit = SETBIT,
        Getbit = GETBIT,
        Bitcount = BITCOUNT,
        Bitpos = BITPOS,
        Bitop = BITOP,
        Bitfield = BITFIELD,
        BitfieldRo = BITFIELD_RO,
    }
    list {
        Lpush = LPUSH,
        Rpush = RPUSH,
        Lpushx = LPUSHX,
        Rpushx = RPUSHX,
        Lpop = LPOP,
        Rpop = RPOP,
        Llen = LLEN,
        Lrange = LRANGE,
        Ltrim = LTRIM,
        Lindex = LINDEX,
        Lset = LSET,
        Linsert = LINSERT,
        Lrem = LREM,
        Lpos = LPOS,
        Lmove = LMOVE,
        Rpoplpush = RPOPLPUSH,
        Lmpop = LMPOP,
        Lmovem = LMOVEM,
        Blpop = BLPOP,
        Brpop = BRPOP,
        Blmove = BLMOVE,
        Brpoplpush = BRPOPLPUSH,
        Blmpop = BLMPOP,
        Blmovem = BLMOVEM,
    }
    set {
        Sadd = SADD,
        Srem = SREM,
        Sismember = SISMEMBER,
        Smismember = SMISMEMBER,
        Scard = SCARD,
        Smembers = SMEMBERS,
        Spop = SPOP,
        Srandmember = SRANDMEMBER,
        Smove = SMOVE,
        Sscan = SSCAN,
        Sinter = SINTER,
        Sunion = SUNION,
        Sdiff = SDIFF,
        Sinterstore = SINTERSTORE,
        Sunionstore = SUNIONSTORE,
        Sdiffstore = SDIFFSTORE,
        Sintercard = SINTERCARD,
        Sunioncard = SUNIONCARD,
        Sdiffcard = SDIFFCARD,
    }
    zset {
        Zadd = ZADD,
        Zincrby = ZINCRBY,
        Zrem = ZREM,
        Zremrangebyrank = ZREMRANGEBYRANK,
        Zremrangebyscore = ZREMRANGEBYSCORE,
        Zremrangebylex = ZREMRANGEBYLEX,
        Zcard = ZCARD,
        Zscore = ZSCORE,
        Zmscore = ZMSCORE,
        Zrank = ZRANK,
        Zrevrank = ZREVRANK,
        Zcount = ZCOUNT,
        Zlexcount = ZLEXCOUNT,
        Zrange = ZRANGE,
        Zrevrange = ZREVRANGE,
        Zrangebyscore = ZRANGEBYSCORE,
        Zrevrangebyscore = ZREVRANGEBYSCORE,
        Zrangebylex = ZRANGEBYLEX,
        Zrevrangebylex = ZREVRANGEBYLEX,
        Zrangestore = ZRANGESTORE,
        Zpopmin = ZPOPMIN,
        Zpopmax = ZPOPMAX,
        Zmpop = ZMPOP,
        Bzpopmin = BZPOPMIN,
        Bzpopmax = BZPOPMAX,
        Bzmpop = BZMPOP,
        Zunion = ZUNION,
        Zunionstore = ZUNIONSTORE,
        Zinter = ZINTER,
        Zinterstore = ZINTERSTORE,
        Zintercard = ZINTERCARD,
        Zdiff = ZDIFF,
        Zdiffstore = ZDIFFSTORE,
        Zrandmember = ZRANDMEMBER,
        Zscan = ZSCAN,
    }
    hash {
        Hset = HSET,
        Hmset = HMSET,
        Hsetnx = HSETNX,
        Hget = HGET,
        Hmget = HMGET,
        Hgetall = HGETALL,
        Hkeys = HKEYS,
        Hvals = HVALS,
        Hlen = HLEN,
        Hstrlen = HSTRLEN,
        Hexists = HEXISTS,
        Hdel = HDEL,
        Hincrby = HINCRBY,
        Hincrbyfloat = HINCRBYFLOAT,
        Hrandfield = HRANDFIELD,
        Hscan = HSCAN,
        Hgetdel = HGETDEL,
        Hgetex = HGETEX,
        Hsetex = HSETEX,
        Hexpire = HEXPIRE,
        Hpexpire = HPEXPIRE,
        Hexpireat = HEXPIREAT,
        Hpexpireat = HPEXPIREAT,
        Httl = HTTL,
        Hpttl = HPTTL,
        Hexpiretime = HEXPIRETIME,
        Hpexpiretime = HPEXPIRETIME,
        Hpersist = HPERSIST,
    }
    stream {
        Xadd = XADD,
        Xlen = XLEN,
        Xrange = XRANGE,
        Xrevrange = XREVRANGE,
        Xread = XREAD,
        Xreadgroup = XREADGROUP,
        Xgroup = XGROUP {
            XgroupCreate = XGROUP_CREATE,
            XgroupCreateconsumer = XGROUP_CREATECONSUMER,
            XgroupDelconsumer = XGROUP_DELCONSUMER,
            XgroupDestroy = XGROUP_DESTROY,
            XgroupSetid = XGROUP_SETID,
            XgroupHelp = XGROUP_HELP,
        },
        Xack = XACK,
        Xackdel = XACKDEL,
        Xnack = XNACK,
        Xdel = XDEL,
        Xdelex = XDELEX,
        Xpending = XPENDING,
        Xclaim = XCLAIM,
        Xautoclaim = XAUTOCLAIM,
        Xtrim = XTRIM,
        Xsetid = XSETID,
        Xcfgset = XCFGSET,
        Xinfo = XINFO {
            XinfoStream = XINFO_STREAM,
            XinfoGroups = XINFO_GROUPS,
            XinfoConsumers = XINFO_CONSUMERS,
            XinfoHelp = XINFO_HELP,
        },
    }
    geo {
        Geoadd = GEOADD,
        Geodist = GEODIST,
        Geohash = GEOHASH,
        Geopos = GEOPOS,
        Geosearch = GEOSEARCH,
        Geosearchstore = GEOSEARCHSTORE,
        Georadius = GEORADIUS,
        GeoradiusRo = GEORADIUS_RO,
        Georadiusbymember = GEORADIUSBYMEMBER,
        GeoradiusbymemberRo = GEORADIUSBYMEMBER_RO,
    }
    hyperloglog {
        Pfadd = PFADD,
        Pfcount = PFCOUNT,
        Pfmerge = PFMERGE,
        Pfdebug = PFDEBUG,
        Pfselftest = PFSELFTEST,
    }
    bloom {
        BfReserve = BF_RESERVE,
        BfAdd = BF_ADD,
        BfMadd = BF_MADD,
        BfInsert = BF_INSERT,
        BfExists = BF_EXISTS,
        BfMexists = BF_MEXISTS,
        BfCard = BF_CARD,
        BfInfo = BF_INFO,
    }
    transactions {
        Multi = MULTI,
        Exec = EXEC,
        Discard = DISCARD,
        Watch = WATCH,
        Unwatch = UNWATCH,
    }
    pubsub {
        Subscribe = SUBSCRIBE,
        Unsubscribe = UNSUBSCRIBE,
        Psubscribe = PSUBSCRIBE,
        Punsubscribe = PUNSUBSCRIBE,
        Ssubscribe = SSUBSCRIBE,
        Sunsubscribe = SUNSUBSCRIBE,
        Publish = PUBLISH,
        Spublish = SPUBLISH,
        Pubsub = PUBSUB {
            PubsubChannels = PUBSUB_CHANNELS,
            PubsubNumsub = PUBSUB_NUMSUB,
            PubsubNumpat = PUBSUB_NUMPAT,
            PubsubShardchannels = PUBSUB_SHARDCHANNELS,
            PubsubShardnumsub = PUBSUB_SHARDNUMSUB,
            PubsubHelp = PUBSUB_HELP,
        },
    }
    server {
        Info = INFO,
        Config = CONFIG {
            ConfigGet = CONFIG_GET,
            ConfigSet = CONFIG_SET,
            ConfigResetstat = CONFIG_RESETSTAT,
            ConfigRewrite = CONFIG_REWRITE,
            ConfigHelp = CONFIG_HELP,
        },
        Command = COMMAND {
            CommandCount = COMMAND_COUNT,
            CommandList = COMMAND_LIST,
            CommandInfo = COMMAND_INFO,
            CommandDocs = COMMAND_DOCS,
            CommandGetkeys = COMMAND_GETKEYS,
            CommandGetkeysandflags = COMMAND_GETKEYSANDFLAGS,
            CommandHelp = COMMAND_HELP,
        },
        Dbsize = DBSIZE,
        Flushdb = FLUSHDB,
        Flushall = FLUSHALL,
        Swapdb = SWAPDB,
        Time = TIME,
        Lolwut = LOLWUT,
        Memory = MEMORY {
            MemoryUsage = MEMORY_USAGE,
            MemoryStats = MEMORY_STATS,
            MemoryDoctor = MEMORY_DOCTOR,
            MemoryMallocStats = MEMORY_MALLOC_STATS,
            MemoryPurge = MEMORY_PURGE,
            MemoryHelp = MEMORY_HELP,
        },
        Debug = DEBUG,
        Slowlog = SLOWLOG {
            SlowlogGet = SLOWLOG_GET,
            SlowlogLen = SLOWLOG_LEN,
            SlowlogReset = SLOWLOG_RESET,
            SlowlogHelp = SLOWLOG_HELP,
        },
        Commandlog = COMMANDLOG {
            CommandlogGet = COMMANDLOG_GET,
            CommandlogLen = COMMANDLOG_LEN,
            CommandlogReset = COMMANDLOG_RESET,
            CommandlogHelp = COMMANDLOG_HELP,
        },
        Latency = LATENCY {
            LatencyLatest = LATENCY_LATEST,
            LatencyHistory = LATENCY_HISTORY,
            LatencyReset = LATENCY_RESET,
            LatencyGraph = LATENCY_GRAPH,
            LatencyDoctor = LATENCY_DOCTOR,
            LatencyHistogram = LATENCY_HISTOGRAM,
            LatencyHelp = LATENCY_HELP,
        },
        Hotkeys = HOTKEYS {
            HotkeysGet = HOTKEYS_GET,
            HotkeysHelp = HOTKEYS_HELP,
            HotkeysReset = HOTKEYS_RESET,
            HotkeysStart = HOTKEYS_START,
            HotkeysStop = HOTKEYS_STOP,
        },
        Shutdown = SHUTDOWN,
        Monitor = MONITOR,
        Bgrewriteaof = BGREWRITEAOF,
        Bgsave = BGSAVE,
        Lastsave = LASTSAVE,
        Save = SAVE,
        Module = MODULE {
            ModuleHelp = MODULE_HELP,
            ModuleList = MODULE_LIST,
            ModuleLoad = MODULE_LOAD,
            ModuleLoadex = MODULE_LOADEX,
            ModuleUnload = MODULE_UNLOAD,
        },
    }
    acl {
        Acl = ACL {
            AclCat = ACL_CAT,
            AclDeluser = ACL_DELUSER,
            AclDryrun = ACL_DRYRUN,
            AclGenpass = ACL_GENPASS,
            AclGetuser = ACL_GETUSER,
            AclHelp = ACL_HELP,
            AclList = ACL_LIST,
            AclLoad = ACL_LOAD,
            AclLog = ACL_LOG,
            AclSave = ACL_SAVE,
            AclSetuser = ACL_SETUSER,
            AclUsers = ACL_USERS,
            AclWhoami = ACL_WHOAMI,
        },
    }
    replication {
        Role = ROLE,
        Replicaof = REPLICAOF,
        Slaveof = SLAVEOF,
        Failover = FAILOVER,
        Sync = SYNC,
        Psync = PSYNC,
        Replconf = REPLCONF,
        Wait = WAIT,
        Waitaof = WAITAOF,
    }
    cluster {
        Asking = ASKING,
        Readonly = READONLY,
        Readwrite = READWRITE,
        Cluster = CLUSTER {
            ClusterAddslots = CLUSTER_ADDSLOTS,
            ClusterAddslotsrange = CLUSTER_ADDSLOTSRANGE,
            ClusterBumpepoch = CLUSTER_BUMPEPOCH,
            ClusterCancelslotmigrations = CLUSTER_CANCELSLOTMIGRATIONS,
            ClusterCountFailureReports = CLUSTER_COUNT_FAILURE_REPORTS,
            ClusterCountkeysinslot = CLUSTER_COUNTKEYSINSLOT,
            ClusterDelslots = CLUSTER_DELSLOTS,
            ClusterDelslotsrange = CLUSTER_DELSLOTSRANGE,
            ClusterFailover = CLUSTER_FAILOVER,
            ClusterFlushslot = CLUSTER_FLUSHSLOT,
            ClusterFlushslots = CLUSTER_FLUSHSLOTS,
            ClusterForget = CLUSTER_FORGET,
            ClusterGetkeysinslot = CLUSTER_GETKEYSINSLOT,
            ClusterGetslotmigrations = CLUSTER_GETSLOTMIGRATIONS,
            ClusterHelp = CLUSTER_HELP,
            ClusterInfo = CLUSTER_INFO,
            ClusterKeyslot = CLUSTER_KEYSLOT,
            ClusterLinks = CLUSTER_LINKS,
            ClusterMeet = CLUSTER_MEET,
            ClusterMigrateslots = CLUSTER_MIGRATESLOTS,
            ClusterMyid = CLUSTER_MYID,
            ClusterMyshardid = CLUSTER_MYSHARDID,
            ClusterNodes = CLUSTER_NODES,
            ClusterReplicas = CLUSTER_REPLICAS,
            ClusterReplicate = CLUSTER_REPLICATE,
            ClusterReset = CLUSTER_RESET,
            ClusterSaveconfig = CLUSTER_SAVECONFIG,
            ClusterSetConfigEpoch = CLUSTER_SET_CONFIG_EPOCH,
            ClusterSetslot = CLUSTER_SETSLOT,
            ClusterShards = CLUSTER_SHARDS,
            ClusterSlaves = CLUSTER_SLAVES,
            ClusterSlotStats = CLUSTER_SLOT_STATS,
            ClusterSlots = CLUSTER_SLOTS,
            ClusterSyncslots = CLUSTER_SYNCSLOTS,
        },
    }
    scripting {
        Eval = EVAL,
        Evalsha = EVALSHA,
        EvalRo = EVAL_RO,
        EvalshaRo = EVALSHA_RO,
        Fcall = FCALL,
        FcallRo = FCALL_RO,
        Once = ONCE,
        Script = SCRIPT {
            ScriptLoad = SCRIPT_LOAD,
            ScriptExists = SCRIPT_EXISTS,
            ScriptShow = SCRIPT_SHOW,
            ScriptFlush = SCRIPT_FLUSH,
            ScriptKill = SCRIPT_KILL,
            ScriptDebug = SCRIPT_DEBUG,
            ScriptStats = SCRIPT_STATS,
            ScriptHelp = SCRIPT_HELP,
        },
        Function = FUNCTION {
            FunctionLoad = FUNCTION_LOAD,
            FunctionDelete = FUNCTION_DELETE,
            FunctionList = FUNCTION_LIST,
            FunctionStats = FUNCTION_STATS,
            FunctionKill = FUNCTION_KILL,
            FunctionDump = FUNCTION_DUMP,
            FunctionRestore = FUNCTION_RESTORE,
            FunctionFlush = FUNCTION_FLUSH,
            FunctionHelp = FUNCTION_HELP,
        },
    }
}

/// How many subcommands follow each command in [`Command::ALL`].
const FAMILY_SIZES: [u8; Command::ALL.len()] = {
    let mut sizes = [0; Command::ALL.len()];
    let mut at = 0;
    while at < sizes.len() {
        if let Some(parent) = PARENTS[at] {
            sizes[parent as usize] += 1;
        }
        at += 1;
    }
    sizes
};

impl Command {
    pub const COUNT: usize = Command::ALL.len();

    #[inline]
    pub const fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// The container of a subcommand.
    pub const fn parent(self) -> Option<Command> {
        PARENTS[self as usize]
    }

    /// Empty for a command that is no container.
    pub fn subcommands(self) -> &'static [Command] {
        let first = self as usize + 1;
        &Command::ALL[first..first + FAMILY_SIZES[self as usize] as usize]
    }

    #[inline]
    pub const fn is_container(self) -> bool {
        FAMILY_SIZES[self as usize] > 0
    }

    /// `get`, or `client|list` for a subcommand.
    pub fn full_name(self) -> &'static str {
        self.spec().full_name
    }

    /// The commands without the subcommands.
    pub fn top_level() -> impl Iterator<Item = Command> + Clone {
        Command::ALL.iter().copied().filter(|command| command.parent().is_none())
    }
}
