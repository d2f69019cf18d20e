//! Chains of operators, indexes and calls (`a + b + c`, `a.b.c`, `f()()`) to registers. They are as
//! long as the source makes them, so that their code is made in a loop, from the left.

use super::function::{Compiler, Outcome};
use crate::proto::{Op, Reg};
use crate::syntax::tree::Expr;

/// A part of a chain whose left side comes first.
struct Link<'e> {
    expr: &'e Expr,
    to: Reg,
    /// The register of the left side's value.
    left: Reg,
    /// The registers that were in use before.
    mark: usize,
    /// The constant that names the field.
    name: Option<u16>,
}

impl Compiler<'_> {
    /// As `expr_to`, for an expression whose left side has a left side again.
    pub(super) fn chain_to(&mut self, expr: &Expr, to: Reg) -> Outcome<()> {
        let (mut first, mut first_to) = (expr, to);
        let mut links = Vec::new();
        while first.is_chain()
            && let Some(left) = first.left()
        {
            let link = self.begin_link(first, first_to)?;
            (first, first_to) = (left, link.left);
            links.push(link);
        }
        self.expr_to(first, first_to)?;
        while let Some(link) = links.pop() {
            self.finish_link(&link)?;
        }
        Ok(())
    }

    /// What is done before the left side is evaluated.
    fn begin_link<'e>(&mut self, expr: &'e Expr, to: Reg) -> Outcome<Link<'e>> {
        let mark = self.frame().free;
        let is_temporary = self.is_temporary(to);
        let name = match expr {
            Expr::Index(index) => self.small_name(&index.key)?,
            _ => None,
        };
        let left = if matches!(expr, Expr::Call(_)) {
            // The function and its arguments stand in a row.
            if is_temporary && to as usize + 1 == mark {
                self.free_to(mark - 1);
            }
            self.take_register()?
        } else if is_temporary {
            to
        } else {
            // What stands to the right may still read the variable that lives in `to`.
            self.take_register()?
        };
        Ok(Link { expr, to, left, mark, name })
    }

    /// The left side's value is in its register: the rest.
    fn finish_link(&mut self, link: &Link<'_>) -> Outcome<()> {
        let Link { expr, to, left, mark, name } = *link;
        match expr {
            Expr::Index(index) => self.index_of(index, (to, left), name)?,
            Expr::Arith(binary) => self.arith_of(binary, (to, left))?,
            Expr::Compare(binary) => {
                let when_true = self.compare_of(binary, left, true)?;
                self.truth_of(vec![when_true], to)?;
            }
            Expr::Call(call) => {
                let parts = self.call_of(call, left, left)?;
                self.emit_call(parts, 2)?;
                self.move_to(to, left)?;
            }
            Expr::And(pair) => {
                self.choice_of(pair, false, left)?;
                self.move_to(to, left)?;
            }
            Expr::Or(pair) => {
                self.choice_of(pair, true, left)?;
                self.move_to(to, left)?;
            }
            _ => unreachable!("nothing else has a left side"),
        }
        self.free_to(mark);
        Ok(())
    }

    fn move_to(&mut self, to: Reg, from: Reg) -> Outcome<()> {
        if to == from {
            return Ok(());
        }
        self.emit(Op::Move { a: to, b: from }).map(drop)
    }
}
