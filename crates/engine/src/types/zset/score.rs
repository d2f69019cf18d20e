//! A score's stored form: as few bytes as bring back the same double.
//!
//! | head | meaning |
//! |---|---|
//! | `0vvvvvvv` | 0..=127 |
//! | `10vvvvvv` + 1 byte | 14 bits, high bits first |
//! | `110vvvvv` + 2 bytes | 21 bits, high bits first |
//! | `0xe0`..`0xe3` + 2, 4, 6, 7 bytes | little-endian signed integer |
//! | `0xe4` + 4 bytes, `0xe5` + 8 bytes | little-endian float |

const INT_16: u8 = 0xe0;
const INT_32: u8 = 0xe1;
const INT_48: u8 = 0xe2;
const INT_56: u8 = 0xe3;
const FLOAT_32: u8 = 0xe4;
const FLOAT_64: u8 = 0xe5;

/// Integers beyond this have no form of their own that is shorter than the double.
const INTEGER_MAX: u64 = (1 << 55) - 1;

/// Most bytes of a form.
const FORM_BYTES_MAX: usize = 9;

#[derive(Clone, Copy)]
pub struct StoredScore {
    bytes: [u8; FORM_BYTES_MAX],
    len: u8,
}

impl StoredScore {
    pub fn new(score: f64) -> Self {
        let mut form = StoredScore { bytes: [0; FORM_BYTES_MAX], len: 1 };
        let integer = score as i64;
        // The comparison of bits keeps -0.0 a float.
        let is_integer = (integer as f64).to_bits() == score.to_bits();
        if is_integer && integer.unsigned_abs() <= INTEGER_MAX {
            form.set_integer(integer);
        } else if f64::from(score as f32).to_bits() == score.to_bits() {
            form.put(FLOAT_32, &(score as f32).to_le_bytes());
        } else {
            form.put(FLOAT_64, &score.to_le_bytes());
        }
        form
    }

    fn put(&mut self, tag: u8, payload: &[u8]) {
        self.bytes[0] = tag;
        self.bytes[1..=payload.len()].copy_from_slice(payload);
        self.len = 1 + payload.len() as u8;
    }

