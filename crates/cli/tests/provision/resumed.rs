//! Provisioning that was stopped or killed, and goes on.

use std::path::PathBuf;
use std::time::Duration;

use fathom_testkit::{LoopDevice, meet, require};
use serde_json::Value;

use crate::provision::support::{DRIVE_BYTES, Drives, Lab, await_that, signal, with};

fn is_done(document: &Value) {
    assert_eq!(document["status"], "complete", "{document:#}");
    for drive in document["drives"].as_array().unwrap() {
        assert_eq!(drive["steady"], true, "{document:#}");
        for stage in drive["stages"].as_array().unwrap() {
            assert!(stage["end"].is_string(), "{document:#}");
        }
    }
}

/// Kills it after so many stages, again and again, until it comes to its end.
#[test]
fn killed_at_every_stage_it_goes_on_with_every_drive() {
    meet("a stage", |longer| {
        let lab = Lab::new();
        let met = killed_at_every_stage(&lab, longer);
        if met {
            every_drive_has_gone_on(&lab);
        }
        met
    });
}

fn killed_at_every_stage(lab: &Lab, longer: u32) -> bool {
    lab.sizes("400m", "10s");
    let pace_ms = 60 * longer;
    let device = format!("pace_ms = {pace_ms}\nbandwidth_mib = 100\n");
    lab.simulated("slow.toml", &device);
    let args = ["provision", "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"];
    let args = [&args[..], &["--engine", "sim", "--sim", "slow.toml"]].concat();
    let mut child = lab.start(&args);
    for begun in [2, 4, 6, 9, 12] {
        let all_ended = || lab.count("ended") == 3;
        await_that("stages begin", || {
            lab.count("stage") >= begun || all_ended()
        });
        // Amid a stage, and at its very begin.
        if begun % 4 == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if all_ended() {
            return false;
        }
        child = lab.start(&["provision", "--resume"]);
    }
    assert!(child.wait().unwrap().success());
    true
}

fn every_drive_has_gone_on(lab: &Lab) {
    assert_eq!(lab.records().len(), 3, "every drive goes on in its record");
    let (document, code) = lab.json(&["provision", "--resume", "--json"]);
    assert_eq!(code, Some(0), "nothing is left");
    is_done(&document);
    let stages = document["drives"][0]["stages"].as_array().unwrap();
    assert!(
        stages
            .iter()
            .any(|stage| stage["attempts"].as_u64() > Some(1))
    );
}

#[test]
fn devices_go_on_after_a_kill() {
    let drives = require!(Drives::new(4));
    meet("a fill", |longer| {
        let lab = Lab::new();
        lab.gentle();
        lab.sizes("100%", &format!("{longer}s"));
        let args = drives.args();
        let args = with(&args, &["--engine", "native", "--workload", "seq"]);
        let mut child = lab.start(&args);
        await_that("a fill is over", || lab.count("stage_ended") >= 1);
        child.kill().unwrap();
        child.wait().unwrap();
        // None of them has come to its end.
        let met = lab.count("ended") == 0;
        if met {
            they_go_on(&lab, &args);
        }
        met
    });
}

fn they_go_on(lab: &Lab, args: &[&str]) {
    let unnamed = lab.run(&["provision", "--resume"]);
    assert_eq!(unnamed.status.code(), Some(4), "{unnamed:?}");
    let mut again = vec!["provision", "--resume", "--json"];
    again.extend(args.iter().skip_while(|word| **word != "--destroy").take(8));
    let (document, code) = lab.json(&again);
    assert_eq!(code, Some(0), "{document:#}");
    is_done(&document);
    assert_eq!(lab.records().len(), 4);
}

#[test]
fn a_stop_ends_all_cleanly_and_the_rest_goes_on_by_name() {
    let lab = Lab::new();
    lab.sizes("400m", "10s");
    lab.simulated("slow.toml", "pace_ms = 1000\nbandwidth_mib = 50\n");
    let args = [
        "provision",
        "/dev/sda",
        "/dev/sdb",
        "--engine",
        "sim",
        "--sim",
        "slow.toml",
    ];
    let child = lab.start(&args);
    let writes = |record: &PathBuf| lab.count_in(record, "interval") > 0;
    await_that("both write", || {
        lab.records().iter().filter(|record| writes(record)).count() == 2
    });
    // The rest at once.
    lab.simulated("slow.toml", "bandwidth_mib = 50\n");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(lab.count("ended"), 2);
    let other = lab.run(&["provision", "--resume", "/dev/sdc"]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    let (document, code) = lab.json(&["provision", "--resume", "/dev/sdb", "--json"]);
    let status = |nth: usize| document["drives"][nth]["status"].as_str().unwrap();
    assert_eq!(
        (code, status(0), status(1)),
        (Some(0), "interrupted", "complete")
    );
    let (document, _) = lab.json(&["provision", "--resume", "--json"]);
    is_done(&document);
}

/// Killed without notice while a device is overwritten, and while it is filled:
/// neither counts as done, and the next start does each anew.
#[test]
fn a_purge_and_a_fill_that_were_killed_are_known_as_such() {
    require!(LoopDevice::new(DRIVE_BYTES));
    meet("a purge or a fill", |longer| {
        let bytes = (256 << 20) * u64::from(longer);
        let device = LoopDevice::new(bytes).unwrap();
        let lab = Lab::new();
        lab.gentle();
        lab.sizes("100%", "1s");
        let path = device.path().to_str().unwrap();
        let words = format!("{path}={bytes}");
        let start = ["provision", path, "--workload", "seq", "--engine", "native"];
        let start = [&start[..], &["--purge", "overwrite-random"]].concat();
        let start = [&start[..], &["--destroy", &words]].concat();
        let resume = ["provision", "--resume", "--destroy", &words];
        let met =
            killed_within(&lab, &start, "purge") && killed_within(&lab, &resume, "fill-seq-1");
        if met {
            let kernel_name = path.trim_start_matches("/dev/");
            let purges = lab.actions(&format!("purge/{kernel_name}"));
            assert_eq!(purges.last().unwrap(), "Finished purge");
            let finished = purges.iter().filter(|action| *action == "Finished purge");
            assert_eq!(finished.count(), 1, "{purges:?}");
            let (document, code) = lab.json(&[&resume[..], &["--json"]].concat());
            assert_eq!(code, Some(0), "{document:#}");
            is_done(&document);
            let stages = document["drives"][0]["stages"].as_array().unwrap();
            let attempts = stages.iter().map(|stage| stage["attempts"].as_u64());
            let attempts: Vec<_> = attempts.map(Option::unwrap).collect();
            assert_eq!(attempts, [2, 2, 1], "{document:#}");
        }
        met
    });
}

/// Kills a start as soon as this stage has begun; whether it was within it.
fn killed_within(lab: &Lab, args: &[&str], stage: &str) -> bool {
    let begun = || lab.count(&format!("stage\",\"stage\":{{\"id\":\"{stage}"));
    let ended = || lab.count(&format!("stage_ended\",\"id\":\"{stage}"));
    let before = begun();
    let mut child = lab.start(args);
    await_that(stage, || begun() > before);
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = String::from_utf8(lab.good(&["runs", "--json"]).stdout).unwrap();
    let runs: Value = serde_json::from_str(&runs).unwrap();
    let met = ended() == 0;
    if met {
        assert_eq!(runs["runs"][0]["status"], "interrupted", "{runs}");
    }
    met
}
