//! Bloom filters, as the module of Redis saves them.

use super::error::Result;
use super::input::Input;
use super::module;
use super::output::Output;
use super::value::{Found, Put};
use russet_engine::types::bloom::{Bloom, LayerParts};
use std::io::{self, Read, Write};

pub const NAME: &[u8; 9] = b"MBbloom--";
/// The version of the module's encoding that is written; older ones are read.
const VERSION: u64 = 4;
/// The first versions with options, and with a factor of growth.
const VERSION_OPTIONS: u64 = 2;
const VERSION_GROWTH: u64 = 4;
const GROWTH_DEFAULT: u64 = 2;

/// Sizes are not rounded to powers of two; hashes have 64 bits; the filter must not grow.
const OPTION_NO_ROUND: u64 = 1;
const OPTION_HASH_64: u64 = 4;
const OPTION_NO_SCALING: u64 = 8;

/// Reads what follows the name and the version.
pub fn read<R: Read>(input: &mut Input<R>, version: u64, put: Put<'_>) -> Result<Found> {
    if version > VERSION {
        return Err(input.unsupported(format!("Bloom filters in version {version}")));
    }
    let items = module::unsigned(input)?;
    let layers = module::unsigned(input)?;
    let options = if version >= VERSION_OPTIONS { module::unsigned(input)? } else { 0 };
    let growth = if version >= VERSION_GROWTH { module::unsigned(input)? } else { GROWTH_DEFAULT };
    if options & OPTION_HASH_64 == 0 {
        return Err(input.unsupported("Bloom filters of the old module, with 32-bit hashes"));
    }
    let growth = u32::try_from(growth).map_err(|_| input.corrupt("a Bloom filter's growth"))?;
    let mut bloom = Bloom::loading((options & OPTION_NO_SCALING == 0).then_some(growth));
    let mut room = Vec::new();
    let mut items_sum = 0u64;
    for _ in 0..layers {
        let capacity = module::unsigned(input)?;
        let error_rate = module::double(input)?;
        let hashes = module::unsigned(input)?;
        let _bits_per_item = module::double(input)?;
        let bits = module::unsigned(input)?;
        let _power_of_two = module::unsigned(input)?;
        module::string(input, &mut room)?;
        let layer_items = module::unsigned(input)?;
        items_sum = items_sum.saturating_add(layer_items);
        let parts = LayerParts {
            capacity,
            error_rate,
            hashes: u32::try_from(hashes).unwrap_or(0),
            items: layer_items,
            bits: &room,
        };
        if bits != room.len() as u64 * 8 || !bloom.add(parts) {
            return Err(input.corrupt("a Bloom filter whose parts don't belong together"));
        }
    }
    module::end(input)?;
    if items != items_sum {
        return Err(input.corrupt("a Bloom filter that has lost count"));
    }
    let value = bloom.finish().ok_or_else(|| input.corrupt("a Bloom filter without a layer"))?;
    put(value);
    Ok(Found::Value)
}

pub fn write<W: Write>(output: &mut Output<W>, bloom: &Bloom) -> io::Result<()> {
    output.length(module::id_of(NAME, VERSION))?;
    module::write_unsigned(output, bloom.len() as u64)?;
    module::write_unsigned(output, bloom.layers() as u64)?;
    let scaling = if bloom.expansion().is_some() { 0 } else { OPTION_NO_SCALING };
    module::write_unsigned(output, OPTION_NO_ROUND | OPTION_HASH_64 | scaling)?;
    module::write_unsigned(output, bloom.expansion().unwrap_or(0).into())?;
    for layer in bloom.parts() {
        module::write_unsigned(output, layer.capacity)?;
        module::write_double(output, layer.error_rate)?;
        module::write_unsigned(output, layer.hashes.into())?;
        module::write_double(output, layer.bits_per_item())?;
        module::write_unsigned(output, layer.bits.len() as u64 * 8)?;
        module::write_unsigned(output, 0)?;
        module::write_string(output, layer.bits)?;
        module::write_unsigned(output, layer.items)?;
    }
    module::write_end(output)
}
