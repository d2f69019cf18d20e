//! `numkeys key [key ...] <side> [COUNT n]`: how LMPOP, ZMPOP and their blocking kin are called.

use crate::error::Refusal;
use russet_base::text::eq_ignore_case;
use russet_base::{Args, num};

/// A count of one or more, or else this text.
pub fn positive(arg: &[u8], refusal: &'static str) -> Result<usize, Refusal> {
    let value = num::parse_i64(arg).and_then(|value| usize::try_from(value).ok());
    value.filter(|value| *value > 0).ok_or(Refusal::text(refusal))
}

/// Keys of which the first that holds something is popped from, on one side.
#[derive(Clone, Copy)]
pub struct ManyKeys<'a, Side> {
    keys: Args<'a>,
    pub side: Side,
    pub count: usize,
}

impl<'a, Side> ManyKeys<'a, Side> {
    /// Reads the arguments from `numkeys` on; `side` reads the one behind the keys.
    pub fn parse(
        args: Args<'a>,
        side: impl FnOnce(&[u8]) -> Result<Side, Refusal>,
    ) -> Result<Self, Refusal> {
        let keys_len = positive(args.at(0), "ERR numkeys should be greater than 0")?;
        let Some(arg) = args.get(keys_len.saturating_add(1)) else {
            return Err(Refusal::Syntax);
        };
        let side = side(arg)?;
        let mut options = args.from(keys_len + 2).iter();
        let mut count = None;
        // COMPAT: a bad count is refused before a second one; test `refusals_come_in_order`.
        while let Some(name) = options.next() {
            let Some(arg) = options.next() else { return Err(Refusal::Syntax) };
            if count.is_some() || !eq_ignore_case(name, b"count") {
                return Err(Refusal::Syntax);
            }
            count = Some(positive(arg, "ERR count should be greater than 0")?);
        }
        Ok(ManyKeys { keys: args.from(1).first(keys_len), side, count: count.unwrap_or(1) })
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a, Side> {
        self.keys.iter()
    }
}
