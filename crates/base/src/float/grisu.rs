//! Decimal digits of a double by Grisu2 (Florian Loitsch, "Printing Floating-Point Numbers Quickly
//! and Accurately with Integers", 2010).
//!
//! COMPAT: its digits always read back as the same double, but about one in a thousand has a digit
//! more than needed, or is not the nearest. Redis and Valkey print what Grisu2 finds, so the
//! shorter text of the standard library would differ; `digits_of_the_peer`.

/// Most digits that can come out.
pub(super) const DIGITS_MAX: usize = 18;

/// Powers of ten from 10^-348 in steps of 10^8, as significands of 64 bits, rounded to nearest.
const POWERS: [u64; 87] = [
    0xfa8f_d5a0_081c_0288,
    0xbaae_e17f_a23e_bf76,
    0x8b16_fb20_3055_ac76,
    0xcf42_894a_5dce_35ea,
    0x9a6b_b0aa_5565_3b2d,
    0xe61a_cf03_3d1a_45df,
    0xab70_fe17_c79a_c6ca,
    0xff77_b1fc_bebc_dc4f,
    0xbe56_91ef_416b_d60c,
    0x8dd0_1fad_907f_fc3c,
    0xd351_5c28_3155_9a83,
    0x9d71_ac8f_ada6_c9b5,
    0xea9c_2277_23ee_8bcb,
    0xaecc_4991_4078_536d,
    0x823c_1279_5db6_ce57,
    0xc210_9436_4dfb_5637,
    0x9096_ea6f_3848_984f,
    0xd774_85cb_2582_3ac7,
    0xa086_cfcd_97bf_97f4,
    0xef34_0a98_172a_ace5,
    0xb238_67fb_2a35_b28e,
    0x84c8_d4df_d2c6_3f3b,
    0xc5dd_4427_1ad3_cdba,
    0x936b_9fce_bb25_c996,
    0xdbac_6c24_7d62_a584,
    0xa3ab_6658_0d5f_daf6,
    0xf3e2_f893_dec3_f126,
    0xb5b5_ada8_aaff_80b8,
    0x8762_5f05_6c7c_4a8b,
    0xc9bc_ff60_34c1_3053,
    0x964e_858c_91ba_2655,
    0xdff9_7724_7029_7ebd,
    0xa6df_bd9f_b8e5_b88f,
    0xf8a9_5fcf_8874_7d94,
    0xb944_7093_8fa8_9bcf,
    0x8a08_f0f8_bf0f_156b,
    0xcdb0_2555_6531_31b6,
    0x993f_e2c6_d07b_7fac,
    0xe45c_10c4_2a2b_3b06,
    0xaa24_2499_6973_92d3,
    0xfd87_b5f2_8300_ca0e,
    0xbce5_0864_9211_1aeb,
    0x8cbc_cc09_6f50_88cc,
    0xd1b7_1758_e219_652c,
    0x9c40_0000_0000_0000,
    0xe8d4_a510_0000_0000,
    0xad78_ebc5_ac62_0000,
    0x813f_3978_f894_0984,
    0xc097_ce7b_c907_15b3,
    0x8f7e_32ce_7bea_5c70,
    0xd5d2_38a4_abe9_8068,
    0x9f4f_2726_179a_2245,
    0xed63_a231_d4c4_fb27,
    0xb0de_6538_8cc8_ada8,
    0x83c7_088e_1aab_65db,
    0xc45d_1df9_4271_1d9a,
    0x924d_692c_a61b_e758,
    0xda01_ee64_1a70_8dea,
    0xa26d_a399_9aef_774a,
    0xf209_787b_b47d_6b85,
    0xb454_e4a1_79dd_1877,
    0x865b_8692_5b9b_c5c2,
    0xc835_53c5_c896_5d3d,
    0x952a_b45c_fa97_a0b3,
    0xde46_9fbd_99a0_5fe3,
    0xa59b_c234_db39_8c25,
    0xf6c6_9a72_a398_9f5c,
    0xb7dc_bf53_54e9_bece,
    0x88fc_f317_f222_41e2,
    0xcc20_ce9b_d35c_78a5,
    0x9816_5af3_7b21_53df,
    0xe2a0_b5dc_971f_303a,
    0xa8d9_d153_5ce3_b396,
    0xfb9b_7cd9_a4a7_443c,
    0xbb76_4c4c_a7a4_4410,
    0x8bab_8eef_b640_9c1a,
    0xd01f_ef10_a657_842c,
    0x9b10_a4e5_e991_3129,
    0xe710_9bfb_a19c_0c9d,
    0xac28_20d9_623b_f429,
    0x8044_4b5e_7aa7_cf85,
    0xbf21_e440_03ac_dd2d,
    0x8e67_9c2f_5e44_ff8f,
    0xd433_179d_9c8c_b841,
    0x9e19_db92_b4e3_1ba9,
    0xeb96_bf6e_badf_77d9,
    0xaf87_023b_9bf0_ee6b,
];
const POWER_FIRST: i32 = -348;
const POWER_STEP: i32 = 8;
/// After scaling, the binary exponent lies here, so that a number is a whole part of 32 bits and a
/// fraction of the rest.
const EXPONENT_MIN: i32 = -60;
const EXPONENT_MAX: i32 = -32;

/// Significant digits, and the power of ten of the last one.
pub(super) struct Decimal {
    digits: [u8; DIGITS_MAX],
    len: usize,
    pub(super) last: i32,
}

