//! Every use of `redis` and of KEYS: the calls of commands, and what makes a chunk wide.

use super::facts::{Facts, Role, stripped};
use super::prove::{Kind, Proofs, is_global_call, looped_over};
use super::{Argument, CommandCall, FunctionUse, Rest, Wide};
use crate::meter::Meter;
use crate::number::TextBuffer;
use crate::syntax::tree::{
    Call, Expr, Function, Item, LocalId, Part, Stat, StatKind, Table, Tree, Unary,
};

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

struct Walker<'f, 't> {
    facts: &'f Facts<'t>,
    proofs: &'f Proofs,
    functions: Vec<FunctionUse>,
    current: u32,
    meter: &'f Meter<'f>,
}

pub(super) fn walk<'f, 't>(
    tree: &'t Tree,
    facts: &'f Facts<'t>,
    proofs: &'f Proofs,
    meter: &'f Meter<'f>,
) -> Vec<FunctionUse> {
    let roles = facts.functions.iter().map(|function| function.role);
    let functions =
        roles.map(|role| FunctionUse { is_loose: role == Role::Loose, ..FunctionUse::default() });
    let functions = functions.collect();
    let mut walker = Walker { facts, proofs, functions, current: tree.main.number, meter };
    walker.function(&tree.main);
    walker.functions
}

