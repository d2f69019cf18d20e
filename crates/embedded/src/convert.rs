//! From replies to Rust types.

use russet_protocol::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// A reply that is of another type than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionError {
    /// What was asked for.
    pub wanted: &'static str,
    /// The kind of the reply that came.
    pub found: &'static str,
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the reply is {}, not {}", self.found, self.wanted)
    }
}

impl std::error::Error for ConversionError {}

/// What a reply can be made into.
///
/// Numbers are also read from text, text is made of numbers. `bool` takes 1 and 0, OK, and null,
/// which is false. Maps take maps, lists of pairs, and flat lists. A list takes null as empty;
/// `Option` tells it apart.
pub trait FromValue: Sized {
    /// Fails if the reply is of another kind, or does not fit.
    fn from_value(value: Value) -> Result<Self, ConversionError>;

    /// A list of these from text: `Vec<u8>` is one, no other is.
    #[doc(hidden)]
    fn list_from_text(_text: Vec<u8>) -> Option<Vec<Self>> {
        None
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Status(_) => "a status",
        Value::Error(_) => "an error",
        Value::Integer(_) => "an integer",
        Value::Bulk(_) => "a string",
        Value::Null | Value::NullArray => "null",
        Value::Array(_) => "an array",
        Value::Map(_) => "a map",
        Value::Set(_) => "a set",
        Value::Push(_) => "a push",
        Value::Double(_) => "a double",
        Value::Boolean(_) => "a boolean",
        Value::Verbatim { .. } => "verbatim text",
        Value::BigNumber(_) => "a big number",
        Value::Attribute { .. } => "an attribute",
    }
}

fn refuse<T>(wanted: &'static str, value: &Value) -> Result<T, ConversionError> {
    Err(ConversionError { wanted, found: kind(value) })
}

/// The text of a value that is, or can be shown as, text.
fn into_text(value: Value) -> Result<Vec<u8>, Value> {
    match value {
        Value::Bulk(text)
        | Value::Status(text)
        | Value::BigNumber(text)
        | Value::Verbatim { text, .. } => Ok(text),
        Value::Integer(number) => Ok(number.to_string().into_bytes()),
        Value::Double(number) => Ok(number.to_string().into_bytes()),
        Value::Attribute { value, .. } => into_text(*value),
        other => Err(other),
    }
}

/// The elements of a value that is a list of them, pairs as lists of two.
fn into_elements(value: Value) -> Result<Vec<Value>, Value> {
    match value {
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => Ok(elements),
        Value::Map(pairs) => {
            Ok(pairs.into_iter().map(|(key, value)| Value::Array(vec![key, value])).collect())
        }
        Value::Null | Value::NullArray => Ok(Vec::new()),
        Value::Attribute { value, .. } => into_elements(*value),
        other => Err(other),
    }
}

/// The pairs of a map, of a list of pairs, or of a flat list.
fn into_pairs(value: Value) -> Result<Vec<(Value, Value)>, ConversionError> {
    const WANTED: &str = "a map";
    match value {
        Value::Map(pairs) => Ok(pairs),
        Value::Attribute { value, .. } => into_pairs(*value),
        other => {
            let found = kind(&other);
            let fault = ConversionError { wanted: WANTED, found };
            let elements = into_elements(other).map_err(|_other| fault.clone())?;
            let are_pairs =
                elements.iter().all(|one| one.as_elements().is_some_and(|it| it.len() == 2));
            let flat: Vec<Value> = match are_pairs {
                true => {
                    elements.into_iter().filter_map(|it| into_elements(it).ok()).flatten().collect()
                }
                false => elements,
            };
            if !flat.len().is_multiple_of(2) {
                return Err(fault);
            }
            let mut flat = flat.into_iter();
            Ok(std::iter::from_fn(|| Some((flat.next()?, flat.next()?))).collect())
        }
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        Ok(value)
    }
}

/// Any reply will do.
impl FromValue for () {
    fn from_value(_value: Value) -> Result<Self, ConversionError> {
        Ok(())
    }
}

