#!/usr/bin/env bash
# Tests of what Linux needs around Marimo and On-Ramp: marimo_tcp.h alone (golden vectors of an independent oracle on every
# machine at hand, nothing called from outside, small enough for BPF), onramp_tcp.h (by hand, at random, and a recording of a
# kernel, here and in the kernel that runs), then the module in user space, what tests must notice, and the kernel's style. The oracle makes the vectors here; what
# is committed is a sample, and the hash of the whole. A lane whose tools are missing is skipped with one line; under
# CI=true that is a failure.
# usage: run.sh [OUT]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out=${1:-$root/target/deploy/linux}
mkdir -p "$out"
cd "$root"
status=0

skip() {
    echo "skipped: deploy/linux: $1 ($2)"
    if [ "${CI:-}" = true ]; then status=1; fi
}
has() { command -v "$1" >/dev/null 2>&1; }
want() { scripts/debian.sh "$1" "$2" "deploy/linux: $3" >/dev/null || true; }

want python3 python3 "the oracle of marimo_tcp.h"
want gcc gcc "marimo_tcp.h on this machine"
want clang clang "marimo_tcp.h for BPF"
want riscv64-unknown-elf-gcc gcc-riscv64-unknown-elf "marimo_tcp.h on a 32-bit RISC-V core"
want qemu-riscv32 qemu-user "marimo_tcp.h on a 32-bit RISC-V core"
want perl perl "checkpatch"
want patch patch "the sabotage of tcp_marimo"

strict=(-std=c99 -Wall -Wextra -Werror -ffreestanding -O2)
program=$here/marimo_tcp.c
sample=$here/marimo_tcp.txt
recording=$root/deploy/core/test/onramp-kernel.txt

# One object with every function of the header: what it leaves undefined are calls that the compiler made up.
cat >"$out/all.c" <<'C'
#include "deploy/linux/marimo_tcp.h"
#define EXPORT __attribute__((used, noinline))
EXPORT void all_init(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
		     const struct marimo_tcp_sample *in, struct marimo_tcp_decision *out);
void all_init(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
	      const struct marimo_tcp_sample *in, struct marimo_tcp_decision *out)
{
	marimo_tcp_init(m, c, t, in, out);
}
EXPORT void all_ack(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
		    const struct marimo_tcp_sample *in, struct marimo_tcp_decision *out);
void all_ack(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
	     const struct marimo_tcp_sample *in, struct marimo_tcp_decision *out)
{
	marimo_tcp_on_ack(m, c, t, in, out);
}
EXPORT int all_state(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
		     struct marimo_tcp_sample *in, struct marimo_tcp_decision *out);
int all_state(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_table *t,
	      struct marimo_tcp_sample *in, struct marimo_tcp_decision *out)
{
	return marimo_tcp_on_state(m, c, t, in, out);
}
EXPORT int all_start(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_tcp_sample *in,
		     struct marimo_tcp_decision *out);
int all_start(struct marimo_tcp *m, const struct marimo_config *c, const struct marimo_tcp_sample *in,
	      struct marimo_tcp_decision *out)
{
	return marimo_tcp_on_start(m, c, in, out);
}
EXPORT marimo_u32 all_undo(struct marimo_tcp *m, const struct marimo_config *c);
marimo_u32 all_undo(struct marimo_tcp *m, const struct marimo_config *c)
{
	marimo_tcp_on_timeout(m);
	return marimo_tcp_on_undo(m, c) + marimo_tcp_min_tso_segs(m);
}
EXPORT marimo_u32 all_echo(struct marimo_tcp *m, marimo_u32 ce, marimo_u32 at, marimo_u32 wait, marimo_u32 *before);
marimo_u32 all_echo(struct marimo_tcp *m, marimo_u32 ce, marimo_u32 at, marimo_u32 wait, marimo_u32 *before)
{
	return marimo_tcp_echo(m, ce, at, wait, before);
}
C

nothing_undefined() {
    local undefined
    undefined=$("$1" -u "$2")
    if [ -n "$undefined" ]; then
        echo "deploy/linux: marimo_tcp.h needs from outside ($2):"
        echo "$undefined"
        status=1
    fi
}

if has python3; then
    vectors=$out/marimo_tcp-whole.txt
    if python3 deploy/linux/oracle/marimo_tcp.py --check "$sample" "$vectors"; then
        echo "deploy/linux: marimo_tcp: the oracle makes the committed sample, and vectors with the committed hash"
    else
        status=1
    fi
else
    skip "marimo_tcp: all vectors but the sample" "no python3"
    vectors=$sample
fi

# The macro of marimo_f.h has the knots of the calibrated table.
found=$(sed -n 's/^\t\([0-9, ]*\),.*/\1/p' deploy/linux/marimo_f.h | tr -s ', ' '\n')
if [ "$found" = "$(grep -E '^[0-9]+$' deploy/core/marimo-f.table)" ]; then
    echo "deploy/linux: marimo_f.h is deploy/core/marimo-f.table"
else
    echo "deploy/linux: marimo_f.h is not deploy/core/marimo-f.table"
    status=1
fi

# The module's version is that of the workspace.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
if ! grep -q "^MODULE_VERSION(\"$version\");" deploy/linux/tcp_marimo/tcp_marimo.c; then
    echo "deploy/linux: MODULE_VERSION of tcp_marimo.c is not the version in Cargo.toml"
    status=1
fi

