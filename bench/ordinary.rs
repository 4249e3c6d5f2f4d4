//! How many findings of ordinary runs are false: pairs of equal runs, one on the quiet
//! machine, one beside a program that keeps a core busy.
//!
//! `make bench-ordinary` does it in full and writes `bench/ordinary.md` and
//! `bench/ordinary.json`. `cargo test` does nothing here.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fathom_testkit::{LoopDevice, ProgramUnderTest, SmallFs, Zram};
use serde_json::{Value, json};

mod busy;
mod machine;

use busy::BusyCore;
use machine::Machine;

/// Pairs, where `FATHOM_BENCH_PAIRS` does not say it.
const PAIRS: usize = 200;
/// Runs with a false finding, as a share of all.
const FALSE_MOST: f64 = 0.02;
/// What a result may differ by from a quiet run that has no interval.
const WITHOUT_INTERVAL: f64 = 0.1;
const BYTES: usize = 64 << 20;

const ENGINES: [&str; 2] = ["native", "fio"];
const PLACES: [&str; 4] = ["disk", "loop", "zram", "ext4 on a loop"];
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// In s; most runs are short, as most runs are.
const SECONDS: [u32; 23] = [
    3, 3, 5, 3, 3, 3, 3, 10, 3, 3, 3, 3, 5, 3, 3, 3, 3, 3, 3, 3, 3, 30, 3,
];

struct Lab {
    bench: ProgramUnderTest,
    /// Where the records stay, to be judged again.
    records: String,
    device: LoopDevice,
    zram: Zram,
    ext4: SmallFs,
}

/// A shape of a run.
struct Shape {
    engine: &'static str,
    place: &'static str,
    is_direct: bool,
    depth: u32,
    seconds: u32,
}

/// A run beside the busy core, and what the quiet one says of it.
struct Judged {
    name: String,
    /// Of the machine; `None` where it was judged again.
    load: Option<String>,
    iops: f64,
    is_within: bool,
    findings: Vec<String>,
}

impl Judged {
    fn is_false(&self) -> bool {
        self.is_within && !self.findings.is_empty()
    }
}

fn main() {
    // What `cargo test` calls it with.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let all = match std::env::var_os("FATHOM_BENCH_RECORDS") {
        Some(folder) => judge_again(Path::new(&folder)),
        None => measure(),
    };
    let false_runs = all.iter().filter(|run| run.is_false()).count();
    write_down(&all, false_runs);
    let share = false_runs as f64 / all.len().max(1) as f64;
    assert!(share <= FALSE_MOST, "{false_runs} of {}", all.len());
}

/// Measures all pairs.
fn measure() -> Vec<Judged> {
    let pairs = std::env::var("FATHOM_BENCH_PAIRS");
    let pairs = pairs.map_or(PAIRS, |pairs| pairs.parse().unwrap());
    let lab = Lab::new();
    let each = (0..pairs).flat_map(|n| {
        let shape = Shape::nth(n);
        let quiet = lab.run(&shape);
        let quiet_load = load();
        let busy = {
            let _busy = BusyCore::start();
            lab.run(&shape)
        };
        pair(&shape, [(quiet, Some(quiet_load)), (busy, Some(load()))])
    });
    each.collect()
}

