#!/bin/sh
# Makes the guest that tests boot with QEMU (crates/testkit/src/guest.rs): Debian's
# kernel, a first root (initrd) and a root file system, from the packages of this
# machine's own apt sources. Nothing is installed here. Kept, and used again as long
# as this folder does not change, in
#   ${FATHOM_GUEST:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-guest}
# The guest has the tools to use disks in every way, udev, and no fio. Ends with 3
# where this machine cannot have one.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
state=${FATHOM_GUEST:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-guest}
kernel=linux-image-cloud-amd64
packages="$kernel busybox-static udev kmod lvm2 e2fsprogs fdisk util-linux mount libgcc-s1"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

fail() {
    echo "tools/guest/setup.sh: $1" >&2
    exit 3
}

[ "$(uname -m)" = x86_64 ] || fail "the guest is an x86-64 machine, this is not"
for program in apt-get dpkg-deb mke2fs qemu-system-x86_64; do
    command -v "$program" >/dev/null || fail "$program is missing (tools/setup.sh test installs it)"
done

mkdir -p "$state"
# One at a time: tests of several packages may begin at once.
exec 9>"$state/lock"
flock 9

version=$(cat "$here/setup.sh" "$here/init" "$here/first-root" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$state/version" 2>/dev/null)" = "$version" ]; then
    exit 0
fi
work=$(mktemp -d "$state/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/archives/partial" "$work/tree"

# An empty list of installed packages: everything that they need comes along.
: >"$work/status"
fetch() {
    # shellcheck disable=SC2086  # a list of packages is meant
    apt-get -q -y --download-only --no-install-recommends -o Debug::NoLocking=1 \
        -o Dir::State::status="$work/status" -o Dir::Cache::archives="$work/archives" \
        -o APT::Sandbox::User="$(id -un)" install $packages >"$work/apt.log" 2>&1 </dev/null
}
if ! fetch; then
    apt-get -q update >/dev/null 2>&1 </dev/null || true
    fetch || { cat "$work/apt.log" >&2; fail "its packages cannot be had"; }
fi

unpack() {
    dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink --no-same-owner -C "$work/tree" -f -
}
for deb in "$work"/archives/*.deb; do
    unpack "$deb"
done
rm -rf "$work/tree/usr/share" "$work/tree/usr/lib/x86_64-linux-gnu/gconv"
for dir in proc sys dev run tmp mnt root guest; do
    mkdir -p "$work/tree/$dir"
done
ln -sf dash "$work/tree/bin/sh"
[ -e "$work/tree/bin/dash" ] || ln -sf busybox "$work/tree/bin/sh"
for name in vi awk sed grep cmp find xargs wc head tail cut sort; do
    [ -e "$work/tree/bin/$name" ] || ln -s busybox "$work/tree/bin/$name"
done
printf 'root:x:0:0:root:/root:/bin/sh\n' >"$work/tree/etc/passwd"
printf 'root:x:0:\ndisk:x:6:\n' >"$work/tree/etc/group"
install -m 755 "$here/init" "$work/tree/sbin/guest-init"
release=$(basename "$work"/tree/lib/modules/*)
depmod -b "$work/tree" "$release" 2>/dev/null \
    || "$work/tree/bin/busybox" depmod -b "$work/tree" "$release"
mv "$work/tree/boot/vmlinuz-$release" "$work/vmlinuz"
rm -rf "$work/tree/boot"

first=$work/first
mkdir -p "$first/bin" "$first/proc" "$first/sys" "$first/dev" "$first/root" "$first/tmp"
cp "$work/tree/bin/busybox" "$first/bin/busybox"
ln -s busybox "$first/bin/sh"
install -m 755 "$here/first-root" "$first/init"
(cd "$first" && find . | bin/busybox cpio -o -H newc 2>/dev/null) >"$work/initrd"

mke2fs -q -t ext4 -O ^has_journal -d "$work/tree" "$work/root.ext4" 256M >/dev/null
cp "$work/tree/bin/busybox" "$work/busybox"
for part in vmlinuz initrd root.ext4 busybox; do
    mv "$work/$part" "$state/$part"
done
printf '%s\n' "$version" >"$state/version"
echo "guest: $release, in $state"
