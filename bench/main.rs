//! What Fathom itself costs, measured side by side with the plain tools.
//!
//! `make bench` runs it in full and writes `bench/results.md` and
//! `bench/results.json`. `cargo test` runs every measurement once, short, and
//! writes nothing: so that it does not rot.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

use std::path::{Path, PathBuf};

mod campaigns;
mod hosts;
mod inputs;
mod lat;
mod machine;
mod measurements;
mod provision;
mod query;
mod results;
mod running;
mod timing;

/// Where and how often things are measured.
struct Lab {
    /// The binary under test.
    fathom: PathBuf,
    /// Folder for everything that is written.
    dir: tempfile::TempDir,
    /// Whether this is the real thing or a trial.
    full: bool,
}

/// Measures one thing.
type Measurement = fn(&Lab) -> results::Row;

impl Lab {
    /// Rounds of a measurement: `n`, or one in a trial.
    fn rounds(&self, n: usize) -> usize {
        if self.full { n } else { 1 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some(hosts::PLAYED) {
        return hosts::play();
    }
    let lab = Lab {
        fathom: std::env::var_os("FATHOM_BENCH_BINARY")
            .map_or_else(|| env!("CARGO_BIN_EXE_fathom").into(), PathBuf::from),
        dir: tempfile::tempdir().unwrap(),
        // cargo bench says so; cargo test does not.
        full: std::env::args().any(|arg| arg == "--bench"),
    };
    if timing::which("fio").is_none() {
        println!("fio is not installed: nothing to measure against");
        return;
    }
    let measurements: &[(&str, Measurement)] = &[
        ("start", measurements::start_up),
        ("cost", measurements::cost_per_run),
        ("memory", measurements::memory),
        ("parse", measurements::parse_clients),
        ("show", measurements::show_long_record),
        ("month", measurements::show_month),
        ("month-report", measurements::report_month),
        ("query", query::figures),
        ("steady", measurements::judge_day),
        ("config", campaigns::load_tree),
        ("gen", campaigns::generate),
        ("export", campaigns::export),
        ("graph", campaigns::graphs),
        ("report", measurements::open_report),
        ("between", running::between_points),
        ("campaign", running::memory),
        ("snia", running::snia),
        ("lat", lat::latency_log),
        ("skew", hosts::start_skew),
        ("merge", hosts::merge),
        ("hosts", hosts::memory),
        ("driving", hosts::driving),
        ("provision", provision::eight_drives),
        ("lat-memory", lat::memory),
        ("lat-memory-exact", lat::memory_exact),
        ("plot", lat::plots),
    ];
    // `cargo bench … -- parse` measures that alone, and writes nothing.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let rows: Vec<results::Row> = measurements
        .iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
        .map(|(_, measure)| measure(&lab))
        .collect();
    let machine = machine::Machine::here(&lab.fathom);
    println!("\n{}", results::markdown(&machine, &rows));
    if lab.full && wanted.is_empty() {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
        results::write(&bench, "results", &machine, &rows).unwrap();
    }
    let over: Vec<&str> = rows
        .iter()
        .filter(|r| r.is_over())
        .map(|r| r.what)
        .collect();
    if lab.full && !over.is_empty() {
        println!("over the limit: {}", over.join(", "));
        std::process::exit(1);
    }
}
