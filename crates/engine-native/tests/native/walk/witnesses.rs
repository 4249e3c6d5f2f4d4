//! The table: for each option a job that it changes, and where that is seen.

#![allow(unsafe_code)] // each block says why it is sound

use std::collections::BTreeSet;
use std::os::fd::AsRawFd as _;

use fathom_model::JobResult;
use fathom_testkit::{FaultFs, FaultOp, LoopDevice};

use super::Witness;
use super::look::See::{
    self, Blocks, Calls, Elsewhere, End, Figures, Files, Ios, Names, Own, Result as First,
};
use super::look::{CANNOT, Case};

macro_rules! witnesses {
    ($($option:literal: $values:literal, $job:expr => $see:expr;)*) => {
        &[$(Witness { option: $option, values: $values, job: $job, see: $see }),*]
    };
}

/// Calls that move data, or do something to a file as a whole, and names of threads.
const ALL: &str = "pread64,pwrite64,read,write,lseek,preadv2,pwritev2,io_submit,io_uring_setup,\
                   mmap,splice,vmsplice,fallocate,ftruncate,unlink,unlinkat,stat,statx,newfstatat,openat,\
                   prctl";
const SCSI: &str = "engine-native/src/native/backend/scsi.rs";
const GUEST: &str = "cli/tests/guest.rs";
const GENERIC: &str = "cli/tests/guest_nvme.rs";
/// Zones of a device that has none.
const ZBD: &str = "ioengine=null size=256k zonemode=zbd zonesize=32k rw=randwrite";
const VERIFY: &str = "engine-native/tests/native/verify.rs";
const PLACES: &str = "engine-native/tests/native/places.rs";
const BUFFER: &str = "engine-native/src/native/buffer.rs";
const GETEVENTS: &str = "io_getevents,io_pgetevents";
/// 160 ms.
const TIMED: &str = "ioengine=null rw=read rate_iops=100";
/// Long enough for a least rate to be judged.
const SLOW: &str = "ioengine=null thinktime=50ms size=232k rate_cycle=100";
const TWO: &str = "[i] ioengine=null size=64k [j] ioengine=null size=64k @";
/// A job of two seconds, and one beside it.
const BESIDE: &str = "[i] ioengine=null size=1g bs=4k rate_iops=1000 number_ios=2000 \
                      [j] ioengine=null size=64k bs=4k @";
/// The same when the second one ends all.
const AND_ENDS: &str = "[i] ioengine=null size=1g bs=4k rate_iops=1000 number_ios=2000 \
                        [j] ioengine=null size=64k bs=4k exitall @";
/// The second one fails.
const AND_FAILS: &str = "[i] ioengine=null size=1g bs=4k rate_iops=1000 number_ios=2000 \
                         [j] size=64k bs=4k rw=write allow_file_create=0 @";
/// The first one ends all.
const ENDS_ALL: &str = "[i] ioengine=null size=1g bs=4k rate_iops=1000 number_ios=1000 exitall \
                        [j] ioengine=null size=64k bs=4k @";
const SEVERAL: &str = "[global] ioengine=null bs=4k size=1g exitall rate_iops=1000 \
                       [i] number_ios=200 @ [same] number_ios=3000 [other] new_group number_ios=3000 \
                       [after] stonewall number_ios=10";
/// Two that flow.
const FLOWS: &str = "[i] ioengine=null size=1g bs=4k rate_iops=100 number_ios=200 flow=1 \
                     [j] ioengine=null bs=4k size=4m flow=1 @";
const SLEEPS: &str = "[i] ioengine=null size=1g bs=4k rate_iops=100 number_ios=5 flow=1 \
                      [j] ioengine=null bs=4k size=4m flow=1 @";
const OVERLAPS: &str = "ioengine=libaio iodepth=8 iodepth_batch_submit=8 rw=randwrite norandommap \
                        size=8k io_size=64k direct=1";
const LOW: &str = "ioengine=libaio iodepth=8 iodepth_batch_submit=8 iodepth_batch_complete_max=1 \
                   size=1m";
/// A second of work, and a job that does I/O for a moment.
const BURNS: &str = "[i] ioengine=cpuio cpuload=100 cpuchunks=500 number_ios=2000 \
                     [j] ioengine=null size=64k bs=4k";
const PRIO: &str = "ioengine=libaio rw=randread cmdprio_percentage=50";

