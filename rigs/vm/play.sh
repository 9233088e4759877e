#!/usr/bin/env bash
# Plays what rigs/virtual-time made of a plan (its `scripts.py`) on Debian's newest kernel in an emulated machine whose clock counts
# instructions: a nanosecond for each, and nothing while all sleep. So it depends on neither the speed nor the load of the host.
# IN: files that the guest finds in /in. OUT: gets what it left in /out, and the guest's exit code in `status`.
# usage: rigs/vm/play.sh IN OUT SEED SECONDS
#        rigs/vm/play.sh --fingerprint      hash of what a result depends on besides IN and SEED
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=rigs/vm/vm.sh
. rigs/vm/vm.sh

if [ "$*" != --fingerprint ] && [ $# -ne 4 ]; then
    echo "usage: play.sh IN OUT SEED SECONDS | --fingerprint; found $*" >&2
    exit 2
fi
tools
alone
kernel=$("$rig/kernel.sh" newest)
traffic
if [ "$1" != --fingerprint ] && [ -e "$1/clocks" ]; then export ONRAMP_PROGRAM=skew; fi
tool onrampctl --bin onrampctl
module "$kernel"
export CONGESTION= FAULTS= TIMES=
if [ "$1" = --fingerprint ]; then
    module=$built/module-$(cat "$kernel/version")/tcp_marimo.ko
    cat <(qemu-system-x86_64 --version) "$kernel/version" "$(base "$kernel")" "$built"/{rig-traffic,onrampctl} "$module" \
        "$rig"/{play,vm}.sh "$rig"/guest/{init,lib.sh,play.sh} \
        deploy/linux/onramp/skew.bpf.c | sha256sum | cut -d ' ' -f 1
    exit
fi
assemble "$kernel" play "$2" "$1"
# What follows touches only OUT; others may build meanwhile.
flock --unlock "$lock"
# The kernel's randomness is the processor's, whose seed is given.
run "$kernel" play "$4" "$2" -smp 1 -cpu qemu64,+rdrand -seed "$3" "${counting[@]}"
