//! All the registers, a byte each: the form in which HyperLogLogs are merged.

use super::header::{Encoding, Parts};
use super::{Fault, REGISTERS, dense, sparse};

#[derive(Clone)]
pub struct Registers(pub(super) [u8; REGISTERS]);

impl Default for Registers {
    fn default() -> Self {
        Registers([0; REGISTERS])
    }
}

impl Registers {
    /// Raises each register to that of the other value.
    pub(super) fn merge(&mut self, parts: Parts<'_>) -> Result<(), Fault> {
        match parts.encoding {
            Encoding::Dense => {
                dense::merge_into(self, parts.registers);
                Ok(())
            }
            Encoding::Sparse => sparse::merge_into(self, &[parts.registers]),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().copied()
    }
}
