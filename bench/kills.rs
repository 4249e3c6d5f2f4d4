//! Runs on real loop devices that are killed again and again, and resumed.
//!
//! `make bench-kills` does it in full and writes `bench/kills.md` and
//! `bench/kills.json`. `cargo test` does nothing here: crates/cli/tests/kills.rs has the
//! same on simulated devices.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fathom_testkit::{LoopDevice, ProgramUnderTest, SmallFs, await_that};
use serde::Serialize;
use serde_json::{Value, json};

#[path = "../crates/cli/tests/kills/ended.rs"]
mod ended;
mod machine;

use ended::ended;
use machine::Machine;

/// Kills of each kind of run.
const KILLS: u32 = 20;
/// Longest time between a start and its kill: some steps.
const KILLED_WITHIN: Duration = Duration::from_secs(4);
/// No kill at all.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
const DEVICE_BYTES: u64 = 32 << 20;
/// Job files: loads of a second, and a fill.
const LOAD: &str =
    "rw=randrw\nsize=32m\nbs=4k\niodepth=4\nioengine=libaio\ndirect=1\ntime_based\nruntime=1\n";
const FILL: &str = "rw=write\nsize=32m\nbs=1m\nioengine=libaio\ndirect=1\n";

/// A kind of run, and how it is told that it may write to its device.
struct Kind {
    name: &'static str,
    /// Words of its command line; `DEV`: its device.
    args: &'static str,
    /// What its folder needs besides.
    prepare: fn(&Place),
    /// On a file system of its own, instead of a device.
    on_files: bool,
}

const KINDS: [Kind; 9] = [
    Kind {
        name: "job run",
        args: "job run a.fio fill.fio b.fio a.fio --engine native",
        prepare: |_| {},
        on_files: false,
    },
    Kind {
        name: "job run by fio",
        args: "job run a.fio fill.fio b.fio a.fio --engine fio",
        prepare: |_| {},
        on_files: false,
    },
    Kind {
        name: "campaign",
        args: "run --engine native",
        prepare: Place::campaign,
        on_files: false,
    },
    Kind {
        name: "soak",
        args: "soak a.fio --hours 0.003 --period 2s --engine native",
        prepare: |_| {},
        on_files: false,
    },
    Kind {
        name: "plan file",
        args: "run study.toml",
        prepare: Place::study,
        on_files: false,
    },
    Kind {
        name: "snia",
        args: "snia iops DEV --debug --blocks 4k --mixes 65/35,0/100 --engine native",
        prepare: |_| {},
        on_files: false,
    },
    Kind {
        name: "provision",
        args: "provision DEV --engine native",
        prepare: Place::campaign,
        on_files: false,
    },
    Kind {
        name: "quick",
        args: "quick here . --group tiny.toml --engine native --no-baseline",
        prepare: Place::group,
        on_files: true,
    },
    Kind {
        name: "prio",
        args: "prio --dev DEV --baseline --bs 4k --ramptime 0 --runtime 1 --qds 1|2|4 --engine native",
        prepare: |_| {},
        on_files: false,
    },
];

/// The binary under test.
fn fathom() -> String {
    let named = std::env::var("FATHOM_BENCH_BINARY");
    named.unwrap_or_else(|_| env!("CARGO_BIN_EXE_fathom").to_owned())
}

/// A folder to run in, and the disk that is its own.
struct Place {
    // Order matters: the folder may lie on the disk.
    program: ProgramUnderTest,
    dev: String,
    _disk: Disk,
}

enum Disk {
    Device { _it: LoopDevice },
    Files { _it: SmallFs },
}

impl Place {
    fn new(on_files: bool) -> Result<Self, String> {
        let fathom = fathom();
        let (program, dev, disk) = if on_files {
            let it = SmallFs::new(4 * DEVICE_BYTES, "")?;
            let program = ProgramUnderTest::below(&fathom, it.path());
            (program, String::new(), Disk::Files { _it: it })
        } else {
            let it = LoopDevice::new(DEVICE_BYTES)?;
            let dev = it.path().to_str().unwrap().to_owned();
            (
                ProgramUnderTest::new(&fathom),
                dev,
                Disk::Device { _it: it },
            )
        };
        for (name, text) in [("a", LOAD), ("b", LOAD), ("fill", FILL)] {
            let text = format!("[{name}]\nfilename={dev}\n{text}");
            program.file(&format!("{name}.fio"), &text);
        }
        Ok(Self {
            program,
            dev,
            _disk: disk,
        })
    }

