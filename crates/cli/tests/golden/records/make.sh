#!/bin/bash
# Makes the records beside this script with the fathom that is named: of every kind
# of run, as version 1 of the format has them, ended and killed. Needs root, a loop
# device and sshd. The folder in which they were made is called DIR in them.
# Tests hold that every later Fathom reads them: they are not made again.
# shellcheck disable=SC2012 # names of records have no blanks
set -eu
fathom=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
export HOME=$work XDG_STATE_HOME=$work/state TMPDIR=$work TZ=UTC DEV=/dev/nvme9n1
export FATHOM_FIO=$here/../played-fio.sh
head='format = "fathom-sim-device"\nversion = 1\n'
loop=
daemon=
clean() {
    [ -z "$loop" ] || losetup -d "$loop"
    [ -z "$daemon" ] || kill "$daemon"
    rm -rf "$work"
}
trap clean EXIT

# The next record's folder is that of another second.
run() {
    "$fathom" "$@" >/dev/null 2>&1 || echo "fathom $*: $?" >&2
    sleep 1.1
}

# Starts a run and kills it by this signal when the last record has `text`.
kill_at() {
    local signal=$1 text=$2 records last
    shift 2
    records=$(ls fathom-runs 2>/dev/null | wc -l)
    "$fathom" "$@" >/dev/null 2>&1 &
    local pid=$!
    until [ "$(ls fathom-runs | wc -l)" -gt "$records" ]; do sleep 0.01; done
    until last=$(ls -d fathom-runs/* | tail -n 1) && tr -d '\n' <"$last/events.jsonl" 2>/dev/null | grep -q -e "$text"; do
        sleep 0.01
    done
    kill "-$signal" "$pid" || echo "too late: $*" >&2
    wait "$pid" || true
    sleep 1.1
}

# A folder for the records of a kind, with the devices and jobs.
into() {
    mkdir -p "$work/$1"
    cd "$work/$1"
    printf '%b' "$head" >sim.toml
    printf '%b' "${head}pace_ms = 100\n" >slow.toml
    printf '%b' "${head}[fail]\nafter_s = 2\n" >fails.toml
    cp "$here"/*.fio "$here"/*.toml .
}

# The same, with a campaign of eight points.
campaign() {
    into "$1"
    run init --force .
    run config defconfig debug-quick
    run config set DUT_TEST_MAX_IODEPTH=2 DUT_RUNTIME=2s GUARD=n \
        PROFILE_RANDWRITE_70_30=n PROFILE_RANDWRITE_97_3=n
}

into jobs
run job run two.fio --engine sim --sim sim.toml
kill_at INT '"t_ms":3000' job run two.fio --engine sim --sim slow.toml
kill_at KILL '"name":"one".*"interval".*"interval"' job run two.fio one.fio --engine sim --sim slow.toml
run job run two.fio one.fio --engine sim --sim fails.toml

into quick
mkdir target
run quick here target --group group.toml

into drive
truncate -s 16M image
loop=$(losetup -f --show image)
run purge "$loop" --destroy "$loop=16MiB" --samples 16
run prio --dev "$loop" --baseline --bs 4k --ramptime 0 --runtime 1 --engine fio --qds '1 2' --outdir out

campaign limited
run run --engine sim --sim sim.toml --max-time 12s
campaign killed
kill_at KILL '"id":"0001-basic-tests/0002-seqread/0002.*"interval"' run --engine sim --sim slow.toml

campaign drives
run config set DUT_IOSIZE=400m
printf '%b' "${head}pace_ms = 60\nbandwidth_mib = 100\n" >device.toml
kill_at KILL '"id":"settle-rand.*"interval"' provision /dev/nvme7n1 /dev/nvme8n1 --engine sim --sim device.toml

into snia
printf '%b' "${head}pace_ms = 60\n" >device.toml
kill_at KILL '"round":2.*"interval"' snia wsat /dev/nvme9n1 --debug --engine sim --sim device.toml

into hosts
mkdir -p /run/sshd
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done
cat >sshd_config <<EOF
Port 22022
ListenAddress 127.0.0.1
HostKey $PWD/host
AuthorizedKeysFile $PWD/user.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
KbdInteractiveAuthentication no
SetEnv TMPDIR=$work XDG_STATE_HOME=$work/state FATHOM_FIO=$FATHOM_FIO
EOF
cat >client <<EOF
Host m1 m2
HostName 127.0.0.1
Port 22022
User root
IdentityFile $PWD/user
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
EOF
"$(command -v sshd || echo /usr/sbin/sshd)" -D -f sshd_config &
daemon=$!
sleep 1
FATHOM_SSH="ssh -F $PWD/client" run job run null.fio --engine native --hosts m1,m2 --allow-same-host

for folder in jobs quick drive limited killed drives snia hosts; do
    rm -rf "${here:?}/$folder"
    cp -r "$work/$folder/fathom-runs" "$here/$folder"
    find "$here/$folder" \( -name .reserve -o -name '*_?lat.log' \) -delete
    grep -rlZ -e "$work" -e "$fathom" "$here/$folder" |
        xargs -0 -r sed -i "s|$work|DIR|g; s|$FATHOM_FIO|DIR/fio|g; s|$fathom|fathom|g"
done
