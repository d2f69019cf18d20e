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

#[derive(Debug, Default)]
pub(crate) enum Expr {
    #[default]
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
    And(Box<Pair>),
    Or(Box<Pair>),
    Unary {
        kind: Unary,
        operand: Box<Expr>,
        line: u32,
    },
    Table(Box<Table>),
    /// In parentheses: one value.
    Paren(Box<Expr>),
}

/// Expressions are nested no deeper than the parser follows, except to the left: `a + b + c`,
/// `a.b.c` and `f()()` are as long as the source makes them. Whoever goes down the left side does
/// so in a loop.
impl Expr {
    /// The left side of an operator, an index or a call.
    pub(crate) fn left(&self) -> Option<&Expr> {
        match self {
            Expr::Index(index) => Some(&index.object),
            Expr::Call(call) => Some(&call.function),
            Expr::Arith(binary) => Some(&binary.left),
            Expr::Compare(binary) => Some(&binary.left),
            Expr::And(pair) | Expr::Or(pair) => Some(&pair.0),
            _ => None,
        }
    }

    fn left_mut(&mut self) -> Option<&mut Expr> {
        match self {
            Expr::Index(index) => Some(&mut index.object),
            Expr::Call(call) => Some(&mut call.function),
            Expr::Arith(binary) => Some(&mut binary.left),
            Expr::Compare(binary) => Some(&mut binary.left),
            Expr::And(pair) | Expr::Or(pair) => Some(&mut pair.0),
            _ => None,
        }
    }

    /// Whether its left side has a left side again.
    pub(crate) fn is_chain(&self) -> bool {
        self.left().is_some_and(|left| left.left().is_some())
    }
}

/// Drops all that stands to the left, one after the other.
fn drop_left(expr: &mut Expr) {
    let mut left = std::mem::take(expr);
    while let Some(inner) = left.left_mut().map(std::mem::take) {
        left = inner;
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        drop_left(&mut self.object);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        drop_left(&mut self.function);
    }
}

impl<K> Drop for Binary<K> {
    fn drop(&mut self) {
        drop_left(&mut self.left);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        drop_left(&mut self.0);
    }
}

/// The sides of `and` and `or`.
#[derive(Debug)]
pub(crate) struct Pair(pub(crate) Expr, pub(crate) Expr);

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
    /// With the line that its value ends in.
    Field(Expr, Expr, u32),
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

/// A part of a statement that is a tree of its own.
pub(crate) enum Part<'t> {
    Expr(&'t Expr),
    Block(&'t [Stat]),
}

impl StatKind {
    /// Shows the expressions and blocks of a statement, in the order of the source. The body of a
    /// local function is not among them: it is no part of what runs here.
    pub(crate) fn for_each_part<'t>(&'t self, visit: &mut dyn FnMut(Part<'t>)) {
        let exprs = |exprs: &'t [Expr], visit: &mut dyn FnMut(Part<'t>)| {
            exprs.iter().for_each(|expr| visit(Part::Expr(expr)));
        };
        match self {
            StatKind::Local { values, .. } | StatKind::Return(values) => exprs(values, visit),
            StatKind::Assign { targets, values } => {
                exprs(targets, visit);
                exprs(values, visit);
            }
            StatKind::Call(expr) => visit(Part::Expr(expr)),
            StatKind::Do(body) => visit(Part::Block(body)),
            StatKind::While { condition, body } | StatKind::Repeat { body, condition } => {
                visit(Part::Expr(condition));
                visit(Part::Block(body));
            }
            StatKind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    visit(Part::Expr(condition));
                    visit(Part::Block(body));
                }
                visit(Part::Block(otherwise.as_deref().unwrap_or_default()));
            }
            StatKind::NumericFor(stat) => {
                visit(Part::Expr(&stat.start));
                visit(Part::Expr(&stat.limit));
                exprs(stat.step.as_slice(), visit);
                visit(Part::Block(&stat.body));
            }
            StatKind::GenericFor { values, body, .. } => {
                exprs(values, visit);
                visit(Part::Block(body));
            }
            StatKind::LocalFunction { .. } | StatKind::Break => {}
        }
    }
}
