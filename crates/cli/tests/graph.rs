//! `fathom graph`: from a record to files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_model::{
    Direction, DirectionResult, Event, JobResult, Latency, Outcome, Point, Results, RunStatus,
    Sample,
};
use fathom_record::{Header, Writer};
use serde_json::Value;

fn fathom(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("--runs")
        .arg(runs)
        .args(args)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(both).unwrap()
}

fn point(series: &str, depth: u64) -> Point {
    Point {
        id: format!("{series}/{depth:04}-bs4k-1j-{depth}qd-randread"),
        series: series.to_owned(),
        x: "iodepth".to_owned(),
        settings: BTreeMap::from([
            ("iodepth".to_owned(), depth.to_string()),
            ("numjobs".to_owned(), "1".to_owned()),
        ]),
        repetition: 1,
    }
}

/// A record of two series of reads over five depths.
fn campaign(runs: &Path) -> PathBuf {
    let mut writer = Writer::create(runs, &Header::new("campaign", "run")).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    for (n, series) in ["0001-basic/0002-seqread", "0001-basic/0004-randread"]
        .iter()
        .enumerate()
    {
        for depth in [1u64, 2, 4, 8, 16] {
            let point = point(series, depth);
            append(Event::Step {
                step: 1,
                of: 10,
                name: point.id.clone(),
                point: Some(Box::new(point)),
            });
            let iops = 10_000.0 * (n + 1) as f64 * (depth.min(8) as f64);
            for second in 1..=3u64 {
                append(Event::Sample(Sample {
                    t_ms: second * 1000,
                    span_ms: 1000,
                    job: 0,
                    dir: Direction::Read,
                    ios: iops as u64,
                    bytes: iops as u64 * 4096,
                    clat: None,
                    lat: None,
                }));
                append(Event::Interval {
                    t_ms: second * 1000,
                    remaining_ms: None,
                });
            }
            let read = DirectionResult {
                total_ios: iops as u64 * 3,
                iops,
                bw_bytes: iops * 4096.0,
                runtime_ms: 3000,
                clat: Some(Latency {
                    mean_ns: depth as f64 / iops * 1e9,
                    ..Latency::default()
                }),
                ..DirectionResult::default()
            };
            let job = JobResult {
                name: "job".to_owned(),
                read: Some(read),
                ..JobResult::default()
            };
            append(Event::Finished {
                results: Box::new(Results {
                    jobs: vec![job],
                    ..Results::default()
                }),
            });
            let outcome = Outcome::Complete;
            append(Event::StepEnded { outcome });
        }
    }
    writer.finish(RunStatus::Complete).unwrap()
}

#[test]
fn graphs_go_into_the_runs_own_folder_as_svg_and_png() {
    let runs = tempfile::tempdir().unwrap();
    let record = campaign(runs.path());
    let output = fathom(
        runs.path(),
        &["graph", "--format", "svg,png", "--scale", "0.5", "--json"],
    );
    assert!(output.status.success(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "fathom.graphs/1");
    let files = document["files"].as_array().unwrap();
    for name in [
        "0001-basic/0004-randread-bwr.svg",
        "0001-basic/0004-randread-iopsr.png",
        "0001-basic/0004-randread-clatr.svg",
        "0001-basic/0004-randread-iops-clat.svg",
        "0001-basic/overview-bwr.svg",
    ] {
        assert!(files.iter().any(|file| file == name), "{name}: {files:?}");
        let bytes = fs::read(record.join("graphs").join(name)).unwrap();
        let begin: &[u8] = if name.ends_with("svg") {
            b"<svg"
        } else {
            b"\x89PNG"
        };
        assert!(bytes.starts_with(begin), "{name}");
    }
    assert!(
        !files
            .iter()
            .any(|file| file.as_str().unwrap().ends_with("bww.svg"))
    );
    let svg = fs::read_to_string(record.join("graphs/0001-basic/0004-randread-bwr.svg")).unwrap();
    for text in [
        "best bandwidth and IOPS",
        "625 MiB/s at depth 8",
        "best latency",
    ] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}\n{svg}");
    }
    // Again, the same bytes.
    assert!(fathom(runs.path(), &["graph"]).status.success());
    let again = fs::read_to_string(record.join("graphs/0001-basic/0004-randread-bwr.svg")).unwrap();
    assert_eq!(svg, again);
}

