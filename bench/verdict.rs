//! How many provocations the verdict catches beside a busy core, how often `explain` names
//! the right cause first, and what the evidence of an interval costs.
//!
//! `make bench-verdict` does it in full and writes `bench/verdict.md` and
//! `bench/verdict.json`. `cargo test` does nothing here: crates/cli/tests/verdict.rs
//! provokes each reason once. Ordinary runs are measured by `bench/ordinary.rs`.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::Sys;
use fathom_device::evidence::Sampler;
use fathom_testkit::{FaultFs, LoopDevice, ProgramUnderTest, Throttle, Zram, await_that, signal};
use serde_json::{Value, json};

mod busy;
mod machine;

use Place::{
    CachedLoop, Device, Empty, Fallocated, Faults, File, Filled, InMemory, LoopInMemory, Null,
    Sparse, SparseLoop,
};
use busy::BusyCore;
use machine::Machine;

/// Provocations of each kind, where `FATHOM_BENCH_TIMES` does not say it.
const TIMES: u32 = 10;
/// Shares of all that must be caught, and of which the cause comes first.
const CAUGHT_LEAST: f64 = 0.95;
const FIRST_LEAST: f64 = 0.9;
/// Readings whose time is taken.
const READINGS: u32 = 200;
const BYTES: usize = 16 << 20;

/// Where a job works.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A loop device with direct I/O over a file of data.
    Device,
    /// The same without direct I/O, so that the page cache is below it.
    CachedLoop,
    /// Over a file without data.
    SparseLoop,
    /// Over a file on tmpfs.
    LoopInMemory,
    /// zram with data, and without.
    Filled,
    Empty,
    /// A file of the disk, with data, allocated only, and sparse.
    File,
    Fallocated,
    Sparse,
    /// A file on tmpfs.
    InMemory,
    /// A file on a FUSE file system.
    Faults,
    Null,
}

/// What is done to a job while it runs.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// It runs alone, to its end.
    None,
    /// `dd` reads its device.
    SecondLoad,
    /// A control group gives it so many IOPS.
    Limit(u32),
    /// The limit changes.
    Shift(u32, u32),
    /// A setting of its queue changes.
    Setting,
    /// Its file system holds back what it reads.
    Stall,
}

/// What is provoked: how, the reason to be found (one of several, where others share the
/// machine), the limit that `explain` is to name, and the job.
struct Provocation(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Place,
    Act,
    &'static str,
);

const NATIVE: &str = "native";
const FIO: &str = "fio";
/// A queue that is kept full.
const DEEP: &str = "ioengine=io_uring\niodepth=32\n";
const CACHED: &str = "ioengine=psync\ndirect=0\ninvalidate=0\n";
const BUFFERED: &str = "ioengine=psync\ndirect=0\nrw=write\n";
const BESIDE: &str = "ioengine=psync\ncpus_allowed=0\n";

