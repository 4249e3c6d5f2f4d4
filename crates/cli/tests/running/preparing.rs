//! What is done to the device before the points: whole, killed at every stage,
//! and what is shown of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fathom_testkit::{LoopDevice, meet, require};
use serde_json::Value;

use crate::running::support::{Campaign, await_that, stderr};

/// The stages that have ended in the last record, in order, with how.
fn ended(campaign: &Campaign) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = campaign.events().into_iter();
    let ends = events.filter(|event| event["event"] == "stage_ended");
    ends.map(|event| (text(&event["id"]), text(&event["end"])))
        .collect()
}

/// How often each stage was begun.
fn begun(campaign: &Campaign) -> BTreeMap<String, u32> {
    let mut begun = BTreeMap::new();
    for event in campaign.events() {
        if let Some(id) = event["stage"]["id"].as_str() {
            *begun.entry(id.to_owned()).or_default() += 1;
        }
    }
    begun
}

/// Starts `args` and kills it within the stage, unless that was over before.
fn kill_in(campaign: &Campaign, args: &[&str], stage: &str) -> bool {
    let mut child = campaign.start(args);
    let has_ended = || ended(campaign).iter().any(|(id, _)| id == stage);
    await_that(stage, || {
        let events = campaign.events();
        let began = events.iter().rposition(|e| e["stage"]["id"] == stage);
        // In the middle: with samples.
        let is_amid = |at: usize| events[at..].iter().any(|e| e["event"] == "interval");
        has_ended() || began.is_some_and(is_amid)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    !has_ended()
}

const ALL: [&str; 5] = [
    "purge",
    "fill-seq-1",
    "settle-seq",
    "fill-rand-1",
    "settle-rand",
];

#[test]
fn a_simulated_campaign_is_killed_in_every_stage_and_does_none_twice() {
    meet("a stage", |longer| {
        let pace_ms = 40 * longer;
        let device = format!("pace_ms = {pace_ms}\ncapacity_gib = 16\n");
        let campaign = Campaign::simulated(&device);
        let met = is_killed_in_every_stage(&campaign);
        if met {
            every_stage_was_done(&campaign);
        }
        met
    });
}

fn is_killed_in_every_stage(campaign: &Campaign) -> bool {
    campaign.good(&[
        "config",
        "set",
        "DUT_TEST_MAX_IODEPTH=2",
        "DUT_IOSIZE=100%",
        "IOPS_WD_SS_MEAN_LIMIT_DUR=10s",
        "IOPS_WD_SS_SLOPE_DUR=10s",
        "BW_WD_SS_MEAN_LIMIT_DUR=10s",
        "BW_WD_SS_SLOPE_DUR=10s",
    ]);
    let run = ["run", "--engine", "sim", "--sim", "sim.toml", "-q"];
    let mut args: &[&str] = &run;
    for stage in &ALL[1..] {
        if !kill_in(campaign, args, stage) {
            return false;
        }
        let status = campaign.status();
        assert_eq!(status["status"], "interrupted", "{status}");
        args = &["resume", "-q"];
    }
    campaign.good(args);
    true
}

fn every_stage_was_done(campaign: &Campaign) {
    let all = &ALL[1..];
    let done: Vec<(String, String)> = all.iter().map(|id| ((*id).into(), "done".into())).collect();
    assert_eq!(ended(campaign), done);
    assert!(begun(campaign).values().all(|&times| times == 2));
    assert_eq!(campaign.done().len(), 12);
    let events = campaign.events();
    let place = |wanted: &dyn Fn(&Value) -> bool| events.iter().position(wanted).unwrap();
    let sequential = place(&|e| {
        e["point"]["id"]
            .as_str()
            .is_some_and(|id| id.contains("seq"))
    });
    let random = place(&|e| {
        e["point"]["id"]
            .as_str()
            .is_some_and(|id| id.contains("rand"))
    });
    let stage = |id: &str| place(&|e| e["stage"]["id"] == id);
    assert!(stage("settle-seq") < sequential && sequential < stage("fill-rand-1"));
    assert!(stage("settle-rand") < random);
    let logs = campaign.path().join("logs");
    let points = logs.join("performance-evaluation/provisioned/nothing");
    let points = fs::read_to_string(points).unwrap();
    assert!(points.contains("Start provisioned performance evaluation|/dev/nothing|"));
    assert!(!logs.join("skip-precon").exists());
    assert!(logs.join("runs/END").exists());
    re_judged(campaign);
}

/// `fathom steady` judges the stages anew, by other limits.
fn re_judged(campaign: &Campaign) {
    let fio = [
        "steady", "--rule", "fio", "--window", "10s", "--step", "settle-",
    ];
    let easy = campaign.json(&[&fio[..], &["--metric", "iops,bw", "--json"]].concat());
    assert_eq!(easy["attained"], true, "{easy}");
    // Each stage was begun twice: the last attempt counts.
    let verdicts = easy["verdicts"].as_array().unwrap().iter();
    let series: Vec<&str> = verdicts.map(|v| v["series"].as_str().unwrap()).collect();
    let expected = ["settle-seq", "settle-seq", "settle-rand", "settle-rand"];
    assert_eq!(series, expected);
    let strict = ["--limit", "0.0001", "--slope", "0.0001", "--json"];
    let strict = campaign.json(&[&fio[..], &strict].concat());
    assert_eq!(strict["attained"], false, "{strict}");
}

#[test]
fn a_loop_device_is_purged_filled_and_settled_by_the_native_engine_through_kills() {
    let disk = require!(LoopDevice::new(48 << 20));
    meet("a stage", |longer| {
        let campaign = Campaign::new(disk.path(), 1, "100ms");
        let met = is_killed_while_it_settles(&campaign, &disk, longer);
        if met {
            the_device_was_filled_once(&campaign, &disk);
        }
        met
    });
}

fn is_killed_while_it_settles(campaign: &Campaign, disk: &LoopDevice, window_s: u32) -> bool {
    campaign.good(&[
        "config",
        "set",
        "PURGING=y",
        "DUT_IOSIZE=100%",
        "DUT_NUMJOBS_MAX=1",
    ]);
    for metric in ["IOPS", "BW"] {
        let window =
            ["MEAN_LIMIT", "SLOPE"].map(|limit| format!("{metric}_WD_SS_{limit}_DUR={window_s}s"));
        campaign.good(&["config", "set", &window[0], &window[1]]);
    }
    let word = format!("{}=48MiB", disk.path().display());
    let run = [
        "run",
        "--engine",
        "native",
        "-q",
        "--interval",
        "20ms",
        "--destroy",
        &word,
    ];
    let resume = ["resume", "-q", "--interval", "20ms", "--destroy", &word];
    let mut args: &[&str] = &run;
    for stage in ["settle-seq", "settle-rand"] {
        if !kill_in(campaign, args, stage) {
            return false;
        }
        args = &resume;
    }
    campaign.good(args);
    true
}

fn the_device_was_filled_once(campaign: &Campaign, disk: &LoopDevice) {
    let done: Vec<(String, String)> = ALL.iter().map(|id| ((*id).into(), "done".into())).collect();
    assert_eq!(ended(campaign), done);
    assert_eq!(campaign.done().len(), 6);
    let begun = begun(campaign);
    assert_eq!((begun["purge"], begun["settle-seq"]), (1, 2));
    let device = disk
        .path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let purge = campaign.path().join("logs/purge").join(device);
    let purge = fs::read_to_string(purge).unwrap();
    assert!(purge.starts_with("Start purge|") && purge.contains("Finished purge|"));
    // The fill wrote all of it, once.
    let status = campaign.status();
    let stages = status["stages"].as_array().unwrap();
    let fill = stages.iter().find(|s| s["id"] == "fill-seq-1").unwrap();
    assert_eq!(fill["written_bytes"], 48 << 20);
}

#[test]
fn provisioning_alone_runs_whole_with_fio_on_a_loop_device() {
    let disk = require!(LoopDevice::new(32 << 20));
    for (defconfig, stages) in [("provision-seq", 3), ("provision-random", 5)] {
        let campaign = Campaign::new(disk.path(), 1, "1s");
        campaign.good(&["config", "defconfig", defconfig]);
        campaign.good(&[
            "config",
            "set",
            "DEBUG=y",
            "DEBUG_QUICK_DEFAULTS=y",
            "DUT_IOSIZE=100%",
            "PRECONDITION_PREFILL_LOOP=1",
        ]);
        let window = ["IOPS", "BW"].map(|metric| {
            [
                "MEAN_LIMIT_DUR=1s",
                "SLOPE_DUR=1s",
                "MEAN_LIMIT=100000%",
                "SLOPE=100000%",
            ]
            .map(|setting| format!("{metric}_WD_SS_{setting}"))
        });
        let window: Vec<&str> = window.iter().flatten().map(String::as_str).collect();
        campaign.good(&[&["config", "set"][..], &window].concat());
        let word = format!("{}=32MiB", disk.path().display());
        let doc = campaign.json(&["run", "--engine", "fio", "--json", "--destroy", &word]);
        assert_eq!(doc["status"], "complete", "{doc}");
        let ended = ended(&campaign);
        assert_eq!(ended.len(), stages, "{ended:?}");
        assert!(ended.iter().all(|(_, end)| end == "done"), "{ended:?}");
        assert!(
            campaign
                .path()
                .join("logs/provisioning/santa-clara")
                .is_dir()
        );
    }
}

#[test]
fn a_hard_limit_leaves_the_points_out_with_the_numbers_and_a_soft_one_marks_them() {
    let device = "noise_percent = 0\nswing = { percent = 40, seconds = 1 }\n";
    let campaign = Campaign::simulated(device);
    campaign.good(&[
        "config",
        "set",
        "DUT_TEST_MAX_IODEPTH=1",
        "IOPS_WD_SS_MEAN_LIMIT=5%",
        "BW_WD_SS_MEAN_LIMIT=5%",
    ]);
    let run = ["run", "--engine", "sim", "--sim", "sim.toml", "-q"];
    let output = campaign.run(&run);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("did not become steady for sequential work"),
        "{told}"
    );
    assert!(told.contains("limit < 5 %"), "{told}");
    assert!(told.contains("SANTA_CLARA_ROUND_LIMIT_SOFT"), "{told}");
    let status = campaign.status();
    assert_eq!(
        (&status["status"], &status["skipped"]),
        (&"complete".into(), &6.into())
    );
    let reason = status["skips"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("did not become steady"), "{reason}");
    // A result that is kept: there is nothing to go on with, and that is said.
    let before = campaign.events().len();
    let again = campaign.run(&["resume"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let told = stderr(&again);
    assert!(
        told.contains("did not become steady") && told.contains("--again"),
        "{told}"
    );
    assert_eq!(campaign.events().len(), before);
    campaign.good(&["config", "set", "SANTA_CLARA_ROUND_LIMIT_SOFT=y"]);
    campaign.good(&["resume", "-q"]);
    assert_eq!(campaign.done().len(), 6);
    let shown = campaign.json(&["show", "--json"]);
    let notes = shown["notes"].to_string();
    assert!(
        notes.contains("is measured although the device is not steady"),
        "{notes}"
    );
}

#[test]
fn dry_runs_and_plans_show_the_stages_before_the_points() {
    let campaign = Campaign::new(Path::new("/dev/nothing"), 1, "1s");
    let plan = campaign.json(&["plan", "--json", "--write-speed", "100M"]);
    let stages = plan["stages"].as_array().unwrap();
    let ids: Vec<&str> = stages.iter().map(|s| s["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ALL[1..]);
    assert_eq!(stages[1]["duration_ms"], 1000);
    assert_eq!(stages[0]["write_bytes"], 4 << 20);
    assert_eq!(plan["totals"]["stages"], 4);
    let dry = campaign.json(&["run", "--engine", "sim", "--dry-run", "--json"]);
    let steps = dry["steps"].as_array().unwrap();
    assert_eq!(steps[0]["name"], "fill-seq-1");
    assert!(steps[0]["job_file"].as_str().unwrap().contains("rw=write"));
    assert_eq!(steps.len(), 4 + 6);
}

#[test]
fn limits_without_room_for_the_stages_refuse_the_run_or_tell_why_it_ends() {
    // Two fills of 4 MiB and two loads of a second are the least.
    let campaign = Campaign::new(Path::new("/dev/nothing"), 1, "1s");
    let run = ["run", "--engine", "sim"];
    for limit in [["--max-written", "6M"], ["--max-time", "1500ms"]] {
        let args = [&run[..], &limit, &["--over-budget", "refuse"]].concat();
        let refused = campaign.run(&args);
        assert_eq!(refused.status.code(), Some(4), "{}", stderr(&refused));
        assert!(
            stderr(&refused).contains("making the device ready takes"),
            "{}",
            stderr(&refused)
        );
        assert!(campaign.records().is_empty());
        let plan = [&["plan"][..], &limit, &["--over-budget", "refuse"]].concat();
        assert_eq!(campaign.run(&plan).status.code(), Some(4));
    }
    let cut = [&run[..], &["--max-written", "6M"]].concat();
    let cut = campaign.run(&cut);
    assert_eq!(cut.status.code(), Some(1));
    assert!(
        stderr(&cut).contains("more would be written"),
        "{}",
        stderr(&cut)
    );
}
