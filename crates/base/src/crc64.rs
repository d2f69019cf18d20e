//! The CRC-64 that closes dumps and RDB files: the polynomial of Jones, reflected, start 0.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
/// Bytes that are taken at a time.
const STEP: usize = 8;

/// `TABLES[n][byte]` is the sum of a byte with `n` zeros behind it.
static TABLES: [[u64; 256]; STEP] = {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STEP {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][(crc & 0xff) as usize] ^ crc >> 8;
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

/// Long input is added up in lanes side by side: within one, each step waits for the one before.
const LANES: usize = 4;
const LANE_BYTES: usize = 2048;
/// What a sum is multiplied by to have a lane of zeros behind it: x to the power of its bits.
const LANE_SHIFT: u64 = {
    // The highest bit is x to the power of 0.
    let mut power = 1 << 63;
    let mut bit = 0;
    while bit < LANE_BYTES * 8 {
        power = times_x(power);
        bit += 1;
    }
    power
};

const fn times_x(value: u64) -> u64 {
    if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 }
}

/// The product of two polynomials, modulo ours.
fn multiply(mut one: u64, other: u64) -> u64 {
    let mut product = 0;
    for bit in (0..64).rev() {
        product ^= one & (other >> bit & 1).wrapping_neg();
        one = times_x(one);
    }
    product
}

#[inline(always)]
fn step(crc: u64, bytes: [u8; STEP]) -> u64 {
    let word = (crc ^ u64::from_le_bytes(bytes)).to_le_bytes();
    (0..STEP).fold(0, |sum, at| sum ^ TABLES[STEP - 1 - at][usize::from(word[at])])
}

fn add_lanes(crc: u64, block: &[u8; LANES * LANE_BYTES]) -> u64 {
    let mut sums = [0; LANES];
    sums[0] = crc;
    let lane = |number: usize| block[number * LANE_BYTES..][..LANE_BYTES].as_chunks::<STEP>().0;
    let lanes: [_; LANES] = std::array::from_fn(lane);
    for at in 0..LANE_BYTES / STEP {
        for (sum, lane) in sums.iter_mut().zip(lanes) {
            *sum = step(*sum, lane[at]);
        }
    }
    sums.into_iter().reduce(|before, sum| multiply(before, LANE_SHIFT) ^ sum).unwrap_or(crc)
}

/// A sum of bytes that come in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc64(u64);

impl Crc64 {
    pub fn update(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let (blocks, bytes) = bytes.as_chunks::<{ LANES * LANE_BYTES }>();
        for block in blocks {
            crc = add_lanes(crc, block);
        }
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for bytes in steps {
            crc = step(crc, *bytes);
        }
        for byte in rest {
            crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
        }
        self.0 = crc;
    }

    pub fn value(self) -> u64 {
        self.0
    }
}

pub fn crc64(bytes: &[u8]) -> u64 {
    let mut sum = Crc64::default();
    sum.update(bytes);
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::{Crc64, crc64};

    #[test]
    fn the_check_string() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
    }

    #[test]
    fn pieces_come_to_the_same_as_the_whole() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| (at * at / 7) as u8).collect();
        let bytewise = bytes.iter().fold(Crc64::default(), |mut sum, byte| {
            sum.update(std::slice::from_ref(byte));
            sum
        });
        assert_eq!(bytewise.value(), crc64(&bytes));
        for cut in 0..40 {
            let mut sum = Crc64::default();
            sum.update(&bytes[..cut]);
            sum.update(&bytes[cut..]);
            assert_eq!(sum.value(), crc64(&bytes), "{cut}");
        }
    }
}
