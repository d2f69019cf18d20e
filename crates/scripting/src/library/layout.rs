//! The format language of `struct`: byte order, alignment, and options with their sizes; and the
//! bytes of integers. Taking arguments and giving results is the library's.

/// Widest integer, in bytes.
pub const INTEGER_BYTES_MAX: usize = 32;
/// The alignment of `!` without a number: that of a double.
const ALIGNMENT_DEFAULT: usize = 8;

/// What one item of a format stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Integer {
        bytes: usize,
        is_signed: bool,
    },
    Float,
    Double,
    /// One byte that stands for nothing.
    Padding,
    /// `cn`: so many bytes; zero for as many as there are.
    Chars(usize),
    /// `s`: ended by a zero byte.
    Terminated,
    /// A change of byte order or alignment, or a space.
    Control,
    /// No option.
    Unknown(u8),
}

/// Why a format is refused, in the words of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatFault {
    SizeOverflow,
    IntegerTooWide(usize),
    NotAPowerOfTwo(usize),
}

impl FormatFault {
    pub fn text(&self) -> String {
        match self {
            FormatFault::SizeOverflow => "integral size overflow".to_owned(),
            FormatFault::IntegerTooWide(bytes) => {
                format!("integral size {bytes} is larger than limit of {INTEGER_BYTES_MAX}")
            }
            FormatFault::NotAPowerOfTwo(alignment) => {
                format!("alignment {alignment} is not a power of 2")
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Big,
    Little,
}

/// A format as it is read, item by item.
#[derive(Clone, Debug)]
pub struct Format<'a> {
    rest: &'a [u8],
    pub order: Order,
    alignment: usize,
    /// The option letter of the last item.
    pub letter: u8,
}

impl<'a> Format<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Format { rest: text, order: Order::Little, alignment: 1, letter: 0 }
    }

    /// The next item, or none at the end.
    ///
    /// COMPAT: a format ends at its first zero byte.
    pub fn item(&mut self) -> Result<Option<Item>, FormatFault> {
        let Some((&letter, rest)) = self.rest.split_first() else { return Ok(None) };
        if letter == 0 {
            return Ok(None);
        }
        self.rest = rest;
        self.letter = letter;
        let integer = |bytes| Item::Integer { bytes, is_signed: letter.is_ascii_lowercase() };
        Ok(Some(match letter {
            b'b' | b'B' => integer(1),
            b'h' | b'H' => integer(2),
            b'l' | b'L' | b'T' => integer(8),
            b'i' | b'I' => match self.number()?.unwrap_or(4) {
                bytes @ 0..=INTEGER_BYTES_MAX => integer(bytes),
                bytes => return Err(FormatFault::IntegerTooWide(bytes)),
            },
            b'f' => Item::Float,
            b'd' => Item::Double,
            b'x' => Item::Padding,
            b'c' => Item::Chars(self.number()?.unwrap_or(1)),
            b's' => Item::Terminated,
            b' ' | b'<' | b'>' | b'!' => Item::Control,
            other => Item::Unknown(other),
        }))
    }

    /// Carries out the control option that was just read.
    pub fn control(&mut self) -> Result<(), FormatFault> {
        match self.letter {
            b'<' => self.order = Order::Little,
            b'>' => self.order = Order::Big,
            b'!' => {
                let alignment = self.number()?.unwrap_or(ALIGNMENT_DEFAULT);
                if !alignment.is_power_of_two() {
                    return Err(FormatFault::NotAPowerOfTwo(alignment));
                }
                self.alignment = alignment;
            }
            _ => {}
        }
        Ok(())
    }

    /// Bytes to leave free before an item that would begin at `offset`.
    ///
    /// COMPAT: sizes that are no power of two go through the same mask.
    pub fn padding(&self, item: Item, offset: usize) -> usize {
        let size = match item {
            Item::Integer { bytes, .. } => bytes,
            Item::Float => 4,
            Item::Double => 8,
            Item::Padding => 1,
            _ => 0,
        };
        match size.min(self.alignment) {
            0 => 0,
            size => (size - (offset & (size - 1))) & (size - 1),
        }
    }

    /// Digits, if there are any: at most what a C int holds.
    fn number(&mut self) -> Result<Option<usize>, FormatFault> {
        let mut value = None;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            self.rest = rest;
            let longer = value.unwrap_or(0i32).checked_mul(10);
            let longer = longer.and_then(|value| value.checked_add(i32::from(digit - b'0')));
            value = Some(longer.ok_or(FormatFault::SizeOverflow)?);
        }
        Ok(value.map(|value| value as usize))
    }
}

impl Item {
    /// Bytes that the item takes by itself; those of strings depend on the data.
    pub fn size(self) -> usize {
        match self {
            Item::Integer { bytes, .. } | Item::Chars(bytes) => bytes,
            Item::Float => 4,
            Item::Double => 8,
            Item::Padding => 1,
            Item::Terminated | Item::Control | Item::Unknown(_) => 0,
        }
    }
}

