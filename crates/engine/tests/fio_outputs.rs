//! fio's outputs: what is read from real ones, and from hostile ones.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use fathom_engine::fio::import;
use fathom_model::Results;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// All fixtures but the script that makes them, sorted by name.
fn all_fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "make.sh")
        .map(|name| (name.clone(), fixture(&name)))
        .collect();
    all.sort();
    assert!(all.len() > 60, "the fixtures are gone");
    all
}

/// A line for every part of the figures, so that a change is easy to see.
fn shown(results: &[Results]) -> String {
    let mut text = String::new();
    for (nth, results) in results.iter().enumerate() {
        let mut root = serde_json::to_value(results).unwrap();
        let jobs = root["jobs"].take();
        let disks = root["disks"].take();
        writeln!(text, "report {}: {root}", nth + 1).unwrap();
        for mut job in jobs.as_array().cloned().unwrap_or_default() {
            let dirs = ["read", "write", "trim", "mixed"].map(|dir| (dir, job[dir].take()));
            writeln!(text, "job {job}").unwrap();
            for (dir, mut figures) in dirs.into_iter().filter(|(_, f)| !f.is_null()) {
                let latencies = ["slat", "clat", "lat"].map(|kind| (kind, figures[kind].take()));
                writeln!(text, "  {dir} {figures}").unwrap();
                for (kind, latency) in latencies.into_iter().filter(|(_, l)| !l.is_null()) {
                    writeln!(text, "    {kind} {latency}").unwrap();
                }
            }
        }
        for disk in disks.as_array().into_iter().flatten() {
            writeln!(text, "disk {disk}").unwrap();
        }
    }
    text
}

#[test]
fn every_fixture_is_read_as_reviewed() {
    for (name, input) in all_fixtures() {
        let text = match import::read(&input) {
            Err(error) => format!("error: {error}\n"),
            Ok((format, results, warnings)) => {
                let mut text = format!("{format}\n");
                for warning in warnings {
                    writeln!(text, "warning: {warning}").unwrap();
                }
                text + &shown(&results)
            }
        };
        insta::with_settings!({ omit_expression => true, snapshot_suffix => name }, {
            insta::assert_snapshot!("output", text);
        });
    }
}
