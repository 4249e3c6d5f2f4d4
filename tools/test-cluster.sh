#!/bin/bash
# Makes a real single-node Kubernetes (tools/cluster), runs the tests that need one,
# and takes it down again; with --bench, what runs in it cost. What was built once
# is kept in ~/.cache/fathom-cluster. `make summary` counts the tests with the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}

[ "$(id -u)" -eq 0 ] || { echo "tools/test-cluster.sh: a cluster needs root" >&2; exit 1; }
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "tools/test-cluster.sh: a cluster is Linux on x86-64" >&2; exit 1; }
: "${FATHOM_STATIC:?a static fathom; make test-cluster names it}"
tools/cluster/build.sh
# The image of native servers, from the static binary (make musl).
# shellcheck source=tools/cluster/env.sh
(. tools/cluster/env.sh; "$FATHOM_STATIC" cluster image "$IMG/fathom.tar" --name localhost/fathom:test)
# One that a killed run has left.
tools/cluster/down.sh
trap tools/cluster/down.sh EXIT
tools/cluster/up.sh
if [ "${1:-}" = --bench ]; then
    "$cargo" bench --locked -p fathom-cli --features test-cluster --bench cluster-cost
    exit
fi
target=$("$cargo" metadata --no-deps --offline --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
log=$target/tests.cluster.log
: >"$log"
run() {
    # With the workspace: its features of dependencies are those that are built already.
    "$cargo" test --workspace --locked --features fathom-cli/test-cluster --test cluster -- "$@" 2>&1 | tee -a "$log"
}
if [ $# -gt 0 ]; then
    run "$@"
    exit
fi
# Most of a test is waiting: more run at once than there are processors.
run --test-threads 6
