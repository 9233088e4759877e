#!/bin/sh
# Tests of the cores alone: they compile without a library, call nothing outside, and agree with the golden vectors on
# every machine at hand. The oracles make the vectors here; what is committed is a sample, and the hash of the whole. A
# lane whose tools are missing is skipped with one line; under CI=true that is a failure.
set -eu
cd "$(dirname "$0")/.."
out=${1:-../../target/core}
mkdir -p "$out"
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

check marimo '0,/^a .* = [0-9]/s/= [0-9]/&1/'
check onramp '0,/^p .* = [0-9]/s/= [0-9]/&1/'
exit $status
