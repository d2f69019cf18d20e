//! Every use of `redis` and of KEYS: the calls of commands, and what makes a chunk wide.

use super::facts::Facts;
use super::prove::{Kind, Prover, is_global_call};
use super::{Argument, CommandCall, KeysUse, Reach, Rest, Wide};
use crate::number::TextBuffer;
use crate::syntax::tree::{Call, Expr, Function, Item, Stat, StatKind, Tree, Unary};
use std::collections::{HashMap, HashSet};

/// Functions that read a table and keep nothing of it.
const READERS: &[&str] = &["next", "unpack", "type", "tostring", "rawget", "rawequal"];

/// The same, of libraries.
const LIBRARY_READERS: &[(&str, &str)] = &[
    ("table", "getn"),
    ("table", "concat"),
    ("table", "maxn"),
    ("cjson", "encode"),
    ("cmsgpack", "pack"),
];

#[derive(Default)]
struct PerFunction {
    wide: Option<Wide>,
    calls: Vec<CommandCall>,
    /// Functions that it may run: those inside it, and those it calls by name.
    runs: Vec<u32>,
}

pub(super) struct Found<'f, 't> {
    facts: &'f Facts<'t>,
    functions: HashMap<u32, PerFunction>,
}

struct Walker<'f, 't> {
    facts: &'f Facts<'t>,
    prover: Prover<'f, 't>,
    functions: HashMap<u32, PerFunction>,
    current: u32,
}

pub(super) fn walk<'f, 't>(tree: &'t Tree, facts: &'f Facts<'t>) -> Found<'f, 't> {
    let prover = Prover::new(facts);
    let mut walker = Walker { facts, prover, functions: HashMap::new(), current: tree.main.number };
    walker.function(&tree.main);
    Found { facts, functions: walker.functions }
}

impl Found<'_, '_> {
    pub(super) fn into_use(self) -> KeysUse {
        let everything: Vec<u32> = self.functions.keys().copied().collect();
        let chunk = self.reach(&everything);
        // A function that is kept somewhere may be run by any other.
        let by_name: HashSet<u32> = self.facts.called_only.values().copied().collect();
        let callbacks: HashSet<u32> = self.facts.registered.iter().map(|r| r.function).collect();
        let is_loose = |number: &&u32| {
            **number != 0 && !by_name.contains(number) && !callbacks.contains(number)
        };
        let loose: Vec<u32> = everything.iter().filter(is_loose).copied().collect();
        let functions = self.facts.registered.iter().map(|registered| {
            let mut roots = loose.clone();
            roots.push(registered.function);
            (registered.name.clone(), self.reach(&roots))
        });
        let functions = functions.collect();
        KeysUse { chunk, functions }
    }

    /// What functions, and all that they may run, can reach.
    fn reach(&self, roots: &[u32]) -> Reach {
        let mut todo = roots.to_vec();
        let mut seen = HashSet::new();
        let mut reach = Reach::default();
        while let Some(number) = todo.pop() {
            let Some(found) = self.functions.get(&number).filter(|_| seen.insert(number)) else {
                continue;
            };
            reach.wide = reach.wide.or(found.wide);
            reach.calls.extend(found.calls.iter().cloned());
            todo.extend(&found.runs);
        }
        reach.calls.sort_by_key(|call| call.line);
        reach
    }
}

