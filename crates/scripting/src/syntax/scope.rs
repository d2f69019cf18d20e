//! Which variable a name means.

use super::error::SyntaxError;
use super::parser::Parser;
use super::tree::{Expr, Local, LocalId};
use crate::hashing::Keyed;
use crate::limits::{LOCALS_MAX, UPVALUES_MAX};
use std::collections::HashMap;
use std::sync::Arc;

/// A function whose end the parser has not reached.
#[derive(Debug)]
pub(super) struct Open {
    number: u32,
    pub(super) line: u32,
    /// Variables in scope, the innermost last.
    active: Vec<LocalId>,
    upvalues: Vec<LocalId>,
    pub(super) is_vararg: bool,
    pub(super) uses_dots: bool,
    pub(super) loops: usize,
}

impl Open {
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) locals: Vec<Local>,
    open: Vec<Open>,
    /// By name, the variables in scope, the innermost last, each with the depth of its function.
    named: HashMap<Arc<[u8]>, Vec<(usize, LocalId)>, Keyed>,
    /// How many were entered.
    pub(super) functions: u32,
}

impl Scopes {
    pub(super) fn enter_function(&mut self, line: u32) {
        self.open.push(Open {
            number: self.functions,
            line,
            active: Vec::new(),
            upvalues: Vec::new(),
            is_vararg: false,
            uses_dots: false,
            loops: 0,
        });
        self.functions += 1;
    }

    pub(super) fn leave_function(&mut self) -> Open {
        self.leave_block(0);
        self.open.pop().expect("each function is left once")
    }

    pub(super) fn current(&mut self) -> &mut Open {
        self.open.last_mut().expect("the main function is open until the end")
    }

    /// The mark to go back to at the end of a block.
    pub(super) fn mark(&mut self) -> usize {
        self.current().active.len()
    }

    pub(super) fn leave_block(&mut self, mark: usize) {
        while self.current().active.len() > mark
            && let Some(local) = self.current().active.pop()
        {
            if let Some(named) = self.named.get_mut(&self.locals[local.index()].name) {
                named.pop();
            }
        }
    }

    fn activate(&mut self, local: LocalId) {
        let depth = self.open.len() - 1;
        let name = self.locals[local.index()].name.clone();
        self.named.entry(name).or_default().push((depth, local));
        self.current().active.push(local);
    }

    pub(super) fn declare(&mut self, name: Arc<[u8]>) -> LocalId {
        let function = self.current().number;
        self.locals.push(Local {
            name,
            function,
            is_captured: false,
            is_assigned: false,
            is_function: false,
        });
        LocalId(self.locals.len() as u32 - 1)
    }
}

impl Parser<'_> {
    /// Brings declared variables into scope; `pending` others are about to follow.
    pub(super) fn activate(&mut self, local: LocalId) {
        self.scopes.activate(local);
    }

    pub(super) fn check_locals(&mut self, pending: usize) -> Result<(), SyntaxError> {
        let count = self.scopes.current().active.len() + pending;
        if count > LOCALS_MAX {
            return Err(self.limit_error(LOCALS_MAX, "local variables", None));
        }
        Ok(())
    }

    pub(super) fn limit_error(
        &mut self,
        limit: usize,
        what: &str,
        depth: Option<usize>,
    ) -> SyntaxError {
        let depth = depth.unwrap_or(self.scopes.open.len() - 1);
        let line = self.scopes.open[depth].line;
        let text = match depth {
            0 => format!("main function has more than {limit} {what}"),
            _ => format!("function at line {line} has more than {limit} {what}"),
        };
        self.lexer.error(&text, None)
    }

    pub(super) fn variable(&mut self, name: Arc<[u8]>) -> Result<Expr, SyntaxError> {
        let line = self.last_line;
        let found = self.scopes.named.get(&name).and_then(|named| named.last().copied());
        let Some((depth, id)) = found else { return Ok(Expr::Global { name, line }) };
        let innermost = self.scopes.open.len() - 1;
        self.scopes.locals[id.index()].is_captured |= depth < innermost;
        // A function that knows it already got it from those around it.
        let is_known = |depth: &usize| self.scopes.open[*depth].upvalues.contains(&id);
        let known = (depth + 1..=innermost).rev().find(is_known).unwrap_or(depth);
        for inner in known + 1..=innermost {
            let upvalues = &mut self.scopes.open[inner].upvalues;
            upvalues.push(id);
            if upvalues.len() > UPVALUES_MAX {
                return Err(self.limit_error(UPVALUES_MAX, "upvalues", Some(inner)));
            }
        }
        Ok(Expr::Local { id, line })
    }
}
