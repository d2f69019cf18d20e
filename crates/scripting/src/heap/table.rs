//! Tables: an array part for the keys 1..n and a hash part for all others.
//!
//! The hash part is coalesced hashing: a key that finds its main node taken goes to a free one,
//! which is linked behind the taken one. No entry moves and no node is used twice until all nodes
//! are used. Then both parts are sized anew: the array gets the largest power of two of which more
//! than half would be in use. The border that `#` finds in a table with holes follows from these
//! rules; scripts have come to depend on it.
//!
//! Nodes are also linked in the order in which their keys were added, and that is the order of
//! traversal. So neither the order nor the time of a rebuild depends on hashes, which are seeded:
//! nobody can choose keys that collide, and a script sees the same order on every server.

use super::memory::Memory;
use super::strings::Strings;
use crate::fault::Refusal;
use crate::value::{StrRef, TableRef, Value};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    pub(crate) key: Value,
    pub(crate) value: Value,
    /// The next node of the chain, counted from 1.
    next: u32,
    /// The node whose key was added after this one; behind the last comes the first.
    after: u32,
}

#[derive(Debug, Default)]
pub struct Table {
    pub(crate) array: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    /// Free nodes are looked for below this index.
    free_below: u32,
    /// The node whose key was added last, counted from 1.
    last: u32,
    /// The metatable, counted from 1.
    meta: u32,
    /// The node that a traversal came to last: as a rule it goes on from there.
    visited: Cell<u32>,
    /// Metamethods that this table, as a metatable, is known to lack.
    pub(crate) absent: u8,
    pub(crate) is_read_only: bool,
    /// Whether it already stands among the permanent tables that name run objects.
    pub(crate) is_remembered: bool,
}

pub(crate) const TABLE_BYTES: usize = size_of::<Table>();
const VALUE_BYTES: usize = size_of::<Value>();
const NODE_BYTES: usize = size_of::<Node>();

/// The largest array part has 2^26 elements.
const ARRAY_BITS_MAX: usize = 26;

/// The number itself if it is a whole one of 32 bits, else anything: in the sum the lowest bit
/// stands for 1. That takes fewer instructions than a conversion, which has to know its bounds.
#[inline(always)]
pub(crate) fn low_bits(number: f64) -> u32 {
    const LOWEST_BIT_IS_ONE: f64 = (1u64 << 52) as f64;
    (number + LOWEST_BIT_IS_ONE).to_bits() as u32
}

/// The whole number that a key is, if it may stand in an array part.
#[inline(always)]
fn array_index(number: f64) -> Option<usize> {
    let index = low_bits(number);
    (f64::from(index) == number).then_some(index as usize)
}

/// All bits of the number and of the seed decide about each bit of the hash: whole numbers differ
/// in their upper bits only, and nobody may choose numbers that collide.
fn hash_number(seed: u64, number: f64) -> u32 {
    // -0.0 and 0.0 are one key.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let product = u128::from(bits ^ seed) * 0x9e37_79b9_7f4a_7c15;
    let mixed = product as u64 ^ (product >> 64) as u64;
    mixed as u32 ^ (mixed >> 32) as u32
}

fn hash_handle(kind: u32, index: u32) -> u32 {
    index.wrapping_mul(0x9e37_79b1).rotate_left(7) ^ kind.wrapping_mul(0x85eb_ca6b)
}

fn hash_key(strings: &Strings, key: Value) -> u32 {
    match key {
        Value::Nil | Value::Cell(_) => 0,
        Value::Bool(value) => u32::from(value) + 1,
        Value::Number(number) => hash_number(strings.seed(), number),
        Value::Str(string) => strings.hash(string),
        Value::Table(table) => hash_handle(1, table.0),
        Value::Function(function) => hash_handle(2, function.0),
        Value::Native(native) => hash_handle(3, native.0),
        Value::Thread(thread) => hash_handle(4, thread.0),
        Value::Light(mark) => hash_handle(5, mark),
    }
}

impl Table {
    pub(crate) fn bytes(&self) -> usize {
        self.array.len() * VALUE_BYTES + self.nodes.len() * NODE_BYTES
    }

