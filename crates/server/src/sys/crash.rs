//! Signals that mean a fault of ours: a report, then what would have happened without. A handler
//! may do almost nothing, since whatever it interrupted may hold any lock: it reads atomics,
//! formats numbers on its own stack, and writes to a file that is open.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

const SIGNALS: [(libc::c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Room for a report. The stack of a handler may have no more than 8 KiB.
const REPORT_BYTES_MAX: usize = 2048;
/// How often, and with which pause, a thread looks whether another's report is written.
const LOOKS_MAX: u32 = 100;
const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// The longest name of a thread, with its zero.
const THREAD_NAME_BYTES: usize = 16;

pub const START: &str =
    "\n=== RUSSET CRASH REPORT START: please report it, from here to its END ===\n";
pub const END: &str = "=== RUSSET CRASH REPORT END ===\n";

/// Figures that are kept up to date for a report: what they are called is in [`FACTS`].
static FIGURES: [AtomicU64; FACTS.len()] = [const { AtomicU64::new(0) }; FACTS.len()];
const FACTS: [&str; 3] = ["used_memory", "connected_clients", "total_commands_processed"];

static IS_ENABLED: AtomicBool = AtomicBool::new(true);
/// A report was begun: what follows from its fault needs no other.
static IS_REPORTED: AtomicBool = AtomicBool::new(false);
/// The thread that writes the report, and whether it has.
static REPORTER: AtomicI32 = AtomicI32::new(0);
static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
static FILE: AtomicI32 = AtomicI32::new(-1);
static SETUP: OnceLock<Setup> = OnceLock::new();

/// What does not change.
struct Setup {
    /// The first lines of every report.
    head: String,
    started: Duration,
    /// Where the program was loaded to, which addresses are counted from.
    image_start: usize,
    /// What the signals did before, in the order of [`SIGNALS`].
    before: Vec<libc::sigaction>,
}

/// Has faults reported to this file, with these lines first. Only the first call counts.
pub fn install(file: OwnedFd, head: String, image_start: usize) {
    if FILE.compare_exchange(-1, file.as_raw_fd(), Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    // It stays open to the end.
    let _number = file.into_raw_fd();
    let before = SIGNALS.iter().map(|(signal, _)| action_of(*signal)).collect();
    let _is_first = SETUP.set(Setup { head, started: now(), image_start, before });
    for (signal, _) in SIGNALS {
        // SAFETY: all zeros are an action without flags, whose mask is empty.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        action.sa_sigaction = handler as *const () as usize;
        // On the stack that the runtime has made for this: that of the thread may be full.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `handle` has the signature that SA_SIGINFO asks for, and does only what a handler
        // may; the old action need not be stored.
        unsafe { libc::sigaction(signal, &action, null_mut()) };
    }
}

/// `crash-log-enabled`.
pub fn enable(is_enabled: bool) {
    IS_ENABLED.store(is_enabled, Ordering::Relaxed);
}

pub fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// Reports go to this file from now on: the log was rotated.
pub fn redirect(file: impl AsFd) {
    let number = FILE.load(Ordering::Acquire);
    if number >= 0 {
        // SAFETY: it takes two numbers of open files. `number` is ours alone and stays open: what
        // it stands for is replaced at once.
        unsafe { libc::dup3(file.as_fd().as_raw_fd(), number, libc::O_CLOEXEC) };
    }
}

/// What a report would say of the server now, in the order of [`FACTS`].
pub fn note(figures: [u64; FACTS.len()]) {
    for (figure, value) in FIGURES.iter().zip(figures) {
        figure.store(value, Ordering::Relaxed);
    }
}

/// Writes a report of something that is no signal, such as a panic. The signal that may follow
/// from it is not reported.
pub fn report(why: &str) {
    let Some(setup) = SETUP.get() else { return };
    let is_first = begin_report();
    let mut facts = Text::default();
    push_facts(&mut facts, setup);
    let facts = String::from_utf8_lossy(facts.bytes()).into_owned();
    write(format!("{START}{}{why}{facts}{END}", setup.head).as_bytes());
    if is_first {
        IS_WRITTEN.store(true, Ordering::Release);
    }
}

/// Whether this is the first fault. Whoever begins a report says when it is written.
fn begin_report() -> bool {
    let is_first = !IS_REPORTED.swap(true, Ordering::AcqRel);
    if is_first {
        REPORTER.store(thread_id(), Ordering::Release);
    }
    is_first
}

/// What a second thread does before it ends the process: the report of the first is the one that
/// says what has happened. A fault in the report itself has nobody to wait for.
fn await_report() {
    for _ in 0..LOOKS_MAX {
        let is_own = REPORTER.load(Ordering::Acquire) == thread_id();
        if is_own || IS_WRITTEN.load(Ordering::Acquire) {
            return;
        }
        // SAFETY: it reads a time and is allowed in a handler; what is left of it is not asked for.
        unsafe { libc::nanosleep(&PAUSE, null_mut()) };
    }
}

fn thread_id() -> i32 {
    // SAFETY: it only asks, and is allowed in a handler.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system calls it with both, as SA_SIGINFO asked for.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let is_fault = code > 0 && signal != libc::SIGABRT;
    let is_first = begin_report();
    if let Some(setup) = SETUP.get().filter(|_| is_first && is_enabled()) {
        let mut text = Text::default();
        text.push(START);
        text.push(&setup.head);
        text.push("signal: ");
        text.push(SIGNALS.iter().find(|(it, _)| *it == signal).map_or("?", |(_, name)| name));
        if is_fault {
            let instruction = instruction(context);
            text.push("\naddress: 0x");
            text.push_number(address, 16);
            text.push("\ninstruction: 0x");
            text.push_number(instruction, 16);
            text.push(" (program + 0x");
            text.push_number(instruction.wrapping_sub(setup.image_start), 16);
            text.push(")");
        }
        text.push("\n");
        push_facts(&mut text, setup);
        text.push(END);
        write(text.bytes());
    }
    match is_first {
        true => IS_WRITTEN.store(true, Ordering::Release),
        false => await_report(),
    }
    end_as_before(signal, is_fault);
}

/// A fault happens again when the handler returns, and then meets what was there before: the
/// runtime's own handler, which tells a full stack apart. A signal that was sent is sent again.
fn end_as_before(signal: libc::c_int, is_fault: bool) {
    let index = SIGNALS.iter().position(|(it, _)| *it == signal);
    let before = SETUP.get().zip(index).and_then(|(setup, index)| setup.before.get(index));
    // SAFETY: `before` is what `sigaction` has given. All zeros are the default action. Both calls
    // are allowed in a handler; what is raised comes when this one has returned.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, before.filter(|_| is_fault).unwrap_or(&default), null_mut());
        if !is_fault {
            libc::raise(signal);
        }
    }
}

fn action_of(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: all zeros are a valid action, and `sigaction` fills it in.
    unsafe {
        let mut action = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action
    }
}

/// Where the fault was, as far as this machine tells.
fn instruction(context: *mut libc::c_void) -> usize {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: with SA_SIGINFO the third argument of a handler is the context that it interrupted.
    #[cfg(target_arch = "x86_64")]
    let at = unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    // SAFETY: the same.
    #[cfg(target_arch = "aarch64")]
    let at = unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let at = context as usize & 0;
    at
}

/// Thread, time and figures.
fn push_facts(text: &mut Text, setup: &Setup) {
    let mut name = [0_u8; THREAD_NAME_BYTES];
    // SAFETY: it writes at most 16 bytes, a zero among them.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    text.push("thread: ");
    text.push_number(thread_id() as usize, 10);
    text.push(" ");
    text.push_bytes(name.split(|byte| *byte == 0).next().unwrap_or_default());
    text.push("\nuptime_in_seconds: ");
    text.push_number(now().saturating_sub(setup.started).as_secs() as usize, 10);
    text.push("\n");
    for (name, figure) in FACTS.iter().zip(&FIGURES) {
        text.push(name);
        text.push(": ");
        text.push_number(figure.load(Ordering::Relaxed) as usize, 10);
        text.push("\n");
    }
}

/// Time since the machine was started.
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills in what it is given, and is allowed in a handler.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn write(bytes: &[u8]) {
    let file = FILE.load(Ordering::Acquire);
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the bytes are there, as many as it says; the call is allowed in a handler.
        let written = unsafe { libc::write(file, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => rest = &rest[written..],
            // A signal came before a byte was written.
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // Nobody is left to tell.
            _ => return,
        }
    }
}

/// A text without an allocation; what there is no room for is left out.
struct Text {
    bytes: [u8; REPORT_BYTES_MAX],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Text { bytes: [0; REPORT_BYTES_MAX], len: 0 }
    }
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        let mut room = &mut self.bytes[self.len..];
        let before = room.len();
        // It fails only when the room is full.
        let _ = room.write_all(bytes);
        self.len += before - room.len();
    }

    fn push_number(&mut self, number: usize, base: usize) {
        let mut digits = [0_u8; 20];
        let (mut rest, mut at) = (number, digits.len());
        while at > 0 {
            at -= 1;
            digits[at] = b"0123456789abcdef"[rest % base];
            rest /= base;
            if rest == 0 {
                break;
            }
        }
        self.push_bytes(&digits[at..]);
    }
}

/// DEBUG SEGFAULT: touches memory that nobody may touch.
pub fn fault() -> io::Result<()> {
    const BYTES: usize = 4096;
    // SAFETY: 1. A new mapping somewhere overlaps nothing. 2. The write does what it is there for:
    // the system does not let it happen, so no memory changes. It is volatile, and so not left out.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let page = libc::mmap(null_mut(), BYTES, libc::PROT_NONE, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        page.cast::<u8>().write_volatile(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_the_room_does() {
        let mut text = Text::default();
        text.push_number(0, 10);
        text.push_number(usize::MAX, 10);
        text.push(" ");
        text.push_number(0xbeef, 16);
        assert_eq!(text.bytes(), b"018446744073709551615 beef");
        for _ in 0..REPORT_BYTES_MAX {
            text.push("xyz");
        }
        assert_eq!(text.bytes().len(), REPORT_BYTES_MAX);
    }
}