# replays WHERE PROGRAM: the recording; a wrong outcome of either kind of call must be noticed.
replays() {
    local kind
    printf 'deploy/linux: onramp_tcp: %s: ' "$1"
    "$2" <"$recording" || status=1
    for kind in a d; do
        if sed "0,/^$kind .* [1-9][0-9]*\$/s/^\($kind .*\)\$/\11/" "$recording" | "$2" >/dev/null; then
            echo "deploy/linux: onramp_tcp: $1: a wrong outcome of kind $kind was not noticed"
            status=1
        fi
    done
}

# What a kernel's On-Ramp was told and decided, through onramp_tcp.h here and in the kernel that runs.
recorded() {
    local bare=(-fno-stack-protector -nostdlib -static) name=onramp_replay
    if [ "$(uname -m)" != x86_64 ]; then
        skip "onramp_tcp: the recording" "this machine is $(uname -m), the program's system calls are x86-64's"
        return
    fi
    "$cc" "${strict[@]}" "${bare[@]}" deploy/linux/test/$name.c -o "$out/$name-host"
    replays x86-64 "$out/$name-host"
    if ! has clang || ! has python3 || [ "$(id -u)" != 0 ]; then
        skip "onramp_tcp: the recording in this kernel" "needs clang, python3 and root"
        return
    fi
    clang -target bpf -mcpu=v3 -std=gnu11 -Wall -Wextra -Werror -ffreestanding -O2 -c deploy/linux/test/$name.bpf.c \
        -o "$out/$name-program.o"
    python3 deploy/core/test/section.py "$out/$name-program.o" syscall >"$out/$name-program.h"
    "$cc" "${strict[@]}" "${bare[@]}" -DIN_KERNEL="\"$name-program.h\"" -I"$out" deploy/linux/test/$name.c -o "$out/$name-kernel"
    replays "in kernel $(uname -r)" "$out/$name-kernel"
}

cc=${CC:-cc}
if has "$cc"; then
    "$cc" "${strict[@]}" -I. -c "$out/all.c" -o "$out/all-host.o" -fno-stack-protector
    nothing_undefined nm "$out/all-host.o"
    if [ "$(uname -m)" = x86_64 ]; then
        "$cc" "${strict[@]}" -fno-stack-protector -nostdlib -static "$program" -o "$out/vectors-host"
        printf 'deploy/linux: marimo_tcp: x86-64: '
        "$out/vectors-host" <"$vectors" || status=1
        "$out/vectors-host" <"$sample" >/dev/null || status=1
        # An error that the program itself would not see: one wrong number must be noticed in each kind of line.
        for kind in n a s i u e; do
            if sed "0,/^$kind /s/^\($kind .*= \)[0-9.]*/\19/" "$vectors" |
                "$out/vectors-host" >/dev/null; then
                echo "deploy/linux: marimo_tcp: a wrong vector of kind $kind was not noticed"
                status=1
            fi
        done
    else
        skip "marimo_tcp: x86-64" "this machine is $(uname -m), the program's system calls are x86-64's"
    fi
else
    skip "marimo_tcp: x86-64" "no C compiler"
fi

if has clang; then
    clang -target bpf "${strict[@]}" -I. -g -c "$out/all.c" -o "$out/all-bpf.o"
    # Signed division, which BPF does not have, is an error of this compiler.
    echo "deploy/linux: marimo_tcp: BPF: compiled"
else
    skip "marimo_tcp: BPF" "no clang"
fi

rv=riscv64-unknown-elf
if has $rv-gcc && has qemu-riscv32; then
    machine=(-march=rv32imc -mabi=ilp32)
    $rv-gcc "${machine[@]}" "${strict[@]}" -I. -c "$out/all.c" -o "$out/all-rv32.o"
    nothing_undefined $rv-nm "$out/all-rv32.o"
    signed=$($rv-objdump -d "$out/all-rv32.o" | grep -Ec '\s(div|rem)\s' || true)
    unsigned=$($rv-objdump -d "$out/all-rv32.o" | grep -Ec '\s(divu|remu)\s' || true)
    if [ "$signed" -ne 0 ] || [ "$unsigned" -lt 3 ]; then
        echo "deploy/linux: marimo_tcp: rv32imc: $signed signed divisions, $unsigned unsigned"
        status=1
    fi
    $rv-gcc "${machine[@]}" "${strict[@]}" -nostdlib -static "$program" -o "$out/vectors-rv32"
    printf 'deploy/linux: marimo_tcp: rv32imc: '
    qemu-riscv32 "$out/vectors-rv32" <"$vectors" || status=1
else
    skip "marimo_tcp: rv32imc" "needs gcc-riscv64-unknown-elf and qemu-user"
fi

if has "$cc"; then
    "$cc" -std=c99 -O2 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover deploy/linux/test/onramp_tcp.c \
        -o "$out/onramp_tcp"
    "$out/onramp_tcp" || status=1
    recorded
    deploy/linux/tcp_marimo/test/unit.sh "$out/unit" || status=1
    deploy/linux/tcp_marimo/test/sabotage.sh "$out/sabotage" || status=1
else
    skip "the module in user space" "no C compiler"
fi
deploy/linux/tcp_marimo/test/checkpatch.sh "$out/checkpatch" || status=1
if [ $status = 0 ]; then
    echo "deploy/linux: vectors on each machine, the module in user space, sabotage, style: checked"
else
    echo "deploy/linux: failed, see above"
fi
exit $status
