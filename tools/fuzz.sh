#!/bin/sh
# Fuzzes every target for SECONDS; where nightly Rust or cargo-fuzz is missing,
# says so and runs the same targets over their seeds only.
set -eu

seconds=${1:-20}
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "nightly Rust or cargo-fuzz is missing (cargo install cargo-fuzz): seeds only"
    exec cargo test -p fathom-engine -p fathom-kconfig --test suite fuzz_seeds
fi

# The seeds are every captured output, job file and Kconfig tree, whatever the target.
seeds=
for dir in fuzz/seeds crates/fio-output/tests/fixtures crates/import/tests/fixtures \
    crates/jobfile/tests/corpus \
    campaigns/kconfig crates/kconfig/tests/trees; do
    [ ! -d "$dir" ] || seeds="$seeds $dir"
done

mkdir -p fuzz/target
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    log=fuzz/target/$target.log
    mkdir -p "fuzz/corpus/$target"
    # shellcheck disable=SC2086  # a list of words is meant
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" $seeds -- -max_total_time="$seconds" \
        -max_len=65536 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 >"$log" 2>&1 || {
        cat "$log"
        exit 1
    }
    echo "$target: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs, no crash"
done
