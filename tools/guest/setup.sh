#!/bin/sh
# Makes the guest that tests boot with QEMU (crates/testkit/src/guest.rs): Debian's
# kernel, a first root (initrd) and a root file system, from the packages of this
# machine's own apt sources. Nothing is installed here. Kept, and used again as long
# as this folder does not change, in
#   ${FATHOM_GUEST:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-guest}
# The guest has the tools to use disks in every way, udev, and no fio. Ends with 3
# where this machine cannot have one.
#
# With "newer" as its argument it makes another guest, in the folder newer/ of that
# one: of Debian 13, with its kernel (6.12) and its fio, and with a disk in software
# that has Command Duration Limits (cdl-up, cdl-disk.c).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/fetching.sh
. "$here/../fetching.sh"

kernel=linux-image-cloud-amd64
packages="$kernel busybox-static udev kmod lvm2 e2fsprogs fdisk util-linux mount libgcc-s1"
needed="apt-get dpkg-deb mke2fs qemu-system-x86_64"
size=256M
parts="setup.sh init first-root"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
newer=${1:-}
if [ "$newer" = newer ]; then
    packages="$packages fio"
    needed="$needed cc"
    parts="$parts cdl-up cdl-disk.c"
    size=768M
fi
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

[ "$(uname -m)" = x86_64 ] || fail "the guest is an x86-64 machine, this is not"
keep_in FATHOM_GUEST fathom-guest
[ "$newer" != newer ] || state=$state/newer
# shellcheck disable=SC2086  # a list of files is meant
unless_there "$(cd "$here" && cat $parts | sha256sum | cut -d' ' -f1)"
installer="tools/setup.sh build guest"
# shellcheck disable=SC2086  # a list of programs is meant
need $needed
mkdir -p "$state"
make_work
mkdir -p "$work/archives/partial" "$work/lists/partial" "$work/tree"

# An empty list of installed packages: everything that they need comes along.
: >"$work/status"
apt() {
    apt-get -q -y -o Debug::NoLocking=1 -o Dir::State::status="$work/status" \
        -o Dir::Cache::archives="$work/archives" -o APT::Sandbox::User="$(id -un)" "$@" \
        >"$work/apt.log" 2>&1 </dev/null
}
# The other Debian comes from the mirror of this one, with lists of its own.
apt_newer() {
    apt -o Dir::Etc::SourceList="$work/sources" -o Dir::Etc::SourceParts=- \
        -o Dir::Etc::PreferencesParts=- -o Dir::State::Lists="$work/lists" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
}
# shellcheck disable=SC2086  # a list of packages is meant
fetch() { "$1" --download-only --no-install-recommends install $packages; }
if [ "$newer" = newer ]; then
    [ -r "$keys" ] || fail "$keys is missing: Debian's packages cannot be checked"
    mirror=$("$here/../mirror.sh")
    echo "deb [signed-by=$keys] $mirror trixie main" >"$work/sources"
    # In Debian 13 the folders of the root are links into /usr.
    for dir in bin sbin lib lib64; do
        mkdir -p "$work/tree/usr/$dir"
        ln -s "usr/$dir" "$work/tree/$dir"
    done
    { apt_newer update && fetch apt_newer; } \
        || { cat "$work/apt.log" >&2; fail "its packages cannot be had"; }
elif ! fetch apt; then
    apt-get -q update >/dev/null 2>&1 </dev/null || true
    fetch apt || { cat "$work/apt.log" >&2; fail "its packages cannot be had"; }
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
if [ "$newer" = newer ]; then
    install -m 755 "$here/cdl-up" "$work/tree/sbin/cdl-up"
    cc -O2 -static -o "$work/tree/sbin/cdl-disk" "$here/cdl-disk.c" \
        || fail "cc cannot make cdl-disk (Debian: gcc, libc6-dev)"
fi
release=$(basename "$work"/tree/lib/modules/*)
# The guest's own, with its own loader: this machine need not have one.
libraries=$work/tree/lib/x86_64-linux-gnu:$work/tree/usr/lib/x86_64-linux-gnu
"$work"/tree/lib64/ld-linux-x86-64.so.2 --inhibit-cache --library-path "$libraries" \
    --argv0 depmod "$work/tree/bin/kmod" -b "$work/tree" "$release"
mv "$work/tree/boot/vmlinuz-$release" "$work/vmlinuz"
rm -rf "$work/tree/boot"

first=$work/first
mkdir -p "$first/bin" "$first/proc" "$first/sys" "$first/dev" "$first/root" "$first/tmp"
cp "$work/tree/bin/busybox" "$first/bin/busybox"
ln -s busybox "$first/bin/sh"
install -m 755 "$here/first-root" "$first/init"
(cd "$first" && find . | bin/busybox cpio -o -H newc 2>/dev/null) >"$work/initrd"

mke2fs -q -t ext4 -O ^has_journal -d "$work/tree" "$work/root.ext4" $size >/dev/null
cp "$work/tree/bin/busybox" "$work/busybox"
for part in vmlinuz initrd root.ext4 busybox; do
    mv "$work/$part" "$state/$part"
done
echo "guest: $release"
is_there
