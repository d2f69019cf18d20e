#![forbid(unsafe_code)]
//! The ground everything stands on: arguments, time, randomness, numbers and every named limit.
//! It knows nothing of commands, sockets or storage.

pub mod args;
mod binary;
pub mod capacity;
pub mod checksum;
pub mod clock;
pub mod crc64;
pub mod digest;
pub mod escape;
pub mod float;
pub mod glob;
pub mod hash;
pub mod limits;
pub mod longdouble;
pub mod lzf;
pub mod num;
pub mod random;
pub mod shared;
pub mod slot;
pub mod text;

pub use args::{Args, OwnedArgs, SharedArgs, Span};
pub use clock::{Clock, ManualClock, SystemClock, UnixMillis};
pub use random::Random;
pub use shared::SharedBytes;
