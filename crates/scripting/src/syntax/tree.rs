//! The tree that the parser makes. Names are resolved: a variable is a local by its number in the
//! chunk, or a global. Lines are those that messages will show.

use std::sync::Arc;

/// A local variable of the chunk, whichever function it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LocalId(pub(crate) u32);

impl LocalId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Local {
    pub(crate) name: Arc<[u8]>,
    /// The function that declares it, by its number in the chunk.
    pub(crate) function: u32,
    /// An inner function uses it.
    pub(crate) is_captured: bool,
    /// It is assigned after its declaration.
    pub(crate) is_assigned: bool,
    /// It names the function that `local function` declared.
    pub(crate) is_function: bool,
}

impl Local {
    /// Whether closures and its own function must share one variable.
    pub(crate) fn needs_cell(&self) -> bool {
        self.is_captured && self.is_assigned
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Neg,
    Not,
    Len,
}

#[derive(Debug)]
pub(crate) enum Expr {
    Nil,
    True,
    False,
    Number(f64),
    Str(Arc<[u8]>),
    Vararg {
        line: u32,
    },
    Function(Box<Function>),
    Local {
        id: LocalId,
        line: u32,
    },
    Global {
        name: Arc<[u8]>,
        line: u32,
    },
    Index(Box<Index>),
    Call(Box<Call>),
    Arith(Box<Binary<Arith>>),
    Compare(Box<Binary<Relation>>),
    /// All operands of a chain, which joins from the right.
    Concat {
        parts: Vec<Expr>,
        line: u32,
    },
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Unary {
        kind: Unary,
        operand: Box<Expr>,
        line: u32,
    },
    Table(Box<Table>),
    /// In parentheses: one value.
    Paren(Box<Expr>),
}

#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) object: Expr,
    pub(crate) key: Expr,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) struct Binary<K> {
    pub(crate) kind: K,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Expr,
    /// `object:name(...)`
    pub(crate) method: Option<Arc<[u8]>>,
    pub(crate) args: Vec<Expr>,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) enum Item {
    Element(Expr),
    Field(Expr, Expr),
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) items: Vec<Item>,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) number: u32,
    pub(crate) params: Vec<LocalId>,
    pub(crate) is_vararg: bool,
    /// The old `arg` of functions with `...`, and whether it is a table: only if no `...` follows.
    pub(crate) arg: Option<(LocalId, bool)>,
    pub(crate) body: Vec<Stat>,
    pub(crate) line: u32,
    pub(crate) end_line: u32,
}

#[derive(Debug)]
pub(crate) struct Stat {
    pub(crate) kind: StatKind,
    /// The last line of the statement's head.
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) enum StatKind {
    Local { locals: Vec<LocalId>, values: Vec<Expr> },
    LocalFunction { local: LocalId, function: Box<Function> },
    Assign { targets: Vec<Expr>, values: Vec<Expr> },
    Call(Expr),
    Do(Vec<Stat>),
    While { condition: Expr, body: Vec<Stat> },
    Repeat { body: Vec<Stat>, condition: Expr },
    If { arms: Vec<(Expr, Vec<Stat>)>, otherwise: Option<Vec<Stat>> },
    NumericFor(Box<NumericFor>),
    GenericFor { locals: Vec<LocalId>, values: Vec<Expr>, body: Vec<Stat>, do_line: u32 },
    Return(Vec<Expr>),
    Break,
}

#[derive(Debug)]
pub(crate) struct NumericFor {
    pub(crate) local: LocalId,
    pub(crate) start: Expr,
    pub(crate) limit: Expr,
    pub(crate) step: Option<Expr>,
    pub(crate) body: Vec<Stat>,
    pub(crate) do_line: u32,
}

/// A parsed chunk.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) main: Function,
    /// How many there are, the main one included.
    pub(crate) functions: usize,
    pub(crate) locals: Vec<Local>,
    pub(crate) name: Arc<[u8]>,
    pub(crate) chunk_name: Arc<[u8]>,
}
