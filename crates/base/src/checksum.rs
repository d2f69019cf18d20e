//! The checksum of our own files: XXH3 with 64 bits, over bytes that come piece by piece.

use xxhash_rust::xxh3::Xxh3;

#[derive(Clone)]
pub struct Checksum(Box<Xxh3>);

impl Default for Checksum {
    fn default() -> Self {
        Checksum(Box::new(Xxh3::new()))
    }
}

impl Checksum {
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum.finish()
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the algorithm's own description: files must stay readable.
    #[test]
    fn pieces_give_the_sum_of_the_whole() {
        assert_eq!(Checksum::of(b""), 0x2d06_8005_38d3_94c2);
        let bytes: Vec<u8> = (0..5000u32).map(|number| number as u8).collect();
        let mut sum = Checksum::default();
        bytes.chunks(7).for_each(|piece| sum.add(piece));
        assert_eq!(sum.finish(), Checksum::of(&bytes));
    }
}
