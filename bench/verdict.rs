//! How many provocations the verdict catches, how often it is wrong about clean runs, and
//! what the evidence of an interval costs.
//!
//! `make bench-verdict` does it in full and writes `bench/verdict.md` and
//! `bench/verdict.json`. `cargo test` does nothing here: crates/cli/tests/verdict.rs
//! provokes each reason once.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::Sys;
use fathom_device::evidence::Sampler;
use fathom_device::threads::spawn_scoped;
use fathom_testkit::{FaultFs, LoopDevice, ProgramUnderTest, Throttle, Zram, await_that, signal};
use serde_json::{Value, json};

mod machine;

use machine::Machine;

/// Provocations of each kind, and how many of them must be caught.
const PROVOCATIONS: u32 = 20;
const CAUGHT_LEAST: u32 = 19;
/// Clean runs, over all places, and how many of them may be called suspect.
const CLEAN: u32 = 200;
const SUSPECT_MOST: u32 = 4;
/// Readings whose time is taken.
const READINGS: u32 = 200;
const BYTES: usize = 16 << 20;
/// Places of clean runs.
const PLACES: usize = 3;

/// A job, how it is run, and what is done to it meanwhile.
struct Provocation {
    kind: &'static str,
    how: &'static str,
    provoke: fn(&Lab) -> Value,
}

const ALL: [Provocation; 8] = [
    Provocation {
        kind: "foreign_io",
        how: "dd reads the loop device four times meanwhile",
        provoke: Lab::second_load,
    },
    Provocation {
        kind: "nothing_read",
        how: "reads of an empty zram device",
        provoke: |lab| lab.run(lab.empty.path(), "runtime=1\n"),
    },
    Provocation {
        kind: "throttled",
        how: "a control group lets the device do 100 IOPS",
        provoke: Lab::throttled,
    },
    Provocation {
        kind: "level_shift",
        how: "its limit goes from 400 to 100 IOPS",
        provoke: Lab::shift,
    },
    Provocation {
        kind: "depth_not_reached",
        how: "psync with iodepth=8",
        provoke: |lab| lab.run(lab.device.path(), "ioengine=psync\niodepth=8\nruntime=1\n"),
    },
    Provocation {
        kind: "settings_changed",
        how: "read_ahead_kb is set anew",
        provoke: Lab::setting,
    },
    Provocation {
        kind: "stalls",
        how: "a FUSE file system holds its reads",
        provoke: Lab::stall,
    },
    Provocation {
        // With other programs beside the bench they have a part of that CPU.
        kind: "cpu_bound or cpu_taken",
        how: "the null engine on one CPU",
        provoke: |lab| {
            lab.run(
                Path::new("/dev/null"),
                "ioengine=null\nsize=1g\nruntime=1\n",
            )
        },
    },
];

/// The devices of the runs.
struct Lab {
    bench: ProgramUnderTest,
    device: LoopDevice,
    filled: Zram,
    empty: Zram,
    faults: FaultFs,
}

