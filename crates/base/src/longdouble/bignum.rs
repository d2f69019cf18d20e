//! Whole numbers of any length, with the few operations that reading and printing long doubles
//! takes. Lengths are bounded by the callers: some thousand digits.

use crate::binary::Unrounded;

/// 32-bit limbs, the least first, without zero limbs at the end.
#[derive(Clone, Debug)]
pub(super) struct Bignum {
    limbs: Vec<u32>,
}

const LIMB_BITS: u64 = 32;

impl Bignum {
    /// A number from its decimal digits.
    pub fn from_digits(digits: &[u8]) -> Self {
        let mut number = Bignum { limbs: Vec::with_capacity(digits.len() / 9 + 1) };
        for chunk in digits.chunks(9) {
            let value = chunk.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            number.multiply_add(10u32.pow(chunk.len() as u32), value);
        }
        number
    }

    /// `mantissa * 2^bits`.
    pub fn shifted(mantissa: u64, bits: u32) -> Self {
        let mut number = Bignum { limbs: vec![mantissa as u32, (mantissa >> 32) as u32] };
        number.trim();
        number.shift_left(u64::from(bits));
        number
    }

    pub fn multiply_by_power_of_five(&mut self, mut power: u32) {
        const STEP: u32 = 13; // 5^13 is the greatest power of five in 32 bits
        while power > 0 {
            let step = power.min(STEP);
            self.multiply_add(5u32.pow(step), 0);
            power -= step;
        }
    }

    /// The highest 128 bits.
    pub fn top(&self) -> Unrounded {
        let first = self.limbs.len().saturating_sub(4);
        let magnitude =
            self.limbs[first..].iter().rev().fold(0, |sum, limb| sum << 32 | u128::from(*limb));
        // The top limb may be nearly empty: that still leaves 97 bits, more than any format has.
        let has_more = self.limbs[..first].iter().any(|limb| *limb != 0);
        Unrounded { magnitude, exponent: (first as u64 * LIMB_BITS) as i64, has_more }
    }

    /// The quotient to 66 bits or more, and whether there was a remainder. Neither number is zero.
    pub fn divide(mut self, mut divisor: Bignum) -> Unrounded {
        const QUOTIENT_BITS: u64 = 66;
        let shift = (divisor.bits() + QUOTIENT_BITS) as i64 - self.bits() as i64;
        if shift >= 0 {
            self.shift_left(shift.unsigned_abs());
        } else {
            divisor.shift_left(shift.unsigned_abs());
        }
        // Now dividend < 2 * divisor * 2^66: long division, one bit of quotient at a time.
        divisor.shift_left(QUOTIENT_BITS);
        let mut magnitude = 0u128;
        for _ in 0..=QUOTIENT_BITS {
            magnitude <<= 1;
            if self.is_at_least(&divisor) {
                self.subtract(&divisor);
                magnitude |= 1;
            }
            self.shift_left(1);
        }
        Unrounded { magnitude, exponent: -shift, has_more: !self.limbs.is_empty() }
    }

    /// Appends the decimal digits.
    pub fn write(mut self, out: &mut Vec<u8>) {
        const CHUNK: u64 = 1_000_000_000;
        let mut chunks = Vec::new();
        while !self.limbs.is_empty() {
            let mut remainder = 0u64;
            for limb in self.limbs.iter_mut().rev() {
                let value = remainder << LIMB_BITS | u64::from(*limb);
                *limb = (value / CHUNK) as u32;
                remainder = value % CHUNK;
            }
            self.trim();
            chunks.push(remainder);
        }
        let mut chunks = chunks.into_iter().rev();
        out.extend_from_slice(chunks.next().unwrap_or(0).to_string().as_bytes());
        chunks.for_each(|chunk| out.extend_from_slice(format!("{chunk:09}").as_bytes()));
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.limbs {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= LIMB_BITS;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
    }

    fn shift_left(&mut self, bits: u64) {
        let (whole, part) = ((bits / LIMB_BITS) as usize, bits % LIMB_BITS);
        if self.limbs.is_empty() {
            return;
        }
        let mut carry = 0u64;
        for limb in &mut self.limbs {
            carry |= u64::from(*limb) << part;
            *limb = carry as u32;
            carry >>= LIMB_BITS;
        }
        if carry != 0 {
            self.limbs.push(carry as u32);
        }
        if whole > 0 {
            self.limbs.splice(0..0, std::iter::repeat_n(0, whole));
        }
    }

    fn is_at_least(&self, other: &Bignum) -> bool {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev())).is_ge()
    }

    /// Takes away a number that is no greater.
    fn subtract(&mut self, other: &Bignum) {
        let mut borrow = 0i64;
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let taken = i64::from(other.limbs.get(index).copied().unwrap_or(0));
            borrow += i64::from(*limb) - taken;
            *limb = borrow as u32;
            borrow >>= LIMB_BITS;
        }
        self.trim();
    }

    fn bits(&self) -> u64 {
        let top = self.limbs.last().map_or(0, |limb| limb.leading_zeros());
        self.limbs.len() as u64 * LIMB_BITS - u64::from(top)
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn digits_of(number: Bignum) -> String {
        let mut out = Vec::new();
        number.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn digits_come_back_as_they_went_in() {
        for digits in ["1", "999999999", "1000000000", "340282366920938463463374607431768211456"] {
            assert_eq!(digits_of(Bignum::from_digits(digits.as_bytes())), digits);
        }
        let long = "1234567890".repeat(100);
        assert_eq!(digits_of(Bignum::from_digits(long.as_bytes())), long);
        let power = digits_of(Bignum::shifted(1, 128));
        assert_eq!(power, "340282366920938463463374607431768211456");
    }

    #[test]
    fn arithmetic_agrees_with_128_bit_integers() {
        let mut random = Random::from_seed(2);
        for _ in 0..2_000 {
            let wide = |random: &mut Random| {
                let value = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
                (value >> random.below(100)).max(1)
            };
            let (a, b) = (wide(&mut random), wide(&mut random));
            let number = |value: u128| Bignum::from_digits(value.to_string().as_bytes());
            assert_eq!(number(a).bits(), u64::from(128 - a.leading_zeros()));
            assert_eq!(number(a).is_at_least(&number(b)), a >= b);
            let mut difference = number(a.max(b));
            difference.subtract(&number(a.min(b)));
            assert_eq!(digits_of(difference), a.abs_diff(b).to_string());
            // With 66 bits asked for, a quotient that is shorter comes out scaled up.
            let quotient = number(a).divide(number(b));
            let whole = match quotient.exponent {
                up @ 0.. => quotient.magnitude << up,
                down => quotient.magnitude.checked_shr(down.unsigned_abs() as u32).unwrap_or(0),
            };
            assert!(quotient.exponent > 0 || whole == a / b, "{a} / {b}");
            assert!(quotient.magnitude >> 65 != 0);
        }
    }

    #[test]
    fn powers_of_five() {
        let mut number = Bignum::from_digits(b"3");
        number.multiply_by_power_of_five(30);
        assert_eq!(digits_of(number), (3 * 5u128.pow(30)).to_string());
    }
}
