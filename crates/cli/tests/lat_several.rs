//! `fathom lat` of several logs as one population, and of histogram logs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// fio's own reader of histogram logs, among its sources.
const HIST_READER: &str = "tools/hist/fiologparser_hist.py";

fn lat(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("lat")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn document(dir: &Path, args: &[&str]) -> Value {
    let text = stdout(lat(dir, &[args, &["--json"]].concat()));
    let document: Value = serde_json::from_str(&text).unwrap();
    document["files"][0].clone()
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let output = lat(dir, args);
    assert_eq!(output.status.code(), Some(3), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A line of a log for each of 1000 ms: latencies from `slow` µs on.
fn log(dir: &Path, name: &str, slow: u64, ms: u64) {
    let line = |n: u64| {
        let prio = if n.is_multiple_of(4) {
            "0x2003"
        } else {
            "0x0000"
        };
        format!("{n}, {}, {}, 4096, {prio}\n", slow * 1000 + n, n % 2)
    };
    fs::write(dir.join(name), (1..=ms).map(line).collect::<String>()).unwrap();
}

#[test]
fn a_prefix_means_all_jobs_of_it_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for job in 1..=12u64 {
        log(dir, &format!("out_lat.{job}.log"), job * 10, 1000);
        log(dir, &format!("out_clat.{job}.log"), job, 1000);
    }
    log(dir, "outer_lat.1.log", 1, 1000);
    let all = document(dir, &["out"]);
    assert_eq!(all["file"], "out");
    assert_eq!(all["logs"].as_array().unwrap().len(), 12);
    assert_eq!(
        (&all["lines"], &all["all"]["iops"]),
        (&12_000.into(), &12_000.0.into())
    );
    // The element int(12000 · 0.5) of all: half of them are of jobs 1 to 6.
    assert_eq!(all["all"]["percentiles_ns"]["50"], 61_000);
    let merged = document(dir, &["--merge", "out_lat.1.log", "out_lat.2.log"]);
    assert_eq!(merged["all"]["n"], 2000);
    // A log that is named twice, or lies packed beside itself, is counted once.
    let mut pack = Command::new("gzip");
    let packed = pack.args(["-k", "out_lat.1.log"]).current_dir(dir).status();
    assert!(packed.unwrap().success());
    for again in ["out_lat.1.log.gz", "out_lat.1.log", "./out_lat.1.log"] {
        let merged = document(dir, &["--merge", "out_lat.1.log", again, "out_lat.2.log"]);
        assert_eq!(merged["all"]["n"], 2000, "{again}");
    }
    std::fs::remove_file(dir.join("out_lat.1.log.gz")).unwrap();
    let clat = document(dir, &["out_clat"]);
    assert_eq!(clat["all"]["max_ns"], 13_000);
    let by = document(dir, &["out", "--by", "job+direction,host"]);
    let combined = by["combined"].as_array().unwrap();
    assert_eq!(combined.len(), 24 + 1);
    assert_eq!(
        (&combined[2]["job"], &combined[2]["direction"]),
        (&"job 2".into(), &"read".into())
    );
    assert_eq!(
        (&combined[2]["n"], &combined[2]["iops"]),
        (&500.into(), &500.0.into())
    );
    let csv = stdout(lat(
        dir,
        &[
            "out",
            "--by",
            "all,direction,job+priority",
            "--format",
            "csv",
            "--head",
        ],
    ));
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("job,class,level,hint,IOPS,"), "{csv}");
    assert!(lines[1].starts_with(",all,,,12000.000,"), "{csv}");
    assert!(lines[2].starts_with(",read,,,6000.000,"), "{csv}");
    assert!(lines[4].starts_with("job 1,NONE,0,0,750.000,"), "{csv}");
    assert!(lines[5].starts_with("job 1,RT,3,0,250.000,"), "{csv}");
    let text = stdout(lat(
        dir,
        &["out", "--by", "job+priority", "--interval", "500ms"],
    ));
    assert!(
        text.contains("\nJob 12, priority 0x2003, class RT, level 3, hint 0 (2.08 %)"),
        "{text}"
    );
    assert!(text.contains("job 12 0x2003"), "{text}");
}

#[test]
fn a_distribution_ends_with_all_and_never_falls() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir, "out_lat.1.log", 10, 1000);
    log(dir, "out_lat.2.log", 90, 1000);
    let csv = stdout(lat(
        dir,
        &["out", "--format", "cdf", "--head", "--by", "all,job"],
    ));
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        lines[0],
        ["job", "class", "level", "hint", "lat (ms)", "percent"]
    );
    let of = |job: &str| -> Vec<(f64, f64)> {
        let of = lines[1..].iter().filter(|line| line[0] == job);
        of.map(|line| (line[4].parse().unwrap(), line[5].parse().unwrap()))
            .collect()
    };
    for job in ["", "job 1", "job 2"] {
        let curve = of(job);
        assert!(
            curve
                .windows(2)
                .all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1),
            "{curve:?}"
        );
        assert_eq!(curve.last().unwrap().1, 100.0);
    }
    // All of job 1, none of job 2.
    assert!(of("").iter().any(|&(_, percent)| percent == 50.0), "{csv}");
    let over_time = lat(dir, &["out", "--format", "cdf", "--interval", "1s"]);
    assert_eq!(over_time.status.code(), Some(2));
}