fn integer(value: Value) -> Result<i128, ConversionError> {
    const WANTED: &str = "an integer";
    let found = kind(&value);
    match value {
        Value::Integer(number) => Ok(i128::from(number)),
        Value::Boolean(is_true) => Ok(i128::from(is_true)),
        other => {
            let text = into_text(other).ok().and_then(|text| String::from_utf8(text).ok());
            let number = text.and_then(|text| text.parse().ok());
            number.ok_or(ConversionError { wanted: WANTED, found })
        }
    }
}

macro_rules! integers {
    ($($type:ty: $wanted:literal),*) => {$(
        impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self, ConversionError> {
                let fault = ConversionError { wanted: $wanted, found: kind(&value) };
                <$type>::try_from(integer(value)?).map_err(|_beyond| fault)
            }
        }
    )*};
}

integers!(
    i8: "an i8", i16: "an i16", i32: "an i32", i64: "an i64", i128: "an i128", isize: "an isize",
    u16: "a u16", u32: "a u32", u64: "a u64", u128: "a u128", usize: "a usize"
);

impl FromValue for u8 {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let fault = ConversionError { wanted: "a u8", found: kind(&value) };
        u8::try_from(integer(value)?).map_err(|_beyond| fault)
    }

    fn list_from_text(text: Vec<u8>) -> Option<Vec<u8>> {
        Some(text)
    }
}

impl FromValue for f64 {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let found = kind(&value);
        match value {
            Value::Double(number) => Ok(number),
            Value::Integer(number) => Ok(number as f64),
            other => {
                let text = into_text(other).ok().and_then(|text| String::from_utf8(text).ok());
                let number = text.and_then(|text| text.parse().ok());
                number.ok_or(ConversionError { wanted: "a number", found })
            }
        }
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        match &value {
            Value::Boolean(is_true) => Ok(*is_true),
            Value::Integer(0) | Value::Null | Value::NullArray => Ok(false),
            Value::Integer(1) => Ok(true),
            Value::Status(text) if text == b"OK" => Ok(true),
            Value::Bulk(text) if text == b"1" => Ok(true),
            Value::Bulk(text) if text == b"0" => Ok(false),
            other => refuse("a boolean", other),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let found = kind(&value);
        let text = into_text(value).or_else(|other| refuse("a string", &other))?;
        String::from_utf8(text).map_err(|_bytes| ConversionError { wanted: "UTF-8 text", found })
    }
}

/// Null is none.
impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        if value.is_null() { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let value = match value {
            Value::Bulk(text) => {
                let fault = ConversionError { wanted: "a list", found: "a string" };
                return T::list_from_text(text).ok_or(fault);
            }
            other => other,
        };
        match into_elements(value) {
            Ok(elements) => elements.into_iter().map(T::from_value).collect(),
            Err(other) => {
                let found = kind(&other);
                let list = into_text(other).ok().and_then(T::list_from_text);
                list.ok_or(ConversionError { wanted: "a list", found })
            }
        }
    }
}

impl<T: FromValue + Eq + Hash, S: BuildHasher + Default> FromValue for HashSet<T, S> {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let elements = into_elements(value).or_else(|other| refuse("a set", &other))?;
        elements.into_iter().map(T::from_value).collect()
    }
}

impl<T: FromValue + Ord> FromValue for BTreeSet<T> {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let elements = into_elements(value).or_else(|other| refuse("a set", &other))?;
        elements.into_iter().map(T::from_value).collect()
    }
}

impl<K, V, S> FromValue for HashMap<K, V, S>
where
    K: FromValue + Eq + Hash,
    V: FromValue,
    S: BuildHasher + Default,
{
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let pairs = into_pairs(value)?.into_iter();
        pairs.map(|(key, value)| Ok((K::from_value(key)?, V::from_value(value)?))).collect()
    }
}

impl<K: FromValue + Ord, V: FromValue> FromValue for BTreeMap<K, V> {
    fn from_value(value: Value) -> Result<Self, ConversionError> {
        let pairs = into_pairs(value)?.into_iter();
        pairs.map(|(key, value)| Ok((K::from_value(key)?, V::from_value(value)?))).collect()
    }
}

