//! Whether the functions of a library may change what outlives their calls: a variable of the
//! library, or a table that was made when it was loaded.
//!
//! What is made in a call is gone with it unless something that lasts comes to name it. So only
//! variables matter that belong to code which may run at load time and that functions inside it
//! use. Such a variable is harmless if none of these functions assigns to it and it holds nothing
//! that can be changed: a plain value (no table, no coroutine, nothing whose calls leave a trace),
//! or a table of plain values that is only read. Whatever is not proved counts as a change.

use super::facts::{Def, Facts, Role, is_open, stripped};
use super::prove::is_global_call;
use super::walk::is_library_reader;
use crate::meter::Meter;
use crate::syntax::tree::{
    Call, Expr, Function, Item, LocalId, Part, Stat, StatKind, Table, Tree, Unary,
};

/// Global functions that read a table and neither keep nor change it.
const READERS: &[&str] =
    &["ipairs", "pairs", "next", "unpack", "type", "tostring", "rawget", "rawequal"];

/// Global functions whose results are plain values.
const PLAIN: &[&str] = &["tonumber", "tostring", "type"];

/// The same, of libraries. None gives another result in another interpreter.
const LIBRARY_PLAIN: &[(&str, &[&str])] = &[
    (
        "string",
        &[
            "byte", "char", "find", "format", "gsub", "len", "lower", "match", "rep", "reverse",
            "sub", "upper",
        ],
    ),
    ("math", &["abs", "ceil", "floor", "fmod", "log", "max", "min", "modf", "pow", "sqrt"]),
];

/// What a variable that lasts holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Content {
    Plain,
    /// A table of plain values.
    Table,
    Other,
}

struct Judge<'f, 't> {
    facts: &'f Facts<'t>,
    tree: &'t Tree,
    /// By local: it holds nothing but plain values, and was given them where it was declared.
    is_plain: Vec<bool>,
    /// By local: it lasts and holds a table of plain values.
    is_table: Vec<bool>,
    may_change: bool,
    current: u32,
    meter: &'f Meter<'f>,
}

/// Whether a function of the library may change what outlives its call.
pub(super) fn may_change<'t>(facts: &Facts<'t>, tree: &'t Tree, meter: &Meter<'_>) -> bool {
    let mut judge = Judge {
        facts,
        tree,
        is_plain: vec![false; tree.locals.len()],
        is_table: vec![false; tree.locals.len()],
        may_change: false,
        current: tree.main.number,
        meter,
    };
    judge.variables();
    if !judge.may_change {
        judge.function(&tree.main);
    }
    judge.may_change
}

/// By function: it may run while the library is loaded.
fn runs_at_load(facts: &Facts) -> Vec<bool> {
    let functions = &facts.functions;
    let mut callees = vec![Vec::new(); functions.len()];
    for (callee, call) in &facts.calls {
        callees[call.caller as usize].push(*callee as usize);
    }
    let mut inside = vec![Vec::new(); functions.len()];
    for (number, function) in functions.iter().enumerate().skip(1) {
        inside[function.parent as usize].push(number);
    }
    let mut runs = vec![false; functions.len()];
    let mut todo = vec![0];
    while let Some(number) = todo.pop() {
        if std::mem::replace(&mut runs[number], true) {
            continue;
        }
        // Whatever is a value may be called by anyone who has it, once it is made.
        let loose = |inner: &&usize| functions[**inner].role == Role::Loose;
        todo.extend(inside[number].iter().filter(loose));
        todo.extend(&callees[number]);
    }
    runs
}

