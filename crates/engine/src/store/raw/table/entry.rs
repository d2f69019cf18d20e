//! The layout of one entry: header, expiry if it has one, key and value in one block.
//!
//! ```text
//! bits of the header   0..2 kind   2 has expiry   3 is extended   4..7 tag of a packed value
//!                      7 is roomy   8..32 access clock   32..47 key length   47 mark
//!                      48..64 value length
//! then                 key length and value length, 4 bytes each, if extended
//! then                 expiry in milliseconds, 8 bytes, if it has one
//! then                 the key, and right behind it the value
//! ```
//!
//! Only keys beyond 15-bit and values beyond 16-bit lengths are extended. The mark says which
//! snapshot has the entry (see `Core::mark`). Who may read or write an entry, and
//! for how long it lives, is decided by the modules above.

use super::blocks::Blocks;
use super::bytes::{same_bytes, write_pieces};
use super::slab::{FINE_MAX, FINE_STEP, SLAB_BLOCK_MAX, block_bytes};
use std::ptr::NonNull;

/// Up to this length a string or packed value is better inline; beyond it, in an object.
pub const INLINE_VALUE_MAX: usize = 0xFFFF;
/// Longest key.
pub const KEY_BYTES_MAX: usize = u32::MAX as usize;
/// Longest inline value that the layout can hold at all.
pub const VALUE_BYTES_MAX: usize = u32::MAX as usize;

const SHORT_MAX: usize = 0xFFFF;
const SHORT_KEY_MAX: usize = 0x7FFF;
const HEADER_BYTES: usize = 8;
const EXPIRY_BYTES: usize = 8;
const EXPIRY_FLAG: u64 = 1 << 2;
const EXTENDED_FLAG: u64 = 1 << 3;
const ROOMY_FLAG: u64 = 1 << 7;
const MARK_FLAG: u64 = 1 << 47;
/// The blocks of entries that are edited come in steps of this size, so that not every edit needs
/// another block. The larger step is for blocks from this length on.
const ROOMY_STEP: usize = 32;
const ROOMY_STEP_LONG: usize = 64;
const ROOMY_LONG_MIN: usize = 512;
const ACCESS_MASK: u64 = 0xFF_FFFF;
const TAG_SHIFT: u32 = 4;
const TAG_MAX: u8 = 7;

// As docs/table.md has it.
const _: () = {
    assert!(HEADER_BYTES == 8 && EXPIRY_BYTES == 8);
    assert!(SHORT_KEY_MAX == 32_767 && SHORT_MAX == 65_535);
    assert!(EXPIRY_FLAG == 1 << 2 && EXTENDED_FLAG == 1 << 3 && MARK_FLAG == 1 << 47);
    assert!((TAG_MAX as u64) << TAG_SHIFT == 0b111_0000 && ROOMY_FLAG == 1 << 7);
    assert!(ROOMY_STEP == 32 && ROOMY_STEP_LONG == 64 && ROOMY_LONG_MIN == 512);
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Int = 0,
    Bytes = 1,
    Packed = 2,
    Object = 3,
}

/// What kind of value an entry holds, and the tag if it is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label {
    pub(super) kind: Kind,
    pub(super) tag: u8,
}

impl Label {
    pub(super) const INT: Label = Label { kind: Kind::Int, tag: 0 };
    pub(super) const BYTES: Label = Label { kind: Kind::Bytes, tag: 0 };
    pub(super) const OBJECT: Label = Label { kind: Kind::Object, tag: 0 };

    pub(super) fn packed(tag: u8) -> Label {
        assert!(tag <= TAG_MAX, "a packed value's tag has three bits");
        Label { kind: Kind::Packed, tag }
    }
}

#[derive(Clone, Copy)]
struct Header(u64);

impl Header {
    fn new(label: Label, access: u32, layout: Layout) -> Header {
        let mut bits = label.kind as u64 | u64::from(label.tag) << TAG_SHIFT;
        bits |= (u64::from(access) & ACCESS_MASK) << 8;
        if layout.has_expiry {
            bits |= EXPIRY_FLAG;
        }
        if layout.is_roomy {
            bits |= ROOMY_FLAG;
        }
        if layout.is_extended() {
            bits |= EXTENDED_FLAG;
        } else {
            bits |= (layout.key_len as u64) << 32 | (layout.value_len as u64) << 48;
        }
        Header(bits)
    }

    /// The same with another length of the value, of an entry that is not extended.
    #[inline]
    fn with_value_len(self, value_len: usize) -> Header {
        Header(self.0 & (u64::MAX >> 16) | (value_len as u64) << 48)
    }

