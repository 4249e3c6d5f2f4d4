#!/bin/sh
# A fio that measures nothing: the same figures for the same job file, at once.
# A job whose name has "fails" in it fails. The logs of latencies that a job
# asks for have four lines.
case "$1" in
--version) echo fio-3.33; exit ;;
--enghelp) printf 'Available IO engines:\n\tlibaio\n\tsync\n\tpsync\n\tio_uring\n'; exit ;;
--*help*) exit ;;
esac
for job; do :; done
case " $* " in *" --parse-only "*) exit ;; esac
name=$(sed -n 's/^\[\(.*\)\]$/\1/p' "$job" | grep -v '^global$' | head -n 1)
rw=$(sed -n 's/^rw=//p' "$job")
# Reads and writes of the job: each a thousand for each of these.
# Fathom gives the job file as a descriptor, which knows its name.
named=$(readlink "$job" || echo "$job")
named=${named#/memfd:}
place=$(basename "${named% (deleted)}" .fio | tr -cd 0-9)
place=$((${place:-1} % 100 + 1))
reads=$((place * 1000)) writes=$((place * 700))
case $rw in
*write*) reads=0 ;;
*rw) ;;
*) writes=0 ;;
esac
case $name in *fails*) error=5 reads=0 writes=0 ;; *) error=0 ;; esac
log=$(sed -n 's/^write_lat_log=//p' "$job")
if [ "$log" ]; then
    for kind in lat clat slat; do
        printf '0, 1000, 0, 4096, 0x0000\n1, 2000, 0, 4096, 0x0000\n2, 3000, 0, 4096, 0x2001\n3, 9000, 0, 4096, 0x2001\n' >"${log}_$kind.log"
    done
fi

# A direction of the document, with so many I/Os of 4 KiB in a second.
direction() {
    cat <<EOF
      "$1" : {
        "io_bytes" : $(($2 * 4096)),
        "io_kbytes" : $(($2 * 4)),
        "bw_bytes" : $(($2 * 4096)),
        "bw" : $(($2 * 4)),
        "iops" : $2.000000,
        "runtime" : $(($2 > 0 ? 1000 : 0)),
        "total_ios" : $2,
        "short_ios" : 0,
        "drop_ios" : 0,
        "clat_ns" : {
          "min" : $(($2 > 0 ? 64 : 0)),
          "max" : $(($2 > 0 ? 100 : 0)),
          "mean" : $(($2 > 0 ? 82 : 0)).000000,
          "stddev" : $(($2 > 0 ? 18 : 0)).000000,
          "N" : $2$(if [ "$2" -gt 0 ]; then
        printf ',\n          "percentile" : {\n            "50.000000" : 64,\n            "99.000000" : 100\n          },\n'
        printf '          "bins" : {\n            "64" : %s,\n            "100" : %s\n          }' $(($2 / 2)) $(($2 / 2))
    fi)
        }
      }
EOF
}

[ $error = 0 ] || echo "fio: io_u error on file /nowhere: Input/output error: write offset=0, buflen=4096"
printf '%s: (g=0): rw=%s\nfio-3.33\nStarting 1 process\n' "$name" "$rw"
echo "3;fio-3.33;$name;0;$error;played"
cat <<EOF
{
  "fio version" : "fio-3.33",
  "timestamp" : 1700000000,
  "timestamp_ms" : 1700000000000,
  "time" : "Tue Nov 14 22:13:20 2023",
  "jobs" : [
    {
      "jobname" : "$name",
      "groupid" : 0,
      "error" : $error,
      "eta" : 0,
      "elapsed" : 1,
      "job options" : {
        "rw" : "$rw"
      },
$(direction read $reads),
$(direction write $writes),
$(direction trim 0),
      "job_runtime" : 1000,
      "usr_cpu" : 1.000000,
      "sys_cpu" : 2.000000,
      "ctx" : 3,
      "majf" : 0,
      "minf" : 4
    }
  ],
  "disk_util" : [
  ]
}

$name: (groupid=0, jobs=1): err= $error: pid=1: Tue Nov 14 22:13:20 2023
  played: $reads reads, $writes writes
EOF
[ $error = 0 ]
