#![forbid(unsafe_code)]
//! RESP2 and RESP3 without sockets: a parser of requests, writers of replies, and replies as
//! values. It knows no command and does no input or output.

mod bulks;
mod decimal;
pub mod output;
pub mod reply;
pub mod request;
pub mod sink;
pub mod value;
pub mod writer;

pub use bulks::BulkWriter;
pub use output::{Output, Wire};
pub use reply::{DecodeError, decode};
pub use request::{Batch, LongArg, ProtocolError, RequestLimits, RequestParser, Step};
pub use sink::{Mark, Resp, Sink};
pub use value::{Value, ValueSink};
pub use writer::RespWriter;
