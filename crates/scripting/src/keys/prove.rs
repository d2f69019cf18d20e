//! What an expression is: the table of keys, one of its elements, `redis`, or `redis.call`.
//!
//! A claim is that a variable holds nothing but one kind of value, or nil, whenever it is read. All
//! claims are taken for true until one of the variable's values refutes them; a refuted claim
//! refutes those that were built on it, and so on. What is left is true: a value can only come
//! from one of the expressions that were stored, and each of them was looked at.

use super::facts::{Def, Facts, is_open, stripped};
use crate::meter::Meter;
use crate::syntax::tree::{Call, Expr, LocalId, Tree};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    KeysTable,
    Key,
    Redis,
    /// `redis.call` or `redis.pcall`.
    Command,
}

const KINDS: [Kind; 4] = [Kind::KeysTable, Kind::Key, Kind::Redis, Kind::Command];

/// The claim that a variable is of a kind.
#[derive(Clone, Copy, Debug)]
struct Claim(usize);

impl Claim {
    fn of(local: LocalId, kind: Kind) -> Self {
        Claim(local.index() * KINDS.len() + kind as usize)
    }
}

/// What an expression takes to be of a kind.
enum Needs {
    Nothing,
    Claim(Claim),
    /// It is not.
    Impossible,
}

pub(super) struct Proofs {
    /// By claim.
    is_refuted: Vec<bool>,
}

/// The global function of that name is called.
pub(super) fn is_global_call(call: &Call, names: &[&str]) -> bool {
    let Expr::Global { name, .. } = &call.function else { return false };
    call.method.is_none() && names.iter().any(|known| known.as_bytes() == name.as_ref())
}

/// `redis.call` and `redis.pcall`: the expression that must be `redis`.
fn redis_of_command(expr: &Expr) -> Option<&Expr> {
    let Expr::Index(index) = expr else { return None };
    let is_call = matches!(&index.key, Expr::Str(n) if matches!(n.as_ref(), b"call" | b"pcall"));
    is_call.then_some(&index.object)
}

/// `unpack(KEYS)`: the expression that must be KEYS.
fn unpacked(expr: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = expr else { return None };
    call.args.first().filter(|_| is_global_call(call, &["unpack"]))
}

/// `pairs(KEYS)` and `ipairs(KEYS)`: the expression that must be KEYS.
pub(super) fn looped_over(expr: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = expr else { return None };
    match call.args.as_slice() {
        [over] if is_global_call(call, &["pairs", "ipairs"]) => Some(over),
        _ => None,
    }
}

fn needs(kind: Kind, expr: &Expr) -> Needs {
    let when = |is_so: bool| if is_so { Needs::Nothing } else { Needs::Impossible };
    match (kind, stripped(expr)) {
        (_, Expr::Local { id, .. }) => Needs::Claim(Claim::of(*id, kind)),
        (Kind::KeysTable, Expr::Global { name, .. }) => when(name.as_ref() == b"KEYS"),
        (Kind::Redis, Expr::Global { name, .. }) => {
            when(matches!(name.as_ref(), b"redis" | b"server"))
        }
        (Kind::Command, expr) => match redis_of_command(expr).map(stripped) {
            Some(Expr::Local { id, .. }) => Needs::Claim(Claim::of(*id, Kind::Redis)),
            Some(redis @ Expr::Global { .. }) => needs(Kind::Redis, redis),
            _ => Needs::Impossible,
        },
        (Kind::Key, Expr::Index(index)) => match stripped(&index.object) {
            keys @ (Expr::Local { .. } | Expr::Global { .. }) => needs(Kind::KeysTable, keys),
            _ => Needs::Impossible,
        },
        // What is not true is no argument of a command.
        (Kind::Key, Expr::Nil | Expr::False) => Needs::Nothing,
        _ => Needs::Impossible,
    }
}

