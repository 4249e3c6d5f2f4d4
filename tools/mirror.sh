#!/bin/sh
# Says where this machine's own apt gets Debian from, or another ARCHIVE of it
# (debian-security), without a slash at the end: there are mirrors that know no path with
# two of them. Ends with 3 where it gets none.
set -eu
archive=${1:-debian}
# shellcheck disable=SC2016  # apt's own words
apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null \
    | sed -n "s,/*\$,,; /\/$archive\$/{p;q}" | grep . || {
    echo "tools/mirror.sh: apt knows no mirror of $archive" >&2
    exit 3
}
