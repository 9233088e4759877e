#!/usr/bin/env bash
# Runs commands one after the other, all of them; fails at the end if any failed, and says which.
# usage: scripts/each.sh "LINE OF BASH" ...
set -euo pipefail
failed=()
for line in "$@"; do
    bash -c "$line" || failed+=("$line")
done
for line in "${failed[@]}"; do
    echo "failed: $line" >&2
done
[ ${#failed[@]} -eq 0 ]
