//! What a Lua variable holds: a small copyable value. Strings, tables and functions are handles
//! into a [`Heap`](crate::heap::Heap); a handle means nothing outside the state that gave it.

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub(crate) u32);

        impl $name {
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

handles! {
    /// A byte string.
    StrRef,
    /// A table.
    TableRef,
    /// A function written in Lua, with the variables it closed over.
    FuncRef,
    /// A function of ours or of the host's.
    NativeRef,
    /// A coroutine.
    ThreadRef,
    /// A local variable that closures share.
    CellRef,
    /// A compiled function in a state.
    ProtoRef,
}

/// Any Lua value.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value {
    #[default]
    Nil,
    Bool(bool),
    Number(f64),
    Str(StrRef),
    Table(TableRef),
    Function(FuncRef),
    Native(NativeRef),
    Thread(ThreadRef),
    /// A mark that scripts can only compare; `Light(0)` is `cjson.null`.
    Light(u32),
    /// Never seen by a script: stands in a register whose variable closures share.
    Cell(CellRef),
}

/// What `type` says.
pub(crate) const TYPE_NAMES: [&str; 8] =
    ["nil", "boolean", "number", "string", "table", "function", "thread", "userdata"];

impl Value {
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Everything but nil and false.
    pub fn is_true(self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    pub fn type_name(self) -> &'static str {
        TYPE_NAMES[self.type_index()]
    }

    /// The place of its type among [`TYPE_NAMES`].
    pub(crate) fn type_index(self) -> usize {
        match self {
            Value::Nil | Value::Cell(_) => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 2,
            Value::Str(_) => 3,
            Value::Table(_) => 4,
            Value::Function(_) | Value::Native(_) => 5,
            Value::Thread(_) => 6,
            Value::Light(_) => 7,
        }
    }
}

/// Whether two values that are not both strings are the same key or equal without metamethods.
pub(crate) fn same_handle(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number(a), Value::Number(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Table(a), Value::Table(b)) => a == b,
        (Value::Function(a), Value::Function(b)) => a == b,
        (Value::Native(a), Value::Native(b)) => a == b,
        (Value::Thread(a), Value::Thread(b)) => a == b,
        (Value::Light(a), Value::Light(b)) => a == b,
        _ => false,
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Number(value)
    }
}

impl From<StrRef> for Value {
    fn from(value: StrRef) -> Self {
        Value::Str(value)
    }
}

impl From<TableRef> for Value {
    fn from(value: TableRef) -> Self {
        Value::Table(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn a_value_is_two_words() {
        assert_eq!(size_of::<Value>(), 16);
    }
}
