#!/bin/sh
# Fetches what people read exports with, for the tests of them: pandas with pyarrow, polars
# and DuckDB, from PyPI, by version. They lie in a virtual environment of their own,
#   ${FATHOM_READERS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-readers}
# and nothing is installed. Ends with 3 where this machine cannot have them.
set -eu
# shellcheck source=tools/fetching.sh
. "$(dirname "$0")/fetching.sh"

packages="pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0"

keep_in FATHOM_READERS fathom-readers
unless_there "$packages"
need python3
python3 -m venv --clear "$state/venv" >"$state/log" 2>&1 ||
    fail "python3 -m venv: $(tail -n 1 "$state/log")"
# shellcheck disable=SC2086  # a list of words is meant
"$state/venv/bin/pip" install -q --disable-pip-version-check --no-compile --retries 1 \
    --only-binary=:all: $packages >"$state/log" 2>&1 </dev/null ||
    fail "PyPI does not give them: $(tail -n 1 "$state/log")"
is_there
