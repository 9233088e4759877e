#!/usr/bin/env bash
# Sees to it that .venv exists and has what the tests compare with. Where it cannot be installed, says which tests will
# be skipped and succeeds, except in CI, where nothing is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
if .venv/bin/python -c 'from scipy.optimize import isotonic_regression' 2>/dev/null; then
    exit 0
fi
# Debian's python3 has no ensurepip of its own; no command tells whether the package is there.
if ! python3 -c 'import ensurepip' 2>/dev/null; then
    scripts/debian.sh ensurepip python3-venv "tests against SciPy"
fi
if python3 -m venv .venv && .venv/bin/pip install --quiet 'scipy>=1.12,<2'; then
    exit 0
fi
if [ "${CI:-}" = true ]; then
    echo "tests against SciPy: .venv could not be prepared" >&2
    exit 1
fi
echo "skipped: tests against SciPy (.venv could not be prepared)"
