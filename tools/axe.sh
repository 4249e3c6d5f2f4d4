#!/bin/sh
# Fetches axe-core, which looks for what keeps people from reading a page, for the tests
# of the report: from npm's registry, by version and checksum. It lies in
#   ${FATHOM_AXE:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-axe}
# and nothing is installed. Ends with 3 where this machine cannot have it.
set -eu
# shellcheck source=tools/fetching.sh
. "$(dirname "$0")/fetching.sh"

release=4.14.1
sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745

keep_in FATHOM_AXE fathom-axe
unless_there "$release $sum"
need npm
make_work
npm pack --silent --pack-destination "$work" "axe-core@$release" >/dev/null 2>"$work/log" </dev/null ||
    fail "npm does not give it: $(tail -n 1 "$work/log")"
tgz=$work/axe-core-$release.tgz
echo "$sum  $tgz" | sha256sum --check --status || fail "what npm gives is not axe-core $release"
tar -x --no-same-owner -C "$work" -f "$tgz" package/axe.min.js
mv "$work/package/axe.min.js" "$state/axe.min.js"
is_there
