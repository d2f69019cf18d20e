//! Room that objects of earlier runs have left behind, for those of the next: most are as small as
//! these, and making room for each and giving it back would be a good part of a short run.

use super::Heap;
use crate::value::{TableRef, Value};

/// Elements of the lists that are kept: each has a capacity of one of these, at least.
const CLASSES: [usize; 4] = [4, 8, 16, 32];
/// Lists of one capacity that are kept.
const LISTS_MAX: usize = 16;
/// Most variables of a function whose room is kept.
const UPVALUES_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Spare {
    lists: [Vec<Vec<Value>>; CLASSES.len()],
    /// By the number of variables.
    upvalues: [Vec<Box<[Value]>>; UPVALUES_MAX + 1],
    values: usize,
}

impl Spare {
    /// A list of so many nils.
    #[inline]
    pub(crate) fn list(&mut self, len: usize) -> Vec<Value> {
        let Some(class) = CLASSES.iter().position(|room| len <= *room) else {
            return vec![Value::Nil; len];
        };
        let mut list = match self.lists[class].pop() {
            Some(list) => {
                self.values -= list.capacity();
                list
            }
            None => Vec::with_capacity(CLASSES[class]),
        };
        list.resize(len, Value::Nil);
        list
    }

    /// Keeps the room of a list that nobody needs any more.
    #[inline]
    pub(crate) fn keep_list(&mut self, list: &mut Vec<Value>) {
        let capacity = list.capacity();
        // The largest class that it serves.
        let Some(class) = CLASSES.iter().rposition(|room| *room <= capacity) else { return };
        if capacity <= CLASSES[CLASSES.len() - 1] && self.lists[class].len() < LISTS_MAX {
            let mut list = std::mem::take(list);
            list.clear();
            self.values += capacity;
            self.lists[class].push(list);
        }
    }

    /// Room for the variables of a function.
    #[inline]
    pub(crate) fn upvalues(&mut self, len: usize) -> Box<[Value]> {
        match self.upvalues.get_mut(len).and_then(Vec::pop) {
            Some(upvalues) => {
                self.values -= len;
                upvalues
            }
            None => vec![Value::Nil; len].into(),
        }
    }

    #[inline]
    pub(crate) fn keep_upvalues(&mut self, upvalues: &mut Box<[Value]>) {
        let len = upvalues.len();
        if let Some(kept) = self.upvalues.get_mut(len)
            && len > 0
            && kept.len() < LISTS_MAX
        {
            self.values += len;
            kept.push(std::mem::take(upvalues));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values * size_of::<Value>()
    }
}

impl Heap {
    /// The elements 1..n of a table that this run has made: any may be stored there, without
    /// metamethods.
    #[inline]
    pub fn run_array_mut(&mut self, table: TableRef) -> Option<&mut [Value]> {
        let object = self.tables.run_at_mut(table.index())?;
        (!object.is_read_only).then_some(&mut object.array)
    }

    /// Ends the run, of which nothing is to stay; the room of small objects is kept for the next.
    pub(crate) fn cut(&mut self) {
        for table in self.tables.run_mut() {
            self.spare.keep_list(&mut table.array);
        }
        for closure in self.functions.run_mut() {
            self.spare.keep_upvalues(&mut closure.upvalues);
        }
        self.strings.cut();
        self.tables.cut();
        self.functions.cut();
        self.natives.cut();
        self.cells.cut();
        self.threads.cut();
    }
}
