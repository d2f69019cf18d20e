#![forbid(unsafe_code)]
//! Lua 5.1 for scripts that run inside the server: compiler, machine, libraries, and the proof of
//! which keys a script can reach. It knows the server only as a [`Host`].
//!
//! Ours, and not the C library, because every loop must be killable, memory accounted to the byte,
//! what a run made gone in one cut, and the use of keys readable from the compiled code.

pub mod call;
mod compile;
pub mod fault;
mod hashing;
pub mod heap;
pub mod host;
pub mod keys;
pub mod library;
pub mod limits;
mod meter;
pub mod number;
mod proto;
pub mod state;
mod syntax;
pub mod value;
mod vm;

pub use call::{Call, NativeFn, Outcome};
pub use compile::{Purpose, compile, compile_for};
pub use fault::Fault;
pub use heap::Heap;
pub use host::{Host, NoHost, Tick};
pub use keys::KeysUse;
pub use proto::{Chunk, Proto};
pub use state::{RootId, State};
pub use syntax::SyntaxError;
pub use value::{NativeRef, StrRef, TableRef, Value};
