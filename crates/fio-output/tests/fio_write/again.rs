//! Documents of fio that are read and written again.

use std::path::Path;

use fathom_fio_output::json;
use fathom_fio_output::write::{FormatFacts, LatencyClasses, OutputFormat, render};
use fathom_model::histogram::{bounds_of, bucket_of};
use fathom_model::{Histogram, JobResult};
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::fio_write::facts;

/// Whether a fixture is an output of fio 3.33 in JSON: not of fio 2.x, whose
/// layout is another, nor of fio's client mode, which no run of ours is.
fn has_our_layout(name: &str) -> bool {
    (name.ends_with(".json") || name == "all.out")
        && !name.starts_with("fio2")
        && !name.starts_with("client")
}

/// Name and text of each document of the fixtures.
fn documents() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if has_our_layout(&name) {
            let input = std::fs::read(entry.path()).unwrap();
            for document in json::scan(&input).documents {
                let text = String::from_utf8(input[document.raw].to_owned()).unwrap();
                all.push((name.clone(), text));
            }
        }
    }
    assert!(all.len() >= 20, "the fixtures are gone");
    all
}

#[test]
fn json_of_fio_is_written_again_byte_for_byte() {
    for (name, text) in documents() {
        let results = json::parse_document(text.as_bytes()).unwrap();
        let facts = facts::of(&text, TimeZone::UTC);
        let plus = render(&results, &facts, OutputFormat::JsonPlus);
        for (ours, fio) in plus.lines().zip(text.lines()) {
            assert_eq!(ours, fio, "{name}");
        }
        assert_eq!(plus, text + "\n", "{name}");
        assert_eq!(json::parse_document(plus.as_bytes()).unwrap(), results);
        if name.ends_with(".plus.json") {
            let plain = render(&results, &facts, OutputFormat::Json);
            assert!(plain.contains("\"percentile\"") && !plain.contains("\"bins\""));
        }
    }
}

/// The formats that a document does not have, byte for byte as reviewed; fio's own
/// stand beside them where it is installed (`live`).
#[test]
fn documents_are_written_in_every_other_format() {
    let reviewed = |name: &str| {
        let names = [
            "eio-on",
            "group",
            "latency",
            "latpct",
            "nolat",
            "prio",
            "rw",
            "steady",
            "trim",
            "unified-both",
        ];
        names.contains(&name.split('.').next().unwrap())
    };
    for (name, text) in documents().into_iter().filter(|(name, _)| reviewed(name)) {
        let results = json::parse_document(text.as_bytes()).unwrap();
        let mut facts = facts::of(&text, TimeZone::UTC);
        let mut written = render(&results, &facts, OutputFormat::Normal);
        for version in 2..=5 {
            facts.terse_version = version;
            written += &format!("=== terse {version}\n");
            written += &render(&results, &facts, OutputFormat::Terse);
        }
        insta::with_settings!({ omit_expression => true, snapshot_suffix => name }, {
            insta::assert_snapshot!("written", written);
        });
    }
}

#[test]
fn without_facts_nothing_of_the_results_is_lost() {
    for (name, text) in documents() {
        let mut results = json::parse_document(text.as_bytes()).unwrap();
        let written = render(&results, &FormatFacts::default(), OutputFormat::JsonPlus);
        let mut read = json::parse_document(written.as_bytes()).unwrap();
        // A sum of run times is one of the facts.
        let forget = |job: &mut JobResult| job.runtime_ms = None;
        results.jobs.iter_mut().for_each(forget);
        read.jobs.iter_mut().for_each(forget);
        assert_eq!(read, results, "{name}");
    }
}

/// The latency classes that fio counts I/O by I/O, against those counted from
/// histograms: they differ by the buckets that lie across a border at most.
#[test]
fn latency_classes_of_histograms_are_fios() {
    let mut seen = 0;
    for (name, text) in documents() {
        let document: Value = serde_json::from_str(&text).unwrap();
        let results = json::parse_document(text.as_bytes()).unwrap();
        for (job, raw) in results
            .jobs
            .iter()
            .zip(document["jobs"].as_array().unwrap())
        {
            let clats = job.directions().filter_map(|(_, dir)| dir.clat.as_ref());
            let histograms: Vec<_> = clats.filter_map(|clat| clat.histogram.as_ref()).collect();
            if histograms.is_empty() {
                continue;
            }
            let ios: u64 = job.directions().map(|(_, dir)| dir.total_ios).sum();
            let across: u64 = histograms.into_iter().map(across_borders).sum();
            let tolerance = across as f64 * 100.0 / ios as f64 + 0.000_001;
            let (ours, fio) = (LatencyClasses::of(job), facts::classes(raw));
            let all = |classes: &LatencyClasses| -> Vec<f64> {
                [&classes.ns[..], &classes.us, &classes.ms].concat()
            };
            for (ours, fio) in all(&ours).iter().zip(all(&fio)) {
                assert!((ours - fio).abs() <= tolerance, "{name}: {ours} {fio}");
            }
            assert!(tolerance < 20.0, "{name}: nothing is shown by {tolerance}");
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

fn across_borders(histogram: &Histogram) -> u64 {
    let borders = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let units = [1, 1_000, 1_000_000];
    let buckets: Vec<usize> = units
        .iter()
        .flat_map(|unit| borders.map(|border| border * unit))
        .filter(|&border| bounds_of(bucket_of(border)).0 < border)
        .map(bucket_of)
        .collect();
    let across = histogram
        .buckets()
        .filter(|(bucket, _)| buckets.contains(bucket));
    across.map(|(_, count)| count).sum()
}
