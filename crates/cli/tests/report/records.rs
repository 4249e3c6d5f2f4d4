//! Records as runs of every kind leave them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::environment::{BlockDevice, Target};
use fathom_model::{
    Direction, DirectionResult, Environment, Event, Failure, FailureKind, Histogram, JobResult,
    Latency, Outcome, Point, Results, RunStatus, Sample, SkipCause,
};
use fathom_record::{Header, Writer};

/// What a name may hold to do harm, and what it may hold without.
pub const HOSTILE: &str = "</script><script>window.harmed=1</script><img src=x onerror=\"window.harmed=2\">'&Größe\u{202e}";

pub fn environment() -> Environment {
    Environment {
        fathom_version: "0.1.0".into(),
        hostname: "bench-07".into(),
        os: "Linux".into(),
        kernel: "6.12.9-amd64".into(),
        arch: "x86_64".into(),
        cpu_model: Some("AMD EPYC 7502P 32-Core Processor".into()),
        cpus: 64,
        memory_bytes: Some(256 << 30),
        targets: vec![Target {
            path: PathBuf::from("/dev/nvme0n1"),
            device: Some(BlockDevice {
                name: "nvme0n1".into(),
                model: Some(HOSTILE.into()),
                serial: Some("S7KHNJ0W512345".into()),
                capacity_bytes: 2_000_398_934_016,
                logical_block_bytes: 512,
                physical_block_bytes: 4096,
                ..BlockDevice::default()
            }),
            ..Target::default()
        }],
        ..Environment::default()
    }
}

pub fn header(name: &str, command: &str) -> Header {
    Header {
        environment: Some(environment()),
        ..Header::new(name, command)
    }
}

/// Latencies around `mean_ns` with a tail.
pub fn histogram(mean_ns: u64, ios: u64) -> Histogram {
    let mut clat = Histogram::new();
    for step in 0..20 {
        clat.add(mean_ns * (70 + 3 * step) / 100, ios / 20);
    }
    clat.add(mean_ns * 9, 1 + ios / 500);
    clat
}

pub fn sample(t_ms: u64, job: u32, dir: Direction, ios: u64, clat_ns: u64) -> Sample {
    Sample {
        t_ms,
        span_ms: 1000,
        job,
        dir,
        ios,
        bytes: ios * 4096,
        clat: Some(histogram(clat_ns, ios)),
        lat: None,
    }
}

pub fn figures(iops: f64, mean_ns: f64, runtime_ms: u64) -> DirectionResult {
    let ios = (iops * runtime_ms as f64 / 1000.0) as u64;
    DirectionResult {
        total_ios: ios,
        io_bytes: ios * 4096,
        bw_bytes: iops * 4096.0,
        iops,
        runtime_ms,
        clat: Some(Latency {
            n: Some(ios),
            min_ns: (mean_ns * 0.7) as u64,
            max_ns: (mean_ns * 9.0) as u64,
            mean_ns,
            stddev_ns: Some(mean_ns / 3.0),
            histogram: Some(histogram(mean_ns as u64, ios)),
            ..Latency::default()
        }),
        ..DirectionResult::default()
    }
}

pub fn point(series: &str, depth: u64, repetition: u32) -> Point {
    Point {
        id: format!("{series}/bs4k-1j-{depth}qd"),
        series: series.into(),
        x: "iodepth".into(),
        settings: BTreeMap::from([
            ("iodepth".into(), depth.to_string()),
            ("bs".into(), "4k".into()),
        ]),
        repetition,
    }
}

/// A campaign of two curves at depths 1 … 256, each point twice for `seconds`
/// seconds. One point of the second curve failed, the last was left out. The
/// names want to do harm.
pub fn campaign(runs: &Path, seconds: u64) -> PathBuf {
    let mut writer = Writer::create(runs, &header(HOSTILE, "run")).unwrap();
    let mixed = format!("0001-basic-tests/0005-randrw-70-30 {HOSTILE}").replace('/', "∕");
    let mixed = format!("0001-basic-tests/{mixed}");
    let (mut step, mut t_ms) = (0, 0);
    for series in [mixed.as_str(), "0001-basic-tests/0004-randread"] {
        let plain = !series.contains("randrw");
        for power in 0..=8u32 {
            let depth = 1u64 << power;
            for repetition in 1..=2 {
                let point = point(series, depth, repetition);
                if plain && depth == 256 {
                    let reason = "the guard ended the series".to_owned();
                    let point = Box::new(point);
                    writer
                        .append(&Event::Skipped {
                            point,
                            reason,
                            cause: SkipCause::NotNeeded,
                        })
                        .unwrap();
                    continue;
                }
                step += 1;
                let fails = plain && depth == 128 && repetition == 2;
                measure(&mut writer, step, point, plain, seconds, &mut t_ms, fails);
            }
        }
    }
    let job = format!("[global]\nbs=4k\n# {HOSTILE}\n[job]\nrw=randread\n");
    let folder = writer.jobs_dir().unwrap().join("0004-randread");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("bs4k.ini"), job).unwrap();
    writer.finish(RunStatus::Failed).unwrap()
}

