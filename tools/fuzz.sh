#!/bin/sh
# Fuzzes every target for SECONDS; where nightly Rust or cargo-fuzz is missing,
# says so and runs the same targets over their seeds only.
set -eu

seconds=${1:-20}
cd "$(dirname "$0")/.."

if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "nightly Rust or cargo-fuzz is missing (cargo install cargo-fuzz): seeds only"
    exec cargo test -p fathom-engine --test fuzz_seeds
fi

for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    echo "== $target"
    mkdir -p "fuzz/corpus/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
done
