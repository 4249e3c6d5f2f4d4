#!/bin/sh
# Prints the version, once Cargo.toml, CHANGELOG.md and the tag of HEAD (where there is
# one) agree on it: a tagged version has a section with its date, which is the first.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "tools/version.sh: $1" >&2
    exit 1
}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml: no version"
first=$(sed -n 's/^## \[\([^]]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
tag=$(git tag --points-at HEAD 2>/dev/null | grep '^v[0-9]' | head -n 1) || tag=
case ${tag:-none}:$first in
    none:Unreleased | "none:$version") ;;
    none:*) fail "CHANGELOG.md begins with $first: it is to be Unreleased or $version" ;;
    "v$version:$version")
        grep -q "^## \[$version\] - [0-9]\{4\}-[0-9]\{2\}-[0-9]\{2\}$" CHANGELOG.md \
            || fail "CHANGELOG.md: the section of $version has no date"
        ;;
    "v$version":*) fail "$tag is tagged, and CHANGELOG.md begins with $first" ;;
    *) fail "$tag is tagged, and Cargo.toml says $version" ;;
esac
echo "$version"
