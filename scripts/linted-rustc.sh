#!/usr/bin/env bash
# Compiles a crate of the workspace and lints it, at once: clippy-driver is a compiler, too. For cargo, as
# RUSTC_WORKSPACE_WRAPPER, where all of the workspace is compiled anyway (scripts/lanes.py); `make lint` has clippy alone.
# rustc by itself compiles what is optimised fully, as clippy-driver does less of that, and the engine, whose unsafe code is
# to have the checks of pointers of a debug build, which clippy-driver leaves out.
# usage: scripts/linted-rustc.sh RUSTC ARGUMENTS
set -euo pipefail
case " $* " in
*" --crate-name incast_engine "* | *"/incast-engine/"* | *" opt-level=3 "*) exec "$@" ;;
esac
exec clippy-driver "$@" -D warnings
