//! What makes a figure suspect or invalid, provoked for real: each reason is found in the
//! record of a run that had it, by the verdict, by `--require` and by `explain`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fathom_testkit::{
    FaultFs, LoopDevice, ProgramUnderTest, Throttle, Zram, await_that, data, require, signal,
};
use serde_json::Value;

fn bench() -> ProgramUnderTest {
    ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"))
}

/// A job of direct reads by the native engine.
fn job(bench: &ProgramUnderTest, target: &Path, options: &str) -> String {
    let target = target.display();
    let text =
        format!("[job]\nfilename={target}\nrw=randread\nbs=4k\ndirect=1\ntime_based\n{options}\n");
    let path = bench.file("job.fio", &text);
    path.to_str().unwrap().to_owned()
}

fn args<'a>(job: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run = [
        "job",
        "run",
        job,
        "-q",
        "--json",
        "--engine",
        "native",
        "--interval",
        "200ms",
    ];
    [&run[..], more].concat()
}

/// The kinds of reasons of the first figure.
fn kinds(document: &Value, dir: &str) -> Vec<String> {
    let verdict = &document["jobs"][0][dir]["verdict"];
    let reasons = verdict["reasons"].as_array().cloned().unwrap_or_default();
    reasons
        .iter()
        .map(|it| it["kind"].as_str().unwrap().to_owned())
        .collect()
}

fn has(document: &Value, dir: &str, kind: &str) {
    let found = kinds(document, dir);
    assert!(
        found.iter().any(|it| it == kind),
        "{kind} is not among {found:?}: {document:#}"
    );
}

/// Stops the run, which has figures all the same.
fn stopped(child: Child) -> Value {
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// Intervals that the run has told.
fn intervals(bench: &ProgramUnderTest) -> usize {
    let records = bench.records();
    let log = records
        .last()
        .map(|dir| fs::read_to_string(dir.join("events.jsonl")));
    let log = log.and_then(Result::ok).unwrap_or_default();
    log.matches("\"event\":\"interval\"").count()
}

/// Waits for so many more.
fn await_intervals(bench: &ProgramUnderTest, more: usize) {
    let before = intervals(bench);
    await_that("the run tells no intervals", || {
        intervals(bench) >= before + more
    });
}

/// An image that holds data everywhere.
fn image(bench: &ProgramUnderTest, bytes: usize) -> std::path::PathBuf {
    let path = bench.path().join("image");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&data(bytes)).unwrap();
    file.sync_all().unwrap();
    path
}

const MIB: usize = 1 << 20;

#[test]
fn a_second_load_on_the_device_is_told_with_its_bytes() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let job = job(
        &bench,
        device.path(),
        "rate_iops=200\nruntime=120\nsize=16M",
    );
    let child = bench.start(&args(&job, &[]));
    await_intervals(&bench, 2);
    let input = format!("if={}", device.path().display());
    let read = || {
        let dd = Command::new("dd")
            .args([input.as_str(), "of=/dev/null", "bs=1M", "iflag=direct"])
            .stderr(Stdio::null())
            .status();
        assert!(dd.unwrap().success());
    };
    (0..4).for_each(|_| read());
    await_intervals(&bench, 2);
    let document = stopped(child);
    has(&document, "read", "foreign_io");
    let reasons = document["verdict"]["reasons"].as_array().unwrap();
    let told = reasons
        .iter()
        .find(|it| it["kind"] == "foreign_io")
        .unwrap();
    assert!(
        told["evidence"]["foreign_bytes"].as_f64().unwrap() >= 60.0 * MIB as f64,
        "{told}"
    );
    let text = String::from_utf8(bench.good(&["explain"]).stdout).unwrap();
    assert!(text.contains("somebody else used it meanwhile"), "{text}");
}

#[test]
fn holes_are_invalid_and_a_command_that_requires_more_ends_with_7() {
    let bench = bench();
    let device = require!(LoopDevice::new(16 << 20));
    let job = job(&bench, device.path(), "runtime=1\nsize=16M");
    let output = bench.run(&args(&job, &["--require", "suspect"]));
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    has(&document, "read", "nothing_read");
    assert_eq!(document["verdict"]["level"], "invalid");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("to do: write the whole range first"),
        "{told}"
    );
    let explained = bench.good(&["explain", "--json"]);
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(explained["figures"][0]["limit"], "no_device");
    let runs = String::from_utf8(bench.good(&["runs"]).stdout).unwrap();
    assert!(runs.contains("invalid"), "{runs}");
    let without = bench.run(&args(&job, &[]));
    assert_eq!(without.status.code(), Some(0), "{without:?}");
}

#[test]
fn somebody_is_told_at_once_that_a_run_became_invalid() {
    let bench = bench();
    let device = require!(LoopDevice::new(16 << 20));
    let first = job(&bench, device.path(), "runtime=1\nsize=16M");
    // Both read holes; the second step is there only when somebody was told at the first.
    let second = std::fs::read_to_string(&first).unwrap();
    let second = bench.file("second.fio", &second);
    let line = "$FATHOM_STATUS,$FATHOM_VERDICT,$FATHOM_STEP,$FATHOM_EXIT";
    let tell = format!("echo \"{line},$FATHOM_MESSAGE\" >>told; test -d \"$FATHOM_DIR\"");
    let output = bench.run(&args(
        &first,
        &[second.to_str().unwrap(), "--notify", &tell],
    ));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "the folder was there"
    );
    let told = std::fs::read_to_string(bench.path().join("told")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let [first, last] = &told[..] else {
        panic!("{told:?}")
    };
    assert!(
        first.starts_with("running,invalid,job,,") && first.contains("became invalid at step job"),
        "{first}"
    );
    assert!(last.starts_with("complete,invalid,,0,"), "{last}");
}

