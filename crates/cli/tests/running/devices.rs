//! Whole campaigns on real devices.

use std::process::Command;

use fathom_testkit::{LoopDevice, Throttle, Zram, program, require};
use serde_json::Value;

use crate::running::support::Campaign;

/// Every point was measured, and the logs say so.
fn is_whole(campaign: &Campaign, points: u64) {
    let status = campaign.status();
    assert_eq!(status["status"], "complete", "{status}");
    assert_eq!(
        (&status["done"], &status["failed"]),
        (&points.into(), &0.into())
    );
    assert_eq!(campaign.done().len() as u64, points);
    assert!(campaign.path().join("logs/runs/END").exists());
    let record = campaign.records().pop().unwrap();
    for folder in ["jobs", "raw"] {
        let point = record.join(folder).join("0001-basic-tests/0003-randwrite");
        let kept = point.read_dir().unwrap().count() as u64;
        assert_eq!(kept, points / 6, "{}", point.display());
    }
}

#[test]
fn a_whole_campaign_of_fio_on_a_loop_device() {
    let disk = require!(LoopDevice::new(16 << 20).and_then(|disk| program("fio").map(|_| disk)));
    let campaign = Campaign::new(disk.path(), 2, "300ms");
    let word = format!("{}=16MiB", disk.path().display());
    let plain = campaign.good(&["run", "--engine", "fio", "--destroy", &word]);
    let lines = crate::running::support::stderr(&plain);
    assert!(lines.contains("12/12  ✓ 0001-basic-tests/"), "{lines}");
    is_whole(&campaign, 12);
    let order: Vec<Value> = campaign.events();
    // Those of the points, and those that make the device ready for them.
    let steps = order.iter().filter(|e| e["event"] == "step");
    let names: Vec<&str> = steps.map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 12 + 4, "{names:?}");
    let phases = names.iter().map(|name| name.contains("rand"));
    assert!(
        phases.collect::<Vec<bool>>().is_sorted(),
        "sequential first"
    );
    assert_eq!(names[..2], ["fill-seq-1", "settle-seq"]);
}

#[test]
fn a_whole_campaign_of_the_native_engine_on_zram() {
    let zram = require!(Zram::new(16 << 20));
    let campaign = Campaign::new(zram.path(), 4, "100ms");
    let word = format!("{}=16MiB", zram.path().display());
    campaign.good(&["run", "--engine", "native", "--destroy", &word, "-q"]);
    is_whole(&campaign, 18);
}

/// What a busy machine cannot disturb: no point is beyond the limit, and at no time
/// more I/Os wait than the depth says. That engines reach the limit is measured by
/// `make bench-engine`.
#[test]
fn a_throttled_device_shows_where_its_limit_is() {
    const LIMIT: f64 = 2000.0;
    let made = LoopDevice::new(16 << 20)
        .and_then(|disk| Throttle::new(disk.path(), LIMIT as u32).map(|slow| (disk, slow)));
    let (disk, slow) = require!(made);
    let campaign = Campaign::new(disk.path(), 64, "600ms").found_as_it_is();
    let points = curve(&campaign, &disk, &slow);
    let depths: Vec<f64> = points.iter().map(|point| point.depth).collect();
    assert_eq!(depths, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    for point in points {
        // The kernel lets I/Os go for two of its slices of 100 ms ahead, at most
        // (block/blk-throttle.c).
        let most = LIMIT * (point.runtime_s + 0.2) + point.depth;
        assert!(point.ios <= most, "{point:?}");
        // The run time is told in whole ms.
        assert!(
            point.waited_s <= point.depth * (point.runtime_s + 0.001),
            "{point:?}"
        );
    }
}

/// Random reads of one depth.
#[derive(Debug)]
struct Point {
    depth: f64,
    ios: f64,
    runtime_s: f64,
    /// Of all I/Os together.
    waited_s: f64,
}

fn curve(campaign: &Campaign, disk: &LoopDevice, slow: &Throttle) -> Vec<Point> {
    let inside = slow.command();
    let output = Command::new(&inside[0])
        .args(&inside[1..])
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .args([
            "run", "--engine", "native", "--only", "randread", "--json", "-q",
        ])
        .current_dir(campaign.path())
        .env("DEV", disk.path())
        .output()
        .unwrap();
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    let point = |job: &Value| {
        let read = &job["read"];
        let number = |value: &Value| value.as_f64().unwrap();
        let ios = number(&read["total_ios"]);
        Point {
            depth: job["options"]["iodepth"].as_str().unwrap().parse().unwrap(),
            ios,
            runtime_s: number(&read["runtime_ms"]) / 1000.0,
            waited_s: number(&read["lat"]["mean_ns"]) * ios / 1e9,
        }
    };
    doc["jobs"].as_array().unwrap().iter().map(point).collect()
}

#[test]
fn a_record_does_not_go_on_with_another_device() {
    let disks = LoopDevice::new(16 << 20).and_then(|a| Ok((a, LoopDevice::new(16 << 20)?)));
    let (first, second) = require!(disks);
    let campaign = Campaign::new(first.path(), 1, "50ms").found_as_it_is();
    let args = ["run", "--engine", "native", "--only", "randread", "-q"];
    campaign.good(&args);
    let mut other = campaign.command(&args);
    let refused = other.env("DEV", second.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(4));
    let words = crate::running::support::stderr(&refused);
    assert!(words.contains("--again starts a new record"), "{words}");
    assert_eq!(campaign.records().len(), 1);
}
