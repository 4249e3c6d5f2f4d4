//! The native engine beside fio: IOPS of one core, CPU time of each I/O, the time
//! until the first one, and what both find of devices that take their own time.
//!
//! `make bench-engine` runs it in full and writes `bench/engine.md` and
//! `bench/engine.json`. `cargo test` runs a few cells once, short, and writes
//! nothing: so that it does not rot.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::path::{Path, PathBuf};

mod agreement;
mod cells;
mod contenders;
mod core;
#[path = "../machine.rs"]
mod machine;
mod places;
mod start;
mod table;
#[path = "../timing.rs"]
#[allow(dead_code)] // the other benchmark uses the rest
mod timing;

/// Where and how long things are measured.
struct Lab {
    /// The binary under test.
    fathom: PathBuf,
    /// Folder for everything that is written.
    dir: tempfile::TempDir,
    /// The core that everything measured runs on, and the two of who needs two; none
    /// where the machine has but one.
    one: core::Cores,
    two: Option<core::Cores>,
    /// fio's t/io_uring.
    ring: Option<PathBuf>,
    size: Size,
}

/// How much is measured.
struct Size {
    /// Turns of every contender in every cell.
    rounds: usize,
    /// Of one run, as a job file has it.
    runtime: &'static str,
    /// Of a device or file.
    bytes: u64,
    depths: &'static [u32],
    contenders: &'static [contenders::Contender],
}

/// The real thing.
const FULL: Size = Size {
    rounds: 3,
    runtime: "1s",
    bytes: 512 << 20,
    depths: &[1, 32],
    contenders: contenders::ALL,
};

const TRIAL: Size = Size {
    rounds: 1,
    runtime: "100ms",
    bytes: 4 << 20,
    depths: &[32],
    contenders: &[
        contenders::Contender::NativeBatched,
        contenders::Contender::FioTuned,
    ],
};

impl Lab {
    /// The cell that the targets are about gets more turns: a kernel that splits
    /// user from system time by a tick of 4 ms sees 250 of them a second, of which
    /// a twentieth is the user's. So do those whose difference is looked at.
    fn rounds(&self, place: places::Place, setting: &cells::Setting) -> usize {
        let of_targets = (place, setting.engine) == (places::Place::Zram, "io_uring")
            && (setting.depth, setting.cpus) == (32, 1);
        match (self.size.rounds, place) {
            (1, _) => 1,
            (rounds, _) if of_targets => rounds * 6,
            (rounds, places::Place::Null) => rounds * 2,
            (rounds, _) => rounds,
        }
    }

    fn cores(&self, setting: &cells::Setting) -> &core::Cores {
        match (&self.two, setting.cpus) {
            (Some(two), 2) => two,
            _ => &self.one,
        }
    }
}

/// Where t/io_uring is: in full it is built, else taken where it has been.
fn ring(full: bool) -> Option<PathBuf> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/t-io_uring.sh");
    let mut command = std::process::Command::new(tool);
    if !full {
        command.arg("--if-built");
    }
    let output = command.output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        println!("t/io_uring left out: {}", said.trim_end());
        return None;
    }
    Some(String::from_utf8(output.stdout).unwrap().trim_end().into())
}

fn main() {
    // cargo bench says so; cargo test does not.
    let full = std::env::args().any(|arg| arg == "--bench");
    if timing::which("fio").is_none() {
        println!("fio is not installed: nothing to measure against");
        return;
    }
    let lab = Lab {
        fathom: std::env::var_os("FATHOM_BENCH_BINARY")
            .map_or_else(|| env!("CARGO_BIN_EXE_fathom").into(), PathBuf::from),
        // Below target/, which lies on a disk where /tmp may be memory.
        dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        one: core::Cores::last(1).unwrap(),
        two: core::Cores::last(2),
        ring: ring(full),
        size: if full { FULL } else { TRIAL },
    };
    let mut conditions = table::Conditions::now(&lab);
    let others = core::Others::watch();
    // `cargo bench … -- zram 32` measures cells with these words alone, and writes nothing.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let alone = |what: &str| wanted.is_empty() || wanted == [what];
    let start = alone("start").then(|| start::measure(&lab));
    let agreements = match alone("agreement") {
        true => agreement::measure(&lab),
        false => Vec::new(),
    };
    let cost = cells::Start::measure(&lab);
    let mut cells = Vec::new();
    let mut pairs = Vec::new();
    let mut rings = Vec::new();
    for place in places::ALL {
        match places::prepare(&lab, place) {
            Ok(ready) => {
                cells.extend(cells::of_place(&lab, &ready, &cost, &wanted));
                if alone("pairs") {
                    pairs.extend(cells::pair(&lab, &ready, &cost));
                }
                if alone("rings") {
                    rings.extend(cells::rings(&lab, &ready, &cost));
                }
            }
            Err(reason) => println!("{} left out: {reason}", place.name()),
        }
    }
    let latencies = match alone("latencies") {
        true => cells::latencies(&lab, &cost),
        false => Vec::new(),
    };
    conditions.others = others.cores();
    let results = table::Results {
        machine: machine::Machine::here(&lab.fathom),
        conditions,
        start,
        agreements,
        cells,
        pairs,
        rings,
        latencies,
    };
    println!("\n{}", table::markdown(&results));
    if full && wanted.is_empty() {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
        table::write(&bench, &results).unwrap();
    }
    if full && results.agreements.iter().any(|one| !one.is_met()) {
        println!("fio and the native engine do not agree");
        std::process::exit(1);
    }
}