/// Adds the last `bytes` bytes of a value, zeros beyond 64 bits.
pub fn append_integer(value: u64, bytes: usize, order: Order, out: &mut Vec<u8>) {
    let start = out.len();
    let little = value.to_le_bytes();
    out.extend((0..bytes).map(|index| little.get(index).copied().unwrap_or(0)));
    if order == Order::Big {
        out[start..].reverse();
    }
}

/// Reads an integer of `data.len()` bytes, of which the last 64 bits count.
///
/// COMPAT: the place of the sign is counted modulo 64 bits, so that in nine bytes it is bit 7.
pub fn read_integer(data: &[u8], is_signed: bool, order: Order) -> f64 {
    let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = match order {
        Order::Big => data.iter().fold(0, shift),
        Order::Little => data.iter().rev().fold(0, shift),
    };
    if !is_signed {
        return value as f64;
    }
    let sign_and_above = u64::MAX.wrapping_shl((8 * data.len() as u32).wrapping_sub(1));
    if value & sign_and_above == 0 {
        return value as f64;
    }
    (value | sign_and_above) as i64 as f64
}

/// Adds bytes that are given lowest first.
pub fn append_ordered(mut little: impl AsMut<[u8]>, order: Order, out: &mut Vec<u8>) {
    let bytes = little.as_mut();
    if order == Order::Big {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

/// Bytes lowest first; none if `data` is too short.
pub fn ordered<const N: usize>(data: &[u8], order: Order) -> Option<[u8; N]> {
    let mut bytes: [u8; N] = data.get(..N)?.try_into().ok()?;
    if order == Order::Big {
        bytes.reverse();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Result<Vec<Item>, FormatFault> {
        let mut format = Format::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(item) = format.item()? {
            if item == Item::Control {
                format.control()?;
            }
            found.push(item);
        }
        Ok(found)
    }

    #[test]
    fn options() {
        let signed = |bytes| Item::Integer { bytes, is_signed: true };
        assert_eq!(items("bi3l").unwrap(), [signed(1), signed(3), signed(8)]);
        assert_eq!(items("cc0c12").unwrap(), [Item::Chars(1), Item::Chars(0), Item::Chars(12)]);
        assert_eq!(items("T").unwrap(), [Item::Integer { bytes: 8, is_signed: false }]);
        assert_eq!(items("z\0i").unwrap(), [Item::Unknown(b'z')]);
        assert_eq!(items("!4 <>!").unwrap(), [Item::Control; 5]);
    }

    /// CVE-2018-11219: a width is bounded before anything is done with it.
    #[test]
    fn widths_are_bounded() {
        assert_eq!(items("i32").unwrap().len(), 1);
        assert_eq!(items("i33"), Err(FormatFault::IntegerTooWide(33)));
        for text in ["i2147483648", "c2147483648", "!99999999999999999999", "I4294967296"] {
            assert_eq!(items(text), Err(FormatFault::SizeOverflow), "{text}");
        }
        assert_eq!(items("c2147483647").unwrap(), [Item::Chars(i32::MAX as usize)]);
        assert_eq!(items("!0"), Err(FormatFault::NotAPowerOfTwo(0)));
        assert_eq!(items("!3"), Err(FormatFault::NotAPowerOfTwo(3)));
    }

    #[test]
    fn integers_in_both_orders() {
        let mut out = Vec::new();
        append_integer(0x0102_0304, 4, Order::Big, &mut out);
        append_integer(0x0102_0304, 3, Order::Little, &mut out);
        append_integer(u64::MAX, 9, Order::Little, &mut out);
        assert_eq!(out[..7], [1, 2, 3, 4, 4, 3, 2]);
        assert_eq!(out[7..], [255, 255, 255, 255, 255, 255, 255, 255, 0]);
        assert_eq!(read_integer(&[1, 2], true, Order::Big), 258.0);
        assert_eq!(read_integer(&[255; 3], true, Order::Little), -1.0);
        assert_eq!(read_integer(&[255; 3], false, Order::Little), 16_777_215.0);
        assert_eq!(read_integer(&[255; 16], true, Order::Little), -1.0);
        assert_eq!(read_integer(&[], true, Order::Little), 0.0);
        assert_eq!(read_integer(&[27, 3, 0, 0, 0, 0, 0, 0, 0], true, Order::Little), -101.0);
    }

    #[test]
    fn alignment() {
        let mut format = Format::new(b"!4id");
        assert_eq!(format.item(), Ok(Some(Item::Control)));
        format.control().unwrap();
        let integer = format.item().unwrap().unwrap();
        assert_eq!(format.padding(integer, 1), 3);
        let double = format.item().unwrap().unwrap();
        assert_eq!((format.padding(double, 4), format.padding(double, 6)), (0, 2));
        assert_eq!(format.padding(Item::Chars(8), 3), 0);
    }
}
