#!/usr/bin/env bash
# Boots Debian's stock cloud kernel in QEMU's software emulation, loads tcp_marimo into it and plays an incast through
# a queue that marks. The exit code is the verdict; what was counted stays below target/rigs/vm.
# --congestion plays the same with a law of the kernel's own: what fails then too is the rig's fault.
# --onramp: On-Ramp from its attachment to the way back, under CUBIC; not on 6.1, which has no stamps in microseconds. --long:
# detached and killed 50 times under way, not 3; --limits: what it is not made for; --cost: what its programs execute, by a clock that counts instructions; --record FILE: what one path
# was told and decided, into FILE (deploy/core/test/onramp-kernel.txt is one).
# usage: rigs/vm/run.sh [--faults [NAME,...] | --onramp [--long | --limits | --cost | --record FILE] [--form edt|qdisc]] [--kernel 6.1|6.12|7.2|newest] [--congestion marimo|dctcp]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=rigs/vm/vm.sh
. rigs/vm/vm.sh

usage() {
    echo "run.sh: $1; usage: rigs/vm/run.sh [--faults [NAME,...] | --onramp [--long | --limits | --cost | --record FILE] [--form edt|qdisc]] [--kernel 6.1|6.12|7.2|newest] [--congestion marimo|dctcp]" >&2
    exit 2
}

# One processor keeps packets in order, so that what is counted can be compared; the faults want two.
case=smoke series=6.1 seconds=600 processors=1
machine_arguments=()
record=
export CONGESTION=marimo FAULTS= TIMES=3 FORM=edt
while [ $# -gt 0 ]; do
    case $1 in
    --faults)
        case=faults seconds=1500 processors=2
        if [ $# -ge 2 ] && [ "${2#-}" = "$2" ]; then
            FAULTS=${2//,/ }
            for fault in $FAULTS; do
                grep -q "^fault_${fault//-/_}()" "$rig/guest/faults.sh" || usage "no fault '$fault'"
            done
            shift
        fi
        ;;
    --onramp)
        case=onramp seconds=600 processors=2 CONGESTION=cubic
        if [ "${2:-}" = --long ]; then
            TIMES=50
            shift
        elif [ "${2:-}" = --limits ]; then
            case=limits seconds=1200
            shift
        elif [ "${2:-}" = --cost ]; then
            case=cost processors=1 machine_arguments=("${counting[@]}")
            shift
        elif [ "${2:-}" = --record ]; then
            [ $# -ge 3 ] || usage "--record needs a file"
            case=record record=$3
            shift 2
        fi
        ;;
    --form)
        [ $# -ge 2 ] || usage "--form needs edt or qdisc"
        FORM=$2
        shift
        ;;
    --kernel)
        [ $# -ge 2 ] || usage "--kernel needs a series"
        series=$2
        shift
        ;;
    --congestion)
        [ $# -ge 2 ] || usage "--congestion needs a name"
        CONGESTION=$2
        shift
        ;;
    *) usage "unknown argument '$1'" ;;
    esac
    shift
done
case $series in 6.1 | 6.12 | 7.2 | newest) ;; *) usage "no kernel series '$series'" ;; esac
if [ "$FORM-$series" = qdisc-6.1 ]; then series=newest; fi
case $case-$series in onramp-6.1 | limits-6.1 | cost-6.1 | record-6.1) series=6.12 ;; esac
case $FORM in edt | qdisc) ;; *) usage "no form '$FORM'" ;; esac
if [ "$case-$FORM" = record-qdisc ]; then usage "--record is of the form edt"; fi
case $CONGESTION in marimo | dctcp | cubic) ;; *) usage "no congestion control '$CONGESTION'" ;; esac

tools
alone
started=$SECONDS
kernel=$("$rig/kernel.sh" "$series") || {
    status=$?
    [ $status -ne 3 ] || [ "${CI:-}" = true ] || { echo "skipped: $rig --kernel $series (not in Debian's archive any more)"; exit 0; }
    exit $status
}
version=$(cat "$kernel/version")
traffic
case $case-$CONGESTION in
onramp-* | limits-* | cost-*)
    if [ $case = limits ]; then
        # To which the peer's clock can seem to be set (skew.bpf.c).
        ONRAMP_PROGRAM=skew tool onrampctl --bin onrampctl
        mv "$built/onrampctl" "$built/onrampctl-skew"
        programs+=(onrampctl-skew)
    fi
    tool onrampctl --bin onrampctl
    gcc-12 -O2 -static -Wall -Werror -o "$built/synchronise" "$rig/synchronise.c"
    programs+=(synchronise)
    ;;
record-*) ONRAMP_PROGRAM=record tool onrampctl --bin onrampctl ;;
*-marimo)
    module "$kernel"
    if [ $case = smoke ]; then
        tool marimoctl --bin marimoctl --test lifecycle
    fi
    ;;
esac
out=$built/$case-$series-$CONGESTION
if [ "$FORM" = qdisc ]; then out=$out-qdisc; fi
at=$SECONDS
if ! boot "$kernel" "$case" "$seconds" "$out" -smp "$processors" "${machine_arguments[@]}"; then
    cat "$out/checks" 2>/dev/null || true
    exit 1
fi
cat "$out/checks"
read -r passed failed <"$out/verdict"
echo "$rig: $case on $version: $passed checks passed, $failed failed; booted in $(cat "$out/booted") s, the machine ran" \
    "$((SECONDS - at)) s of $((SECONDS - started)) s"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
[ -z "$record" ] || "$rig/record.py" "$version" "$out/recorded" "$record"
