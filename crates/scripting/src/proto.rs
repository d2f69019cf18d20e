//! Compiled code: what the compiler makes and the machine runs. It belongs to no state: one chunk
//! is compiled once and loaded into every state that runs it.

use crate::hashing::Keyed;
use std::collections::HashSet;
use std::sync::Arc;

/// A register of the running function.
pub(crate) type Reg = u8;

/// One instruction. Jumps name their target; `k` is a constant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Op {
    Move {
        a: Reg,
        b: Reg,
    },
    LoadK {
        a: Reg,
        k: u32,
    },
    LoadNil {
        a: Reg,
        last: Reg,
    },
    LoadBool {
        a: Reg,
        value: bool,
    },
    /// A variable of an outer function that is never assigned again.
    GetUpvalue {
        a: Reg,
        up: u8,
    },
    GetUpvalueCell {
        a: Reg,
        up: u8,
    },
    SetUpvalueCell {
        a: Reg,
        up: u8,
    },
    /// A variable of this function that closures share.
    GetCell {
        a: Reg,
        b: Reg,
    },
    SetCell {
        a: Reg,
        b: Reg,
    },
    /// Puts the register's value into a new cell.
    NewCell {
        a: Reg,
    },
    GetGlobal {
        a: Reg,
        k: u32,
    },
    SetGlobal {
        a: Reg,
        k: u32,
    },
    GetField {
        a: Reg,
        b: Reg,
        k: u16,
    },
    SetField {
        a: Reg,
        k: u16,
        c: Reg,
    },
    SetFieldK {
        a: Reg,
        k: u16,
        v: u16,
    },
    GetIndex {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    SetIndex {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    GetInt {
        a: Reg,
        b: Reg,
        n: u16,
    },
    Method {
        a: Reg,
        b: Reg,
        k: u16,
    },
    NewTable {
        a: Reg,
        array_len: u16,
        hash_len: u16,
    },
    /// Stores registers a+1.. as elements from `first` on; `count` 0: up to the top.
    SetList {
        a: Reg,
        count: u8,
        first: u32,
    },
    Add {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Sub {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Mul {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Div {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Mod {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Pow {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    AddK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    SubK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    MulK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    DivK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    ModK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    PowK {
        a: Reg,
        b: Reg,
        k: u16,
    },
    Neg {
        a: Reg,
        b: Reg,
    },
    Not {
        a: Reg,
        b: Reg,
    },
    Len {
        a: Reg,
        b: Reg,
    },
    /// Joins registers b to c.
    Concat {
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Jump {
        to: u32,
    },
    /// A jump backwards: counts as a step.
    Loop {
        to: u32,
    },
    JumpIf {
        a: Reg,
        to: u32,
    },
    JumpIfNot {
        a: Reg,
        to: u32,
    },
    /// Jumps if `(R[a] == R[b]) == wanted`.
    Eq {
        a: Reg,
        b: Reg,
        wanted: bool,
        to: u32,
    },
    Lt {
        a: Reg,
        b: Reg,
        wanted: bool,
        to: u32,
    },
    Le {
        a: Reg,
        b: Reg,
        wanted: bool,
        to: u32,
    },
    EqK {
        a: Reg,
        k: u16,
        to: u32,
    },
    NotEqK {
        a: Reg,
        k: u16,
        to: u32,
    },
    LtK {
        a: Reg,
        k: u16,
        to: u32,
    },
    NotLtK {
        a: Reg,
        k: u16,
        to: u32,
    },
    LeK {
        a: Reg,
        k: u16,
        to: u32,
    },
    NotLeK {
        a: Reg,
        k: u16,
        to: u32,
    },
    /// `K < R[a]`
    GtK {
        a: Reg,
        k: u16,
        to: u32,
    },
    NotGtK {
        a: Reg,
        k: u16,
        to: u32,
    },
    GeK {
        a: Reg,
        k: u16,
        to: u32,
    },
    NotGeK {
        a: Reg,
        k: u16,
        to: u32,
    },
    /// `args` and `results` are counts plus 1; 0: up to the top.
    Call {
        a: Reg,
        args: u8,
        results: u8,
    },
    TailCall {
        a: Reg,
        args: u8,
    },
    /// `count` plus 1 values from a on; 0: up to the top.
    Return {
        a: Reg,
        count: u8,
    },
    ForPrepare {
        a: Reg,
        to: u32,
    },
    /// A loop whose step is 1.
    ForLoopOne {
        a: Reg,
        to: u32,
    },
    ForLoop {
        a: Reg,
        to: u32,
    },
    /// Calls the iterator in a; its `count` results go to a+3 and on.
    ForCall {
        a: Reg,
        count: u8,
    },
    /// Goes on with the loop unless the first result is nil.
    ForNext {
        a: Reg,
        to: u32,
    },
    Closure {
        a: Reg,
        p: u16,
    },
    /// The extra arguments as a table with their count in `n`.
    ArgTable {
        a: Reg,
    },
    /// `count` plus 1 of the extra arguments to a and on; 0: all.
    Vararg {
        a: Reg,
        count: u8,
    },
}

/// A value that stands in the source.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Constant {
    Nil,
    Bool(bool),
    Number(f64),
    Str(Box<[u8]>),
}

/// Where a closure finds a variable of an outer function when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capture {
    /// A register of the function that makes it.
    Register(Reg),
    /// One of that function's own captures.
    Upvalue(u8),
    /// The closure itself: a local function that calls itself.
    Itself,
}

/// How the source named a value, for messages about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NameKind {
    Global,
    Local,
    Upvalue,
    Field,
    Method,
}

impl NameKind {
    pub(crate) fn text(self) -> &'static str {
        match self {
            NameKind::Global => "global",
            NameKind::Local => "local",
            NameKind::Upvalue => "upvalue",
            NameKind::Field => "field",
            NameKind::Method => "method",
        }
    }
}

/// The operand under which a loop names its iterator: only messages about arguments show it.
pub(crate) const GENERATOR_OPERAND: u8 = u8::MAX;

/// The name of one operand of one instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) pc: u32,
    pub(crate) operand: u8,
    pub(crate) kind: NameKind,
    pub(crate) name: Arc<[u8]>,
}

/// A compiled function.
#[derive(Debug, Default)]
pub struct Proto {
    /// Which function of its chunk it is; 0 is the chunk itself.
    pub(crate) number: u32,
    pub(crate) code: Vec<Op>,
    /// The line of each instruction.
    pub(crate) lines: Vec<u32>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) children: Vec<Arc<Proto>>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) params: u8,
    pub(crate) is_vararg: bool,
    pub(crate) registers: u8,
    /// In order of pc.
    pub(crate) names: Vec<Named>,
    /// As messages show it: `user_script`, `[string "..."]`.
    pub(crate) source: Arc<[u8]>,
    /// As it was given to the compiler: `@user_script`.
    pub(crate) chunk_name: Arc<[u8]>,
}

impl Proto {
    pub(crate) fn line(&self, pc: usize) -> u32 {
        self.lines.get(pc).or(self.lines.last()).copied().unwrap_or(0)
    }

    pub(crate) fn name_of(&self, pc: usize, operand: u8) -> Option<&Named> {
        let start = self.names.partition_point(|named| (named.pc as usize) < pc);
        let here = self.names[start..].iter().take_while(|named| named.pc as usize == pc);
        here.into_iter().find(|named| named.operand == operand)
    }

    /// Rough size without inner functions, for the account of what scripts hold.
    pub(crate) fn own_bytes(&self) -> usize {
        let strings = self.constants.iter().map(|constant| match constant {
            Constant::Str(bytes) => bytes.len(),
            _ => 0,
        });
        self.code.len() * (size_of::<Op>() + size_of::<u32>())
            + self.constants.len() * size_of::<Constant>()
            + self.names.len() * size_of::<Named>()
            + size_of::<Proto>()
            + strings.sum::<usize>()
    }

    /// Gives back the room that was asked for in advance.
    pub(crate) fn shrink(&mut self) {
        shrink(&mut self.code);
        shrink(&mut self.lines);
        shrink(&mut self.constants);
        shrink(&mut self.children);
        shrink(&mut self.captures);
        shrink(&mut self.names);
    }

    fn allocations(&self, names: &mut HashSet<*const u8, Keyed>, visit: &mut dyn FnMut(usize)) {
        visit(SHARED_BYTES + size_of::<Proto>());
        visit(self.code.capacity() * size_of::<Op>());
        visit(self.lines.capacity() * size_of::<u32>());
        visit(self.constants.capacity() * size_of::<Constant>());
        visit(self.children.capacity() * size_of::<Arc<Proto>>());
        visit(self.captures.capacity() * size_of::<Capture>());
        visit(self.names.capacity() * size_of::<Named>());
        for constant in &self.constants {
            if let Constant::Str(bytes) = constant {
                visit(bytes.len());
            }
        }
        names.reserve(self.names.len() + 2);
        let names_of = self.names.iter().map(|named| &named.name);
        for name in names_of.chain([&self.source, &self.chunk_name]) {
            if names.insert(name.as_ptr()) {
                visit(SHARED_BYTES + name.len());
            }
        }
        self.children.iter().for_each(|child| child.allocations(names, visit));
    }
}

/// Moves a list to where it has room for nothing else: an allocator that is asked to shrink a block
/// looks for a way to keep it, which takes longer.
fn shrink<T>(list: &mut Vec<T>) {
    if list.capacity() > list.len() {
        let mut exact = Vec::with_capacity(list.len());
        exact.append(list);
        *list = exact;
    }
}

/// The counts of an `Arc`.
const SHARED_BYTES: usize = 2 * size_of::<usize>();

/// A compiled source text.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub(crate) main: Arc<Proto>,
    pub(crate) keys: Arc<crate::keys::KeysUse>,
}

impl Chunk {
    /// How the chunk reaches keys.
    pub fn keys_use(&self) -> &crate::keys::KeysUse {
        &self.keys
    }

    /// The chunk without what is known of its keys, for who has asked and needs it no longer.
    pub fn without_keys_use(self) -> Chunk {
        Chunk { keys: Arc::default(), ..self }
    }

    /// Shows the size of every allocation of the code.
    pub fn allocations(&self, mut visit: impl FnMut(usize)) {
        visit(SHARED_BYTES + size_of::<crate::keys::KeysUse>());
        self.main.allocations(&mut HashSet::default(), &mut visit);
    }
}

#[cfg(test)]
mod tests {
    use super::Op;

    #[test]
    fn an_instruction_is_one_word() {
        assert_eq!(size_of::<Op>(), 8);
    }
}
