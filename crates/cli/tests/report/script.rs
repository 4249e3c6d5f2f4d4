//! The page's script under node: it must read what Rust wrote and say numbers as
//! Rust does.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_model::histogram::{bounds_of, bucket_of};
use fathom_model::{Direction, Event, RunStatus, Sample, units};
use fathom_record::Writer;
use serde_json::{Value, json};

use crate::report::{records, report};

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/assets")
}

/// What a script gives that sees the page's functions and `input`.
fn node(script: &str, input: &Value) -> Result<Value, String> {
    let node = fathom_testkit::program("node")?;
    let mut source = String::new();
    for name in ["units.js", "samples.js"] {
        source += &fs::read_to_string(assets().join(name)).unwrap();
    }
    source += &format!(
        "const input = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n\
         process.stdout.write(JSON.stringify((() => {{ {script} }})()));"
    );
    let mut child = Command::new(node)
        .args(["-e", &source])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn every_script_is_correct_javascript() {
    let node = match fathom_testkit::program("node") {
        Ok(node) => node,
        Err(reason) => {
            return fathom_testkit::skip("every_script_is_correct_javascript", &reason);
        }
    };
    for name in [
        "units.js",
        "samples.js",
        "charts.js",
        "nodes.js",
        "points.js",
        "page.js",
    ] {
        let checked = Command::new(&node)
            .arg("--check")
            .arg(assets().join(name))
            .output()
            .unwrap();
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }
}

#[test]
fn numbers_of_jobs_are_no_sizes() {
    let script = "return input.map(([option, value]) => units.ofOption(option, value))";
    let input = json!([
        ["numjobs", 4],
        ["iodepth", 32],
        ["bs", 4096],
        ["size", 1024]
    ]);
    match node(script, &input) {
        Ok(said) => assert_eq!(said, json!(["4", "32", "4 KiB", "1 KiB"])),
        Err(reason) => fathom_testkit::skip("numbers_of_jobs_are_no_sizes", &reason),
    }
}

#[test]
fn numbers_are_said_as_rust_says_them() {
    let mut values = vec![
        0.0, 0.5, 1.5, 2.5, 9.995, 99.95, 99.94, 999.4, 999.5, 999.6, 1023.0, 1024.0,
    ];
    values.extend([
        0.125,
        0.375,
        10.25,
        10.75,
        12.5,
        1e9,
        17_179_869_184.0,
        333_447_168.0,
        1e21,
    ]);
    // A walk over all magnitudes, by steps that are no round numbers.
    values.extend(
        (0..4000)
            .map(|step| 1.0123f64.powi(step) * 0.37)
            .take_while(|v| *v < 1e18),
    );
    let said: Vec<[String; 4]> = values
        .iter()
        .map(|&value| {
            [
                units::bytes(value),
                units::bytes_per_second(value),
                units::count(value),
                units::latency(value),
            ]
        })
        .collect();
    let times: Vec<u64> = (0..60)
        .map(|power| 3u64.pow(power % 20) * 7 + u64::from(power))
        .collect();
    let durations: Vec<String> = times.iter().map(|&ms| units::duration(ms)).collect();
    let script = "return [
        input.values.map((v) => [units.bytes(v), units.bytesPerSecond(v), units.count(v), units.latency(v)]),
        input.times.map(units.duration)];";
    match node(script, &json!({"values": values, "times": times})) {
        Ok(page) => {
            for ((value, rust), page) in values.iter().zip(&said).zip(page[0].as_array().unwrap()) {
                assert_eq!(&json!(rust), page, "{value}");
            }
            assert_eq!(page[1], json!(durations));
        }
        Err(reason) => fathom_testkit::skip("numbers_are_said_as_rust_says_them", &reason),
    }
}

/// Samples of all sizes: gaps, no I/O, no latencies, jumps of many magnitudes.
fn odd_samples(count: u64) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut t_ms = 17;
    for n in 0..count {
        t_ms += [1000, 1003, 997, 1, 60_000][(n % 5) as usize];
        let ios = [0, 1, 100_000, 3, 4_000_000_000][(n % 7 % 5) as usize];
        let mut sample = records::sample(t_ms, 0, Direction::Read, ios, 90 + n * n * 13);
        sample.span_ms = 995 + n % 11;
        sample.bytes = ios * [4096, 512, 131_072][(n % 3) as usize] + n % 2;
        if n % 6 == 0 {
            sample.clat = None;
        }
        samples.push(sample);
    }
    samples
}

