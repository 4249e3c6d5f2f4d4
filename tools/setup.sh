#!/bin/sh
# Installs the Debian packages that are missing for the groups named, which
# tools/programs lists. Anyone but root is told what to install. Does nothing when
# nothing is missing.
set -eu

table=$(dirname "$0")/programs
[ $# -gt 0 ] || { sed -n 's/^# \{0,1\}//p' "$table" >&2; exit 2; }

# Daemons and tools for administrators lie outside an ordinary user's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

has() {
    case $1 in
        /*) [ -e "$1" ]; return ;;
        python3:*) python3 -c "import ${1#*:}" 2>/dev/null; return ;;
    esac
    # Not "command -v": to the shell its own kill is as good as a program, to others not.
    rest=$PATH:
    while [ -n "$rest" ]; do
        [ ! -x "${rest%%:*}/$1" ] || return 0
        rest=${rest#*:}
    done
    return 1
}

machine=$(uname -m)
known=
missing=
while read -r groups package programs; do
    case $groups in '' | '#'*) continue ;; esac
    known=$known,$groups,
    wanted=
    for group in "$@"; do
        case ,$groups, in *,"$group",*) wanted=1 ;; esac
    done
    case $package in *"[$machine]") package=${package%"[$machine]"} ;; *"]") wanted= ;; esac
    [ -n "$wanted" ] || continue
    for program in ${programs%%#*}; do
        has "$program" && continue
        if [ "$package" = "(rustup)" ]; then
            echo "tools/setup.sh: $program is missing; install Rust with rustup (https://rustup.rs)" >&2
            exit 1
        fi
        missing="$missing $package"
    done
done <"$table"

for group in "$@"; do
    case $known in *,"$group",*) ;; *) echo "tools/setup.sh: no group '$group'" >&2; exit 2 ;; esac
done
[ -n "$missing" ] || exit 0

# shellcheck disable=SC2086  # a list of words is meant
missing=$(printf '%s\n' $missing | sort -u | tr '\n' ' ')
if ! has apt-get; then
    echo "tools/setup.sh: missing: $missing- install them with this system's package manager" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "tools/setup.sh: missing: $missing- run: sudo apt-get install $missing" >&2
    exit 1
fi

echo "installing: $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null
# shellcheck disable=SC2086  # a list of words is meant
apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends $missing </dev/null
