#!/usr/bin/env bash
# Packages the crates as `cargo publish` would upload them. Without --list each is also unpacked and built outside of this
# tree, from the packages alone, and the program run: what a crate needs is in it or in another one. The same with the
# source distribution of the Python package, whose wheel is tested.
# usage: scripts/packages.sh [--list]
set -euo pipefail
cd "$(dirname "$0")/.."
crates=(incast-units incast-cc incast-engine incast-sim incast-lab incast-interop incast)
cargo=${CARGO:-cargo}
selected=()
for crate in "${crates[@]}"; do selected+=(-p "$crate"); done

# What is compiled into a crate from outside of its folder comes by a link, which a package follows.
for needed in incast-cc/core/marimo.h incast-cc/core/marimo-f.table incast-lab/workloads/websearch.csv \
    incast-lab/LICENSES/BSD-3-Clause.txt incast/scenarios/first-light.toml; do
    crate=${needed%%/*}
    grep -qx "${needed#*/}" <<<"$("$cargo" package --locked --allow-dirty --list -p "$crate")" || {
        echo "packages.sh: the package of $crate has no ${needed#*/}" >&2
        exit 1
    }
done
# Metadata that a registry requires, versions of all dependencies, no file missing.
"$cargo" package --locked --allow-dirty --quiet --no-verify "${selected[@]}"
if [ "${1:-}" = --list ]; then
    exit 0
fi
"$cargo" publish --dry-run --locked --allow-dirty --quiet "${selected[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
patches=()
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
for crate in "${crates[@]}"; do
    tar -xzf "${CARGO_TARGET_DIR:-target}/package/$crate-$version.crate" -C "$work"
    [ "$crate" = incast ] || patches+=(--config "patch.crates-io.$crate.path='$work/$crate-$version'")
done
# The registry has none of the crates: those beside it take its place.
(cd "$work" && "$cargo" install --quiet --debug --path "incast-$version" --root "$work/installed" \
    --target-dir "$work/target" "${patches[@]}")
(cd "$work" && installed/bin/incast list scenarios | grep -q first-light && installed/bin/incast list workloads |
    grep -q '^websearch ') || {
    echo "packages.sh: the program that was built outside of the tree has no scenarios or workloads" >&2
    exit 1
}
scripts/sbom.py "${CARGO_TARGET_DIR:-target}/package/incast-$version.cdx.json"
echo "packages: ${#crates[@]} crates, built and run outside of the tree"
scripts/python.sh --sdist
