//! Statements.

use super::function::{Compiler, Outcome, Spelled};
use crate::proto::{GENERATOR_OPERAND, NameKind, Op, Reg};
use crate::syntax::tree::{Expr, Function, LocalId, NumericFor, Stat, StatKind};

impl Compiler<'_> {
    pub(super) fn statements(&mut self, stats: &[Stat]) -> Outcome<()> {
        for stat in stats {
            self.statement(stat)?;
            let frame = self.frame();
            frame.free = frame.local_registers;
        }
        Ok(())
    }

    /// Statements in a scope of their own.
    fn block(&mut self, stats: &[Stat]) -> Outcome<()> {
        let mark = self.frame().local_registers;
        self.statements(stats)?;
        self.leave_scope(mark);
        Ok(())
    }

    fn statement(&mut self, stat: &Stat) -> Outcome<()> {
        match &stat.kind {
            StatKind::Local { locals, values } => self.local(locals, values),
            StatKind::LocalFunction { local, function } => self.local_function(*local, function),
            StatKind::Assign { targets, values } => self.assign(targets, values, stat.line),
            StatKind::Call(Expr::Call(call)) => self.call(call, 1).map(drop),
            StatKind::Call(_) => unreachable!("the parser takes only calls as statements"),
            StatKind::Do(body) => self.block(body),
            StatKind::While { condition, body } => {
                // A loop of nothing is the place where it is killed.
                self.frame().line = stat.line;
                self.while_loop(condition, body)
            }
            StatKind::Repeat { body, condition } => {
                self.frame().line = stat.line;
                self.repeat_loop(body, condition)
            }
            StatKind::If { arms, otherwise } => self.branches(arms, otherwise.as_deref()),
            StatKind::NumericFor(stat) => self.numeric_for(stat),
            StatKind::GenericFor { locals, values, body, do_line } => {
                self.generic_for((locals, values), body, *do_line)
            }
            StatKind::Return(values) => self.return_values(values, stat.line),
            StatKind::Break => {
                let jump = self.emit(Op::Jump { to: 0 })?;
                let innermost = self.frame().breaks.last_mut();
                innermost.expect("the parser refuses a break outside of loops").push(jump);
                Ok(())
            }
        }
    }

    fn local(&mut self, locals: &[LocalId], values: &[Expr]) -> Outcome<()> {
        let first = self.frame().free;
        self.list_adjusted(values, locals.len())?;
        for (offset, local) in locals.iter().enumerate() {
            self.bind(*local, (first + offset) as Reg)?;
        }
        Ok(())
    }

    fn local_function(&mut self, local: LocalId, function: &Function) -> Outcome<()> {
        let register = self.take_register()?;
        if self.locals[local.index()].needs_cell() {
            self.emit(Op::LoadNil { a: register, last: register })?;
            self.bind(local, register)?;
            let made = self.take_register()?;
            self.closure(function, made)?;
            self.emit(Op::SetCell { a: register, b: made })?;
            return Ok(());
        }
        self.bind(local, register)?;
        let outer = self.frame().defining.replace(local);
        self.closure(function, register)?;
        self.frame().defining = outer;
        Ok(())
    }

    fn return_values(&mut self, values: &[Expr], line: u32) -> Outcome<()> {
        if let [Expr::Call(call)] = values {
            let (a, args) = self.call_parts(call)?;
            self.emit(Op::TailCall { a, args })?;
            // A native that yields does not take the frame's place: what it is resumed with stands
            // where its results do, and is returned then.
            return self.emit(Op::Return { a, count: 0 }).map(drop);
        }
        let op = match values {
            [] => Op::Return { a: 0, count: 1 },
            [value] if !super::value::is_open(value) => {
                let a = self.expr_any(value)?;
                Op::Return { a, count: 2 }
            }
            _ => {
                let a = self.frame().free as Reg;
                let count = self.list_to_next(values)?;
                Op::Return { a, count: count.map_or(0, |count| count as u8 + 1) }
            }
        };
        self.frame().line = line;
        self.emit(op).map(drop)
    }

    // Branches and loops.

    fn branches(&mut self, arms: &[(Expr, Vec<Stat>)], otherwise: Option<&[Stat]>) -> Outcome<()> {
        let mut ends = Vec::new();
        for (position, (condition, body)) in arms.iter().enumerate() {
            let past = self.jump_when(condition, false)?;
            self.block(body)?;
            let is_last = position + 1 == arms.len() && otherwise.is_none();
            if !is_last {
                ends.push(self.emit(Op::Jump { to: 0 })?);
            }
            self.patch_all(past);
        }
        if let Some(body) = otherwise {
            self.block(body)?;
        }
        self.patch_all(ends);
        Ok(())
    }

    /// The end of a loop: breaks lead here.
    fn end_loop(&mut self) {
        let breaks = self.frame().breaks.pop().unwrap_or_default();
        self.patch_all(breaks);
    }

    fn while_loop(&mut self, condition: &Expr, body: &[Stat]) -> Outcome<()> {
        let start = self.here();
        let exits = self.jump_when(condition, false)?;
        self.frame().breaks.push(Vec::new());
        self.block(body)?;
        self.emit(Op::Loop { to: start as u32 })?;
        self.patch_all(exits);
        self.end_loop();
        Ok(())
    }

    fn repeat_loop(&mut self, body: &[Stat], condition: &Expr) -> Outcome<()> {
        let start = self.here();
        self.frame().breaks.push(Vec::new());
        let mark = self.frame().local_registers;
        self.statements(body)?;
        let exits = self.jump_when(condition, true)?;
        self.leave_scope(mark);
        self.emit(Op::Loop { to: start as u32 })?;
        self.patch_all(exits);
        self.end_loop();
        Ok(())
    }

    fn numeric_for(&mut self, stat: &NumericFor) -> Outcome<()> {
        let mark = self.frame().local_registers;
        let a = self.expr_to_next(&stat.start)?;
        self.expr_to_next(&stat.limit)?;
        match &stat.step {
            Some(step) => self.expr_to_next(step)?,
            None => self.expr_to_next(&Expr::Number(1.0))?,
        };
        let shown = self.take_register()?;
        self.frame().line = stat.do_line;
        let prepare = self.emit(Op::ForPrepare { a, to: 0 })?;
        self.frame().breaks.push(Vec::new());
        self.frame().local_registers = shown as usize + 1;
        let body_start = self.here();
        self.bind(stat.local, shown)?;
        self.statements(&stat.body)?;
        let turn = self.here();
        self.frame().line = stat.do_line;
        self.emit(match &stat.step {
            Some(_) => Op::ForLoop { a, to: body_start as u32 },
            None => Op::ForLoopOne { a, to: body_start as u32 },
        })?;
        self.patch(prepare, turn);
        self.leave_scope(mark);
        self.end_loop();
        Ok(())
    }

    fn generic_for(
        &mut self,
        (locals, values): (&[LocalId], &[Expr]),
        body: &[Stat],
        do_line: u32,
    ) -> Outcome<()> {
        let mark = self.frame().local_registers;
        let a = self.frame().free as Reg;
        self.list_adjusted(values, 3)?;
        // The call of the iterator needs three registers, whatever it gives.
        self.take_registers(locals.len().max(3))?;
        self.free_to(a as usize + 3 + locals.len());
        self.frame().line = do_line;
        let enter = self.emit(Op::Jump { to: 0 })?;
        self.frame().breaks.push(Vec::new());
        self.frame().local_registers = a as usize + 3 + locals.len();
        let body_start = self.here();
        for (offset, local) in locals.iter().enumerate() {
            self.bind(*local, a + 3 + offset as Reg)?;
        }
        self.statements(body)?;
        self.patch_all(vec![enter]);
        self.frame().line = do_line;
        let name = Spelled::Fixed(b"(for generator)");
        self.name_as(GENERATOR_OPERAND, NameKind::Local, name);
        self.emit(Op::ForCall { a, count: locals.len() as u8 })?;
        self.emit(Op::ForNext { a, to: body_start as u32 })?;
        self.leave_scope(mark);
        self.end_loop();
        Ok(())
    }
}
