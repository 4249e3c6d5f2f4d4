#!/bin/sh
# Unpacks Debian's Prometheus for the tests of metrics, without installing it: its package
# starts a server that stays. Its programs lie in
#   ${FATHOM_PROMETHEUS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-prometheus}
# Ends with 3 where this machine cannot have it.
set -eu

state=${FATHOM_PROMETHEUS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-prometheus}

fail() {
    echo "tools/prometheus.sh: $1" >&2
    exit 3
}

for program in apt-get dpkg-deb flock; do
    command -v "$program" >/dev/null || fail "$program is missing"
done

mkdir -p "$state"
exec 9>"$state/lock"
flock 9
[ ! -x "$state/prometheus" ] || exit 0
work=$(mktemp -d "$state/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -q -o APT::Sandbox::User="$(id -un)" download prometheus >log 2>&1 </dev/null ||
    fail "apt does not give it: $(tail -n 1 log)"
dpkg-deb -x prometheus_*.deb .
# The last one says that all are there.
mv usr/bin/promtool usr/bin/prometheus "$state"