#[test]
fn one_series_or_one_point_can_be_chosen() {
    let runs = tempfile::tempdir().unwrap();
    campaign(runs.path());
    let out = runs.path().join("elsewhere");
    let to = out.to_str().unwrap();
    let output = fathom(runs.path(), &["graph", "--only", "seqread", "--out", to]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("4 graphs in "), "{}", said(&output));
    let names: Vec<String> = fs::read_dir(out.join("0001-basic"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("0002-seqread-")),
        "{names:?}"
    );
    let output = fathom(runs.path(), &["graph", "--point", "16qd", "--out", to]);
    assert!(output.status.success(), "{}", said(&output));
    let over_time = "0001-basic/0004-randread/0016-bs4k-1j-16qd-randread-time.svg";
    assert!(out.join(over_time).is_file(), "{}", said(&output));
}

#[test]
fn any_option_is_drawn_over_any_other() {
    let runs = tempfile::tempdir().unwrap();
    let record = campaign(runs.path());
    let drawn = fathom(runs.path(), &["graph", "--x", "iodepth", "--y", "clat"]);
    assert!(drawn.status.success(), "{}", said(&drawn));
    let svg = record.join("graphs/0001-basic/clatr-over-iodepth.svg");
    let svg = fs::read_to_string(svg).unwrap();
    for text in ["series 0002-seqread", "series 0004-randread", "I/O depth"] {
        assert!(svg.contains(text), "{text}");
    }
    let refused = |args: &[&str]| {
        let output = fathom(runs.path(), &[&["graph"], args].concat());
        assert!(!output.status.success());
        said(&output)
    };
    let unknown = refused(&["--x", "bs"]);
    assert!(
        unknown.contains("no point has 'bs'; there are: iodepth, numjobs"),
        "{unknown}"
    );
    let figure = refused(&["--x", "iodepth", "--y", "p42"]);
    assert!(figure.contains("p99.9"), "{figure}");
    assert!(refused(&["--by", "bs"]).contains("--x"));
}

#[test]
fn nothing_to_draw_is_told_and_missing() {
    let runs = tempfile::tempdir().unwrap();
    let output = fathom(runs.path(), &["graph"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    campaign(runs.path());
    for (args, exit, word) in [
        (["graph", "--only", "nosuch"], 3, "no series of nosuch"),
        (["graph", "--point", "nosuch"], 5, "no point of "),
    ] {
        let output = fathom(runs.path(), &args);
        assert_eq!(output.status.code(), Some(exit), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
    }
    let output = fathom(runs.path(), &["graph", "--size", "5x5"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn the_figures_of_the_page_of_fio_tests_stand_on_its_graphs() {
    let runs = tempfile::tempdir().unwrap();
    let results =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../campaign/tests/fixtures/fio-tests");
    let import = fathom(
        runs.path(),
        &["import", "--quiet", results.to_str().unwrap()],
    );
    assert!(import.status.success(), "{}", said(&import));
    let out = runs.path().join("out");
    let drawn = fathom(
        runs.path(),
        &[
            "graph",
            "--only",
            "0003-maxiobatch-single-job",
            "--out",
            out.to_str().unwrap(),
        ],
    );
    assert!(drawn.status.success(), "{}", said(&drawn));
    for (name, best, latency) in [
        ("bww", "402 MiB/s at depth 512", "47.7 MiB/s at depth 4"),
        ("iopsw", "103k at depth 512", "12.2k at depth 4"),
        ("clatw", "172 µs at depth 512", "10.9 µs at depth 4"),
        ("bwr", "938 MiB/s at depth 512", "30.5 MiB/s at depth 1"),
    ] {
        let path = format!("0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30-{name}.svg");
        let svg = fs::read_to_string(out.join(&path)).unwrap();
        for text in ["best bandwidth and IOPS", best, "best latency", latency] {
            assert!(
                svg.contains(&format!(">{text}</text>")),
                "{path}: {text}\n{svg}"
            );
        }
    }
}
