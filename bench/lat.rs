//! Statistics and plots of a latency log of ten million lines, beside what people use.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Lab;
use crate::measurements::fathom;
use crate::results::{Beside, Row};
use crate::timing::{peak_rss_kib, take_turns, which};

/// Averages, and does nothing else.
const AWK: &str = "{ s += $2 } END { print s / NR }";
/// The same statistics by polars: every percentile of each priority.
const POLARS: &str = "\
import sys, polars as pl
log = pl.read_csv(sys.argv[1], has_header=False, new_columns=['t', 'v', 'd', 'b', 'p'])
v = log.with_columns(pl.col('v').str.strip_chars().cast(pl.Int64)).group_by('p')
p = [.01, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99, .995, .999, .9995, .9999]
c = pl.col('v')
print(v.agg([pl.len(), c.min(), c.mean().alias('m'), c.std().alias('s')]
    + [c.quantile(q, 'lower').alias(str(q)) for q in p]))
";

/// The same by pandas.
const PANDAS: &str = "\
import sys, pandas as pd
log = pd.read_csv(sys.argv[1], header=None, names=['t', 'v', 'd', 'b', 'p'])
p = [.01, .05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99, .995, .999, .9995, .9999]
v = log.groupby('p')['v']
print(v.agg(['size', 'min', 'mean', 'std', 'max']))
print(v.quantile(p, interpolation='lower'))
";
/// Their versions.
const PYTHON_PACKAGES: [&str; 2] = ["polars==2.1.0", "pandas==3.1.1"];

/// Lines of the log.
fn lines(lab: &Lab) -> u64 {
    if lab.full { 10_000_000 } else { 20_000 }
}

/// `fathom lat` of the log.
fn statistics(lab: &Lab, log: &Path, threads: &str, memory: &str) -> Command {
    let mut command = fathom(lab, &["lat", "--threads", threads, "--memory", memory]);
    command.arg(log);
    command
}

/// `fathom lat` in histogram mode with one thread: the row's value, in ms.
pub fn latency_log(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let log = log_of(lab);
    let ours = |threads: &str, memory: &str| statistics(lab, &log, threads, memory);
    let mut names = vec![
        "histogram, two threads",
        "exact, one thread",
        "exact, two threads",
    ];
    let mut commands = vec![
        ours("1", "0"),
        ours("2", "0"),
        ours("1", "1g"),
        ours("2", "1g"),
    ];
    let mut awk = Command::new("awk");
    awk.args(["-F,", AWK]).arg(&log);
    names.push("awk that only averages");
    commands.push(awk);
    if let Some(python) = python(lab) {
        for (name, program) in [("polars, two threads", POLARS), ("pandas", PANDAS)] {
            let mut command = Command::new(&python);
            command.args(["-c", program]).arg(&log);
            names.push(name);
            commands.push(command);
        }
    }
    if let Some(parser) = which("fiologparser.py").filter(|_| lab.full) {
        let mut command = Command::new(parser);
        command.args(["-i", "1000"]).arg(&log);
        names.push("fiologparser.py, per second");
        commands.push(command);
    }
    let times = take_turns(rounds, &mut commands);
    let megabytes = fs::metadata(&log).unwrap().len() as f64 / 1e6;
    let mut beside: Vec<Beside> = names
        .into_iter()
        .zip(&times[1..])
        .map(|(name, &ms)| Beside::new(name, ms))
        .collect();
    beside.push(Beside::new("MB of log", megabytes));
    beside.push(Beside::new("MB/s, one thread", megabytes * 1e3 / times[0]));
    beside.push(Beside::new("MB/s, two threads", megabytes * 1e3 / times[1]));
    Row {
        what: "statistics of a latency log with 10 million lines, two priorities, one thread",
        unit: "ms",
        value: times[0],
        // 1.2 GB/s for a log of 318 MB.
        limit: Some(265.0),
        rounds,
        beside,
    }
}

/// Highest memory with a histogram: the row's value; whatever the log's length.
pub fn memory(lab: &Lab) -> Row {
    let log = log_of(lab);
    let peak =
        |threads, memory| peak_rss_kib(&mut statistics(lab, &log, threads, memory)) * 1.024e-3;
    let bytes_a_line = |megabytes: f64| megabytes * 1e6 / lines(lab) as f64;
    let exact = [peak("1", "1g"), peak("2", "1g")];
    Row {
        what: "peak memory of those statistics from a histogram, two threads",
        unit: "MB",
        value: peak("2", "0"),
        limit: Some(100.0),
        rounds: 1,
        beside: vec![
            Beside::new("one thread", peak("1", "0")),
            Beside::new("exact, one thread", exact[0]),
            Beside::new("exact, two threads", exact[1]),
            Beside::new("exact, bytes a line, one thread", bytes_a_line(exact[0])),
            Beside::new("exact, bytes a line, two threads", bytes_a_line(exact[1])),
        ],
    }
}

