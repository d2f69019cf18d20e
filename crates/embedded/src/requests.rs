//! The arguments of one command, or of several, in one buffer.

use crate::error::Error;
use russet_base::args::ARGS_BYTES_MAX;
use russet_base::limits::{ARGUMENTS_MAX, BULK_BYTES_MAX, LONG_STRING_BYTES};
use russet_base::{Args, OwnedArgs, SharedBytes};

/// Room for arguments that is kept between calls.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Places for commands that are kept between calls.
const COMMANDS_KEPT_MAX: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    args: OwnedArgs,
    /// Where each command ends, counted in arguments.
    ends: Vec<usize>,
    /// Arguments of all commands, and the bytes of the short ones.
    count: usize,
    bytes: usize,
    longest_bytes: usize,
    fault: Option<Error>,
}

/// SUBSCRIBE and its kin answer once for each channel, not once for each command.
fn is_subscription(name: &[u8]) -> bool {
    const NAME: &[u8] = b"subscribe";
    name.len().checked_sub(NAME.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(NAME))
}

impl Requests {
    /// Commands that are complete.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Nothing is left of an earlier call, nor of one whose arguments broke off.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.count == 0 && self.fault.is_none()
    }

    #[inline]
    pub fn push(&mut self, arg: &[u8]) {
        self.count += 1;
        if arg.len() >= LONG_STRING_BYTES {
            return self.push_long(arg);
        }
        self.bytes += arg.len();
        if self.bytes > ARGS_BYTES_MAX {
            self.fault = Some(Error::Request("the arguments are too large"));
            return;
        }
        self.args.push(arg);
    }

    /// A long argument has a buffer of its own, which becomes the value when it is stored.
    #[cold]
    fn push_long(&mut self, arg: &[u8]) {
        self.longest_bytes = self.longest_bytes.max(arg.len());
        if arg.len() > BULK_BYTES_MAX {
            self.fault = Some(Error::Request("an argument is too large"));
            return;
        }
        self.args.push_shared(SharedBytes::new(arg.to_vec()));
    }

    /// The arguments since the last one are a command.
    #[inline]
    pub fn end_command(&mut self) {
        let len = self.count - self.ends.last().copied().unwrap_or(0);
        if len == 0 {
            self.fault = Some(Error::Request("a command has a name"));
        } else if len > ARGUMENTS_MAX {
            self.fault = Some(Error::Request("a command has too many arguments"));
        }
        self.ends.push(self.count);
    }

    /// Adds all commands of another list.
    pub fn append(&mut self, other: &Requests) {
        self.fault = self.fault.take().or_else(|| other.fault.clone());
        if self.bytes + other.bytes > ARGS_BYTES_MAX {
            self.fault = Some(Error::Request("the arguments are too large"));
        }
        if other.commands(0).any(|args| args.get(0).is_some_and(is_subscription)) {
            self.fault = Some(Error::Request("subscriptions have a call of their own"));
        }
        if self.fault.is_some() {
            return;
        }
        self.args.extend(other.args.as_args());
        self.ends.extend(other.ends.iter().map(|end| end + self.count));
        self.count += other.count;
        self.bytes += other.bytes;
        self.longest_bytes = self.longest_bytes.max(other.longest_bytes);
    }

    /// Whether it can be run, where no argument may be longer than this. Short ones never are: the
    /// least that `proto-max-bulk-len` can be is more.
    #[inline]
    pub fn check(&self, arg_bytes_max: impl FnOnce() -> usize) -> Result<(), Error> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None if self.longest_bytes > 0 && self.longest_bytes > arg_bytes_max() => {
                Err(Error::Request("an argument is longer than proto-max-bulk-len"))
            }
            None => Ok(()),
        }
    }

    #[inline]
    pub fn command(&self, index: usize) -> Args<'_> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        self.args.as_args().from(start).first(self.ends[index] - start)
    }

    /// The commands from one on.
    pub fn commands(&self, from: usize) -> impl Iterator<Item = Args<'_>> + Clone {
        (from..self.len()).map(|index| self.command(index))
    }

    /// Forgets all commands; room beyond a bound is given back.
    #[inline]
    pub fn clear(&mut self) {
        self.args.clear();
        self.ends.clear();
        if self.bytes.max(self.count) > KEPT_BYTES_MAX || self.ends.capacity() > COMMANDS_KEPT_MAX {
            self.args.shrink_beyond(KEPT_BYTES_MAX);
            self.ends.shrink_to(COMMANDS_KEPT_MAX);
        }
        (self.count, self.bytes, self.longest_bytes) = (0, 0, 0);
        self.fault = None;
    }
}
