//! Ctrl-C: stop after the windows that are being simulated, write the summary of what is finished, and leave. A second
//! Ctrl-C ends the process at once; finished runs are on disk in any case.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: libc::c_int) {
    if STOP.swap(true, Ordering::Relaxed) {
        // SAFETY: R15: `_exit` is async-signal-safe.
        unsafe { libc::_exit(1) }
    }
}

/// The flag that becomes true on SIGINT or SIGTERM.
pub fn flag() -> &'static AtomicBool {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: R15: the handler accesses one atomic and calls async-signal-safe functions.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
    &STOP
}
