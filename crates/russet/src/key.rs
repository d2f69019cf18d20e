//! Keys: what they are for, whose they are, and which of them share a slot.
//!
//! A key reads `app:purpose:v1:{scope}:part`. The scope, in braces, is the hash tag: all keys of
//! one scope lie in one slot, so that a step can use them together.

mod lint;
mod shards;

pub use lint::{SCOPE_BYTES_GOOD, Sensitive, Warning, lint};
pub use shards::Shards;

use crate::error::{Error, Result};
use crate::retry::RequestId;
use hmac::{Hmac, Mac};
use russet_base::num::write_u64;
use sha2::{Digest, Sha256};
use std::fmt;

/// How long the scope of a key may be, once escaped.
pub const SCOPE_BYTES_MAX: usize = 512;
/// Bytes of the HMAC that stands for a sensitive part: 128 bits.
const DIGEST_BYTES: usize = 16;
/// Room for what most keys begin with.
const PREFIX_ROOM: usize = 64;

/// What a group of keys is for. One constant per workflow; the version changes with the layout of
/// what is stored, so that two layouts can live side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Family {
    /// The second part of each key, as `limit`.
    pub purpose: &'static str,
    /// The third, as 1 for `v1`.
    pub version: u32,
}

/// Whose data it is: a tenant, a user, a name, or several of them. Keys of one scope share a slot.
///
/// ```
/// use russet::key::Scope;
///
/// let plain = Scope::from("user-1");
/// let within_tenant = Scope::from("acme").and("login").and_sensitive("ann@example.org");
/// # let _ = (plain, within_tenant);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    first: Part,
    rest: Vec<Part>,
    shard: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Open(Vec<u8>),
    Sensitive(Vec<u8>),
    Digest(Vec<u8>),
}

impl Scope {
    /// A part that must not be readable in the store: an address, a phone number, a token. The
    /// kit's secret is needed to make its HMAC, which stands for it.
    pub fn sensitive(part: impl AsRef<[u8]>) -> Self {
        Scope::of(Part::Sensitive(part.as_ref().to_vec()))
    }

    /// With another part behind it, which can be read in the store.
    pub fn and(mut self, part: impl AsRef<[u8]>) -> Self {
        self.rest.push(Part::Open(part.as_ref().to_vec()));
        self
    }

    /// With another part that must not be readable; see [`Scope::sensitive`].
    pub fn and_sensitive(mut self, part: impl AsRef<[u8]>) -> Self {
        self.rest.push(Part::Sensitive(part.as_ref().to_vec()));
        self
    }

    /// A part of any length that users or other programs chose, as the key of a request or a random
    /// token: its digest stands for it. It needs no secret, but with one it is an HMAC.
    pub fn and_digest(mut self, part: impl AsRef<[u8]>) -> Self {
        self.rest.push(Part::Digest(part.as_ref().to_vec()));
        self
    }

    /// The parts of another scope behind those of this one.
    pub fn join(mut self, inner: impl Into<Scope>) -> Self {
        let inner = inner.into();
        self.rest.push(inner.first);
        self.rest.extend(inner.rest);
        self.shard = inner.shard.or(self.shard);
        self
    }

    /// One of several scopes that this one is spread over, each in a slot of its own.
    pub fn shard(&self, index: u32) -> Self {
        Scope { shard: Some(index), ..self.clone() }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    fn of(first: Part) -> Self {
        Scope { first, rest: Vec::new(), shard: None }
    }

    /// As it stands between the braces.
    pub(crate) fn text(&self, secret: Option<&Secret>) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.append_to(&mut text, secret)?;
        Ok(text)
    }

