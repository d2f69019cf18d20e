//! The zipmap, in which Redis 2.4 and before kept small hashes.
//!
//! | bytes | what |
//! |---|---|
//! | 0 | how many fields; 254 if they are to be counted |
//! | 1.. | for each: length and name, length, a byte of free room, value, that much free room |
//! | last | 0xff |
//!
//! A length is one byte below 254, or 254 and four bytes, little-endian.

use super::error::Malformed;

const LONG: u8 = 254;
const END: u8 = 0xff;
const CUT: Malformed = Malformed("a zipmap is cut off");

/// A name and its value.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// The fields of a zipmap, each checked before it is shown.
pub struct Zipmap<'a> {
    rest: &'a [u8],
    left: Option<u8>,
    is_over: bool,
}

impl<'a> Zipmap<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (&count, rest) = bytes.split_first().ok_or(CUT)?;
        Ok(Zipmap { rest, left: (count < LONG).then_some(count), is_over: false })
    }

    fn take(&mut self) -> Result<Pair<'a>, Malformed> {
        let (name_len, rest) = length(self.rest)?;
        let (name, rest) = rest.split_at_checked(name_len).ok_or(CUT)?;
        let (value_len, rest) = length(rest)?;
        let (&free, rest) = rest.split_first().ok_or(CUT)?;
        let (value, rest) = rest.split_at_checked(value_len).ok_or(CUT)?;
        let (_, rest) = rest.split_at_checked(usize::from(free)).ok_or(CUT)?;
        match &mut self.left {
            Some(0) => return Err(Malformed("a zipmap has more fields than it says")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.rest = rest;
        Ok((name, value))
    }
}

fn length(run: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    match run.split_first().ok_or(CUT)? {
        (&LONG, rest) => {
            let (len, rest) = rest.split_first_chunk().ok_or(CUT)?;
            match u32::from_le_bytes(*len) {
                // Nobody has ever written one so, and the peers refuse it.
                len if len < u32::from(LONG) => Err(Malformed("a zipmap has an overlong length")),
                len => Ok((len as usize, rest)),
            }
        }
        (&END, _) => Err(CUT),
        (&len, rest) => Ok((usize::from(len), rest)),
    }
}

impl<'a> Iterator for Zipmap<'a> {
    type Item = Result<Pair<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        if self.rest == [END] {
            self.is_over = true;
            let missing = self.left.is_some_and(|left| left > 0);
            return missing.then_some(Err(Malformed("a zipmap has fewer fields than it says")));
        }
        let pair = self.take();
        self.is_over = pair.is_err();
        Some(pair)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A zipmap of these pairs, as Redis 2.4 made it.
    pub fn packed(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
        let put = |out: &mut Vec<u8>, len: usize| match len {
            0..254 => out.push(len as u8),
            _ => {
                out.push(LONG);
                out.extend_from_slice(&(len as u32).to_le_bytes());
            }
        };
        let mut out = vec![pairs.len() as u8];
        for (at, (name, value)) in pairs.iter().enumerate() {
            let free = at % 3;
            put(&mut out, name.len());
            out.extend_from_slice(name);
            put(&mut out, value.len());
            out.push(free as u8);
            out.extend_from_slice(value);
            out.extend(std::iter::repeat_n(0, free));
        }
        out.push(END);
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<Pair<'_>>, Malformed> {
        Zipmap::new(bytes)?.collect()
    }

    #[test]
    fn fields_with_and_without_free_room() {
        let long = vec![b'v'; 300];
        let pairs: Vec<Pair<'_>> = vec![(b"a", b"1"), (b"", b""), (b"long", &long), (b"z", b"zz")];
        assert_eq!(read(&packed(&pairs)).unwrap(), pairs);
        let mut uncounted = packed(&pairs);
        uncounted[0] = LONG;
        assert_eq!(read(&uncounted).unwrap(), pairs);
        let bytes = packed(&pairs[..2]);
        for at in 0..bytes.len() {
            read(&bytes[..at]).unwrap_err();
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let _no_panic = read(&changed);
            }
        }
    }

    /// A length of few bytes in the form for many was taken for one, which Valkey refuses.
    #[test]
    fn an_overlong_length_is_refused() {
        let overlong = b"\x01\xfe\x03\x00\x00\x00abc\x01\x00v\xff";
        read(overlong).unwrap_err();
        assert_eq!(read(b"\x01\x03abc\x01\x00v\xff").unwrap(), [(&b"abc"[..], &b"v"[..])]);
        read(b"\x01\x03abc\xfe\x01\x00\x00\x00\x00v\xff").unwrap_err();
    }
}
