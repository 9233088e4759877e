//! How a command ends when it does not succeed.

use std::{fmt::Display, io::Write as _, process::ExitCode};

/// What went wrong, and whose fault it was.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The machine, its state or the kernel: exit code 1.
    Failed(String),
    /// What was asked for: exit code 2.
    BadInput(String),
}

impl Failure {
    /// The machine's fault.
    pub fn failed(what: impl Display) -> Self {
        Self::Failed(what.to_string())
    }
    /// The asker's fault.
    pub fn input(what: impl Display) -> Self {
        Self::BadInput(what.to_string())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Failed(message) | Self::BadInput(message)) = self;
        f.write_str(message)
    }
}

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// How a program ends after one of its commands: what failed is said in its name.
pub fn end(program: &str, command: &str, outcome: Outcome) -> ExitCode {
    let (message, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Failed(message)) => (message, 1),
        Err(Failure::BadInput(message)) => (message, 2),
    };
    for line in message.lines() {
        // Without a reader there is only the exit code.
        let _ = writeln!(std::io::stderr(), "{program} {command}: {line}");
    }
    ExitCode::from(code)
}

/// Says what was being done when the machine refused.
pub trait While<T> {
    /// `doing` stands before the error.
    fn during(self, doing: impl Display) -> Outcome<T>;
}

impl<T, E: Display> While<T> for Result<T, E> {
    fn during(self, doing: impl Display) -> Outcome<T> {
        self.map_err(|error| Failure::Failed(format!("{doing}: {error}")))
    }
}
