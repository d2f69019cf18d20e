//! What a command is, as data. Nothing here says how a command runs.
//!
//! One [`Spec`] per command and per subcommand. COMMAND and its kin, arity errors, key extraction,
//! ACL categories and cluster routing are all derived from these.

use crate::arg::Arg;

/// A set of named bits; spelled out once so that flags and categories need no crate.
macro_rules! bits {
    ($(#[$doc:meta])* $name:ident: $repr:ty { $($bit:ident = $at:literal => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name($repr);

        impl $name {
            pub const NONE: Self = Self(0);
            $(pub const $bit: Self = Self(1 << $at);)*

            /// Every bit with the name that COMMAND prints for it, in the order of printing.
            pub const NAMES: &'static [(Self, &'static str)] = &[$((Self::$bit, $text),)*];

            pub const fn or(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            pub const fn has_any(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The printed names of the bits set; bits of our own have none.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                let named = Self::NAMES.iter().filter(|(_, name)| !name.is_empty());
                named.filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| *name)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_set().entries(self.names()).finish()
            }
        }
    };
}

bits! {
    /// What COMMAND calls flags.
    Flags: u32 {
        WRITE = 0 => "write",
        READONLY = 1 => "readonly",
        DENYOOM = 2 => "denyoom",
        MODULE = 3 => "module",
        ADMIN = 4 => "admin",
        PUBSUB = 5 => "pubsub",
        NOSCRIPT = 6 => "noscript",
        BLOCKING = 7 => "blocking",
        LOADING = 8 => "loading",
        STALE = 9 => "stale",
        SKIP_MONITOR = 10 => "skip_monitor",
        SKIP_SLOWLOG = 11 => "skip_slowlog",
        ASKING = 12 => "asking",
        FAST = 13 => "fast",
        NO_AUTH = 14 => "no_auth",
        MAY_REPLICATE = 15 => "may_replicate",
        NO_MANDATORY_KEYS = 16 => "no_mandatory_keys",
        PROTECTED = 17 => "protected",
        NO_ASYNC_LOADING = 18 => "no_async_loading",
        NO_MULTI = 19 => "no_multi",
        MOVABLE_KEYS = 20 => "movablekeys",
        ALLOW_BUSY = 21 => "allow_busy",
        // Ours, not printed by COMMAND: not fast by Redis's table, but its work grows with its
        // arguments only, however much its keys hold. In a batch it is as good as fast.
        SHORT = 27 => "",
        // Ours: CLIENT PAUSE never holds it back, or nobody could log in
        // and end it.
        PASSES_PAUSE = 28 => "",
        // Ours: not fast by Redis's table, but so short that it shares the time of its batch.
        SHARES_TIME = 29 => "",
        // Ours: it names no keys but touches the whole keyspace.
        ALL_SHARDS = 30 => "",
        // Ours, too: what is stored under its keys may name others.
        FURTHER_SHARDS = 31 => "",
    }
}

bits! {
    /// ACL categories, without the `@`.
    Categories: u32 {
        KEYSPACE = 0 => "keyspace",
        READ = 1 => "read",
        WRITE = 2 => "write",
        SET = 3 => "set",
        SORTEDSET = 4 => "sortedset",
        LIST = 5 => "list",
        HASH = 6 => "hash",
        STRING = 7 => "string",
        BITMAP = 8 => "bitmap",
        HYPERLOGLOG = 9 => "hyperloglog",
        GEO = 10 => "geo",
        STREAM = 11 => "stream",
        PUBSUB = 12 => "pubsub",
        ADMIN = 13 => "admin",
        FAST = 14 => "fast",
        SLOW = 15 => "slow",
        BLOCKING = 16 => "blocking",
        DANGEROUS = 17 => "dangerous",
        CONNECTION = 18 => "connection",
        TRANSACTION = 19 => "transaction",
        SCRIPTING = 20 => "scripting",
        BLOOM = 21 => "bloom",
    }
}

bits! {
    /// What a command does to the keys of one key spec.
    Access: u32 {
        RO = 0 => "RO",
        RW = 1 => "RW",
        OW = 2 => "OW",
        RM = 3 => "RM",
        ACCESS = 4 => "access",
        UPDATE = 5 => "update",
        INSERT = 6 => "insert",
        DELETE = 7 => "delete",
        NOT_KEY = 8 => "not_key",
        INCOMPLETE = 9 => "incomplete",
        VARIABLE_FLAGS = 10 => "variable_flags",
    }
}

/// How many arguments a call has, the name included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Exactly(u16),
    AtLeast(u16),
}

impl Arity {
    pub const fn allows(self, args_len: usize) -> bool {
        match self {
            Arity::Exactly(n) => args_len == n as usize,
            Arity::AtLeast(n) => args_len >= n as usize,
        }
    }

