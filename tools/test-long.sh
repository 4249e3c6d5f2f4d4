#!/bin/sh
# Runs the tests that take minutes each and cover what rarely changes (testkit's `long`, and
# every row of the tables of which `make test` takes a part), and notes the run in
# bench/long.md. Before a change lands that touches what they cover:
#
#   guest_zoned, guest_nvme   engine-native/src/native/zbd
#   guest_preparing           prepare, flow/src/device_state.rs, flow/src/ledger.rs
#   stacks, guest_stacks      device/src/stack, analysis/src/verdict/rules
set -eu

cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$(date +%s)
status=0
{ FATHOM_TEST_LONG=1 cargo test --locked -p fathom-cli --test suite -- stacks guest 2>&1 || echo failed; } | tee "$log"
[ "$(tail -n 1 "$log")" != failed ] || status=1
minutes=$((($(date +%s) - began) / 60))
counts=$(sed -n 's/^test result: [^ ]* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 | \2/p' "$log")
changed=$(git diff --quiet HEAD 2>/dev/null || echo ", changed")
echo "| $(date -u +%F) | $(git rev-parse --short HEAD)$changed | all | ${counts:-0 | ?} | $minutes min |" >>bench/long.md
exit $status
