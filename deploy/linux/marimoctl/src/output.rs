//! What is printed. A reader that has seen enough (`| head`) is no error; a disk that is full is one.

use std::{
    fmt::Arguments,
    io::{self, ErrorKind, Write as _},
};

/// Prints a text; the process ends where that cannot be.
pub fn print(text: Arguments<'_>) {
    let mut stdout = io::stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            let _ = writeln!(io::stderr(), "marimoctl: stdout: {error}");
            std::process::exit(1);
        }
    }
}

/// Prints a line.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::print(format_args!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use say;

/// Warns in a line: without a reader there is only the exit code.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "marimoctl: {}", format_args!($($text)*));
    }};
}
pub(crate) use complain;