    /// As COMMAND prints it: negative for a minimum.
    pub const fn as_printed(self) -> i64 {
        match self {
            Arity::Exactly(n) => n as i64,
            Arity::AtLeast(n) => -(n as i64),
        }
    }
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument; 1 is the first after the name.
    Index(u16),
    /// After this keyword, looked for from argument `from` on (backwards from the end if negative).
    Keyword { token: &'static str, from: i16 },
    /// Only a handler can tell.
    Unknown,
}

/// Which of the arguments from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to `last` arguments after the first (negative counts back from the end of the command),
    /// every `step`th. `limit` n > 1: only the first 1/n of what is left.
    Range {
        last: i16,
        step: u16,
        limit: u16,
    },
    /// An argument holds the number of keys; the first key is `first` arguments after it.
    Count {
        at: u16,
        first: u16,
        step: u16,
    },
    Unknown,
}

/// Which arguments are keys, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    pub access: Access,
    pub begin: Begin,
    pub find: Find,
    pub notes: &'static str,
}

impl KeySpec {
    /// The one argument at `index`.
    pub const fn at(index: u16, access: Access) -> Self {
        KeySpec {
            access,
            begin: Begin::Index(index),
            find: Find::Range { last: 0, step: 1, limit: 0 },
            notes: "",
        }
    }

    /// Every argument from `index` to the end.
    pub const fn from(index: u16, access: Access) -> Self {
        Self::at(index, access).until(-1)
    }

    /// The argument at `index` says how many keys follow it.
    pub const fn counted(index: u16, access: Access) -> Self {
        let find = Find::Count { at: 0, first: 1, step: 1 };
        KeySpec { access, begin: Begin::Index(index), find, notes: "" }
    }

    /// Ends the range so many args after its first; a negative number counts back from the end.
    pub const fn until(mut self, last: i16) -> Self {
        self.find = match self.find {
            Find::Range { step, limit, .. } => Find::Range { last, step, limit },
            other => other,
        };
        self
    }

    /// Other arguments lie between the keys: take each `step`th.
    pub const fn every(mut self, step: u16) -> Self {
        self.find = match self.find {
            Find::Range { last, limit, .. } => Find::Range { last, step, limit },
            Find::Count { at, first, .. } => Find::Count { at, first, step },
            Find::Unknown => Find::Unknown,
        };
        self
    }

    /// Arguments that only a parser of the whole call can find.
    pub const fn elsewhere(access: Access) -> Self {
        KeySpec { access, begin: Begin::Unknown, find: Find::Unknown, notes: "" }
    }

    pub const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }
}

/// The shape of a reply, coarse enough to be checked in every test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Ok,
    /// Some other simple string.
    Status,
    Integer,
    Bulk,
    Double,
    Boolean,
    Null,
    Array,
    Map,
    Set,
    Verbatim,
    /// Depends on the data or the options: one of these.
    OneOf(&'static [Shape]),
    /// Anything, for EXEC and the like.
    Any,
    /// Nothing at all, or what arrives later: SUBSCRIBE's confirmations, SHUTDOWN's silence.
    Push,
}

/// How a call that changed something is recorded, for the log and for replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It changes no data, or what it runs is recorded instead: EXEC, scripts.
    Never,
    /// As it is: run again on the same data it does the same. Its handler records what it came to
    /// where an option is one that other servers would not know.
    Verbatim,
    /// Its handler records what it came to.
    Rewritten,
    /// As it is, but the log needs none of it: published messages.
    ReplicasOnly,
}

/// Whether a call may run in one batch with others, besides what its flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    ByFlags,
    /// If its third argument, a count or an offset, has no more digits than this: the work grows
    /// with the number, however small the value.
    NumberUpTo {
        digits: u8,
    },
    /// The same for every number among its arguments. One behind a `#` is multiplied by up to 64,
    /// so that it has two digits less.
    NumbersUpTo {
        digits: u8,
    },
    /// The work can't be told from the arguments' lengths.
    Never,
}

/// Groups as COMMAND DOCS names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    PubSub,
    Transactions,
    Connection,
    Server,
    Scripting,
    HyperLogLog,
    Cluster,
    Sentinel,
    Geo,
    Stream,
    Bitmap,
    Module,
}

impl Group {
    pub const fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::List => "list",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Hash => "hash",
            Group::PubSub => "pubsub",
            Group::Transactions => "transactions",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::HyperLogLog => "hyperloglog",
            Group::Cluster => "cluster",
            Group::Sentinel => "sentinel",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::Bitmap => "bitmap",
            Group::Module => "module",
        }
    }
}