pub(super) const WITNESSES: &[Witness] = witnesses! {
    // I/O
    "rw": "read write trim randread randwrite randtrim rw|readwrite randrw trimwrite randtrimwrite",
        "ioengine=null" => Ios;
    "rw_sequencer": "sequential identical", "ioengine=null rw=randread:4" => Ios;
    "rwmixread": "50 80", "ioengine=null rw=randrw" => Ios;
    "rwmixwrite": "50 80", "ioengine=null rw=randrw" => Ios;
    "bs": "4k 8k", "ioengine=null" => Ios;
    "bsrange": "4k-4k 4k-16k", "ioengine=null" => Ios;
    "bssplit": "4k/50:8k/50 4k/10:8k/90", "ioengine=null rw=randread" => Ios;
    "bs_unaligned": "0 1", "ioengine=null rw=randread bsrange=4k-16k" => Ios;
    "bs_is_seq_rand": "0 1", "ioengine=null rw=randread bs=4k,8k" => Ios;
    "blockalign": "4k 16k", "ioengine=null rw=randread norandommap" => Ios;
    "norandommap": "0 1", "ioengine=null rw=randread" => Ios;
    "percentage_random": "100 0 50", "ioengine=null rw=randread" => Ios;
    "randrepeat": "0 1", "ioengine=null rw=randread" => Own(repeats);
    "randseed": "1 2", "ioengine=null rw=randread" => Ios;
    "random_generator": "tausworthe|tausworthe64 lfsr", "ioengine=null rw=randread norandommap" => Ios;
    "random_distribution": "random zipf:1.2 pareto:0.2 normal:20 zoned:60/10:40/90 zoned_abs:60/8k:40/56k",
        "ioengine=null rw=randread norandommap" => Ios;
    // Queue and engines
    "ioengine": "falloc filecreate filedelete filestat ftruncate io_uring io_uring_cmd libaio mmap null posixaio psync pvsync2 sg splice sync",
        "rw=write fallocate=none" => Calls(ALL);
    "ioengine": "null cpuio", "[j] size=16k bs=4k number_ios=2" => Own(burns);
    "cpuload": "50 100|200", "ioengine=cpuio number_ios=3" => Own(naps);
    "cpuchunks": "1000 40000", "ioengine=cpuio cpuload=50 number_ios=3" => Own(naps);
    "cpumode": "noop qsort", "ioengine=cpuio cpuload=100 cpuchunks=1 number_ios=2" => First(short);
    "exit_on_io_done": "0 1", BURNS => Own(first_done);
    "iodepth": "1 4", "ioengine=libaio" => Calls("io_setup");
    "iodepth_batch_submit": "1 8", "ioengine=libaio iodepth=8 direct=1"
        => Own(|case| case.largest("io_submit", 1));
    "iodepth_batch_complete_min": "1 5", "ioengine=libaio iodepth=8"
        => Own(|case| case.largest(GETEVENTS, 1));
    "iodepth_batch_complete_max": "4 8",
        "ioengine=libaio iodepth=8 iodepth_batch_submit=8 iodepth_batch_complete_min=4"
        => Own(|case| Ok(case.run().line("     complete  :").contains(" 8=0.0%").to_string()));
    "iodepth_low": "- 1", LOW => Own(fills_at_once);
    "io_submit_mode": "inline offload", "iodepth=4" => Calls("prctl");
    "readfua": "0 1", "ioengine=sg" => Elsewhere(SCSI, "options_choose_the_command_and_its_bits");
    "writefua": "0 1", "ioengine=sg" => Elsewhere(SCSI, "options_choose_the_command_and_its_bits");
    "sg_write_mode": "write write_and_verify|verify write_same|same write_same_ndob verify_bytchk_00 verify_bytchk_01 verify_bytchk_11",
        "ioengine=sg" => Elsewhere(GUEST, "scsi_commands_write_where_the_block_layer_reads");
    "hipri": "0 1", "ioengine=pvsync2 direct=1" => Calls("preadv2");
    "hipri": "0 1", "ioengine=io_uring direct=1" => Calls("io_uring_setup");
    "hipri_percentage": "0 50 100", "ioengine=pvsync2 direct=1 hipri=1" => Calls("preadv2");
    "stat_type": "stat lstat statx", "ioengine=filestat" => Calls("stat,lstat,newfstatat,statx");
    "nowait": "0 1", "ioengine=pvsync2" => Calls("preadv2");
    // What is not in the cache cannot be had without waiting.
    "nowait": "0 1", "ioengine=libaio" => End;
    "nowait": "0 1", "ioengine=io_uring" => End;
    "uncached": "0 1", "ioengine=pvsync2" => Calls("preadv2");
    "force_async": "0 1", "ioengine=io_uring rate_iops=100 size=256k" => Own(has_kernel_workers);
    "sqthread_poll": "0 1", "ioengine=io_uring" => Calls("io_uring_setup");
    "sqthread_poll": "0 1", "ioengine=io_uring" => Own(waits_in_the_kernel);
    "sqthread_poll_cpu": "- 0", "ioengine=io_uring sqthread_poll=1" => Calls("io_uring_setup");
    // More than the kernel registers.
    "fixedbufs": "0 1", "ioengine=io_uring bs=512 size=16m iodepth=16385 number_ios=8" => End;
    "serialize_overlap": "0 1", OVERLAPS => Own(overlaps);
    "ioscheduler": "none mq-deadline", "[j] filename=LOOP size=64k" => Own(schedules);
    // Memory
    "iomem": "malloc|mmap|mmapshared shm shmhuge mmaphuge", "" => Calls("shmget,mmap");
    "iomem_align": "0 512", "" => Elsewhere(BUFFER, "buffers_begin_where_the_job_wants_them");
    "hugepage-size": "2m 4m", "iomem=mmaphuge" => Calls("mmap");
    "lockmem": "0 1m", "" => Calls("mlock");
    // Data
    "refill_buffers": "0 1", "rw=write scramble_buffers=0" => Blocks;
    "scramble_buffers": "0 1", "rw=write" => Blocks;
    "zero_buffers": "0 1", "rw=write" => Blocks;
    "buffer_pattern": "0xab 0xcd", "rw=write scramble_buffers=0" => Files;
    "buffer_compress_percentage": "0 50", "rw=write" => Own(zeros);
    "dedupe_percentage": "0 50", "rw=write size=256k" => Blocks;
    "dedupe_mode": "repeat working_set", "rw=write size=256k dedupe_percentage=50" => Files;
    "dedupe_global": "0 1",
        "[j] rw=write bs=4k size=256k numjobs=2 dedupe_percentage=50 dedupe_mode=working_set dedupe_working_set_percentage=50" => Files;
    "dedupe_working_set_percentage": "5 50",
        "rw=write size=256k dedupe_percentage=50 dedupe_mode=working_set" => Files;
    "buffer_compress_chunk": "512 4k", "rw=write buffer_compress_percentage=50" => Own(zeros);
    // Verify
    "verify": "0 meta md5 crc64 crc32 crc32c|crc32c-intel crc16 crc7 sha256 sha3-224 sha3-256 sha3-384 sha3-512 xxhash sha1 pattern null",
        "rw=write verify_pattern=0xab" => Own(headers);
    "do_verify": "0 1", "rw=write verify=crc32c" => End;
    "verify_interval": "4k 1k", "rw=write verify=crc32c" => Own(headers);
    "verify_offset": "- 64", "rw=write verify=crc32c" => Own(headers);
    "verify_pattern": "0xab 0xcd", "rw=write" => Own(headers);
    "verify_fatal": "0 1", "verify=crc32c continue_on_error=verify" => End;
    "verify_dump": "0 1", "verify=crc32c" => Names;
    "verify_backlog": "0 4", "rw=write verify=crc32c" => Ios;
    "verify_backlog_batch": "1 4", "rw=write verify=crc32c verify_backlog=8" => Ios;
    "verify_only": "0 1", "rw=write verify=crc32c" => End;
    "verify_state_save": "0 1", "rw=write verify=crc32c" => Names;
    "verify_state_load": "0 1", "rw=read verify=crc32c"
        => Elsewhere(VERIFY, "a_verify_state_tells_how_far_there_is_anything_to_verify");
    // Files
    "filename": "a b:c", "[j] size=64k rw=write" => Names;
    "directory": ". nowhere", "[j] size=64k rw=write" => End;
    "filename_format": "a.$jobnum b.$filenum", "[j] size=64k rw=write" => Names;
    "opendir": "a b" , "[j]" => Elsewhere(PLACES, "a_folder_is_used_with_all_files_below");
    "nrfiles": "1 3", "[j] size=96k rw=write" => Names;
    "file_service_type": "roundrobin sequential random zipf:1.2 pareto:0.3 normal|gauss roundrobin:2 random:2",
        "[j] nrfiles=4 size=256k rw=write bs=4k number_ios=42 fallocate=none scramble_buffers=0" => Files;
    "direct": "0 1", "rw=write" => Calls("openat");
    "buffered": "0 1", "rw=write" => Calls("openat");
    "sync": "none|0 sync|1 dsync", "rw=write" => Calls("openat");
    "fsync": "0 4", "rw=write" => Calls("fsync");
    "fdatasync": "0 4", "rw=write" => Calls("fdatasync");
    "end_fsync": "0 1", "rw=write" => Calls("fsync");
    "fsync_on_close": "0 1", "rw=write" => Calls("fsync");
    "sync_file_range": "- wait_before write wait_after write,wait_after write:8", "rw=write" => Own(ranges);
    "write_hint": "- none short medium long extreme", "rw=write" => Own(write_hint);
    "file_append": "0 1", "rw=write" => Files;
    "fill_device": "0 1", "rw=write" => Own(fills);
    "create_only": "0 1", "rw=write" => End;
    "create_on_open": "0 1", "rw=read" => End;
    "create_fsync": "0 1", "rw=read" => Calls("fsync");
    "allow_file_create": "0 1", "rw=write" => End;
    "fallocate": "none|0 native|posix|1 keep truncate", "rw=write" => Calls("fallocate,ftruncate");
    "invalidate": "0 1", "rw=read" => Calls("fadvise64");
    "pre_read": "0 1", "rw=read bs=8k" => Calls("pread64,read,fadvise64");
    "fadvise_hint": "0 1|random sequential", "rw=randread invalidate=0" => Calls("fadvise64");
    "unlink": "0 1", "rw=write" => Names;
    "overwrite": "0 1", "rw=write fallocate=none number_ios=4" => Files;
    // Amount and time
    "size": "64k 128k", "ioengine=null" => End;
    "io_size": "64k 128k", "ioengine=null" => End;
    "filesize": "64k 128k", "[j] ioengine=null" => End;
    "offset": "0 8k", "ioengine=null" => Ios;
    "offset_align": "4k 32k", "ioengine=null offset=30% size=128k" => Ios;
    "offset_increment": "0 8k", "ioengine=null numjobs=2 size=32k" => Ios;
    "loops": "1 2", "ioengine=null" => End;
    "number_ios": "3 5", "ioengine=null" => End;
    "runtime": "- 10ms", TIMED => First(all_done);
    "time_based": "0 1", "ioengine=null runtime=60 number_ios=100" => First(all_done);
    "ramp_time": "0 50ms", "rw=read rate_iops=100" => Own(more_calls_than_ios);
    "startdelay": "0 60", ENDS_ALL => Own(last_done);
    "rate": "0 100k", "ioengine=null" => Own(naps);
    "rate_iops": "0 25", "ioengine=null" => Own(naps);
    "rate_ignore_thinktime": "0 1",
        "ioengine=null rate_iops=1000 thinktime=300ms thinktime_blocks=8" => First(catches_up);
    "rate_process": "linear poisson", TIMED => Own(evenly);
    "rate_min": "0 100m", SLOW => First(error);
    "rate_iops_min": "0 10k", SLOW => First(error);
    "rate_cycle": "100 20000", "ioengine=null thinktime=50ms size=232k rate_iops_min=10k" => First(error);
    "max_latency": "1us 60s", "rw=write sync=1" => First(error);
    "latency_target": "- 10s", "ioengine=null latency_window=1ms" => First(target);
    "latency_window": "1ms 2ms", "ioengine=null latency_target=10s" => First(target);
    "latency_percentile": "90 99", "ioengine=null latency_target=10s latency_window=1ms" => First(target);
    "latency_run": "0 1",
        "ioengine=null latency_target=10s latency_window=1ms size=4g number_ios=200000"
        => First(|job| (reads(job) >= 200_000).to_string());
    "flow": "0 1", FLOWS => Own(last_slow);
    "flow_id": "0 1", FLOWS => Own(last_slow);
    "flow_sleep": "0 1600000", SLEEPS => Own(last_slow);
    "thinktime": "0 30ms", "ioengine=null" => Own(naps);
    "thinktime_blocks": "1 16", "ioengine=null thinktime=30ms" => Own(naps);
    "thinktime_blocks_type": "complete issue",
        "ioengine=libaio iodepth=8 iodepth_batch_submit=8 direct=1 thinktime=1ms thinktime_blocks=4"
        => Own(|case| case.largest("io_submit", 1));
    "thinktime_iotime": "0 100", "ioengine=null thinktime=30ms" => Own(naps);
    "thinktime_spin": "0 30ms", "ioengine=null thinktime=30ms" => Own(naps);
    // Zones
    "zonemode": "none strided zbd", "ioengine=null size=256k zonerange=32k zoneskip=16k" => Own(zone_mode);
    "zonesize": "16k 8k", "ioengine=null size=256k zonerange=32k" => Ios;
    "zonerange": "16k 32k", "ioengine=null size=256k zonemode=strided zonesize=16k" => Ios;
    "zoneskip": "0 32k", "ioengine=null size=256k zonemode=strided zonesize=16k" => Ios;
    "zonecapacity": "16k 32k", ZBD => Ios;
    "read_beyond_wp": "0 1", "ioengine=null size=256k zonemode=zbd zonesize=32k rw=read" => Ios;
    "max_open_zones": "1 2", ZBD => Ios;
    "job_max_open_zones": "1 2", "ioengine=null size=256k zonemode=zbd zonesize=32k rw=randwrite max_open_zones=4" => Ios;
    "ignore_zone_limits": "0 1", "direct=1" => Elsewhere(GENERIC, "zones_are_written_at_their_pointers_as_by_fio");
    "zone_reset_threshold": "0.1 1", "ioengine=null size=256k zonemode=zbd zonesize=32k rw=randwrite zone_reset_frequency=0.5"
        => First(zone_resets);
    "zone_reset_frequency": "0 0.5", "ioengine=null size=256k zonemode=zbd zonesize=32k rw=randwrite zone_reset_threshold=0.1"
        => First(zone_resets);
    // Steady state
    "ss": "iops:5% iops_slope:5% bw:5% bw_slope:5% lat:5% lat_slope:5%", "ioengine=null ss_dur=1"
        => First(steady);
    "ss_dur": "1 2", "ioengine=null ss=iops:5%" => First(steady);
    "ss_ramp": "0 100",
        "ioengine=null ss=iops:1000% ss_dur=1 time_based runtime=4 rate_iops=1000" => First(steady);
    // Order, errors and priorities
    "numjobs": "1 2", "ioengine=null" => End;
    "stonewall": "0 1", TWO => Own(group);
    "wait_for": "- i", AND_ENDS => Own(first_done);
    "exec_prerun": "- true", "ioengine=null" => Names;
    "exec_postrun": "- true", "ioengine=null" => Names;
    "new_group": "0 1", TWO => Own(group);
    "exitall": "0 1", BESIDE => Own(first_done);
    "exitall_on_error": "0 1", AND_FAILS => Own(first_done);
    "exit_what": "group stonewall all", SEVERAL => Own(who_ends);
    "nice": "5 6", "ioengine=null" => Calls("setpriority");
    "numa_cpu_nodes": "- 0|all", "ioengine=null" => Calls("sched_setaffinity");
    "numa_mem_policy": "- default local prefer:0 bind:0|bind:all interleave", "ioengine=null"
        => Calls("set_mempolicy");
    "continue_on_error": "0|none read write io verify all|1", "" => Own(errors);
    "ignore_error": "ENOSPC EIO|5", "rw=read" => Own(|case| faulty(case, Some(FaultOp::Read)));
    "cpus_allowed": "0 0-1", "ioengine=null" => Calls("sched_setaffinity");
    "cpumask": "1 3", "ioengine=null" => Calls("sched_setaffinity");
    "cpus_allowed_policy": "shared split", "ioengine=null cpus_allowed=0-1 numjobs=2"
        => Calls("sched_setaffinity");
    "prio": "3 5", "ioengine=null prioclass=2" => Calls("ioprio_set");
    "prioclass": "2 3", "ioengine=null" => Calls("ioprio_set");
    "priohint": "1 2", "ioengine=null prioclass=2" => Calls("ioprio_set");
    "cmdprio_percentage": "0 50", "ioengine=libaio rw=randread cmdprio_class=2" => Ios;
    "cmdprio_class": "1 2", PRIO => Ios;
    "cmdprio": "1 2", PRIO => Ios;
    "cmdprio_hint": "1 2", PRIO => Calls("io_submit");
    "cmdprio_bssplit": "4k/50/2/3 4k/50/2/4", "ioengine=libaio rw=randread" => Ios;
    // What is shown
    "group_reporting": "0 1", "ioengine=null numjobs=2" => End;
    "disable_lat": "0 1", "ioengine=null" => Figures;
    "disable_clat": "0 1", "ioengine=null" => Figures;
    "disable_slat": "0 1", "ioengine=libaio iodepth=2" => Figures;
    "disable_bw_measurement": "0 1", "ioengine=null write_bw_log=y" => Own(several_lines);
    "gtod_reduce": "0 1", "ioengine=null" => Figures;
    "clat_percentiles": "0 1", "ioengine=null" => Figures;
    "lat_percentiles": "0 1", "ioengine=null" => Figures;
    "slat_percentiles": "0 1", "ioengine=libaio iodepth=2" => Figures;
    "unified_rw_reporting": "none|0 mixed|1 both|2", "ioengine=null rw=randrw" => Figures;
    "percentile_list": "50:99 90", "ioengine=null" => First(percentiles);
    "write_lat_log": "- x", "ioengine=null" => Names;
    "write_bw_log": "- x", "ioengine=null" => Names;
    "write_iops_log": "- x", "ioengine=null" => Names;
    "write_hist_log": "- x", "ioengine=null" => Names;
    "log_avg_msec": "0 10000", "ioengine=null write_iops_log=y" => Own(several_lines);
    "bwavgtime": "- 10", "ioengine=null rate_iops=100 write_bw_log=y log_avg_msec=10000" => Own(several_lines);
    "iopsavgtime": "- 10", "ioengine=null rate_iops=100 write_iops_log=y log_avg_msec=10000" => Own(several_lines);
    "log_max_value": "0 1", "rw=write sync=1 write_lat_log=y log_avg_msec=100000" => Own(is_largest);
    "log_unix_epoch": "0 1", "ioengine=null write_lat_log=y" => Own(is_of_the_year);
    "log_alternate_epoch": "0 1", "ioengine=null write_lat_log=y" => Own(is_of_the_year);
    "log_alternate_epoch_clock_id": "0|5 1|4|6|7", "ioengine=null write_lat_log=y log_alternate_epoch=1" => Own(is_of_the_year);
    "log_hist_msec": "50 10000", "ioengine=null rate_iops=100 size=256k write_hist_log=y"
        => Own(several_lines);
    "log_hist_coarseness": "0 3 6", "ioengine=null write_hist_log=y" => Own(columns);
    "log_prio": "0 1", "ioengine=libaio cmdprio_percentage=100 cmdprio_class=2 write_iops_log=y"
        => Own(fields);
    "log_offset": "0 1", "ioengine=null write_iops_log=y" => Own(fields);
    "write_iolog": "- w", "rw=write" => Names;
    "read_iolog": "- ios early", "rw=write replay_redirect=g" => Ios;
    "read_iolog_chunked": "0 1", "rw=write read_iolog=ios replay_no_stall=1" => Own(opened);
    "replay_no_stall": "0 1", "rw=write read_iolog=ios" => Own(naps);
    "replay_time_scale": "50 2000", "rw=write read_iolog=ios" => Own(naps);
    "replay_redirect": "- g", "rw=write read_iolog=ios" => Files;
    "replay_align": "0|512 4096", "rw=write read_iolog=early replay_redirect=g" => Ios;
    "replay_scale": "0|1 2", "rw=write read_iolog=early replay_redirect=g" => Ios;
    "replay_skip": "- write", "rw=write read_iolog=early replay_redirect=g" => End;
    "merge_blktrace_file": "- m", "read_iolog=early:late replay_redirect=g" => Names;
    "merge_blktrace_scalars": "-|100:100 100:50",
        "read_iolog=early:late merge_blktrace_file=m replay_redirect=g" => Ios;
    "merge_blktrace_iters": "-|1:1 1:2",
        "read_iolog=early:late merge_blktrace_file=m replay_redirect=g" => Ios;
    "per_job_logs": "0 1", "ioengine=null write_iops_log=y" => Names;
    "log_compression": "- 10k", "ioengine=null write_iops_log=y log_store_compressed=1" => Names;
    "log_store_compressed": "0 1", "ioengine=null write_iops_log=y log_compression=10k" => Names;
    "description": "- one two", "ioengine=null" => First(|job| format!("{:?}", job.description));
    "kb_base": "1024 1000", "[j] ioengine=null size=64k bs=4k" => End;
};

