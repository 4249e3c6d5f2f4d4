#!/bin/sh
# Unpacks Debian's Prometheus for the tests of metrics, without installing it: its package
# starts a server that stays. Its programs lie in
#   ${FATHOM_PROMETHEUS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-prometheus}
# Ends with 3 where this machine cannot have it.
set -eu
# shellcheck source=tools/fetching.sh
. "$(dirname "$0")/fetching.sh"

keep_in FATHOM_PROMETHEUS fathom-prometheus
unless_there "this machine's Debian"
need apt-get dpkg-deb
make_work
cd "$work"
apt-get -q -o APT::Sandbox::User="$(id -un)" download prometheus >log 2>&1 </dev/null ||
    fail "apt does not give it: $(tail -n 1 log)"
dpkg-deb -x prometheus_*.deb .
mv usr/bin/promtool usr/bin/prometheus "$state"
is_there