    #[inline(always)]
    fn array_get(&self, number: f64) -> Option<&Value> {
        let index = array_index(number)?;
        self.array.get(index.wrapping_sub(1))
    }

    /// The index of an element of the array part.
    #[inline(always)]
    pub(crate) fn array_slot(&mut self, number: f64) -> Option<&mut Value> {
        let index = array_index(number)?;
        self.array.get_mut(index.wrapping_sub(1))
    }

    #[inline(always)]
    pub(crate) fn at_str(&self, strings: &Strings, key: StrRef) -> &Value {
        if self.nodes.is_empty() {
            return &Value::Nil;
        }
        self.at_name(strings, (key, strings.hash(key)))
    }

    /// As `at_str`, for a name whose hash is known; most names stand in their main node.
    #[inline(always)]
    pub(crate) fn at_name(&self, strings: &Strings, (name, hash): (StrRef, u32)) -> &Value {
        let main = hash as usize & self.nodes.len().wrapping_sub(1);
        let Some(node) = self.nodes.get(main) else { return &Value::Nil };
        match node.key {
            Value::Str(key) if key == name => &node.value,
            _ => match self.node_of_name(strings, (name, hash)) {
                Some(index) => &self.nodes[index].value,
                None => &Value::Nil,
            },
        }
    }

    /// The node of a name's value, if there is an entry.
    #[inline(always)]
    pub(crate) fn named_slot(
        &mut self,
        strings: &Strings,
        (name, hash): (StrRef, u32),
    ) -> Option<&mut Value> {
        let main = hash as usize & self.nodes.len().wrapping_sub(1);
        let index = match self.nodes.get(main)?.key {
            Value::Str(key) if key == name => main,
            _ => self.node_of_name(strings, (name, hash))?,
        };
        Some(&mut self.nodes[index].value)
    }

    #[inline(never)]
    fn node_of_name(&self, strings: &Strings, (name, hash): (StrRef, u32)) -> Option<usize> {
        let mut index = hash as usize & self.nodes.len().wrapping_sub(1);
        loop {
            let node = self.nodes.get(index)?;
            if let Value::Str(other) = node.key
                && strings.is_same(other, (name, hash))
            {
                return Some(index);
            }
            index = (node.next as usize).checked_sub(1)?;
        }
    }

    pub(crate) fn at_bytes(&self, strings: &Strings, key: &[u8]) -> Value {
        if self.nodes.is_empty() {
            return Value::Nil;
        }
        let hash = strings.hash_bytes(key);
        let mut index = hash as usize & (self.nodes.len() - 1);
        loop {
            let node = &self.nodes[index];
            if let Value::Str(other) = node.key
                && strings.bytes(other) == key
            {
                return node.value;
            }
            if node.next == 0 {
                return Value::Nil;
            }
            index = node.next as usize - 1;
        }
    }

    pub(crate) fn get(&self, strings: &Strings, key: Value) -> &Value {
        match key {
            Value::Nil => &Value::Nil,
            Value::Str(key) => self.at_str(strings, key),
            Value::Number(number) => match self.array_get(number) {
                Some(value) => value,
                None => self.node_get(strings, key),
            },
            _ => self.node_get(strings, key),
        }
    }

    fn node_get(&self, strings: &Strings, key: Value) -> &Value {
        match self.node_of(strings, key) {
            Some(index) => &self.nodes[index].value,
            None => &Value::Nil,
        }
    }

    pub(crate) fn node_of(&self, strings: &Strings, key: Value) -> Option<usize> {
        if self.nodes.is_empty() {
            return None;
        }
        self.node_of_hashed(strings, (key, hash_key(strings, key)))
    }

    fn node_of_hashed(&self, strings: &Strings, (key, hash): (Value, u32)) -> Option<usize> {
        if let Value::Str(name) = key {
            return self.node_of_name(strings, (name, hash));
        }
        let mut index = hash as usize & self.nodes.len().wrapping_sub(1);
        loop {
            let node = self.nodes.get(index)?;
            if super::same_handle(node.key, key) {
                return Some(index);
            }
            index = (node.next as usize).checked_sub(1)?;
        }
    }