fn reads(job: &JobResult) -> u64 {
    job.read.as_ref().map_or(0, |read| read.total_ios)
}

/// Whether all 16 I/Os are done, and no more.
fn all_done(job: &JobResult) -> String {
    (reads(job) == 16).to_string()
}

/// By a bound that is far above what it takes without, on a busy machine, too.
fn slow(job: &JobResult) -> String {
    (job.runtime_ms.unwrap() >= 1500).to_string()
}

/// Whether one of its reads took less than a tenth of what it takes to sort.
fn short(job: &JobResult) -> String {
    let clat = job.read.as_ref().and_then(|read| read.clat.as_ref());
    (clat.unwrap().min_ns < 1_000_000).to_string()
}

/// How it ends with the load that cpuio needs.
fn burns(case: &Case) -> Result<String, String> {
    See::End.look(&case.with(
        "ioengine=cpuio",
        "ioengine=cpuio\ncpuload=100\ncpuchunks=10",
    ))
}

fn error(job: &JobResult) -> String {
    job.error.to_string()
}

fn target(job: &JobResult) -> String {
    format!("{:?}", job.latency_target)
}

fn steady(job: &JobResult) -> String {
    let found = job.fio_steady_state.as_ref().unwrap();
    format!(
        "{} {} {}",
        found["ss"], found["duration"], found["attained"]
    )
}

