//! Statistics of a latency log of ten million lines, beside what people use.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::Lab;
use crate::measurements::fathom;
use crate::results::{Beside, Row};
use crate::timing::{take_turns, which};

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

/// `fathom lat` in histogram mode with one thread: the row's value, in ms.
pub fn latency_log(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let log = log_of(lab, if lab.full { 10_000_000 } else { 20_000 });
    let ours = |threads: &str, memory: &str| {
        let mut command = fathom(lab, &["lat", "--threads", threads, "--memory", memory]);
        command.arg(&log);
        command
    };
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
    if let Some(python) = polars() {
        let mut command = Command::new(python);
        command.args(["-c", POLARS]).arg(&log);
        names.push("polars");
        commands.push(command);
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

/// A Python with polars: `FATHOM_BENCH_POLARS` names one, for example of a venv.
fn polars() -> Option<PathBuf> {
    let python = std::env::var_os("FATHOM_BENCH_POLARS").map(PathBuf::from)?;
    python.is_file().then_some(python)
}

/// Latencies that spread like those of a disk, a fifth with a duration limit.
fn log_of(lab: &Lab, lines: u64) -> PathBuf {
    let path = lab.path("bench_lat.log");
    let mut text = String::new();
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
        let _ = writeln!(text, "{}, {latency_ns}, 0, 4096, {prio}", line / 33);
    }
    fs::write(&path, text).unwrap();
    path
}
