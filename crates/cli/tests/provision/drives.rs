//! Drives that are provisioned to their end, or fail on the way.

use std::collections::BTreeSet;

use fathom_testkit::require;
use serde_json::Value;

use crate::provision::support::{Drives, Lab, stderr, with};

fn field<'v>(drive: &'v Value, name: &str) -> &'v str {
    drive[name].as_str().unwrap_or_default()
}

#[test]
fn eight_devices_are_provisioned_in_parallel_each_with_its_record_and_log() {
    let drives = require!(Drives::new(8));
    let lab = Lab::new();
    lab.gentle();
    let args = drives.args();
    let more = ["--workload", "mixed", "--engine", "native", "--json"];
    let (document, code) = lab.json(&with(&args, &more));
    assert_eq!(code, Some(0), "{document:#}");
    assert_eq!(document["schema"], "fathom.provision/1");
    assert_eq!(
        (&document["status"], &document["workload"]),
        (&"complete".into(), &"mixed".into())
    );
    let all = document["drives"].as_array().unwrap();
    assert_eq!(all.len(), 8);
    let mut runs = BTreeSet::new();
    let mut begins = Vec::new();
    let mut ends = Vec::new();
    for drive in all {
        let name = field(drive, "name");
        let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let even = number.parse::<u32>().unwrap() % 2 == 0;
        let load = if even { "sequential" } else { "random" };
        assert_eq!(field(drive, "workload"), load, "{name}");
        assert_eq!(
            (field(drive, "status"), &drive["steady"]),
            ("complete", &true.into())
        );
        let stages = drive["stages"].as_array().unwrap();
        assert_eq!(
            (field(&stages[0], "kind"), field(&stages[0], "end")),
            ("purge", "done")
        );
        assert!(stages[0]["took_ms"].is_u64(), "{drive:#}");
        assert_eq!(
            lab.actions(&format!("purge/{name}")),
            ["Start purge", "Finished purge"]
        );
        let last = stages.last().unwrap();
        assert_eq!(
            (field(last, "kind"), field(last, "end")),
            ("settle", "done"),
            "{name}"
        );
        let terms = &last["verdicts"][0]["terms"];
        assert!(terms[0]["measured_percent"].is_f64(), "{terms}");
        // The fill, and what a busy machine lets it write until it is steady.
        let written = drive["written_bytes"].as_u64().unwrap();
        assert!(written > 4 << 20, "{drive:#}");
        runs.insert(field(drive, "run").to_owned());
        let events = lab
            .path()
            .join("fathom-runs")
            .join(field(drive, "run"))
            .join("events.jsonl");
        let events = std::fs::read_to_string(events).unwrap();
        let at = |line: &str| serde_json::from_str::<Value>(line).unwrap()["at_ms"].as_u64();
        begins.push(events.lines().nth(1).and_then(at).unwrap());
        ends.push(events.lines().last().and_then(at).unwrap());
        let log = lab.actions(&format!("provisioning/santa-clara/{name}"));
        assert_eq!(log.first().unwrap(), "Start provisioning");
        assert_eq!(log.last().unwrap(), "Finished provisioning");
    }
    assert_eq!(runs.len(), 8, "a record each");
    assert!(begins.iter().max() < ends.iter().min(), "at the same time");
}

#[test]
fn a_drive_that_vanishes_and_one_that_fails_do_not_stop_the_others() {
    let lab = Lab::new();
    lab.sizes("400m", "20s");
    lab.simulated("good.toml", "");
    lab.simulated("gone.toml", "vanish_after_s = 4\n");
    lab.simulated("broken.toml", "[fail]\nafter_s = 2\n");
    let paths: Vec<String> = (0..8).map(|n| format!("/dev/nvme{n}n1")).collect();
    let mut args = vec!["provision"];
    args.extend(paths.iter().map(String::as_str));
    args.extend([
        "--engine",
        "sim",
        "--sim",
        "gone.toml",
        "--sim",
        "broken.toml",
    ]);
    args.extend(["--sim", "good.toml", "--json"]);
    let tell = "echo \"$FATHOM_NAME $FATHOM_STATUS $FATHOM_EXIT\" >>told";
    args.extend(["--notify", tell, "--metrics-file", "all.prom"]);
    let (document, code) = lab.json(&args);
    assert_eq!((code, &document["status"]), (Some(1), &"failed".into()));
    // Each drive is told of, and has series of its own.
    let text = |name: &str| std::fs::read_to_string(lab.path().join(name)).unwrap();
    let (told, metrics) = (text("told"), text("all.prom"));
    assert_eq!(told.lines().count(), 8, "{told}");
    assert_eq!(told.matches(" failed 1").count(), 2, "{told}");
    for (nth, status) in [(0, "failed"), (7, "complete")] {
        let series = format!("fathom_run_status{{device=\"nvme{nth}n1\",status=\"{status}\"}} 1");
        assert!(metrics.contains(&series), "{series}: {metrics}");
    }
    let all = document["drives"].as_array().unwrap();
    for (nth, drive) in all.iter().enumerate() {
        let (status, reason) = (field(drive, "status"), field(drive, "reason"));
        match nth {
            0 => assert!(status == "failed" && reason.contains("gone"), "{drive:#}"),
            1 => assert!(status == "failed" && reason.contains("I/O"), "{drive:#}"),
            _ => assert_eq!((status, &drive["steady"]), ("complete", &true.into())),
        }
    }
}

