//! fio's outputs: what is read from real ones, and from hostile ones.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_fio_output::import::{self, ImportError};
use fathom_fio_output::json::{self, JsonError};
use fathom_model::{DirectionResult, JobResult, Latency, Results};
use proptest::prelude::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// All fixtures but the script that makes them, by name; what other tools wrote lies in folders.
fn all_fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
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

/// The jobs of a real run in one format.
fn read_as(input: &[u8], expected: &str) -> Results {
    let (format, mut results, _) = import::read(input).unwrap();
    assert_eq!(format.to_string(), expected);
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// What is left of a text without the JSON document in it.
fn without_json(input: &[u8]) -> Vec<u8> {
    let scan = json::scan(input);
    let document = &scan.documents[0].raw;
    [&input[..document.start], &input[document.end..]].concat()
}

fn near(a: f64, b: f64, relative: f64, absolute: f64) -> bool {
    (a - b).abs() <= absolute + relative * a.abs().max(b.abs())
}

/// Latencies agree: the text has four digits or whole units, terse whole µs.
fn assert_latency(what: &str, exact: Option<&Latency>, rough: Option<&Latency>, unit_ns: f64) {
    assert_eq!(exact.is_some(), rough.is_some(), "{what}");
    let (Some(exact), Some(rough)) = (exact, rough) else {
        return;
    };
    // A slow disk's latencies stand in whole ms.
    let in_ms = [rough.min_ns, rough.max_ns]
        .iter()
        .all(|ns| ns % 1_000_000 == 0);
    let unit_ns = if in_ms { unit_ns.max(1e6) } else { unit_ns };
    let pairs = [
        (exact.min_ns as f64, rough.min_ns as f64),
        (exact.max_ns as f64, rough.max_ns as f64),
        (exact.mean_ns, rough.mean_ns),
        (exact.stddev_ns.unwrap(), rough.stddev_ns.unwrap()),
    ];
    for (a, b) in pairs {
        assert!(near(a, b, 0.001, unit_ns), "{what}: {exact:?} {rough:?}");
    }
    assert_eq!(
        exact.percentiles_ns.len(),
        rough.percentiles_ns.len(),
        "{what}"
    );
    for (a, b) in exact.percentiles_ns.iter().zip(&rough.percentiles_ns) {
        assert_eq!(a.0, b.0, "{what}");
        assert!(
            near(a.1 as f64, b.1 as f64, 0.001, unit_ns),
            "{what}: {a:?} {b:?}"
        );
    }
}

fn assert_direction(what: &str, exact: &DirectionResult, rough: &DirectionResult, unit_ns: f64) {
    assert!(
        near(exact.io_bytes as f64, rough.io_bytes as f64, 0.001, 1024.0),
        "{what}"
    );
    assert!(
        near(exact.bw_bytes, rough.bw_bytes, 0.002, 1024.0),
        "{what}"
    );
    assert!(near(exact.iops, rough.iops, 0.0, 1.0), "{what}");
    // Terse output has whole IOPS alone: in more than a second several counts give them.
    let more = exact.total_ios.checked_sub(rough.total_ios);
    let seconds = exact.runtime_ms as f64 / 1000.0;
    assert!(
        more.is_some_and(|more| (more as f64) < seconds.max(1.0)),
        "{what}: {} {}",
        exact.total_ios,
        rough.total_ios
    );
    assert_eq!(exact.runtime_ms, rough.runtime_ms, "{what}");
    for (kind, a, b) in [
        ("slat", &exact.slat, &rough.slat),
        ("clat", &exact.clat, &rough.clat),
        ("lat", &exact.lat, &rough.lat),
    ] {
        assert_latency(&format!("{what} {kind}"), a.as_ref(), b.as_ref(), unit_ns);
    }
    let bw = |result: &DirectionResult| result.bw_intervals.as_ref().map(|s| s.mean);
    assert!(
        near(bw(exact).unwrap(), bw(rough).unwrap(), 0.001, 1024.0),
        "{what}"
    );
}

/// What a real run of a second prints, in all formats at once.
fn run_in_every_format(terse_version: u8) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("fio")
        .current_dir(&dir)
        .args([
            "--name=all",
            "--rw=randrw",
            "--bs=4k,8k",
            "--size=2m",
            "--runtime=1",
        ])
        .args([
            "--time_based",
            "--rate_iops=500",
            "--ioengine=libaio",
            "--iodepth=4",
        ])
        .args([
            "--fsync=32",
            "--continue_on_error=all",
            "--description=one; two",
        ])
        .arg("--output-format=normal,terse,json+")
        .arg(format!("--terse-version={terse_version}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// The text for people alone: no document, no terse lines.
fn without_terse(text: &[u8]) -> Vec<u8> {
    let lines = String::from_utf8(without_json(text)).unwrap();
    let is_terse = |line: &&str| line.matches(';').count() > 50 || line.starts_with(';');
    let kept: Vec<_> = lines.lines().filter(|line| !is_terse(line)).collect();
    kept.join("\n").into_bytes()
}

fn assert_job(what: &str, exact: &JobResult, rough: &JobResult) {
    assert_eq!((&exact.name, exact.error), (&rough.name, rough.error));
    assert_eq!(exact.description, rough.description);
    assert_eq!(exact.total_errors, rough.total_errors);
    assert_eq!(exact.directions().count(), rough.directions().count());
    for ((dir, a), (_, b)) in exact.directions().zip(rough.directions()) {
        assert_direction(&format!("{what} {}", dir.name()), a, b, 1000.0);
    }
    let cpu = |job: &JobResult| job.cpu.clone().unwrap();
    assert_eq!(cpu(exact).context_switches, cpu(rough).context_switches);
    assert!(near(
        cpu(exact).user_percent,
        cpu(rough).user_percent,
        0.0,
        0.01
    ));
    assert_eq!(exact.iodepth_percent.len(), rough.iodepth_percent.len());
}

#[test]
fn one_run_reads_the_same_in_every_format() {
    if Command::new("fio").arg("--version").output().is_err() {
        return skip(
            "one_run_reads_the_same_in_every_format",
            "fio is not installed",
        );
    }
    for version in 2..=5u8 {
        let all = run_in_every_format(version);
        let json = read_as(&all, "json");
        let terse = read_as(&without_json(&all), &format!("terse v{version}"));
        let normal = read_as(&without_terse(&all), "normal");
        let job = &json.jobs[0];
        assert_job(&format!("v{version}"), job, &terse.jobs[0]);
        assert_job("normal", job, &normal.jobs[0]);
        let (a, b) = (job.sync.as_ref(), normal.jobs[0].sync.as_ref());
        assert_latency("sync", a, b, 1000.0);
        if version > 2 {
            let names = |r: &Results| r.disks.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&json), names(&terse));
            assert_eq!(json.engine_version, terse.engine_version);
        }
        let clat = job.read.as_ref().unwrap().clat.as_ref().unwrap();
        let histogram = clat.histogram.as_ref().unwrap();
        assert_eq!(histogram.total(), clat.n.unwrap());
    }
}

/// Tells that a test could not run, where the run's summary looks for it.
fn skip(test: &str, reason: &str) {
    let line = format!("SKIP {test}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(log) = std::env::var_os("FATHOM_SKIP_LOG") {
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(log);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

#[test]
fn percentiles_of_the_bins_are_those_fio_reports() {
    let mut seen = 0;
    for (name, input) in all_fixtures() {
        if !name.ends_with(".plus.json") || name.starts_with("fio2") {
            continue;
        }
        let (_, results, _) = import::read(&input).unwrap();
        for job in results.iter().flat_map(|r| &r.jobs) {
            for (dir, result) in job.directions() {
                for latency in [&result.slat, &result.clat, &result.lat]
                    .into_iter()
                    .flatten()
                {
                    let Some(histogram) = &latency.histogram else {
                        continue;
                    };
                    for &(percent, ns) in &latency.percentiles_ns {
                        let ours = histogram.percentile_ns(percent);
                        assert_eq!(
                            ours,
                            Some(ns),
                            "{name} {} {} p{percent}",
                            job.name,
                            dir.name()
                        );
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 100);
}

#[test]
fn a_report_repeated_while_the_run_went_on_is_told_from_another_run() {
    let (_, states, _) = import::read(&fixture("status.plus.json")).unwrap();
    assert!(states.len() > 1);
    for pair in states.windows(2) {
        assert!(import::is_later_state(&pair[0], &pair[1]));
        assert!(!import::is_later_state(&pair[1], &pair[0]));
    }
    let (_, other, _) = import::read(&fixture("rw.json")).unwrap();
    assert!(!import::is_later_state(&states[0], &other[0]));
    // The same job started again: the run time does not grow with the clock.
    let mut again = states[0].clone();
    again.timestamp_ms = again.timestamp_ms.map(|ms| ms + 1500);
    again.jobs[0].read.as_mut().unwrap().total_ios += 3;
    again.jobs[0].read.as_mut().unwrap().runtime_ms += 2;
    assert!(!import::is_later_state(&states[0], &again));
}

#[test]
fn what_is_no_output_of_fio_is_named_with_its_first_line() {
    let error = import::read(b"\n\n  hello\x1b[1m there\nworld\n").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("line 3 is 'hello\u{fffd}[1m there'"),
        "{text}"
    );
    assert_eq!(import::read(b" \n").unwrap_err(), ImportError::Empty);
    assert_eq!(import::read(b"").unwrap_err(), ImportError::Empty);
    let bytes: Vec<u8> = (0..=255).collect();
    assert!(matches!(
        import::read(&bytes),
        Err(ImportError::NotFio { .. })
    ));
    let cut = &fixture("rw.json")[..3000];
    assert!(matches!(
        import::read(cut),
        Err(ImportError::Json(JsonError::Cut { bytes: 3000 }))
    ));
}

#[test]
fn text_in_front_of_or_inside_a_terse_line_is_left_out() {
    let line = String::from_utf8(fixture("eio.v3.terse")).unwrap();
    let message = "fio: pid=1, err=5/file:io_u.c:1876, func=io_u error, error=Input/output error";
    let plain = import::read(line.as_bytes()).unwrap().1;
    let before = format!("{message}\nJobs: 1 (f=1)\r{line}");
    assert_eq!(import::read(before.as_bytes()).unwrap().1, plain);
    let (first, second) = line.split_at(line.len() / 2);
    let inside = format!("{first}{message}\n{second}");
    let (_, results, warnings) = import::read(inside.as_bytes()).unwrap();
    assert_eq!(results, plain);
    assert!(
        warnings.iter().any(|text| text.contains("was taken out")),
        "{warnings:?}"
    );
}

#[test]
fn a_normal_output_without_its_indentation_reads_the_same() {
    for (name, input) in all_fixtures() {
        if !name.ends_with(".normal") {
            continue;
        }
        let text = String::from_utf8(input.clone()).unwrap();
        let flat: Vec<_> = text.lines().map(str::trim).collect();
        let windows = flat.join("\r\n");
        assert_eq!(
            import::read(windows.as_bytes()).unwrap(),
            import::read(&input).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn several_normal_reports_in_one_file_are_told_apart() {
    let (rw, group) = (fixture("rw.normal"), fixture("page-2.1.7.normal"));
    let (_, results, _) = import::read(&[rw.clone(), group, rw].concat()).unwrap();
    let jobs: Vec<_> = results.iter().map(|r| r.jobs.len()).collect();
    assert_eq!(jobs, [1, 6, 1]);
    let versions: Vec<_> = results
        .iter()
        .map(|r| r.engine_version.as_deref())
        .collect();
    assert_eq!(
        versions,
        [Some("fio-3.33"), Some("fio-2.1.7"), Some("fio-3.33")]
    );
    assert_eq!(results[0], results[2]);
}

/// Bytes for bytes' sake, and fixtures with a few bytes changed, cut, doubled.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let fixtures = all_fixtures();
    let pieces = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            any::<u8>(),
            0..4u8,
        ),
        1..8,
    );
    (prop::sample::select(fixtures), pieces).prop_map(|((_, mut input), changes)| {
        for (at, to, byte, kind) in changes {
            if input.is_empty() {
                break;
            }
            let (at, to) = (at.index(input.len()), to.index(input.len()));
            let (from, to) = (at.min(to), at.max(to));
            match kind {
                0 => input[at] = byte,
                1 => drop(input.drain(from..to)),
                2 => input.truncate(to + 1),
                _ => {
                    let copy = input[from..to.min(from + 4096)].to_vec();
                    input.splice(from..from, copy);
                }
            }
        }
        input
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(input in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = import::read(&input);
    }

    #[test]
    fn arbitrary_words_never_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..200)) {
        let _ = import::read(words.concat().as_bytes());
    }

    #[test]
    fn mutated_fixtures_never_panic(input in mutated()) {
        if let Ok((_, results, _)) = import::read(&input) {
            // What was read can be stored and read again.
            for results in results {
                let text = serde_json::to_string(&results).unwrap();
                let again: Results = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(again.jobs.len(), results.jobs.len());
            }
        }
    }
}

/// What the parsers look for.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    " ",
    "\"fio version\"",
    "\"jobs\"",
    "\"read\"",
    "\"clat_ns\"",
    "\"bins\"",
    "-nan",
    "1e308",
    "-1",
    "18446744073709551615",
    "0.5",
    "null",
    "3;fio-3.1;",
    "2;",
    "5;fio-x;",
    ";",
    "0%=0",
    "%",
    "0",
    "7",
    "a: (groupid=0, jobs=1): err= 0",
    "read: IOPS=1k, BW=1KiB/s (1kB/s)(1KiB/1msec)",
    "read : io=1KB, bw=1KB/s, runt=1msec",
    "clat (usec): min=1, max=2, avg=3, stdev=4",
    "clat percentiles (usec):",
    "| 1.00th=[ 1]",
    "lat prio 9/9/9999",
    "issued rwts: total=1,1,1,1",
    "Run status group 0 (all jobs):",
    "READ: bw=1KiB/s, io=1KiB, run=1-1msec",
    "vda: ios=1/1, merge=0/0",
    "fio-3.1",
    "é",
    "\r",
    "mixed: IOPS=0, BW=0 (0)(0B/1msec)",
    "<host>",
    "min=",
    "µ",
    "\\",
    "(",
    ")",
];