impl<'t> Judge<'_, 't> {
    /// Looks at all that is ever stored in a variable. Values are in the order of the source, so
    /// that of a variable in an expression everything is known.
    fn variables(&mut self) {
        let at_load = runs_at_load(self.facts);
        let lasts = |local: LocalId| {
            let declared = &self.tree.locals[local.index()];
            declared.is_captured && at_load[declared.function as usize]
        };
        for (local, def) in &self.facts.defs {
            if self.meter.step().is_err() {
                return;
            }
            let content = self.content(*local, def);
            let is_assigned = self.tree.locals[local.index()].is_assigned;
            self.is_plain[local.index()] = content == Content::Plain && !is_assigned;
            if lasts(*local) {
                self.is_table[local.index()] |= content == Content::Table;
                self.may_change |= content == Content::Other;
            }
        }
        // What its parameters are given is not looked at.
        let mut params = self.facts.functions.iter().flat_map(|function| function.params);
        self.may_change |= params.any(|param| lasts(*param));
        let mut locals = (0..self.tree.locals.len()).map(|index| LocalId(index as u32));
        let is_assigned = |local: LocalId| self.facts.locals[local.index()].is_assigned_inside;
        self.may_change |= locals.any(|local| is_assigned(local) && lasts(local));
    }

    fn content(&self, local: LocalId, def: &Def) -> Content {
        let is_plain = match def {
            Def::Nil => true,
            // The function that `local function` declares.
            Def::Unknown => self.facts.locals[local.index()].is_named(),
            Def::Value(Expr::Table(table)) if self.is_table_of_plain(table) => {
                return Content::Table;
            }
            Def::Value(value) | Def::OneOf(value) => self.is_plain(value),
            Def::ElementOf(_) | Def::Keys => false,
        };
        if is_plain { Content::Plain } else { Content::Other }
    }

    fn is_table_of_plain(&self, table: &Table) -> bool {
        table.items.iter().all(|item| match item {
            Item::Element(value) => self.is_plain(value),
            Item::Field(key, value, _) => self.is_plain(key) && self.is_plain(value),
        })
    }

    /// Whether all values of the expression are plain.
    fn is_plain(&self, expr: &Expr) -> bool {
        let mut todo = vec![expr];
        while let Some(expr) = todo.pop() {
            match stripped(expr) {
                Expr::Nil
                | Expr::True
                | Expr::False
                | Expr::Number(_)
                | Expr::Str(_)
                | Expr::Function(_)
                // A function or a table that nobody can change.
                | Expr::Global { .. }
                // A comparison gives a boolean, whatever it compares.
                | Expr::Compare(_) => {}
                Expr::Local { id, .. } if self.is_plain[id.index()] => {}
                Expr::Index(index) => {
                    if !matches!(stripped(&index.object), Expr::Global { .. })
                        && !self.names_table(&index.object)
                    {
                        return false;
                    }
                }
                Expr::Call(call) if gives_plain(call) => {}
                // Of plain values, which have no metamethods.
                Expr::Arith(binary) => todo.extend([&binary.left, &binary.right]),
                Expr::Concat { parts, .. } => todo.extend(parts),
                Expr::And(pair) | Expr::Or(pair) => todo.extend([&pair.0, &pair.1]),
                Expr::Unary { operand, .. } => todo.push(operand),
                _ => return false,
            }
        }
        true
    }

    fn names_table(&self, expr: &Expr) -> bool {
        matches!(stripped(expr), Expr::Local { id, .. } if self.is_table[id.index()])
    }

    fn function(&mut self, function: &'t Function) {
        let outer = std::mem::replace(&mut self.current, function.number);
        self.block(&function.body);
        self.current = outer;
    }

    fn block(&mut self, stats: &'t [Stat]) {
        for stat in stats {
            if self.may_change || self.meter.step().is_err() {
                return;
            }
            self.stat(stat);
        }
    }

    /// What a statement is made of, one after the other.
    fn parts(&mut self, stat: &'t StatKind) {
        stat.for_each_part(&mut |part| match part {
            Part::Expr(expr) => self.expr(expr),
            Part::Block(body) => self.block(body),
        });
    }

    fn stat(&mut self, stat: &'t Stat) {
        match &stat.kind {
            StatKind::LocalFunction { function, .. } => self.function(function),
            StatKind::Assign { targets, values } => self.assign(targets, values),
            other => self.parts(other),
        }
    }

    /// The code that declares a table may fill it, with plain values.
    fn assign(&mut self, targets: &'t [Expr], values: &'t [Expr]) {
        for (position, target) in targets.iter().enumerate() {
            let Expr::Index(index) = target else { continue };
            self.expr(&index.key);
            let Expr::Local { id, .. } = stripped(&index.object) else {
                self.expr(&index.object);
                continue;
            };
            if !self.is_table[id.index()] {
                continue;
            }
            let is_own = self.tree.locals[id.index()].function == self.current;
            let is_last = position + 1 >= values.len();
            let is_plain = match values.get(position).or(values.last()) {
                Some(value) => self.is_plain(value) && !(is_last && is_open(value)),
                None => true,
            };
            self.may_change |= !is_own || !is_plain || !self.is_plain(&index.key);
        }
        self.exprs(values);
    }

    fn exprs(&mut self, exprs: &'t [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    /// An expression whose value goes anywhere. The left side, which may be long, is gone down in
    /// a loop.
    fn expr(&mut self, expr: &'t Expr) {
        let mut next = Some(expr);
        while let Some(expr) = next {
            if self.may_change || self.meter.step().is_err() {
                return;
            }
            let expr = stripped(expr);
            self.may_change |= self.names_table(expr);
            next = self.all_but_left(expr);
        }
    }

    /// Visits an expression without its left side, and gives that if it is to be visited, too.
    fn all_but_left(&mut self, expr: &'t Expr) -> Option<&'t Expr> {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Index(index) => self.expr(&index.key),
            Expr::Call(call) => {
                let is_read = is_global_call(call, READERS) || is_library_reader(call);
                let skipped = is_read && call.args.first().is_some_and(|e| self.names_table(e));
                self.exprs(&call.args[usize::from(skipped)..]);
                return Some(&call.function);
            }
            Expr::Arith(binary) => self.expr(&binary.right),
            Expr::Compare(binary) if self.names_table(&binary.right) => {}
            Expr::Compare(binary) => self.expr(&binary.right),
            Expr::Concat { parts, .. } => self.exprs(parts),
            Expr::And(pair) | Expr::Or(pair) => self.expr(&pair.1),
            Expr::Unary { kind, operand, .. }
                if *kind != Unary::Neg && self.names_table(operand) => {}
            Expr::Unary { operand, .. } => self.expr(operand),
            Expr::Paren(inner) => self.expr(inner),
            Expr::Table(table) => {
                for item in &table.items {
                    match item {
                        Item::Element(value) => self.expr(value),
                        Item::Field(key, value, _) => {
                            self.expr(key);
                            self.expr(value);
                        }
                    }
                }
            }
            _ => {}
        }
        let only_read = matches!(expr, Expr::Index(_) | Expr::Compare(_));
        expr.left().filter(|left| !only_read || !self.names_table(left))
    }
}

fn gives_plain(call: &Call) -> bool {
    if is_global_call(call, PLAIN) {
        return true;
    }
    let Expr::Index(index) = &call.function else { return false };
    let (Expr::Global { name: library, .. }, Expr::Str(name)) = (&index.object, &index.key) else {
        return false;
    };
    call.method.is_none()
        && LIBRARY_PLAIN.iter().any(|(known, names)| {
            known.as_bytes() == library.as_ref()
                && names.iter().any(|known| known.as_bytes() == name.as_ref())
        })
}
