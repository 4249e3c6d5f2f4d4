use std::path::PathBuf;

use fathom_model::{JobOption, Origin};

use super::*;
use crate::native::job::{FileAmount, IoEngine};
use crate::native::offsets::Distribution;

fn spec(options: &[(&str, &str)]) -> JobSpec {
    JobSpec {
        name: "j".to_owned(),
        options: options
            .iter()
            .zip(2u32..)
            .map(|(&(name, value), line)| JobOption {
                name: name.to_owned(),
                value: (!value.is_empty()).then(|| value.to_owned()),
                origin: Origin::File {
                    path: PathBuf::from("a.fio"),
                    line,
                    column: 1,
                },
            })
            .collect(),
    }
}

/// `name=value name …` as a job.
fn words(text: &str) -> JobSpec {
    let options: Vec<_> = text
        .split_whitespace()
        .map(|word| word.split_once('=').unwrap_or((word, "")))
        .collect();
    spec(&options)
}

#[test]
fn the_options_of_the_quick_series_and_of_the_tools_are_taken() {
    let quick = words(
        "fallocate=none group_reporting verify=0 disable_lat=1 disable_clat=1 disable_slat=1 \
         clat_percentiles=0 refill_buffers randrepeat=0 size=512M numjobs=1 iodepth=16 runtime=5 \
         time_based ioengine=posixaio bs=16k rw=randwrite fdatasync=1 sync=1 invalidate=1 \
         end_fsync=1 directory=d direct=0",
    );
    let fio_tests = words(
        "ioengine=libaio rw=randrw rwmixread=70 bs=4k iodepth=128 iodepth_batch_submit=32 \
         iodepth_batch_complete_min=1 iodepth_batch_complete_max=32 numjobs=64 size=100% runtime=4m \
         ramp_time=0s direct=1 filename=/dev/nvme0n1 group_reporting=1 time_based norandommap \
         randrepeat=0 loops=2 threads=1 buffered=0 refill_buffers rwmixwrite=30",
    );
    let cdl = words(
        "rw=randread ioengine=libaio iodepth=32 numjobs=1 direct=1 group_reporting bs=4k \
         random_generator=tausworthe64 ioscheduler=none ramp_time=5 runtime=60 \
         write_lat_log=out/randread per_job_logs=0 log_prio=1 \
         cmdprio_bssplit=4k/10/2/0/1:4k/20/2/0/2",
    );
    let hints = words("ioengine=io_uring cmdprio_percentage=20 cmdprio_class=2 cmdprio_hint=3");
    let kubuculum = words(
        "rw=write create_on_open=1 end_fsync=1 ioengine=sync direct=0 bs=128k directory=/dataset \
         filename_format=f.$jobnum.$filenum filesize=2g numjobs=2 rate_iops=256",
    );
    let jobs = [quick, fio_tests, cdl, hints, kubuculum];
    assert_eq!(supports(&jobs), Ok(()));
    let job = resolve(&jobs[1]).unwrap();
    assert_eq!(
        (job.engine, job.extent.size),
        (IoEngine::Libaio, Some(FileAmount::Percent(100)))
    );
}

#[test]
fn what_is_refused_is_named_with_its_place() {
    let refused = supports(&[spec(&[
        ("rw", "randread:x"),
        ("bs", "4q"),
        ("zonemode", "zbr"),
        ("time_based", ""),
    ])])
    .unwrap_err();
    let text: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 4, "{text:?}");
    assert!(text[0].starts_with("a.fio:2:1: job j: rw: 'x'"), "{text:?}");
    assert!(text[1].contains("unknown unit 'q'"), "{text:?}");
    assert!(
        text[2].contains("zonemode: 'zbr' is not one of"),
        "{text:?}"
    );
    assert!(text[3].contains("time_based: needs a runtime"), "{text:?}");
}

#[test]
fn values_that_cannot_be_are_refused() {
    for option in ["verify_only", "verify_state_load", "merge_blktrace_file"] {
        assert!(supports(&[spec(&[(option, "1")])]).is_err(), "{option}");
    }
    let wrong = [
        ("bs", "0"),
        ("bs", ""),
        ("iodepth", "0"),
        ("iodepth", "4294967295"),
        ("rwmixread", "101"),
        ("bssplit", "4k/60:8k/60"),
        ("bssplit", "4k/60:8k/30"),
        ("random_distribution", "zoned:50/50"),
        ("random_distribution", "zipf:1.2:2"),
        ("random_distribution", "zoned_abs:100"),
        ("rw", "randread:-1"),
        ("rw", "read:4q"),
        ("startdelay", "3-1"),
        ("verify", "md6"),
        ("verify", "sha512"),
        ("verify", "pattern"),
        ("verify_offset", "39"),
        ("verify_offset", "4k"),
        ("verify_pattern", "xyz"),
        ("kb_base", "1001"),
        ("ss", "lat:5"),
        ("random_distribution", "pareto:1.5"),
        ("cpus_allowed", "3-1"),
        ("cmdprio_bssplit", "4k/60/1/0:4k/60/2/0"),
        ("buffer_pattern", "0x"),
        ("percentile_list", "101"),
        ("ignore_error", "EWHAT"),
        ("sync", "maybe"),
        ("replay_align", "3k"),
        ("replay_skip", "fsync"),
        ("replay_time_scale", "0"),
        ("merge_blktrace_iters", "0"),
        ("numa_mem_policy", "bind"),
        ("numa_mem_policy", "prefer:0-1"),
        ("numa_cpu_nodes", "1-0"),
        ("write_iolog", ""),
        ("numjobs", "0"),
        ("numjobs", "4294967295"),
        ("numa_mem_policy", "prefer:0-1"),
        ("numa_mem_policy", "bind"),
        ("numa_mem_policy", "local:0"),
        ("numa_mem_policy", "some"),
        ("numa_cpu_nodes", "0:1"),
        ("fadvise_hint", "2"),
        ("hipri_percentage", "101"),
    ];
    for (name, value) in wrong {
        assert!(
            supports(&[spec(&[("verify", "md5"), (name, value)])]).is_err(),
            "{name}={value}"
        );
    }
}

