#!/bin/sh
# Installs BINARY with its man pages and shell completions under PREFIX.
set -eu

[ $# -eq 2 ] || { echo "usage: tools/install.sh BINARY PREFIX" >&2; exit 2; }
binary=$1
prefix=$2

install -D -m 755 "$binary" "$prefix/bin/fathom"
mkdir -p "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
"$binary" man "$prefix/share/man/man1"
"$binary" completions bash >"$prefix/share/bash-completion/completions/fathom"
"$binary" completions zsh >"$prefix/share/zsh/site-functions/_fathom"
"$binary" completions fish >"$prefix/share/fish/vendor_completions.d/fathom.fish"
echo "installed: $prefix/bin/fathom"
