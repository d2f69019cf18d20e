//! The pipeline of a call: from a client's request to its handler and back.
//!
//! `client` is a client without its socket. `dispatch` looks a request up, `gate` checks what may
//! hold it back, `batch` runs small ones together, `room` evicts
//! keys if there is too little memory, `invoke` is the one way to a handler
//! (`handlers`), which sees a `ctx`. `blocking` is for calls that wait for keys, `pause` and `mail`
//! for what comes from other clients.

pub mod batch;
pub mod blocking;
pub mod client;
pub mod ctx;
pub mod dispatch;
pub mod gate;
pub mod handlers;
pub(crate) mod held_output;
pub mod hot_keys;
pub mod http_guard;
pub mod invoke;
pub mod mail;
pub(crate) mod moving;
mod names;
pub mod pause;
pub mod room;
pub mod session;
pub mod tally;