    fn set_integer(&mut self, value: i64) {
        let little = value.to_le_bytes();
        match value {
            0..0x80 => self.bytes[0] = value as u8,
            0x80..0x4000 => {
                self.bytes[..2].copy_from_slice(&(0x8000 | value as u16).to_be_bytes());
                self.len = 2;
            }
            0x4000..0x20_0000 => {
                self.bytes[..3].copy_from_slice(&(0xc0_0000 | value as u32).to_be_bytes()[1..]);
                self.len = 3;
            }
            -0x8000..0 => self.put(INT_16, &little[..2]),
            -0x8000_0000..=0x7fff_ffff => self.put(INT_32, &little[..4]),
            -0x8000_0000_0000..=0x7fff_ffff_ffff => self.put(INT_48, &little[..6]),
            _ => self.put(INT_56, &little[..7]),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Bytes of a form by its first one. Who looks for a member passes by the scores of all before it.
const FORM_BYTES: [u8; 256] = {
    let mut table = [FORM_BYTES_MAX as u8; 256];
    let mut tag = 0;
    while tag < table.len() {
        table[tag] = match tag as u8 {
            0..0x80 => 1,
            0x80..0xc0 => 2,
            0xc0..=INT_16 => 3,
            INT_32 | FLOAT_32 => 5,
            INT_48 => 7,
            INT_56 => 8,
            _ => FORM_BYTES_MAX as u8,
        };
        tag += 1;
    }
    table
};

/// Bytes of the form that starts `run`.
#[inline]
pub fn form_bytes(run: &[u8]) -> usize {
    usize::from(FORM_BYTES[usize::from(run[0])])
}

/// The form of a score that sorts among others of its kind as the scores do, byte by byte: integers
/// up to 21 bits. None of these forms begins another.
#[derive(Clone, Copy)]
pub struct SortedForm {
    /// The form's bytes, the first one highest, and which bits they fill.
    word: u32,
    mask: u32,
}

/// Where a score stands that is compared with another by its form.
pub enum Side {
    Before,
    Behind,
    /// The two are equal, or the form does not tell.
    Unclear,
}

impl SortedForm {
    /// Forms that begin with a lower byte are sorted.
    const WORD_END: u32 = (INT_16 as u32) << 24;

    #[inline]
    pub fn of(form: &StoredScore) -> Option<Self> {
        let [a, b, c, ..] = form.bytes;
        let word = u32::from_be_bytes([a, b, c, 0]);
        let mask = u32::MAX << (32 - 8 * u32::from(form.len.min(4)));
        (word < Self::WORD_END).then_some(SortedForm { word, mask })
    }

    /// Where the score that starts `run` stands.
    #[inline(always)]
    pub fn side(self, run: &[u8]) -> Side {
        let Some(first) = run.first_chunk() else { return Side::Unclear };
        let other = u32::from_be_bytes(*first);
        if other >= Self::WORD_END || (other ^ self.word) & self.mask == 0 {
            Side::Unclear
        } else if other < self.word {
            Side::Before
        } else {
            Side::Behind
        }
    }
}

/// The score that starts `run`, which is known to be sound, and the bytes of its form.
#[inline(always)]
pub fn decode(run: &[u8]) -> (f64, usize) {
    let tag = run[0];
    let len = form_bytes(run);
    let score = match tag {
        0..0x80 => f64::from(tag),
        0x80..0xc0 => f64::from(u16::from_be_bytes([tag & 0x3f, run[1]])),
        0xc0..0xe0 => f64::from(u32::from_be_bytes([0, tag & 0x1f, run[1], run[2]])),
        FLOAT_32 => f64::from(f32::from_le_bytes([run[1], run[2], run[3], run[4]])),
        INT_16..=INT_56 => integer(run, len) as f64,
        _ => {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&run[1..9]);
            f64::from_le_bytes(bytes)
        }
    };
    (score, len)
}

/// The little-endian signed integer behind the tag of a form of `len` bytes.
#[inline]
fn integer(run: &[u8], len: usize) -> i64 {
    let unused = 64 - 8 * (len as u32 - 1);
    // What lies behind it is read along where there is something, and shifted out.
    let wide = match run.first_chunk::<FORM_BYTES_MAX>() {
        Some([_, bytes @ ..]) => *bytes,
        None => short_integer(run, len),
    };
    i64::from_le_bytes(wide) << unused >> unused
}

/// The bytes of an integer near the end of a run.
#[inline(never)]
fn short_integer(run: &[u8], len: usize) -> [u8; 8] {
    let mut wide = [0; 8];
    wide[..len - 1].copy_from_slice(&run[1..len]);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_comes_back_in_as_many_bytes_as_it_needs() {
        for (score, bytes) in [
            (0.0, 1),
            (127.0, 1),
            (128.0, 2),
            (16383.0, 2),
            (16384.0, 3),
            (999_999.0, 3),
            (2_097_151.0, 3),
            (2_097_152.0, 5),
            (-1.0, 3),
            (-32768.0, 3),
            (-32769.0, 5),
            (1_700_000_000_000.0, 7),
            (-1_700_000_000_000.0, 7),
            ((1i64 << 55) as f64, 5),
            (((1i64 << 53) - 1) as f64, 8),
            (-0.0, 5),
            (0.5, 5),
            (0.1, 9),
            (f64::INFINITY, 5),
            (f64::NEG_INFINITY, 5),
            (f64::MAX, 9),
            (f64::MIN_POSITIVE, 9),
            (i64::MIN as f64, 5),
            (i64::MAX as f64, 5),
            (1e300, 9),
        ] {
            let form = StoredScore::new(score);
            let (back, len) = decode(form.as_bytes());
            assert_eq!(back.to_bits(), score.to_bits(), "{score}");
            assert_eq!((len, form.as_bytes().len()), (bytes, bytes), "{score}");
        }
        for shift in 0..63 {
            for near in -1..=1i64 {
                for score in [((1i64 << shift) + near) as f64, -((1i64 << shift) + near) as f64] {
                    assert_eq!(decode(StoredScore::new(score).as_bytes()).0, score);
                }
            }
        }
    }
}
