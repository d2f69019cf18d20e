//! A list that is made element by element, by who does not know how many will come: a file that is
//! loaded.

use super::entry::Entry;
use super::limits::{Extent, ListLimits, MEDIUM_BYTES_MAX};
use super::{Element, End, Entries, LargeList, stored};
use crate::store::raw::table::NewValue;
use crate::value::Object;

/// A list from its first element on.
#[derive(Default)]
pub struct ListBuilder {
    /// The entries as long as they are few.
    run: Vec<u8>,
    large: Option<LargeList>,
    count: usize,
}

impl ListBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn push(&mut self, element: Element<'_>) {
        self.count += 1;
        if let Some(list) = &mut self.large {
            return list.push(End::Back, std::iter::once(element));
        }
        Entry::new(element).pieces().iter().for_each(|piece| self.run.extend_from_slice(piece));
        if self.run.len() > MEDIUM_BYTES_MAX {
            let mut list = LargeList::new();
            list.push(End::Back, Entries::new(&std::mem::take(&mut self.run)));
            self.large = Some(list);
        }
    }

    /// Hands the list over in the form and with the encoding that Redis gives one that it loads.
    pub fn put<R>(self, limits: ListLimits, put: impl FnOnce(NewValue<'_, Object>) -> R) -> R {
        if let Some(mut list) = self.large {
            list.note_loaded(limits);
            return put(NewValue::Object(Box::new(Object::List(list))));
        }
        let size = Extent { bytes: self.run.len(), count: self.count };
        stored::build(End::Back, Entries::new(&self.run), (size, limits), put)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::raw::table::View;
    use crate::types::list::ListRef;

    /// The texts and the encoding of what was built.
    fn built(texts: &[Vec<u8>], limits: ListLimits) -> (Vec<Vec<u8>>, &'static str) {
        let mut builder = ListBuilder::new();
        texts.iter().for_each(|text| builder.push(Element::parse(text)));
        assert_eq!(builder.len(), texts.len());
        let show = |list: ListRef<'_>| {
            let mut shown = Vec::new();
            list.for_each_in(0..list.len(), |element| shown.push(element.to_vec()));
            (shown, list.encoding())
        };
        builder.put(limits, |value| match value {
            NewValue::Packed(_, bytes) => show(ListRef::of_bytes(bytes)),
            NewValue::Object(object) => match View::Object(&*object) {
                View::Object(Object::List(list)) => show(ListRef::Large(list)),
                _ => panic!("no list"),
            },
            _ => panic!("no list"),
        })
    }

    #[test]
    fn lists_of_all_sizes_come_out_as_they_went_in() {
        let limits = ListLimits::default();
        for count in [1usize, 2, 10, 90, 200, 700, 3000, 30_000] {
            let texts: Vec<Vec<u8>> = (0..count)
                .map(|at| match at % 3 {
                    0 => at.to_string().into_bytes(),
                    1 => vec![b'x'; at % 90],
                    _ => format!("element-{at}").into_bytes(),
                })
                .collect();
            let (shown, encoding) = built(&texts, limits);
            assert!(shown == texts, "{count}");
            assert_eq!(encoding, if count < 700 { "listpack" } else { "quicklist" }, "{count}");
        }
        let long = vec![vec![b'y'; 100_000]];
        assert!(built(&long, limits) == (long, "quicklist"));
    }
}
