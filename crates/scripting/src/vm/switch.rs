//! Coroutines that the loop of plain instructions goes on with by itself: it changes stacks at the
//! call that resumes one, and changes back at its yield. Whatever is not that simple (the first
//! resume of a coroutine, one that is not waiting, a stack without room) is left to the natives.

use super::frames::Frame;
use super::{ALL, Callee, Coroutine, Status, WINDOW};
use crate::fault::Fault;
use crate::heap::NativeCode;
use crate::host::Host;
use crate::limits::NATIVE_DEPTH_MAX;
use crate::state::State;
use crate::value::{NativeRef, ThreadRef, Value};

/// A resume that waits for its coroutine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// How many coroutines had been resumed, with this one: others may be resumed by natives.
    resumers: usize,
    /// What was called to resume it, where that stands, and how many results it is to give.
    native: NativeRef,
    func: usize,
    wanted: i16,
    is_wrapped: bool,
    /// The depths of the machine before.
    depth: usize,
    depth_of_thread: usize,
}

impl Coroutine {
    /// Puts values of another stack where a call wants its results, if there is room.
    #[inline(always)]
    fn receive(&mut self, (to, wanted): (usize, i16), values: &[Value]) -> bool {
        let count = values.len();
        if let (1, Some(value)) = (wanted, values.first()) {
            self.stack[to] = *value;
            return true;
        }
        let len = usize::try_from(wanted).unwrap_or(count);
        let room = self.stack.len().saturating_sub(WINDOW);
        let Some(slots) = self.stack.get_mut(to..to + len).filter(|_| to + len <= room) else {
            return false;
        };
        let given = count.min(len);
        slots[..given].copy_from_slice(&values[..given]);
        slots[given..].fill(Value::Nil);
        if wanted == ALL {
            self.top = to + count;
        }
        true
    }
}

impl State {
    /// Calls a native from the plain loop; whether another coroutine is to go on now, with its
    /// topmost frame.
    #[inline(never)]
    pub(super) fn call_native(
        &mut self,
        host: &mut dyn Host,
        (native, func): (NativeRef, usize),
        count: usize,
        wanted: i16,
    ) -> Result<bool, Fault> {
        let is_changed = match self.heap.natives.at(native.index()).code {
            NativeCode::Yield(_) => self.yield_plain(func, count, wanted),
            NativeCode::Resume(_) | NativeCode::Wrapped(_) => {
                self.resume_plain((native, func), count, wanted)
            }
            _ => false,
        };
        if !is_changed {
            self.enter_native(host, (native, func), count, wanted)?;
            return Ok(false);
        }
        self.native_is_over(host)?;
        Ok(true)
    }

    /// Changes to a coroutine that waits in a yield; whether that was done. If not, nothing has
    /// happened.
    fn resume_plain(
        &mut self,
        (native, func): (NativeRef, usize),
        count: usize,
        wanted: i16,
    ) -> bool {
        let object = self.heap.natives.at(native.index());
        let is_wrapped = matches!(object.code, NativeCode::Wrapped(_));
        let base = func + 1;
        let (thread, args) = if is_wrapped {
            (object.upvalues.first(), base..base + count)
        } else if count > 0 {
            (self.current.stack.get(base), base + 1..base + count)
        } else {
            return false;
        };
        let Some(&Value::Thread(thread)) = thread else { return false };
        if self.depth >= NATIVE_DEPTH_MAX || !self.current.frames.may_grow() {
            return false;
        }
        let coroutine = self.heap.threads.at_mut(thread.index());
        debug_assert!(coroutine.waiting.is_none() || coroutine.status == Status::Suspended);
        // Who waits in a yield neither runs nor has resumed another one, and is not dead.
        let Some((to, results)) = coroutine.waiting else { return false };
        let Some(values) = self.current.stack.get(args) else { return false };
        if !coroutine.receive((to as usize, results), values) {
            return false;
        }
        coroutine.waiting = None;
        self.current.top = base;
        std::mem::swap(&mut self.current, coroutine);
        self.heap.remember_thread(thread);
        self.resumers.push(self.thread.replace(thread));
        let resumers = self.resumers.len();
        let (depth, depth_of_thread) = (self.depth, self.depth_of_thread);
        self.switches.push(Switch {
            resumers,
            native,
            func,
            wanted,
            is_wrapped,
            depth,
            depth_of_thread,
        });
        self.depth += 1;
        self.depth_of_thread = self.depth;
        true
    }

    /// Changes back to who resumed the running coroutine, with the arguments of its yield; whether
    /// that was done. If not, nothing has happened.
    fn yield_plain(&mut self, func: usize, count: usize, wanted: i16) -> bool {
        let (Some(switch), Some(thread)) = (self.switches.last(), self.thread) else {
            return false;
        };
        if switch.resumers != self.resumers.len() || !self.may_yield() {
            return false;
        }
        let values = func + 1..func + 1 + count;
        let resumer = self.heap.threads.at_mut(thread.index());
        let Some(values) = self.current.stack.get(values) else { return false };
        let (mut to, mut results) = (switch.func, switch.wanted);
        if !switch.is_wrapped && results != 0 {
            resumer.stack[to] = Value::Bool(true);
            (to, results) = (to + 1, if results == ALL { ALL } else { results - 1 });
        }
        if results != 0 && !resumer.receive((to, results), values) {
            return false;
        }
        self.current.waiting = Some((func as u32, wanted));
        self.current.top = func + 1;
        self.leave_thread(thread);
        true
    }

    /// Takes the last switch back: the stack of who resumed the coroutine is the current one.
    fn leave_thread(&mut self, thread: ThreadRef) -> Option<Switch> {
        let switch = self.switches.pop()?;
        (self.depth, self.depth_of_thread) = (switch.depth, switch.depth_of_thread);
        self.thread = self.resumers.pop()?;
        std::mem::swap(&mut self.current, self.heap.threads.at_mut(thread.index()));
        Some(switch)
    }

    /// After the machine has stopped in a coroutine that it changed to by itself: goes back to who
    /// resumed it, with the values of its return or yield, or with its error.
    #[cold]
    pub(super) fn stopped_in_thread(
        &mut self,
        host: &mut dyn Host,
        outcome: Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Err(Fault::Killed) = outcome {
            return outcome;
        }
        let Some(thread) = self.thread else { return outcome };
        let Some(switch) = self.leave_thread(thread) else { return outcome };
        // From here on all is as if the native had resumed the coroutine.
        let Switch { native, func, wanted, is_wrapped, .. } = switch;
        self.current.frames.push(Frame::new(Callee::Native(native), func, wanted));
        self.current.top = func + 1;
        let values = self.stopped_values(thread, outcome);
        let made = self.push_resumed(thread, values, is_wrapped)?;
        let from = self.current.top - made;
        self.current.frames.pop();
        self.current.deliver((func, from), made, wanted);
        self.native_is_over(host)
    }
}
