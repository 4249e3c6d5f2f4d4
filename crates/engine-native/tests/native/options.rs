//! Every option that is promised, in a small job that must run.

use fathom_engine::Outcome;

use crate::native::{Seen, folder, try_run};

/// Options of one job each, a blank between two.
const JOBS: &[&str] = &[
    "rw=read",
    "rw=write",
    "rw=trim",
    "rw=randread",
    "rw=randwrite",
    "rw=rw",
    "rw=readwrite",
    "rw=randrw",
    "rw=randtrim",
    "rw=trimwrite",
    "rw=read:8k",
    "rw=write:-8k",
    "rw=randread:4",
    "rw=randwrite:4 rw_sequencer=identical",
    "rw=rw rwmixread=70",
    "rw=rw rwmixwrite=30",
    "rw=write bsrange=4k-16k",
    "rw=randrw bssplit=4k/50:8k/50,16k",
    "rw=randwrite blockalign=512",
    "rw=write io_size=512k",
    "rw=write filesize=1m",
    "rw=write filesize=64k-128k nrfiles=3 size=1m",
    "rw=write offset=4k size=64k",
    "rw=write offset=10% size=50% filesize=1m",
    "rw=write offset_increment=256k numjobs=2 filename=g",
    "rw=write filename=a:b",
    "rw=write directory=.",
    "rw=write nrfiles=3 file_service_type=random",
    "rw=write nrfiles=3 file_service_type=sequential filename_format=x.$jobnum.$filenum",
    "rw=write numjobs=2 thread group_reporting",
    "rw=write threads=1 new_group",
    "rw=randwrite ioengine=libaio iodepth=8 iodepth_batch_submit=4 iodepth_batch_complete_min=2 iodepth_batch_complete_max=4 iodepth_low=2",
    "rw=write direct=1",
    "rw=write buffered=1",
    "rw=write sync=1",
    "rw=write sync=dsync",
    "rw=write fsync=16",
    "rw=write fdatasync=16",
    "rw=write end_fsync=1 create_on_open=1",
    "rw=write fsync_on_close=1",
    "rw=write fallocate=none",
    "rw=write fallocate=keep",
    "rw=read invalidate=0",
    "rw=write unlink=1",
    "rw=write allow_file_create=1",
    "rw=write time_based runtime=100ms ramp_time=100ms",
    "rw=write startdelay=10ms",
    "rw=write startdelay=10ms-20ms",
    "rw=write loops=2",
    "rw=write number_ios=5",
    "rw=write rate=10m",
    "rw=rw rate=10m,20m rate_process=linear",
    "rw=write rate_iops=1000 rate_process=poisson",
    "rw=write thinktime=100 thinktime_blocks=8",
    "rw=randwrite norandommap",
    "rw=randwrite randrepeat=0 random_generator=tausworthe64",
    "rw=randwrite randseed=5 random_generator=lfsr",
    "rw=randwrite random_distribution=random",
    "rw=randwrite random_distribution=zipf:1.2",
    "rw=randwrite random_distribution=zipf:1.2:0.3",
    "rw=randwrite random_distribution=pareto:0.2:0.9",
    "rw=randwrite random_distribution=normal",
    "rw=randwrite random_distribution=normal:10:0.5",
    "rw=randwrite random_distribution=zoned:60/10:40/90",
    "rw=randwrite random_distribution=zoned:60/10:40/20",
    "rw=randwrite random_distribution=zoned_abs:60/64k:40/128k",
    "rw=write refill_buffers",
    "rw=write scramble_buffers=0",
    "rw=write zero_buffers",
    "rw=write buffer_pattern=0xdeadbeef",
    "rw=write buffer_compress_percentage=50",
    "rw=write exitall stonewall exit_what=all",
    "rw=write exitall_on_error continue_on_error=all",
    "rw=write ignore_error=ETIME:ENODATA,EIO,EILSEQ",
    "rw=write cpus_allowed=0 cpus_allowed_policy=split",
    "rw=write prio=3 prioclass=2",
    "rw=write priohint=1 prioclass=2",
    "rw=randread ioengine=libaio iodepth=4 cmdprio_percentage=20 cmdprio_class=2 cmdprio=3 cmdprio_hint=1",
    "rw=randread ioengine=io_uring iodepth=4 cmdprio_bssplit=4k/10/2/0/1:4k/20/2/0/2",
    "rw=randread ss=iops:50% ss_dur=1 ss_ramp=0 time_based runtime=100ms",
    "rw=randread ss=lat_slope:50% ss_dur=1 time_based runtime=100ms",
    "rw=randwrite verify=crc32c verify_state_save=0 do_verify=1",
    "rw=randwrite verify=crc32c do_verify=0",
    "rw=write verify=0",
    "rw=write verify=md5 verify_interval=1k verify_offset=64 verify_backlog=8 verify_backlog_batch=4",
    "rw=write verify=pattern verify_pattern=%o0xff verify_fatal=1 verify_dump=1",
    "rw=write verify=sha1 verify_async=2 verify_async_cpus=0 experimental_verify=1",
    "rw=write verify=null verify_only=1",
    "rw=write disable_lat=1 disable_clat=1 disable_slat=1 clat_percentiles=0 lat_percentiles=1",
    "rw=write gtod_reduce=1 percentile_list=50:99.9",
    "rw=randread ioengine=io_uring iodepth=4 registerfiles fixedbufs nonvectored=1",
    "rw=write write_bw_log=x write_iops_log=x write_lat_log=x log_avg_msec=100 log_prio=1 log_offset=1 per_job_logs=0",
    "rw=write write_hist_log=x log_hist_msec=100",
    "rw=write write_lat_log=x log_compression=10k log_store_compressed=1",
    "rw=randrw slat_percentiles=1 unified_rw_reporting=both",
    "rw=randread zonemode=strided zonesize=16k zonerange=32k zoneskip=32k",
    "rw=randrw io_submit_mode=offload serialize_overlap=1 iodepth=4",
    "rw=randrw io_submit_mode=offload ioengine=libaio iodepth=4 direct=1",
    "rw=randread numa_cpu_nodes=0 numa_mem_policy=bind:0",
    "rw=randread numa_cpu_nodes=all numa_mem_policy=interleave",
    "rw=write write_iolog=x fsync=4",
    "rw=write kb_base=1000 unit_base=8",
    "rw=randwrite flow=2 flow_id=1 flow_sleep=100",
    "rw=write rate_min=1 rate_cycle=500 max_latency=10s",
    "rw=write rate_iops_min=1 rate_cycle=500",
    "rw=read pre_read=1 nice=5 create_serialize=0 error_dump=0",
    "rw=randtrimwrite",
    "rw=randread ioengine=libaio iodepth=4 latency_target=1s latency_window=10ms latency_percentile=99.9 latency_run=1",
    "rw=write dedupe_percentage=40 dedupe_mode=working_set dedupe_working_set_percentage=10",
    "rw=randwrite ioengine=libaio iodepth=8 serialize_overlap=1 norandommap",
    "rw=write exitall exit_what=stonewall",
    "rw=write ioengine=falloc",
    "rw=write ioengine=ftruncate",
    "rw=randrw ioengine=splice",
    "ioengine=filecreate nrfiles=4 filesize=4k openfiles=1",
    "ioengine=filestat nrfiles=4 filesize=4k",
    "ioengine=filedelete nrfiles=4 filesize=4k",
];

