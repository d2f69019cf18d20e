//! What each variable may hold: every expression that is ever stored in it.

use crate::syntax::tree::{Call, Expr, Function, Item, LocalId, Stat, StatKind, Table, Tree};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One source of a variable's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Def<'t> {
    Value(&'t Expr),
    /// One of the values of a call or `...`.
    OneOf(&'t Expr),
    /// The value that a loop over this finds.
    ElementOf(&'t Expr),
    /// The table of keys that a registered function is given.
    Keys,
    Nil,
    Unknown,
}

/// A function given to `redis.register_function`.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    pub(super) name: Option<Arc<[u8]>>,
    pub(super) function: u32,
}

#[derive(Default)]
pub(super) struct Facts<'t> {
    pub(super) defs: HashMap<LocalId, Vec<Def<'t>>>,
    /// Functions by their number.
    pub(super) functions: HashMap<u32, &'t Function>,
    /// Local functions that are only ever called by name.
    pub(super) called_only: HashMap<LocalId, u32>,
    pub(super) registered: Vec<Registered>,
    named: HashMap<LocalId, u32>,
    uses: HashMap<LocalId, usize>,
    calls: HashMap<LocalId, Vec<&'t Call>>,
    registers: HashMap<LocalId, Option<Arc<[u8]>>>,
}

pub(super) fn collect(tree: &Tree) -> Facts<'_> {
    let mut facts = Facts::default();
    facts.function(&tree.main);
    facts.settle(tree);
    facts
}

impl<'t> Facts<'t> {
    fn def(&mut self, local: LocalId, def: Def<'t>) {
        self.defs.entry(local).or_default().push(def);
    }

    /// Decides which functions are known by all their calls, and what their parameters hold.
    fn settle(&mut self, tree: &Tree) {
        let mut has_known_calls = HashSet::new();
        for (local, number) in &self.named {
            let uses = self.uses.get(local).copied().unwrap_or(0);
            let calls = self.calls.get(local).map_or(0, Vec::len);
            if tree.locals[local.index()].is_assigned {
                continue;
            }
            if uses == calls {
                self.called_only.insert(*local, *number);
                has_known_calls.insert(*number);
            } else if let (1, Some(name)) = (uses, self.registers.get(local)) {
                self.registered.push(Registered { name: name.clone(), function: *number });
            }
        }
        let callbacks: HashSet<u32> = self.registered.iter().map(|r| r.function).collect();
        let functions: Vec<(u32, &'t Function)> =
            self.functions.iter().map(|(number, function)| (*number, *function)).collect();
        for (number, function) in functions {
            for (position, param) in function.params.iter().enumerate() {
                match callbacks.contains(&number) {
                    true if position == 0 => self.def(*param, Def::Keys),
                    false if has_known_calls.contains(&number) => {}
                    _ => self.def(*param, Def::Unknown),
                }
            }
            if let Some((arg, _)) = function.arg {
                self.def(arg, Def::Unknown);
            }
        }
        let called: Vec<(LocalId, u32)> =
            self.called_only.iter().map(|(local, number)| (*local, *number)).collect();
        for (local, number) in called {
            self.bind_params(local, number);
        }
    }

    fn bind_params(&mut self, local: LocalId, number: u32) {
        let Some(function) = self.functions.get(&number).copied() else { return };
        for call in self.calls.remove(&local).unwrap_or_default() {
            for (position, param) in function.params.iter().enumerate() {
                self.def(*param, value_at(&call.args, position));
            }
            self.calls.entry(local).or_default().push(call);
        }
    }

    fn function(&mut self, function: &'t Function) {
        self.functions.insert(function.number, function);
        self.block(&function.body);
    }

    fn block(&mut self, stats: &'t [Stat]) {
        for stat in stats {
            self.stat(stat);
        }
    }

    fn stat(&mut self, stat: &'t Stat) {
        match &stat.kind {
            StatKind::Local { locals, values } => {
                for (position, local) in locals.iter().enumerate() {
                    if let Some(Expr::Function(function)) = values.get(position) {
                        self.named.insert(*local, function.number);
                    }
                    self.def(*local, value_at(values, position));
                }
                self.exprs(values);
            }
            StatKind::LocalFunction { local, function } => {
                self.named.insert(*local, function.number);
                self.def(*local, Def::Unknown);
                self.function(function);
            }
            StatKind::Assign { targets, values } => {
                for (position, target) in targets.iter().enumerate() {
                    match target {
                        Expr::Local { id, .. } => self.def(*id, value_at(values, position)),
                        target => self.expr(target),
                    }
                }
                self.exprs(values);
            }
            StatKind::Call(expr) => self.expr(expr),
            StatKind::Do(body) => self.block(body),
            StatKind::While { condition, body } | StatKind::Repeat { body, condition } => {
                self.expr(condition);
                self.block(body);
            }
            StatKind::If { arms, otherwise } => {
                for (condition, body) in arms {
                    self.expr(condition);
                    self.block(body);
                }
                self.block(otherwise.as_deref().unwrap_or_default());
            }
            StatKind::NumericFor(stat) => {
                self.def(stat.local, Def::Unknown);
                self.expr(&stat.start);
                self.expr(&stat.limit);
                self.exprs(stat.step.as_slice());
                self.block(&stat.body);
            }
            StatKind::GenericFor { locals, values, body, .. } => {
                for (position, local) in locals.iter().enumerate() {
                    let def = match (position, values.as_slice()) {
                        (1, [over]) => Def::ElementOf(over),
                        _ => Def::Unknown,
                    };
                    self.def(*local, def);
                }
                self.exprs(values);
                self.block(body);
            }
            StatKind::Return(values) => self.exprs(values),
            StatKind::Break => {}
        }
    }

    fn exprs(&mut self, exprs: &'t [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn expr(&mut self, expr: &'t Expr) {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Local { id, .. } => *self.uses.entry(*id).or_default() += 1,
            Expr::Index(index) => {
                self.expr(&index.object);
                self.expr(&index.key);
            }
            Expr::Call(call) => {
                if let (Expr::Local { id, .. }, None) = (&call.function, &call.method) {
                    self.calls.entry(*id).or_default().push(call);
                }
                self.registration(call);
                self.expr(&call.function);
                self.exprs(&call.args);
            }
            Expr::Arith(binary) => {
                self.expr(&binary.left);
                self.expr(&binary.right);
            }
            Expr::Compare(binary) => {
                self.expr(&binary.left);
                self.expr(&binary.right);
            }
            Expr::Concat { parts, .. } => self.exprs(parts),
            Expr::And(pair) | Expr::Or(pair) => {
                self.expr(&pair.0);
                self.expr(&pair.1);
            }
            Expr::Unary { operand, .. } | Expr::Paren(operand) => self.expr(operand),
            Expr::Table(table) => self.table(table),
            Expr::Nil
            | Expr::True
            | Expr::False
            | Expr::Number(_)
            | Expr::Str(_)
            | Expr::Vararg { .. }
            | Expr::Global { .. } => {}
        }
    }