#[test]
fn a_drive_that_never_settles_is_a_result_with_its_numbers_and_no_success() {
    let lab = Lab::new();
    lab.sizes("400m", "20s");
    let limits = ["IOPS_WD_SS_MEAN_LIMIT", "BW_WD_SS_MEAN_LIMIT"];
    lab.set(&limits.map(|symbol| format!("{symbol}=0.1%")));
    lab.simulated("wild.toml", "wander_percent = 20\n");
    let args = [
        "provision",
        "/dev/sda",
        "--workload",
        "seq",
        "--engine",
        "sim",
    ];
    let args = [&args[..], &["--sim", "wild.toml", "--json"]].concat();
    let (document, code) = lab.json(&args);
    let drive = &document["drives"][0];
    assert_eq!(
        (code, field(drive, "status")),
        (Some(1), "complete"),
        "{drive:#}"
    );
    assert_eq!(drive["steady"], false);
    assert!(
        field(drive, "reason").contains("(limit < 0.1 %)"),
        "{drive:#}"
    );
    let stage = drive["stages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(field(&stage, "end"), "not_attained");
    assert_eq!(stage["verdicts"][0]["attained"], false);
    let output = lab.run(&args[..args.len() - 1]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not steady"));
    assert!(!stderr(&output).contains("✓ provisioned"), "{output:?}");
    // There is nothing to go on with: the result is said again.
    let again = lab.run(&["provision", "--resume"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(stderr(&again).contains("that is the result"), "{again:?}");
}

#[test]
fn a_dry_run_shows_every_command_of_every_drive_and_touches_nothing() {
    let lab = Lab::new();
    let args = [
        "provision",
        "/dev/nvme0n1",
        "/dev/nvme1n1",
        "--workload",
        "mixed",
    ];
    let args = [&args[..], &["--engine", "sim", "--dry-run"]].concat();
    let shown = String::from_utf8(lab.good(&args).stdout).unwrap();
    assert!(
        shown.contains("/dev/nvme0n1, for sequential work"),
        "{shown}"
    );
    assert!(shown.contains("/dev/nvme1n1, for random work"), "{shown}");
    for stage in ["fill-seq-1:", "settle-seq:", "fill-rand-1:", "settle-rand:"] {
        assert!(shown.contains(stage), "{stage}: {shown}");
    }
    let (document, _) = lab.json(&[&args[..], &["--json"]].concat());
    assert_eq!(document["schema"], "fathom.dry-run/1");
    assert_eq!(document["drives"][1]["workload"], "random");
    let mut steps = document["steps"].as_array().unwrap().iter();
    let first = steps.find(|step| step["device"] == "/dev/nvme1n1");
    let first = first.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(first["name"], "fill-seq-1");
    let job = first["job_file"].as_str().unwrap();
    assert!(job.contains("/dev/nvme1n1"), "{document:#}");
    assert!(lab.records().is_empty());
}

#[test]
fn the_plain_screen_tells_each_stage_of_each_drive_in_a_line() {
    let lab = Lab::new();
    let args = [
        "provision",
        "/dev/nvme0n1",
        "/dev/nvme1n1",
        "--engine",
        "sim",
    ];
    let lines = stderr(&lab.good(&args));
    assert!(lines.contains("nvme0n1  ✓ fill-seq-1  done"), "{lines}");
    assert!(lines.contains("nvme1n1  ✓ provisioned"), "{lines}");
    let quiet = stderr(&lab.good(&[&args[..], &["-q"]].concat()));
    assert_eq!(quiet, "");
}

#[test]
fn a_drive_is_purged_as_was_named_or_not_at_all() {
    let drives = require!(Drives::new(2));
    let lab = Lab::new();
    lab.gentle();
    let args = drives.args();
    let more = ["--engine", "native", "--dry-run"];
    let shown = |words: &[&str]| {
        let args = with(&args, &[&more[..], words].concat());
        String::from_utf8(lab.good(&args).stdout).unwrap()
    };
    let overwrite = shown(&["--purge", "overwrite"]);
    assert_eq!(overwrite.matches("if=/dev/zero").count(), 2, "{overwrite}");
    assert!(!shown(&["--no-purge"]).contains("purge"));
    let cannot = lab.run(&with(
        &args,
        &["--engine", "native", "--purge", "scsi-format"],
    ));
    let told = stderr(&cannot);
    assert_eq!(cannot.status.code(), Some(4), "{told}");
    assert_eq!(told.matches("it is no SCSI device").count(), 2, "{told}");
    let unknown = lab.run(&with(&args, &["--purge", "hammer"]));
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

#[test]
fn more_than_may_be_spent_is_refused_or_cut() {
    let lab = Lab::new();
    lab.sizes("400m", "20s");
    let args = [
        "provision",
        "/dev/nvme0n1",
        "/dev/nvme1n1",
        "--engine",
        "sim",
    ];
    let refuse = ["--max-written", "300m", "--over-budget", "refuse"];
    let output = lab.run(&[&args[..], &refuse].concat());
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(
        told.contains("more is needed for nvme0n1, nvme1n1"),
        "{told}"
    );
    assert!(lab.records().is_empty());
    let cut = ["--max-time", "10s", "--json"];
    let (document, code) = lab.json(&[&args[..], &cut].concat());
    assert_eq!(
        (code, &document["status"]),
        (Some(1), &"interrupted".into())
    );
    let reason = field(&document["drives"][0], "reason").to_owned();
    assert!(reason.contains("time limit"), "{reason}");
    // Drives were purged once, although nothing could be written to them then.
    lab.set(&["PURGING=y".to_owned()]);
    let cut = ["--max-written", "100m", "--json"];
    let (document, code) = lab.json(&[&args[..], &cut].concat());
    assert_eq!(code, Some(1), "{document:#}");
    for drive in document["drives"].as_array().unwrap() {
        assert_eq!(drive["stages"], serde_json::json!([]), "{drive:#}");
        assert!(field(drive, "reason").contains("fill-seq-1"), "{drive:#}");
    }
}
