//! Fields of records: their names, their values as text, and what can be wrong with them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// What is known of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// In the store.
    pub name: &'static str,
    /// Names that it had in older schemas.
    pub was: &'static [&'static str],
    /// Written under its old names too.
    pub writes_both: bool,
    /// How long it lives after it was written, if not as long as the record.
    pub ttl_ms: Option<u64>,
}

/// A field of a record and its type: `Profile::LOGIN_COUNT`.
pub struct Field<R, T> {
    info: FieldInfo,
    of: PhantomData<fn() -> (R, T)>,
}

impl<R, T> Field<R, T> {
    #[doc(hidden)]
    pub const fn new(info: FieldInfo) -> Self {
        Field { info, of: PhantomData }
    }

    /// How it is stored.
    pub const fn info(&self) -> FieldInfo {
        self.info
    }
}

impl<R, T> Clone for Field<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T> Copy for Field<R, T> {}

impl<R, T> fmt::Debug for Field<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.info.name)
    }
}

/// Why a record can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is needed and not there.
    Missing,
    /// It is not of its type.
    Unreadable,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Missing => write!(f, "the field {} is missing", self.field),
            Reason::Unreadable => write!(f, "the field {} is not of its type", self.field),
        }
    }
}

impl std::error::Error for Fault {}

/// What can be the value of a field. A missing field is `None` of an option, and nothing else.
pub trait FieldValue: Sized {
    /// None if the field is not to be there.
    fn to_field(&self) -> Option<Vec<u8>>;

    /// From what is stored, or None if the field is not there.
    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason>;
}

/// What [`Objects::increment`](super::Objects::increment) can add to.
pub trait Number: FieldValue {
    /// The least that the type holds, and a step counts exactly.
    const LEAST: i64;
    /// The most.
    const MOST: i64;
}

impl FieldValue for String {
    fn to_field(&self) -> Option<Vec<u8>> {
        Some(self.as_bytes().to_vec())
    }

    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
        let text = std::str::from_utf8(value.ok_or(Reason::Missing)?);
        text.map(str::to_owned).map_err(|_bytes| Reason::Unreadable)
    }
}

impl FieldValue for Vec<u8> {
    fn to_field(&self) -> Option<Vec<u8>> {
        Some(self.clone())
    }

    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
        value.map(<[u8]>::to_vec).ok_or(Reason::Missing)
    }
}

/// As 1 or 0.
impl FieldValue for bool {
    fn to_field(&self) -> Option<Vec<u8>> {
        Some(if *self { b"1" } else { b"0" }.to_vec())
    }

    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
        match value.ok_or(Reason::Missing)? {
            b"1" => Ok(true),
            b"0" => Ok(false),
            _ => Err(Reason::Unreadable),
        }
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    fn to_field(&self) -> Option<Vec<u8>> {
        self.as_ref().and_then(T::to_field)
    }

    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
        value.map(|value| T::from_field(Some(value))).transpose()
    }
}

/// Whole numbers within 53 bits are exact in every language that calls the steps.
const EXACT_MAX: i64 = (1 << 53) - 1;

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl FieldValue for $type {
            fn to_field(&self) -> Option<Vec<u8>> {
                Some(self.to_string().into_bytes())
            }

            fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
                let text = std::str::from_utf8(value.ok_or(Reason::Missing)?).ok();
                text.and_then(|text| text.parse().ok()).ok_or(Reason::Unreadable)
            }
        }

        impl Number for $type {
            const LEAST: i64 = if <$type>::MIN == 0 {
                0
            } else if <$type>::BITS < 54 {
                <$type>::MIN as i64
            } else {
                -EXACT_MAX
            };
            const MOST: i64 = if <$type>::BITS < 53 { <$type>::MAX as i64 } else { EXACT_MAX };
        }
    )*};
}

numbers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A value with structure, as JSON text. For small ones: it is read and written whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + DeserializeOwned> FieldValue for Json<T> {
    fn to_field(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&self.0).ok()
    }

    fn from_field(value: Option<&[u8]>) -> Result<Self, Reason> {
        let value = serde_json::from_slice(value.ok_or(Reason::Missing)?);
        value.map(Json).map_err(|_error| Reason::Unreadable)
    }
}

/// The fields of a record as they are stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RawFields {
    /// None for those that are to be removed.
    values: BTreeMap<&'static str, Option<Vec<u8>>>,
}

/// Says nothing of its content.
impl fmt::Debug for RawFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl RawFields {
    /// A field as it is stored.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.values.get(name)?.as_deref()
    }

    /// Sets a field as it is stored.
    pub fn set(&mut self, name: &'static str, value: impl Into<Vec<u8>>) {
        self.values.insert(name, Some(value.into()));
    }

    /// Takes a field out, if it is there.
    pub fn remove(&mut self, name: &'static str) -> Option<Vec<u8>> {
        self.values.remove(name).flatten()
    }

    /// Adds a field as it is to be stored, its old names included.
    pub fn put<R, T: FieldValue>(&mut self, field: &Field<R, T>, value: &T) {
        let (info, value) = (field.info(), value.to_field());
        for old in info.was {
            self.values.insert(old, value.clone().filter(|_value| info.writes_both));
        }
        self.values.insert(info.name, value);
    }

    /// A field by its name or an old one.
    pub fn read<R, T: FieldValue>(&self, field: &Field<R, T>) -> Result<T, Fault> {
        let info = field.info();
        T::from_field(self.find(&info)).map_err(|reason| Fault { field: info.name, reason })
    }

    /// As [`RawFields::read`], but a field that is not there has its type's default.
    pub fn read_or_default<R, T>(&self, field: &Field<R, T>) -> Result<T, Fault>
    where
        T: FieldValue + Default,
    {
        match self.find(&field.info()) {
            Some(_) => self.read(field),
            None => Ok(T::default()),
        }
    }

    fn find(&self, info: &FieldInfo) -> Option<&[u8]> {
        self.get(info.name).or_else(|| info.was.iter().find_map(|old| self.get(old)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, Option<&[u8]>)> {
        self.values.iter().map(|(name, value)| (*name, value.as_deref()))
    }

    /// Of all names and values.
    pub(super) fn bytes(&self) -> usize {
        let size = |(name, value): (&str, Option<&[u8]>)| name.len() + value.map_or(0, <[u8]>::len);
        self.iter().map(size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: FieldValue + PartialEq + fmt::Debug>(value: T) {
        let stored = value.to_field();
        assert_eq!(T::from_field(stored.as_deref()), Ok(value));
    }

    #[test]
    fn values_come_back_as_they_were() {
        round(String::from("text"));
        round(String::new());
        round(vec![0_u8, 255]);
        round(true);
        round(i64::MIN);
        round(u64::MAX);
        round(Some(7_u8));
        round(None::<String>);
        round(Json(vec![1, 2]));
    }

    #[test]
    fn what_is_not_of_the_type_is_said() {
        assert_eq!(u8::from_field(Some(b"256")), Err(Reason::Unreadable));
        assert_eq!(u8::from_field(None), Err(Reason::Missing));
        assert_eq!(bool::from_field(Some(b"yes")), Err(Reason::Unreadable));
        assert_eq!(Option::<u8>::from_field(Some(b"x")), Err(Reason::Unreadable));
        assert_eq!(<u8 as Number>::MOST, 255);
        assert_eq!(<i64 as Number>::LEAST, -EXACT_MAX);
    }
}
