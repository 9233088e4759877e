#!/usr/bin/env bash
# A real kernel beside the simulator (docs/hosts.md): prepares what compare.py needs and calls it with all arguments.
# usage: rigs/compare/run.sh [--test | arguments of compare.py]
#   --test  its own tests, with the binary that INCAST names (default: the release binary, built)
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/debian.sh python3 python3 "the comparison with a real kernel"
venv=target/rigs/compare-venv
if ! "$venv/bin/python" -c 'import pyarrow.parquet' 2>/dev/null; then
    if ! python3 -c 'import ensurepip' 2>/dev/null; then
        scripts/debian.sh ensurepip python3-venv "the comparison with a real kernel"
    fi
    mkdir -p target/rigs
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet 'pyarrow>=15,<24'; }; then
        if [ "${CI:-}" = true ]; then
            echo "the comparison with a real kernel: pyarrow could not be installed" >&2
            exit 1
        fi
        echo "skipped: the comparison with a real kernel (pyarrow could not be installed)"
        exit 0
    fi
fi

incast=${INCAST:-${CARGO_TARGET_DIR:-target}/release/incast}
if [ -z "${INCAST:-}" ]; then
    "${CARGO:-cargo}" build --release --locked --quiet -p incast
fi

if [ "${1:-}" = --test ]; then
    INCAST=$(realpath "$incast") "$venv/bin/python" -B -m unittest discover -s rigs/compare
    echo "compare: percentiles, intervals, plans, reconciliation of CE, tables in pages, both sides on one scenario"
    exit 0
fi
exec "$venv/bin/python" -B rigs/compare/compare.py --incast "$incast" "$@"
