#!/bin/bash
# Makes a real single-node Kubernetes (tools/cluster), runs the tests that need one,
# and takes it down again. What was built once is kept in ~/.cache/fathom-cluster.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "tools/test-cluster.sh: a cluster needs root" >&2; exit 1; }
if ! command -v go >/dev/null; then
    apt-get -q update </dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends golang-go </dev/null
fi
: "${FATHOM_STATIC:?a static fathom; make test-cluster names it}"
tools/cluster/build.sh
# The image of native servers, from the static binary (make musl).
# shellcheck source=tools/cluster/env.sh
(. tools/cluster/env.sh; "$FATHOM_STATIC" cluster image "$IMG/fathom.tar" --tag localhost/fathom:test)
# One that a killed run has left.
tools/cluster/down.sh
trap tools/cluster/down.sh EXIT
tools/cluster/up.sh
"${CARGO:-cargo}" test --locked -p fathom-cli --features test-cluster --test cluster -- "$@"
