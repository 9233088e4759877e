//! What differs between tools.

use crate::{failure::Outcome, netlink::Setting};

/// A tool that changes routes of a host.
pub trait Tool {
    /// What it sets at a route.
    type Setting: Setting;
    /// The program, as messages name it: `marimoctl`.
    const PROGRAM: &'static str;
    /// What it deploys, as messages name it: `Marimo`.
    const SUBJECT: &'static str;
    /// Folder of locks and counts: `/run/marimo`.
    const RUN: &'static str;
    /// Folder of journals: `/var/lib/marimo`.
    const STATE: &'static str;
    /// What else than to change a route may be chosen, as a message ends: `, or choose --default`.
    const INSTEAD: &'static str;

    /// Names of settings that the kernel knows now.
    ///
    /// # Errors
    /// The kernel does not say.
    fn registered() -> Outcome<Vec<String>>;

    /// Whether a setting is one of this tool's.
    fn is_own(name: &str) -> bool;
}
