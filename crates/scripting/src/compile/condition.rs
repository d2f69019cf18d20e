//! Conditions to jumps.

use super::function::{Compiler, Outcome};
use super::value::constant_of;
use crate::proto::{Constant, Op, Reg};
use crate::syntax::tree::{Binary, Expr, Relation, Unary};

impl Compiler<'_> {
    /// Jumps, to be patched, that are taken if the truth of the expression is `wanted`.
    pub(super) fn jump_when(&mut self, expr: &Expr, wanted: bool) -> Outcome<Vec<usize>> {
        let mark = self.frame().free;
        let jumps = match expr {
            Expr::Paren(inner) => self.jump_when(inner, wanted)?,
            Expr::Unary { kind: Unary::Not, operand, .. } => self.jump_when(operand, !wanted)?,
            Expr::And(_) | Expr::Or(_) => self.jump_chain(expr, wanted)?,
            Expr::Compare(binary) => vec![self.jump_compare(binary, wanted)?],
            _ => match constant_of(expr) {
                Some(constant) => {
                    let truth = !matches!(constant, Constant::Nil | Constant::Bool(false));
                    match truth == wanted {
                        true => vec![self.emit(Op::Jump { to: 0 })?],
                        false => Vec::new(),
                    }
                }
                None => {
                    let a = self.expr_any(expr)?;
                    vec![match wanted {
                        true => self.emit(Op::JumpIf { a, to: 0 })?,
                        false => self.emit(Op::JumpIfNot { a, to: 0 })?,
                    }]
                }
            },
        };
        self.free_to(mark);
        Ok(jumps)
    }

    /// A chain of `and` and `or`, from its first part on. Either is settled by a left side of one
    /// truth: the other goes on to the right side.
    fn jump_chain(&mut self, expr: &Expr, wanted: bool) -> Outcome<Vec<usize>> {
        let (mut first, mut first_wanted) = (expr, wanted);
        let mut links = Vec::new();
        loop {
            let (pair, settles) = match first {
                Expr::And(pair) => (pair, false),
                Expr::Or(pair) => (pair, true),
                _ => break,
            };
            links.push((pair, first_wanted, settles));
            (first, first_wanted) = (&pair.0, settles);
        }
        let mut jumps = self.jump_when(first, first_wanted)?;
        while let Some((pair, wanted, settles)) = links.pop() {
            if wanted == settles {
                jumps.extend(self.jump_when(&pair.1, wanted)?);
            } else {
                let past = std::mem::replace(&mut jumps, self.jump_when(&pair.1, wanted)?);
                self.patch_all(past);
            }
        }
        Ok(jumps)
    }

    /// A comparison of what register `a` holds.
    pub(super) fn compare_of(
        &mut self,
        binary: &Binary<Relation>,
        a: Reg,
        wanted: bool,
    ) -> Outcome<usize> {
        let is_equality = matches!(binary.kind, Relation::Eq | Relation::Ne);
        let constant = constant_of(&binary.right)
            .filter(|constant| is_equality || matches!(constant, Constant::Number(_)));
        let small = match constant {
            Some(constant) => self.small_constant(constant)?,
            None => None,
        };
        let op = match small {
            Some(k) => constant_op(binary.kind, wanted, a, k),
            None => register_op(binary.kind, wanted, (a, self.expr_any(&binary.right)?)),
        };
        self.frame().line = binary.line;
        self.emit(op)
    }

    fn jump_compare(&mut self, binary: &Binary<Relation>, wanted: bool) -> Outcome<usize> {
        let Binary { kind, left, right, line } = binary;
        if let Some(at) = self.jump_compare_constant(binary, wanted)? {
            return Ok(at);
        }
        let (a, b) = self.operands(left, right, None)?;
        self.frame().line = *line;
        self.emit(register_op(*kind, wanted, (a, b)))
    }

    /// A comparison with a constant, if there is an instruction for it.
    ///
    /// COMPAT: 0 and -0 are one constant, and the first of them in the source decides which: so the
    /// left side comes first here, too. (tests/corpus/language.txt)
    fn jump_compare_constant(
        &mut self,
        binary: &Binary<Relation>,
        wanted: bool,
    ) -> Outcome<Option<usize>> {
        let (operand, constant, kind) =
            match (constant_of(&binary.left), constant_of(&binary.right)) {
                (None, Some(constant)) => (&binary.left, constant, binary.kind),
                (Some(constant), None) => (&binary.right, constant, mirrored(binary.kind)),
                _ => return Ok(None),
            };
        let is_equality = matches!(kind, Relation::Eq | Relation::Ne);
        if !is_equality && !matches!(constant, Constant::Number(_)) {
            return Ok(None);
        }
        let is_first = std::ptr::eq(operand, &binary.left);
        let mut a = if is_first { self.expr_any(operand)? } else { 0 };
        let k = u16::try_from(self.constant(constant)?);
        if k.is_err() && !is_first {
            return Ok(None);
        }
        if !is_first {
            a = self.expr_any(operand)?;
        }
        let op = match k {
            Ok(k) => constant_op(kind, wanted, a, k),
            Err(_) => register_op(kind, wanted, (a, self.expr_any(&binary.right)?)),
        };
        self.frame().line = binary.line;
        self.emit(op).map(Some)
    }
}

fn register_op(kind: Relation, wanted: bool, (a, b): (Reg, Reg)) -> Op {
    match kind {
        Relation::Eq => Op::Eq { a, b, wanted, to: 0 },
        Relation::Ne => Op::Eq { a, b, wanted: !wanted, to: 0 },
        Relation::Lt => Op::Lt { a, b, wanted, to: 0 },
        Relation::Le => Op::Le { a, b, wanted, to: 0 },
        Relation::Gt => Op::Lt { a: b, b: a, wanted, to: 0 },
        Relation::Ge => Op::Le { a: b, b: a, wanted, to: 0 },
    }
}

/// The relation with its sides exchanged.
fn mirrored(kind: Relation) -> Relation {
    match kind {
        Relation::Lt => Relation::Gt,
        Relation::Le => Relation::Ge,
        Relation::Gt => Relation::Lt,
        Relation::Ge => Relation::Le,
        kind => kind,
    }
}

fn constant_op(kind: Relation, wanted: bool, a: Reg, k: u16) -> Op {
    match (kind, wanted) {
        (Relation::Eq, true) | (Relation::Ne, false) => Op::EqK { a, k, to: 0 },
        (Relation::Eq, false) | (Relation::Ne, true) => Op::NotEqK { a, k, to: 0 },
        (Relation::Lt, true) => Op::LtK { a, k, to: 0 },
        (Relation::Lt, false) => Op::NotLtK { a, k, to: 0 },
        (Relation::Le, true) => Op::LeK { a, k, to: 0 },
        (Relation::Le, false) => Op::NotLeK { a, k, to: 0 },
        (Relation::Gt, true) => Op::GtK { a, k, to: 0 },
        (Relation::Gt, false) => Op::NotGtK { a, k, to: 0 },
        (Relation::Ge, true) => Op::GeK { a, k, to: 0 },
        (Relation::Ge, false) => Op::NotGeK { a, k, to: 0 },
    }
}
