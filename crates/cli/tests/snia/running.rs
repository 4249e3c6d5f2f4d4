use std::process::Command;

use fathom_testkit::{Zram, meet, require, skip};
use serde_json::Value;

use super::support::{BYTES, Place, json, stderr};

/// Ids of the stages that are no rounds, with their ends.
fn stages(test: &Value) -> Vec<(&str, &str)> {
    let stages = test["stages"].as_array().unwrap().iter();
    stages
        .map(|stage| {
            (
                stage["id"].as_str().unwrap(),
                stage["ended"]["end"].as_str().unwrap_or(""),
            )
        })
        .collect()
}

#[test]
fn every_test_runs_whole_on_a_loop_device() {
    let place = require!(Place::new());
    let words = place.words();
    for (name, metric, parts) in [
        ("iops", "iops", 1),
        ("throughput", "bw", 2),
        ("latency", "lat", 1),
        ("wsat", "iops", 1),
    ] {
        let mut more = vec!["--engine", "native", "--destroy", &words];
        if name == "iops" {
            more.extend(["--mixes", "100/0,65/35,0/100", "--blocks", "1024k,64k,4k"]);
        }
        let output = place.run(&place.args(name, &more));
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let doc = json(&output);
        assert_eq!(doc["schema"], "fathom.snia/1");
        assert!(doc["notice"].as_str().unwrap().contains("not a SNIA test"));
        let test = &doc["tests"][0];
        assert_eq!(test["parts"].as_array().unwrap().len(), parts, "{name}");
        assert_eq!(test["parts"][0]["tracked"][0]["metric"], metric);
        let cells = test["parts"][0]["measured"][0]["cells"].as_array().unwrap();
        assert_eq!(
            cells.len(),
            [("iops", 9), ("throughput", 2), ("latency", 9), ("wsat", 1)]
                .iter()
                .find(|(test, _)| *test == name)
                .unwrap()
                .1
        );
        assert!(
            cells
                .iter()
                .all(|cell| cell["iops"].as_f64().unwrap() > 0.0)
        );
        assert!(
            stages(test).iter().all(|(_, end)| *end == "done"),
            "{name}: {:?}",
            stages(test)
        );
        let told = test["deviations"].to_string();
        assert!(
            told.contains("active range") && told.contains("a cell takes"),
            "{told}"
        );
    }
}

#[test]
fn fio_runs_a_test_whole() {
    const TEST: &str = "fio_runs_a_test_whole";
    if Command::new("fio").arg("--version").output().is_err() {
        return skip(TEST, "fio is not installed");
    }
    let place = require!(Place::new());
    let words = place.words();
    let more = [
        "--engine",
        "fio",
        "--window",
        "2",
        "--max-rounds",
        "2",
        "--destroy",
        &words,
    ];
    let output = place.run(&place.args("latency", &more));
    assert!(output.status.success(), "{}", stderr(&output));
    let doc = json(&output);
    assert!(doc["engines"][0].as_str().unwrap().starts_with("fio-"));
    let histogram = &doc["tests"][0]["histogram"];
    assert!(histogram["lat_max_ns"].as_u64().unwrap() > 0, "{histogram}");
}

#[test]
fn write_saturation_runs_whole_on_zram() {
    let zram = require!(Zram::new(BYTES));
    let place = Place::on(zram.path(), BYTES);
    let words = place.words();
    let more = [
        "--engine",
        "native",
        "--ioengine",
        "psync",
        "--destroy",
        &words,
    ];
    let output = place.run(&place.args("wsat", &more));
    assert!(output.status.success(), "{}", stderr(&output));
    let doc = json(&output);
    let part = &doc["tests"][0]["parts"][0];
    assert!(part["saturation"]["ended_by"].is_string(), "{part}");
    assert!(part["saturation"]["drive_fills"].as_f64().unwrap() > 0.0);
}

/// Killed without notice in each kind of stage: it goes on where it was, and
/// says that it was interrupted.
#[test]
fn a_test_that_was_killed_goes_on() {
    for stage in [
        "latency/purge",
        "latency/fill-1",
        "latency/round-02",
        "latency/histogram",
    ] {
        require!(Place::new());
        meet(stage, |longer| {
            let place = Place::new().unwrap();
            let words = place.words();
            let histogram = format!("{}ms", 200 * longer);
            let more = ["--engine", "native", "--destroy", &words];
            let more = [&more[..], &["--histogram", &histogram]].concat();
            let mut child = place.start_until(&place.args("latency", &more), stage);
            child.kill().unwrap();
            child.wait().unwrap();
            let met = !place.events().contains("\"event\":\"ended\"");
            if met {
                it_goes_on(&place, stage);
            }
            met
        });
    }
}

