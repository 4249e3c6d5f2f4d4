# shellcheck shell=sh
# For the scripts that fetch what tests need and this machine does not have: each keeps it
# in a folder of its own outside of the clone, fetches it once for every version, and says
# as its last line where it lies. They end with 3 where it cannot be had.

fail() {
    echo "tools/${0##*/tools/}: $1" >&2
    exit 3
}

# need PROGRAM…; $installer, where it is set, is what installs them.
need() {
    for program; do
        command -v "$program" >/dev/null ||
            fail "$program is missing${installer:+ ($installer installs it)}"
    done
}

# keep_in VARIABLE NAME: $state is the folder that the variable names, or NAME in the cache.
keep_in() {
    need flock
    state=
    eval "state=\${$1:-\${XDG_CACHE_HOME:-\$HOME/.cache}/$2}"
    mkdir -p "$state"
    # One at a time: tests of several packages may begin at once.
    exec 9>"$state/lock"
    flock 9
}

# unless_there VERSION: goes on only where another version lies there, or none.
unless_there() {
    version=$1
    [ "$(cat "$state/version" 2>/dev/null)" = "$version" ] || return 0
    echo "$state"
    exit 0
}

# $work is a folder beside it that goes with the script.
make_work() {
    work=$(mktemp -d "$state/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
}

# All of it is there: not before.
is_there() {
    printf '%s\n' "$version" >"$state/version"
    echo "$state"
}
