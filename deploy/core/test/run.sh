#!/bin/sh
# Tests of the cores alone: they compile without a library, call nothing outside, and agree with the golden vectors on
# every machine at hand. The oracles make the vectors here; what is committed is a sample, and the hash of the whole. A
# lane whose tools are missing is skipped with one line; under CI=true that is a failure.
# usage: run.sh [OUT]
#        run.sh --programs OUT    (makes only what replays all vectors in a kernel: CORE-vectors-kernel, CORE-whole.txt)
set -eu
programs=
if [ "${1:-}" = --programs ]; then
    programs=only
    shift
fi
here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$here/../../target/core}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
status=0

skip() {
    echo "deploy/core: $1 skipped: $2"
    if [ "${CI:-}" = true ]; then status=1; fi
}

has() { command -v "$1" >/dev/null 2>&1; }

strict="-std=c99 -Wall -Wextra -Werror -ffreestanding -O2"

# Undefined symbols are calls that the compiler made up: memcpy, __udivdi3, __divsi3, floating point.
nothing_undefined() {
    undefined=$("$1" -u "$2")
    if [ -n "$undefined" ]; then
        echo "deploy/core: $2 needs from outside:"
        echo "$undefined"
        status=1
    fi
}

# What replays vectors of a core in the kernel that runs, which needs nothing of the machine.
in_kernel_program() {
    clang -target bpf -mcpu=v3 -std=gnu11 -Wall -Wextra -Werror -ffreestanding -O2 -c "test/$1.bpf.c" -o "$out/$1-program.o"
    python3 test/section.py "$out/$1-program.o" syscall >"$out/$1-program.h"
    cc $strict -fno-stack-protector -nostdlib -static -DIN_KERNEL="\"$1-program.h\"" -I"$out" "test/$1.c" \
        -o "$out/$1-vectors-kernel"
}

# As a program in the kernel that runs: its name, vectors, and the command that makes one of them wrong.
in_kernel() {
    if ! [ "$(uname -m)" = x86_64 ] || ! has python3 || ! has cc; then
        skip "$1: in this kernel" "needs x86-64, python3 and a C compiler"
        return
    fi
    in_kernel_program "$1"
    if [ "$(id -u)" != 0 ]; then
        skip "$1: in this kernel" "root is needed"
        return
    fi
    printf 'deploy/core: %s: in kernel %s: ' "$1" "$(uname -r)"
    "$out/$1-vectors-kernel" <"$2" || status=1
    if sed "$3" "$2" | "$out/$1-vectors-kernel" >/dev/null; then
        echo "deploy/core: $1: a wrong vector was not noticed in the kernel"
        status=1
    fi
}

# Everything for one core: its name, and the command that makes one of its vectors wrong.
check() {
    core=$1
    spoil=$2

    if has python3; then
        vectors=$out/$core-whole.txt
        if python3 "oracle/$core.py" --check "test/$core.txt" "$vectors"; then
            echo "deploy/core: $core: the oracle makes the committed sample, and vectors with the committed hash"
        else
            status=1
        fi
    else
        skip "$core: all vectors but the sample" "no python3"
        vectors=test/$core.txt
    fi

    cc=${CC:-cc}
    if has "$cc"; then
        $cc $strict -fno-stack-protector -c "$core.c" -o "$out/$core-host.o"
        has nm && nothing_undefined nm "$out/$core-host.o"
        if [ "$(uname -m)" = x86_64 ]; then
            # As the kernel compiles: no header of the system, no register of floating point, so that any use is an error.
            $cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wdeclaration-after-statement -Wstrict-prototypes -ffreestanding \
                -nostdinc -fno-stack-protector -fno-common -fno-pic -mno-sse -mno-mmx -mno-80387 -mcmodel=kernel \
                -mno-red-zone -c "$core.c" -o "$out/$core-kernel.o"
            echo "deploy/core: $core: compiled with the kernel's flags, without floating-point registers"
            $cc $strict -fno-stack-protector -nostdlib -static "test/$core.c" -o "$out/$core-vectors-host"
            printf 'deploy/core: %s: x86-64: ' "$core"
            "$out/$core-vectors-host" <"$vectors" || status=1
            # What the program itself would miss: an error that it does not see.
            if sed "$spoil" "$vectors" | "$out/$core-vectors-host" >/dev/null; then
                echo "deploy/core: $core: a wrong vector was not noticed"
                status=1
            fi
        fi
    else
        skip "$core: x86-64" "no C compiler"
    fi

    if has clang; then
        clang $strict -c "$core.c" -o "$out/$core-clang.o"
        clang -target bpf $strict -g -c "$core.c" -o "$out/$core-bpf.o"
        echo "deploy/core: $core: clang and BPF: compiled"
        # Compiled is not taken by a verifier. marimo.h is in bpf_marimo, which the rigs load and replay.
        if [ -f "test/$core.bpf.c" ]; then in_kernel "$core" "$vectors" "$spoil"; fi
    else
        skip "$core: clang and BPF" "no clang"
    fi

    rv=riscv64-unknown-elf
    if has $rv-gcc && has qemu-riscv32; then
        flags="-march=rv32imc -mabi=ilp32 $strict"
        $rv-gcc $flags -c "$core.c" -o "$out/$core-rv32.o"
        nothing_undefined $rv-nm "$out/$core-rv32.o"
        $rv-gcc $flags -nostdlib -static "test/$core.c" -o "$out/$core-vectors-rv32"
        printf 'deploy/core: %s: rv32imc: ' "$core"
        qemu-riscv32 "$out/$core-vectors-rv32" <"$vectors" || status=1
        # Signed division is what BPF refuses; Marimo's share, cut and gain and On-Ramp's gap are one unsigned one each.
        signed=$($rv-objdump -d "$out/$core-rv32.o" | grep -Ec '\s(div|rem)\s' || true)
        unsigned=$($rv-objdump -d "$out/$core-rv32.o" | grep -Ec '\s(divu|remu)\s' || true)
        if [ "$signed" -ne 0 ] || [ "$unsigned" -lt 1 ]; then
            echo "deploy/core: $core: rv32imc: $signed signed divisions, $unsigned unsigned"
            status=1
        fi
    else
        skip "$core: rv32imc" "needs gcc-riscv64-unknown-elf and qemu-user (scripts/debian.sh)"
    fi
}

if [ "$programs" = only ]; then
    python3 oracle/onramp.py >"$out/onramp-whole.txt"
    in_kernel_program onramp
    exit
fi
check marimo '0,/^a .* = [0-9]/s/= [0-9]/&1/'
check onramp '0,/^p .* = [0-9]/s/= [0-9]/&1/'
exit $status
