#!/bin/sh
# Runs every test of the workspace and prints cargo's own closing lines, added up:
# "N passed, N failed". With --summary only repeats that line for the last run, with
# fio's own tests and those in a cluster (make test-fio, test-cluster) where they were
# run since.
set -eu

cd "$(dirname "$0")/.."
target=$(cargo metadata --no-deps --offline --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
log=$target/tests.log
later="$target/tests.fio.log $target/tests.cluster.log"

summary() {
    set -- "$log"
    for more in $later; do
        [ ! -e "$more" ] || set -- "$@" "$more"
    done
    awk '
        /^test result: / { runs++; passed += $4; failed += $6; ignored += $8 }
        END {
            if (!runs) { print "no test ran" > "/dev/stderr"; exit 1 }
            if (ignored) printf "%d ignored\n", ignored
            printf "%d passed, %d failed\n", passed, failed
            exit failed > 0
        }' "$@"
}

if [ "${1:-}" = --summary ]; then
    summary
    exit
fi

# Most tests wait, for a guest, a server, or for each other: more run at once than
# there are processors.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-16}"
mkdir -p "$target"
# shellcheck disable=SC2086  # several names
rm -f $later
# A test that waits for ever is named, in time for whoever waits for this script.
# tee would hide cargo's exit status: it is kept beside the log.
{ timeout "${FATHOM_TEST_SECONDS:-3000}" cargo test --workspace --locked --no-fail-fast 2>&1 && echo 0 >"$log.status" || echo $? >"$log.status"; } | tee "$log"
if [ "$(cat "$log.status")" -eq 124 ]; then
    echo "not at an end in time (FATHOM_TEST_SECONDS):"
    awk '/^test .* has been running for over/ { open[$2] } /^test .* \.\.\. / { delete open[$2] }
        END { for (name in open) print "    " name }' "$log"
fi
summary
exit "$(cat "$log.status")"
