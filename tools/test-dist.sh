#!/bin/sh
# Proves of dist/ what is promised: sums hold; the .deb has no scripts, is installed in a
# bare Debian 12, does its work, and leaves nothing when it is purged; the tarball runs
# there without being installed; the SBOM names every package of Cargo.lock that is
# linked. As root; the Debian is the one of tools/bare.sh.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "tools/test-dist.sh: $1" >&2
    exit 1
}

version=$(tools/version.sh)
machine=$(uname -m)
architecture=$(dpkg --print-architecture)
deb=dist/fathom_${version}_$architecture.deb
tarball=dist/fathom-$version-$machine-linux.tar.gz
[ -e "$deb" ] || fail "$deb is not there: run make dist"
(cd dist && sha256sum --quiet -c SHA256SUMS) || fail "sums do not hold"
for file in dist/*; do
    grep -q " ${file#dist/}\$" dist/SHA256SUMS || [ "$file" = dist/SHA256SUMS ] || fail "$file has no sum"
done
scripts=$(dpkg-deb --ctrl-tarfile "$deb" | tar -t | grep -E '(pre|post)(inst|rm)|triggers|config$') || true
[ -z "$scripts" ] || fail "$deb has scripts: $scripts"
python3 - "dist/fathom-$version.cdx.json" <<'CHECK' || fail "the SBOM is not whole"
import json, sys
bom = json.load(open(sys.argv[1]))
assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
refs = {part["bom-ref"] for part in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
assert {edge["ref"] for edge in bom["dependencies"]} == refs, "an edge of nobody"
assert all(to in refs for edge in bom["dependencies"] for to in edge["dependsOn"])
assert all(part.get("licenses") for part in bom["components"]), "a part without a licence"
CHECK

[ "$(id -u)" -eq 0 ] || { echo "not installed in a Debian: that takes root"; exit 0; }
base=${XDG_CACHE_HOME:-$HOME/.cache}/fathom-bare/bookworm-$architecture.tar
[ -e "$base" ] || tools/bare.sh true
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
root=$work/root
mkdir "$root"
tar -C "$root" -xpf "$base"
cp "$deb" "$tarball" "$root/tmp"

# in_debian COMMAND: in there, with mounts of its own that end with it.
in_debian() {
    # shellcheck disable=SC2016  # for the inner shell
    unshare -m -p --fork sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        root=$1
        shift
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root NO_COLOR=1 chroot "$root" sh -euc "$1"
    ' sh "$root" "$1" </dev/null
}
# What there is, but for the package manager's own notes.
there() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg \
        -o -path ./var/log -o -path ./var/cache \) -prune -o -print | sort)
}

there >"$work/before"
in_debian "dpkg -i /tmp/$(basename "$deb")" >"$work/log" || { cat "$work/log" >&2; fail "it cannot be installed"; }
in_debian '
    fathom --version
    fathom doctor >/tmp/doctor
    cd /tmp && fathom -q job run -- --name=a --rw=randwrite --size=1m --ioengine=psync >/tmp/run
    fathom show | grep "a: complete"
    test -s /usr/share/man/man1/fathom-job-run.1.gz
    gzip -t /usr/share/man/man1/*.gz /usr/share/doc/fathom/changelog.gz
    test -s /usr/share/bash-completion/completions/fathom
    test -s /usr/share/zsh/vendor-completions/_fathom
    test -s /usr/share/fish/vendor_completions.d/fathom.fish
    grep -q "MIT License" /usr/share/doc/fathom/copyright
' >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the package does not work"; }
in_debian 'dpkg --purge fathom' >"$work/log" || { cat "$work/log" >&2; fail "it cannot be purged"; }
there >"$work/after"
cmp -s "$work/before" "$work/after" || { diff "$work/before" "$work/after" >&2; fail "it left something behind"; }
in_debian "
    cd /tmp && tar -xzf $(basename "$tarball")
    fathom-$version-$machine-linux/fathom --version
    fathom-$version-$machine-linux/fathom -q job run -- --name=b --rw=randread --size=1m --ioengine=psync
" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the tarball does not work"; }
echo "dist: sums, SBOM, package installed and purged, tarball: all well"
