//! One function: its registers, constants, captures and jumps.

use crate::hashing::Keyed;
use crate::limits::{CONSTANTS_MAX, INSTRUCTIONS_MAX, REGISTERS_MAX};
use crate::meter::Meter;
use crate::proto::{Capture, Constant, NameKind, Named, Op, Proto, Reg};
use crate::syntax::SyntaxError;
use crate::syntax::tree::{Expr, Function, Local, LocalId, Tree};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// How far back a name is looked for that need not be kept twice.
const NAMES_COMPARED_MAX: usize = 16;

/// Constants of one function that are compared one by one; of more, they are hashed.
const CONSTANTS_COMPARED_MAX: usize = 16;

/// Instructions that there is room for from the start.
const INSTRUCTIONS_ROOM: usize = 32;

/// A constant as a key.
///
/// COMPAT: 0 and -0 are one constant, and the first of them in a function stands for both
/// (tests/corpus/messages.txt).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ConstantKey {
    Nil,
    Bool(bool),
    Number(u64),
    Str(Box<[u8]>),
}

impl ConstantKey {
    fn of(constant: &Constant) -> Self {
        match constant {
            Constant::Nil => ConstantKey::Nil,
            Constant::Bool(value) => ConstantKey::Bool(*value),
            Constant::Number(0.0) => ConstantKey::Number(0),
            Constant::Number(number) => ConstantKey::Number(number.to_bits()),
            Constant::Str(bytes) => ConstantKey::Str(bytes.clone()),
        }
    }
}

/// A function that is being compiled.
#[derive(Debug, Default)]
pub(super) struct Frame {
    number: u32,
    pub(super) proto: Proto,
    /// All constants by key, once there are more than are compared one by one.
    constants: HashMap<ConstantKey, u32, Keyed>,
    captured: Vec<LocalId>,
    /// The first free register.
    pub(super) free: usize,
    /// Registers below hold variables in scope.
    pub(super) local_registers: usize,
    /// Jumps out of each open loop.
    pub(super) breaks: Vec<Vec<usize>>,
    /// The local function whose body is being compiled by an inner frame.
    pub(super) defining: Option<LocalId>,
    pub(super) line: u32,
}

pub(super) struct Compiler<'t> {
    meter: &'t Meter<'t>,
    pub(super) locals: &'t [Local],
    source: Arc<[u8]>,
    chunk_name: Arc<[u8]>,
    frames: Vec<Frame>,
    /// By the number of the variable, once it is bound.
    registers: Vec<Reg>,
}

/// A name for messages, not yet kept by the function.
#[derive(Clone, Copy)]
pub(super) enum Spelled<'e> {
    InTree(&'e Arc<[u8]>),
    Fixed(&'static [u8]),
}

impl Spelled<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Spelled::InTree(name) => name,
            Spelled::Fixed(name) => name,
        }
    }

    fn to_shared(self) -> Arc<[u8]> {
        match self {
            Spelled::InTree(name) => name.clone(),
            Spelled::Fixed(name) => name.into(),
        }
    }
}

/// Where a variable lives, seen from the function that is being compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Storage {
    Register(Reg),
    /// A register that holds the variable's cell.
    Cell(Reg),
    Upvalue(u8),
    UpvalueCell(u8),
}

pub(super) type Outcome<T> = Result<T, SyntaxError>;

pub(super) fn compile_tree<'t>(tree: &'t Tree, meter: &'t Meter<'t>) -> Outcome<Proto> {
    let mut compiler = Compiler {
        meter,
        locals: &tree.locals,
        source: tree.name.clone(),
        chunk_name: tree.chunk_name.clone(),
        frames: Vec::new(),
        registers: vec![0; tree.locals.len()],
    };
    compiler.function(&tree.main)
}

