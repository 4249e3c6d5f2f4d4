#!/bin/sh
# Installs BINARY with its man pages and shell completions under PREFIX. PROGRAM writes
# those where BINARY is for another machine.
set -eu

said=installed
if [ "${1:-}" = --packed ]; then
    said=packed
    shift
fi
[ $# -ge 2 ] || { echo "usage: tools/install.sh [--packed] BINARY PREFIX [PROGRAM]" >&2; exit 2; }
binary=$1
prefix=$2
fathom=${3:-$binary}

install -D -m 755 "$binary" "$prefix/bin/fathom"
mkdir -p "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
"$fathom" man "$prefix/share/man/man1"
"$fathom" completions bash >"$prefix/share/bash-completion/completions/fathom"
"$fathom" completions zsh >"$prefix/share/zsh/site-functions/_fathom"
"$fathom" completions fish >"$prefix/share/fish/vendor_completions.d/fathom.fish"
echo "$said: $prefix/bin/fathom"