    fn append_to(&self, text: &mut Vec<u8>, secret: Option<&Secret>) -> Result<()> {
        let start = text.len();
        self.first.append_to(text, secret)?;
        for part in &self.rest {
            text.push(b':');
            part.append_to(text, secret)?;
        }
        if let Some(index) = self.shard {
            text.push(b'#');
            write_u64(text, u64::from(index));
        }
        if text.len() - start > SCOPE_BYTES_MAX {
            return Err(Error::invalid(format!("a scope is over {SCOPE_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

impl Part {
    fn append_to(&self, text: &mut Vec<u8>, secret: Option<&Secret>) -> Result<()> {
        match self {
            Part::Open(bytes) => escape(bytes, text),
            Part::Sensitive(bytes) => {
                let secret = secret.ok_or_else(|| {
                    Error::invalid("a sensitive part of a key needs Builder::secret")
                })?;
                text.extend_from_slice(&secret.digest(bytes));
            }
            Part::Digest(bytes) => text.extend_from_slice(&digest(secret, bytes)),
        }
        Ok(())
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Scope {
    fn from(part: &T) -> Self {
        Scope::of(Part::Open(part.as_ref().to_vec()))
    }
}

impl From<String> for Scope {
    fn from(part: String) -> Self {
        Scope::from(&part)
    }
}

impl From<&Scope> for Scope {
    fn from(scope: &Scope) -> Self {
        scope.clone()
    }
}

/// Says nothing of its content.
impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({} parts)", 1 + self.rest.len())
    }
}

/// Letters, digits and a few signs stand for themselves; others, those with a meaning in a key
/// above all, become `%` and two hexadecimal digits. An empty part is a lone `%`.
fn escape(part: &[u8], text: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if part.is_empty() {
        text.push(b'%');
    }
    let is_plain = |byte: &u8| IS_PLAIN[usize::from(*byte)];
    if part.iter().all(is_plain) {
        return text.extend_from_slice(part);
    }
    for byte in part {
        if is_plain(byte) {
            text.push(*byte);
        } else {
            text.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// The bytes that stand for themselves in a key.
static IS_PLAIN: [bool; 256] = {
    let mut is_plain = [false; 256];
    let mut byte = 0;
    while byte < is_plain.len() {
        is_plain[byte] = (byte as u8).is_ascii_alphanumeric()
            || matches!(byte as u8, b'-' | b'_' | b'.' | b'/' | b'@' | b'+' | b'=' | b',');
        byte += 1;
    }
    is_plain
};

/// What sensitive parts are digested with.
#[derive(Clone)]
pub(crate) struct Secret(Hmac<Sha256>);

impl Secret {
    pub fn new(secret: &[u8]) -> Self {
        Secret(Hmac::new_from_slice(secret).expect("an HMAC takes keys of any length"))
    }

    fn digest(&self, part: &[u8]) -> Vec<u8> {
        let digest = self.0.clone().chain_update(part).finalize().into_bytes();
        hex(&digest[..DIGEST_BYTES])
    }
}

/// The HMAC of some bytes, or without a secret their SHA-256, cut to 128 bits, as text.
pub(crate) fn digest(secret: Option<&Secret>, bytes: &[u8]) -> Vec<u8> {
    match secret {
        Some(secret) => secret.digest(bytes),
        None => hex(&Sha256::digest(bytes)[..DIGEST_BYTES]),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![0; bytes.len() * 2];
    write_hex(bytes, &mut text);
    text
}

/// Two digits for each byte, into a text of that length.
pub(crate) fn write_hex(bytes: &[u8], text: &mut [u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// The keys of one family and scope. They share a slot.
#[derive(Clone)]
pub struct Keys {
    family: Family,
    /// Up to and with the colon behind the scope.
    prefix: Vec<u8>,
}

impl Keys {
    pub(crate) fn new(
        app: &str,
        family: Family,
        scope: &Scope,
        secret: Option<&Secret>,
    ) -> Result<Self> {
        let mut prefix = Vec::with_capacity(PREFIX_ROOM);
        if !app.is_empty() {
            escape(app.as_bytes(), &mut prefix);
            prefix.push(b':');
        }
        prefix.extend_from_slice(family.purpose.as_bytes());
        prefix.extend_from_slice(b":v");
        write_u64(&mut prefix, u64::from(family.version));
        prefix.extend_from_slice(b":{");
        scope.append_to(&mut prefix, secret)?;
        prefix.extend_from_slice(b"}:");
        Ok(Keys { family, prefix })
    }

    /// What all keys of the family begin with whose scope differs in its last part only.
    pub(crate) fn prefix_of_scope(&self) -> Vec<u8> {
        let end = self.prefix.iter().rposition(|byte| *byte == b':').unwrap_or(0);
        let end = self.prefix[..end].iter().rposition(|byte| *byte == b':').map_or(0, |at| at + 1);
        self.prefix[..end].to_vec()
    }

    /// The key of one part.
    pub fn key(&self, part: &'static str) -> Key {
        self.key_with_room(part, 0)
    }

    /// The key of one of many of a part, as `job:17`.
    pub fn item(&self, part: &'static str, id: impl AsRef<[u8]>) -> Key {
        let id = id.as_ref();
        let mut key = self.key_with_room(part, 1 + id.len());
        key.bytes.push(b':');
        escape(id, &mut key.bytes);
        key
    }

    fn key_with_room(&self, part: &'static str, room: usize) -> Key {
        let mut bytes = Vec::with_capacity(self.prefix.len() + part.len() + room);
        bytes.extend_from_slice(&self.prefix);
        bytes.extend_from_slice(part.as_bytes());
        Key { bytes, family: self.family, part }
    }

    /// Where a step remembers its reply to a request.
    pub fn marker(&self, request: &RequestId) -> Key {
        self.item("request", request.as_bytes())
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({}:v{}:{{*}})", self.family.purpose, self.family.version)
    }
}

/// One key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    bytes: Vec<u8>,
    family: Family,
    part: &'static str,
}

impl Key {
    /// As the server sees it. It may name a user: not for logs, which get [`Key::pattern`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a digest to its id.
    pub(crate) fn bind(&mut self, digest: &[u8]) {
        self.bytes.push(b':');
        self.bytes.extend_from_slice(&hex(digest));
    }

    /// The key of the same scope that is written before a WAIT.
    pub(crate) fn confirmation(&self) -> Key {
        let end = self.bytes.iter().position(|byte| *byte == b'}').map_or(0, |at| at + 1);
        let mut bytes = self.bytes[..end].to_vec();
        bytes.extend_from_slice(b":confirmation");
        Key { bytes, family: self.family, part: "confirmation" }
    }

    /// Its slot in a cluster.
    pub fn slot(&self) -> u16 {
        russet_base::slot::slot(&self.bytes)
    }

    /// What may stand in a log: all of it but the scope and the id.
    pub fn pattern(&self) -> Pattern {
        Pattern { family: self.family, part: self.part }
    }
}

/// Says no more than its pattern.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.pattern())
    }
}

/// A key without whose it is, as `limit:v1:{*}:window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    family: Family,
    part: &'static str,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:v{}:{{*}}:{}", self.family.purpose, self.family.version, self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAMILY: Family = Family { purpose: "limit", version: 1 };

    fn keys(scope: &Scope) -> Result<Keys> {
        Keys::new("shop", FAMILY, scope, Some(&Secret::new(b"secret")))
    }

    fn text(key: &Key) -> String {
        String::from_utf8(key.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn a_key_says_what_it_is_for_and_whose_it_is() {
        let keys = keys(&Scope::from("acme").and("user 1")).unwrap();
        assert_eq!(text(&keys.key("window")), "shop:limit:v1:{acme:user%201}:window");
        assert_eq!(text(&keys.item("job", "a:b")), "shop:limit:v1:{acme:user%201}:job:a%3ab");
        assert_eq!(keys.key("window").slot(), keys.item("job", "{x}").slot());
        let confirmation = keys.item("job", "{x}").confirmation();
        assert_eq!(text(&confirmation), "shop:limit:v1:{acme:user%201}:confirmation");
    }

    #[test]
    fn scopes_that_differ_in_their_last_part_share_a_prefix() {
        let prefix = keys(&Scope::from("a b").and("x")).unwrap().prefix_of_scope();
        assert_eq!(prefix, b"shop:limit:v1:{a%20b:");
        let key = keys(&Scope::from("a b").and("y").and("z")).unwrap().key("part");
        assert!(key.as_bytes().starts_with(&prefix));
    }

    #[test]
    fn parts_can_not_pass_for_others() {
        let of = |scope: Scope| text(&keys(&scope).unwrap().key("x"));
        let scopes = [
            Scope::from("a").and("b"),
            Scope::from("a:b"),
            Scope::from("a%3ab"),
            Scope::from("a").and("").and("b"),
            Scope::from("a").and("%").and("b"),
            Scope::from("a}:b{"),
            Scope::from("a#1").and("b"),
            Scope::from("a").and("b").shard(1),
        ];
        let mut all: Vec<String> = scopes.into_iter().map(of).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn sensitive_parts_are_not_in_the_key() {
        let scope = Scope::from("acme").and_sensitive("ann@example.org");
        let key = keys(&scope).unwrap().key("x");
        assert!(!text(&key).contains("ann"));
        assert_eq!(key, keys(&scope).unwrap().key("x"));
        assert!(matches!(Keys::new("", FAMILY, &scope, None), Err(Error::Invalid(_))));
        assert_eq!(format!("{key:?}"), "Key(limit:v1:{*}:x)");
        assert!(!format!("{scope:?}").contains("ann"));
    }

    #[test]
    fn a_digest_needs_no_secret_and_is_not_the_part() {
        let scope = Scope::from("acme").join(Scope::from("orders").and_digest("key of Ann"));
        let with = text(&keys(&scope).unwrap().key("x"));
        let without = text(&Keys::new("shop", FAMILY, &scope, None).unwrap().key("x"));
        assert!(with.starts_with("shop:limit:v1:{acme:orders:") && !with.contains("Ann"));
        assert!(without.len() == with.len() && without != with);
    }

    #[test]
    fn shards_of_a_scope_spread_over_slots() {
        let slots: std::collections::HashSet<u16> = (0..64)
            .map(|index| keys(&Scope::from("all").shard(index)).unwrap().key("x").slot())
            .collect();
        assert!(slots.len() > 60);
    }

    #[test]
    fn a_scope_has_a_longest() {
        assert!(keys(&Scope::from("a".repeat(SCOPE_BYTES_MAX))).is_ok());
        let refused = keys(&Scope::from("a".repeat(SCOPE_BYTES_MAX + 1)));
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }
}
