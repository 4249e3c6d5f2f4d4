#!/bin/sh
# Makes the pictures of README.md and docs/ from the program itself: terminals as SVG
# whose text is text, graphs and the report as PNG.
#
#   tools/pictures.sh target/quick/fathom
#
# What is measured is this machine, for a few seconds, in a folder that goes afterwards.
set -eu

[ $# -eq 1 ] || { echo "usage: tools/pictures.sh BINARY" >&2; exit 2; }
fathom=$(realpath "$1")
top=$(realpath "$(dirname "$0")/..")
images=$top/docs/images
work=$(mktemp -d /tmp/fathom-pictures-XXXXXX)
trap 'tmux -S "$work/socket" kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/lab"
ln -s "$fathom" "$work/bin/fathom"
cd "$work/lab"
export PATH="$work/bin:$PATH" HOME="$work/lab"

# shot NAME LINES COMMAND: what a terminal of 100 columns shows when COMMAND has ended.
shot() {
    rm -f "$work/ended"
    tmux -u -S "$work/socket" -f /dev/null new-session -d -x 100 -y "$2" -c "$work/lab" \
        "sh -c '$3; touch $work/ended; sleep 600'"
    while [ ! -e "$work/ended" ]; do sleep 0.2; done
    sleep 0.5
    tmux -S "$work/socket" capture-pane -p -e >"$work/screen"
    tmux -S "$work/socket" kill-server
    "$top/tools/terminal_svg.py" "$3" <"$work/screen" >"$images/$1.svg"
    echo "$images/$1.svg"
}

cat >randread.fio <<'JOB'
[global]
filename=data
size=64m
runtime=3
time_based
[reads]
rw=randread
bs=4k
iodepth=16
ioengine=libaio
JOB
fathom -q job run randread.fio >/dev/null
shot help 75 "fathom --help"
shot job-run 24 "fathom job run randread.fio"

fathom -q demo demo >/dev/null
cd demo
fathom graph --format png --only 0004-randread >/dev/null
find . -name "*.png" | sort | head -n 1 | xargs -I PICTURE cp PICTURE "$images/graph.png"
cp fathom-runs/*/report.html "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1500 \
    --screenshot="$images/report.png" "file://$work/report.html" >/dev/null 2>&1
ls -l "$images"
