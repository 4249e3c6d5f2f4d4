//! What provisioning many drives costs beside what writes to them.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_testkit::Zram;

use crate::Lab;
use crate::results::{Beside, Row};
use crate::running::campaign;

const DRIVES: usize = 8;
const DRIVE_BYTES: u64 = 64 << 20;
/// Ticks a second of the times in /proc (proc(5); the same on every architecture
/// that Rust has a standard library for).
const TICKS_HZ: f64 = 100.0;

/// CPU time of Fathom's own process while eight drives are provisioned. The
/// drives are simulated, in time that really passes: of real ones the process
/// that writes would be the most of it. Beside it, where this machine can have
/// them, eight drives of memory, with the process that only watches.
pub fn eight_drives(lab: &Lab) -> Row {
    let window = if lab.full { "10s" } else { "1s" };
    let mut symbols = vec!["PRECONDITION_NUMJOBS=1".to_owned()];
    for metric in ["IOPS", "BW"] {
        for limit in ["MEAN_LIMIT", "SLOPE"] {
            symbols.push(format!("{metric}_WD_SS_{limit}_DUR={window}"));
            symbols.push(format!("{metric}_WD_SS_{limit}=100000%"));
        }
    }
    let set: Vec<&str> = symbols.iter().map(String::as_str).collect();
    let dir = campaign(lab, "provision", "debug-quick", &set);
    let device = "format = \"fathom-sim-device\"\nversion = 1\npace_ms = 1000\n";
    fs::write(dir.join("paced.toml"), device).unwrap();
    let start = |more: &[String]| {
        let mut command = Command::new(&lab.fathom);
        command
            .args(["provision", "--workload", "mixed"])
            .args(more);
        command.env("XDG_STATE_HOME", dir.join("state"));
        command.current_dir(&dir);
        command
    };
    let mut sim: Vec<String> = (0..DRIVES).map(|n| format!("/dev/nvme{n}n1")).collect();
    sim.extend(["--engine", "sim", "--sim", "paced.toml"].map(str::to_owned));
    let mut beside = Vec::new();
    let zrams: Result<Vec<Zram>, String> = (0..DRIVES).map(|_| Zram::new(DRIVE_BYTES)).collect();
    if let Ok(zrams) = zrams {
        let mut args = vec!["--engine".to_owned(), "native".to_owned()];
        for zram in &zrams {
            let path = zram.path().display().to_string();
            args.extend(["--destroy".to_owned(), format!("{path}=64MiB"), path]);
        }
        let percent = cpu_percent(&mut start(&args));
        beside.push(Beside::new(
            "while the native engine writes to eight zram",
            percent,
        ));
    }
    Row {
        what: "CPU of Fathom while 8 drives are provisioned",
        unit: "% of a core",
        value: cpu_percent(&mut start(&sim)),
        limit: Some(5.0),
        rounds: 1,
        beside,
    }
}

/// CPU time of the process itself, without what it starts, over its whole life,
/// in percent of a core.
fn cpu_percent(command: &mut Command) -> f64 {
    let begin = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ticks = 0.0;
    while child.try_wait().unwrap().is_none() {
        if let Some(now) = own_ticks(child.id()) {
            ticks = now;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success(), "{command:?}");
    100.0 * ticks / TICKS_HZ / begin.elapsed().as_secs_f64()
}

/// User and system time of a process, in ticks; fields 14 and 15 of its stat,
/// the second of which may hold anything (proc(5)).
fn own_ticks(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let behind_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let time = |at: usize| fields.get(at)?.parse::<f64>().ok();
    // The first of these is field 3.
    Some(time(11)? + time(12)?)
}
