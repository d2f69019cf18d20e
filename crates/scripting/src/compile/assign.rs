//! Assignments.

use super::function::{Compiler, Outcome, Storage};
use super::value::{constant_of, is_open};
use crate::proto::{Op, Reg};
use crate::syntax::tree::{Expr, Index, LocalId};

/// The key of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Name(u16),
    Register(Reg),
}

/// A target whose object and key have been evaluated.
enum Target<'e> {
    Local(LocalId),
    Global(&'e [u8]),
    Element { object: Reg, key: Key, named: &'e Expr, line: u32 },
}

impl Compiler<'_> {
    pub(super) fn key(&mut self, key: &Expr) -> Outcome<Key> {
        if let Expr::Str(name) = key {
            let k = self.string_constant(name)?;
            if let Ok(k) = u16::try_from(k) {
                return Ok(Key::Name(k));
            }
        }
        self.expr_any(key).map(Key::Register)
    }

    /// Stores the value of an expression as a field of what register `a` holds.
    pub(super) fn store(&mut self, a: Reg, key: Key, value: &Expr) -> Outcome<()> {
        if let (Key::Name(k), Some(constant)) = (key, constant_of(value)) {
            let v = self.constant(constant)?;
            if let Ok(v) = u16::try_from(v) {
                return self.emit(Op::SetFieldK { a, k, v }).map(drop);
            }
        }
        let c = self.expr_any(value)?;
        self.store_register(a, key, c)
    }

    pub(super) fn store_register(&mut self, a: Reg, key: Key, c: Reg) -> Outcome<()> {
        match key {
            Key::Name(k) => self.emit(Op::SetField { a, k, c }).map(drop),
            Key::Register(b) => self.emit(Op::SetIndex { a, b, c }).map(drop),
        }
    }

    pub(super) fn assign(&mut self, targets: &[Expr], values: &[Expr], line: u32) -> Outcome<()> {
        let mark = self.frame().free;
        match (targets, values) {
            ([target], [value]) => self.assign_one(target, value, line)?,
            _ => self.assign_many(targets, values, line)?,
        }
        self.free_to(mark);
        Ok(())
    }

    fn assign_one(&mut self, target: &Expr, value: &Expr, line: u32) -> Outcome<()> {
        match target {
            Expr::Local { id, .. } => match self.storage(*id)? {
                Storage::Register(register) => self.expr_to(value, register),
                _ => {
                    let register = self.expr_any(value)?;
                    self.frame().line = line;
                    self.set_local(*id, register)
                }
            },
            Expr::Global { name, .. } => {
                let register = self.expr_any(value)?;
                self.frame().line = line;
                self.set_global(name, register)
            }
            Expr::Index(index) => self.assign_element(index, value, line),
            _ => unreachable!("the parser takes no other targets"),
        }
    }

    fn assign_element(&mut self, index: &Index, value: &Expr, line: u32) -> Outcome<()> {
        let late_object = self.reserve_if_late(&index.object)?;
        let object = late_object.map_or_else(|| self.expr_any(&index.object), Ok)?;
        let late_key = self.reserve_if_late(&index.key)?;
        let key = late_key.map_or_else(|| self.key(&index.key), |key| Ok(Key::Register(key)))?;
        let constant = match (key, constant_of(value)) {
            (Key::Name(_), Some(constant)) => self.small_constant(constant)?,
            _ => None,
        };
        let stored = if constant.is_none() { Some(self.expr_any(value)?) } else { None };
        for (late, expr) in [(late_object, &index.object), (late_key, &index.key)] {
            if let Some(register) = late {
                self.expr_to(expr, register)?;
            }
        }
        self.frame().line = line;
        self.name_operand(0, &index.object);
        match (key, constant, stored) {
            (Key::Name(k), Some(v), _) => self.emit(Op::SetFieldK { a: object, k, v }).map(drop),
            (key, _, Some(register)) => self.store_register(object, key, register),
            _ => unreachable!("what is no constant is in a register"),
        }
    }

    /// A register for what is read only when the value to store is known.
    fn reserve_if_late(&mut self, expr: &Expr) -> Outcome<Option<Reg>> {
        if self.is_read_late(expr)? { self.take_register().map(Some) } else { Ok(None) }
    }

    fn assign_many(&mut self, targets: &[Expr], values: &[Expr], line: u32) -> Outcome<()> {
        let mut targets_found = Vec::with_capacity(targets.len());
        for target in targets {
            targets_found.push(match target {
                Expr::Local { id, .. } => Target::Local(*id),
                Expr::Global { name, .. } => Target::Global(name),
                Expr::Index(index) => {
                    let object = self.steady(&index.object, targets)?;
                    let key = match &index.key {
                        Expr::Str(_) => self.key(&index.key)?,
                        key => Key::Register(self.steady(key, targets)?),
                    };
                    let (named, line) = (&index.object, line);
                    Target::Element { object, key, named, line }
                }
                _ => unreachable!("the parser takes no other targets"),
            });
        }
        let first = self.frame().free;
        self.list_adjusted(values, targets.len())?;
        for (offset, storage) in targets_found.into_iter().enumerate().rev() {
            let register = (first + offset) as Reg;
            self.frame().line = line;
            match storage {
                Target::Local(id) => self.set_local(id, register)?,
                Target::Global(name) => self.set_global(name, register)?,
                Target::Element { object, key, named, line } => {
                    self.frame().line = line;
                    self.name_operand(0, named);
                    self.store_register(object, key, register)?;
                }
            }
        }
        Ok(())
    }

    /// An operand of a target in a register that the other targets leave alone.
    fn steady(&mut self, expr: &Expr, targets: &[Expr]) -> Outcome<Reg> {
        let is_assigned = |id: LocalId| {
            targets
                .iter()
                .any(|target| matches!(target, Expr::Local { id: other, .. } if *other == id))
        };
        match expr {
            Expr::Local { id, .. } if is_assigned(*id) => self.expr_to_next(expr),
            _ => self.expr_any(expr),
        }
    }

    fn set_local(&mut self, id: LocalId, from: Reg) -> Outcome<()> {
        match self.storage(id)? {
            Storage::Register(a) => self.emit(Op::Move { a, b: from }).map(drop),
            Storage::Cell(a) => self.emit(Op::SetCell { a, b: from }).map(drop),
            Storage::UpvalueCell(up) => self.emit(Op::SetUpvalueCell { a: from, up }).map(drop),
            Storage::Upvalue(_) => unreachable!("a captured variable that is assigned has a cell"),
        }
    }

    fn set_global(&mut self, name: &[u8], from: Reg) -> Outcome<()> {
        let k = self.string_constant(name)?;
        self.emit(Op::SetGlobal { a: from, k }).map(drop)
    }

    /// Evaluates a list to exactly `wanted` registers in a row.
    pub(super) fn list_adjusted(&mut self, values: &[Expr], wanted: usize) -> Outcome<()> {
        let start = self.frame().free;
        for (position, value) in values.iter().enumerate() {
            let is_last = position + 1 == values.len();
            let missing = wanted.saturating_sub(position);
            if is_last && is_open(value) && missing != 1 {
                self.open_adjusted(value, missing)?;
            } else {
                self.expr_to_next(value)?;
                if position >= wanted {
                    self.free_to(start + position.min(wanted));
                }
            }
        }
        let have = self.frame().free - start;
        if have < wanted {
            let first = self.take_registers(wanted - have)?;
            let last = first + (wanted - have) as Reg - 1;
            self.emit(Op::LoadNil { a: first, last })?;
        }
        Ok(())
    }

    /// Exactly `wanted` values of a call or `...`.
    fn open_adjusted(&mut self, value: &Expr, wanted: usize) -> Outcome<()> {
        match value {
            Expr::Call(call) => {
                self.call(call, wanted as u8 + 1)?;
                self.take_registers(wanted)?;
            }
            Expr::Vararg { line } => {
                self.frame().line = *line;
                let a = self.frame().free as Reg;
                self.take_registers(wanted)?;
                self.emit(Op::Vararg { a, count: wanted as u8 + 1 })?;
            }
            _ => {}
        }
        Ok(())
    }
}
