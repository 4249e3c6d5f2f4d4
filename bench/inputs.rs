//! What is read and run: job files, a document of 300 clients, a long record.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_model::{
    Direction, DirectionResult, Event, Histogram, JobResult, Latency, Outcome, Point, Results,
    RunStatus, Sample,
};
use fathom_record::{Header, Writer};

use crate::Lab;

/// A job of one second on a file of its own.
pub fn one_second(lab: &Lab) -> PathBuf {
    let seconds = if lab.full { "1" } else { "200ms" };
    let file = lab.path("one-second.file");
    job(
        lab,
        "one-second",
        &format!(
            "[randread]\nfilename={}\nsize=16m\nrw=randread\nbs=4k\nioengine=psync\n\
             time_based\nruntime={seconds}\n",
            file.display()
        ),
    )
}

/// Sixteen jobs for some seconds: many samples, large documents.
pub fn many_jobs(lab: &Lab) -> PathBuf {
    let seconds = if lab.full { "10" } else { "1" };
    job(
        lab,
        "many-jobs",
        &format!(
            "[randrw]\nfilename={}\nsize=16m\nrw=randrw\nbs=4k\nioengine=psync\nnumjobs=16\n\
             time_based\nruntime={seconds}\n",
            lab.path("many-jobs.file").display()
        ),
    )
}

fn job(lab: &Lab, name: &str, text: &str) -> PathBuf {
    let path = lab.path(&format!("{name}.fio"));
    fs::write(&path, text).unwrap();
    path
}

/// A json+ document as fio's client mode writes it, from `clients` hosts: the text
/// of a real run of a mixed job, whose figures every host repeats.
pub fn clients(lab: &Lab, clients: usize) -> PathBuf {
    let output = Command::new("fio")
        .args(["--name=mixed", "--rw=randrw", "--bs=4k", "--size=16m"])
        .args(["--ioengine=libaio", "--iodepth=8", "--time_based"])
        .args(["--runtime=1", "--output-format=json+"])
        .arg(format!("--filename={}", lab.path("clients.file").display()))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (head, rest) = text.split_once("\"jobs\" : [").unwrap();
    let (job, tail) = rest.split_once("\n  ]").unwrap();
    let hosts: Vec<String> = (1..=clients)
        .map(|n| {
            let host = format!("\"hostname\" : \"node{n:03}\", \"port\" : 8765, \"jobname\"");
            job.replacen("\"jobname\"", &host, 1)
        })
        .collect();
    let path = lab.path("clients.json");
    let all = hosts.join(",");
    fs::write(&path, format!("{head}\"client_stats\" : [{all}\n  ]{tail}")).unwrap();
    path
}

/// The record of a job that read and wrote for `seconds`, a sample of each a second.
pub fn long_record(runs: &Path, seconds: u64) -> PathBuf {
    let mut writer = Writer::create(runs, &Header::new("long", "job run")).unwrap();
    let mut write = |event: &Event| writer.append(event).unwrap();
    write(&Event::Step {
        step: 1,
        of: 1,
        name: "long".to_owned(),
        point: None,
    });
    write(&Event::EngineStarted {
        engine: "fio".to_owned(),
        version: Some("fio-3.33".to_owned()),
        argv: vec!["fio".to_owned()],
        pid: Some(1),
    });
    write(&Event::Jobs {
        names: vec!["randrw".to_owned()],
        hosts: Vec::new(),
    });
    for second in 1..=seconds {
        for dir in [Direction::Read, Direction::Write] {
            write(&Event::Sample(sample(second, dir)));
        }
        write(&Event::Interval {
            t_ms: second * 1000,
            remaining_ms: Some((seconds - second) * 1000),
        });
    }
    // No report of the engine: the figures have to be counted from the samples.
    writer.finish(RunStatus::Interrupted).unwrap()
}

/// Latencies of a drive: most between 80 and 200 µs, some to 4 ms; about a
/// hundred buckets hold something.
fn sample(second: u64, dir: Direction) -> Sample {
    let mut clat = Histogram::new();
    for step in 0..100u64 {
        let value_ns = 80_000 + step * step * 400;
        clat.add(value_ns, 1 + (100 - step) * (second % 7 + 1));
    }
    let ios = clat.total();
    Sample {
        t_ms: second * 1000,
        span_ms: 1000,
        job: 0,
        dir,
        ios,
        bytes: ios * 4096,
        clat: Some(clat),
        lat: None,
    }
}