fn percentiles(job: &JobResult) -> String {
    let clat = job.read.as_ref().and_then(|read| read.clat.as_ref());
    let of = clat.unwrap().percentiles_ns.iter();
    format!(
        "{:?}",
        of.map(|percentile| percentile.0).collect::<Vec<_>>()
    )
}

/// Whether the I/Os are the same in every run.
fn repeats(case: &Case) -> Result<String, String> {
    Ok((See::Ios.look(case)? == See::Ios.look(case)?).to_string())
}

/// Whether the queue is filled by several at once, after the first time too.
fn fills_at_once(case: &Case) -> Result<String, String> {
    let calls = case.calls("io_submit")?;
    let several = calls.iter().filter(|call| !call.contains(", 1, [")).count();
    Ok((several > 1).to_string())
}

/// Whether two I/Os on a block are under way at once.
fn overlaps(case: &Case) -> Result<String, String> {
    let twice = |call: &String| {
        let parts = call.split("aio_offset=").skip(1);
        let offsets: Vec<_> = parts.map(|rest| rest.split('}').next()).collect();
        offsets.iter().collect::<BTreeSet<_>>().len() < offsets.len()
    };
    Ok(case.calls("io_submit")?.iter().any(twice).to_string())
}

/// Whether a device gets another scheduler.
fn schedules(case: &Case) -> Result<String, String> {
    let device = LoopDevice::new(1 << 20).map_err(|why| format!("{CANNOT}{why}"))?;
    let case = case.with("LOOP", device.path().to_str().unwrap());
    let calls = case.calls("openat")?;
    Ok(calls
        .iter()
        .any(|call| call.contains("O_WRONLY"))
        .to_string())
}

