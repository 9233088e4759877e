#!/usr/bin/env bash
# Tests the Python package: a wheel is built of this tree and installed in clean virtual environments, where the tests of
# python/tests run, types are checked, notebooks are executed and the gallery is drawn. What a virtual environment holds is
# kept in target/python.
# usage: scripts/python.sh [--sdist] [ARGUMENTS OF PYTEST]
#        --sdist: a wheel of a source distribution of this tree, as users of an index would get it; `make packages` does
#        --gallery: writes the pictures of docs/gallery anew
#        --reference FOLDER: writes the reference of all functions there, and runs no test
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD work=$PWD/target/python incast=${INCAST:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/release/incast}
sdist="" gallery="" reference=""
while [ $# -gt 0 ]; do
    case $1 in
    --sdist) sdist=1 ;;
    --gallery) gallery=1 ;;
    --reference)
        reference=$(realpath -m "$2")
        shift
        ;;
    *) break ;;
    esac
    shift
done
mkdir -p "$work"

# Makes a virtual environment of a name that has packages. One that was copied here with the folder around it leads elsewhere.
environment() {
    local place=$work/$1
    shift
    if [ "$(cat "$place/has" 2>/dev/null)" != "$place $*" ]; then
        rm -rf "$place"
        "$uv" venv --quiet "$place" && "$uv" pip install --quiet --python "$place/bin/python" "$@" &&
            echo "$place $*" >"$place/has"
    fi
}
install() {
    "$uv" pip install --quiet --python "$work/$1/bin/python" --reinstall --no-deps "$wheel"
}

# As elsewhere: what cannot be installed is skipped with a line that says so, except in CI, where nothing is.
skip() {
    echo "skipped: tests of the Python package ($1)"
    [ "${CI:-}" != true ] || exit 1
    exit 0
}
if ! python3 -c 'import ensurepip' 2>/dev/null; then
    scripts/debian.sh ensurepip python3-venv "tests of the Python package"
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || skip "no Python 3.11 or later"
# uv makes the eight environments in a fifth of pip's time; it does not read pip's settings.
uv=$work/build/bin/uv
[ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"
if [ "$(cat "$work/build/has" 2>/dev/null)" != "$work" ]; then
    rm -rf "$work/build"
    { python3 -m venv "$work/build" && "$work/build/bin/pip" install --quiet "uv>=0.9,<1" "maturin>=1.9,<2"; } ||
        skip "uv and maturin could not be installed"
    echo "$work" >"$work/build/has"
fi
# The program that the wheel is compared with, with the features that the extension's dependencies have.
if [ -z "${INCAST:-}" ]; then
    "${CARGO:-cargo}" build --release --locked --quiet -p incast -p incast-py
fi
rm -rf "$work/dist"
export PATH=$work/build/bin:$PATH
if [ "$sdist" ]; then
    # Not the tree's own: cargo takes packages of two workspaces for the same if they lie at the same place in them, and
    # would hand what the source distribution's build scripts say to the tree's.
    export CARGO_TARGET_DIR=$work/target
    maturin sdist --out "$work/dist" 2>"$work/sdist.log" || { cat "$work/sdist.log" >&2; exit 1; }
    rm -rf "$work/source"
    mkdir -p "$work/source"
    tar --extract --gzip --touch --strip-components 1 --directory "$work/source" --file "$work"/dist/*.tar.gz
    # Not --locked: it has a part of the workspace, and the lock file that of all. Versions are those of the lock file.
    (cd "$work/source" && maturin build --release --out "$work/dist")
else
    maturin build --release --locked --out "$work/dist"
fi
wheel=$(echo "$work"/dist/*.whl)
ls -l "$work/dist"

others=(matplotlib polars pyarrow pandas duckdb pytest basedpyright nbclient ipykernel pdoc)
if [ "$reference" ]; then
    environment all "${others[@]}"
    install all
    exec "$work/all/bin/pdoc" --docformat google --output-directory "$reference" incast incast.plot
fi

# One library at a time takes Arrow's capsules.
for library in polars pyarrow pandas duckdb; do
    environment "$library" "$library"
    install "$library"
    "$work/$library/bin/python" python/tests/alone/check.py "$library"
done

environment all "${others[@]}"
install all
# Of equal sources, whichever way they came: results of both can be mixed.
here=$("$incast" --version | sed 's/^incast \([^ ]*\).*/\1/')
there=$("$work/all/bin/incast" --version | sed 's/^incast \([^ ]*\).*/\1/')
[ "$here" = "$there" ] || {
    echo "python.sh: the program is $here and the wheel $there: sources are missing in the source distribution" >&2
    exit 1
}
export PATH=$work/all/bin:$PATH
basedpyright --pythonpath "$work/all/bin/python" --level error
# Every name that is documented can be.
pdoc --docformat google --output-directory "$work/reference" incast incast.plot
cd python/tests
INCAST_GALLERY=${gallery:+$root/docs/gallery} python -m pytest -q -p no:cacheprovider --ignore cluster "$@"

# On several machines: engines and object stores, as far as they can be had here.
cd "$root"
(environment cluster "ray>=2.40" fsspec s3fs "moto[server]" kubernetes-validate pytest) || skip "no Ray: those of clusters"
install cluster
cd python/tests/cluster
"$work/cluster/bin/python" -m pytest -q -p no:cacheprovider