impl<'t> Compiler<'t> {
    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a function is being compiled")
    }

    pub(super) fn error(&mut self, text: &str) -> SyntaxError {
        let line = self.frame().line;
        let mut message = self.source.to_vec();
        message.extend_from_slice(format!(":{line}: {text}").as_bytes());
        SyntaxError::new(message)
    }

    pub(super) fn function(&mut self, function: &Function) -> Outcome<Proto> {
        let mut frame = Frame { number: function.number, line: function.line, ..Frame::default() };
        frame.proto.number = function.number;
        frame.proto.is_vararg = function.is_vararg;
        frame.proto.params = function.params.len() as u8;
        frame.proto.source = self.source.clone();
        frame.proto.chunk_name = self.chunk_name.clone();
        frame.proto.registers = 2;
        frame.proto.code.reserve(INSTRUCTIONS_ROOM);
        frame.proto.lines.reserve(INSTRUCTIONS_ROOM);
        self.frames.push(frame);
        for param in &function.params {
            let register = self.take_register()?;
            self.bind(*param, register)?;
        }
        if let Some((arg, is_table)) = function.arg {
            let register = self.take_register()?;
            self.emit(match is_table {
                true => Op::ArgTable { a: register },
                false => Op::LoadNil { a: register, last: register },
            })?;
            self.bind(arg, register)?;
        }
        self.statements(&function.body)?;
        self.frame().line = function.end_line;
        self.emit(Op::Return { a: 0, count: 1 })?;
        let mut frame = self.frames.pop().expect("it was pushed above");
        frame.proto.shrink();
        Ok(frame.proto)
    }

    // Registers.

    pub(super) fn take_register(&mut self) -> Outcome<Reg> {
        let register = self.take_registers(1)?;
        Ok(register)
    }

    /// Takes so many registers in a row; the first.
    pub(super) fn take_registers(&mut self, count: usize) -> Outcome<Reg> {
        let frame = self.frame();
        let first = frame.free;
        frame.free += count;
        if frame.free > REGISTERS_MAX {
            return Err(self.error("function or expression too complex"));
        }
        frame.proto.registers = frame.proto.registers.max(frame.free as u8);
        Ok(first as Reg)
    }

    /// Gives back all registers from a mark on.
    pub(super) fn free_to(&mut self, mark: usize) {
        self.frame().free = mark;
    }

    /// The registers of variables that leave their scope, and all above, are free again.
    pub(super) fn leave_scope(&mut self, mark: usize) {
        let frame = self.frame();
        frame.local_registers = mark;
        frame.free = mark;
    }

    /// Makes a register that holds its first value the home of a variable.
    pub(super) fn bind(&mut self, local: LocalId, register: Reg) -> Outcome<()> {
        if self.locals[local.index()].needs_cell() {
            self.emit(Op::NewCell { a: register })?;
        }
        self.registers[local.index()] = register;
        let frame = self.frame();
        frame.local_registers = frame.local_registers.max(register as usize + 1);
        Ok(())
    }

    pub(super) fn is_temporary(&mut self, register: Reg) -> bool {
        register as usize >= self.frame().local_registers
    }

    pub(super) fn storage(&mut self, local: LocalId) -> Outcome<Storage> {
        let needs_cell = self.locals[local.index()].needs_cell();
        if self.locals[local.index()].function == self.frame().number {
            let register = self.registers[local.index()];
            return Ok(if needs_cell {
                Storage::Cell(register)
            } else {
                Storage::Register(register)
            });
        }
        let depth = self.frames.len() - 1;
        let up = self.capture(local, depth);
        Ok(if needs_cell { Storage::UpvalueCell(up) } else { Storage::Upvalue(up) })
    }

    /// The capture of an outer variable in the frame at a depth.
    fn capture(&mut self, local: LocalId, depth: usize) -> u8 {
        let known = self.frames[depth].captured.iter().position(|known| *known == local);
        if let Some(index) = known {
            return index as u8;
        }
        let outer = &self.frames[depth - 1];
        let source = if outer.number != self.locals[local.index()].function {
            Capture::Upvalue(self.capture(local, depth - 1))
        } else if outer.defining == Some(local) {
            Capture::Itself
        } else {
            Capture::Register(self.registers[local.index()])
        };
        let frame = &mut self.frames[depth];
        frame.captured.push(local);
        frame.proto.captures.push(source);
        frame.captured.len() as u8 - 1
    }

    // Code.

    pub(super) fn emit(&mut self, op: Op) -> Outcome<usize> {
        self.meter.step()?;
        let frame = self.frame();
        frame.proto.code.push(op);
        let line = frame.line;
        frame.proto.lines.push(line);
        let at = frame.proto.code.len() - 1;
        if at > INSTRUCTIONS_MAX {
            return Err(self.error("code size overflow"));
        }
        Ok(at)
    }

    pub(super) fn here(&mut self) -> usize {
        self.frame().proto.code.len()
    }

    /// Makes the jump at `at` lead to `to`.
    pub(super) fn patch(&mut self, at: usize, to: usize) {
        let target = to as u32;
        match &mut self.frame().proto.code[at] {
            Op::Jump { to }
            | Op::Loop { to }
            | Op::JumpIf { to, .. }
            | Op::JumpIfNot { to, .. }
            | Op::Eq { to, .. }
            | Op::Lt { to, .. }
            | Op::Le { to, .. }
            | Op::EqK { to, .. }
            | Op::NotEqK { to, .. }
            | Op::LtK { to, .. }
            | Op::NotLtK { to, .. }
            | Op::LeK { to, .. }
            | Op::NotLeK { to, .. }
            | Op::GtK { to, .. }
            | Op::NotGtK { to, .. }
            | Op::GeK { to, .. }
            | Op::NotGeK { to, .. }
            | Op::ForPrepare { to, .. }
            | Op::ForLoop { to, .. }
            | Op::ForNext { to, .. } => *to = target,
            other => unreachable!("{other:?} does not jump"),
        }
    }

    pub(super) fn patch_all(&mut self, jumps: Vec<usize>) {
        let here = self.here();
        for jump in jumps {
            self.patch(jump, here);
        }
    }

    pub(super) fn constant(&mut self, value: Constant) -> Outcome<u32> {
        let Frame { proto, constants, .. } = self.frame();
        let index = proto.constants.len();
        if index <= CONSTANTS_COMPARED_MAX {
            let known = proto.constants.iter().position(|known| *known == value);
            if let Some(known) = known {
                return Ok(known as u32);
            }
        } else {
            if constants.is_empty() {
                let keys = proto.constants.iter().map(ConstantKey::of);
                constants.extend(keys.zip(0..));
            }
            match constants.entry(ConstantKey::of(&value)) {
                Entry::Occupied(known) => return Ok(*known.get()),
                Entry::Vacant(vacant) => vacant.insert(index as u32),
            };
        }
        if index >= CONSTANTS_MAX {
            return Err(self.error("constant table overflow"));
        }
        proto.constants.push(value);
        Ok(index as u32)
    }

    pub(super) fn string_constant(&mut self, text: &[u8]) -> Outcome<u32> {
        let constants = &self.frame().proto.constants;
        if constants.len() <= CONSTANTS_COMPARED_MAX {
            let is_same = |known: &Constant| matches!(known, Constant::Str(it) if **it == *text);
            if let Some(known) = constants.iter().position(is_same) {
                return Ok(known as u32);
            }
        }
        self.constant(Constant::Str(text.into()))
    }

    // Names for messages.

    /// Notes how the source named an operand of the next instruction.
    pub(super) fn name_operand(&mut self, operand: u8, expr: &Expr) {
        if let Some((kind, name)) = self.describe(expr) {
            self.name_as(operand, kind, name);
        }
    }

    pub(super) fn name_as(&mut self, operand: u8, kind: NameKind, name: Spelled) {
        let pc = self.here() as u32;
        let names = &mut self.frame().proto.names;
        // A script says `redis` and `KEYS` often.
        let is_same = |known: &&Named| *known.name == *name.bytes();
        let known = names.iter().rev().take(NAMES_COMPARED_MAX).find(is_same);
        let name = known.map_or_else(|| name.to_shared(), |known| known.name.clone());
        names.push(Named { pc, operand, kind, name });
    }

    fn describe<'e>(&mut self, expr: &'e Expr) -> Option<(NameKind, Spelled<'e>)>
    where
        't: 'e,
    {
        match expr {
            Expr::Local { id, .. } => {
                let local = &self.locals[id.index()];
                let is_own = local.function == self.frame().number;
                let kind = if is_own { NameKind::Local } else { NameKind::Upvalue };
                Some((kind, Spelled::InTree(&local.name)))
            }
            Expr::Global { name, .. } => Some((NameKind::Global, Spelled::InTree(name))),
            Expr::Index(index) => match &index.key {
                Expr::Str(name) => Some((NameKind::Field, Spelled::InTree(name))),
                _ => Some((NameKind::Field, Spelled::Fixed(b"?"))),
            },
            Expr::Paren(inner) => self.describe(inner),
            // A side that is decided in the source leaves no trace in the code.
            Expr::Or(pair) if matches!(pair.0, Expr::Nil | Expr::False) => self.describe(&pair.1),
            Expr::And(pair) if matches!(pair.0, Expr::True | Expr::Number(_) | Expr::Str(_)) => {
                self.describe(&pair.1)
            }
            _ => None,
        }
    }
}