    fn table(&mut self, table: &'t Table) {
        for item in &table.items {
            match item {
                Item::Element(value) => self.expr(value),
                Item::Field(key, value) => {
                    self.expr(key);
                    self.expr(value);
                }
            }
        }
    }

    /// `redis.register_function(name, callback)`, or with both in a table.
    fn registration(&mut self, call: &'t Call) {
        let Expr::Index(index) = &call.function else { return };
        let is_redis = matches!(&index.object, Expr::Global { name, .. }
            if matches!(name.as_ref(), b"redis" | b"server"));
        let is_register =
            matches!(&index.key, Expr::Str(name) if name.as_ref() == b"register_function");
        if !is_redis || !is_register || call.method.is_some() {
            return;
        }
        let (name, callback) = match call.args.as_slice() {
            [name, callback] => (Some(name), Some(callback)),
            [Expr::Table(table)] => (field(table, b"function_name"), field(table, b"callback")),
            _ => return,
        };
        let name = match name {
            Some(Expr::Str(name)) => Some(name.clone()),
            _ => None,
        };
        match callback {
            Some(Expr::Function(function)) => {
                self.registered.push(Registered { name, function: function.number });
            }
            Some(Expr::Local { id, .. }) => {
                self.registers.insert(*id, name);
            }
            _ => {}
        }
    }
}

fn field<'t>(table: &'t Table, wanted: &[u8]) -> Option<&'t Expr> {
    table.items.iter().find_map(|item| match item {
        Item::Field(Expr::Str(name), value) if name.as_ref() == wanted => Some(value),
        _ => None,
    })
}

/// What the variable at a position of a list of values gets.
fn value_at(values: &[Expr], position: usize) -> Def<'_> {
    let is_open = |value: &Expr| matches!(value, Expr::Call(_) | Expr::Vararg { .. });
    match values.get(position) {
        Some(value) if position + 1 == values.len() && is_open(value) => Def::OneOf(value),
        Some(value) => Def::Value(value),
        None => match values.last() {
            Some(last) if is_open(last) => Def::OneOf(last),
            _ => Def::Nil,
        },
    }
}
