#!/bin/sh
# Fetches axe-core, which looks for what keeps people from reading a page, for the tests
# of the report: from npm's registry, by version and checksum. It lies in
#   ${FATHOM_AXE:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-axe}
# and nothing is installed. Ends with 3 where this machine cannot have it.
set -eu

state=${FATHOM_AXE:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-axe}
version=4.14.1
sum=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745

fail() {
    echo "tools/axe.sh: $1" >&2
    exit 3
}

[ "$(cat "$state/version" 2>/dev/null)" != "$sum" ] || exit 0
for program in npm flock; do
    command -v "$program" >/dev/null || fail "$program is missing"
done

mkdir -p "$state"
exec 9>"$state/lock"
flock 9
work=$(mktemp -d "$state/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "axe-core@$version" >/dev/null 2>"$work/log" </dev/null ||
    fail "npm does not give it: $(tail -n 1 "$work/log")"
echo "$sum  $work/axe-core-$version.tgz" | sha256sum --check --status ||
    fail "what npm gives is not axe-core $version"
tar -x --no-same-owner -C "$work" -f "$work/axe-core-$version.tgz" package/axe.min.js
mv "$work/package/axe.min.js" "$state/axe.min.js"
printf '%s\n' "$sum" >"$state/version"