    fn with_mark_of(self, other: Header) -> Header {
        Header(self.0 & !MARK_FLAG | other.0 & MARK_FLAG)
    }

    #[inline]
    fn label(self) -> Label {
        let kind = match self.0 & 3 {
            0 => Kind::Int,
            1 => Kind::Bytes,
            2 => Kind::Packed,
            _ => Kind::Object,
        };
        Label { kind, tag: (self.0 >> TAG_SHIFT) as u8 & TAG_MAX }
    }
}

/// The lengths that decide where everything is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) key_len: usize,
    pub(super) value_len: usize,
    pub(super) has_expiry: bool,
    /// Its block has been chosen with edits in mind.
    pub(super) is_roomy: bool,
}

impl Layout {
    #[inline]
    fn is_extended(self) -> bool {
        self.key_len > SHORT_KEY_MAX || self.value_len > SHORT_MAX
    }

    #[inline]
    fn expiry_at(self) -> usize {
        HEADER_BYTES + if self.is_extended() { 8 } else { 0 }
    }

    #[inline]
    fn key_at(self) -> usize {
        self.expiry_at() + if self.has_expiry { EXPIRY_BYTES } else { 0 }
    }

    #[inline]
    fn value_at(self) -> usize {
        self.key_at() + self.key_len
    }

    #[inline]
    pub(super) fn bytes(self) -> usize {
        self.value_at() + self.value_len
    }

    /// Bytes of the block that holds it.
    #[inline]
    pub(super) fn block_bytes(self) -> usize {
        let bytes = self.bytes();
        match self.is_roomy {
            true if bytes <= ROOMY_LONG_MIN => bytes.next_multiple_of(ROOMY_STEP),
            true if bytes <= SLAB_BLOCK_MAX => bytes.next_multiple_of(ROOMY_STEP_LONG),
            _ => block_bytes(bytes),
        }
    }

    /// Whether the block of this layout is as long as that of another which is as roomy. As
    /// `block_bytes` has it, but for short ones found without their lengths.
    #[inline]
    fn has_block_like(self, other: Layout) -> bool {
        let (one_last, other_last) = (self.bytes() - 1, other.bytes() - 1);
        let (step, short_max) = match self.is_roomy {
            true => (ROOMY_STEP, ROOMY_LONG_MIN),
            false => (FINE_STEP, FINE_MAX),
        };
        match one_last < short_max && other_last < short_max {
            true => one_last / step == other_last / step,
            false => self.block_bytes() == other.block_bytes(),
        }
    }

    /// Whether an entry can go from this layout to `other` without another block.
    #[inline]
    fn shares_block_with(self, other: Layout) -> bool {
        self.key_at() == other.key_at()
            && self.expiry_at() == other.expiry_at()
            && self.block_bytes() == other.block_bytes()
    }
}

struct Places {
    key_at: usize,
    key_len: usize,
    value_len: usize,
}

impl Places {
    #[inline]
    fn value_at(&self) -> usize {
        self.key_at + self.key_len
    }
}

/// A pointer to an entry. Whoever makes one answers for the entry being alive, and not written by
/// anyone else, for as long as it is used; the methods are then safe.
#[derive(Clone, Copy)]
pub(super) struct RawEntry(NonNull<u8>);

impl RawEntry {
    /// # Safety
    /// 1. The pointer is to a block that `create` filled, and may reach all of it.
    /// 2. The block stays allocated, and is not written by others, while the result is used.
    #[inline]
    pub(super) unsafe fn new(pointer: NonNull<u8>) -> RawEntry {
        RawEntry(pointer)
    }

    /// A new entry whose value is zeroes, to be filled by the caller.
    pub(super) fn create(
        blocks: &Blocks,
        key: &[u8],
        (label, value_len): (Label, usize),
        expiry: Option<i64>,
    ) -> RawEntry {
        assert!(key.len() <= KEY_BYTES_MAX && value_len <= VALUE_BYTES_MAX);
        let has_expiry = expiry.is_some();
        let layout = Layout { key_len: key.len(), value_len, has_expiry, is_roomy: false };
        let block = blocks.allocate(layout.block_bytes());
        // SAFETY: 1. The block has `layout.bytes()` bytes at least, so all offsets are inside.
        // 2. It is aligned to 8, and so are the header and the expiry in it.
        unsafe {
            write_front(block, Header::new(label, 0, layout), layout);
            if let Some(at_ms) = expiry {
                block.add(layout.expiry_at()).cast::<i64>().write(at_ms);
            }
            let key_at = block.add(layout.key_at()).as_ptr();
            key_at.copy_from_nonoverlapping(key.as_ptr(), key.len());
            key_at.add(key.len()).write_bytes(0, value_len);
        }
        RawEntry(block)
    }

