#!/bin/sh
# Installs the Debian packages that are missing for the groups named:
#   build  what cargo needs to link
#   quick  what the quick series needs
#   bench  what others do the same with, for the benchmarks
#   test   what the tests drive: sshd, file systems, loop devices, FUSE, QEMU, a browser
# Anyone but root is told what to install. Does nothing when nothing is missing.
set -eu

[ $# -gt 0 ] || { echo "usage: tools/setup.sh build|quick|bench|test ..." >&2; exit 2; }

# Daemons and tools for administrators lie outside an ordinary user's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
missing=

# need COMMAND PACKAGE: the package is wanted where the command is not found.
need() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

for group in "$@"; do
    case $group in
        build) need cc gcc; [ -e /usr/include/stdio.h ] || missing="$missing libc6-dev" ;;
        quick) need cc gcc; need fio fio ;;
        bench)
            need gnuplot gnuplot-nox
            python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
            ;;
        test)
            need fio fio
            need ssh openssh-client
            need sshd openssh-server
            need losetup mount
            need mkfs.ext4 e2fsprogs
            need fusermount3 fuse3
            need pkg-config pkg-config
            [ -e /usr/include/fuse3/fuse.h ] || missing="$missing libfuse3-dev"
            need shellcheck shellcheck
            # For the HTML report: its script alone, and in a browser.
            need node nodejs
            need chromium chromium
            need tmux tmux
            # For the guest, which is an x86-64 machine (tools/guest).
            [ "$(uname -m)" != x86_64 ] || need qemu-system-x86_64 qemu-system-x86
            # For the oracle of the Kconfig tests, from PyPI.
            python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
            ;;
        *) echo "tools/setup.sh: no group '$group'" >&2; exit 2 ;;
    esac
done

# Cargo itself cannot be had from Debian 12: its version is too old.
command -v cargo >/dev/null 2>&1 || {
    echo "tools/setup.sh: cargo is missing; install Rust with rustup" >&2
    exit 1
}

# shellcheck disable=SC2086  # a list of words is meant
missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')
[ -n "${missing% }" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "tools/setup.sh: missing: $missing- install them with this system's package manager" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "tools/setup.sh: missing: $missing- run: sudo apt-get install $missing" >&2
    exit 1
fi

echo "installing: $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update </dev/null
# shellcheck disable=SC2086  # a list of words is meant
apt-get -q -y install --no-install-recommends $missing </dev/null
