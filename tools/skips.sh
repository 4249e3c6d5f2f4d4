#!/bin/sh
# Judges the tests that were skipped: LOG holds lines "SKIP test: reason". A skip
# is fine only when a probe made here shows that the machine cannot do it; what
# the machine can do, and what no probe knows, fails.
set -eu

log=$1
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
bad=0

can_root() { [ "$(id -u)" -eq 0 ]; }
can_loop() {
    can_root || return 1
    image=$(mktemp) && truncate -s 1M "$image" && device=$(losetup -f --show "$image" 2>/dev/null)
    status=$?
    [ $status -ne 0 ] || losetup -d "$device"
    rm -f "$image"
    return $status
}
can_mount() { can_root && unshare -m mount -t tmpfs none /mnt 2>/dev/null; }
can_fuse() { [ -w /dev/fuse ] && can_mount && command -v fusermount3 >/dev/null; }
can_zram() { can_root && { [ -e /sys/class/zram-control ] || modprobe -n zram 2>/dev/null; }; }
can_netns() { can_root && unshare -n true 2>/dev/null; }
can_ssh() { command -v sshd >/dev/null && command -v ssh-keygen >/dev/null; }
can_fio() { command -v fio >/dev/null; }

while IFS= read -r line; do
    # The first word that names a capability decides; "root" is the most general.
    case $(printf '%s' "${line#*: }" | tr '[:upper:]' '[:lower:]') in
        *zram*) probe=can_zram ;;
        *fuse*) probe=can_fuse ;;
        *loop*) probe=can_loop ;;
        *namespace*) probe=can_netns ;;
        *ssh*) probe=can_ssh ;;
        *mount*) probe=can_mount ;;
        *root*) probe=can_root ;;
        *fio*) probe=can_fio ;;
        *) probe=true ;;
    esac
    if $probe; then
        echo "skipped although this machine can do it: $line" >&2
        bad=1
    else
        echo "$line"
    fi
done <"$log"
exit $bad