    /// Points of a second, on a device that is steady at once.
    fn campaign(&self) {
        self.program.good(&["init", ".", "--force"]);
        self.program.good(&["config", "defconfig", "debug-quick"]);
        let dut = format!("DUT_FILENAME={}", self.dev);
        let mut symbols = vec!["config", "set", &dut];
        symbols.extend(["DUT_TEST_MAX_IODEPTH=1", "DUT_RUNTIME=1s", "GUARD=n"]);
        symbols.extend(["DUT_IOSIZE=100%", "IOPS_WD_SS_MEAN_LIMIT=100000%"]);
        symbols.extend(["IOPS_WD_SS_SLOPE=100000%", "BW_WD_SS_MEAN_LIMIT=100000%"]);
        symbols.push("BW_WD_SS_SLOPE=100000%");
        self.program.good(&symbols);
    }

    fn study(&self) {
        let text = format!(
            "engine = \"native\"\n[target]\npath = \"{}\"\n\
             [[step]]\nname = \"on\"\ncommand = \"true\"\nundo = \"true\"\n\
             [[step]]\njob = \"a.fio\"\n[[step]]\njob = \"fill.fio\"\n\
             [[step]]\npurge = \"overwrite\"\n[[step]]\njob = \"b.fio\"\n",
            self.dev
        );
        self.program.file("study.toml", &text);
    }

    fn group(&self) {
        let test = |name: &str, rw: &str| {
            let init = if name == "writes" {
                ", init = true"
            } else {
                ""
            };
            format!(
                "{{ name = \"{name}\", files = 1, engine = \"sync\", depth = 1, bs = \"64k\", rw = \"{rw}\"{init} }},\n"
            )
        };
        let text = format!(
            "format = \"fathom-quick-group\"\nversion = 1\nname = \"tiny\"\nsize = \"1M\"\n\
             runtime_s = 1\n[[series]]\ntests = [\n{}{}{}{}]\n",
            test("writes", "write"),
            test("again", "randwrite"),
            test("reads", "read"),
            test("random", "randread")
        );
        self.program.file("tiny.toml", &text);
    }

    /// Words that let it write.
    fn confirmed(&self, mut args: Vec<String>) -> Vec<String> {
        if !self.dev.is_empty() {
            let words = format!("{}={DEVICE_BYTES}", self.dev);
            args.extend(["--destroy".to_owned(), words]);
        }
        args.push("-q".to_owned());
        args
    }

    fn args(&self, kind: &Kind) -> Vec<String> {
        let word = |word: &str| match word {
            "DEV" => self.dev.clone(),
            word => word.replace('|', " "),
        };
        self.confirmed(kind.args.split(' ').map(word).collect())
    }

    /// The record, as soon as it can go on.
    fn record(&self) -> Option<PathBuf> {
        let record = self.program.records().pop()?;
        record.join("plan.jsonl").exists().then_some(record)
    }

    /// Starts it in a process group of its own.
    fn start(&self, args: &[String]) -> Child {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = File::create(self.program.path().join("said")).unwrap();
        let mut command = self.program.command(&args);
        let command = command.process_group(0).stdout(Stdio::null()).stderr(said);
        command.spawn().unwrap()
    }