const ENGINES: [&str; 8] = [
    "io_uring", "libaio", "psync", "sync", "pvsync2", "posixaio", "mmap", "null",
];

#[test]
fn every_option_that_is_promised_runs() {
    let engines = ENGINES.map(|engine| format!("rw=randrw ioengine={engine} iodepth=4"));
    let jobs = JOBS.iter().map(|job| (*job).to_owned()).chain(engines);
    for job in jobs {
        let dir = folder();
        let options = job.replace(' ', "\n");
        // What a job sets itself stands behind the defaults and wins.
        let text =
            format!("[j]\nsize=256k\nbs=4k\n{options}\n[k]\nwait_for=j\nioengine=null\nsize=4k\n");
        let mut seen = Seen::default();
        let outcome = try_run(dir.path(), &text, &mut seen);
        let outcome = outcome.unwrap_or_else(|error| panic!("{job}: {error}"));
        // exitall ends what waits, too.
        assert_eq!(outcome, Outcome::Complete, "{job}: {:?}", seen.failures());
        let moved = |dir: &Option<fathom_model::DirectionResult>| {
            dir.as_ref().is_some_and(|dir| dir.total_ios > 0)
        };
        let first = &seen.results().jobs[0];
        assert!(
            moved(&first.read) || moved(&first.write) || moved(&first.trim),
            "{job}: nothing done"
        );
    }
}
