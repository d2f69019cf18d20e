//! Expressions to registers.

use super::assign::Key;
use super::function::{Compiler, Outcome, Spelled, Storage};
use super::value::{constant_of, is_open};
use crate::proto::{Constant, NameKind, Op, Reg};
use crate::syntax::tree::{Arith, Binary, Call, Expr, Function, Index, Item, Pair, Table, Unary};
use std::sync::Arc;

/// Elements of a table constructor that are stored at once.
const ELEMENTS_PER_STORE: usize = 50;

impl Compiler<'_> {
    /// Evaluates into a register that holds no variable which the expression still reads, or as
    /// the last step into any register.
    pub(super) fn expr_to(&mut self, expr: &Expr, to: Reg) -> Outcome<()> {
        if expr.is_chain() {
            return self.chain_to(expr, to);
        }
        match expr {
            Expr::Nil => self.emit(Op::LoadNil { a: to, last: to }).map(drop),
            Expr::True => self.emit(Op::LoadBool { a: to, value: true }).map(drop),
            Expr::False => self.emit(Op::LoadBool { a: to, value: false }).map(drop),
            Expr::Number(_) | Expr::Str(_) => self.load_constant(expr, to),
            Expr::Vararg { line } => {
                self.frame().line = *line;
                self.emit(Op::Vararg { a: to, count: 2 }).map(drop)
            }
            Expr::Function(function) => self.closure(function, to),
            Expr::Local { id, line } => {
                self.frame().line = *line;
                match self.storage(*id)? {
                    Storage::Register(b) if b == to => Ok(()),
                    Storage::Register(b) => self.emit(Op::Move { a: to, b }).map(drop),
                    Storage::Cell(b) => self.emit(Op::GetCell { a: to, b }).map(drop),
                    Storage::Upvalue(up) => self.emit(Op::GetUpvalue { a: to, up }).map(drop),
                    Storage::UpvalueCell(up) => {
                        self.emit(Op::GetUpvalueCell { a: to, up }).map(drop)
                    }
                }
            }
            Expr::Global { name, line } => {
                let k = self.string_constant(name)?;
                self.frame().line = *line;
                self.emit(Op::GetGlobal { a: to, k }).map(drop)
            }
            Expr::Index(index) => self.index_to(index, to),
            Expr::Call(call) => self.call_to(call, to),
            Expr::Arith(binary) => self.arith_to(binary, to),
            Expr::Concat { parts, line } => self.concat_to(parts, *line, to),
            Expr::Compare(_) => self.truth_to(expr, to),
            Expr::And(pair) => self.choice_to(pair, false, to),
            Expr::Or(pair) => self.choice_to(pair, true, to),
            Expr::Unary { kind, operand, line } => self.unary_to(*kind, operand, *line, to),
            Expr::Table(table) => self.table_to(table, to),
            Expr::Paren(inner) => self.expr_to(inner, to),
        }
    }

    fn load_constant(&mut self, expr: &Expr, to: Reg) -> Outcome<()> {
        let k = match expr {
            Expr::Str(text) => self.string_constant(text)?,
            other => match constant_of(other) {
                Some(constant) => self.constant(constant)?,
                None => return Ok(()),
            },
        };
        self.emit(Op::LoadK { a: to, k }).map(drop)
    }

    /// Evaluates to a fresh register on top.
    pub(super) fn expr_to_next(&mut self, expr: &Expr) -> Outcome<Reg> {
        let register = self.take_register()?;
        self.expr_to(expr, register)?;
        Ok(register)
    }

    /// The register of a plain local, or a fresh one.
    pub(super) fn expr_any(&mut self, expr: &Expr) -> Outcome<Reg> {
        match self.own_register(expr)? {
            Some(register) => Ok(register),
            None => self.expr_to_next(expr),
        }
    }

    fn own_register(&mut self, expr: &Expr) -> Outcome<Option<Reg>> {
        match expr {
            Expr::Local { id, .. } => match self.storage(*id)? {
                Storage::Register(register) => Ok(Some(register)),
                _ => Ok(None),
            },
            Expr::Paren(inner) if !is_open(inner) => self.own_register(inner),
            _ => Ok(None),
        }
    }

    /// As `expr_any`, but with `to` as the fresh register if it may be used.
    fn expr_in(&mut self, expr: &Expr, to: Reg) -> Outcome<Reg> {
        if let Some(register) = self.own_register(expr)? {
            return Ok(register);
        }
        if !self.is_temporary(to) {
            return self.expr_to_next(expr);
        }
        self.expr_to(expr, to)?;
        Ok(to)
    }

    /// Whether reading it must wait until the other operand was evaluated: a variable of this
    /// function that closures share lives in a cell here, where Lua 5.1 reads a register as late.
    pub(super) fn is_read_late(&mut self, expr: &Expr) -> Outcome<bool> {
        match expr {
            Expr::Local { id, .. } => Ok(matches!(self.storage(*id)?, Storage::Cell(_))),
            _ => Ok(false),
        }
    }

    /// Both operands of an instruction, in registers.
    pub(super) fn operands(
        &mut self,
        left: &Expr,
        right: &Expr,
        to: Option<Reg>,
    ) -> Outcome<(Reg, Reg)> {
        if self.is_read_late(left)? {
            let a = self.take_register()?;
            let b = self.expr_any(right)?;
            self.expr_to(left, a)?;
            return Ok((a, b));
        }
        let a = match to {
            Some(to) => self.expr_in(left, to)?,
            None => self.expr_any(left)?,
        };
        let b = self.expr_any(right)?;
        Ok((a, b))
    }

    pub(super) fn small_constant(&mut self, constant: Constant) -> Outcome<Option<u16>> {
        let k = self.constant(constant)?;
        Ok(u16::try_from(k).ok())
    }

    fn index_to(&mut self, index: &Index, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        let name = self.small_name(&index.key)?;
        let is_constant = name.is_some() || small_integer(&index.key).is_some();
        if !is_constant && self.is_read_late(&index.object)? {
            let (b, c) = self.operands(&index.object, &index.key, Some(to))?;
            self.emit_index(index, Op::GetIndex { a: to, b, c })?;
        } else {
            let b = self.expr_in(&index.object, to)?;
            self.index_of(index, (to, b), name)?;
        }
        self.free_to(mark);
        Ok(())
    }

    /// The key of an index as a constant that fits the instruction.
    pub(super) fn small_name(&mut self, key: &Expr) -> Outcome<Option<u16>> {
        match key {
            Expr::Str(name) => Ok(u16::try_from(self.string_constant(name)?).ok()),
            _ => Ok(None),
        }
    }

    /// An element of what register `b` holds.
    pub(super) fn index_of(
        &mut self,
        index: &Index,
        (a, b): (Reg, Reg),
        name: Option<u16>,
    ) -> Outcome<()> {
        let op = match (name, small_integer(&index.key)) {
            (Some(k), _) => Op::GetField { a, b, k },
            (None, Some(n)) => Op::GetInt { a, b, n },
            (None, None) => Op::GetIndex { a, b, c: self.expr_any(&index.key)? },
        };
        self.emit_index(index, op)
    }

    fn emit_index(&mut self, index: &Index, op: Op) -> Outcome<()> {
        self.frame().line = index.line;
        self.name_operand(0, &index.object);
        self.emit(op).map(drop)
    }

    fn arith_to(&mut self, binary: &Binary<Arith>, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        let is_constant = matches!(binary.right, Expr::Number(_));
        if !is_constant && self.is_read_late(&binary.left)? {
            let (b, c) = self.operands(&binary.left, &binary.right, Some(to))?;
            self.emit_arith(binary, arith_registers(binary.kind, (to, b), c))?;
        } else {
            let b = self.expr_in(&binary.left, to)?;
            self.arith_of(binary, (to, b))?;
        }
        self.free_to(mark);
        Ok(())
    }

    /// An operation on what register `b` holds.
    pub(super) fn arith_of(&mut self, binary: &Binary<Arith>, (a, b): (Reg, Reg)) -> Outcome<()> {
        let small = match &binary.right {
            Expr::Number(number) => self.small_constant(Constant::Number(*number))?,
            _ => None,
        };
        let op = match small {
            Some(k) => arith_constant(binary.kind, (a, b), k),
            None => arith_registers(binary.kind, (a, b), self.expr_any(&binary.right)?),
        };
        self.emit_arith(binary, op)
    }

    fn emit_arith(&mut self, binary: &Binary<Arith>, op: Op) -> Outcome<()> {
        self.frame().line = binary.line;
        self.name_operand(0, &binary.left);
        self.name_operand(1, &binary.right);
        self.emit(op).map(drop)
    }

    fn concat_to(&mut self, parts: &[Expr], line: u32, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        let mut last = 0;
        let mut first = None;
        for part in parts {
            last = self.expr_to_next(part)?;
            first.get_or_insert(last);
        }
        self.frame().line = line;
        for (operand, part) in parts.iter().enumerate() {
            self.name_operand(operand as u8, part);
        }
        self.emit(Op::Concat { a: to, b: first.unwrap_or(last), c: last })?;
        self.free_to(mark);
        Ok(())
    }

    fn unary_to(&mut self, kind: Unary, operand: &Expr, line: u32, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        let b = self.expr_in(operand, to)?;
        self.frame().line = line;
        self.name_operand(0, operand);
        self.emit(match kind {
            Unary::Neg => Op::Neg { a: to, b },
            Unary::Not => Op::Not { a: to, b },
            Unary::Len => Op::Len { a: to, b },
        })?;
        self.free_to(mark);
        Ok(())
    }

    /// `and` and `or`: the left value if its truth is `keeps`, else the right one.
    fn choice_to(&mut self, pair: &Pair, keeps: bool, to: Reg) -> Outcome<()> {
        if !self.is_temporary(to) {
            // The right side may still read the variable that lives in `to`.
            let mark = self.frame().free;
            let temporary = self.take_register()?;
            self.choice_to(pair, keeps, temporary)?;
            self.emit(Op::Move { a: to, b: temporary })?;
            self.free_to(mark);
            return Ok(());
        }
        self.expr_to(&pair.0, to)?;
        self.choice_of(pair, keeps, to)
    }

    /// As `choice_to`, with the left value in its register.
    pub(super) fn choice_of(&mut self, pair: &Pair, keeps: bool, to: Reg) -> Outcome<()> {
        let jump = if keeps {
            self.emit(Op::JumpIf { a: to, to: 0 })?
        } else {
            self.emit(Op::JumpIfNot { a: to, to: 0 })?
        };
        self.expr_to(&pair.1, to)?;
        self.patch_all(vec![jump]);
        Ok(())
    }

    /// A comparison as a value.
    fn truth_to(&mut self, expr: &Expr, to: Reg) -> Outcome<()> {
        let when_true = self.jump_when(expr, true)?;
        self.truth_of(when_true, to)
    }

    /// True where the jumps lead, false otherwise.
    pub(super) fn truth_of(&mut self, when_true: Vec<usize>, to: Reg) -> Outcome<()> {
        self.emit(Op::LoadBool { a: to, value: false })?;
        let end = self.emit(Op::Jump { to: 0 })?;
        self.patch_all(when_true);
        self.emit(Op::LoadBool { a: to, value: true })?;
        self.patch_all(vec![end]);
        Ok(())
    }

    pub(super) fn closure(&mut self, function: &Function, to: Reg) -> Outcome<()> {
        let proto = self.function(function)?;
        let frame = self.frame();
        let Ok(p) = u16::try_from(frame.proto.children.len()) else {
            return Err(self.error("constant table overflow"));
        };
        frame.proto.children.push(Arc::new(proto));
        frame.line = function.end_line;
        self.emit(Op::Closure { a: to, p }).map(drop)
    }

    // Calls.

    fn call_to(&mut self, call: &Call, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        let is_top = to as usize + 1 == mark && self.is_temporary(to);
        if is_top {
            self.free_to(mark - 1);
        }
        let a = self.call(call, 2)?;
        if a != to {
            self.emit(Op::Move { a: to, b: a })?;
        }
        self.free_to(mark);
        Ok(())
    }

    /// A call whose results start where the returned register is; `results` is their count plus 1,
    /// 0 for all. Registers above are free afterwards.
    pub(super) fn call(&mut self, call: &Call, results: u8) -> Outcome<Reg> {
        let (a, args) = self.call_parts(call)?;
        self.emit_call((a, args), results)
    }

    pub(super) fn emit_call(&mut self, (a, args): (Reg, u8), results: u8) -> Outcome<Reg> {
        self.emit(Op::Call { a, args, results })?;
        self.free_to(a as usize);
        // The caller takes what it keeps of the results.
        let kept = (results as usize).saturating_sub(1);
        self.take_registers(kept.max(1))?;
        self.free_to(a as usize);
        Ok(a)
    }

    /// Function and arguments in a row: the first register, and the count as instructions give it.
    pub(super) fn call_parts(&mut self, call: &Call) -> Outcome<(Reg, u8)> {
        let a = self.take_register()?;
        let function = match &call.method {
            Some(_) => self.expr_in(&call.function, a)?,
            None => {
                self.expr_to(&call.function, a)?;
                a
            }
        };
        self.call_of(call, a, function)
    }

    /// As `call_parts`, with the function, or the object of a method, in a register.
    pub(super) fn call_of(&mut self, call: &Call, a: Reg, function: Reg) -> Outcome<(Reg, u8)> {
        let mut fixed = 0;
        if let Some(name) = &call.method {
            self.take_register()?;
            fixed = 1;
            self.frame().line = call.line;
            self.method(a, function, name, &call.function)?;
        }
        let count = self.list_to_next(&call.args)?;
        self.frame().line = call.line;
        match &call.method {
            Some(name) => self.name_as(0, NameKind::Method, Spelled::InTree(name)),
            None => self.name_operand(0, &call.function),
        }
        Ok((a, count.map_or(0, |count| (count + fixed) as u8 + 1)))
    }

    fn method(&mut self, a: Reg, b: Reg, name: &Arc<[u8]>, object: &Expr) -> Outcome<()> {
        let k = self.string_constant(name)?;
        self.name_operand(0, object);
        match u16::try_from(k) {
            Ok(k) => self.emit(Op::Method { a, b, k }).map(drop),
            Err(_) => {
                let key = self.take_register()?;
                self.emit(Op::LoadK { a: key, k })?;
                self.emit(Op::Move { a: a + 1, b })?;
                self.name_operand(0, object);
                self.emit(Op::GetIndex { a, b: a + 1, c: key })?;
                self.free_to(key as usize);
                Ok(())
            }
        }
    }

    /// Evaluates a list to registers in a row; how many, or None if the last gives any number.
    pub(super) fn list_to_next(&mut self, list: &[Expr]) -> Outcome<Option<usize>> {
        let Some((last, others)) = list.split_last() else { return Ok(Some(0)) };
        for expr in others {
            self.expr_to_next(expr)?;
        }
        if self.open_to_next(last)? {
            return Ok(None);
        }
        self.expr_to_next(last)?;
        Ok(Some(list.len()))
    }

    /// All values of an expression that may give any number, from the next register on.
    fn open_to_next(&mut self, expr: &Expr) -> Outcome<bool> {
        match expr {
            Expr::Call(call) => self.call(call, 0)?,
            Expr::Vararg { line } => {
                self.frame().line = *line;
                let a = self.take_register()?;
                self.emit(Op::Vararg { a, count: 0 })?;
                self.free_to(a as usize);
                a
            }
            _ => return Ok(false),
        };
        Ok(true)
    }

    // Tables.

    fn table_to(&mut self, table: &Table, to: Reg) -> Outcome<()> {
        let mark = self.frame().free;
        // Elements are stored from the registers behind the table.
        let is_top = to as usize + 1 == mark && self.is_temporary(to);
        let a = if is_top { to } else { self.take_register()? };
        let is_element = |item: &&Item| matches!(item, Item::Element(_));
        let elements = table.items.iter().filter(is_element).count();
        let fields = table.items.len() - elements;
        let ends_open = matches!(table.items.last(), Some(Item::Element(last)) if is_open(last));
        let array_len = u16::try_from(elements - usize::from(ends_open)).unwrap_or(u16::MAX);
        let hash_len = u16::try_from(fields).unwrap_or(u16::MAX);
        self.frame().line = table.line;
        self.emit(Op::NewTable { a, array_len, hash_len })?;
        let mut pending = 0;
        let mut stored = 0;
        for (position, item) in table.items.iter().enumerate() {
            match item {
                Item::Field(key, value, line) => self.store_field(a, (key, value), *line)?,
                Item::Element(expr) => {
                    let is_last = position + 1 == table.items.len();
                    if is_last && self.open_to_next(expr)? {
                        self.store_elements(a, 0, &mut stored)?;
                        pending = 0;
                        break;
                    }
                    self.expr_to_next(expr)?;
                    pending += 1;
                    if pending == ELEMENTS_PER_STORE {
                        self.store_elements(a, pending, &mut stored)?;
                        pending = 0;
                    }
                }
            }
        }
        if pending > 0 {
            self.store_elements(a, pending, &mut stored)?;
        }
        if a != to {
            self.emit(Op::Move { a: to, b: a })?;
        }
        self.free_to(mark);
        Ok(())
    }

    fn store_elements(&mut self, a: Reg, count: usize, stored: &mut u32) -> Outcome<()> {
        self.emit(Op::SetList { a, count: count as u8, first: *stored + 1 })?;
        *stored += count as u32;
        self.free_to(a as usize + 1);
        Ok(())
    }

    fn store_field(&mut self, a: Reg, (key, value): (&Expr, &Expr), line: u32) -> Outcome<()> {
        let mark = self.frame().free;
        match self.key(key)? {
            key @ Key::Name(_) => self.store(a, key, value)?,
            key @ Key::Register(_) => {
                let c = self.expr_any(value)?;
                self.frame().line = line;
                self.store_register(a, key, c)?;
            }
        }
        self.free_to(mark);
        Ok(())
    }
}

/// A key that is a whole number and fits the instruction.
fn small_integer(key: &Expr) -> Option<u16> {
    match key {
        Expr::Number(number) if (0.0..65_536.0).contains(number) && number.fract() == 0.0 => {
            Some(*number as u16)
        }
        _ => None,
    }
}

fn arith_registers(kind: Arith, (a, b): (Reg, Reg), c: Reg) -> Op {
    match kind {
        Arith::Add => Op::Add { a, b, c },
        Arith::Sub => Op::Sub { a, b, c },
        Arith::Mul => Op::Mul { a, b, c },
        Arith::Div => Op::Div { a, b, c },
        Arith::Mod => Op::Mod { a, b, c },
        Arith::Pow => Op::Pow { a, b, c },
    }
}

fn arith_constant(kind: Arith, (a, b): (Reg, Reg), k: u16) -> Op {
    match kind {
        Arith::Add => Op::AddK { a, b, k },
        Arith::Sub => Op::SubK { a, b, k },
        Arith::Mul => Op::MulK { a, b, k },
        Arith::Div => Op::DivK { a, b, k },
        Arith::Mod => Op::ModK { a, b, k },
        Arith::Pow => Op::PowK { a, b, k },
    }
}
