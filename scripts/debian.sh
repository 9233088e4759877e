#!/usr/bin/env bash
# Sees to it that a command of a Debian package is there: installs the package where it may. Where it may not, says
# which tests will be skipped and succeeds, except in CI, where nothing is skipped.
# usage: scripts/debian.sh COMMAND PACKAGE WHAT
#        scripts/debian.sh --ahead PACKAGE...    many at once, which is quicker; says nothing if it may not
set -euo pipefail
# Lanes run side by side, and dpkg admits one at a time.
lock=${TMPDIR:-/tmp}/incast-debian.lock
install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "installing Debian packages: $*"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends "$@" \
        >/dev/null 2>&1
}
update() { apt-get update -qq >/dev/null 2>&1; }

if [ "$1" = --ahead ]; then
    shift
    exec {held}>"$lock"
    flock "$held"
    install "$@" || { update && install "$@"; } || true
    exit 0
fi
command=$1 package=$2 what=$3
if command -v "$command" >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    exec {held}>"$lock"
    flock "$held"
    if install "$package" || { update && install "$package"; }; then
        exit 0
    fi
fi
if [ "${CI:-}" = true ]; then
    echo "$what: $command of the Debian package $package is missing" >&2
    exit 1
fi
echo "skipped: $what (no $command; Debian package $package)"
