//! Hashes where they are stored: packed inside a table entry, or an object of their own.

use super::packed::{self, Field, Fields, Form, Scratch};
use super::{HashLimits, HashRef, Held, LargeHash, Lease};
use crate::store::raw::table::{EntryMut, EntryRef, NewValue, View};
use crate::types::blob::Blob;
use crate::types::element::Element;
use crate::value::{Object, WrongType};
use russet_base::hash::KeyHasher;

/// A field's name and its value, as text.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

/// The hash in an entry, to read.
#[inline]
pub fn hash<'a>(entry: &EntryRef<'a, Object>) -> Result<HashRef<'a>, WrongType> {
    of_view(entry.value()).ok_or(WrongType)
}

#[inline]
fn of_view(view: View<'_, Object>) -> Option<HashRef<'_>> {
    match view {
        View::Packed(tag, bytes) => Some(HashRef::new(Held::Packed(bytes, Form::of_tag(tag)?))),
        View::Object(Object::Hash(hash)) => Some(HashRef::new(Held::Large(hash))),
        _ => None,
    }
}

/// As OBJECT ENCODING names it.
pub fn encoding(entry: &EntryRef<'_, Object>) -> &'static str {
    hash(entry).map_or("hashtable", HashRef::encoding)
}

/// The moment before which no part of a value expires: `None` for one that is no hash, or has no
/// deadlines.
#[inline]
pub fn bound_of(view: &View<'_, Object>) -> Option<i64> {
    match *view {
        View::Packed(tag, bytes) => bound_of_packed(tag, bytes),
        View::Object(object) => bound_of_object(object),
        _ => None,
    }
}

#[inline]
pub(crate) fn bound_of_packed(tag: u8, bytes: &[u8]) -> Option<i64> {
    (tag == Form::Expiring.tag()).then(|| packed::bound(bytes))
}

/// Apart from the path of short values.
#[inline(never)]
pub(crate) fn bound_of_object(object: &Object) -> Option<i64> {
    match object {
        Object::Hash(hash) => hash.bound(),
        _ => None,
    }
}

/// Whether a value is a hash all of whose fields are over at `now_ms`.
pub fn is_over(view: &View<'_, Object>, now_ms: i64) -> bool {
    match (bound_of(view), of_view(*view)) {
        (Some(bound), Some(hash)) if bound <= now_ms => hash.is_over(now_ms),
        _ => false,
    }
}

/// What removing expired fields did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub fields: usize,
    pub is_empty: bool,
    /// Some of what is over was not before: the hash's watchers are to be notified.
    pub is_news: bool,
}

/// Removes fields that are over at `now_ms`, about `budget` of them if the hash is large, and shows
/// the name of each.
pub(crate) fn purge(
    entry: &mut EntryMut<'_, Object>,
    (now_ms, budget): (i64, usize),
    visit: &mut dyn FnMut(Element<'_>),
) -> Purged {
    if let Some(Object::Hash(hash)) = entry.object_mut() {
        let is_news = hash.has_news(now_ms);
        let fields = hash.purge((now_ms, budget), visit);
        return Purged { fields, is_empty: hash.is_empty(), is_news };
    }
    let View::Packed(tag, bytes) = entry.value() else { return Purged::default() };
    if tag != Form::Expiring.tag() {
        return Purged::default();
    }
    let before = packed::len(bytes, Form::Expiring);
    let fields = Fields::new(bytes, Form::Expiring);
    let is_over = |field: &Field<'_>| field.deadline_ms.is_some_and(|at_ms| at_ms <= now_ms);
    fields.filter(is_over).for_each(|field| visit(field.name));
    let kept = packed::without_expired(bytes, now_ms);
    let left = packed::len(&kept, Form::Expiring);
    if packed::volatile_len(&kept) == 0 {
        entry.set_packed(Form::Plain.tag(), &packed::to_plain(&kept));
    } else {
        entry.set_packed(tag, &kept);
    }
    Purged { fields: before - left, is_empty: left == 0, is_news: before > left }
}

/// Hidden fields that an edit has come across.
#[derive(Debug, Default)]
pub(crate) struct Reclaimed {
    /// Those that were removed because they were to be edited.
    pub names: Vec<Box<[u8]>>,
    /// Those that go with the hash, for nothing else is left of it; else 0.
    pub rest: usize,
}

/// A hash in its entry, to be changed. One that is left empty is for the caller to remove.
pub struct HashEntry<'e, 't> {
    entry: &'e mut EntryMut<'t, Object>,
    limits: HashLimits,
    hasher: KeyHasher,
    /// Fields that expire at this moment or before are not there for whoever edits.
    now_ms: i64,
    /// The names of those that went because they were to be edited.
    reclaimed: Vec<Box<[u8]>>,
}

impl<'e, 't> HashEntry<'e, 't> {
    #[inline]
    pub fn new(
        entry: &'e mut EntryMut<'t, Object>,
        (limits, hasher): (HashLimits, KeyHasher),
    ) -> Result<Self, WrongType> {
        match of_view(entry.value()) {
            Some(_) => {
                Ok(HashEntry { entry, limits, hasher, now_ms: i64::MIN, reclaimed: Vec::new() })
            }
            None => Err(WrongType),
        }
    }

    /// The same hash without the fields that expire at this moment or before.
    #[inline]
    pub fn hiding(self, now_ms: i64) -> Self {
        HashEntry { now_ms, ..self }
    }

    #[inline]
    pub fn view(&self) -> HashRef<'_> {
        self.stored().hiding(self.now_ms)
    }

    /// The moment before which none of its fields expires.
    #[inline]
    pub(crate) fn bound(&self) -> Option<i64> {
        bound_of(&self.entry.value())
    }

    #[inline]
    fn stored(&self) -> HashRef<'_> {
        of_view(self.entry.value()).expect("it was a hash when this was made, and stays one")
    }

    /// What has become of hidden fields.
    pub(crate) fn reclaimed(self) -> Reclaimed {
        let view = self.view();
        let is_rest_hidden = view.hides_some() && view.is_empty();
        let rest = if is_rest_hidden { view.stored_len() } else { 0 };
        Reclaimed { names: self.reclaimed, rest }
    }

    /// Removes a field that is only hidden: what is done with its name begins anew.
    #[inline]
    fn remove_hidden(&mut self, name: Element<'_>) {
        if self.bound().is_some_and(|bound| bound <= self.now_ms) {
            self.remove_over(name);
        }
    }

    #[cold]
    fn remove_over(&mut self, name: Element<'_>) {
        let now_ms = self.now_ms;
        if let Some(Object::Hash(hash)) = self.entry.object_mut()
            && hash.remove_over(name, now_ms)
        {
            self.reclaimed.push(name.with_bytes(|text| Box::from(text)));
        }
    }

    pub fn len(&self) -> usize {
        self.view().len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    #[inline]
    fn form(&self) -> Option<Form> {
        match self.entry.value() {
            View::Packed(tag, _) => Form::of_tag(tag),
            _ => None,
        }
    }

    #[inline]
    fn large(&mut self) -> &mut LargeHash {
        match self.entry.object_mut() {
            Some(Object::Hash(hash)) => hash,
            _ => unreachable!("a hash that is not packed is an object"),
        }
    }

    /// Sets a field; whether it is new.
    #[inline]
    pub fn set(&mut self, (name, value): Pair<'_>, lease: Lease) -> bool {
        let pair = (Element::parse(name), Element::parse(value));
        let is_long = self.limits.is_too_long(name) || self.limits.is_too_long(value);
        let mut form = self.form();
        let is_leased = matches!(lease, Lease::Until(_));
        if form.is_some() && (self.is_outgrown_by((name, value)) || is_leased && self.needs_index())
        {
            self.enlarge();
            form = None;
        }
        let Some(mut form) = form else {
            self.remove_hidden(pair.0);
            let limits = self.limits;
            let hash = self.large();
            let is_new = hash.set(pair, lease);
            hash.note_size(is_long || hash.len() > limits.entries);
            return is_new;
        };
        if form == Form::Plain && is_leased {
            form = self.become_expiring();
        }
        let entries_max = self.limits.entries;
        let mut blob = self.entry.blob().expect("a packed value is bytes");
        let is_new = packed::set(&mut blob, form, pair, lease);
        if is_long || packed::has_more_than(entries_max, blob.bytes(), form) {
            self.mark_hashtable();
        }
        self.convert_to(form);
        is_new
    }

    /// Has OBJECT ENCODING call it a hashtable from now on.
    pub fn mark_hashtable(&mut self) {
        if self.needs_index() {
            self.enlarge();
        }
        match self.form() {
            Some(form) => {
                packed::mark(&mut self.entry.blob().expect("a packed value is bytes"), form);
            }
            None => self.large().note_size(true),
        }
    }

    /// Whether it is packed and too long for a form without an index.
    #[inline]
    fn needs_index(&self) -> bool {
        matches!(self.entry.value(), View::Packed(tag, bytes)
            if tag == Form::Plain.tag() && packed::needs_index(bytes))
    }

    #[inline]
    fn is_outgrown_by(&self, pair: Pair<'_>) -> bool {
        match self.entry.value() {
            View::Packed(tag, bytes) => packed::is_outgrown(bytes, tag, pair),
            _ => false,
        }
    }

    /// Makes an object of a packed hash.
    #[cold]
    fn enlarge(&mut self) {
        let large = LargeHash::of(self.view(), self.hasher);
        self.entry.set_object(Box::new(Object::Hash(large)));
    }

    #[cold]
    fn become_expiring(&mut self) -> Form {
        if let View::Packed(_, bytes) = self.entry.value() {
            let expiring = packed::to_expiring(bytes);
            self.entry.set_packed(Form::Expiring.tag(), &expiring);
        }
        Form::Expiring
    }

    /// Returns a hash that has lost its last deadline to the plain form.
    #[inline]
    fn convert_to(&mut self, form: Form) {
        if form == Form::Expiring {
            self.drop_empty_expiring();
        }
    }

    #[cold]
    fn drop_empty_expiring(&mut self) {
        if let View::Packed(_, bytes) = self.entry.value()
            && packed::volatile_len(bytes) == 0
        {
            let plain = packed::to_plain(bytes);
            self.entry.set_packed(Form::Plain.tag(), &plain);
        }
    }

    /// Removes a field; whether it was there.
    #[inline]
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let name = Element::parse(name);
        let Some(form) = self.form() else {
            self.remove_hidden(name);
            return self.large().remove(name);
        };
        let mut blob = self.entry.blob().expect("a packed value is bytes");
        let is_removed = packed::remove(&mut blob, form, name);
        self.convert_to(form);
        is_removed
    }

    /// Gives a field a deadline, or takes it away; `false` if there is no such field.
    pub fn set_deadline(&mut self, name: &[u8], deadline_ms: Option<i64>) -> bool {
        let Some(now) = self.view().deadline(name) else { return false };
        if now == deadline_ms {
            return true;
        }
        if self.needs_index() || self.is_outgrown_by((name, b"")) {
            self.enlarge();
        }
        let name = Element::parse(name);
        let Some(form) = self.form() else { return self.large().set_deadline(name, deadline_ms) };
        if form == Form::Plain {
            self.become_expiring();
        }
        let mut blob = self.entry.blob().expect("a packed value is bytes");
        packed::set_deadline(&mut blob, name, deadline_ms);
        self.convert_to(Form::Expiring);
        true
    }
}

