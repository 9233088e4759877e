//! Whether the BPF form is seen from here, where it is loaded.

use crate::{
    bpf::{self, PINS},
    layout::NAME,
};
use hostctl::{
    failure::{Failure, Outcome},
    view::ELSEWHERE,
};

/// Why the BPF form is not seen here although it is registered; `None` if it is not registered.
///
/// # Errors
/// The kernel does not say what is registered.
pub fn hidden() -> Outcome<Option<String>> {
    let is_registered = bpf::registered()?.iter().any(|name| name == NAME);
    Ok(is_registered.then(|| {
        format!(
            "{NAME} is registered, but what is pinned of it in {PINS} is not seen from here: another mount namespace has \
             it ({ELSEWHERE})"
        )
    }))
}

/// How to say that the BPF form is not loaded.
///
/// # Errors
/// Always: that is what it returns.
pub fn not_loaded<T>(otherwise: impl Into<String>) -> Outcome<T> {
    Err(Failure::failed(hidden()?.unwrap_or_else(|| otherwise.into())))
}