/// A command that should no longer be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    pub since: &'static str,
    pub replaced_by: &'static str,
}

/// One change to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub version: &'static str,
    pub note: &'static str,
}

/// Everything known of one command. Written as a chain that starts from [`Spec::new`].
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Lower case; a subcommand without its parent's name.
    pub name: &'static str,
    /// As COMMAND prints it: `client|list` for a subcommand.
    pub full_name: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    pub since: &'static str,
    pub group: Group,
    pub arity: Arity,
    pub flags: Flags,
    /// All of them: those that the flags imply too.
    pub categories: Categories,
    pub tips: &'static [&'static str],
    pub key_specs: &'static [KeySpec],
    pub args: &'static [Arg],
    pub reply: Shape,
    pub history: &'static [Change],
    pub deprecated: Option<Deprecation>,
    /// Printed as a system command: of use to the server's own tools only.
    pub internal: bool,
    pub recorded: Recorded,
    pub batching: Batching,
}

impl Spec {
    /// `full_name` joins a subcommand to its parent with a bar.
    pub const fn new(group: Group, full_name: &'static str) -> Self {
        Spec {
            name: after_bar(full_name),
            full_name,
            summary: "",
            complexity: "O(1)",
            since: "1.0.0",
            group,
            arity: Arity::Exactly(1),
            flags: Flags::NONE,
            categories: Categories::SLOW,
            tips: &[],
            key_specs: &[],
            args: &[],
            reply: Shape::Any,
            history: &[],
            deprecated: None,
            internal: false,
            recorded: Recorded::Never,
            batching: Batching::ByFlags,
        }
    }

    pub const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Left out, it is O(1).
    pub const fn complexity(mut self, complexity: &'static str) -> Self {
        self.complexity = complexity;
        self
    }

    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    pub const fn arity(mut self, arity: Arity) -> Self {
        self.arity = arity;
        self
    }

    /// Also sets the categories that these flags imply.
    pub const fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self.categories = self.categories.or(implied_categories(flags));
        if flags.has(Flags::FAST) {
            self.categories = self.categories.without(Categories::SLOW);
        }
        self
    }

    /// Adds to the categories that the flags imply. Scripts that may not write are no reads: who
    /// may read may not run code for that.
    pub const fn categories(mut self, categories: Categories) -> Self {
        self.categories = self.categories.or(categories);
        if categories.has(Categories::SCRIPTING) {
            self.categories = self.categories.without(Categories::READ);
        }
        self
    }

    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    pub const fn keys(mut self, key_specs: &'static [KeySpec]) -> Self {
        self.key_specs = key_specs;
        self
    }

    pub const fn args(mut self, args: &'static [Arg]) -> Self {
        self.args = args;
        self
    }

    pub const fn reply(mut self, reply: Shape) -> Self {
        self.reply = reply;
        self
    }

    pub const fn history(mut self, history: &'static [Change]) -> Self {
        self.history = history;
        self
    }

    pub const fn deprecated(mut self, deprecation: Deprecation) -> Self {
        self.deprecated = Some(deprecation);
        self
    }

    /// Left out, it changes no data.
    pub const fn recorded(mut self, recorded: Recorded) -> Self {
        self.recorded = recorded;
        self
    }

    /// Whether a replica would hear of it.
    pub const fn reaches_replicas(&self) -> bool {
        self.flags.has(Flags::WRITE) || !matches!(self.recorded, Recorded::Never)
    }

    pub const fn batching(mut self, batching: Batching) -> Self {
        self.batching = batching;
        self
    }

    pub const fn internal(mut self) -> Self {
        self.internal = true;
        self
    }
}

/// The categories that follow from the flags alone, FAST or SLOW included.
pub const fn implied_categories(flags: Flags) -> Categories {
    let mut implied = Categories::NONE;
    if flags.has(Flags::WRITE) {
        implied = implied.or(Categories::WRITE);
    }
    if flags.has(Flags::READONLY) {
        implied = implied.or(Categories::READ);
    }
    if flags.has(Flags::ADMIN) {
        implied = implied.or(Categories::ADMIN).or(Categories::DANGEROUS);
    }
    if flags.has(Flags::PUBSUB) {
        implied = implied.or(Categories::PUBSUB);
    }
    if flags.has(Flags::BLOCKING) {
        implied = implied.or(Categories::BLOCKING);
    }
    implied.or(if flags.has(Flags::FAST) { Categories::FAST } else { Categories::SLOW })
}

const fn after_bar(full_name: &'static str) -> &'static str {
    let mut at = 0;
    while at < full_name.len() {
        if full_name.as_bytes()[at] == b'|' {
            return full_name.split_at(at + 1).1;
        }
        at += 1;
    }
    full_name
}
