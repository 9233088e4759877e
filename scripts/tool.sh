#!/usr/bin/env bash
# Runs a tool that cargo can install, installing it first where it is missing.
# usage: scripts/tool.sh CRATE COMMAND [ARGUMENT…]
set -euo pipefail
crate=$1
shift
if ! command -v "$1" >/dev/null; then
    echo "installing $crate" >&2
    cargo install --locked --quiet "$crate"
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi
exec "$@"
