//! What an expression is: the table of keys, one of its elements, `redis`, or `redis.call`.

use super::facts::{Def, Facts};
use crate::syntax::tree::{Call, Expr, LocalId};
use std::cell::RefCell;
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    KeysTable,
    Key,
    Redis,
    /// `redis.call` or `redis.pcall`.
    Command,
}

pub(super) struct Prover<'f, 't> {
    facts: &'f Facts<'t>,
    known: RefCell<HashMap<(LocalId, Kind), bool>>,
}

/// The global function of that name is called.
pub(super) fn is_global_call(call: &Call, names: &[&str]) -> bool {
    let Expr::Global { name, .. } = &call.function else { return false };
    call.method.is_none() && names.iter().any(|known| known.as_bytes() == name.as_ref())
}

impl<'f, 't> Prover<'f, 't> {
    pub(super) fn new(facts: &'f Facts<'t>) -> Self {
        Prover { facts, known: RefCell::default() }
    }

    pub(super) fn is(&self, kind: Kind, expr: &Expr) -> bool {
        match (kind, expr) {
            (_, Expr::Paren(inner)) => self.is(kind, inner),
            (_, Expr::Local { id, .. }) => self.local_is(kind, *id),
            (Kind::KeysTable, Expr::Global { name, .. }) => name.as_ref() == b"KEYS",
            (Kind::Redis, Expr::Global { name, .. }) => {
                matches!(name.as_ref(), b"redis" | b"server")
            }
            (Kind::Command, Expr::Index(index)) => {
                let is_call =
                    matches!(&index.key, Expr::Str(n) if matches!(n.as_ref(), b"call" | b"pcall"));
                is_call && self.is(Kind::Redis, &index.object)
            }
            (Kind::Key, Expr::Index(index)) => self.is(Kind::KeysTable, &index.object),
            // What is not true is no argument of a command.
            (Kind::Key, Expr::Nil | Expr::False) => true,
            (Kind::Key, Expr::And(pair)) => self.is(kind, &pair.1),
            (Kind::Key, Expr::Or(pair)) => self.is(kind, &pair.0) && self.is(kind, &pair.1),
            _ => false,
        }
    }

    /// Whether a variable holds nothing else, whenever it is read.
    pub(super) fn local_is(&self, kind: Kind, local: LocalId) -> bool {
        if let Some(known) = self.known.borrow().get(&(local, kind)) {
            return *known;
        }
        // A variable that is defined by itself adds nothing new.
        self.known.borrow_mut().insert((local, kind), true);
        let defs = self.facts.defs.get(&local);
        let is_so = defs.is_some_and(|defs| {
            let proved = defs.iter().all(|def| self.def_is(kind, *def));
            proved && defs.iter().any(|def| !matches!(def, Def::Nil))
        });
        self.known.borrow_mut().insert((local, kind), is_so);
        is_so
    }

    fn def_is(&self, kind: Kind, def: Def<'_>) -> bool {
        match (kind, def) {
            (_, Def::Value(expr)) => self.is(kind, expr),
            (_, Def::Nil) => true,
            (Kind::KeysTable, Def::Keys) => true,
            (Kind::Key, Def::OneOf(Expr::Call(call))) => self.gives_keys(call),
            (Kind::Key, Def::ElementOf(Expr::Call(call))) => {
                is_global_call(call, &["pairs", "ipairs"])
                    && matches!(call.args.as_slice(), [over] if self.is(Kind::KeysTable, over))
            }
            _ => false,
        }
    }

    /// `unpack(KEYS)`
    pub(super) fn gives_keys(&self, call: &Call) -> bool {
        let over = call.args.first();
        is_global_call(call, &["unpack"]) && over.is_some_and(|e| self.is(Kind::KeysTable, e))
    }
}
