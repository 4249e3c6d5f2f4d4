#!/bin/sh
# Says where this machine's own apt gets Debian from, or another ARCHIVE of it
# (debian-security). Ends with 3 where it gets none.
set -eu
archive=${1:-debian}
# shellcheck disable=SC2016  # apt's own words
apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null \
    | grep -m 1 "/$archive/\{0,1\}\$" || {
    echo "tools/mirror.sh: apt knows no mirror of $archive" >&2
    exit 3
}