/// `significand * 2^exponent`.
#[derive(Clone, Copy)]
struct Binary {
    significand: u64,
    exponent: i32,
}

impl Binary {
    fn normalized(self) -> Binary {
        let shift = self.significand.leading_zeros();
        Binary { significand: self.significand << shift, exponent: self.exponent - shift as i32 }
    }

    /// The upper half of the product, rounded.
    fn times(self, other: Binary) -> Binary {
        let product = u128::from(self.significand) * u128::from(other.significand);
        Binary {
            significand: ((product + (1 << 63)) >> 64) as u64,
            exponent: self.exponent + other.exponent + 64,
        }
    }
}

/// Where digits may stop: the distance from the upper bound to the value and to the lower bound.
struct Interval {
    value: u64,
    lower: u64,
}

impl Decimal {
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.len]
    }

    /// `magnitude` is finite and above zero.
    pub(super) fn new(magnitude: f64) -> Decimal {
        let value = split(magnitude);
        let is_lower_nearer = value.significand == 1 << 52;
        let upper =
            Binary { significand: (value.significand << 1) + 1, exponent: value.exponent - 1 }
                .normalized();
        let lower_shift = if is_lower_nearer { 2 } else { 1 };
        let lower_exponent = value.exponent - lower_shift;
        let lower = Binary {
            significand: ((value.significand << lower_shift) - 1)
                << (lower_exponent - upper.exponent),
            exponent: upper.exponent,
        };
        let (power, power_of_ten) = scale(upper.exponent);
        let value = value.normalized().times(power);
        let upper = upper.times(power);
        let lower = lower.times(power);
        // The products may be off by one unit: stay inside both bounds.
        let top = Binary { significand: upper.significand - 1, exponent: upper.exponent };
        let bounds = Interval {
            value: top.significand - value.significand,
            lower: top.significand - (lower.significand + 1),
        };
        let mut decimal = Decimal { digits: [0; DIGITS_MAX], len: 0, last: -power_of_ten };
        decimal.generate(top, &bounds);
        decimal
    }

    fn push(&mut self, digit: u64) {
        if digit != 0 || self.len > 0 {
            self.digits[self.len] = b'0' + digit as u8;
            self.len += 1;
        }
    }

    /// Digits of `top` from the left until what is left over lies within reach.
    fn generate(&mut self, top: Binary, bounds: &Interval) {
        let shift = -top.exponent;
        let fraction_mask = (1u64 << shift) - 1;
        let mut whole = top.significand >> shift;
        let mut fraction = top.significand & fraction_mask;
        let mut unit = 1_000_000_000u64;
        for digits_left in (0..10).rev() {
            self.push(whole / unit);
            whole %= unit;
            let rest = (whole << shift) + fraction;
            if rest <= bounds.lower {
                self.last += digits_left;
                return self.approach(bounds, rest, unit << shift);
            }
            unit /= 10;
        }
        let mut scaled = Interval { value: bounds.value, lower: bounds.lower };
        loop {
            fraction = fraction.wrapping_mul(10);
            scaled.lower = scaled.lower.wrapping_mul(10);
            scaled.value = scaled.value.wrapping_mul(10);
            self.last -= 1;
            self.push(fraction >> shift);
            fraction &= fraction_mask;
            // A double has at most 17 digits; the second condition only bounds the loop.
            if fraction < scaled.lower || self.len == DIGITS_MAX {
                return self.approach(&scaled, fraction, fraction_mask + 1);
            }
        }
    }

    /// Lowers the last digit while that brings the text nearer to the value. `rest` is how far the
    /// digits are below the top, `unit` what one step of the last digit is worth.
    fn approach(&mut self, bounds: &Interval, rest: u64, unit: u64) {
        let mut rest = rest;
        while rest < bounds.value
            && bounds.lower.saturating_sub(rest) >= unit
            && (rest + unit < bounds.value || bounds.value - rest > rest + unit - bounds.value)
        {
            self.digits[self.len - 1] -= 1;
            rest += unit;
        }
    }
}

fn split(magnitude: f64) -> Binary {
    let bits = magnitude.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = ((bits >> 52) & 0x7ff) as i32;
    if biased == 0 {
        Binary { significand: fraction, exponent: -1074 }
    } else {
        Binary { significand: fraction | 1 << 52, exponent: biased - 1075 }
    }
}

/// The power of ten that brings a number with this exponent into range, and its exponent of ten.
/// Two may fit: the one found first from this guess is part of what Redis prints.
fn scale(exponent: i32) -> (Binary, i32) {
    let guess = (f64::from(-(exponent + POWERS.len() as i32)) * std::f64::consts::LOG10_2) as i32;
    let mut index = (guess - POWER_FIRST) / POWER_STEP;
    loop {
        let power_of_ten = POWER_FIRST + index * POWER_STEP;
        // The floor of the binary logarithm, exact for all powers in the table.
        let power_exponent = ((power_of_ten * 217_706) >> 16) - 63;
        match exponent + power_exponent + 64 {
            scaled if scaled < EXPONENT_MIN => index += 1,
            scaled if scaled > EXPONENT_MAX => index -= 1,
            _ => {
                let significand = POWERS[index as usize];
                return (Binary { significand, exponent: power_exponent }, power_of_ten);
            }
        }
    }
}