macro_rules! tuples {
    ($($wanted:literal: $($name:ident)+;)*) => {$(
        impl<$($name: FromValue),+> FromValue for ($($name,)+) {
            fn from_value(value: Value) -> Result<Self, ConversionError> {
                let fault = ConversionError { wanted: $wanted, found: kind(&value) };
                let elements = into_elements(value).map_err(|_other| fault.clone())?;
                let mut elements = elements.into_iter();
                let mut next = || elements.next().ok_or_else(|| fault.clone());
                let tuple = ($($name::from_value(next()?)?,)+);
                if elements.next().is_none() { Ok(tuple) } else { Err(fault) }
            }
        }
    )*};
}

tuples! {
    "a list of one": A;
    "a list of two": A B;
    "a list of three": A B C;
    "a list of four": A B C D;
    "a list of five": A B C D E;
    "a list of six": A B C D E F;
    "a list of seven": A B C D E F G;
    "a list of eight": A B C D E F G H;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from<T: FromValue>(value: Value) -> Result<T, String> {
        T::from_value(value).map_err(|fault| fault.to_string())
    }

    fn array(items: &[&str]) -> Value {
        Value::Array(items.iter().map(Value::bulk).collect())
    }

    #[test]
    fn numbers_come_from_numbers_and_text_within_their_range() {
        assert_eq!(from(Value::Integer(255)), Ok(255_u8));
        assert_eq!(
            from::<u8>(Value::Integer(256)),
            Err("the reply is an integer, not a u8".into())
        );
        assert_eq!(from(Value::bulk("-5")), Ok(-5_i64));
        assert_eq!(from(Value::bulk("1e3")), Ok(1000.0));
        assert_eq!(from(Value::Double(0.5)), Ok(0.5));
        assert_eq!(from::<i64>(Value::Null), Err("the reply is null, not an integer".into()));
        assert_eq!(from(Value::status("OK")), Ok(true));
        assert_eq!(from(Value::Null), Ok(false));
        from::<bool>(Value::Integer(2)).unwrap_err();
    }

    #[test]
    fn text_is_bytes_or_utf_8() {
        assert_eq!(from(Value::bulk("a")), Ok("a".to_owned()));
        assert_eq!(from(Value::bulk([255])), Ok(vec![255_u8]));
        assert_eq!(
            from::<String>(Value::bulk([255])).unwrap_err(),
            "the reply is a string, not UTF-8 text"
        );
        assert_eq!(from(Value::Integer(7)), Ok("7".to_owned()));
        from::<String>(array(&["a"])).unwrap_err();
        from::<Vec<String>>(Value::bulk("a")).unwrap_err();
    }

    #[test]
    fn null_is_none_or_nothing() {
        assert_eq!(from(Value::Null), Ok(None::<String>));
        assert_eq!(from(Value::bulk("")), Ok(Some(String::new())));
        assert_eq!(from(Value::NullArray), Ok(Vec::<String>::new()));
        let nested = Value::Array(vec![Value::Null, Value::bulk("x")]);
        assert_eq!(from(nested), Ok(vec![None, Some("x".to_owned())]));
    }

    #[test]
    fn maps_come_in_three_shapes() {
        let wanted = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        let pair = |key: &str, value| (Value::bulk(key), Value::Integer(value));
        assert_eq!(from(Value::Map(vec![pair("a", 1), pair("b", 2)])), Ok(wanted.clone()));
        assert_eq!(from(array(&["a", "1", "b", "2"])), Ok(wanted.clone()));
        let pairs = Value::Array(vec![array(&["a", "1"]), array(&["b", "2"])]);
        assert_eq!(from(pairs.clone()), Ok(wanted.clone()));
        assert_eq!(from(pairs), Ok(HashMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)])));
        from::<BTreeMap<String, String>>(array(&["a"])).unwrap_err();
        assert_eq!(
            from(array(&["x", "y", "x"])),
            Ok(BTreeSet::from(["x".to_owned(), "y".to_owned()]))
        );
    }

    #[test]
    fn tuples_have_as_many_members_as_the_list() {
        assert_eq!(from(array(&["a", "1"])), Ok(("a".to_owned(), 1)));
        from::<(String,)>(array(&["a", "1"])).unwrap_err();
        from::<(String, i64, i64)>(array(&["a", "1"])).unwrap_err();
        let pairs = Value::Map(vec![(Value::bulk("a"), Value::Double(0.5))]);
        assert_eq!(from(pairs), Ok(vec![("a".to_owned(), 0.5)]));
    }
}
