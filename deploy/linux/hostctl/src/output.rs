//! What is printed. A reader that has seen enough (`| head`) is no error; a disk that is full is one.

use std::{
    fmt::Arguments,
    io::{self, ErrorKind, Write as _},
};

/// Prints a text of a program; the process ends where that cannot be.
pub fn print(program: &str, text: Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            complain(program, format_args!("stdout: {error}"));
            std::process::exit(1);
        }
    }
}

/// Warns in a line of a program: without a reader there is only the exit code.
pub fn complain(program: &str, text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{program}: {text}");
}

/// Prints a line of the calling program.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::print(env!("CARGO_PKG_NAME"), format_args!("{}\n", format_args!($($text)*)))
    };
}

/// Warns in a line of the calling program.
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => {
        $crate::output::complain(env!("CARGO_PKG_NAME"), format_args!($($text)*))
    };
}