/// Where a block has zeros.
fn zeros(case: &Case) -> Result<String, String> {
    let ran = case.run();
    let zero = |chunk: &[u8]| chunk.iter().all(|&byte| byte == 0);
    let blocks = ran.blocks();
    let parts = blocks[0].chunks(64);
    Ok(parts
        .map(|part| if zero(part) { '0' } else { 'x' })
        .collect())
}

/// Kinds and places of the headers in a block (verify.h, struct verify_header), what ends
/// it, and what is read back.
fn headers(case: &Case) -> Result<String, String> {
    const MAGIC: [u8; 2] = 0xacca_u16.to_le_bytes();
    let ran = case.run();
    let blocks = ran.blocks();
    let block = &blocks[0];
    let mut text = format!("{}\n", reads(ran.job(0)));
    for (place, part) in block.chunks(64).enumerate() {
        if part.starts_with(&MAGIC) {
            text += &format!("{place} {:?}\n", &part[2..8]);
        }
    }
    let ends = &block[4092..];
    let pattern = ends.iter().all(|byte| *byte == ends[0]);
    Ok(text + &format!("{:?}", pattern.then_some(ends)))
}

/// Whether it enters the kernel for what is over.
fn waits_in_the_kernel(case: &Case) -> Result<String, String> {
    let enters = case.calls("io_uring_enter")?;
    let waits = enters.iter().any(|call| call.contains("GETEVENTS"));
    Ok(waits.to_string())
}