impl<'t> Walker<'_, 't> {
    fn here(&mut self) -> &mut FunctionUse {
        &mut self.functions[self.current as usize]
    }

    fn wide(&mut self, reason: Wide) {
        self.here().wide.get_or_insert(reason);
    }

    fn function(&mut self, function: &'t Function) {
        let outer = std::mem::replace(&mut self.current, function.number);
        self.block(&function.body);
        self.current = outer;
    }

    fn block(&mut self, stats: &'t [Stat]) {
        for stat in stats {
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
        if self.meter.step().is_err() {
            return;
        }
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
            StatKind::GenericFor { values, body, .. } => {
                if !matches!(values.as_slice(), [over] if self.is_loop_over_keys(over)) {
                    self.exprs(values);
                }
                self.block(body);
            }
            StatKind::Return(values) => self.returned(values),
            other => self.parts(other),
        }
    }

    /// Whether storing the value in a variable keeps it in sight.
    fn is_alias(&self, local: LocalId, value: &Expr) -> bool {
        [Kind::KeysTable, Kind::Redis, Kind::Command]
            .into_iter()
            .any(|kind| self.proofs.is(kind, value) && self.proofs.local_is(kind, local))
    }

    fn is_loop_over_keys(&self, over: &Expr) -> bool {
        looped_over(over).is_some_and(|keys| self.proofs.is(Kind::KeysTable, keys))
    }

    fn assign(&mut self, targets: &'t [Expr], values: &'t [Expr]) {
        for target in targets {
            if let Expr::Index(index) = target {
                if self.proofs.is(Kind::KeysTable, &index.object) {
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
            if !(is_main && self.proofs.is(Kind::KeysTable, value)) {
                self.expr(value);
            }
        }
    }

    fn exprs(&mut self, exprs: &'t [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    /// An expression whose value goes anywhere. The left side, which may be long, is gone down in a
    /// loop.
    fn expr(&mut self, expr: &'t Expr) {
        let mut next = Some(expr);
        while let Some(expr) = next {
            if self.meter.step().is_err() {
                return;
            }
            let expr = stripped(expr);
            if let Some(escape) = self.escape(expr) {
                return self.wide(escape);
            }
            next = self.all_but_left(expr);
        }
    }

    /// What gets out of sight with the value of an expression. Only a name or an index can be KEYS,
    /// `redis` or `redis.call`.
    fn escape(&self, expr: &Expr) -> Option<Wide> {
        let is = |kind| self.proofs.is(kind, expr);
        match expr {
            Expr::Local { .. } | Expr::Global { .. } if is(Kind::KeysTable) => {
                Some(Wide::KeysEscape)
            }
            Expr::Local { .. } | Expr::Global { .. } if is(Kind::Redis) => Some(Wide::RedisEscapes),
            Expr::Local { .. } | Expr::Index(_) if is(Kind::Command) => Some(Wide::RedisEscapes),
            _ => None,
        }
    }

    /// Visits an expression without its left side, and gives that if it is to be visited, too.
    fn all_but_left(&mut self, expr: &'t Expr) -> Option<&'t Expr> {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Global { name, .. } => match name.as_ref() {
                b"load" | b"loadstring" => self.wide(Wide::LoadsCode),
                b"_G" => self.wide(Wide::GlobalsTable),
                _ => {}
            },
            Expr::Index(index) => {
                self.expr(&index.key);
                if self.proofs.is(Kind::Redis, &index.object) {
                    if !matches!(index.key, Expr::Str(_)) {
                        self.wide(Wide::RedisIndexed);
                    }
                } else if !self.proofs.is(Kind::KeysTable, &index.object) {
                    return Some(&index.object);
                }
            }
            Expr::Call(call) => return self.call(call),
            Expr::Arith(binary) => {
                self.expr(&binary.right);
                return Some(&binary.left);
            }
            Expr::Compare(binary) => {
                if !self.proofs.is(Kind::KeysTable, &binary.right) {
                    self.expr(&binary.right);
                }
                return Some(&binary.left).filter(|left| !self.proofs.is(Kind::KeysTable, left));
            }
            Expr::Concat { parts, .. } => self.exprs(parts),
            Expr::And(pair) | Expr::Or(pair) => {
                self.expr(&pair.1);
                return Some(&pair.0);
            }
            Expr::Unary { kind, operand, .. } => {
                let is_length = *kind == Unary::Len && self.proofs.is(Kind::KeysTable, operand);
                if !is_length {
                    self.expr(operand);
                }
            }
            Expr::Paren(inner) => self.expr(inner),
            Expr::Table(table) => self.table(table),
            Expr::Nil
            | Expr::True
            | Expr::False
            | Expr::Number(_)
            | Expr::Str(_)
            | Expr::Vararg { .. }
            | Expr::Local { .. } => {}
        }
        None
    }

    fn table(&mut self, table: &'t Table) {
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

    /// Visits a call; the function, unless nothing is to be learned from it.
    fn call(&mut self, call: &'t Call) -> Option<&'t Expr> {
        let args = call.args.as_slice();
        if call.method.is_none() && self.proofs.is(Kind::Command, &call.function) {
            self.command(call.line, args);
            self.exprs(args);
            return None;
        }
        if let Some((first, rest)) = args.split_first()
            && self.proofs.is(Kind::Command, first)
            && is_global_call(call, &["pcall"])
        {
            self.command(call.line, rest);
            self.exprs(rest);
            return None;
        }
        if is_global_call(call, READERS) || is_library_reader(call) {
            let skipped = args.first().is_some_and(|e| self.proofs.is(Kind::KeysTable, e));
            self.exprs(&args[usize::from(skipped)..]);
            return None;
        }
        if let Expr::Local { id, .. } = &call.function
            && let Some(number) = self.facts.function_named(*id)
            && call.method.is_none()
        {
            self.call_by_name(call, number);
            return None;
        }
        self.exprs(args);
        Some(&call.function)
    }

    /// A call of a function that is only called by name: its parameters are in sight.
    fn call_by_name(&mut self, call: &'t Call, number: u32) {
        self.here().runs.push(number);
        let params = self.facts.functions[number as usize].params;
        for (position, value) in call.args.iter().enumerate() {
            let param = params.get(position).copied();
            if !param.is_some_and(|param| self.is_alias(param, value)) {
                self.expr(value);
            }
        }
    }

    fn command(&mut self, line: u32, args: &[Expr]) {
        let mut known = Vec::with_capacity(args.len());
        let mut rest = Rest::Nothing;
        for (position, arg) in args.iter().enumerate() {
            let is_last = position + 1 == args.len();
            match arg {
                Expr::Call(_) if is_last => {
                    rest = match self.proofs.gives_keys(arg) {
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
        match stripped(expr) {
            Expr::Str(text) => Argument::Constant(text.clone()),
            Expr::Number(number) => Argument::Constant(TextBuffer::new().format(*number).into()),
            expr if self.proofs.is(Kind::Key, expr) => Argument::Key,
            _ => Argument::Unknown,
        }
    }
}

/// Whether a function of a library is called that reads a table and keeps nothing of it.
pub(super) fn is_library_reader(call: &Call) -> bool {
    let Expr::Index(index) = &call.function else { return false };
    let (Expr::Global { name: library, .. }, Expr::Str(name)) = (&index.object, &index.key) else {
        return false;
    };
    call.method.is_none()
        && LIBRARY_READERS.iter().any(|(known_library, known)| {
            known_library.as_bytes() == library.as_ref() && known.as_bytes() == name.as_ref()
        })
}
