//! One connection: its socket, what came in and is not run yet, what is to go out.

use super::stream::Stream;
use super::{Buffers, Service};
use russet_commands::mail::Letter;
use russet_protocol::Batch;
use std::collections::VecDeque;

pub struct Connection<S: Service> {
    pub slot: usize,
    pub generation: u64,
    pub stream: Stream,
    pub client: S::Client,
    /// Input that was not run yet. Empty for an idle connection: reading goes through a buffer of
    /// the thread.
    pub input: Vec<u8>,
    pub batch: Batch,
    /// The batch holds the first commands of the input: they were parsed ahead.
    pub is_parsed: bool,
    /// How much came at once, the last time.
    pub last_read_bytes: usize,
    /// Output that the socket did not take yet, from `sent` on.
    pub output: Vec<u8>,
    pub sent: usize,
    pub is_readable: bool,
    pub is_writable: bool,
    /// The other side may have closed behind what it sent, which is reported only once: reading
    /// goes on until the socket says that there is no more.
    pub may_have_ended: bool,
    /// The other side will send no more.
    pub is_at_end: bool,
    /// The deadline that the loop's timers hold for it.
    pub timer_ms: Option<i64>,
    pub letters: VecDeque<Letter>,
}

impl<S: Service> Connection<S> {
    pub fn output_bytes(&self) -> usize {
        self.output.len() - self.sent
    }

    /// What it holds between turns. A buffer with nothing in it goes back to the thread.
    pub fn buffers(&self) -> Buffers {
        let output_bytes = self.output_bytes();
        Buffers {
            input_bytes: self.input.len(),
            input_capacity_bytes: self.input.capacity(),
            output_bytes,
            output_capacity_bytes: if output_bytes == 0 { 0 } else { self.output.capacity() },
        }
    }
}
