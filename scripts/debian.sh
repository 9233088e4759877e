#!/usr/bin/env bash
# Sees to it that a command of a Debian package is there: installs the package where it may. Where it may not, says
# which tests will be skipped and succeeds, except in CI, where nothing is skipped.
# usage: scripts/debian.sh COMMAND PACKAGE WHAT
set -euo pipefail
command=$1 package=$2 what=$3
if command -v "$command" >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    install() { apt-get install -qq -y --no-install-recommends "$package" >/dev/null 2>&1; }
    if install || { apt-get update -qq >/dev/null 2>&1 && install; }; then
        exit 0
    fi
fi
if [ "${CI:-}" = true ]; then
    echo "$what: $command of the Debian package $package is missing" >&2
    exit 1
fi
echo "skipped: $what (no $command; Debian package $package)"