/// Whether the kernel has made threads for a job's I/O: they bear its thread's number.
fn has_kernel_workers(case: &Case) -> Result<String, String> {
    let name = "walks";
    let tasks = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let comm = |task: std::io::Result<std::fs::DirEntry>| {
            let task = task.ok()?;
            let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
            Some((task.file_name().into_string().ok()?, comm.trim().to_owned()))
        };
        tasks.filter_map(comm).collect::<Vec<_>>()
    };
    let mut found = false;
    case.with("[j]", &format!("[{name}]")).run_watched(&mut || {
        let tasks = tasks();
        for (task, _) in tasks.iter().filter(|(_, comm)| comm == name) {
            let worker = format!("iou-wrk-{task}");
            found |= tasks.iter().any(|(_, comm)| *comm == worker);
        }
    });
    Ok(found.to_string())
}

/// With some that are done before the measurement.
fn more_calls_than_ios(case: &Case) -> Result<String, String> {
    let calls = case.calls("pread64")?;
    let reads = calls.iter().filter(|call| call.contains(", 4096, "));
    Ok((reads.count() > 16).to_string())
}

/// By what `zonesize` makes of it: with `none` it contradicts.
fn zone_mode(case: &Case) -> Result<String, String> {
    let sized = case.with("zonemode=strided", "zonemode=strided\nzonesize=16k");
    let zbd = "zonemode=zbd\nzonesize=16k\nread_beyond_wp=1\nsize=128k\nzonerange=0\nzoneskip=0";
    See::Ios.look(&sized.with("zonemode=zbd", zbd))
}