    #[inline]
    pub(super) fn pointer(self) -> NonNull<u8> {
        self.0
    }

    #[inline]
    fn header(self) -> Header {
        // SAFETY: 1. A live entry starts with its header, aligned to 8.
        unsafe { Header(self.0.cast::<u64>().read()) }
    }

    #[inline]
    pub(super) fn layout(self) -> Layout {
        let bits = self.header().0;
        let (has_expiry, is_roomy) = (bits & EXPIRY_FLAG != 0, bits & ROOMY_FLAG != 0);
        if bits & EXTENDED_FLAG == 0 {
            let (key_len, value_len) =
                ((bits >> 32) as usize & SHORT_KEY_MAX, (bits >> 48) as usize);
            return Layout { key_len, value_len, has_expiry, is_roomy };
        }
        // SAFETY: 1. An extended entry has two lengths behind its header.
        let [key_len, value_len] = unsafe { self.0.add(HEADER_BYTES).cast::<[u32; 2]>().read() };
        let (key_len, value_len) = (key_len as usize, value_len as usize);
        Layout { key_len, value_len, has_expiry, is_roomy }
    }

    #[inline]
    pub(super) fn label(self) -> Label {
        self.header().label()
    }

    #[inline]
    pub(super) fn access(self) -> u32 {
        (self.header().0 >> 8 & ACCESS_MASK) as u32
    }

    #[inline]
    pub(super) fn set_access(self, access: u32) {
        let bits = self.header().0 & !(ACCESS_MASK << 8);
        let bits = bits | (u64::from(access) & ACCESS_MASK) << 8;
        // SAFETY: 1. As in `header`.
        unsafe { self.0.cast::<u64>().write(bits) };
    }

    #[inline]
    pub(super) fn mark(self) -> bool {
        self.header().0 & MARK_FLAG != 0
    }

    #[inline]
    pub(super) fn set_mark(self, mark: bool) {
        let bits = self.header().0 & !MARK_FLAG | u64::from(mark) << 47;
        // SAFETY: 1. As in `header`.
        unsafe { self.0.cast::<u64>().write(bits) };
    }

    #[inline]
    pub(super) fn expiry(self) -> Option<i64> {
        if self.header().0 & EXPIRY_FLAG == 0 {
            return None;
        }
        // SAFETY: 1. The flag says that the field is there; it is aligned to 8.
        Some(unsafe { self.0.add(self.layout().expiry_at()).cast::<i64>().read() })
    }

    #[inline]
    fn slice<'a>(self, at: usize, len: usize) -> &'a [u8] {
        // SAFETY: 1. The caller's range comes from the entry's layout, all of it initialised by
        // `create` and `reshape`. 2. The maker of `self` answers for the lifetime.
        unsafe { std::slice::from_raw_parts(self.0.add(at).as_ptr(), len) }
    }

    /// Where the key begins, and how long key and value are: what a reader needs of the layout. Of
    /// most entries the header alone says it.
    #[inline]
    fn places(self) -> Places {
        let bits = self.header().0;
        if bits & EXTENDED_FLAG == 0 {
            let key_at = HEADER_BYTES + if bits & EXPIRY_FLAG == 0 { 0 } else { EXPIRY_BYTES };
            let (key_len, value_len) =
                ((bits >> 32) as usize & SHORT_KEY_MAX, (bits >> 48) as usize);
            return Places { key_at, key_len, value_len };
        }
        let layout = self.layout();
        let (key_len, value_len) = (layout.key_len, layout.value_len);
        Places { key_at: layout.key_at(), key_len, value_len }
    }

    #[inline]
    pub(super) fn key<'a>(self) -> &'a [u8] {
        let places = self.places();
        self.slice(places.key_at, places.key_len)
    }

    #[inline]
    pub(super) fn has_key(self, key: &[u8]) -> bool {
        let places = self.places();
        places.key_len == key.len() && same_bytes(self.slice(places.key_at, key.len()), key)
    }

    #[inline]
    pub(super) fn value<'a>(self) -> &'a [u8] {
        let places = self.places();
        self.slice(places.value_at(), places.value_len)
    }

    #[inline]
    pub(super) fn int(self) -> i64 {
        debug_assert_eq!(self.label().kind, Kind::Int);
        // SAFETY: 1. An integer value has 8 bytes.
        unsafe { self.0.add(self.places().value_at()).cast::<i64>().read_unaligned() }
    }

