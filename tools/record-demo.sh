#!/bin/sh
# Records the campaign of `fathom demo` and packs it into campaigns/demo.
#
#   tools/record-demo.sh target/release/fathom
#
# Needs root, fio, jq and the blkio controller of cgroup v1. The device is a loop
# device on a file, and the kernel lets the campaign have IOPS_MAX of its reads
# and of its writes a second: what the curves must reach and cannot pass.
set -eu

fathom=$(realpath "$1")
top=$(realpath "$(dirname "$0")/..")
IOPS_MAX=16000

work=$(mktemp -d /tmp/fathom-demo-XXXXXX)
mkdir "$work/bin"
cp "$fathom" "$work/bin/fathom"
PATH="$work/bin:$PATH"
group=/sys/fs/cgroup/blkio/fathom-demo-$$
cleanup() {
    [ -z "${device:-}" ] || losetup -d "$device" || true
    rmdir "$group" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

truncate -s 256M "$work/disk"
device=$(losetup -f --show --direct-io=on "$work/disk")
mkdir "$group"
number=$(cat "/sys/block/${device#/dev/}/dev")
echo "$number $IOPS_MAX" >"$group/blkio.throttle.read_iops_device"
echo "$number $IOPS_MAX" >"$group/blkio.throttle.write_iops_device"

fathom init "$work/demo" >/dev/null
cp "$top/campaigns/demo/config" "$work/demo/.config"
cd "$work/demo"
fathom config set "DUT_FILENAME=$device" "DESTROY_CONFIRM=$device=256MiB" >/dev/null
fathom gen >/dev/null
# The shell in parentheses and all it starts are held to the limit.
(
    exec sh -c 'echo $$ >"$0/tasks" && exec "$@"' "$group" fathom run
)

record=$(ls -d fathom-runs/*/)
cd "$record"
find events.jsonl jobs -type f | while read -r file; do
    jq -Rs --arg file "$file" '{($file): .}' "$file"
done | jq -cs --arg id "$(basename "$record")" '{id: $id, files: add}' |
    gzip -9n >"$top/campaigns/demo/record.json.gz"
ls -l "$top/campaigns/demo/record.json.gz"
