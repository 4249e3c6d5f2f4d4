#!/bin/sh
# Builds fio's own t/io_uring, the least that a loop over io_uring can be, of the sources
# that tools/conformance/source.sh fetches, and says where it is. With --if-built only
# where it has been built before. Ends with 3 where it cannot be had.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
built=${FATHOM_FIO_TESTS:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-fio-tests}/t-io_uring
if [ ! -x "$built/t/io_uring" ]; then
    [ "${1:-}" != --if-built ] || exit 3
    source=$("$here/conformance/source.sh")
    rm -rf "$built"
    mkdir "$built"
    cd "$built"
    if ! { "$source/configure" && make t/io_uring; } >log 2>&1; then
        tail -n 3 log >&2
        echo "tools/t-io_uring.sh: it cannot be built; $built/log has it all" >&2
        exit 3
    fi
fi
echo "$built/t/io_uring"
