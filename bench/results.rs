//! The results as people and programs read them.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// Name and version of `bench/results.json`.
const SCHEMA: &str = "fathom.bench/1";

/// One measurement.
#[derive(Debug, Serialize)]
pub struct Row {
    pub what: &'static str,
    pub unit: &'static str,
    /// Median over the rounds.
    pub value: f64,
    /// What it must not exceed.
    pub limit: Option<f64>,
    pub rounds: usize,
    /// What was measured in the same run.
    pub beside: Vec<Beside>,
}

/// A figure to compare with, in the row's unit where its name does not say otherwise.
#[derive(Debug, Serialize)]
pub struct Beside {
    pub what: &'static str,
    pub value: f64,
}

impl Beside {
    pub fn new(what: &'static str, value: f64) -> Self {
        Self { what, value }
    }
}

impl Row {
    pub fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.value > limit)
    }
}

/// Where it was measured.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub date: String,
    pub processor: String,
    pub cpus: usize,
    pub kernel: String,
    pub fio: String,
    pub fathom: String,
    pub binary_bytes: u64,
    /// Processes that wanted a CPU in the last minute, those of the bench included.
    pub load: String,
}

impl Machine {
    pub fn here(fathom: &Path) -> Self {
        let said = |program: &Path, arg: &str| {
            let output = Command::new(program).arg(arg).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            date: said("date".as_ref(), "+%F"),
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, m)| m.trim().to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: said("uname".as_ref(), "-sr"),
            fio: said("fio".as_ref(), "--version"),
            fathom: said(fathom, "--version"),
            binary_bytes: fs::metadata(fathom).map_or(0, |meta| meta.len()),
            load: fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|text| Some(text.split_whitespace().next()?.to_owned()))
                .unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

pub fn markdown(machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!(
        "{}: {} × {}, {}, load {}; {}, {} ({:.1} MiB)\n\n| | median | limit | in the same run | rounds |\n|---|---:|---:|---|---:|\n",
        machine.date,
        machine.cpus,
        machine.processor,
        machine.kernel,
        machine.load,
        machine.fio,
        machine.fathom,
        machine.binary_bytes as f64 / f64::from(1 << 20),
    );
    for row in rows {
        let limit = row
            .limit
            .map_or_else(|| "–".to_owned(), |limit| format!("{limit} {}", row.unit));
        let beside: Vec<String> = row
            .beside
            .iter()
            .map(|other| format!("{} {:.1}", other.what, other.value))
            .collect();
        text += &format!(
            "| {} | {:.1} {} | {limit} | {} | {} |\n",
            row.what,
            row.value,
            row.unit,
            beside.join(", "),
            row.rounds
        );
    }
    text
}

pub fn write(dir: &Path, machine: &Machine, rows: &[Row]) -> io::Result<()> {
    fs::write(dir.join("results.md"), markdown(machine, rows))?;
    let document = serde_json::json!({ "schema": SCHEMA, "machine": machine, "rows": rows });
    fs::write(dir.join("results.json"), format!("{document:#}\n"))
}