/// Whether somebody waits asleep: a worker then asks for 20 ms at a time, whatever the
/// machine has to do besides.
fn naps(case: &Case) -> Result<String, String> {
    let sleeps = case.calls("nanosleep,clock_nanosleep")?;
    let long = |call: &String| call.contains("tv_nsec=20000000");
    Ok(sleeps.iter().any(long).to_string())
}

fn zone_resets(job: &JobResult) -> String {
    format!("{:?}", job.zone_resets)
}

/// Whether the first of two jobs does all its 2000 I/Os.
fn first_done(case: &Case) -> Result<String, String> {
    Ok((reads(case.run().job(0)) >= 2000).to_string())
}

fn last_done(case: &Case) -> Result<String, String> {
    Ok(all_done(case.run().job(1)))
}

fn last_slow(case: &Case) -> Result<String, String> {
    Ok(slow(case.run().job(1)))
}

/// The reporting group of the second job.
fn group(case: &Case) -> Result<String, String> {
    Ok(case.run().job(1).group.to_string())
}

fn who_ends(case: &Case) -> Result<String, String> {
    let ran = case.run();
    let whole = [(1, 3000), (2, 3000), (3, 10)].map(|(job, all)| reads(ran.job(job)) >= all);
    Ok(format!("{whole:?}"))
}

