#!/usr/bin/env bash
# Cargo with more flags for rustc, which only the workspace's own crates get: all others stay those of an ordinary build.
# Build scripts run without them. Flags that are not stable are accepted (RUSTC_BOOTSTRAP), by the stable compiler that is there.
# usage: scripts/instrumented.sh NAME "FLAGS" CARGO-ARGUMENT…
set -euo pipefail
cd "$(dirname "$0")/.."
wrapper=$PWD/target/instrumented/$1
text="#!/bin/sh
# Written by scripts/instrumented.sh.
case \" \$* \" in
*' --crate-name build_script_build '* | *' --print '* | *' -vV '*) exec \"\$@\" ;;
esac
RUSTC_BOOTSTRAP=1 exec \"\$@\" $2"
mkdir -p target/instrumented
# Cargo builds again when the wrapper is newer.
if [ "$(cat "$wrapper" 2>/dev/null)" != "$text" ]; then
    echo "$text" >"$wrapper"
    chmod +x "$wrapper"
fi
export RUSTC_WORKSPACE_WRAPPER=$wrapper
exec "${CARGO:-cargo}" "${@:3}"
