//! Ctrl-C: stop what is being simulated, write the summary of what is finished, and leave. What cannot be done within a
//! second, as the generation of a run's flows or the summary of many runs, ends with the process, and so it does with a
//! second Ctrl-C: finished runs are on disk in any case, and every file is whole. A run that has been simulated is written
//! first, however long that takes.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
};

static STOP: AtomicBool = AtomicBool::new(false);
/// The signal that came last; 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static WRITING: AtomicUsize = AtomicUsize::new(0);
static MESSAGE: OnceLock<String> = OnceLock::new();

/// Seconds after which runs have ended.
const PATIENCE: libc::c_uint = 1;

/// What a shell makes of a program that a signal ended: 130 after SIGINT.
fn code_of(signal: libc::c_int) -> libc::c_int {
    128 + signal
}

/// The exit code of an interrupted command.
pub fn exit_code() -> Option<u8> {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal == 0 { None } else { u8::try_from(code_of(signal)).ok() }
}

extern "C" fn on_signal(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
    if STOP.swap(true, Ordering::Relaxed) {
        // SAFETY: R15: `_exit` is async-signal-safe.
        unsafe { libc::_exit(code_of(signal)) }
    }
    // SAFETY: R15: `alarm` is async-signal-safe.
    unsafe { libc::alarm(PATIENCE) };
}

extern "C" fn on_alarm(_signal: libc::c_int) {
    if WRITING.load(Ordering::Relaxed) > 0 {
        // SAFETY: R15: `alarm` is async-signal-safe.
        unsafe { libc::alarm(PATIENCE) };
    } else {
        let message = MESSAGE.get().map_or("", String::as_str);
        // SAFETY: R15: `write` and `_exit` are async-signal-safe; the message is as long as is said.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
            libc::_exit(code_of(SIGNAL.load(Ordering::Relaxed)))
        }
    }
}

/// The files of one more run are being written, or no more.
pub fn writing(run: bool) {
    if run {
        WRITING.fetch_add(1, Ordering::Relaxed);
    } else {
        WRITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The flag that becomes true on SIGINT or SIGTERM. `message` is printed if the process ends without further ado.
pub fn flag(message: &str) -> &'static AtomicBool {
    MESSAGE.get_or_init(|| format!("{message}\n"));
    let handlers: [(_, extern "C" fn(libc::c_int)); 3] =
        [(libc::SIGINT, on_signal), (libc::SIGTERM, on_signal), (libc::SIGALRM, on_alarm)];
    for (signal, handler) in handlers {
        // SAFETY: R15: the handlers access atomics and call async-signal-safe functions.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    &STOP
}