/// Judges the records of an earlier bench by the rules of today: quiet and busy by turns.
fn judge_again(folder: &Path) -> Vec<Judged> {
    let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let folder = folder.to_str().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("-job"))
        .collect();
    names.sort();
    let read = |name: &String| {
        let output = bench.good(&["--runs", folder, "show", name, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let pairs = names.chunks_exact(2).enumerate().flat_map(|(n, names)| {
        let [quiet, busy] = [0, 1].map(|at| (read(&names[at]), None));
        pair(&Shape::nth(n), [quiet, busy])
    });
    pairs.collect()
}

/// The label of each is fixed by the quiet run, before its verdict is looked at.
fn pair(shape: &Shape, runs: [(Value, Option<String>); 2]) -> [Judged; 2] {
    let interval = interval(&runs[0].0);
    runs.map(|(document, load)| {
        let judged = judged(shape, &document, load, interval);
        println!(
            "{} {:.0} IOPS, within {}: {:?}",
            judged.name, judged.iops, judged.is_within, judged.findings
        );
        judged
    })
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.trim().to_owned()
}

impl Shape {
    /// The `n`-th of a walk that meets every combination.
    fn nth(n: usize) -> Self {
        Self {
            engine: ENGINES[n % 2],
            place: PLACES[n / 2 % 4],
            is_direct: n / 8 % 3 != 2,
            depth: DEPTHS[n / 24 % 6],
            seconds: SECONDS[n % SECONDS.len()],
        }
    }

    /// fio's default engine and io_uring; through the page cache writes that are synced.
    fn job(&self, target: &Path) -> String {
        let how = match self.is_direct {
            true => "rw=randread\ndirect=1\nioengine=io_uring",
            false => "rw=randwrite\nfsync=16\nioengine=psync",
        };
        let depth = if self.is_direct { self.depth } else { 1 };
        format!(
            "[job]\nfilename={}\n{how}\niodepth={depth}\nbs=4k\nsize=64m\ntime_based\nruntime={}\n",
            target.display(),
            self.seconds
        )
    }

    fn name(&self) -> String {
        let how = if self.is_direct { "direct" } else { "buffered" };
        format!(
            "{} on {}, {how}, depth {}, {} s",
            self.engine, self.place, self.depth, self.seconds
        )
    }
}

impl Lab {
    fn new() -> Self {
        let bench = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        let data = fathom_testkit::data(BYTES);
        let image = bench.path().join("image");
        fs::write(&image, &data).unwrap();
        fs::write(bench.path().join("file"), &data).unwrap();
        let zram = Zram::filled(&data).unwrap();
        let below = bench.path().join("below");
        let file = fs::File::create(&below).unwrap();
        file.set_len(4 * BYTES as u64).unwrap();
        // Without direct I/O the page cache of that file would answer, which is no ordinary run.
        let ext4 = SmallFs::on(LoopDevice::direct(&below).unwrap(), "").unwrap();
        fs::write(ext4.path().join("file"), &data).unwrap();
        rustix::fs::sync();
        let records = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ordinary");
        let _ = fs::remove_dir_all(&records);
        Self {
            records: records.to_str().unwrap().to_owned(),
            device: LoopDevice::direct(&image).unwrap(),
            bench,
            zram,
            ext4,
        }
    }

    fn run(&self, shape: &Shape) -> Value {
        let target = match shape.place {
            "loop" => self.device.path().to_owned(),
            "zram" => self.zram.path().to_owned(),
            "disk" => self.bench.path().join("file"),
            _ => self.ext4.path().join("file"),
        };
        let job = self.bench.file("job.fio", &shape.job(&target));
        let job = job.to_str().unwrap();
        let words = ["--runs", &self.records, "job", "run", job, "-q", "--json"];
        let more = ["--engine", shape.engine, "--interval", "200ms"];
        let writes = !shape.is_direct && target.starts_with("/dev");
        // Loop and zram devices have no serial number: their path and size confirm them.
        let word = format!("{}={BYTES}", target.display());
        let confirmed = ["--destroy", word.as_str()];
        let confirmed = if writes { &confirmed[..] } else { &[] };
        let output = self.bench.run(&[&words[..], &more, confirmed].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }
}

/// The figure of a run, with the direction that it has.
fn figure(document: &Value) -> &Value {
    let job = &document["jobs"][0];
    match job["read"]["total_ios"].as_u64() {
        Some(1..) => &job["read"],
        _ => &job["write"],
    }
}

/// Where the IOPS of a quiet run lie.
fn interval(quiet: &Value) -> (f64, f64) {
    let figure = figure(quiet);
    let of = &figure["certainty"]["iops"];
    let iops = figure["iops"].as_f64().unwrap();
    match (of["low"].as_f64(), of["high"].as_f64()) {
        (Some(low), Some(high)) => (low, high),
        _ => (
            iops * (1.0 - WITHOUT_INTERVAL),
            iops * (1.0 + WITHOUT_INTERVAL),
        ),
    }
}

fn judged(
    shape: &Shape,
    document: &Value,
    load: Option<String>,
    (low, high): (f64, f64),
) -> Judged {
    let iops = figure(document)["iops"].as_f64().unwrap();
    let reasons = document["verdict"]["reasons"].as_array();
    let against = reasons
        .into_iter()
        .flatten()
        .filter(|it| it["level"] != "valid");
    Judged {
        name: shape.name(),
        load,
        iops,
        is_within: (low..=high).contains(&iops),
        findings: against
            .map(|it| it["kind"].as_str().unwrap().to_owned())
            .collect(),
    }
}

fn write_down(all: &[Judged], false_runs: usize) {
    let machine = Machine::here(Path::new(env!("CARGO_BIN_EXE_fathom")));
    let mut kinds: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for run in all {
        for kind in &run.findings {
            let (told, wrong) = kinds.entry(kind).or_default();
            *told += 1;
            *wrong += u32::from(run.is_within);
        }
    }
    let mut page = format!(
        "# Findings of ordinary runs\n\nMade by `make bench-ordinary`. {machine}\n\n{false_runs} of {} runs have a false finding: the interval of the quiet run holds their result.\n\n| finding | told | false |\n|---|---|---|\n",
        all.len()
    );
    for (kind, (told, wrong)) in &kinds {
        let _ = writeln!(page, "| `{kind}` | {told} | {wrong} |");
    }
    let runs: Vec<Value> = all
        .iter()
        .map(|run| {
            json!({
                "shape": run.name,
                "load": run.load,
                "iops": run.iops,
                "within": run.is_within,
                "findings": run.findings,
            })
        })
        .collect();
    let results = json!({ "machine": machine, "runs": runs, "false": false_runs });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let text = serde_json::to_string_pretty(&results).unwrap();
    fs::write(folder.join("ordinary.json"), text + "\n").unwrap();
    fs::write(folder.join("ordinary.md"), page).unwrap();
}
