#!/bin/sh
# Runs COMMAND in a bare Debian 12: what debootstrap calls minbase, Rust, and a fresh
# clone of HEAD as /root/fathom, where it begins. Without COMMAND it runs the first
# commands of README.md as they stand there. As root:
#
#   tools/bare.sh [--keep] [COMMAND [ARGUMENT…]]
#
# It has the kernel, devices, control groups and network of this machine, and processes
# and mounts of its own, which end with it. Of this machine's files it sees none but
# those with which package managers are configured, and its Rust, which it may change
# without this machine noticing. Everything lies in
#   ${XDG_CACHE_HOME:-$HOME/.cache}/fathom-bare
# where the Debian is kept, and with --keep what COMMAND has left.
set -eu

top=$(realpath "$(dirname "$0")/..")
suite=bookworm
began=$(date +%s)

fail() {
    echo "tools/bare.sh: $1" >&2
    exit 1
}
say() { echo "[bare $(($(date +%s) - began))s] $1" >&2; }

# The second half, in name spaces of its own: mounts, then goes there for good.
inside() {
    root=$1/root
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    # This machine's: loop devices and the like appear in it when they are made.
    mount --rbind /dev "$root/dev"
    mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mkdir -m 1777 "$root/run/lock"
    for kind in cargo rustup; do
        home=$root/root/.$kind
        mkdir -p "$home" "$1/$kind/upper" "$1/$kind/work"
        real=$(cat "$1/$kind.home")
        mount -t overlay -o "lowerdir=$real,upperdir=$1/$kind/upper,workdir=$1/$kind/work" \
            overlay "$home" 2>/dev/null || cp -a "$real/." "$home"
        rm -f "$home"/credentials*
    done
    shift
    cd "$root"
    pivot_root . mnt
    # shellcheck disable=SC2016  # for the shell over there
    exec /bin/sh -euc 'umount -l /mnt; mount --make-rshared /; cd /root/fathom; "$@" && exit' sh \
        env -i FATHOM_BARE=1 CI="${CI:-}" HOME=/root TERM="${TERM:-dumb}" \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" 9>&-
}

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
fi

keep=
name=run
if [ "${1:-}" = --keep ]; then
    keep=1
    name=kept
    shift
fi
[ "$(id -u)" -eq 0 ] || fail "it needs root"
"$top/tools/setup.sh" bare
if [ $# -eq 0 ]; then
    # Each command is told with its time when it begins (sh may leave PS4 as it is).
    set -- bash -euc "PS4='[bare \$((\$(date +%s) - $began))s] '; set -x
$(awk '/^```/ { n++; next } n == 1' "$top/README.md")"
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/fathom-bare
mkdir -p "$cache"
# One at a time, until the rest is done in a folder of its own.
exec 8>"$cache/lock"
flock 8
# What runs have left that were killed: nobody holds their lock.
for old in "$cache"/run.*; do
    [ ! -d "$old" ] || flock -n "$old/lock" rm -rf --one-file-system "$old" || true
done
work=$(mktemp -d "$cache/$name.XXXXXX")
root=$work/root
exec 9>"$work/lock"
flock 9
trap 'exit 130' INT TERM
trap '[ -n "$keep" ] || rm -rf --one-file-system "$work"' EXIT

mirror=$("$top/tools/mirror.sh")
security=$("$top/tools/mirror.sh" debian-security 2>/dev/null) || true

base=$cache/$suite-$(dpkg --print-architecture).tar
if [ ! -e "$base" ]; then
    say "debootstrap"
    include=
    case $mirror in https:*) include=--include=ca-certificates ;; esac
    # shellcheck disable=SC2086  # no word where it is empty
    debootstrap --variant=minbase $include "$suite" "$work/base" "$mirror" >"$work/log" 2>&1 \
        || { tail "$work/log" >&2; fail "debootstrap failed"; }
    rm -f "$work"/base/var/cache/apt/archives/*.deb
    tar -C "$work/base" -cf "$work/base.tar" .
    mv "$work/base.tar" "$base"
    rm -rf "$work/base"
fi
exec 8>&-

say "unpacking"
mkdir "$root"
tar -C "$root" -xpf "$base"
{
    echo "deb $mirror $suite main"
    echo "deb $mirror $suite-updates main"
    [ -z "$security" ] || echo "deb $security $suite-security main"
} >"$root/etc/apt/sources.list"
# It does not last: no write need be waited for.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
# No package may start a daemon: it would be in this machine's network.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp -L /etc/resolv.conf /etc/hosts "$root/etc"
uname -n >"$root/etc/hostname"

# How package managers reach what they want: proxies, mirrors, certificates. No secrets.
apt-config dump | grep -i '^Acquire::https\{0,1\}::' >"$root/etc/apt/apt.conf.d/90machine" || true
for file in /etc/pip.conf "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf" "$HOME/.config/go/env"; do
    to=$root/root${file#"$HOME"}
    [ "$file" != /etc/pip.conf ] || to=$root$file
    [ ! -e "$file" ] || install -D -m 644 "$file" "$to"
done
mkdir -p "$root/usr/local/share/ca-certificates"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates" 2>/dev/null || true
for name in $(env | sed -nE 's/^(((https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY)|CARGO_(HTTP|NET|REGISTR|SOURCE)[A-Z_]*|RUSTUP_(DIST_SERVER|UPDATE_ROOT)|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|CERT|PROXY|RETRIES|DEFAULT_TIMEOUT)|GO(PROXY|SUMDB|NOSUMDB|PRIVATE|NOPROXY|INSECURE)|(SSL_CERT_FILE|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE))=.*/\1/p' | grep -v TOKEN); do
    value=$(printenv "$name")
    set -- "$name=$value" "$@"
    # A bundle of its own; Debian's comes with ca-certificates.
    case $value in
        /etc/ssl/*) ;;
        /*) [ ! -f "$value" ] || install -D -m 644 "$value" "$root$value" ;;
    esac
done

echo "${CARGO_HOME:-$HOME/.cargo}" >"$work/cargo.home"
echo "${RUSTUP_HOME:-$HOME/.rustup}" >"$work/rustup.home"
[ -x "$(cat "$work/cargo.home")/bin/rustup" ] || fail "no Rust from rustup in $(cat "$work/cargo.home")"

[ -z "$(git -C "$top" status --porcelain)" ] || say "without what is not committed"
git clone -q --no-local "$top" "$root/root/fathom"
say "$(git -C "$root/root/fathom" log -1 --format='%h %s')"

status=0
# Whoever kills this kills all of it.
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private \
    "$0" --inside "$work" "$@" || status=$?
say "ended with $status"
[ -z "$keep" ] || say "kept: $root"
exit $status
