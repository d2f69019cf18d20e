//! Bytes that a packed encoding edits in place, wherever they live: inside a table entry, in a node
//! of a large list, or in a plain vector in a test.

/// A resizable run of bytes. All packed encodings are written against this trait.
pub trait Blob {
    fn bytes(&self) -> &[u8];

    /// Overwrites bytes without changing the length. `at + with.len()` must not pass the end.
    fn overwrite(&mut self, at: usize, with: &[u8]);

    /// Removes `remove` bytes at `at` and puts the `insert` pieces, in order, in their place.
    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]);
}

impl Blob for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn overwrite(&mut self, at: usize, with: &[u8]) {
        self[at..at + with.len()].copy_from_slice(with);
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[&[u8]]) {
        let added: usize = insert.iter().map(|piece| piece.len()).sum();
        let tail = self.len() - at - remove;
        let before = self.len();
        if added > remove {
            self.resize(before + added - remove, 0);
        }
        if added != remove {
            self.copy_within(at + remove..at + remove + tail, at + added);
        }
        self.truncate(at + added + tail);
        let mut to = at;
        for piece in insert {
            self[to..to + piece.len()].copy_from_slice(piece);
            to += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Blob;

    #[test]
    fn splice_grows_and_shrinks_in_place() {
        let mut blob = b"abcdef".to_vec();
        Blob::splice(&mut blob, 2, 1, &[b"XY", b"", b"Z"]);
        assert_eq!(blob, b"abXYZdef");
        Blob::splice(&mut blob, 1, 5, &[b"-"]);
        assert_eq!(blob, b"a-ef");
        Blob::splice(&mut blob, 4, 0, &[b"!"]);
        assert_eq!(blob, b"a-ef!");
        blob.overwrite(0, b"zz");
        assert_eq!(blob, b"zzef!");
    }
}