/// All expressions whose value the expression may have, as a key: the sides of `and` and `or`.
fn each_key(expr: &Expr, mut visit: impl FnMut(Needs) -> bool) -> bool {
    let (mut next, mut todo) = (Some(expr), Vec::new());
    while let Some(expr) = next {
        match stripped(expr) {
            // Its left side is the value only if that is not true.
            Expr::And(pair) => todo.push(&pair.1),
            Expr::Or(pair) => todo.extend([&pair.0, &pair.1]),
            expr => {
                if !visit(needs(Kind::Key, expr)) {
                    return false;
                }
            }
        }
        next = todo.pop();
    }
    true
}

impl Proofs {
    fn holds(&self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Claim(claim) => !self.is_refuted[claim.0],
            Needs::Impossible => false,
        }
    }

    pub(super) fn is(&self, kind: Kind, expr: &Expr) -> bool {
        match kind {
            Kind::Key => each_key(expr, |needs| self.holds(needs)),
            kind => self.holds(needs(kind, expr)),
        }
    }

    /// Whether a variable holds nothing else, whenever it is read.
    pub(super) fn local_is(&self, kind: Kind, local: LocalId) -> bool {
        !self.is_refuted[Claim::of(local, kind).0]
    }

    /// `unpack(KEYS)`
    pub(super) fn gives_keys(&self, expr: &Expr) -> bool {
        unpacked(expr).is_some_and(|keys| self.is(Kind::KeysTable, keys))
    }
}

/// What a refuted claim refutes.
#[derive(Clone, Copy)]
enum Dependent {
    Claim(Claim),
    /// All parameters of a function from a position on are no keys.
    Params(u32, usize),
}

struct Refuter<'f, 't> {
    facts: &'f Facts<'t>,
    is_refuted: Vec<bool>,
    /// Refuted claims whose dependents were not looked at yet.
    todo: Vec<Claim>,
    /// By claim, the last of its dependents; each names the one before it.
    last_dependent: Vec<Option<u32>>,
    dependents: Vec<(Dependent, Option<u32>)>,
    /// By function: parameters from here on are known to be no keys.
    no_keys_from: Vec<usize>,
    /// The same for the other kinds.
    no_others_from: Vec<usize>,
}

pub(super) fn prove<'t>(facts: &Facts<'t>, tree: &Tree, meter: &Meter<'_>) -> Proofs {
    let claims = tree.locals.len() * KINDS.len();
    let params: Vec<usize> = facts.functions.iter().map(|function| function.params.len()).collect();
    let mut refuter = Refuter {
        facts,
        is_refuted: vec![false; claims],
        todo: Vec::new(),
        last_dependent: vec![None; claims],
        dependents: Vec::new(),
        no_keys_from: params.clone(),
        no_others_from: params,
    };
    refuter.refute_undefined();
    for (local, def) in &facts.defs {
        if meter.step().is_err() {
            break;
        }
        refuter.def(*local, *def);
    }
    for (number, call) in &facts.calls {
        if meter.step().is_err() {
            break;
        }
        refuter.call(*number, call.args);
    }
    refuter.follow();
    Proofs { is_refuted: refuter.is_refuted }
}

