//! What a campaign costs beyond its engine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fathom_model::{Event, RunStatus};
use fathom_record::Record;

use crate::Lab;
use crate::results::{Beside, Row};
use crate::timing::{peak_rss_kib, wall_ms};

/// A campaign's folder with a defconfig and some symbols set, on a file.
pub fn campaign(lab: &Lab, name: &str, defconfig: &str, symbols: &[&str]) -> PathBuf {
    let dir = lab.path(name);
    let run = |args: &[&str]| {
        let mut command = Command::new(&lab.fathom);
        command.args(args);
        if dir.exists() {
            command.current_dir(&dir);
        }
        wall_ms(&mut command);
    };
    run(&["init", dir.to_str().unwrap()]);
    run(&["config", "defconfig", defconfig]);
    run(&[&["config", "set"], symbols].concat());
    dir
}

fn start(lab: &Lab, dir: &PathBuf, args: &[&str]) -> Command {
    let mut command = Command::new(&lab.fathom);
    command.args(["run", "-q"]).args(args).current_dir(dir);
    command.env("DEV", dir.join("dut"));
    command
}

/// From the end of a point's engine to the start of the next one's, by the
/// times in the record.
pub fn between_points(lab: &Lab) -> Row {
    let depth = if lab.full { "64" } else { "1" };
    let depth = format!("DUT_TEST_MAX_IODEPTH={depth}");
    // A disk that stalls is not steady, and is measured all the same.
    let soft = "SANTA_CLARA_ROUND_LIMIT_SOFT=y";
    let symbols = ["DUT_RUNTIME=100ms", &depth, soft];
    let dir = campaign(lab, "between", "debug-quick", &symbols);
    let mut gaps_of = Vec::new();
    for engine in ["native", "fio"] {
        wall_ms(&mut start(lab, &dir, &["--again", "--engine", engine]));
        let runs = fs::read_dir(dir.join("fathom-runs")).unwrap();
        let last = runs.map(|run| run.unwrap().path()).max().unwrap();
        gaps_of.push(gaps(&last));
    }
    let median = |gaps: &[f64]| gaps[gaps.len() / 2];
    Row {
        what: "between two points of a campaign, beyond the engine",
        unit: "ms",
        value: median(&gaps_of[0]),
        limit: Some(50.0),
        rounds: gaps_of[0].len(),
        beside: vec![
            Beside::new("longest", *gaps_of[0].last().unwrap()),
            // fio has been started when it counts as such: its start is in it.
            Beside::new("with fio, its start included", median(&gaps_of[1])),
        ],
    }
}

/// What of the time of a test after SNIA's specification, with the debug
/// settings, is Fathom's own: everything but the run time of its jobs. The native
/// engine is Fathom too, so its start and end count.
pub fn snia(lab: &Lab) -> Row {
    let mut symbols = vec!["SNIA_TESTS=y", "BASIC_TESTS=n"];
    if !lab.full {
        let few = ["SNIA_IOPS_WD_RANDRW_STEP=0/100", "SNIA_IOPS_WD_BS_STEP=4k"];
        symbols.extend(few);
        symbols.push("SNIA_IOPS_WD_RUNTIME=100ms");
    }
    let dir = campaign(lab, "snia", "debug-quick", &symbols);
    fs::write(dir.join("dut"), vec![0; 8 << 20]).unwrap();
    let share = |engine: &str| {
        let mut command = start(lab, &dir, &["--again", "--engine", engine]);
        let whole_ms = wall_ms(&mut command);
        let runs = fs::read_dir(dir.join("fathom-runs")).unwrap();
        let last = runs.map(|run| run.unwrap().path()).max().unwrap();
        let (engine_ms, io_ms) = times(&last);
        let percent = |ms: f64| 100.0 * (whole_ms - ms) / whole_ms;
        (percent(engine_ms), percent(io_ms), whole_ms)
    };
    let (native, native_io, whole_ms) = share("native");
    let (_, fio_io, _) = share("fio");
    Row {
        what: "Fathom's share of the time of a debug SNIA IOPS run",
        unit: "%",
        value: native_io,
        limit: Some(5.0),
        rounds: 1,
        beside: vec![
            Beside::new("beyond the engine", native),
            Beside::new("so with fio", fio_io),
            Beside::new("whole run in s", whole_ms / 1000.0),
        ],
    }
}

/// Time in ms of a record's engines from their start to their figures, and that
/// of their jobs alone.
fn times(record: &std::path::Path) -> (f64, f64) {
    let record = Record::open(record).unwrap();
    assert_eq!(record.status(), Some(RunStatus::Complete));
    let (mut engines, mut jobs, mut began) = (0, 0, 0);
    for entry in &record.entries {
        match &entry.event {
            Event::EngineStarted { .. } => began = entry.at_ms,
            Event::Finished { results } => {
                engines += entry.at_ms - began;
                let each = results.jobs.iter().filter_map(|job| job.runtime_ms);
                jobs += each.max().unwrap_or(0);
            }
            _ => {}
        }
    }
    (engines as f64, jobs as f64)
}

/// Times in ms between the figures of a step and the next step's engine, ascending.
fn gaps(record: &std::path::Path) -> Vec<f64> {
    let record = Record::open(record).unwrap();
    assert_eq!(record.status(), Some(RunStatus::Complete));
    let mut gaps = Vec::new();
    let mut finished = None;
    for entry in &record.entries {
        match entry.event {
            Event::Finished { .. } => finished = Some(entry.at_ms),
            Event::EngineStarted { .. } => {
                gaps.extend(finished.map(|at_ms| (entry.at_ms - at_ms) as f64));
            }
            _ => {}
        }
    }
    gaps.sort_by(f64::total_cmp);
    gaps
}

/// Memory of a simulated campaign of ten thousand measurements.
pub fn memory(lab: &Lab) -> Row {
    let dir = campaign(lab, "many", "all-tests", &["DUT_RUNTIME=3s"]);
    let peak_mib = |repeat: &str| {
        let args = ["--again", "--engine", "sim", "--repeat", repeat];
        peak_rss_kib(&mut start(lab, &dir, &args)) / 1024.0
    };
    let small = peak_mib("1");
    Row {
        what: "peak memory of a campaign of 10,000 measurements",
        unit: "MiB",
        // 702 points, 15 times.
        value: if lab.full { peak_mib("15") } else { small },
        limit: None,
        rounds: 1,
        beside: vec![Beside::new("of 702", small)],
    }
}
