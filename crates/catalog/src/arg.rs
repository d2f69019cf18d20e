//! What COMMAND DOCS tells about a command's arguments: the grammar of a call as nested data.

/// The kind of an argument, as COMMAND DOCS names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    String,
    Integer,
    Double,
    /// Carries the index of its key spec.
    Key(u8),
    Pattern,
    /// A pattern that keys are made from; carries the index of their key spec.
    KeyPattern(u8),
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

impl ArgKind {
    pub const fn name(self) -> &'static str {
        match self {
            ArgKind::String => "string",
            ArgKind::Integer => "integer",
            ArgKind::Double => "double",
            ArgKind::Key(_) => "key",
            ArgKind::Pattern | ArgKind::KeyPattern(_) => "pattern",
            ArgKind::UnixTime => "unix-time",
            ArgKind::PureToken => "pure-token",
            ArgKind::OneOf => "oneof",
            ArgKind::Block => "block",
        }
    }
}

impl ArgKind {
    /// The key spec of an argument that names keys.
    pub const fn key_spec(self) -> Option<u8> {
        match self {
            ArgKind::Key(index) | ArgKind::KeyPattern(index) => Some(index),
            _ => None,
        }
    }
}

/// One argument, built by the functions of this module and refined by the methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

const fn leaf(name: &'static str, kind: ArgKind) -> Arg {
    Arg {
        name,
        kind,
        token: None,
        display: name,
        since: "",
        deprecated_since: "",
        optional: false,
        multiple: false,
        multiple_token: false,
        parts: &[],
    }
}

const fn tree(name: &'static str, kind: ArgKind, parts: &'static [Arg]) -> Arg {
    let mut arg = leaf(name, kind);
    arg.display = "";
    arg.parts = parts;
    arg
}

pub const fn string(name: &'static str) -> Arg {
    leaf(name, ArgKind::String)
}

pub const fn integer(name: &'static str) -> Arg {
    leaf(name, ArgKind::Integer)
}

pub const fn double(name: &'static str) -> Arg {
    leaf(name, ArgKind::Double)
}

/// A key of the command's first key spec; see [`Arg::of_spec`] for the others.
pub const fn key(name: &'static str) -> Arg {
    leaf(name, ArgKind::Key(0))
}

pub const fn pattern(name: &'static str) -> Arg {
    leaf(name, ArgKind::Pattern)
}

/// A pattern that the elements of a value turn into keys.
pub const fn key_pattern(name: &'static str, spec_index: u8) -> Arg {
    leaf(name, ArgKind::KeyPattern(spec_index))
}

pub const fn unix_time(name: &'static str) -> Arg {
    leaf(name, ArgKind::UnixTime)
}

/// A bare token of the grammar: `flag("nx").token("NX")`.
pub const fn flag(name: &'static str) -> Arg {
    leaf(name, ArgKind::PureToken)
}

pub const fn one_of(name: &'static str, parts: &'static [Arg]) -> Arg {
    tree(name, ArgKind::OneOf, parts)
}

pub const fn block(name: &'static str, parts: &'static [Arg]) -> Arg {
    tree(name, ArgKind::Block, parts)
}

impl Arg {
    /// The token that announces it.
    pub const fn token(mut self, token: &'static str) -> Self {
        self.token = Some(token);
        self
    }

    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    pub const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// Repeated together with its token.
    pub const fn multiple_token(mut self) -> Self {
        self.multiple_token = true;
        self
    }

    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    pub const fn deprecated(mut self, since: &'static str) -> Self {
        self.deprecated_since = since;
        self
    }

    pub const fn display(mut self, text: &'static str) -> Self {
        self.display = text;
        self
    }

    /// The key spec that a key belongs to.
    pub const fn of_spec(mut self, index: u8) -> Self {
        self.kind = ArgKind::Key(index);
        self
    }

    /// The fewest arguments that it takes up in a call.
    pub fn args_min(&self) -> usize {
        if self.optional {
            return 0;
        }
        let own = match self.kind {
            ArgKind::PureToken => 0,
            ArgKind::OneOf => self.parts.iter().map(Arg::args_min).min().unwrap_or(0),
            ArgKind::Block => self.parts.iter().map(Arg::args_min).sum(),
            _ => 1,
        };
        own + usize::from(self.token.is_some())
    }

    /// Whether every call gives it the same number of arguments.
    pub fn is_fixed(&self) -> bool {
        if self.optional || self.multiple {
            return false;
        }
        match self.kind {
            ArgKind::OneOf => {
                let args_len = self.args_min() - usize::from(self.token.is_some());
                self.parts.iter().all(|part| part.is_fixed() && part.args_min() == args_len)
            }
            ArgKind::Block => self.parts.iter().all(Arg::is_fixed),
            _ => true,
        }
    }
}