#[test]
fn logs_that_are_no_one_population_are_refused_or_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    log(dir, "a_lat.1.log", 10, 1000);
    log(dir, "a_clat.1.log", 10, 1000);
    log(dir, "b_lat.1.log", 10, 500);
    fs::write(
        dir.join("c_lat.1.log"),
        "100, 5000, 0, 0, 0x0000\n200, 5000, 0, 0, 0x0000\n",
    )
    .unwrap();
    fs::write(
        dir.join("d_lat.1.log"),
        "100, 5000, 0, 4096, 1\n200, 5000, 0, 4096, 0\n",
    )
    .unwrap();
    let with = |other: &str| refused(dir, &["--merge", "a_lat.1.log", other]);
    assert!(with("a_clat.1.log").contains("differ in the kind of latency"));
    assert!(with("c_lat.1.log").contains("means over windows"));
    assert!(with("d_lat.1.log").contains("what they say of priorities"));
    let both = document(dir, &["--merge", "a_lat.1.log", "b_lat.1.log"]);
    assert!(
        both["notes"][0]
            .as_str()
            .unwrap()
            .contains("rates are over the longest"),
        "{both}"
    );
    assert!(refused(dir, &["nothing"]).contains("no logs nothing_lat.1.log"));
    fs::write(dir.join("e_bw.1.log"), "1, 5, 0, 512, 0\n").unwrap();
    assert!(refused(dir, &["e"]).contains("there is e_bw.1.log"));
}

/// A histogram log: in each of four seconds some counts, in bins of this coarseness.
fn histogram_log(path: &Path, coarseness: u32, seed: u64) {
    let bins = 1856 >> coarseness;
    let mut text = String::new();
    for second in 1..=4u64 {
        let mut counts = vec![0u64; bins];
        let mut at = seed * 7919 + second;
        for raw in 500..1200usize {
            at = at
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            counts[raw >> coarseness] += 1 + (at >> 33) % 50;
        }
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        text += &format!("{}, 0, 4096, {}\n", second * 1000, counts.join(", "));
    }
    fs::write(path, text).unwrap();
}

/// The I/Os are those of fio's own reader, and percentiles at most a bin from its.
#[test]
fn histogram_logs_agree_with_fios_own_reader() {
    let test = "histogram_logs_agree_with_fios_own_reader";
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for coarseness in [0, 2, 4] {
        for job in 1..=2u64 {
            let name = format!("c{coarseness}_clat_hist.{job}.log");
            histogram_log(&dir.join(name), coarseness, job);
        }
        let prefix = format!("c{coarseness}");
        let ours = document(dir, &[&prefix, "--interval", "1s"]);
        assert_eq!(ours["exact"], false);
        let error = ours["percentile_error_percent"].as_f64().unwrap();
        assert!(
            (error - 0.78125 * f64::from(1 << coarseness)).abs() < 0.01,
            "{error}"
        );
        assert_eq!(ours["all"]["bw_bytes"], Value::Null);
        let iops = ours["all"]["n"].as_f64().unwrap() / 4.0;
        assert_eq!(ours["all"]["iops"], iops);
        let intervals = ours["intervals"].as_array().unwrap();
        assert_eq!(intervals.len(), 4);
        let Some(theirs) = fios_own(test, dir, &prefix) else {
            return;
        };
        for (ours, theirs) in intervals.iter().zip(theirs) {
            assert_eq!(ours["all"]["n"].as_f64().unwrap(), theirs[1]);
            for (place, percent) in [(4, "50"), (5, "90"), (6, "95"), (7, "99")] {
                let ns = ours["all"]["percentiles_ns"][percent].as_f64().unwrap();
                let apart = (ns / theirs[place] - 1.0).abs() * 100.0;
                // A bin is twice that wide; the next I/O may be in the next one.
                assert!(apart <= 4.0 * error, "{percent}: {ns} for {theirs:?}");
            }
        }
    }
    assert!(refused(dir, &["c0", "--interval", "300ms"]).contains("no multiple"));
}

/// What fiologparser_hist.py prints of both jobs, a row for each second.
fn fios_own(test: &str, dir: &Path, prefix: &str) -> Option<Vec<Vec<f64>>> {
    let had = fathom_testkit::fio_sources().and_then(|fio| Ok((fio, fathom_testkit::readers()?)));
    let (fio, python) = had.map_err(|why| fathom_testkit::skip(test, &why)).ok()?;
    let logs = [1, 2].map(|job| format!("{prefix}_clat_hist.{job}.log"));
    let done = Command::new(python)
        .arg(fio.join(HIST_READER))
        .arg("--noweight")
        .args(logs)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = stdout(done);
    let row = |line: &str| {
        line.split(", ")
            .map(|field| field.parse().unwrap())
            .collect()
    };
    Some(text.lines().skip(1).map(row).collect())
}
