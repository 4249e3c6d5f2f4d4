#!/bin/sh
# Judges the tests that were skipped: LOG holds lines "SKIP test: reason". A skip
# is fine only when a probe made here shows that the machine cannot do it; what
# the machine can do, and what no probe knows, fails.
set -eu

[ $# -eq 1 ] || { echo "usage: tools/skips.sh LOG" >&2; exit 2; }
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

has() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

loop_works() {
    image=$(mktemp)
    truncate -s 1M "$image"
    device=$(losetup -f --show "$image" 2>/dev/null) || device=
    [ -z "$device" ] || losetup -d "$device"
    rm -f "$image"
    [ -n "$device" ]
}

# Whether PyPI gives kconfiglib, with which the Kconfig tests compare.
pypi_works() {
    folder=$(mktemp -d)
    status=0
    { python3 -m venv "$folder" && "$folder/bin/pip" download -q --no-deps -d "$folder" \
        kconfiglib==14.1.0; } >/dev/null 2>&1 || status=1
    rm -rf "$folder"
    return $status
}

# Whether a script of this folder gets what it is for.
can_be_had() {
    status=0
    "$(dirname "$0")/$1" >/dev/null 2>&1 || status=$?
    [ $status -ne 3 ]
}

# Whether tools/setup.sh installs a program on this machine; one that it does not know
# counts, so that it is noticed.
installable() {
    case $(grep " $1\( \|\$\)" "$(dirname "$0")/programs") in
        *"[$(uname -m)]"*) ;;
        *"["*) return 1 ;;
    esac
    has apt-get
}

# can REASON: whether this machine can do what the reason says it cannot. The first
# of its words that names a capability decides; the general ones come last.
can() {
    case $(printf '%s' "$1" | tr '[:upper:]' '[:lower:]') in
        # What a change must pass before it lands, when it touches what they cover.
        "make test-long runs it") false ;;
        *"the program "*" is not installed"*)
            program=${1#*the program }
            installable "${program%% *}"
            ;;
        *"readers of exports"*) can_be_had readers.sh ;;
        *kconfiglib*) pypi_works ;;
        *"fio's sources"*) can_be_had conformance/source.sh ;;
        *"newer fio"*) can_be_had newer-fio.sh ;;
        *axe-core*) can_be_had axe.sh ;;
        *"no prometheus"*) can_be_had prometheus.sh ;;
        *guest*) can_be_had guest/setup.sh ;;
        *throttle*)
            is_root && { [ -e /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ] \
                || grep -qw io /sys/fs/cgroup/cgroup.controllers 2>/dev/null; }
            ;;
        *zram*) is_root && { [ -e /sys/class/zram-control ] || modprobe -n zram 2>/dev/null; } ;;
        *fuse*) is_root && [ -w /dev/fuse ] ;;
        *loop*) is_root && loop_works ;;
        *namespace*) is_root && unshare -n true 2>/dev/null ;;
        *mount*) is_root && unshare -m mount -t tmpfs none /mnt 2>/dev/null ;;
        *root*) is_root ;;
        *) true ;;
    esac
}

bad=0
while IFS= read -r line; do
    if can "${line#*: }"; then
        echo "skipped although this machine can do it: $line" >&2
        bad=1
    else
        echo "$line"
    fi
done <"$1"
exit $bad
