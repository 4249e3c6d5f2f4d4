//! Provisioning that was stopped or killed, and goes on.

use std::time::Duration;

use fathom_testkit::skip;
use serde_json::Value;

use crate::support::{Drives, Lab, await_that, signal, with};

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
    let lab = Lab::new();
    lab.sizes("400m", "10s");
    lab.simulated("slow.toml", "pace_ms = 60\nbandwidth_mib = 100\n");
    let args = ["provision", "/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"];
    let args = [&args[..], &["--engine", "sim", "--sim", "slow.toml"]].concat();
    let mut child = lab.start(&args);
    let mut killed = 0;
    for begun in [2, 4, 6, 9, 12] {
        await_that("stages begin", || lab.count("stage") >= begun);
        // Amid a stage, and at its very begin.
        if begun % 4 == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        signal(&child, "-KILL");
        child.wait().unwrap();
        killed += 1;
        child = lab.start(&["provision", "--resume"]);
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(killed, 5);
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
    let name = "devices_go_on_after_a_kill";
    let drives = match Drives::new(4) {
        Ok(drives) => drives,
        Err(reason) => return skip(name, &reason),
    };
    let lab = Lab::new();
    lab.gentle();
    let args = drives.args();
    let args = with(&args, &["--engine", "native", "--workload", "seq"]);
    let mut child = lab.start(&args);
    await_that("a fill is over", || lab.count("stage_ended") >= 1);
    signal(&child, "-KILL");
    child.wait().unwrap();
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
    lab.simulated("slow.toml", "pace_ms = 100\nbandwidth_mib = 50\n");
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
    await_that("both write", || lab.count("interval") >= 4);
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