/// Whether all I/Os begin as long after each other, by their log: each ends in the
/// millisecond told, which its latency counts back from.
fn evenly(case: &Case) -> Result<String, String> {
    let ran = case.with("[j]", "[j]\nwrite_lat_log=y").run();
    let begin = |line: &Vec<String>| {
        let number = |place: usize| line[place].parse::<f64>().unwrap();
        number(0) - number(1) / 1e6
    };
    let begins: Vec<f64> = ran.log("y_lat").iter().map(begin).collect();
    let odd = |pair: &[f64]| (pair[1] - pair[0] - 10.0).abs() > 2.5;
    Ok((!begins.windows(2).any(odd)).to_string())
}

/// How often the log is opened.
fn opened(case: &Case) -> Result<String, String> {
    let opens = case.calls("openat")?;
    let of_log = opens.iter().filter(|call| call.contains("/ios\""));
    Ok(of_log.count().to_string())
}

fn several_lines(case: &Case) -> Result<String, String> {
    Ok((case.run().log("y_").len() > 1).to_string())
}

/// What the first line has behind time and value.
fn fields(case: &Case) -> Result<String, String> {
    Ok(case.run().log("y_")[0][2..].join(","))
}

/// What is asked to be written back, and how often.
fn ranges(case: &Case) -> Result<String, String> {
    Ok(case.calls("sync_file_range")?.join("\n"))
}

/// What the file's data are expected to do.
fn write_hint(case: &Case) -> Result<String, String> {
    /// include/uapi/linux/fcntl.h.
    const F_GET_RW_HINT: libc::c_int = 1024 + 11;
    let ran = case.run();
    let file = std::fs::File::open(ran.path("f")).unwrap();
    let mut hint = 0u64;
    // SAFETY: the kernel writes a number of 64 bits at the pointer.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), F_GET_RW_HINT, &raw mut hint) };
    match done {
        0 => Ok(hint.to_string()),
        _ => Err(format!("{CANNOT}{}", std::io::Error::last_os_error())),
    }
}

/// Whether an I/O counts from before a pause: what lies in it is made up for.
fn catches_up(job: &JobResult) -> String {
    let lat = job.read.as_ref().and_then(|read| read.lat.as_ref());
    (lat.unwrap().max_ns > 150_000_000).to_string()
}

/// Whether the only entry of the log is the longest I/O.
fn is_largest(case: &Case) -> Result<String, String> {
    let ran = case.run();
    let write = ran.job(0).write.as_ref().unwrap();
    let longest = write.lat.as_ref().unwrap().max_ns;
    Ok((ran.log("y_lat")[0][1] == longest.to_string()).to_string())
}

/// Whether the times of a log count from 1970 on.
fn is_of_the_year(case: &Case) -> Result<String, String> {
    let time: u64 = case.run().log("y_lat")[0][0].parse().unwrap();
    Ok((time > 1_500_000_000_000).to_string())
}

fn columns(case: &Case) -> Result<String, String> {
    Ok(case.run().log("y_")[0].len().to_string())
}

/// How a job ends where there is no space.
fn fills(case: &Case) -> Result<String, String> {
    faulty_by(case, Some(FaultOp::Write), libc::ENOSPC)
}

/// How a job ends where each I/O of a kind fails.
fn faulty(case: &Case, fails: Option<FaultOp>) -> Result<String, String> {
    faulty_by(case, fails, libc::EIO)
}

fn faulty_by(case: &Case, fails: Option<FaultOp>, errno: i32) -> Result<String, String> {
    let faults = FaultFs::new().map_err(|why| format!("{CANNOT}{why}"))?;
    let file = faults.path().join("f");
    std::fs::write(&file, vec![1; 64 << 10]).unwrap();
    if let Some(op) = fails {
        faults.fail_from(op, 1, errno);
    }
    let case = case.with("filename=f", &format!("filename={}", file.display()));
    Ok(format!("{:?}", case.run().outcome()))
}

/// How jobs end whose reads fail, whose writes do, and that read what was not written so.
fn errors(case: &Case) -> Result<String, String> {
    let ends = [
        ("rw=read", Some(FaultOp::Read)),
        ("rw=write", Some(FaultOp::Write)),
        ("rw=read\nverify=crc32c", None),
    ];
    let end = |(options, fails)| faulty(&case.with("[j]", &format!("[j]\n{options}")), fails);
    ends.map(end).into_iter().collect()
}
