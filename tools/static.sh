#!/bin/sh
# Proves of a static binary what is promised of it: at most 25 MiB, and the quick
# series, job files and records with nothing but a kernel. It runs in an empty root
# (no libc, no shell, no /usr; first without /proc, /sys and /dev, then with them),
# then beside nothing but a shell in a booted guest (tools/guest). That last part is
# left out, with its reason, where no guest can be had.
set -eu

[ $# -eq 1 ] || { echo "usage: tools/static.sh BINARY" >&2; exit 2; }
binary=$(realpath "$1")
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
most=$((25 * 1024 * 1024))

fail() {
    echo "tools/static.sh: $1" >&2
    exit 1
}

size=$(stat -c %s "$binary")
echo "$binary: $size bytes"
[ "$size" -le "$most" ] || fail "it is larger than 25 MiB"
if ldd "$binary" 2>&1 | grep -q '=>'; then
    fail "it is not static"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# A root with /fathom and, in /data, what it is to run.
prepare() {
    mkdir -p "$1/data" "$1/proc" "$1/sys" "$1/dev"
    cp "$binary" "$1/fathom"
    cat >"$1/data/small.toml" <<'GROUP'
format = "fathom-quick-group"
version = 1
name = "small"
size = "2M"
runtime_s = 1
native_aio = { Linux = "libaio" }
[[series]]
title = "series"
tests = [
  { name = "writes", files = 2, engine = "sync", depth = 1, bs = "64k", rw = "write", init = true },
  { name = "aio", files = 2, engine = "native aio", depth = 4, bs = "4k", rw = "randrw" },
]
GROUP
    printf '[a]\nrw=randrw\nsize=1m\niodepth=4\nioengine=libaio\nfilename=/data/f\n' >"$1/data/job.fio"
}
quick="quick here /data --group /data/small.toml --no-install"
job="job run /data/job.fio"

# Judges what the three commands said, which stands in $work/quick, job and show.
judge() {
    for said in "quick:Tests complete" "quick:writes: [1-9]" "quick:aio: [1-9]" \
        "quick:engine   native-" "quick:the native engine runs the tests" \
        "job:randrw" "show:job: complete" "show:native-"; do
        file=$work/${said%%:*}
        grep -q -- "${said#*:}" "$file" || { cat "$file" >&2; fail "$1: '$said' was not said"; }
    done
    echo "$1: quick, job run and show do their work"
}

# in_root MOUNTS ARGUMENTS: runs it in a name space of its own, so that mounts end with it.
in_root() {
    # shellcheck disable=SC2016,SC2086  # for the inner shell; a list of options
    unshare $names sh -euc '
        if [ "$2" = with ]; then
            for dir in proc sys dev; do mount --rbind "/$dir" "$1/$dir"; done
        fi
        root=$1
        shift 2
        exec env -i "$(command -v chroot)" "$root" /fathom --runs /data/runs "$@"
    ' sh "$work/tree" "$@" 2>&1
}
names=-m
[ "$(id -u)" -eq 0 ] || names=-rm
for mounts in without with; do
    prepare "$work/tree"
    # shellcheck disable=SC2086  # lists of arguments
    {
        in_root $mounts $quick >"$work/quick" || { cat "$work/quick" >&2; fail "quick failed"; }
        in_root $mounts $job >"$work/job" || { cat "$work/job" >&2; fail "job run failed"; }
        in_root $mounts show >"$work/show" || { cat "$work/show" >&2; fail "show failed"; }
    }
    judge "an empty root $mounts /proc, /sys and /dev"
    rm -rf "$work/tree"
done

status=0
"$here/guest/setup.sh" 2>"$work/why" || status=$?
case $status in
    0) ;;
    3) echo "not tried as the only program of a machine: $(cat "$work/why")"; exit 0 ;;
    *) fail "$(cat "$work/why")" ;;
esac
guest=${FATHOM_GUEST:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-guest}
prepare "$work/tree"
cat >"$work/tree/bare" <<BARE
for run in "quick:$quick" "job:$job" "show:show"; do
    echo "BEGIN \${run%%:*}"
    NO_COLOR=1 /fathom --runs /data/runs \${run#*:}
    echo "END \$?"
done
BARE
# The kernel unpacks archives that follow each other into one root.
{
    cat "$guest/initrd"
    (cd "$work/tree" && find . | "$guest/busybox" cpio -o -H newc 2>/dev/null)
} >"$work/initrd"
timeout 300 qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -smp 2 -m 768M \
    -display none -no-reboot -nodefaults -no-user-config \
    -kernel "$guest/vmlinuz" -initrd "$work/initrd" \
    -append "console=ttyS0 panic=-1 mitigations=off random.trust_cpu=on no_timer_check fathom.bare" \
    -serial "file:$work/kernel.log" -serial "file:$work/bare.log" </dev/null \
    || fail "the guest did not end"
for run in quick job show; do
    sed -n "/^BEGIN $run/,/^END /p" "$work/bare.log" | tr -d '\r' >"$work/$run"
    grep -q '^END 0' "$work/$run" || { cat "$work/bare.log" "$work/kernel.log" >&2; fail "$run failed in the guest"; }
done
judge "the only program of a machine"
