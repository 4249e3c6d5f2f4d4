#!/bin/sh
# Makes what is given away, in dist/: for each machine a tarball, a .deb and an OCI
# image; papers (SBOM, licences), notes and SHA-256 sums.
#
# Two builds of one commit by one compiler are to be the same bytes in whatever folder: paths
# are cut off, archives are sorted and belong to nobody, and every time is that of the
# commit. What a machine lacks to build for another is said, and left out.
set -eu
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
version=$(tools/version.sh)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC CARGO_INCREMENTAL=0
# Lints are for those who change it.
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
target_dir=${CARGO_TARGET_DIR:-$PWD/target}
dist=$PWD/dist
rm -rf "$dist"
mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# What would name this machine's folders in the binary.
home=${CARGO_HOME:-$HOME/.cargo}
for pair in "$target_dir=/target" "$PWD=/fathom" "$home=/cargo"; do
    RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$pair"
    CFLAGS="${CFLAGS:-} -ffile-prefix-map=$pair"
done
export RUSTFLAGS CFLAGS

# Writes a folder's content as a .tar.gz that depends on nothing but it.
archive() {
    find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        --format=ustar -C "$(dirname "$1")" -cf - "$(basename "$1")" | gzip -9n >"$2"
}

# build TARGET: the binary's path, or nothing where it cannot be built here.
build() {
    rustup target add "$1" >&2 || return 0
    if [ "${1%%-*}" != "$(uname -m)" ]; then
        cross=${1%%-*}-linux-gnu-gcc
        if ! command -v "$cross" >/dev/null; then
            echo "tools/dist.sh: not built for $1: $cross is missing (apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)" >&2
            return 0
        fi
        # Rust brings the C library of musl; from Debian comes only the compiler of C.
        export CC_aarch64_unknown_linux_musl="$cross" AR_aarch64_unknown_linux_musl="${1%%-*}-linux-gnu-ar"
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
        export CFLAGS_aarch64_unknown_linux_musl="$CFLAGS -U_FORTIFY_SOURCE -mno-outline-atomics"
    fi
    "$cargo" build --release --locked -p fathom-cli --target "$1" >&2
    echo "$target_dir/$1/release/fathom"
}

# What comes with every binary, made by the one of this machine.
papers() {
    mkdir -p "$1/man1" "$1/completions"
    "$own" man "$1/man1"
    for shell in bash zsh fish; do
        "$own" completions "$shell" >"$1/completions/fathom.$shell"
    done
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$dist/THIRD-PARTY.txt" "$1"
}

tarball() {
    name=fathom-$version-$1-linux
    rm -rf "${work:?}/$name"
    mkdir -p "$work/$name"
    install -m 755 "$2" "$work/$name/fathom"
    papers "$work/$name"
    archive "$work/$name" "$dist/$name.tar.gz"
}

# deb MACHINE ARCHITECTURE BINARY: no scripts; nothing is started, nothing is configured.
deb() {
    root=$work/deb-$1
    doc=$root/usr/share/doc/fathom
    mkdir -p "$root/DEBIAN" "$doc"
    tools/install.sh --packed "$3" "$root/usr" "$own" >/dev/null
    mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
    find "$root/usr/share/man" -type f -exec gzip -9n {} +
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
    cat LICENSE-MIT LICENSE-APACHE "$dist/THIRD-PARTY.txt" >"$doc/copyright"
    {
        echo "Package: fathom"
        echo "Version: $version"
        echo "Architecture: $2"
        echo "Maintainer: The authors of Fathom <fathom@localhost>"
        echo "Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f 1)"
        echo "Suggests: fio, openssh-client"
        echo "Section: utils"
        echo "Priority: optional"
        echo "Description: measures storage"
        echo " What a device, a file system or a cluster can do, when that number is true, and"
        echo " what changed. One static program: it runs fio's jobs, by fio or by itself."
    } >"$root/DEBIAN/control"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/fathom_${version}_$2.deb" >/dev/null
}

own=$(build "$(uname -m)-unknown-linux-musl")
tools/papers.py "$version" "$dist/fathom-$version.cdx.json" "$dist/THIRD-PARTY.txt"
for machine in x86_64:amd64 aarch64:arm64; do
    binary=$own
    [ "${machine%:*}" = "$(uname -m)" ] || binary=$(build "${machine%:*}-unknown-linux-musl")
    [ -n "$binary" ] || continue
    tarball "${machine%:*}" "$binary"
    deb "${machine%:*}" "${machine#*:}" "$binary"
done
"$own" -q cluster image "$dist/fathom-$version-$(uname -m).oci.tar" >/dev/null
# The section of this version, or of what is not released yet.
awk '/^## \[/ { n++ } n == 1' CHANGELOG.md >"$dist/NOTES.md"
(cd "$dist" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
ls -l "$dist"