#[test]
fn splits_share_what_is_left() {
    let job = resolve(&spec(&[("bssplit", "4k/50:64k:1m,8k")])).unwrap();
    assert_eq!(
        job.pattern.sizes[0],
        Sizes::Split(vec![(4096, 50), (65_536, 75), (1 << 20, 100)])
    );
    assert_eq!(job.pattern.sizes[1], Sizes::Split(vec![(8192, 100)]));
    let job = resolve(&spec(&[(
        "random_distribution",
        "zoned:60/10:40/90,50/50:50/50",
    )]))
    .unwrap();
    assert_eq!(
        job.pattern.distribution[0],
        Distribution::Zoned(vec![(60, 10), (40, 90)])
    );
    assert_eq!(
        job.pattern.distribution[2],
        Distribution::Zoned(vec![(50, 50), (50, 50)])
    );
}

#[test]
fn the_table_in_the_docs_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/NATIVE-OPTIONS.md");
    let text = markdown();
    if std::env::var_os("FATHOM_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == text,
        "docs/NATIVE-OPTIONS.md is not current: run this test with FATHOM_BLESS=1"
    );
}

/// What has no effect leaves the job as it is; `openfiles` only asks for its engines.
#[test]
fn options_without_effect_change_nothing() {
    let job = |options: &[(&str, &str)]| {
        let mut job = resolve(&spec(options)).ok()?;
        job.files.open_at_once = None;
        Some(format!("{job:?}"))
    };
    for row in GROUPS.iter().flat_map(|(_, rows)| rows.iter()) {
        let name = row.names[0];
        let engine = match name {
            "openfiles" => "filestat",
            _ => "libaio",
        };
        let plain = job(&[("ioengine", engine)]).unwrap();
        let values = ["0", "1", "2048", "cpu", "nvme", "some text"];
        let with = values.map(|value| job(&[("ioengine", engine), (name, value)]));
        let mut taken = with.into_iter().flatten();
        if row.idle {
            let first = taken.next().unwrap_or_else(|| panic!("{name}"));
            assert!(first == plain && taken.all(|with| with == plain), "{name}");
        }
    }
}

#[test]
fn options_that_exclude_each_other_are_refused_as_fio_does() {
    let refused = |text: &str| {
        let refused = supports(&[words(text)]).unwrap_err();
        refused
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (text, place) in [
        ("rate=1m rate_iops=100", "a.fio:3:1: job j: rate_iops:"),
        (
            "rate_min=1m rate_iops_min=100",
            "a.fio:3:1: job j: rate_iops_min:",
        ),
        ("size=4k bs=8k", "a.fio:2:1: job j: size:"),
        (
            "dedupe_percentage=20 dedupe_mode=working_set",
            "a.fio:3:1: job j: dedupe_mode:",
        ),
        (
            "size=1m dedupe_mode=working_set dedupe_percentage=60 dedupe_working_set_percentage=50",
            "a.fio:3:1: job j: dedupe_mode:",
        ),
        (
            "cgroup=a",
            "a.fio:2:1: job j: cgroup: the native engine does not have this option: with cgroup v2",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.starts_with(place), "{text}: {refused}");
    }
}

/// As fio decides it (init.c, fixup_options).
#[test]
fn a_zone_size_alone_strides() {
    let zoned = |text| resolve(&words(text)).map(|job| job.extent.zones.strided(1).is_some());
    assert_eq!(zoned("zonesize=64k"), Ok(true));
    assert_eq!(zoned("zonesize=64k zonemode=strided"), Ok(true));
    assert_eq!(zoned("zonemode=none"), Ok(false));
    assert!(zoned("zonesize=64k zonemode=none").is_err());
    assert!(zoned("zonemode=strided").is_err());
}

#[test]
fn no_option_stands_twice_in_the_table() {
    let mut names: Vec<_> = GROUPS
        .iter()
        .flat_map(|(_, rows)| rows.iter())
        .flat_map(|row| row.names)
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