/// The record of a campaign of `points` good points in series of thirteen, both
/// directions with histograms and a minute of samples each, as a run writes them.
pub fn sampled_campaign(runs: &Path, points: u32) -> PathBuf {
    let mut writer = Writer::create(runs, &Header::new("campaign", "run")).unwrap();
    let mut write = |event: &Event| writer.append(event).unwrap();
    for step in 1..=points {
        let (series, place) = ((step - 1) / 13, (step - 1) % 13);
        let depth = 1u64 << place;
        let series = format!("0001-basic-tests/{series:04}-randrw");
        let id = format!("{series}/{place:04}-bs4k-1j-{depth}qd-randrw");
        let settings = [("iodepth", depth.to_string()), ("numjobs", "1".into())];
        let point = Point {
            id: id.clone(),
            series,
            x: "iodepth".into(),
            settings: settings.map(|(k, v)| (k.to_owned(), v)).into(),
            repetition: 1,
        };
        write(&Event::Step {
            step,
            of: points,
            name: id,
            point: Some(Box::new(point)),
        });
        let names = vec!["randrw".to_owned()];
        let hosts = Vec::new();
        write(&Event::Jobs { names, hosts });
        for second in 1..=60 {
            for dir in [Direction::Read, Direction::Write] {
                write(&Event::Sample(sample(second, dir)));
            }
            let (t_ms, remaining_ms) = (second * 1000, None);
            write(&Event::Interval { t_ms, remaining_ms });
        }
        let results = Box::new(results(depth));
        write(&Event::Finished { results });
        let outcome = Outcome::Complete;
        write(&Event::StepEnded { outcome });
    }
    writer.finish(RunStatus::Complete).unwrap()
}

fn results(depth: u64) -> Results {
    let direction = |ios: u64| DirectionResult {
        total_ios: ios * 60,
        io_bytes: ios * 60 * 4096,
        bw_bytes: (ios * 4096) as f64,
        iops: ios as f64,
        runtime_ms: 60_000,
        clat: Some(Latency {
            n: Some(ios * 60),
            mean_ns: (depth * 80_000) as f64,
            histogram: sample(depth, Direction::Read).clat,
            ..Latency::default()
        }),
        ..DirectionResult::default()
    };
    let job = JobResult {
        name: "randrw".into(),
        read: Some(direction(7000)),
        write: Some(direction(3000)),
        ..JobResult::default()
    };
    Results {
        jobs: vec![job],
        ..Results::default()
    }
}

/// The record of a campaign of so many series over thirteen depths, reads and
/// writes, each in a folder of its own.
pub fn campaign_record(runs: &Path, series: u32) -> PathBuf {
    let mut writer = Writer::create(runs, &Header::new("campaign", "run")).unwrap();
    for n in 0..series {
        for power in 0..13 {
            let depth = f64::from(1 << power);
            let series = format!("{n:04}-target/0001-randrw");
            let point = Point {
                id: format!("{series}/{power:04}"),
                series,
                x: "iodepth".to_owned(),
                settings: BTreeMap::from([("iodepth".to_owned(), depth.to_string())]),
                repetition: 1,
            };
            writer
                .append(&Event::Step {
                    step: n * 13 + power + 1,
                    of: 13 * 45,
                    name: point.id.clone(),
                    point: Some(Box::new(point)),
                })
                .unwrap();
            // A knee at a depth of its own for each series.
            let iops = 250_000.0 * depth / (depth + f64::from(20 + 7 * n)) - depth * 9.0;
            let result = |share: f64| DirectionResult {
                total_ios: (iops * share * 240.0) as u64,
                iops: iops * share,
                bw_bytes: iops * share * 4096.0,
                runtime_ms: 240_000,
                clat: Some(Latency {
                    mean_ns: depth / iops * 1e9,
                    ..Latency::default()
                }),
                ..DirectionResult::default()
            };
            let job = JobResult {
                name: "randrw".to_owned(),
                read: Some(result(0.7)),
                write: Some(result(0.3)),
                ..JobResult::default()
            };
            let results = Box::new(Results {
                jobs: vec![job],
                ..Results::default()
            });
            writer.append(&Event::Finished { results }).unwrap();
            let outcome = Outcome::Complete;
            writer.append(&Event::StepEnded { outcome }).unwrap();
        }
    }
    writer.finish(RunStatus::Complete).unwrap()
}
