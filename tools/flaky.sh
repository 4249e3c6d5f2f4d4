#!/bin/sh
# Runs all tests TIMES over (5) beside a load that keeps every processor busy, and
# names each that failed, with how often: what fails there will fail elsewhere.
set -eu

times=${1:-5}
cd "$(dirname "$0")/.."
target=$(cargo metadata --no-deps --offline --format-version 1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
logs=$target/flaky
mkdir -p "$logs"
rm -f "$logs"/*.log
cargo test --workspace --locked --no-run

# As many busy shells as processors; they end with this one, however it ends.
load=
trap 'kill $load 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
    setpriv --pdeathsig KILL sh -c 'while :; do :; done' &
    load="$load $!"
done

run=0
while [ $run -lt "$times" ]; do
    run=$((run + 1))
    tools/test.sh >"$logs/$run.log" 2>&1 || true
    echo "run $run of $times: $(tail -n 1 "$logs/$run.log")"
done
failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$logs"/*.log | sort | uniq -c)
[ -n "$failed" ] || exit 0
echo "$failed"
exit 1