    #[inline]
    pub(super) fn set_int(self, value: i64) {
        assert!(self.label().kind == Kind::Int);
        // SAFETY: 1. An integer value has 8 bytes.
        unsafe { self.0.add(self.places().value_at()).cast::<i64>().write_unaligned(value) };
    }

    /// The object's pointer, with the provenance it was stored with.
    #[inline]
    pub(super) fn object<O>(self) -> *mut O {
        assert!(self.label().kind == Kind::Object);
        // SAFETY: 1. An object value has 8 bytes, filled by `set_object`.
        unsafe { self.0.add(self.places().value_at()).cast::<*mut O>().read_unaligned() }
    }

    pub(super) fn set_object<O>(self, object: *mut O) {
        assert!(self.label().kind == Kind::Object && self.layout().value_len == 8);
        // SAFETY: 1. An object value has 8 bytes.
        unsafe { self.0.add(self.layout().value_at()).cast::<*mut O>().write_unaligned(object) };
    }

    /// Turns the entry into the integer 0, in place: for an object that was taken out.
    pub(super) fn become_zero(self) {
        assert!(self.layout().value_len == 8);
        let header = Header::new(Label::INT, self.access(), self.layout());
        let header = header.with_mark_of(self.header());
        // SAFETY: 1. As in `header`. 2. The lengths stay what they are.
        unsafe { self.0.cast::<u64>().write(header.0) };
        self.set_int(0);
    }

    /// Overwrites a part of the value.
    #[inline]
    pub(super) fn overwrite(self, at: usize, with: &[u8]) {
        let places = self.places();
        assert!(at <= places.value_len && with.len() <= places.value_len - at);
        // SAFETY: 1. The range is inside the value. 2. `with` is borrowed by the caller while the
        // entry is exclusively ours, so they don't overlap.
        unsafe { write_pieces(self.0.add(places.value_at() + at).as_ptr(), &[with]) };
    }

    /// Replaces a string without an expiry by another if nothing but its bytes changes; false, with
    /// nothing done, if not.
    #[inline]
    pub(super) fn replace_bytes(self, bytes: &[u8]) -> bool {
        let layout = self.layout();
        self.label() == Label::BYTES
            && !layout.has_expiry
            && !layout.is_roomy
            && self.splice_in_place(0, layout.value_len, &[bytes])
    }

    /// Replaces a part of the value if the block stays the same; false, with nothing done, if not.
    #[inline]
    pub(super) fn splice_in_place(self, at: usize, remove: usize, insert: &[&[u8]]) -> bool {
        let old = self.layout();
        assert!(at <= old.value_len && remove <= old.value_len - at);
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let value_len = old.value_len - remove + added;
        let new = Layout { value_len, ..old };
        if old.is_extended() || new.is_extended() || !new.has_block_like(old) {
            return false;
        }
        let tail_at = at + remove;
        // SAFETY: 1. The block has room for `new.bytes()` bytes, since its size is that of both.
        // 2. The tail may overlap itself, so it is moved with `copy`, before the pieces are
        // written, which may land on its old place. 3. Pieces are borrowed by the caller while the
        // entry is exclusively ours. 4. An entry that is not extended has its lengths in its
        // header, which is aligned to 8.
        unsafe {
            let value = self.0.add(old.value_at()).as_ptr();
            if added != remove && tail_at < old.value_len {
                value.add(at + added).copy_from(value.add(tail_at), old.value_len - tail_at);
            }
            write_pieces(value.add(at), insert);
            self.0.cast::<u64>().write(self.header().with_value_len(value_len).0);
        }
        true
    }