impl<'t> Refuter<'_, 't> {
    fn refute(&mut self, claim: Claim) {
        if !std::mem::replace(&mut self.is_refuted[claim.0], true) {
            self.todo.push(claim);
        }
    }

    fn refute_all(&mut self, local: LocalId) {
        KINDS.into_iter().for_each(|kind| self.refute(Claim::of(local, kind)));
    }

    /// Variables that never get a value are nothing, and those that outlive a run do not hold what
    /// belongs to this one.
    fn refute_undefined(&mut self) {
        let mut is_defined = vec![false; self.facts.locals.len()];
        let mut has_open_call = vec![false; self.facts.functions.len()];
        for (local, def) in &self.facts.defs {
            is_defined[local.index()] |= !matches!(def, Def::Nil);
        }
        for (number, call) in &self.facts.calls {
            let params = self.facts.functions[*number as usize].params;
            // One open call defines all, whatever others do.
            let has_open_call = &mut has_open_call[*number as usize];
            let is_first_open = !*has_open_call && call.args.last().is_some_and(is_open);
            *has_open_call |= is_first_open;
            let given = if is_first_open { params.len() } else { call.args.len() };
            params.iter().take(given).for_each(|param| is_defined[param.index()] = true);
        }
        for (index, facts) in self.facts.locals.iter().enumerate() {
            let local = LocalId(index as u32);
            if !is_defined[index] {
                self.refute_all(local);
            } else if facts.outlives_run {
                self.refute(Claim::of(local, Kind::KeysTable));
                self.refute(Claim::of(local, Kind::Key));
            }
        }
    }

    fn depend(&mut self, claim: Claim, dependent: Dependent) {
        let last = self.last_dependent[claim.0].replace(self.dependents.len() as u32);
        self.dependents.push((dependent, last));
    }

    /// The claim needs this.
    fn require(&mut self, claim: Claim, needs: Needs) {
        match needs {
            Needs::Nothing => {}
            Needs::Claim(other) => self.depend(other, Dependent::Claim(claim)),
            Needs::Impossible => self.refute(claim),
        }
    }

    fn value(&mut self, local: LocalId, value: &Expr) {
        for kind in [Kind::KeysTable, Kind::Redis, Kind::Command] {
            self.require(Claim::of(local, kind), needs(kind, value));
        }
        let claim = Claim::of(local, Kind::Key);
        each_key(value, |needs| {
            self.require(claim, needs);
            true
        });
    }

    /// The value is a key, if this is KEYS.
    fn element(&mut self, local: LocalId, keys: Option<&Expr>) {
        for kind in [Kind::KeysTable, Kind::Redis, Kind::Command] {
            self.refute(Claim::of(local, kind));
        }
        let needs = keys.map_or(Needs::Impossible, |keys| needs(Kind::KeysTable, keys));
        self.require(Claim::of(local, Kind::Key), needs);
    }

    fn def(&mut self, local: LocalId, def: Def<'t>) {
        match def {
            Def::Value(expr) => self.value(local, expr),
            Def::OneOf(expr) => self.element(local, unpacked(expr)),
            Def::ElementOf(over) => self.element(local, looped_over(over)),
            Def::Keys => {
                for kind in [Kind::Key, Kind::Redis, Kind::Command] {
                    self.refute(Claim::of(local, kind));
                }
            }
            Def::Nil => {}
            Def::Unknown => self.refute_all(local),
        }
    }

    /// A call gives values to the parameters of the function; those it does not mention are nil.
    fn call(&mut self, number: u32, args: &'t [Expr]) {
        let params = self.facts.functions[number as usize].params;
        let (fixed, open) = match args.split_last() {
            Some((last, others)) if is_open(last) => (others, Some(last)),
            _ => (args, None),
        };
        for (param, value) in params.iter().zip(fixed) {
            self.value(*param, value);
        }
        let Some(open) = open else { return };
        let from = fixed.len();
        let known = self.no_others_from[number as usize];
        for param in params.get(from..known).unwrap_or_default() {
            for kind in [Kind::KeysTable, Kind::Redis, Kind::Command] {
                self.refute(Claim::of(*param, kind));
            }
        }
        self.no_others_from[number as usize] = known.min(from);
        match unpacked(open).map_or(Needs::Impossible, |keys| needs(Kind::KeysTable, keys)) {
            Needs::Nothing => {}
            Needs::Claim(keys) => self.depend(keys, Dependent::Params(number, from)),
            Needs::Impossible => self.refute_params(number, from),
        }
    }

    fn refute_params(&mut self, number: u32, from: usize) {
        let params = self.facts.functions[number as usize].params;
        let known = self.no_keys_from[number as usize];
        for param in params.get(from..known).unwrap_or_default() {
            self.refute(Claim::of(*param, Kind::Key));
        }
        self.no_keys_from[number as usize] = known.min(from);
    }

    fn follow(&mut self) {
        while let Some(claim) = self.todo.pop() {
            let mut next = self.last_dependent[claim.0];
            while let Some(at) = next {
                let (dependent, before) = self.dependents[at as usize];
                match dependent {
                    Dependent::Claim(claim) => self.refute(claim),
                    Dependent::Params(number, from) => self.refute_params(number, from),
                }
                next = before;
            }
        }
    }
}
