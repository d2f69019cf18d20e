//! What each variable may hold, every expression that is ever stored in it, and how each function
//! is called.

use crate::meter::Meter;
use crate::syntax::tree::{Call, Expr, Function, Item, LocalId, Part, Stat, StatKind, Table, Tree};

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

/// How a function gets to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Role {
    /// It is the chunk.
    Main,
    /// By its name only, in calls that stand in the source.
    Named,
    /// By the host only: it was given to `redis.register_function` and to nobody else.
    Callback,
    /// It is a value, and may be kept and called by anyone, at any time.
    #[default]
    Loose,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FunctionFacts<'t> {
    pub(super) params: &'t [LocalId],
    /// The variable `arg` of old.
    arg: Option<LocalId>,
    pub(super) parent: u32,
    pub(super) role: Role,
    /// Functions that are open around it; its own number is not counted.
    depth: u32,
    /// Each of its runs begins and ends within one run of a callback, or of the chunk.
    is_bound: bool,
    /// The depth of the innermost function that is not bound, of those around it and itself.
    unbound_depth: Option<u32>,
    has_callback_inside: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocalFacts {
    /// The function that it was declared to be.
    named: Option<u32>,
    uses: u32,
    calls: u32,
    /// It is given to `redis.register_function`.
    is_registered: bool,
    /// A function inside the one that declares it assigns to it.
    pub(super) is_assigned_inside: bool,
    /// It may outlive a run of a callback: what it holds may be of another run.
    pub(super) outlives_run: bool,
}

impl LocalFacts {
    /// It was declared together with a function that it names.
    pub(super) fn is_named(&self) -> bool {
        self.named.is_some()
    }
}

/// `name(...)` where the name is a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedCall<'t> {
    local: LocalId,
    pub(super) caller: u32,
    pub(super) args: &'t [Expr],
}

pub(super) struct Facts<'t> {
    pub(super) defs: Vec<(LocalId, Def<'t>)>,
    pub(super) functions: Vec<FunctionFacts<'t>>,
    pub(super) locals: Vec<LocalFacts>,
    /// Calls of functions that are called by name only, with the number of the function.
    pub(super) calls: Vec<(u32, NamedCall<'t>)>,
}

pub(super) fn collect<'t>(tree: &'t Tree, is_library: bool, meter: &Meter<'_>) -> Facts<'t> {
    let mut collector = Collector {
        facts: Facts {
            defs: Vec::new(),
            functions: vec![FunctionFacts::default(); tree.functions],
            locals: vec![LocalFacts::default(); tree.locals.len()],
            calls: Vec::new(),
        },
        named_calls: Vec::new(),
        outer_uses: Vec::new(),
        current: tree.main.number,
        is_library,
        tree,
        meter,
    };
    collector.function(&tree.main);
    collector.finish()
}

impl Facts<'_> {
    /// The function that a variable always is, and that is called by that name only.
    pub(super) fn function_named(&self, local: LocalId) -> Option<u32> {
        let number = self.locals[local.index()].named?;
        (self.functions[number as usize].role == Role::Named).then_some(number)
    }
}

struct Collector<'t, 'm> {
    facts: Facts<'t>,
    named_calls: Vec<NamedCall<'t>>,
    /// Variables that are used by functions inside the one that declares them.
    outer_uses: Vec<(LocalId, u32)>,
    current: u32,
    is_library: bool,
    tree: &'t Tree,
    meter: &'m Meter<'m>,
}