#[test]
fn a_sparse_file_and_an_empty_zram_device_hold_nothing() {
    let bench = bench();
    let sparse = bench.path().join("sparse");
    fs::File::create(&sparse)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let zram = require!(Zram::new(16 << 20));
    let device = require!(LoopDevice::over(&sparse));
    for target in [zram.path(), device.path()] {
        let job = job(&bench, target, "runtime=1\nsize=16M");
        let output = bench.good(&args(&job, &[]));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        has(&document, "read", "nothing_read");
    }
}

#[test]
fn the_limit_of_a_control_group_is_found_and_a_change_of_it_is_a_shift() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let group = require!(Throttle::new(device.path(), 40));
    let job = job(&bench, device.path(), "runtime=120\nsize=16M");
    let words = group.command();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .args(args(&job, &[]));
    let child = command
        .current_dir(bench.path())
        .env("XDG_STATE_HOME", bench.path().join("state"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Few enough for a busy machine, and so many intervals that it shows the change, too.
    await_intervals(&bench, 30);
    group.limit(10).unwrap();
    await_intervals(&bench, 30);
    let document = stopped(child);
    has(&document, "read", "settings_changed");
    has(&document, "read", "level_shift");
}

#[test]
fn one_io_at_a_time_is_no_depth_of_eight() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let job = job(
        &bench,
        device.path(),
        "ioengine=psync\niodepth=8\nruntime=1\nsize=16M",
    );
    let output = bench.good(&args(&job, &[]));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    has(&document, "read", "depth_not_reached");
    let limit: Value = serde_json::from_slice(&bench.good(&["explain", "--json"]).stdout).unwrap();
    assert_eq!(limit["schema"], "fathom.explain/1");
}

#[test]
fn a_queue_that_is_set_anew_meanwhile_is_told() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let job = job(
        &bench,
        device.path(),
        "rate_iops=100\nruntime=120\nsize=16M",
    );
    let child = bench.start(&args(&job, &[]));
    await_intervals(&bench, 2);
    let name = device.path().file_name().unwrap().to_str().unwrap();
    fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), "16\n").unwrap();
    await_intervals(&bench, 2);
    let document = stopped(child);
    has(&document, "read", "settings_changed");
    let notes = document["notes"].to_string();
    assert!(notes.contains("then 16"), "{notes}");
}

#[test]
fn a_file_system_that_stands_still_is_a_stall() {
    let bench = bench();
    let faults = require!(FaultFs::new());
    let file = faults.path().join("f");
    fs::write(&file, vec![7; 4 * MIB]).unwrap();
    let job = job(&bench, &file, "ioengine=psync\nruntime=120\nsize=4M");
    let child = bench.start(&args(&job, &[]));
    await_intervals(&bench, 3);
    faults.hold_reads_from(1);
    await_that("no read waits", || faults.held() > 0);
    // Whole intervals without I/O, by the record itself.
    await_intervals(&bench, 5);
    faults.release();
    await_intervals(&bench, 3);
    let document = stopped(child);
    has(&document, "read", "stalls");
}

#[test]
fn what_the_job_asked_for_is_a_limit_and_no_reason_against_it() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let job = job(&bench, device.path(), "rate_iops=50\nruntime=2\nsize=16M");
    let output = bench.good(&args(&job, &[]));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    has(&document, "read", "own_limit");
    has(&document, "read", "few_beyond");
    let reasons = document["jobs"][0]["read"]["verdict"]["reasons"]
        .as_array()
        .unwrap();
    let limit = reasons.iter().find(|it| it["kind"] == "own_limit").unwrap();
    assert_eq!(limit["level"], "valid");
    assert!(
        !document["notes"]
            .to_string()
            .contains("rate_iops=50 was the limit")
    );
}

#[test]
fn the_record_keeps_the_evidence_of_every_interval() {
    let bench = bench();
    let device = require!(LoopDevice::over(&image(&bench, 16 * MIB)));
    let job = job(&bench, device.path(), "rate_iops=100\nruntime=2\nsize=16M");
    bench.good(&args(&job, &[]));
    let events = String::from_utf8(bench.good(&["show", "--events"]).stdout).unwrap();
    let lines: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|it| it["event"] == "evidence")
        .collect();
    assert!(lines.len() >= 5, "{events}");
    assert_eq!(lines[0]["span_ms"], 0);
    let name = device.path().file_name().unwrap().to_str().unwrap();
    let reads = format!("{name}.read_ios");
    assert_eq!(lines[0]["counts"][&reads], 0);
    let all: u64 = lines
        .iter()
        .filter_map(|it| it["counts"][&reads].as_u64())
        .sum();
    let document: Value = serde_json::from_slice(&bench.good(&["show", "--json"]).stdout).unwrap();
    let own = document["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert!(all >= own, "{all} of {own}");
}