#[rustfmt::skip]
const ALL: [Provocation; 31] = [
    Provocation("dd reads the loop device meanwhile", "foreign_io", "others", NATIVE, Device, Act::SecondLoad, ""),
    Provocation("dd reads the loop device meanwhile", "foreign_io", "others", FIO, Device, Act::SecondLoad, ""),
    Provocation("the same, depth 32", "foreign_io", "others", NATIVE, Device, Act::SecondLoad, DEEP),
    Provocation("reads of an empty zram device", "nothing_read", "no_device", NATIVE, Empty, Act::None, ""),
    Provocation("reads of a loop device over a sparse file", "nothing_read", "no_device", FIO, SparseLoop, Act::None, ""),
    Provocation("reads of a sparse file", "nothing_read", "no_device", NATIVE, Sparse, Act::None, ""),
    Provocation("reads of an allocated file", "nothing_read", "no_device", NATIVE, Fallocated, Act::None, DEEP),
    Provocation("reads of an allocated file", "nothing_read", "no_device", FIO, Fallocated, Act::None, DEEP),
    Provocation("a control group allows 100 IOPS", "throttled", "control_group", NATIVE, Device, Act::Limit(100), ""),
    Provocation("a control group allows 100 IOPS", "throttled", "control_group", FIO, Device, Act::Limit(100), ""),
    Provocation("a control group allows 2,000 IOPS, depth 32", "throttled", "control_group", NATIVE, Device, Act::Limit(2000), DEEP),
    Provocation("a control group allows 2,000 IOPS, depth 32", "throttled", "control_group", FIO, Device, Act::Limit(2000), DEEP),
    Provocation("a control group allows 500 IOPS, libaio, depth 16", "throttled", "control_group", FIO, Device, Act::Limit(500), "ioengine=libaio\niodepth=16\n"),
    Provocation("a control group allows half of the rate", "behind_rate", "control_group", NATIVE, Device, Act::Limit(100), "rate_iops=200\n"),
    Provocation("the limit of a control group goes from 400 to 100 IOPS", "level_shift", "control_group", NATIVE, Device, Act::Shift(400, 100), ""),
    Provocation("psync with iodepth=8", "depth_not_reached", "depth", NATIVE, Device, Act::None, "ioengine=psync\niodepth=8\n"),
    Provocation("psync with iodepth=8", "depth_not_reached", "depth", FIO, Device, Act::None, "ioengine=psync\niodepth=8\n"),
    Provocation("read_ahead_kb changes", "settings_changed", "job", NATIVE, Device, Act::Setting, "rate_iops=200\n"),
    Provocation("a FUSE file system holds its reads", "stalls", "", NATIVE, Faults, Act::Stall, "ioengine=psync\n"),
    Provocation("the null engine on one CPU", "cpu_bound or cpu_taken", "cpu", NATIVE, Null, Act::None, "ioengine=null\nsize=1g\n"),
    Provocation("the job shares the busy CPU", "cpu_taken", "cpu", NATIVE, Filled, Act::None, BESIDE),
    Provocation("the job shares the busy CPU", "cpu_taken", "cpu", FIO, Filled, Act::None, BESIDE),
    Provocation("buffered reads of a cached file", "cached_reads", "no_device", NATIVE, File, Act::None, CACHED),
    Provocation("buffered reads of a cached file", "cached_reads", "no_device", FIO, File, Act::None, CACHED),
    Provocation("buffered writes that nothing waits for", "unsynced_writes", "no_device", NATIVE, File, Act::None, BUFFERED),
    Provocation("buffered writes that nothing waits for", "unsynced_writes", "no_device", FIO, File, Act::None, BUFFERED),
    Provocation("a file on tmpfs", "in_memory", "no_device", NATIVE, InMemory, Act::None, "direct=0\n"),
    Provocation("a loop device without direct I/O over a cached file", "cached_below", "no_device", NATIVE, CachedLoop, Act::None, ""),
    Provocation("a loop device over a file on tmpfs", "cached_below", "no_device", FIO, LoopInMemory, Act::None, DEEP),
    Provocation("a think time of 20 ms", "own_limit", "job", FIO, Device, Act::None, "thinktime=20ms\n"),
    Provocation("rate=400k", "own_limit", "job", NATIVE, Device, Act::None, "rate=400k\n"),
];

/// How often a provocation was caught, and its cause named first.
#[derive(Debug, Default, Clone, Copy)]
struct Caught {
    found: u32,
    first: u32,
}