fn main() {
    // What `cargo test` calls it with.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let lab = Lab::new();
    let mut caught = BTreeMap::new();
    for it in &ALL {
        let found = (0..PROVOCATIONS).filter(|_| {
            let kinds = kinds(&(it.provoke)(&lab));
            it.kind.split(" or ").any(|kind| kinds.contains(kind))
        });
        let found = u32::try_from(found.count()).unwrap();
        println!("{}: {found} of {PROVOCATIONS}", it.kind);
        caught.insert(it.kind, found);
    }
    let (suspect, alarms) = lab.clean();
    println!("clean: {suspect} of {CLEAN} {alarms:?}");
    let (micros, bytes) = lab.cost();
    let machine = Machine::here(Path::new(env!("CARGO_BIN_EXE_fathom")));
    let results = json!({
        "machine": machine,
        "provocations": PROVOCATIONS,
        "caught": caught,
        "clean": CLEAN,
        "suspect": suspect,
        "alarms": alarms,
        "reading_us": micros,
        "interval_bytes": bytes,
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let text = serde_json::to_string_pretty(&results).unwrap();
    fs::write(folder.join("verdict.json"), text + "\n").unwrap();
    fs::write(folder.join("verdict.md"), page(&results, &machine)).unwrap();
    assert!(
        caught.values().all(|&found| found >= CAUGHT_LEAST),
        "{caught:?}"
    );
    assert!(suspect <= SUSPECT_MOST, "{alarms:?}");
}

fn page(results: &Value, machine: &Machine) -> String {
    let mut page = format!(
        "# How good the verdict is\n\nMade by `make bench-verdict`. {machine}\n\n| provocation | reason | caught of {PROVOCATIONS} |\n|---|---|---|\n"
    );
    for it in &ALL {
        let _ = writeln!(
            page,
            "| {} | `{}` | {} |",
            it.how, it.kind, results["caught"][it.kind]
        );
    }
    let _ = write!(
        page,
        "\nClean runs, on filled zram, a loop device over a file of data and fio's null engine side by side: {} of {CLEAN} were called suspect ({}). `cpu_taken` is apart: it is true wherever other programs run beside the bench.\n\nA reading of the evidence takes {} µs, and the line of an interval has {} bytes before compression.\n",
        results["suspect"], results["alarms"], results["reading_us"], results["interval_bytes"],
    );
    page
}

/// The kinds of reasons against or about the first figure.
fn kinds(document: &Value) -> std::collections::BTreeSet<String> {
    let reasons = document["verdict"]["reasons"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    reasons
        .iter()
        .map(|it| it["kind"].as_str().unwrap().to_owned())
        .collect()
}

impl Lab {
    fn new() -> Self {
        let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        let image = bench.path().join("image");
        let data = data();
        fs::write(&image, &data).unwrap();
        let filled = Zram::new(BYTES as u64).unwrap();
        let mut zram = fs::OpenOptions::new()
            .write(true)
            .open(filled.path())
            .unwrap();
        zram.write_all(&data).unwrap();
        zram.sync_all().unwrap();
        let faults = FaultFs::new().unwrap();
        fs::write(faults.path().join("f"), vec![7; 4 << 20]).unwrap();
        Self {
            device: LoopDevice::over(&image).unwrap(),
            empty: Zram::new(BYTES as u64).unwrap(),
            bench,
            filled,
            faults,
        }
    }

    fn job(&self, target: &Path, options: &str) -> String {
        let target = target.display().to_string();
        let text = format!(
            "[job]\nfilename={target}\nrw=randread\nbs=4k\ndirect=1\ntime_based\nsize=4m\n{options}"
        );
        let name = target.replace('/', "_");
        self.bench
            .file(&format!("{name}.fio"), &text)
            .display()
            .to_string()
    }

    fn args(job: &str) -> [&str; 9] {
        [
            "job",
            "run",
            job,
            "-q",
            "--json",
            "--engine",
            "native",
            "--interval",
            "200ms",
        ]
    }

    fn run(&self, target: &Path, options: &str) -> Value {
        let job = self.job(target, options);
        document(&self.bench.run(&Self::args(&job)).stdout)
    }

    /// The reasons against a clean run of the `n`-th place.
    fn clean_run(&self, n: usize) -> Vec<String> {
        let (target, engine) = match n {
            0 => (self.filled.path(), ""),
            1 => (self.device.path(), ""),
            _ => (Path::new("/dev/null"), "ioengine=null\n"),
        };
        let document = self.run(target, &format!("{engine}rate_iops=1000\nruntime=3\n"));
        let reasons = document["verdict"]["reasons"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let against = reasons.iter().filter(|it| it["level"] != "valid");
        against
            .map(|it| it["kind"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Runs it without an end, does something in the middle, and stops it.
    fn meanwhile(
        &self,
        group: Option<&Throttle>,
        target: &Path,
        options: &str,
        act: &dyn Fn(),
    ) -> Value {
        let job = self.job(target, &format!("{options}runtime=600\n"));
        let before = self.bench.records().len();
        let mut words = group.map(Throttle::command).unwrap_or_default();
        words.push(env!("CARGO_BIN_EXE_fathom").to_owned());
        let child = Command::new(&words[0])
            .args(&words[1..])
            .args(Self::args(&job))
            .current_dir(self.bench.path())
            .env("XDG_STATE_HOME", self.bench.path().join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        await_that("no record", || self.bench.records().len() > before);
        act();
        signal(&child, "-INT");
        document(&child.wait_with_output().unwrap().stdout)
    }

    fn wait(&self, more: usize) {
        let log: PathBuf = self.bench.records().pop().unwrap().join("events.jsonl");
        let told = || {
            fs::read_to_string(&log)
                .unwrap_or_default()
                .matches("\"interval\"")
                .count()
        };
        let before = told();
        await_that("no intervals", || told() >= before + more);
    }

    fn second_load(&self) -> Value {
        self.meanwhile(None, self.device.path(), "rate_iops=200\n", &|| {
            self.wait(2);
            let input = format!("if={}", self.device.path().display());
            for _ in 0..4 {
                let dd = Command::new("dd")
                    .args([input.as_str(), "of=/dev/null", "bs=1M", "iflag=direct"])
                    .stderr(Stdio::null())
                    .status();
                assert!(dd.unwrap().success());
            }
            self.wait(2);
        })
    }

    fn throttled(&self) -> Value {
        let group = Throttle::new(self.device.path(), 100).unwrap();
        self.meanwhile(Some(&group), self.device.path(), "", &|| self.wait(10))
    }

    fn shift(&self) -> Value {
        let group = Throttle::new(self.device.path(), 400).unwrap();
        self.meanwhile(Some(&group), self.device.path(), "", &|| {
            self.wait(12);
            group.limit(100).unwrap();
            self.wait(10);
        })
    }

    fn setting(&self) -> Value {
        let name = self.device.path().file_name().unwrap().to_str().unwrap();
        let file = format!("/sys/block/{name}/queue/read_ahead_kb");
        let was = fs::read_to_string(&file).unwrap();
        let document = self.meanwhile(None, self.device.path(), "rate_iops=200\n", &|| {
            self.wait(2);
            fs::write(&file, "16\n").unwrap();
            self.wait(2);
        });
        fs::write(&file, was).unwrap();
        document
    }

    fn stall(&self) -> Value {
        let file = self.faults.path().join("f");
        let document = self.meanwhile(None, &file, "ioengine=psync\n", &|| {
            self.wait(2);
            self.faults.hold_reads_from(1);
            self.wait(5);
            self.faults.release();
            self.wait(3);
        });
        self.faults.clear();
        document
    }

    /// How many clean runs are called suspect, and by which reasons.
    fn clean(&self) -> (u32, BTreeMap<String, u32>) {
        let mut alarms: BTreeMap<String, u32> = BTreeMap::new();
        let mut suspect = 0;
        // The places side by side: each job does a thousand I/Os a second.
        let found: Vec<Vec<String>> = thread::scope(|scope| {
            let places = (0..PLACES).map(|place| {
                let runs = (place..CLEAN as usize).step_by(PLACES);
                let clean = move || runs.map(|_| self.clean_run(place)).collect::<Vec<_>>();
                spawn_scoped(scope, "clean", clean).unwrap()
            });
            let places: Vec<_> = places.collect();
            places
                .into_iter()
                .flat_map(|place| place.join().unwrap())
                .collect()
        });
        for against in found {
            suspect += u32::from(against.iter().any(|kind| kind != "cpu_taken"));
            for kind in against {
                *alarms.entry(kind).or_default() += 1;
            }
        }
        (suspect, alarms)
    }

    /// The median time of a reading in µs, and the bytes of a line.
    fn cost(&self) -> (f64, usize) {
        let target = [self.device.path().to_owned()];
        let (mut sampler, _) = Sampler::begin(&Sys::live(), &target, None);
        let mut times: Vec<Duration> = Vec::new();
        let mut bytes = 0;
        for _ in 0..READINGS {
            thread::sleep(Duration::from_millis(10));
            let begin = Instant::now();
            let evidence = sampler.end();
            times.push(begin.elapsed());
            bytes += serde_json::to_string(&evidence).unwrap().len();
        }
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64() * 1e6;
        (median.round(), bytes / READINGS as usize)
    }
}

fn document(stdout: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap()
}

/// Data in which no page is like another.
fn data() -> Vec<u8> {
    let words = (0..BYTES as u64 / 8).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_le_bytes).collect()
}
