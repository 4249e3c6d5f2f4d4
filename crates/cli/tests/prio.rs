//! `fathom prio` where a disk needs no feature: baselines on a loop device, and
//! what is refused. Limits themselves are in guest_prio.rs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fathom_testkit::{LoopDevice, await_that, require, signal};
use serde_json::Value;

fn fathom(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_STATE_HOME", dir.join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn pages_are_shown_and_faults_told_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let shown = stdout(&fathom(dir.path(), &["prio", "pages"]));
    for said in [
        "page T2A (limits of reads)",
        "up to 20 %",
        "500 ms (complete-earliest)",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/cdl/T2B.cdl");
    let page = fs::read_to_string(shipped).unwrap();
    fs::write(dir.path().join("good.cdl"), &page).unwrap();
    let read = stdout(&fathom(
        dir.path(),
        &["prio", "pages", "good.cdl", "--json"],
    ));
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!(read["schema"], "fathom.cdl-pages/1");
    let limit = &read["pages"][0]["descriptors"][1]["duration_guideline"];
    assert_eq!(
        (&limit["ms"], &limit["policy"]),
        (&100.0.into(), &"complete-earliest".into())
    );
    fs::write(dir.path().join("bad.cdl"), page.replacen("0xa", "0xb", 1)).unwrap();
    let bad = fathom(dir.path(), &["prio", "pages", "bad.cdl"]);
    assert_eq!(bad.status.code(), Some(3));
    let line = page
        .lines()
        .position(|line| line == "t2cdlunits: 0xa")
        .unwrap()
        + 1;
    assert!(
        stderr(&bad).contains(&format!("bad.cdl:{line}: t2cdlunits 0xb")),
        "{bad:?}"
    );
}

#[test]
fn a_baseline_has_the_folder_and_the_words_of_the_page() {
    let disk = require!(LoopDevice::new(16 << 20));
    let dir = tempfile::tempdir().unwrap();
    let dev = disk.path().display().to_string();
    let run = |engine: &str, more: &[&str]| {
        let args = [
            "prio",
            "--dev",
            &dev,
            "--baseline",
            "--bs",
            "4k",
            "--ramptime",
            "0",
            "--runtime",
            "1",
            "--engine",
            engine,
        ];
        fathom(dir.path(), &[&args[..], more].concat())
    };
    let told = stdout(&run("fio", &["--qds", "1 4", "--outdir", "out"]));
    for said in [
        &format!("Run on {dev}, ramp time: 0s, run time: 1s\n  Output directory: /"),
        &format!("\nDevice: {dev}\n    Vendor: unknown\n"),
        "\nSystem:\n    Node name: ",
        "\n\nRunning baseline workload\n  QD=1...\n  QD=4...\n",
    ] {
        assert!(told.contains(said), "{said}: {told}");
    }
    for depth in ["1", "4"] {
        let folder = dir.path().join("out/baseline").join(depth);
        let log = fs::read_to_string(folder.join("randread.log_lat.log")).unwrap();
        assert!(log.lines().next().unwrap().ends_with("0x0000"), "{log:.99}");
        let text = fs::read_to_string(folder.join("fio.log")).unwrap();
        assert!(text.contains("randread: (groupid=0"), "{text}");
    }
    let again = run("fio", &["--outdir", "out"]);
    assert_eq!(again.status.code(), Some(4));
    assert!(stderr(&again).contains("it exists already"), "{again:?}");

    writes_are_measured_where_the_disk_is_named(dir.path(), &dev, &run);
}

/// Without a name the folder is in the home directory, which is this one.
fn writes_are_measured_where_the_disk_is_named(
    dir: &Path,
    dev: &str,
    run: &dyn Fn(&str, &[&str]) -> Output,
) {
    let writes = ["--rw", "randwrite", "--qds", "2", "--json"];
    let unnamed = run("native", &writes);
    assert_eq!(unnamed.status.code(), Some(4), "{unnamed:?}");
    let words = format!("{dev}={}", 16 << 20);
    let named = [&writes[..], &["--destroy", &words]].concat();
    let doc: Value = serde_json::from_str(&stdout(&run("native", &named))).unwrap();
    let point = &doc["workloads"][0]["points"][0];
    assert_eq!(doc["schema"], "fathom.prio/1");
    assert_eq!(point["iodepth"], 2);
    assert_eq!(point["classes"][0]["direction"], "write");
    assert_eq!(point["classes"][0]["n"], point["n"]);
    let out = doc["outdir"].as_str().unwrap();
    assert!(out.ends_with("_cdl_bench"), "{out}");
    assert!(
        Path::new(out)
            .join("baseline/2/randwrite.log_lat.log")
            .exists()
    );
    let shown: Value =
        serde_json::from_str(&stdout(&fathom(dir, &["prio", "show", "--json"]))).unwrap();
    assert_eq!(shown["workloads"], doc["workloads"]);
    let curves = stdout(&fathom(dir, &["show"]));
    assert!(curves.contains("1 in 1 series: 1 done"), "{curves}");
    let left = dir.join("state/fathom/switches").read_dir();
    assert!(!left.is_ok_and(|mut left| left.any(|_| true)));
}

/// The depth that Ctrl-C cut short once looked like any other; and with -q the
/// lines of the page were printed all the same.
#[test]
fn an_interrupted_depth_is_marked_and_quiet_is_quiet() {
    let disk = require!(LoopDevice::new(16 << 20));
    let dir = tempfile::tempdir().unwrap();
    let dev = disk.path().display().to_string();
    let start = |runtime: &str, outdir: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command
            .args(["prio", "--dev", &dev, "--baseline", "--bs", "4k"])
            .args(["--ramptime", "0", "--qds", "2 4", "--engine", "native"])
            .args(["--runtime", runtime, "--outdir", outdir])
            .args(more)
            .current_dir(dir.path())
            .env("HOME", dir.path())
            .env("XDG_STATE_HOME", dir.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let child = start("600", "cut", &[]);
    await_that("it measures", || {
        let runs = fs::read_dir(dir.path().join("fathom-runs"));
        let mut runs = runs.into_iter().flatten().flatten();
        runs.any(|run| {
            let log = fs::read_to_string(run.path().join("events.jsonl"));
            log.is_ok_and(|log| log.contains("\"event\":\"interval\""))
        })
    });
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("! QD 2 was interrupted: "), "{told}");
    let doc = stdout(&fathom(dir.path(), &["prio", "show", "--json"]));
    let doc: Value = serde_json::from_str(&doc).unwrap();
    assert_eq!(doc["status"], "interrupted");
    let points = &doc["workloads"][0]["points"];
    assert_eq!(points.as_array().unwrap().len(), 1);
    assert_eq!(points[0]["interrupted"], true);

    let quiet = start("1", "whole", &["-q"]).wait_with_output().unwrap();
    let told = stdout(&quiet);
    assert!(told.starts_with("baseline: "), "{told}");
    assert!(!told.contains("interrupted"), "{told}");
}

#[test]
fn what_is_no_disk_or_out_of_range_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), [0; 512]).unwrap();
    for (dev, said) in [
        ("file", "it is no block device"),
        ("none", "there is no such device"),
    ] {
        let refused = fathom(dir.path(), &["prio", "--dev", dev, "--baseline"]);
        assert_eq!(refused.status.code(), Some(3));
        assert!(stderr(&refused).contains(said), "{refused:?}");
    }
    for (more, said) in [
        ("--cdl-multi --dldsplit 1/60,2/50", "110 percent"),
        ("--cdl-single --percentage 101 --dld 1", "101"),
        ("--cdl-single --percentage 20 --dld 8", "8"),
        ("--cdl-single --percentage 20", "--dld"),
        ("--ncqprio", "--percentage"),
        ("--baseline --qds 0", "no queue depth"),
        ("--qds 1", "nothing to measure"),
    ] {
        let mut args = vec!["prio", "--dev", "file"];
        args.extend(more.split(' '));
        let refused = fathom(dir.path(), &args);
        assert_eq!(refused.status.code(), Some(2), "{more}");
        assert!(stderr(&refused).contains(said), "{said}: {refused:?}");
    }
}