#[test]
fn samples_are_read_as_they_were_written() {
    let runs = tempfile::tempdir().unwrap();
    // More than a block holds.
    let samples = odd_samples(5000);
    let mut writer = Writer::create(runs.path(), &records::header("odd", "job run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    records::begin(&mut append, &["job"]);
    for sample in &samples {
        append(Event::Sample(sample.clone()));
        append(records::interval(sample.t_ms));
    }
    let (_, page) = report(runs.path(), &writer.finish(RunStatus::Interrupted).unwrap());
    let blocks: Vec<&str> = page
        .split("<script type=track")
        .skip(1)
        .map(|part| part.split_once('>').unwrap().1.split_once('<').unwrap().0)
        .collect();
    assert_eq!(blocks.len(), 2);
    let script = "const track = samples.unpack(input);
        const plain = (xs) => Array.from(xs, (x) => (x === x ? x : null));
        return Object.fromEntries(Object.entries(track).map(([name, xs]) => [name, plain(xs)]));";
    let track = match node(script, &json!(blocks)) {
        Ok(track) => track,
        Err(reason) => {
            return fathom_testkit::skip("samples_are_read_as_they_were_written", &reason);
        }
    };
    for (n, sample) in samples.iter().enumerate() {
        let clat = sample.clat.as_ref().filter(|clat| !clat.is_empty());
        let max = clat.map(|clat| bounds_of(bucket_of(clat.percentile_ns(100.0).unwrap())).1);
        let expected = [
            ("t", json!(sample.t_ms)),
            ("span", json!(sample.span_ms)),
            ("ios", json!(sample.ios)),
            ("bytes", json!(sample.bytes)),
            (
                "mean",
                json!(clat.map(|clat| clat.mean_ns().unwrap().round() as u64)),
            ),
            ("p50", json!(clat.map(|clat| clat.percentile_ns(50.0)))),
            ("p99", json!(clat.map(|clat| clat.percentile_ns(99.0)))),
            ("p999", json!(clat.map(|clat| clat.percentile_ns(99.9)))),
            ("max", json!(max)),
        ];
        for (name, value) in expected {
            assert_eq!(track[name][n], value, "{name} of sample {n}");
        }
        let iops = sample.iops().unwrap();
        assert!((track["iops"][n].as_f64().unwrap() - iops).abs() <= iops * 1e-12);
    }
}

#[test]
fn no_peak_is_lost_on_the_way_to_the_pixels() {
    let script = "
        const n = 100000;
        const t = Float64Array.from({length: n}, (_, i) => i * 1000);
        const y = Float64Array.from({length: n}, (_, i) => 100 + (i * 7919) % 13);
        y[54321] = 9e9; y[54322] = 1; y[777] = NaN;
        const far = samples.reduce(t, [y], 0, n, 900);
        const near = samples.reduce(t, [y], 54300, 54400, 900);
        const empty = samples.reduce(t, [y], 777, 778, 900);
        return {
          times: far.times.length, values: far.values[0].length, each: far.each,
          top: Math.max(...far.values[0]), bottom: Math.min(...far.values[0]),
          sorted: far.times.every((t, i) => i === 0 || t > far.times[i - 1]),
          near: near.values[0].length, exact: near.values[0][21], nearEach: near.each,
          empty: empty.values[0],
          bounds: [samples.lowerBound(t, 0), samples.lowerBound(t, 1), samples.lowerBound(t, 1e12)],
        };";
    match node(script, &Value::Null) {
        Ok(seen) => assert_eq!(
            seen,
            json!({
                "times": 1786, "values": 1786, "each": 112, "top": 9e9 as u64, "bottom": 1,
                "sorted": true, "near": 100, "exact": 9e9 as u64, "nearEach": 1,
                "empty": [null], "bounds": [0, 1, 100_000],
            })
        ),
        Err(reason) => fathom_testkit::skip("no_peak_is_lost_on_the_way_to_the_pixels", &reason),
    }
}
