#!/bin/sh
# Makes a newer fio than this machine's for the tests of what only newer ones write:
# that of Debian 13, from the mirror of this machine's own apt sources. Nothing is
# installed here: it lies with every library that it needs in
#   ${FATHOM_NEWER_FIO:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-newer-fio}
# and bin/fio there runs it through its own loader. Kept, and used again as long as
# this script does not change. Ends with 3 where this machine cannot have one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/fetching.sh
. "$here/fetching.sh"

suite=trixie
keys=/usr/share/keyrings/debian-archive-keyring.gpg

keep_in FATHOM_NEWER_FIO fathom-newer-fio
unless_there "$(sha256sum <"$here/newer-fio.sh" | cut -d' ' -f1)"
need apt-get dpkg-deb
[ -r "$keys" ] || fail "$keys is missing: Debian's packages cannot be checked"

make_work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/parts" "$work/tree/usr/bin" \
    "$work/tree/usr/sbin" "$work/tree/usr/lib" "$work/tree/usr/lib64"

mirror=$("$here/mirror.sh")
echo "deb [signed-by=$keys] $mirror $suite main" >"$work/sources"
# Nothing counts as installed: everything that fio needs comes along.
: >"$work/status"
apt() {
    apt-get -q -y -o Debug::NoLocking=1 -o Dir::Etc::SourceList="$work/sources" \
        -o Dir::Etc::SourceParts="$work/parts" -o Dir::Etc::PreferencesParts="$work/parts" \
        -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" "$@" \
        >"$work/apt.log" 2>&1 </dev/null || { tail -n 3 "$work/apt.log" >&2; fail "its packages cannot be had"; }
}
apt update
apt --download-only --no-install-recommends install fio

# In Debian 13 the folders of the root are links into /usr.
for dir in bin sbin lib lib64; do
    ln -s "usr/$dir" "$work/tree/$dir"
done
for deb in "$work"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$work/tree" -f -
done
rm -rf "$work/tree/usr/share" "$work/tree/var"
loader=$(cd "$work/tree" && find usr/lib usr/lib64 -name 'ld-linux*.so.*' | head -n 1)
[ -n "$loader" ] || fail "its loader is not where it should be"
libraries=$(cd "$work/tree" && find usr/lib -name '*.so*' -exec dirname {} + | sort -u)

rm -rf "${state:?}/tree" "${state:?}/bin"
mv "$work/tree" "$state/tree"
mkdir "$state/bin"
{
    echo '#!/bin/sh'
    # shellcheck disable=SC2016  # for the script that is written
    echo 'tree=$(cd "$(dirname "$0")/../tree" && pwd)'
    printf 'libraries='
    for dir in $libraries; do
        # shellcheck disable=SC2016
        printf '$tree/%s:' "$dir"
    done
    # shellcheck disable=SC2016
    printf '\nexec "$tree/%s" --inhibit-cache --library-path "$libraries" "$tree/usr/bin/fio" "$@"\n' "$loader"
} >"$state/bin/fio"
chmod +x "$state/bin/fio"
said=$("$state/bin/fio" --version 2>&1) || fail "it does not run here: $said"
echo "$said"
is_there
