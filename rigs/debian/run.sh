#!/usr/bin/env bash
# Runs lanes as a machine would that has never seen the project: a throw-away minimal Debian 12 with git, make, a C
# compiler and the host's Rust toolchain, in which a fresh clone of HEAD installs what it needs itself. Nothing is kept.
# Without a command: the cores, what `make test-hosts` runs, and the package.
# The kernel is the host's: the lanes of BPF and QUIC need one with BTF and struct_ops.
# usage: rigs/debian/run.sh [COMMAND...]
set -euo pipefail
cd "$(dirname "$0")/../.."
what="the lanes on a bare machine"
if [ "$(id -u)" != 0 ]; then
    if [ "${CI:-}" = true ]; then
        echo "$what: root is needed" >&2
        exit 1
    fi
    echo "skipped: $what (needs root)"
    exit 0
fi
scripts/debian.sh debootstrap debootstrap "$what"
command -v debootstrap >/dev/null || exit 0
if [ "${BARE_MACHINE:-}" != inside ]; then
    BARE_MACHINE=inside exec unshare --mount --pid --fork --kill-child --propagation private rigs/debian/run.sh "$@"
fi
lanes=("$@")
if [ ${#lanes[@]} -eq 0 ]; then
    # The cores' tools are installed by the target that runs them.
    cores="make -n test | grep '^scripts/debian.sh' | sh && deploy/core/test/run.sh"
    mapfile -t hosts < <(make -n --no-print-directory test-hosts)
    lanes=("$cores" "${hosts[@]}" deploy/linux/tcp_marimo/package-test.sh)
fi

base=$(rigs/debian/root.sh bare git make gcc libc6-dev ca-certificates)
toolchain=$(rustc --print sysroot)
# On the disk of the build folder and not in memory: clones, kernels and builds are large.
work=$(mktemp -d target/rigs/debian/bare-machine.XXXXXX)
work=$PWD/$work
# shellcheck disable=SC2317 # called by the trap
end() {
    umount -R "$work/root" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap end EXIT
mkdir "$work"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
mount -t proc proc "$work/root/proc"
mount --rbind /sys "$work/root/sys"
mount --rbind /dev "$work/root/dev"
mount --make-rslave "$work/root"
mkdir -p "$work/root/opt/rust"
mount --bind -o ro "$toolchain" "$work/root/opt/rust"
# A congestion control has one name in a kernel: the netns rig waits for that of the host.
touch /run/incast-netns-rig.lock "$work/root/run/incast-netns-rig.lock"
mount --bind /run/incast-netns-rig.lock "$work/root/run/incast-netns-rig.lock"
# Registries are trusted as the host trusts them.
cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$work/root/etc/ssl/certs/ca-certificates.crt"
git clone -q --no-hardlinks --no-local . "$work/root/opt/incast"

status=0
for lane in "${lanes[@]}"; do
    started=$SECONDS
    if chroot "$work/root" /usr/bin/env -i CI=true HOME=/root LC_ALL=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
        PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash -c "cd /opt/incast && $lane" </dev/null >"$work/log" 2>&1; then
        tail -n 1 "$work/log"
        echo "rigs/debian: $lane: passed in $((SECONDS - started)) s"
    else
        status=1
        tail -n 60 "$work/log"
        echo "rigs/debian: $lane: failed after $((SECONDS - started)) s"
    fi
done
exit $status