fn it_goes_on(place: &Place, stage: &str) {
    let words = place.words();
    // A purge of so small a device may be over before the kill.
    let ended = "\"event\":\"stage_ended\",\"id\":\"latency/purge\"";
    let was_purged = place.events().contains(ended);
    let unnamed = place.run(&["snia", "resume", "-q"]);
    assert_eq!(unnamed.status.code(), Some(4), "{}", stderr(&unnamed));
    let resumed = place.run(&["snia", "resume", "-q", "--json", "--destroy", &words]);
    assert!(resumed.status.success(), "{stage}: {}", stderr(&resumed));
    let doc = json(&resumed);
    let test = &doc["tests"][0];
    assert_eq!(doc["status"], "complete");
    assert_eq!(test["attained"], true, "{stage}");
    let gaps = test["interruptions"].as_array().unwrap();
    assert_eq!(gaps.len(), 1, "{stage}: {gaps:?}");
    assert!(test["deviations"].to_string().contains("no unplanned gap"));
    // What had ended before was not done again.
    let purge = "\"id\":\"latency/purge\",\"kind\"";
    let purges = place.events().matches(purge).count();
    assert_eq!(purges, if was_purged { 1 } else { 2 }, "{stage}");
    let again = place.run(&["snia", "show", "--json"]);
    assert_eq!(json(&again)["tests"], doc["tests"]);
    // Nothing is left: the record stays as it is, without another interruption.
    let over = place.run(&["snia", "resume", "--json", "--destroy", &words]);
    assert!(stderr(&over).contains("Nothing is left to do"), "{over:?}");
    assert_eq!(json(&over)["tests"], doc["tests"]);
}

#[test]
fn not_attained_is_a_result_and_is_said_loudly() {
    let place = Place::on("/dev/nothing".as_ref(), 0);
    let sim = place.path().join("sim.toml");
    let device = "format = \"fathom-sim-device\"\nversion = 1\ndrift_percent_per_hour = 900\n";
    std::fs::write(&sim, device).unwrap();
    let sim = sim.to_str().unwrap();
    let args = [
        "snia",
        "latency",
        "/dev/nothing",
        "--engine",
        "sim",
        "--sim",
        sim,
    ];
    let output = place.run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("NOT STEADY"),
        "{}",
        stderr(&output)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("NOT attained in 25 rounds"), "{text}");
    assert!(text.contains("not a SNIA test"), "{text}");
    assert!(stderr(&output).contains("not a SNIA test"));
    assert_eq!(
        json(&place.run(&["snia", "show", "--json"]))["attained"],
        false
    );
}

#[test]
fn what_may_not_be_or_costs_too_much_is_refused_before_anything_runs() {
    let place = require!(Place::new());
    let device = place.device.to_str().unwrap();
    let words = place.words();
    let refused = |args: &[&str], code: i32, what: &str| {
        let output = place.run(args);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(what),
            "{args:?}: {}",
            stderr(&output)
        );
    };
    refused(&["snia", "iops", device], 4, "--destroy");
    refused(&["snia", "iops", "/etc/hostname"], 5, "no block device");
    let short = [
        "snia",
        "iops",
        device,
        "--max-time",
        "1h",
        "--destroy",
        &words,
    ];
    refused(&short, 4, "--max-time");
    let little = [
        "snia",
        "iops",
        device,
        "--max-written",
        "1M",
        "--destroy",
        &words,
    ];
    refused(&little, 4, "--max-written");
    // It was purged once, and stopped within its first sample.
    let saturate = ["snia", "wsat", device, "--max-written", "1M"];
    let saturate = [&saturate[..], &["--debug", "--destroy", &words]].concat();
    refused(&saturate, 4, "--max-written");
    // Four times its 64 MiB, and a second of the histogram, however fast or slow it
    // is; what the slowest disk has to write is less than six hours' work.
    let costs = ["snia", "wsat", device, "--dry-run", "--destroy", &words];
    let bound = ["--write-speed", "64M", "--histogram", "1s"];
    let costs = stderr(&place.run(&[&costs[..], &bound].concat()));
    let worst = costs.lines().find(|line| line.contains("never steady"));
    let worst = worst.unwrap_or_else(|| panic!("{costs}"));
    assert!(
        worst.contains("24 stages") && worst.contains("324 MiB at most"),
        "{worst}"
    );
    let range = ["snia", "iops", device, "--range", "1g", "--destroy", &words];
    refused(&range, 3, "larger than the device");
    assert!(!place.path().join("fathom-runs").exists());
    the_plan_and_every_command_are_shown(&place, device, &words);
}

/// Also of what would be refused.
fn the_plan_and_every_command_are_shown(place: &Place, device: &str, words: &str) {
    let dry = place.run(&["snia", "throughput", device, "--dry-run", "--json"]);
    assert_eq!(dry.status.code(), Some(4));
    let dry = place.run(&[
        "snia",
        "throughput",
        device,
        "--dry-run",
        "--json",
        "--destroy",
        words,
    ]);
    let doc = json(&dry);
    assert_eq!(doc["schema"], "fathom.dry-run/1");
    let names: Vec<&str> = doc["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"throughput/1024k/purge"));
    // Each job of a round is a step.
    let mut steps = doc["steps"].as_array().unwrap().iter();
    let round: Vec<&str> = steps
        .by_ref()
        .filter(|step| step["name"] == "throughput/128k/round-05")
        .map(|step| step["job_file"].as_str().unwrap())
        .collect();
    assert_eq!(round.len(), 2, "{round:?}");
    assert!(round[0].contains("rw=read") && round[1].contains("rw=write"));
    assert!(
        stderr(&dry).contains("steady as soon as it can be"),
        "{}",
        stderr(&dry)
    );
}
