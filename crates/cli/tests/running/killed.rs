//! Campaigns that are killed at any moment, and stopped.

use std::fs;
use std::time::Duration;

use fathom_testkit::{LoopDevice, require, stat_fields};

use crate::running::support::{Campaign, await_that, signal};

/// Kills in a row; each campaign is killed at least so often.
const KILLS: u32 = 20;

/// Numbers that look random (a linear congruential generator, Knuth, TAOCP 2,
/// 3.3.4, line 26): the same in each run of the test.
struct Moments(u64);

impl Moments {
    fn next(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(from_ms + (self.0 >> 33) % (to_ms - from_ms))
    }
}

/// Length of all records' logs.
fn log_bytes(campaign: &Campaign) -> u64 {
    let logs = campaign.records().into_iter();
    let logs = logs.flat_map(|dir| fs::metadata(dir.join("events.jsonl")));
    logs.map(|log| log.len()).sum()
}

/// Whether the last start has written down what it is to do: without that nothing can go on.
fn has_begun(campaign: &Campaign) -> bool {
    let mut records = campaign.records().into_iter();
    let last = records.rfind(|dir| dir.join("events.jsonl").exists());
    last.is_some_and(|dir| dir.join("plan.jsonl").exists())
}

/// Runs `args`, killing it again and again, then to its end; from the start, in a
/// new record, where a busy machine let it come to its end between two kills.
fn kill_and_resume(campaign: &Campaign, args: &[&str], moments: &mut Moments) {
    let resume = [&["resume"], &args[1..]].concat();
    let again = [args, &["--again"]].concat();
    let mut is_over = false;
    for kill in 0..KILLS {
        let before = log_bytes(campaign);
        let mut child = campaign.start(match has_begun(campaign) {
            false => args,
            true if is_over => &again,
            true => &resume,
        });
        // Most kills meet points that run, every fifth anything before them.
        if kill % 5 < 4 {
            await_that("the record grows", || {
                log_bytes(campaign) > before || child_is_gone(child.id())
            });
        }
        std::thread::sleep(moments.next(0, 150));
        child.kill().unwrap();
        is_over = child.wait().unwrap().success();
    }
    campaign.good(match has_begun(campaign) {
        true => &resume,
        false => args,
    });
    let records = campaign.records().into_iter();
    let logs = records.map(|dir| fs::read_to_string(dir.join("events.jsonl")).unwrap());
    let resumed = logs.map(|log| log.matches("\"event\":\"resumed\"").count());
    let resumed = resumed.sum::<usize>();
    assert!(resumed > 0, "no kill met a record");
}

/// Whether a process is no more than its exit status.
fn child_is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat_fields(&stat).first() == Some(&"Z")
}

#[test]
fn a_campaign_of_the_native_engine_on_a_loop_device_survives_twenty_kills() {
    let disk = require!(LoopDevice::new(16 << 20));
    let campaign = Campaign::new(disk.path(), 256, "80ms");
    let word = format!("{}=16MiB", disk.path().display());
    let args = ["run", "--engine", "native", "-q", "--destroy", &word];
    kill_and_resume(&campaign, &args, &mut Moments(2));
    assert_eq!(campaign.done().len(), 54);
    assert_eq!(campaign.status()["failed"], 0);
}

#[test]
fn ctrl_c_ends_the_point_and_resume_goes_on() {
    let campaign = Campaign::simulated("pace_ms = 100\n");
    let args = ["run", "--engine", "sim", "--sim", "sim.toml"];
    let child = campaign.start(&args);
    await_that("a point is done", || !campaign.done().is_empty());
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("fathom resume continues"), "{told}");
    assert_eq!(campaign.status()["status"], "interrupted");
    let left = campaign.status()["left"].as_u64().unwrap();
    assert!((1..78).contains(&left));
    // --engine and --sim are those of the last start.
    let shown = campaign.json(&["resume", "--dry-run", "--json"]);
    assert_eq!(shown["engine"], "sim");
    let steps = shown["steps"].as_array().unwrap().iter();
    let points = steps.filter(|step| step["name"].as_str().unwrap().contains('/'));
    assert_eq!(points.count() as u64, left);
    let doc = campaign.json(&["resume", "--json"]);
    assert_eq!(doc["status"], "complete");
    assert_eq!(campaign.done().len(), 78);
    let again = campaign.good(&["resume"]);
    assert!(crate::running::support::stderr(&again).contains("--again starts a new record"));
}
