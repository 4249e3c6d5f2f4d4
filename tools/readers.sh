#!/bin/sh
# Fetches what people read exports with, for the tests of them: pandas with pyarrow, polars
# and DuckDB, from PyPI, by version. They lie in a virtual environment of their own,
#   ${FATHOM_READERS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-readers}
# and nothing is installed. Ends with 3 where this machine cannot have them.
set -eu

state=${FATHOM_READERS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-readers}
packages="pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0"

fail() {
    echo "tools/readers.sh: $1" >&2
    exit 3
}

[ "$(cat "$state/packages" 2>/dev/null)" != "$packages" ] || exit 0
for program in python3 flock; do
    command -v "$program" >/dev/null || fail "$program is missing"
done

mkdir -p "$state"
exec 9>"$state/lock"
flock 9
[ "$(cat "$state/packages" 2>/dev/null)" != "$packages" ] || exit 0
python3 -m venv --clear "$state/venv" >"$state/log" 2>&1 ||
    fail "python3 -m venv: $(tail -n 1 "$state/log")"
# shellcheck disable=SC2086  # a list of words is meant
"$state/venv/bin/pip" install -q --disable-pip-version-check --no-compile --retries 1 \
    --only-binary=:all: $packages >"$state/log" 2>&1 </dev/null ||
    fail "PyPI does not give them: $(tail -n 1 "$state/log")"
printf '%s\n' "$packages" >"$state/packages"
