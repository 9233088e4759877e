#!/usr/bin/env bash
# The loom models of the engine's mailboxes and barrier (crates/incast-engine/src/models).
# usage: scripts/models.sh [PART OF A MODEL'S NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
RUSTFLAGS="--cfg loom" exec "${CARGO:-cargo}" test --locked --quiet -p incast-engine --lib -- --nocapture "$@"