impl<'t> Collector<'t, '_> {
    fn def(&mut self, local: LocalId, def: Def<'t>) {
        self.facts.defs.push((local, def));
    }

    /// What follows once all of the chunk was seen.
    fn finish(mut self) -> Facts<'t> {
        self.find_roles();
        for call in std::mem::take(&mut self.named_calls) {
            if let Some(number) = self.facts.function_named(call.local) {
                self.facts.calls.push((number, call));
            }
        }
        self.define_params();
        if self.is_library {
            self.find_bound();
            self.find_outliving();
        }
        self.facts
    }

    fn find_roles(&mut self) {
        for (local, declared) in self.facts.locals.iter().zip(&self.tree.locals) {
            let Some(number) = local.named.filter(|_| !declared.is_assigned) else { continue };
            let role = &mut self.facts.functions[number as usize].role;
            if local.uses == local.calls {
                *role = Role::Named;
            } else if local.uses == 1 && local.is_registered {
                *role = Role::Callback;
            }
        }
    }

    fn define_params(&mut self) {
        for function in &self.facts.functions {
            for (position, param) in function.params.iter().enumerate() {
                match function.role {
                    Role::Callback if position == 0 => self.facts.defs.push((*param, Def::Keys)),
                    Role::Named => {}
                    _ => self.facts.defs.push((*param, Def::Unknown)),
                }
            }
            self.facts.defs.extend(function.arg.map(|arg| (arg, Def::Unknown)));
        }
    }

    /// A function that is called by a loose one may run whenever that does, a part of it in one
    /// run of a callback and a part in another: coroutines are loose functions.
    fn find_bound(&mut self) {
        let functions = &mut self.facts.functions;
        functions.iter_mut().for_each(|function| function.is_bound = function.role != Role::Loose);
        let mut callees = vec![Vec::new(); functions.len()];
        for (callee, call) in &self.facts.calls {
            callees[call.caller as usize].push(*callee);
        }
        let is_loose = |number: &usize| !functions[*number].is_bound;
        let mut todo: Vec<usize> = (0..functions.len()).filter(is_loose).collect();
        while let Some(number) = todo.pop() {
            for callee in std::mem::take(&mut callees[number]) {
                if std::mem::take(&mut functions[callee as usize].is_bound) {
                    todo.push(callee as usize);
                }
            }
        }
        // The number of a function is greater than those of the functions around it.
        for number in 1..functions.len() {
            let outer = functions[functions[number].parent as usize].unbound_depth;
            let function = &mut functions[number];
            function.unbound_depth = if function.is_bound { outer } else { Some(function.depth) };
        }
        for number in (1..functions.len()).rev() {
            let FunctionFacts { role, parent, has_callback_inside, .. } = functions[number];
            let has_callback = has_callback_inside || role == Role::Callback;
            functions[parent as usize].has_callback_inside |= has_callback;
        }
    }

    /// A variable holds what belongs to one run of a callback only if it is made in that run, and
    /// no function that uses it can be called in another. So it must belong to a bound function
    /// other than the chunk and those that may have registered a callback inside them, and no
    /// function from there to its uses may be loose.
    fn find_outliving(&mut self) {
        let Facts { locals, functions, .. } = &mut self.facts;
        for (local, declared) in locals.iter_mut().zip(&self.tree.locals) {
            let owner = &functions[declared.function as usize];
            local.outlives_run =
                owner.role == Role::Main || !owner.is_bound || owner.has_callback_inside;
        }
        for (local, user) in &self.outer_uses {
            let owner = &functions[self.tree.locals[local.index()].function as usize];
            let unbound_depth = functions[*user as usize].unbound_depth;
            let is_unbound_between = unbound_depth.is_some_and(|depth| depth > owner.depth);
            locals[local.index()].outlives_run |= is_unbound_between;
        }
    }

    fn function(&mut self, function: &'t Function) {
        let outer = std::mem::replace(&mut self.current, function.number);
        let is_main = function.number == outer;
        let depth = if is_main { 0 } else { self.facts.functions[outer as usize].depth + 1 };
        let facts = &mut self.facts.functions[function.number as usize];
        facts.params = &function.params;
        facts.arg = function.arg.map(|(arg, _)| arg);
        (facts.parent, facts.depth) = (outer, depth);
        if is_main {
            facts.role = Role::Main;
        }
        self.block(&function.body);
        self.current = outer;
    }

    fn used(&mut self, local: LocalId) {
        if self.tree.locals[local.index()].function != self.current {
            self.outer_uses.push((local, self.current));
        }
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
        let kind = &stat.kind;
        match kind {
            StatKind::Local { locals, values } => {
                for (position, local) in locals.iter().enumerate() {
                    if let Some(Expr::Function(function)) = values.get(position) {
                        self.facts.locals[local.index()].named = Some(function.number);
                    }
                    self.def(*local, value_at(values, position));
                }
                self.exprs(values);
            }
            StatKind::LocalFunction { local, function } => {
                self.facts.locals[local.index()].named = Some(function.number);
                self.def(*local, Def::Unknown);
                self.function(function);
            }
            StatKind::Assign { targets, values } => {
                for (position, target) in targets.iter().enumerate() {
                    match target {
                        Expr::Local { id, .. } => {
                            self.used(*id);
                            let owner = self.tree.locals[id.index()].function;
                            self.facts.locals[id.index()].is_assigned_inside |=
                                owner != self.current;
                            self.def(*id, value_at(values, position));
                        }
                        target => self.expr(target),
                    }
                }
                self.exprs(values);
            }
            StatKind::NumericFor(stat) => {
                self.def(stat.local, Def::Unknown);
                self.parts(kind);
            }
            StatKind::GenericFor { locals, values, .. } => {
                for (position, local) in locals.iter().enumerate() {
                    let def = match (position, values.as_slice()) {
                        (1, [over]) => Def::ElementOf(over),
                        _ => Def::Unknown,
                    };
                    self.def(*local, def);
                }
                self.parts(kind);
            }
            other => self.parts(other),
        }
    }

    fn exprs(&mut self, exprs: &'t [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    /// Goes down the left side in a loop: it may be long.
    fn expr(&mut self, expr: &'t Expr) {
        let mut next = Some(expr);
        while let Some(expr) = next {
            if self.meter.step().is_err() {
                return;
            }
            let expr = stripped(expr);
            self.all_but_left(expr);
            next = expr.left();
        }
    }

    fn all_but_left(&mut self, expr: &'t Expr) {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Local { id, .. } => {
                self.facts.locals[id.index()].uses += 1;
                self.used(*id);
            }
            Expr::Index(index) => self.expr(&index.key),
            Expr::Call(call) => {
                if let (Expr::Local { id, .. }, None) = (&call.function, &call.method) {
                    self.facts.locals[id.index()].calls += 1;
                    let (local, caller, args) = (*id, self.current, call.args.as_slice());
                    self.named_calls.push(NamedCall { local, caller, args });
                }
                self.registration(call);
                self.exprs(&call.args);
            }
            Expr::Arith(binary) => self.expr(&binary.right),
            Expr::Compare(binary) => self.expr(&binary.right),
            Expr::Concat { parts, .. } => self.exprs(parts),
            Expr::And(pair) | Expr::Or(pair) => self.expr(&pair.1),
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
                Item::Field(key, value, _) => {
                    self.expr(key);
                    self.expr(value);
                }
            }
        }
    }

    /// `redis.register_function(name, callback)`, or with both in a table: the callback goes to
    /// the host and to nobody else.
    fn registration(&mut self, call: &'t Call) {
        let Expr::Index(index) = &call.function else { return };
        let is_redis = matches!(&index.object, Expr::Global { name, .. }
            if matches!(name.as_ref(), b"redis" | b"server"));
        let is_register =
            matches!(&index.key, Expr::Str(name) if name.as_ref() == b"register_function");
        if !self.is_library || !is_redis || !is_register || call.method.is_some() {
            return;
        }
        let callback = match call.args.as_slice() {
            [_, callback] => Some(callback),
            [Expr::Table(table)] => callback_in(table),
            _ => None,
        };
        match callback {
            Some(Expr::Function(function)) => {
                self.facts.functions[function.number as usize].role = Role::Callback;
            }
            Some(Expr::Local { id, .. }) => self.facts.locals[id.index()].is_registered = true,
            _ => {}
        }
    }
}

fn callback_in(table: &Table) -> Option<&Expr> {
    table.items.iter().find_map(|item| match item {
        Item::Field(Expr::Str(name), value, _) if name.as_ref() == b"callback" => Some(value),
        _ => None,
    })
}

/// An expression without the parentheses around it.
pub(super) fn stripped(mut expr: &Expr) -> &Expr {
    while let Expr::Paren(inner) = expr {
        expr = inner;
    }
    expr
}

/// Whether it may give any number of values.
pub(super) fn is_open(value: &Expr) -> bool {
    matches!(value, Expr::Call(_) | Expr::Vararg { .. })
}

/// What the variable at a position of a list of values gets.
fn value_at(values: &[Expr], position: usize) -> Def<'_> {
    match values.get(position) {
        Some(value) if position + 1 == values.len() && is_open(value) => Def::OneOf(value),
        Some(value) => Def::Value(value),
        None => match values.last() {
            Some(last) if is_open(last) => Def::OneOf(last),
            _ => Def::Nil,
        },
    }
}
