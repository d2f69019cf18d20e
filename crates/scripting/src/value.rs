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

impl Value {
    pub fn is_nil(self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Everything but nil and false.
    pub fn is_true(self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    pub fn type_name(self) -> &'static str {
        match self {
            Value::Nil | Value::Cell(_) => "nil",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Str(_) => "string",
            Value::Table(_) => "table",
            Value::Function(_) | Value::Native(_) => "function",
            Value::Thread(_) => "thread",
            Value::Light(_) => "userdata",
        }
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
