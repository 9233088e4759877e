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

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -qq -y chromium >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -qq -y chromium >/dev/null 2>&1; } || true
    chromium=$(command -v chromium || true)
fi
[ -n "$chromium" ] || skip "needs chromium, which cannot be installed here"
command -v python3 >/dev/null || skip "needs python3"

# With a test, so that dependencies have the features with which cargo test has compiled them.
cargo build --locked --quiet --bin incast --test cli
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CARGO_TARGET_DIR:-target}/debug/incast" run crates/incast/tests/scenarios/report.toml --quiet --out "$work" >/dev/null
python3 scripts/report-browser-test.py "$chromium" "$work/report/report.html" target/report-screenshots