/// Highest memory of exact statistics a line: the row's value, in bytes.
pub fn memory_exact(lab: &Lab) -> Row {
    let log = log_of(lab);
    let peak = peak_rss_kib(&mut statistics(lab, &log, "2", "1g"));
    Row {
        what: "peak memory of those statistics, exact, a line of the log, two threads",
        unit: "bytes",
        value: peak * 1024.0 / lines(lab) as f64,
        // A trial's few lines share what the process itself takes.
        limit: lab.full.then_some(10.0),
        rounds: 1,
        beside: Vec::new(),
    }
}

/// All plots of the log by `fathom plot`: the row's value, in ms.
pub fn plots(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let log = log_of(lab);
    let folder = lab.path("plots");
    let prefix = lab.path("bench");
    let ours = |threads: &str, format: &str| {
        let mut command = fathom(lab, &["plot", "--threads", threads, format, "--out"]);
        command.arg(&folder).arg(&prefix);
        command
    };
    let mut names = vec!["one thread", "PNG"];
    let mut commands = vec![ours("2", "--svg"), ours("1", "--svg"), ours("2", "--png")];
    let mut theirs = |name: &'static str, program: &str, script: &str| {
        let there = lab.full && which(program).is_some() && which("gnuplot").is_some();
        if there {
            let at = lab.path(program);
            fs::create_dir_all(&at).unwrap();
            fs::hard_link(&log, at.join("bench_lat.log")).unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", script]).current_dir(at);
            names.push(name);
            commands.push(command);
        }
    };
    // It ends with 1 when there is no log of IOPS beside.
    theirs(
        "fio_generate_plots, latency over time only",
        "fio_generate_plots",
        "fio_generate_plots t; test -s t-lat.svg",
    );
    theirs(
        "fio2gnuplot -g",
        "fio2gnuplot",
        "fio2gnuplot -p bench_lat.log -g -o t",
    );
    let times = take_turns(rounds.min(3), &mut commands);
    let mut beside: Vec<Beside> = names
        .into_iter()
        .zip(&times[1..])
        .map(|(name, &ms)| Beside::new(name, ms))
        .collect();
    let kilobytes = |file: &Path| fs::metadata(file).map_or(0.0, |file| file.len() as f64 / 1e3);
    let largest = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "svg"))
        .map(|path| kilobytes(&path))
        .fold(0.0, f64::max);
    assert!(largest > 0.0 && largest < 1000.0, "an SVG of {largest} KB");
    let peak = peak_rss_kib(&mut ours("2", "--svg")) * 1.024e-3;
    beside.push(Beside::new("largest SVG in KB", largest));
    let svg = lab.path("fio_generate_plots").join("t-lat.svg");
    beside.push(Beside::new(
        "that of fio_generate_plots in KB",
        kilobytes(&svg),
    ));
    beside.push(Beside::new("peak memory in MB", peak));
    Row {
        what: "`fathom plot` of that log: over time, percentiles, heat map; two threads",
        unit: "ms",
        value: times[0],
        limit: Some(1000.0),
        rounds: rounds.min(3),
        beside,
    }
}

/// A Python with polars and pandas: that of `FATHOM_BENCH_PYTHON`, else one of its
/// own in cargo's folder, where PyPI can be reached. A trial does without.
fn python(lab: &Lab) -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("FATHOM_BENCH_PYTHON") {
        return Some(PathBuf::from(python));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-python");
    let python = folder.join("bin/python");
    let succeeds = |command: &mut Command| {
        let output = command.output();
        output.is_ok_and(|output| output.status.success())
    };
    let import = ["-c", "import polars, pandas"];
    if !lab.full || succeeds(Command::new(&python).args(import)) {
        return lab.full.then_some(python);
    }
    let made = succeeds(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    ) && succeeds(
        Command::new(&python)
            .args(["-m", "pip", "install", "-q", "--only-binary=:all:"])
            .args(PYTHON_PACKAGES),
    );
    if !made {
        println!("polars and pandas cannot be had from PyPI: not measured");
    }
    made.then_some(python)
}

/// Latencies that spread like those of a disk, a fifth with a duration limit; made
/// by whoever asks first.
fn log_of(lab: &Lab) -> PathBuf {
    let lines = lines(lab);
    let path = lab.path("bench_lat.log");
    if path.exists() {
        return path;
    }
    let mut text = BufWriter::new(File::create(&path).unwrap());
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for line in 0..lines {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // A sum of four is bell-shaped; its square has a tail.
        let parts = (0..4).map(|n| state >> (16 * n) & 0x3ff).sum::<u64>();
        let latency_ns = parts * parts / 4 + (state >> 32 & 0xffff) + 80_000;
        let prio = if state.is_multiple_of(5) {
            "0x4008"
        } else {
            "0x0000"
        };
        writeln!(text, "{}, {latency_ns}, 0, 4096, {prio}", line / 33).unwrap();
    }
    text.flush().unwrap();
    path
}
