//! What a command is, as data. Nothing here says how a command runs.
//!
//! One [`Spec`] per command and per subcommand. COMMAND and its kin, arity errors, key extraction,
//! ACL categories and cluster routing are all derived from these.

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

            pub const fn and(self, other: Self) -> Self {
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

            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| *name)
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
        // Ours: not printed by COMMAND.
        ALL_SHARDS = 30 => "",
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

/// How many words a call has, the name included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Exactly(u16),
    AtLeast(u16),
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this word; 1 is the first after the name.
    Index(u16),
    /// After this keyword, looked for from word `from` on (backwards from the end if negative).
    Keyword { word: &'static str, from: i16 },
    /// Only a handler can tell.
    Unknown,
}

/// Which of the words from there on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to `last` words after the first (negative counts back from the end of the command),
    /// every `step`th. `limit` n > 1: only the first 1/n of what is left.
    Range {
        last: i16,
        step: u16,
        limit: u16,
    },
    /// A word holds the number of keys; the first key is `first` words after it.
    Count {
        at: u16,
        first: u16,
        step: u16,
    },
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub access: Access,
    pub begin: Begin,
    pub find: Find,
    pub notes: &'static str,
}

/// The kind of an argument, as COMMAND DOCS names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    String,
    Integer,
    Double,
    /// Carries the index of its key spec.
    Key(u8),
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

#[derive(Clone, Copy, Debug)]
pub struct Arg {
    pub name: &'static str,
    pub kind: ArgKind,
    pub token: Option<&'static str>,
    /// Empty: none to show.
    pub display: &'static str,
    pub since: &'static str,
    pub deprecated_since: &'static str,
    pub optional: bool,
    pub multiple: bool,
    pub multiple_token: bool,
    /// Of a `OneOf` or a `Block`.
    pub parts: &'static [Arg],
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

#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Lower case, as COMMAND prints it; a subcommand without its parent's name.
    pub name: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    pub since: &'static str,
    pub group: Group,
    pub arity: Arity,
    pub flags: Flags,
    /// All of them, the implied ones too.
    pub categories: Categories,
    pub tips: &'static [&'static str],
    pub key_specs: &'static [KeySpec],
    pub args: &'static [Arg],
    pub reply: Shape,
    /// Version and what changed.
    pub history: &'static [(&'static str, &'static str)],
    /// Since when and what to use instead.
    pub deprecated: Option<(&'static str, &'static str)>,
}