fn main() {
    // What `cargo test` calls it with.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let times = std::env::var("FATHOM_BENCH_TIMES");
    let times = times.map_or(TIMES, |times| times.parse().unwrap());
    let lab = Lab::new();
    let mut caught = Vec::new();
    {
        let _busy = BusyCore::start();
        for it in &ALL {
            let of = lab.provoke(it, times);
            println!("{}, {}: {of:?} of {times}", it.0, it.3);
            caught.push(of);
        }
    }
    let (micros, bytes) = lab.cost();
    let machine = Machine::here(Path::new(env!("CARGO_BIN_EXE_fathom")));
    let rows: Vec<Value> = (ALL.iter().zip(&caught))
        .map(|(it, of)| {
            json!({
                "how": it.0,
                "reason": it.1,
                "limit": it.2,
                "engine": it.3,
                "found": of.found,
                "first": of.first,
            })
        })
        .collect();
    let results = json!({
        "machine": machine,
        "times": times,
        "provocations": rows,
        "reading_us": micros,
        "interval_bytes": bytes,
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let text = serde_json::to_string_pretty(&results).unwrap();
    fs::write(folder.join("verdict.json"), text + "\n").unwrap();
    fs::write(folder.join("verdict.md"), page(&results, &machine)).unwrap();
    let share = |of: fn(&Caught) -> u32| {
        f64::from(caught.iter().map(of).sum::<u32>()) / f64::from(times) / ALL.len() as f64
    };
    assert!(share(|of| of.found) >= CAUGHT_LEAST, "{caught:?}");
    assert!(share(|of| of.first) >= FIRST_LEAST, "{caught:?}");
}

fn page(results: &Value, machine: &Machine) -> String {
    let mut page = format!(
        "# How good the verdict is\n\nMade by `make bench-verdict`, beside a program that keeps one core busy. {machine}\n\n| provocation | engine | reason | found of {times} | limit | named first |\n|---|---|---|---|---|---|\n",
        times = results["times"]
    );
    for row in results["provocations"].as_array().unwrap() {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let limit = match text("limit") {
            none if none.is_empty() => "–".to_owned(),
            limit => format!("`{limit}`"),
        };
        let _ = writeln!(
            page,
            "| {} | {} | `{}` | {} | {limit} | {} |",
            text("how"),
            text("engine"),
            text("reason"),
            row["found"],
            row["first"]
        );
    }
    let _ = write!(
        page,
        "\nA reading of the evidence takes {} µs, and the line of an interval has {} bytes before compression.\n",
        results["reading_us"], results["interval_bytes"],
    );
    page
}

/// The devices and files of the runs.
struct Lab {
    bench: ProgramUnderTest,
    device: LoopDevice,
    cached: LoopDevice,
    sparse: LoopDevice,
    in_memory: LoopDevice,
    memory: Tmp,
    filled: Zram,
    empty: Zram,
    faults: FaultFs,
}

/// A folder on tmpfs that goes when it is dropped.
struct Tmp(PathBuf);

impl Drop for Tmp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Lab {
    fn new() -> Self {
        let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        let data = fathom_testkit::data(BYTES);
        let at = |name: &str| bench.path().join(name);
        for name in ["image", "cached", "file"] {
            fs::write(at(name), &data).unwrap();
        }
        for name in ["sparse", "behind", "fallocated"] {
            let file = fs::File::create(at(name)).unwrap();
            file.set_len(BYTES as u64).unwrap();
        }
        let file = fs::File::options()
            .write(true)
            .open(at("fallocated"))
            .unwrap();
        let all = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, all, 0, BYTES as u64).unwrap();
        let memory = Tmp(PathBuf::from(format!(
            "/dev/shm/fathom-bench-{}",
            std::process::id()
        )));
        fs::create_dir(&memory.0).unwrap();
        for name in ["file", "image"] {
            fs::write(memory.0.join(name), &data).unwrap();
        }
        let filled = Zram::filled(&data).unwrap();
        let faults = FaultFs::new().unwrap();
        fs::write(faults.path().join("f"), vec![7; 4 << 20]).unwrap();
        rustix::fs::sync();
        Self {
            device: LoopDevice::direct(&at("image")).unwrap(),
            cached: LoopDevice::over(&at("cached")).unwrap(),
            sparse: LoopDevice::over(&at("behind")).unwrap(),
            in_memory: LoopDevice::over(&memory.0.join("image")).unwrap(),
            memory,
            empty: Zram::new(BYTES as u64).unwrap(),
            bench,
            filled,
            faults,
        }
    }

    fn path(&self, place: Place) -> PathBuf {
        let at = |name: &str| self.bench.path().join(name);
        match place {
            Device => self.device.path().to_owned(),
            CachedLoop => self.cached.path().to_owned(),
            SparseLoop => self.sparse.path().to_owned(),
            LoopInMemory => self.in_memory.path().to_owned(),
            Filled => self.filled.path().to_owned(),
            Empty => self.empty.path().to_owned(),
            File => at("file"),
            Fallocated => at("fallocated"),
            Sparse => at("sparse"),
            InMemory => self.memory.0.join("file"),
            Faults => self.faults.path().join("f"),
            Null => PathBuf::from("/dev/null"),
        }
    }

    fn provoke(&self, it: &Provocation, times: u32) -> Caught {
        let mut caught = Caught::default();
        for _ in 0..times {
            let document = self.run(it);
            let reasons = document["verdict"]["reasons"].as_array();
            let kinds: Vec<&str> = reasons
                .into_iter()
                .flatten()
                .map(|it| it["kind"].as_str().unwrap())
                .collect();
            let is_found = it.1.split(" or ").any(|kind| kinds.contains(&kind));
            let explained = document_of(&self.bench.good(&["explain", "--json"]).stdout);
            let limit = explained["figures"][0]["limit"]
                .as_str()
                .unwrap()
                .to_owned();
            if !is_found || !(it.2.is_empty() || it.2 == limit) {
                println!("  {limit}: {kinds:?}");
            }
            caught.found += u32::from(is_found);
            caught.first += u32::from(it.2.is_empty() || it.2 == limit);
        }
        caught
    }

    fn run(&self, it: &Provocation) -> Value {
        let Provocation(_, _, _, engine, place, act, options) = *it;
        let device = self.path(place);
        let meanwhile = |group: Option<&Throttle>, act: &dyn Fn()| {
            self.meanwhile(engine, group, &device, options, act)
        };
        match act {
            Act::None => {
                let job = self.job(&device, &format!("{options}runtime=2\n"));
                let output = self.bench.run(&args(engine, &job));
                document_of(&output.stdout)
            }
            Act::SecondLoad => meanwhile(None, &|| self.second_load(&device)),
            Act::Limit(iops) => {
                let group = Throttle::new(&device, iops).unwrap();
                meanwhile(Some(&group), &|| self.wait(10))
            }
            Act::Shift(from, to) => {
                let group = Throttle::new(&device, from).unwrap();
                meanwhile(Some(&group), &|| {
                    self.wait(12);
                    group.limit(to).unwrap();
                    self.wait(10);
                })
            }
            Act::Setting => {
                let name = device.file_name().unwrap().to_str().unwrap();
                let file = format!("/sys/block/{name}/queue/read_ahead_kb");
                let was = fs::read_to_string(&file).unwrap();
                let document = meanwhile(None, &|| {
                    self.wait(2);
                    fs::write(&file, "16\n").unwrap();
                    self.wait(2);
                });
                fs::write(&file, was).unwrap();
                document
            }
            Act::Stall => {
                let document = meanwhile(None, &|| {
                    self.wait(2);
                    self.faults.hold_reads_from(1);
                    self.wait(5);
                    self.faults.release();
                    self.wait(3);
                });
                self.faults.clear();
                document
            }
        }
    }

    fn job(&self, target: &Path, options: &str) -> String {
        let target = target.display().to_string();
        let mut text = format!("[job]\nfilename={target}\nbs=4k\ntime_based\nsize=4m\n{options}");
        for (name, default) in [("rw=", "rw=randread\n"), ("direct=", "direct=1\n")] {
            if !options.contains(name) {
                text.push_str(default);
            }
        }
        let file = self.bench.file("job.fio", &text);
        file.display().to_string()
    }

    /// Runs it without an end, does something in the middle, and stops it.
    fn meanwhile(
        &self,
        engine: &str,
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
            .args(args(engine, &job))
            .current_dir(self.bench.path())
            .env("XDG_STATE_HOME", self.bench.path().join("state"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        await_that("no record", || self.bench.records().len() > before);
        act();
        signal(&child, "-INT");
        document_of(&child.wait_with_output().unwrap().stdout)
    }

    /// Waits for so many more intervals.
    fn wait(&self, more: usize) {
        let log = self.bench.records().pop().unwrap().join("events.jsonl");
        let told = || {
            fs::read_to_string(&log)
                .unwrap_or_default()
                .matches("\"interval\"")
                .count()
        };
        let before = told();
        await_that("no intervals", || told() >= before + more);
    }

    /// Reads the device until some intervals have passed.
    fn second_load(&self, device: &Path) {
        self.wait(2);
        let input = format!("if={}", device.display());
        let script = format!("while :; do dd {input} of=/dev/null bs=1M iflag=direct; done");
        let mut others = Command::new("sh")
            .args(["-c", &script])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.wait(8);
        others.kill().unwrap();
        others.wait().unwrap();
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

fn args<'a>(engine: &'a str, job: &'a str) -> [&'a str; 9] {
    [
        "job",
        "run",
        job,
        "-q",
        "--json",
        "--engine",
        engine,
        "--interval",
        "200ms",
    ]
}

fn document_of(stdout: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap()
}
