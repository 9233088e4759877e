//! What `incast --version` prints.

use std::sync::LazyLock;

/// Version of the program as results name it, then commit, profile and target of the build.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{} ({})", incast_lab::VERSION, env!("INCAST_BUILD")));
    &TEXT
}
