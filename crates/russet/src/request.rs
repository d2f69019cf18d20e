//! A command as it is sent: its arguments, and where its first key stands.

use crate::key::Key;
use russet_base::num::{write_i64, write_u64};

/// What can be an argument.
pub trait ToArg {
    /// Adds it to a request, as one argument.
    fn add_to(&self, request: &mut Request);
}

/// Bytes before each argument that give its length.
const HEAD_BYTES: usize = size_of::<usize>();

/// One command, for what no workflow does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::key::Family;
/// use russet::{Kit, Reply, Request};
///
/// let kit = Kit::embedded(Default::default())?;
/// let keys = kit.keys(Family { purpose: "notes", version: 1 }, "user-1")?;
/// let append = Request::new("RPUSH").key(&keys.key("list")).arg("milk").arg("bread");
/// assert_eq!(kit.call(&append).await?, Reply::Int(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Each argument behind its length: one buffer for all.
    bytes: Vec<u8>,
    count: usize,
    /// Which argument is the first key.
    key_index: Option<usize>,
}

impl Request {
    /// A command without arguments yet.
    pub fn new(name: &str) -> Self {
        Request::default().arg(name)
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        arg.add_to(&mut self);
        self
    }

    /// Adds a key. The first one decides which node of a cluster gets the command.
    pub fn key(mut self, key: &Key) -> Self {
        self.push_key(key);
        self
    }

    pub(crate) fn push_key(&mut self, key: &Key) {
        self.key_index.get_or_insert(self.count);
        self.push(key.as_bytes());
    }

    #[inline]
    pub(crate) fn push(&mut self, arg: &[u8]) {
        self.bytes.reserve(HEAD_BYTES + arg.len());
        self.bytes.extend_from_slice(&arg.len().to_ne_bytes());
        self.bytes.extend_from_slice(arg);
        self.count += 1;
    }

    /// Adds what is written as an argument.
    #[inline]
    fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD_BYTES]);
        write(&mut self.bytes);
        let len = self.bytes.len() - start - HEAD_BYTES;
        self.bytes[start..start + HEAD_BYTES].copy_from_slice(&len.to_ne_bytes());
        self.count += 1;
    }

    /// With room for so many bytes and arguments.
    pub(crate) fn with_room(bytes: usize, args: usize) -> Self {
        let bytes = Vec::with_capacity(bytes + args * HEAD_BYTES);
        Request { bytes, count: 0, key_index: None }
    }

    /// What all its arguments take up in another request.
    pub(crate) fn bytes_total(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn append(&mut self, other: &Request) {
        if let (None, Some(index)) = (self.key_index, other.key_index) {
            self.key_index = Some(self.count + index);
        }
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
    }

    /// The cluster slot of its first key.
    pub fn slot(&self) -> Option<u16> {
        self.key_index.and_then(|index| self.args().nth(index)).map(russet_base::slot::slot)
    }

    /// Its name and its arguments.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        RequestArgs { bytes: &self.bytes, left: self.count }
    }

    /// How many arguments it has; see [`Request::args`].
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has not even a name.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[derive(Clone)]
struct RequestArgs<'r> {
    bytes: &'r [u8],
    left: usize,
}

impl<'r> Iterator for RequestArgs<'r> {
    type Item = &'r [u8];

    #[inline]
    fn next(&mut self) -> Option<&'r [u8]> {
        let (head, rest) = self.bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (arg, rest) = rest.split_at_checked(usize::from_ne_bytes(*head))?;
        (self.bytes, self.left) = (rest, self.left - 1);
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RequestArgs<'_> {}

impl ToArg for str {
    fn add_to(&self, request: &mut Request) {
        request.push(self.as_bytes());
    }
}

impl ToArg for String {
    fn add_to(&self, request: &mut Request) {
        request.push(self.as_bytes());
    }
}

impl ToArg for [u8] {
    fn add_to(&self, request: &mut Request) {
        request.push(self);
    }
}

impl<const N: usize> ToArg for [u8; N] {
    fn add_to(&self, request: &mut Request) {
        request.push(self);
    }
}

impl ToArg for Vec<u8> {
    fn add_to(&self, request: &mut Request) {
        request.push(self);
    }
}

/// As 1 or 0.
impl ToArg for bool {
    fn add_to(&self, request: &mut Request) {
        request.push(if *self { b"1" } else { b"0" });
    }
}

/// In whole milliseconds, rounded up: a short time is never none at all.
impl ToArg for std::time::Duration {
    fn add_to(&self, request: &mut Request) {
        crate::time::millis(*self).add_to(request);
    }
}

impl<T: ToArg + ?Sized> ToArg for &T {
    fn add_to(&self, request: &mut Request) {
        (**self).add_to(request);
    }
}

macro_rules! numbers {
    ($write:ident as $wide:ty: $($type:ty)*) => {$(
        impl ToArg for $type {
            fn add_to(&self, request: &mut Request) {
                request.push_with(|bytes| $write(bytes, *self as $wide));
            }
        }
    )*};
}

numbers!(write_i64 as i64: i32 i64);
numbers!(write_u64 as u64: u16 u32 u64 usize);

impl ToArg for f64 {
    fn add_to(&self, request: &mut Request) {
        request.push(self.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn arguments_come_out_as_they_went_in() {
        let request = Request::new("SET").arg("").arg(-5).arg(vec![0, 255]).arg(true);
        let args: Vec<&[u8]> = request.args().collect();
        assert_eq!(args, [b"SET".as_slice(), b"", b"-5", &[0, 255], b"1"]);
        assert_eq!((request.len(), request.args().len()), (5, 5));
        let time = Request::default().arg(Duration::from_micros(1));
        assert_eq!(time.args().next(), Some(b"1".as_slice()));
    }
}