    /// Stores without asking metatables or whether the table is read-only.
    pub(crate) fn set(
        &mut self,
        strings: &Strings,
        memory: &mut Memory,
        key: Value,
        value: Value,
    ) -> Result<(), Refusal> {
        self.absent = 0;
        if let Value::Number(number) = key {
            if let Some(slot) = self.array_slot(number) {
                *slot = value;
                return Ok(());
            }
            if number.is_nan() {
                return Err(Refusal::NanKey);
            }
        }
        if key.is_nil() {
            return Err(Refusal::NilKey);
        }
        let hash = hash_key(strings, key);
        if let Some(index) = self.node_of_hashed(strings, (key, hash)) {
            self.nodes[index].value = value;
            return Ok(());
        }
        if value.is_nil() || self.insert((key, hash), value) {
            return Ok(());
        }
        self.grow_for(strings, memory, key, value)
    }

    /// Adds a key that is not there, unless there is no node for it.
    fn insert(&mut self, (key, hash): (Value, u32), value: Value) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let main = hash as usize & (self.nodes.len() - 1);
        let mut index = main;
        if !self.nodes[main].key.is_nil() {
            let Some(free) = self.free_node() else { return false };
            self.nodes[free].next = self.nodes[main].next;
            self.nodes[main].next = free as u32 + 1;
            index = free;
        }
        let first = match (self.last as usize).checked_sub(1) {
            Some(last) => std::mem::replace(&mut self.nodes[last].after, index as u32),
            None => index as u32,
        };
        self.last = index as u32 + 1;
        let node = &mut self.nodes[index];
        *node = Node { key, value, next: node.next, after: first };
        true
    }

    /// Puts an entry back that a rebuild took out; it is known that there is room.
    fn put_back(&mut self, strings: &Strings, key: Value, value: Value) {
        if let Value::Number(number) = key
            && let Some(slot) = self.array_slot(number)
        {
            *slot = value;
            return;
        }
        let is_in = self.insert((key, hash_key(strings, key)), value);
        debug_assert!(is_in, "there is a node for each entry");
    }

    fn free_node(&mut self) -> Option<usize> {
        while self.free_below > 0 {
            self.free_below -= 1;
            let index = self.free_below as usize;
            if self.nodes[index].key.is_nil() {
                return Some(index);
            }
        }
        None
    }

    fn grow_for(
        &mut self,
        strings: &Strings,
        memory: &mut Memory,
        key: Value,
        value: Value,
    ) -> Result<(), Refusal> {
        let mut slices = [0usize; ARRAY_BITS_MAX + 1];
        let mut in_array = self.count_array(&mut slices);
        let mut total = in_array;
        for node in self.nodes.iter().filter(|node| !node.value.is_nil()) {
            in_array += count_key(&mut slices, node.key);
            total += 1;
        }
        in_array += count_key(&mut slices, key);
        total += 1;
        let (array_len, in_array) = array_size(&slices, in_array);
        self.resize(strings, memory, array_len, total - in_array)?;
        self.set(strings, memory, key, value)
    }

    fn count_array(&self, slices: &mut [usize; ARRAY_BITS_MAX + 1]) -> usize {
        let mut total = 0;
        let mut from = 0;
        for (bits, slice) in slices.iter_mut().enumerate() {
            let to = self.array.len().min(1 << bits);
            let used = self.array[from..to].iter().filter(|value| !value.is_nil()).count();
            *slice += used;
            total += used;
            if to == self.array.len() {
                break;
            }
            from = to;
        }
        total
    }

    /// Gives both parts these sizes; a hash part of `hash_len` is rounded up to a power of two.
    pub(crate) fn resize(
        &mut self,
        strings: &Strings,
        memory: &mut Memory,
        array_len: usize,
        hash_len: usize,
    ) -> Result<(), Refusal> {
        let node_len = if hash_len == 0 { 0 } else { hash_len.next_power_of_two() };
        if u32::try_from(node_len).is_err() {
            return Err(Refusal::OutOfMemory);
        }
        let before = self.bytes();
        memory.take(array_len * VALUE_BYTES + node_len * NODE_BYTES)?;
        memory.give(before);
        let cut = self.array.len().min(array_len);
        let vanishing = self.array.split_off(cut);
        self.array.reserve_exact(array_len - cut);
        self.array.resize(array_len, Value::Nil);
        let old = self.take_nodes(node_len);
        for (index, value) in vanishing.into_iter().enumerate().filter(|(_, v)| !v.is_nil()) {
            self.put_back(strings, Value::Number((cut + index + 1) as f64), value);
        }
        let mut cursor = 0;
        while let Some((next, key, value)) = old.entry_from(cursor) {
            self.put_back(strings, key, value);
            cursor = next;
        }
        Ok(())
    }

    /// Takes the hash part out and leaves an empty one of this size.
    fn take_nodes(&mut self, node_len: usize) -> Table {
        let nodes = std::mem::replace(&mut self.nodes, vec![Node::default(); node_len]);
        let last = std::mem::take(&mut self.last);
        self.free_below = node_len as u32;
        Table { nodes, last, ..Table::default() }
    }

    /// Room for elements that a constructor or a native is about to add.
    pub(crate) fn reserve_array(
        &mut self,
        strings: &Strings,
        memory: &mut Memory,
        array_len: usize,
    ) -> Result<(), Refusal> {
        if array_len <= self.array.len() || array_len >= 1 << ARRAY_BITS_MAX {
            return Ok(());
        }
        if self.nodes.is_empty() {
            memory.take((array_len - self.array.len()) * VALUE_BYTES)?;
            self.array.reserve_exact(array_len - self.array.len());
            self.array.resize(array_len, Value::Nil);
            return Ok(());
        }
        let hash_len = self.nodes.len();
        self.resize(strings, memory, array_len, hash_len)
    }

    /// A border: an index whose element is there and whose successor's is not, or 0.
    pub(crate) fn border(&self, strings: &Strings) -> usize {
        let len = self.array.len();
        if len > 0 && self.array[len - 1].is_nil() {
            let (mut low, mut high) = (0, len);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if self.array[middle - 1].is_nil() {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            return low;
        }
        if self.nodes.is_empty() {
            return len;
        }
        self.border_in_nodes(strings, len)
    }

    fn border_in_nodes(&self, strings: &Strings, len: usize) -> usize {
        let is_there = |index: usize| !self.node_get(strings, Value::Number(index as f64)).is_nil();
        let (mut low, mut high) = (len, len + 1);
        while is_there(high) {
            low = high;
            high *= 2;
            if high > i32::MAX as usize {
                // Keys chosen to lead the doubling astray: count instead.
                let mut index = 1;
                while is_there(index) {
                    index += 1;
                }
                return index - 1;
            }
        }
        while high - low > 1 {
            let middle = (low + high) / 2;
            if is_there(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The cursor of a key in the order of traversal: 0 before the first.
    pub(crate) fn cursor_of(&self, strings: &Strings, key: Value) -> Option<usize> {
        if key.is_nil() {
            return Some(0);
        }
        if let Value::Number(number) = key
            && let Some(index) = array_index(number)
            && (1..=self.array.len()).contains(&index)
        {
            return Some(index);
        }
        let visited = self.visited.get() as usize;
        let index = match self.nodes.get(visited) {
            Some(node) if super::same_handle(node.key, key) => visited,
            _ => self.node_of(strings, key)?,
        };
        Some(self.array.len() + index + 1)
    }

    /// The entry behind that of a name, if a traversal came to the name last and it is there.
    #[inline(always)]
    pub(crate) fn node_after(&self, name: StrRef) -> Option<&Node> {
        let visited = self.visited.get();
        let node = self.nodes.get(visited as usize)?;
        let is_there = matches!(node.key, Value::Str(key) if key == name);
        if !is_there || visited + 1 == self.last {
            return None;
        }
        let next = self.nodes.get(node.after as usize).filter(|next| !next.value.is_nil())?;
        self.visited.set(node.after);
        Some(next)
    }

    /// The element behind one of the array part, or the first one behind 0, if it is there.
    #[inline(always)]
    pub(crate) fn element_after(&self, before: f64) -> Option<&Value> {
        self.array.get(array_index(before)?).filter(|value| !value.is_nil())
    }

    /// The first entry at or after a cursor, with the cursor behind it.
    pub(crate) fn entry_from(&self, cursor: usize) -> Option<(usize, Value, Value)> {
        let len = self.array.len();
        for index in cursor..len {
            if !self.array[index].is_nil() {
                return Some((index + 1, Value::Number((index + 1) as f64), self.array[index]));
            }
        }
        self.node_from(cursor, len)
    }

    /// As `entry_from`, behind the array part.
    fn node_from(&self, cursor: usize, len: usize) -> Option<(usize, Value, Value)> {
        let last = (self.last as usize).checked_sub(1)?;
        let mut before = match cursor.checked_sub(len + 1) {
            None => last,
            Some(before) if before == last => return None,
            Some(before) => before,
        };
        loop {
            let index = self.nodes.get(before)?.after as usize;
            let node = self.nodes.get(index)?;
            if !node.value.is_nil() {
                self.visited.set(index as u32);
                return Some((len + index + 1, node.key, node.value));
            }
            // A node without a key is in no order: the cursor is of a table that was rebuilt since.
            if index == last || node.key.is_nil() {
                return None;
            }
            before = index;
        }
    }

    /// The most nodes that are looked at to find a key that is there.
    #[cfg(test)]
    pub(crate) fn longest_search(&self, strings: &Strings) -> usize {
        let search = |node: &Node| {
            let main = hash_key(strings, node.key) as usize & (self.nodes.len() - 1);
            let step = |index: &usize| (self.nodes[*index].next as usize).checked_sub(1);
            let mut chain = std::iter::successors(Some(main), step);
            let at = chain.position(|index| super::same_handle(self.nodes[index].key, node.key));
            at.map_or(usize::MAX, |at| at + 1)
        };
        self.nodes.iter().filter(|node| !node.key.is_nil()).map(search).max().unwrap_or(0)
    }

    pub(crate) fn meta(&self) -> Option<TableRef> {
        self.meta.checked_sub(1).map(TableRef)
    }

    pub(crate) fn set_meta(&mut self, meta: Option<TableRef>) {
        self.meta = meta.map_or(0, |meta| meta.0 + 1);
    }

    /// Changes every handle in the table; `rehash` must follow, since hashes may have changed.
    pub(crate) fn rewrite(&mut self, mut new: impl FnMut(Value) -> Value) {
        for value in &mut self.array {
            *value = new(*value);
        }
        for node in self.nodes.iter_mut().filter(|node| !node.value.is_nil()) {
            node.key = new(node.key);
            node.value = new(node.value);
        }
        if let Some(Value::Table(meta)) = self.meta().map(|meta| new(Value::Table(meta))) {
            self.set_meta(Some(meta));
        }
        self.is_remembered = false;
    }

    /// Puts every entry of the hash part where its key belongs now.
    pub(crate) fn rehash(&mut self, strings: &Strings) {
        let old = self.take_nodes(self.nodes.len());
        let mut cursor = 0;
        while let Some((next, key, value)) = old.entry_from(cursor) {
            let is_in = self.insert((key, hash_key(strings, key)), value);
            debug_assert!(is_in, "there is a node for each entry");
            cursor = next;
        }
    }
}

/// Counts a key that may stand in the array part.
fn count_key(slices: &mut [usize; ARRAY_BITS_MAX + 1], key: Value) -> usize {
    let Value::Number(number) = key else { return 0 };
    let Some(index) = array_index(number) else { return 0 };
    if !(1..=1 << ARRAY_BITS_MAX).contains(&index) {
        return 0;
    }
    let bits = index.next_power_of_two().trailing_zeros() as usize;
    slices[bits] += 1;
    1
}

/// The best array size, and how many of the counted keys it takes.
fn array_size(slices: &[usize; ARRAY_BITS_MAX + 1], in_array: usize) -> (usize, usize) {
    let (mut seen, mut taken, mut size) = (0, 0, 0);
    for (bits, count) in slices.iter().enumerate() {
        if (1usize << bits) / 2 >= in_array {
            break;
        }
        seen += count;
        if seen > (1usize << bits) / 2 {
            size = 1 << bits;
            taken = seen;
        }
        if seen == in_array {
            break;
        }
    }
    (size, taken)
}
