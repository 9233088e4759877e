#!/usr/bin/env bash
# Runs a small scenario with everything that a report can show, and looks at the report in a headless Chromium:
# scripts/report-browser-test.py says what for. Screenshots are left in target/report-screenshots.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    if [ "${CI:-}" = true ]; then
        echo "report in a browser: $1" >&2
        exit 1
    fi
    echo "skipped: the report in a browser: $1"
    exit 0
}

find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome || true; }
[ -n "$(find_chromium)" ] || scripts/debian.sh chromium chromium "the report in a browser"
chromium=$(find_chromium)
[ -n "$chromium" ] || skip "needs chromium, which cannot be installed here"
command -v python3 >/dev/null || skip "needs python3"

incast=${INCAST:-${CARGO_TARGET_DIR:-target}/release/incast}
[ -n "${INCAST:-}" ] || cargo build --release --locked --quiet -p incast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$incast" run crates/incast/tests/scenarios/report.toml --quiet --out "$work" >/dev/null
python3 scripts/report-browser-test.py "$chromium" "$work/report/report.html" target/report-screenshots