impl<'t> Walker<'_, 't> {
    fn here(&mut self) -> &mut PerFunction {
        self.functions.entry(self.current).or_default()
    }

    fn wide(&mut self, reason: Wide) {
        self.here().wide.get_or_insert(reason);
    }

    fn function(&mut self, function: &'t Function) {
        let outer = std::mem::replace(&mut self.current, function.number);
        self.here();
        self.block(&function.body);
        self.current = outer;
        if function.number != outer {
            let is_called = self.facts.called_only.values().any(|n| *n == function.number);
            let is_callback = self.facts.registered.iter().any(|r| r.function == function.number);
            if !is_called && !is_callback {
                self.here().runs.push(function.number);
            }
        }
    }

    fn block(&mut self, stats: &'t [Stat]) {
        for stat in stats {
            self.stat(stat);
        }
    }

    fn stat(&mut self, stat: &'t Stat) {
        match &stat.kind {
            StatKind::Local { locals, values } => {
                for (position, value) in values.iter().enumerate() {
                    let local = locals.get(position).copied();
                    let is_alias = local.is_some_and(|local| self.is_alias(local, value));
                    if !is_alias {
                        self.expr(value);
                    }
                }
            }
            StatKind::LocalFunction { function, .. } => self.function(function),
            StatKind::Assign { targets, values } => self.assign(targets, values),
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
                self.expr(&stat.start);
                self.expr(&stat.limit);
                self.exprs(stat.step.as_slice());
                self.block(&stat.body);
            }
            StatKind::GenericFor { values, body, .. } => {
                if !matches!(values.as_slice(), [over] if self.is_loop_over_keys(over)) {
                    self.exprs(values);
                }
                self.block(body);
            }
            StatKind::Return(values) => self.returned(values),
            StatKind::Break => {}
        }
    }

    /// Whether storing the value in a variable keeps it in sight.
    fn is_alias(&self, local: crate::syntax::tree::LocalId, value: &Expr) -> bool {
        [Kind::KeysTable, Kind::Redis, Kind::Command]
            .into_iter()
            .any(|kind| self.prover.is(kind, value) && self.prover.local_is(kind, local))
    }

    fn is_loop_over_keys(&self, over: &Expr) -> bool {
        let Expr::Call(call) = over else { return false };
        is_global_call(call, &["pairs", "ipairs"])
            && matches!(call.args.as_slice(), [keys] if self.prover.is(Kind::KeysTable, keys))
    }

    fn assign(&mut self, targets: &'t [Expr], values: &'t [Expr]) {
        for target in targets {
            if let Expr::Index(index) = target {
                if self.prover.is(Kind::KeysTable, &index.object) {
                    self.wide(Wide::KeysEscape);
                }
                self.expr(&index.object);
                self.expr(&index.key);
            }
        }
        for (position, value) in values.iter().enumerate() {
            let is_alias = match targets.get(position) {
                Some(Expr::Local { id, .. }) => self.is_alias(*id, value),
                _ => false,
            };
            if !is_alias {
                self.expr(value);
            }
        }
    }

    /// The chunk itself may return KEYS: nothing runs after that.
    fn returned(&mut self, values: &'t [Expr]) {
        let is_main = self.current == 0;
        for value in values {
            if !(is_main && self.prover.is(Kind::KeysTable, value)) {
                self.expr(value);
            }
        }
    }

    fn exprs(&mut self, exprs: &'t [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    /// An expression whose value goes anywhere.
    fn expr(&mut self, expr: &'t Expr) {
        if self.prover.is(Kind::KeysTable, expr) {
            return self.wide(Wide::KeysEscape);
        }
        if self.prover.is(Kind::Redis, expr) || self.prover.is(Kind::Command, expr) {
            return self.wide(Wide::RedisEscapes);
        }
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Global { name, .. } => match name.as_ref() {
                b"load" | b"loadstring" => self.wide(Wide::LoadsCode),
                b"_G" => self.wide(Wide::GlobalsTable),
                _ => {}
            },
            Expr::Index(index) => {
                if self.prover.is(Kind::Redis, &index.object) {
                    if !matches!(index.key, Expr::Str(_)) {
                        self.wide(Wide::RedisIndexed);
                    }
                } else if !self.prover.is(Kind::KeysTable, &index.object) {
                    self.expr(&index.object);
                }
                self.expr(&index.key);
            }
            Expr::Call(call) => self.call(call),
            Expr::Arith(binary) => {
                self.expr(&binary.left);
                self.expr(&binary.right);
            }
            Expr::Compare(binary) => {
                for side in [&binary.left, &binary.right] {
                    if !self.prover.is(Kind::KeysTable, side) {
                        self.expr(side);
                    }
                }
            }
            Expr::Concat { parts, .. } => self.exprs(parts),
            Expr::And(pair) | Expr::Or(pair) => {
                self.expr(&pair.0);
                self.expr(&pair.1);
            }
            Expr::Unary { kind, operand, .. } => {
                let is_length = *kind == Unary::Len && self.prover.is(Kind::KeysTable, operand);
                if !is_length {
                    self.expr(operand);
                }
            }
            Expr::Paren(inner) => self.expr(inner),
            Expr::Table(table) => {
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
            Expr::Nil
            | Expr::True
            | Expr::False
            | Expr::Number(_)
            | Expr::Str(_)
            | Expr::Vararg { .. }
            | Expr::Local { .. } => {}
        }
    }

    fn call(&mut self, call: &'t Call) {
        if call.method.is_none() && self.prover.is(Kind::Command, &call.function) {
            self.command(call.line, &call.args);
            return self.exprs(&call.args);
        }
        let first_is_command =
            call.args.first().is_some_and(|first| self.prover.is(Kind::Command, first));
        if first_is_command && is_global_call(call, &["pcall"]) {
            self.command(call.line, &call.args[1..]);
            return self.exprs(&call.args[1..]);
        }
        if self.is_reader(call) {
            let skipped = call.args.first().is_some_and(|e| self.prover.is(Kind::KeysTable, e));
            return self.exprs(&call.args[usize::from(skipped)..]);
        }
        if let Expr::Local { id, .. } = &call.function
            && let Some(number) = self.facts.called_only.get(id).copied()
            && call.method.is_none()
        {
            return self.call_by_name(call, number);
        }
        self.expr(&call.function);
        self.exprs(&call.args);
    }

    /// A call of a function that is only called by name: its parameters are in sight.
    fn call_by_name(&mut self, call: &'t Call, number: u32) {
        self.here().runs.push(number);
        let params = match self.facts.functions.get(&number) {
            Some(function) => function.params.as_slice(),
            None => &[],
        };
        for (position, value) in call.args.iter().enumerate() {
            let param = params.get(position).copied();
            if !param.is_some_and(|param| self.is_alias(param, value)) {
                self.expr(value);
            }
        }
    }

    fn is_reader(&self, call: &Call) -> bool {
        if is_global_call(call, READERS) {
            return true;
        }
        let Expr::Index(index) = &call.function else { return false };
        let (Expr::Global { name: library, .. }, Expr::Str(name)) = (&index.object, &index.key)
        else {
            return false;
        };
        call.method.is_none()
            && LIBRARY_READERS.iter().any(|(known_library, known)| {
                known_library.as_bytes() == library.as_ref() && known.as_bytes() == name.as_ref()
            })
    }

    fn command(&mut self, line: u32, args: &[Expr]) {
        let mut known = Vec::with_capacity(args.len());
        let mut rest = Rest::Nothing;
        for (position, arg) in args.iter().enumerate() {
            let is_last = position + 1 == args.len();
            match arg {
                Expr::Call(call) if is_last => {
                    rest = match self.prover.gives_keys(call) {
                        true => Rest::Keys,
                        false => Rest::Unknown,
                    };
                }
                Expr::Vararg { .. } if is_last => rest = Rest::Unknown,
                arg => known.push(self.argument(arg)),
            }
        }
        self.here().calls.push(CommandCall { line, args: known, rest });
    }

    fn argument(&self, expr: &Expr) -> Argument {
        match expr {
            Expr::Str(text) => Argument::Constant(text.clone()),
            Expr::Number(number) => Argument::Constant(TextBuffer::new().format(*number).into()),
            Expr::Paren(inner) => self.argument(inner),
            expr if self.prover.is(Kind::Key, expr) => Argument::Key,
            _ => Argument::Unknown,
        }
    }
}
