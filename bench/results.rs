//! The results as people and programs read them.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::machine::Machine;

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

pub fn markdown(machine: &Machine, rows: &[Row]) -> String {
    let mut text = format!(
        "{machine}\n\n| | median | limit | in the same run | rounds |\n|---|---:|---:|---|---:|\n"
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

/// Writes both files of this name.
pub fn write(dir: &Path, name: &str, machine: &Machine, rows: &[Row]) -> io::Result<()> {
    fs::write(dir.join(format!("{name}.md")), markdown(machine, rows))?;
    let document = serde_json::json!({ "schema": SCHEMA, "machine": machine, "rows": rows });
    fs::write(dir.join(format!("{name}.json")), format!("{document:#}\n"))
}
