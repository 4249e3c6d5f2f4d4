#!/bin/sh
# Gets the sources of the fio whose tests the native engine is held against, as Debian
# has them: they are never part of this repository. They lie in
#   ${FATHOM_FIO_TESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-fio-tests}
# Says the folder that was unpacked. Ends with 3 where they cannot be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tools/fetching.sh
. "$here/../fetching.sh"

version=3.33
# As Debian's fio_3.33-3.dsc has it.
sha256=d2410e13e0f379d061d077cc5ae325835bb7c6186aa7bafc1df954cbc9b014fc
file=fio_$version.orig.tar.gz

keep_in FATHOM_FIO_TESTS fathom-fio-tests
if [ -e "$state/fio-$version/.whole" ]; then
    echo "$state/fio-$version"
    exit 0
fi

# From this machine's own mirror.
fetch() {
    [ -x /usr/lib/apt/apt-helper ] || fail "apt is missing: Debian's sources cannot be had"
    mirror=$("$here/../mirror.sh")
    /usr/lib/apt/apt-helper -o APT::Sandbox::User="$(id -un)" download-file \
        "$mirror/pool/main/f/fio/$file" "$state/$file" "SHA256:$sha256" >"$state/log" 2>&1 && return
    tail -n 2 "$state/log" >&2
    fail "$file cannot be had"
}
echo "$sha256  $state/$file" | sha256sum --check --status 2>/dev/null || fetch
rm -rf "$state/fio-$version"
tar -x -z --no-same-owner -C "$state" -f "$state/$file"
: >"$state/fio-$version/.whole"
echo "$state/fio-$version"
