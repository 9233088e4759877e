#!/usr/bin/env bash
# Licences, bans and sources of all dependencies. Advisories need a database that is not always reachable.
set -euo pipefail
exec "$(dirname "$0")/tool.sh" cargo-deny cargo-deny --locked check bans licenses sources
