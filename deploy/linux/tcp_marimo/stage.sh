#!/usr/bin/env bash
# Copies what the module is built from into one flat folder, with the headers that it shares with the other
# adapters: DKMS copies only the module's own folder, and a build leaves nothing in this one.
# usage: deploy/linux/tcp_marimo/stage.sh DIR
set -euo pipefail
if [ $# -ne 1 ]; then
    echo "stage.sh: usage: deploy/linux/tcp_marimo/stage.sh DIR" >&2
    exit 2
fi
mkdir -p "$1"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")"
cp Kbuild Makefile ./*.c ./*.h ../*.h ../../core/marimo.h "$to/"
if [ -d probe ]; then
    cp -r probe "$to/"
fi