    /// The same for a value that needs a block of another size: the new entry, which is roomy. This
    /// one stays as it was, and is to be released by the caller. `None`, with nothing done, if one
    /// of the two is extended, or the block is as long.
    pub(super) fn splice_moving(
        self,
        (at, remove): (usize, usize),
        insert: &[&[u8]],
        blocks: &Blocks,
    ) -> Option<RawEntry> {
        let old = self.layout();
        assert!(at <= old.value_len && remove <= old.value_len - at);
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let value_len = old.value_len - remove + added;
        let new = Layout { value_len, is_roomy: true, ..old };
        let block_bytes = new.block_bytes();
        if old.is_extended() || new.is_extended() || block_bytes == old.block_bytes() {
            return None;
        }
        let target = blocks.allocate(block_bytes);
        let header = Header(self.header().0 | ROOMY_FLAG).with_value_len(value_len);
        let (front, tail_at) = (old.value_at() + at, at + remove);
        // SAFETY: 1. `target` has room for `new.bytes()` bytes, which is what is written; source
        // ranges lie in the old entry. 2. The block is a new one and pieces are borrowed by the
        // caller while the entry is exclusively ours, so nothing overlaps. 3. The header is
        // aligned to 8.
        unsafe {
            target.cast::<u64>().write(header.0);
            let (from, to) = (self.0.as_ptr(), target.as_ptr());
            to.add(HEADER_BYTES)
                .copy_from_nonoverlapping(from.add(HEADER_BYTES), front - HEADER_BYTES);
            let tail_to = write_pieces(to.add(front), insert);
            let tail = from.add(old.value_at() + tail_at);
            tail_to.copy_from_nonoverlapping(tail, old.value_len - tail_at);
        }
        Some(RawEntry(target))
    }

    /// Applies a change; returns the new entry if a block of another size was needed. Then this
    /// one stays as it was, and is to be released by the caller.
    pub(super) fn reshape(self, change: &Change<'_>, blocks: &Blocks) -> Option<RawEntry> {
        let old = self.layout();
        assert!(change.at <= old.value_len && change.remove <= old.value_len - change.at);
        let added: usize = change.insert.iter().map(|piece| piece.len()).sum();
        let value_len = old.value_len - change.remove + added;
        assert!(value_len <= VALUE_BYTES_MAX);
        let is_roomy = old.is_roomy && change.keeps_room();
        let mut new = Layout { value_len, has_expiry: change.expiry.is_some(), is_roomy, ..old };
        if change.is_edit && !old.shares_block_with(new) {
            new.is_roomy = true;
        }
        let in_place = old.shares_block_with(new);
        let target = match in_place {
            true => self.0,
            false => blocks.allocate(new.block_bytes()),
        };
        let header = Header::new(change.label, self.access(), new).with_mark_of(self.header());
        let tail_at = change.at + change.remove;
        let tail_len = old.value_len - tail_at;
        // SAFETY: 1. `target` has room for `new.bytes()` bytes: a new block by request, the old one
        // because its block size is the same; source ranges lie in the old entry. 2. The tail may
        // overlap itself, so it is moved with `copy`; it goes before the pieces are written, which
        // may land on its old place. 3. Pieces are borrowed by the caller while the entry is
        // exclusively ours, so they don't overlap. 4. Header and expiry are aligned to 8.
        unsafe {
            let from = self.0.as_ptr().add(old.value_at());
            let to = target.as_ptr().add(new.value_at());
            if tail_len > 0 && (!in_place || added != change.remove) {
                to.add(change.at + added).copy_from(from.add(tail_at), tail_len);
            }
            if !in_place {
                let front = old.key_len + change.at;
                let key = self.0.as_ptr().add(old.key_at());
                target.as_ptr().add(new.key_at()).copy_from_nonoverlapping(key, front);
            }
            write_pieces(to.add(change.at), change.insert);
            write_front(target, header, new);
            if let Some(at_ms) = change.expiry {
                target.add(new.expiry_at()).cast::<i64>().write(at_ms);
            }
        }
        (!in_place).then_some(RawEntry(target))
    }

    /// Bytes of the block.
    pub(super) fn block_bytes(self) -> usize {
        self.layout().block_bytes()
    }
}

/// A change of an entry: a splice of the value, and what label and expiry are to be afterwards.
pub(super) struct Change<'a> {
    pub(super) label: Label,
    pub(super) expiry: Option<i64>,
    pub(super) at: usize,
    pub(super) remove: usize,
    pub(super) insert: &'a [&'a [u8]],
    /// A part of a packed value or string is changed, and more such changes are likely.
    pub(super) is_edit: bool,
}

impl Change<'_> {
    /// Whether a block with room for edits stays one: the value is edited, or not touched at all.
    fn keeps_room(&self) -> bool {
        self.is_edit || (self.remove == 0 && self.insert.is_empty())
    }
}

/// # Safety
/// 1. `block` has room for `layout.bytes()` bytes and is aligned to 8.
#[inline]
unsafe fn write_front(block: NonNull<u8>, header: Header, layout: Layout) {
    // SAFETY: 1. By the contract; an extended layout has two lengths behind the header.
    unsafe {
        block.cast::<u64>().write(header.0);
        if layout.is_extended() {
            let lengths = [layout.key_len as u32, layout.value_len as u32];
            block.add(HEADER_BYTES).cast::<[u32; 2]>().write(lengths);
        }
    }
}
