//! What a job's options ask to be shown: directions as one, percentiles of each kind of
//! latency, logs that are stored compressed.

use std::process::Command;

use fathom_testkit::skip;

use crate::native::{folder, run};

const MIX: &str = "[j]\nioengine=null\nrw=randrw\nbs=4k\nsize=1m\nfilename=f\n";

#[test]
fn directions_are_shown_as_one_in_place_of_them_or_besides() {
    let dir = folder();
    let [none, mixed, both] = ["none", "mixed", "both"].map(|how| {
        let seen = run(dir.path(), &format!("{MIX}unified_rw_reporting={how}\n"));
        seen.results().jobs[0].clone()
    });
    assert!(none.mixed.is_none());
    assert!(mixed.read.is_none() && mixed.write.is_none() && mixed.trim.is_none());
    let all = mixed.mixed.unwrap();
    assert_eq!((all.total_ios, all.io_bytes), (256, 1 << 20));
    let parts = [both.read.unwrap(), both.write.unwrap()];
    let all = both.mixed.unwrap();
    assert_eq!(parts.iter().map(|part| part.total_ios).sum::<u64>(), 256);
    assert_eq!(all.total_ios, 256);
    let [clat, of_reads, of_writes] =
        [&all, &parts[0], &parts[1]].map(|part| part.clat.clone().unwrap());
    assert_eq!(clat.n, Some(of_reads.n.unwrap() + of_writes.n.unwrap()));
    assert_eq!(clat.min_ns, of_reads.min_ns.min(of_writes.min_ns));
    assert_eq!(clat.max_ns, of_reads.max_ns.max(of_writes.max_ns));
}

#[test]
fn each_kind_of_latency_has_percentiles_where_they_are_asked_for() {
    let dir = folder();
    let percentiles = |options: &str| {
        let seen = run(dir.path(), &format!("{MIX}iodepth=4\n{options}\n"));
        let read = seen.read(0).clone();
        [read.slat, read.clat, read.lat].map(|latency| !latency.unwrap().percentiles_ns.is_empty())
    };
    assert_eq!(percentiles(""), [false, true, false]);
    let all = "slat_percentiles=1\nlat_percentiles=1";
    assert_eq!(percentiles(all), [true, true, true]);
    let one = "slat_percentiles=1\nclat_percentiles=0";
    assert_eq!(percentiles(one), [true, false, false]);
}

#[test]
fn a_stored_log_is_inflated_by_fio_to_the_lines_of_a_plain_one() {
    let dir = folder();
    let log = "rw=write\nlog_offset=1\nper_job_logs=0\nwrite_iops_log=x\nlog_compression=10k";
    run(dir.path(), &format!("{MIX}{log}\nlog_store_compressed=1\n"));
    let inflated = Command::new("fio")
        .arg("--inflate-log=x_iops.log.fz")
        .current_dir(dir.path())
        .output();
    let Ok(inflated) = inflated else {
        return skip(
            "a_stored_log_is_inflated_by_fio_to_the_lines_of_a_plain_one",
            "fio is not installed",
        );
    };
    run(dir.path(), &format!("{MIX}{log}\n"));
    let plain = std::fs::read_to_string(dir.path().join("x_iops.log")).unwrap();
    let without_time = |text: &str| -> Vec<String> {
        let of = |line: &str| line.split_once(',').unwrap().1.to_owned();
        text.lines().map(of).collect()
    };
    let inflated = without_time(&String::from_utf8(inflated.stdout).unwrap());
    assert_eq!(inflated, without_time(&plain));
    assert_eq!(inflated.len(), 256);
    assert_eq!(inflated[255], " 1, 1, 4096, 1044480, 0");
}