    /// Lets it run for a while, and kills its process group; gives whether it had
    /// ended by itself, well.
    fn kill_within(&self, mut child: Child, most: Duration) -> bool {
        let random = RandomState::new().build_hasher().finish();
        let end = Instant::now() + most.mul_f64(random as f64 / u64::MAX as f64);
        while Instant::now() < end {
            if let Some(status) = child.try_wait().unwrap() {
                let said = fs::read_to_string(self.program.path().join("said"));
                assert!(status.success(), "{status}: {said:?}");
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let group = format!("-{}", child.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.unwrap().success());
        child.wait().unwrap();
        false
    }

    fn resume(&self, record: &Path) -> Child {
        let id = record.file_name().unwrap().to_str().unwrap();
        self.start(&self.confirmed(vec!["resume".to_owned(), id.to_owned()]))
    }

    /// What has ended in its record, which everybody can read.
    fn ended(&self, record: &Path) -> Vec<Value> {
        let id = record.file_name().unwrap().to_str().unwrap();
        let shown = self.program.good(&["show", id, "--json"]);
        serde_json::from_slice::<Value>(&shown.stdout).unwrap();
        let ledger = self.program.good(&["ledger", "--json"]);
        serde_json::from_slice::<Value>(&ledger.stdout).unwrap();
        assert!(!record.join("events").exists(), "its log is in segments");
        let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
        let jobs = fs::read_dir(record.join("jobs")).into_iter().flatten();
        let left = jobs
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().ends_with(".part"));
        assert_eq!(left.count(), 0, "parts of job files are left");
        ended(&log, false)
    }

    /// Takes away what runs have left.
    fn forget(&self) {
        for entry in fs::read_dir(self.program.path()).unwrap().flatten() {
            let name = entry.file_name();
            if name == "fathom-runs" || name.to_string_lossy().ends_with("_cdl_bench") {
                fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }

    /// Processes that were started in its folder.
    fn processes(&self) -> usize {
        let home = format!("HOME={}", self.program.path().display());
        let is_ours = |entry: &fs::DirEntry| {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            environ
                .split(|&byte| byte == 0)
                .any(|one| one == home.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(is_ours).count()
    }
}

/// What came of a kind of run.
#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    /// Steps and stages of it.
    steps: usize,
    kills: u32,
    /// Kills besides, before there was a record to go on with.
    early: u32,
    /// Runs that were led to their end.
    runs: u32,
    took_s: u64,
}

fn kill(kind: &Kind) -> Row {
    let began = Instant::now();
    let place = Place::new(kind.on_files).unwrap();
    (kind.prepare)(&place);
    let args = place.args(kind);
    let starts = Instant::now();
    assert!(place.kill_within(place.start(&args), FOR_EVER), "in peace");
    let within = KILLED_WITHIN.min(starts.elapsed());
    let peaceful = place.ended(&place.record().unwrap());
    let (mut kills, mut early, mut runs) = (0, 0, 0);
    while kills < KILLS {
        place.forget();
        let mut child = place.start(&args);
        let record = loop {
            let most = if kills < KILLS { within } else { FOR_EVER };
            let is_over = place.kill_within(child, most);
            match place.record() {
                Some(record) if is_over => break Some(record),
                Some(record) => child = place.resume(&record),
                None => break None,
            }
            kills += 1;
        };
        let Some(record) = record else {
            early += 1;
            continue;
        };
        runs += 1;
        let ended = place.ended(&record);
        assert!(
            ended == peaceful,
            "{}: {ended:#?} is not {peaceful:#?}",
            kind.name
        );
    }
    await_that("nothing runs on", || place.processes() == 0);
    Row {
        kind: kind.name,
        steps: peaceful.len(),
        kills,
        early,
        runs,
        took_s: began.elapsed().as_secs(),
    }
}

fn main() {
    let mut words = std::env::args().skip(1).collect::<Vec<_>>();
    // cargo bench says so; cargo test does not.
    if !words.iter().any(|word| word == "--bench") {
        return;
    }
    words.retain(|word| word != "--bench");
    if let Err(reason) = LoopDevice::new(DEVICE_BYTES) {
        return println!("there are no loop devices: {reason}");
    }
    let is_wanted = |kind: &&Kind| words.is_empty() || words.iter().any(|word| word == kind.name);
    let mut rows = Vec::new();
    for kind in KINDS.iter().filter(is_wanted) {
        let row = kill(kind);
        println!("{row:?}");
        rows.push(row);
    }
    if !words.is_empty() {
        return;
    }
    let machine = Machine::here(fathom().as_ref());
    let mut text = format!(
        "{machine}\n\n{KILLS} kills (SIGKILL to the process group at random moments, within {} s \
         of each start) of every kind of run, on a loop device of its own, with `fathom resume` \
         behind each; every step and stage stands once at the end, none is missing, records and \
         ledgers are readable, no process and no part of a file is left.\n\n\
         | kind | steps and stages | kills | besides, before there was a record | runs | time |\n\
         |---|---:|---:|---:|---:|---:|\n",
        KILLED_WITHIN.as_secs()
    );
    for row in &rows {
        text += &format!(
            "| {} | {} | {} | {} | {} | {} s |\n",
            row.kind, row.steps, row.kills, row.early, row.runs, row.took_s
        );
    }
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let document = json!({ "schema": "fathom.bench-kills/1", "machine": machine, "rows": rows });
    let document = serde_json::to_string_pretty(&document).unwrap();
    fs::write(bench.join("kills.md"), text).unwrap();
    fs::write(bench.join("kills.json"), document + "\n").unwrap();
}