/// A new hash of these pairs, handed to `put` as a value; how many fields it has.
#[inline]
pub fn build<'p>(
    pairs: impl ExactSizeIterator<Item = Pair<'p>> + Clone,
    lease: Lease,
    (limits, hasher): (HashLimits, KeyHasher),
    put: impl FnOnce(NewValue<'_, Object>),
) -> usize {
    let form = if matches!(lease, Lease::Until(_)) { Form::Expiring } else { Form::Plain };
    let is_long = |pair: &Pair<'_>| limits.is_too_long(pair.0) || limits.is_too_long(pair.1);
    let is_hashtable = pairs.len() > limits.entries || pairs.clone().any(|pair| is_long(&pair));
    let pairs_len = pairs.len();
    let field_bytes_max = match form {
        Form::Plain => packed::field_bytes_max,
        Form::Expiring => packed::growth,
    };
    let bytes_max: usize =
        pairs.clone().map(|(name, value)| field_bytes_max(name.len(), value.len())).sum();
    let parsed = pairs.map(|(name, value)| (Element::parse(name), Element::parse(value)));
    if bytes_max > packed::bytes_max(pairs_len, is_hashtable || form == Form::Expiring) {
        let mut hash = LargeHash::new(hasher);
        for pair in parsed {
            hash.set(pair, lease);
        }
        hash.note_size(is_hashtable || form == Form::Expiring);
        let fields = hash.len();
        put(NewValue::Object(Box::new(Object::Hash(hash))));
        return fields;
    }
    let empty = match form {
        Form::Plain => Scratch::new(),
        Form::Expiring => packed::to_expiring(&[]),
    };
    let mut scratch = ScratchBlob(empty);
    let mut fields = 0;
    parsed.for_each(|pair| fields += usize::from(packed::set(&mut scratch, form, pair, lease)));
    if is_hashtable {
        packed::mark(&mut scratch, form);
    }
    put(NewValue::Packed(form.tag(), &scratch.0));
    fields
}

/// A packed hash on the stack.
pub(super) struct ScratchBlob(pub(super) Scratch);

impl Blob for ScratchBlob {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self.0[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        if at == self.0.len() && remove == 0 {
            return insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
        }
        let tail = Scratch::from_slice(&self.0[at + remove..]);
        self.0.truncate(at);
        insert.iter().for_each(|piece| self.0.extend_from_slice(piece));
        self.0.extend_from_slice(&tail);
    }
}
