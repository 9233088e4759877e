//! `incast`: which congestion control should this network run, and with which settings?

use mimalloc::MiMalloc;
use std::{env, process::ExitCode};

/// It requests large pages, without which a large fabric waits for address translation (docs/performance.md).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(incast_cli::main(env::args_os()))
}