fn measure(
    writer: &mut Writer,
    step: u32,
    point: Point,
    plain: bool,
    seconds: u64,
    t_ms: &mut u64,
    fails: bool,
) {
    let depth = point.x_value().unwrap() as f64;
    let iops = 400_000.0 * depth / (depth + 24.0) * (0.97 + 0.03 * f64::from(point.repetition));
    let mean_ns = depth / iops * 1e9;
    let mut append = |event: Event| writer.append(&event).unwrap();
    append(Event::Step {
        step,
        of: 34,
        name: point.id.clone(),
        point: Some(Box::new(point)),
    });
    begin(&mut append, &[HOSTILE]);
    for _ in 0..seconds {
        *t_ms += 1000;
        let mut add = |dir, share: f64| {
            let ios = (iops * share) as u64 + *t_ms % 977;
            let sample = sample(*t_ms, 0, dir, ios, (mean_ns * share) as u64);
            append(Event::Sample(sample));
        };
        add(Direction::Read, 0.7);
        if !plain {
            add(Direction::Write, 0.3);
        }
        append(interval(*t_ms));
    }
    if fails {
        let failure = Failure::new(FailureKind::Io, format!("input/output error {HOSTILE}"));
        append(Event::Failure(failure.about("nvme0n1").with_errno(5)));
        let outcome = Outcome::Failed;
        append(Event::StepEnded { outcome });
        return;
    }
    let mut job = job(HOSTILE, figures(iops * 0.7, mean_ns, seconds * 1000));
    if !plain {
        job.write = Some(figures(iops * 0.3, mean_ns * 0.4, seconds * 1000));
    }
    append(finished(vec![job]));
    append(STEP_ENDED);
}

pub const STEP_ENDED: Event = Event::StepEnded {
    outcome: Outcome::Complete,
};

pub fn begin(append: &mut impl FnMut(Event), names: &[&str]) {
    append(Event::EngineStarted {
        engine: "fio".into(),
        version: Some("fio-3.33".into()),
        argv: vec!["fio".into(), "--output-format=json+".into(), HOSTILE.into()],
        pid: Some(12),
    });
    append(Event::Jobs {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        hosts: Vec::new(),
    });
}

pub fn interval(t_ms: u64) -> Event {
    Event::Interval {
        t_ms,
        remaining_ms: None,
    }
}

pub fn job(name: &str, read: DirectionResult) -> JobResult {
    let runtime_ms = Some(read.runtime_ms);
    JobResult {
        name: name.into(),
        runtime_ms,
        read: Some(read),
        ..JobResult::default()
    }
}

pub fn finished(jobs: Vec<JobResult>) -> Event {
    Event::Finished {
        results: Box::new(Results {
            engine_version: Some("fio-3.33".into()),
            jobs,
            ..Results::default()
        }),
    }
}

/// A campaign of so many points, of which every third did something, each with a note of
/// its own; the others failed, all for one reason.
pub fn failing(runs: &Path, points: u32) -> PathBuf {
    let mut writer = Writer::create(runs, &header("failing", "run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    for place in 0..points {
        let point = point("0001-basic-tests/0004-randread", u64::from(place) + 1, 1);
        append(Event::Step {
            step: place + 1,
            of: points,
            name: point.id.clone(),
            point: Some(Box::new(point)),
        });
        begin(&mut append, &["job"]);
        if place % 3 == 1 {
            let text = format!("fio: pid={}, used {place} % of a CPU", 4000 + place);
            append(Event::Note { text });
            append(finished(vec![job("job", figures(1000.0, 9000.0, 1000))]));
            append(STEP_ENDED);
            continue;
        }
        let text = format!(
            "fio: pid={}, the limit fs.aio-max-nr is reached",
            4000 + place
        );
        append(Event::Failure(Failure::new(FailureKind::AioLimit, text)));
        let outcome = Outcome::Failed;
        append(Event::StepEnded { outcome });
    }
    writer.finish(RunStatus::Failed).unwrap()
}

/// A run of `jobs` jobs that has been seen reading for `seconds`, not ended yet.
pub fn begun(runs: &Path, jobs: u32, seconds: u64) -> Writer {
    let mut writer = Writer::create(runs, &header("begun", "job run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    let names: Vec<String> = (1..=jobs).map(|n| format!("job {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    begin(&mut append, &names);
    for second in 1..=seconds {
        for job in 0..jobs {
            let ios = 1000 + second % 61 * 7 + if second == 4321 { 50_000 } else { 0 };
            let clat_ns = 90_000 + second % 97 * 400 * u64::from(job + 1);
            append(Event::Sample(sample(
                second * 1000,
                job,
                Direction::Read,
                ios,
                clat_ns,
            )));
        }
        append(interval(second * 1000));
    }
    writer
}
