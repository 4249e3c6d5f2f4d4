#!/bin/sh
# Makes the pictures of README.md and docs/ from the program itself: terminals as SVG
# whose text is text, graphs and the report as PNG.
#
#   tools/pictures.sh target/quick/fathom
#
# What is measured is this machine, for a minute, in a folder that goes afterwards; what
# explains an answer is simulated, but for the map, which needs rates.
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

# terminal LINES COMMAND: a terminal of 100 columns that runs it.
terminal() {
    tmux -u -S "$work/socket" -f /dev/null new-session -d -x 100 -y "$1" -c "$work/lab" "sh -c '$2'"
}
capture() { tmux -S "$work/socket" capture-pane -p -e; }
# picture NAME TITLE: of what the terminal shows, which then ends.
picture() {
    sleep 0.5
    capture >"$work/screen"
    tmux -S "$work/socket" kill-server
    "$top/tools/terminal_svg.py" "$2" <"$work/screen" >"$images/$1.svg"
    echo "$images/$1.svg"
}
# shot NAME LINES COMMAND: what it shows when it has ended.
shot() {
    rm -f "$work/ended"
    terminal "$2" "$3; touch $work/ended; sleep 600"
    while [ ! -e "$work/ended" ]; do sleep 0.2; done
    picture "$1" "$3"
}
# press TEXT KEY...: when the screen shows TEXT.
press() {
    until capture | grep -q "$1"; do sleep 0.2; done
    shift
    tmux -S "$work/socket" send-keys "$@"
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
shot help 98 "fathom --help"
shot job-run 30 "fathom job run randread.fio"

# Its .config is of a Fathom that did not have this symbol.
fathom -q init campaign --defconfig survey-10min >/dev/null
sed -i "/CONFIG_INTERVAL_MS/d" campaign/.config
terminal 26 "cd campaign && fathom config menu"
press ENTERPRISE_SSD_TESTING Down Down Down Down Down Down Enter
press "Repetitions of each" Down Down Down Enter
press "a number from 1" BSpace 3 Enter
press "REPEAT=3" ""
picture config-menu "fathom config menu"

fathom -q demo demo >/dev/null
cd demo
fathom graph --format png --only 0004-randread >/dev/null
cp "$(find . -name "*.png" | sort | head -n 1)" "$images/graph.png"
cp fathom-runs/*/report.html "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1500 \
    --screenshot="$images/report.png" "file://$work/report.html" >/dev/null 2>&1

# drive NAME LATENCY SEED: a simulated one, with so many µs for an I/O.
drive() {
    printf 'format = "fathom-sim-device"\nversion = 1\nlatency_us = %s\nbeyond_percent = 1\nnoise_percent = 4\nwander_percent = 0.4\nseed = %s\n' \
        "$2" "$3" >"$1.toml"
}
# runs SEED LATENCY...: of one job, on drives that differ by these; their folders.
runs() {
    seed=$1
    shift
    for latency; do
        seed=$((seed + 1))
        drive drive "$latency" "$seed"
        fathom -q --runs "$of" job run reads.fio --engine sim --sim drive.toml >/dev/null
        find "$of" -mindepth 1 -maxdepth 1 -newer drive.toml -type d
    done
}
mkdir "$work/answers" && cd "$work/answers"
printf '[reads]\nfilename=x\nsize=1g\nrw=randread\nbs=4k\niodepth=16\nioengine=libaio\nruntime=60\ntime_based\n' >reads.fio
of=compared
a=$(runs 10 100 104 98) b=$(runs 20 117 113 119)
# Words on purpose: a run each.
# shellcheck disable=SC2086
fathom compare $a --with $b --html compare.html >/dev/null
sed -n '/t-time0/,/<\/svg>/p' compare.html | sed 's/.*<svg/<svg/; s/<\/figure>//' >"$images/compare.svg"
of=nightly
runs 30 100 101 99 100 102 100 98 101 100 99 101 100 112 113 111 112 114 112 >/dev/null
fathom --runs nightly history --svg "$images/history.svg" >/dev/null
drive drive 100 7
fathom find reads.fio --knee --engine sim --sim drive.toml >/dev/null
fathom graph --out knee >/dev/null
cp knee/find.svg "$images/knee.svg"
# One I/O after the other, writes to the medium itself: reads wait behind them. Ahead of
# whatever else this machine does, whose pauses would be all that is seen.
printf '[mix]\nfilename=data\nsize=256m\nrw=randrw\nbs=4k\nioengine=psync\ndirect=1\nsync=1\n' >mix.fio
chrt -f 20 fathom find mix.fio --map=5 --look 2s --probe 2s --svg "$images/map.svg" >/dev/null
ls -l "$images"
