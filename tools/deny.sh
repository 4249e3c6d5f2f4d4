#!/bin/sh
# Licences, bans and sources of every dependency (cargo-deny, deny.toml), and
# known vulnerabilities where the database of advisories can be fetched.
#
# cargo-deny is taken from PATH; otherwise it is built once, without
# optimisation because that takes a third of the time and the check runs for a
# second, and kept outside of the clone.
set -eu

version=0.20.2
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fathom-ci/cargo-deny-$version

if command -v cargo-deny >/dev/null 2>&1; then
    deny=cargo-deny
else
    deny=$cache/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        echo "building cargo-deny $version (once, into $cache)"
        # No target folder of its own: --root alone would leave the build in /tmp.
        CARGO_PROFILE_DEV_DEBUG=0 cargo install -q --locked --debug --no-default-features \
            --root "$cache" --target-dir "$cache/build" "cargo-deny@$version"
        rm -rf "$cache/build"
    fi
fi

"$deny" --locked check licenses bans sources

reason=$(mktemp)
trap 'rm -f "$reason"' EXIT
trap 'exit 130' INT TERM
if timeout 60 "$deny" fetch db >/dev/null 2>"$reason"; then
    "$deny" --locked check advisories
else
    echo "advisories not checked, their database cannot be fetched here: $(grep -v '^ *$' "$reason" | tail -n 1)"
fi
