//! What may be written, as the kernel counts it on drives of the machine.

use std::fs;

use fathom_testkit::require;
use serde_json::Value;

use crate::provision::support::{DRIVE_BYTES, Drives, Lab, stderr, with};

const MIB: u64 = 1 << 20;

/// Bytes that the kernel has counted as written to a device.
fn counted(device: &str) -> u64 {
    let name = device.rsplit('/').next().unwrap();
    let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    let sectors: u64 = stat.split_whitespace().nth(6).unwrap().parse().unwrap();
    sectors * 512
}

fn recorded(lab: &Lab, event: &str, field: &str) -> Vec<u64> {
    let record = lab.records().pop().unwrap();
    let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let of_kind = lines.filter(|line: &Value| line["event"] == event);
    of_kind.map(|line| line[field].as_u64().unwrap()).collect()
}

#[test]
fn a_purge_counts_and_a_load_ends_before_the_limit() {
    for engine in ["native", "fio"] {
        let drives = require!(Drives::new(1));
        let lab = Lab::new();
        lab.gentle();
        lab.sizes("100%", "10s");
        let device = drives.paths().pop().unwrap();
        let limit = 3 * DRIVE_BYTES;
        let more = ["--engine", engine, "--purge", "overwrite", "--json"];
        let more = [&more[..], &["--max-written", "96M"]].concat();
        let before = counted(&device);
        let (document, code) = lab.json(&with(&drives.args(), &more));
        let written = counted(&device) - before;
        assert_eq!(code, Some(1), "{document:#}");
        assert!(written <= limit, "{engine}: {written} of {limit}");
        // The purge and the fill behind it.
        assert!(written >= 2 * DRIVE_BYTES, "{engine}: {written}");
        let purge = recorded(&lab, "written_beside", "bytes");
        assert!(
            purge.len() == 1 && purge[0] >= DRIVE_BYTES,
            "{engine}: {purge:?}"
        );
        let told = recorded(&lab, "kernel_counted", "written_bytes");
        assert_eq!(told.last(), Some(&written), "{engine}");
    }
}

#[test]
fn a_purge_that_writes_more_than_may_be_written_is_not_begun() {
    let drives = require!(Drives::new(1));
    let lab = Lab::new();
    lab.gentle();
    let device = drives.paths().pop().unwrap();
    let before = counted(&device);
    let more = ["--purge", "overwrite", "--max-written", "20M"];
    let output = lab.run(&with(&drives.args(), &more));
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(counted(&device), before, "{told}");
}

/// What is in no figure ends a run as well, long before its ramp time is over.
#[test]
fn ramp_time_counts_and_what_nobody_knows_of_is_told() {
    const LIMIT: u64 = 16 * MIB;
    for engine in ["native", "fio"] {
        let drives = require!(Drives::new(1));
        let lab = Lab::new();
        let device = drives.paths().pop().unwrap();
        lab.set(&[
            format!("DUT_FILENAME={device}"),
            "DUT_RAMP_TIME=600s".to_owned(),
            "DUT_TEST_MAX_IODEPTH=1".to_owned(),
            "STEADY_STATE_PROVISIONING=n".to_owned(),
        ]);
        // A quarter of the limit a second at most, by I/Os of 4 KiB. (With a rate fio 3.33
        // ends its ramp at once.)
        let template = lab.path().join("templates/performance.fio");
        let text = fs::read_to_string(&template).unwrap();
        fs::write(&template, text + "thinktime=1ms\n").unwrap();
        let words = format!("{device}=32MiB");
        let limit = LIMIT.to_string();
        let run = ["run", "--engine", engine, "--only", "randwrite", "-q"];
        let run = [&run[..], &["--destroy", &words, "--max-written", &limit]].concat();
        let before = counted(&device);
        let output = lab.run(&run);
        let written = counted(&device) - before;
        let record = lab.records().pop().unwrap();
        let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
        let stopped = "was stopped: the campaign may write";
        assert!(log.contains(stopped), "{engine}: {log}");
        // A fio that is stopped in its ramp gives figures of it.
        let is_told = log.contains("the kernel counted ");
        assert!(is_told || engine == "fio", "{log}");
        // A busy machine may need long to end an engine, but not until the ramp is over.
        let about = stderr(&output);
        assert!(0 < written && written < 10 * LIMIT, "{written}: {about}");
    }
}
