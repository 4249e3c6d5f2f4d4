//! Runs to look at, as an engine would have recorded them.

mod document;
mod hosts;
mod schema;
mod segments;
mod table;
mod verdict;

use std::path::PathBuf;

use fathom_model::environment::{BlockDevice, Partition, Target};
use fathom_model::result::CpuUse;
use fathom_model::{
    Direction, DirectionResult, DiskUse, Entry, Environment, Event, Histogram, JobResult, Latency,
    Results, RunDocument, RunStatus, Sample,
};
use fathom_record::Header;

/// 2026-11-21 13:07:37.250 UTC.
const STARTED_MS: u64 = 1_795_266_457_250;

fn header() -> Header {
    Header {
        format: fathom_record::FORMAT.into(),
        version: fathom_record::VERSION,
        name: "mixed".into(),
        command: "job run".into(),
        label: None,
        started_ms: STARTED_MS,
        variables: std::collections::BTreeMap::new(),
        targets: Vec::new(),
        environment: Some(Environment {
            fathom_version: "0.1.0".into(),
            hostname: "box".into(),
            os: "Linux".into(),
            kernel: "6.1.0-18-amd64".into(),
            arch: "x86_64".into(),
            cpu_model: Some("AMD EPYC 7502P 32-Core Processor".into()),
            cpus: 64,
            cpu_governor: Some("performance".into()),
            memory_bytes: Some(256 << 30),
            targets: vec![Target {
                path: PathBuf::from("/dev/nvme0n1"),
                device: Some(BlockDevice {
                    name: "nvme0n1".into(),
                    model: Some("Samsung SSD 990 PRO 2TB".into()),
                    serial: Some("S7KHNJ0W512345".into()),
                    nsid: Some(1),
                    firmware: Some("4B2QJXD7".into()),
                    capacity_bytes: 2_000_398_934_016,
                    logical_block_bytes: 512,
                    physical_block_bytes: 512,
                    scheduler: Some("none".into()),
                    nr_requests: Some(1023),
                    write_cache: Some("write back".into()),
                    rotational: Some(false),
                    pcie_link: Some("16.0 GT/s x4 of 16.0 GT/s x4".into()),
                    ..BlockDevice::default()
                }),
                ..Target::default()
            }],
        }),
        facts: serde_json::Map::new(),
    }
}

/// The document of these events, one a second after the other.
pub(crate) fn document_of(status: RunStatus, events: Vec<Event>) -> RunDocument {
    let entries: Vec<Entry> = (1..)
        .zip(events)
        .map(|(second, event)| Entry {
            at_ms: STARTED_MS + second * 1000,
            event,
        })
        .collect();
    let mut doc =
        fathom_document::compose("20261121T130737Z-mixed".into(), status, &header(), &entries);
    fathom_document::drop_histograms(&mut doc);
    doc
}

fn started() -> Event {
    Event::EngineStarted {
        engine: "fio".into(),
        version: Some("fio-3.33".into()),
        argv: Vec::new(),
        pid: Some(1),
    }
}

fn jobs(names: &[&str]) -> Event {
    Event::Jobs {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        hosts: Vec::new(),
    }
}

fn step(step: u32, of: u32, name: &str) -> Event {
    let name = name.into();
    let point = None;
    Event::Step {
        step,
        of,
        name,
        point,
    }
}

fn sample(t_ms: u64, job: u32, dir: Direction, ios: u64, clat_ns: u64) -> Event {
    let mut clat = Histogram::new();
    clat.add(clat_ns, ios);
    Event::Sample(Sample {
        t_ms,
        span_ms: 1000,
        job,
        dir,
        ios,
        bytes: ios * 4096,
        clat: Some(clat),
        lat: None,
    })
}

fn finished(jobs: Vec<JobResult>, disks: Vec<DiskUse>) -> Event {
    Event::Finished {
        results: Box::new(Results {
            engine_version: Some("fio-3.33".into()),
            jobs,
            disks,
            ..Results::default()
        }),
    }
}

fn ended(status: RunStatus) -> Event {
    Event::Ended { status }
}

/// A direction that did `ios` of 4 KiB in `runtime_ms`.
fn direction(ios: u64, runtime_ms: u64, mean_ns: f64) -> DirectionResult {
    DirectionResult {
        total_ios: ios,
        io_bytes: ios * 4096,
        bw_bytes: ios as f64 * 4096.0 * 1000.0 / runtime_ms as f64,
        iops: ios as f64 * 1000.0 / runtime_ms as f64,
        runtime_ms,
        clat: Some(Latency {
            certainty: None,
            n: Some(ios),
            min_ns: (mean_ns / 4.0) as u64,
            max_ns: (mean_ns * 40.0) as u64,
            mean_ns,
            stddev_ns: Some(mean_ns / 2.0),
            percentiles_ns: [
                (50.0, 0.9),
                (90.0, 1.5),
                (99.0, 3.0),
                (99.9, 9.0),
                (99.99, 21.0),
            ]
            .map(|(percent, times)| (percent, (mean_ns * times) as u64))
            .to_vec(),
            histogram: None,
        }),
        ..DirectionResult::default()
    }
}

fn idle() -> DirectionResult {
    DirectionResult::default()
}

/// A direct random job that reads, on `nvme0n1`.
fn reader(name: &str) -> JobResult {
    let options = [
        ("rw", "randread"),
        ("bs", "4k"),
        ("ioengine", "libaio"),
        ("iodepth", "32"),
        ("direct", "1"),
        ("filename", "/dev/nvme0n1"),
    ];
    JobResult {
        name: name.into(),
        runtime_ms: Some(30_000),
        options: options.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        read: Some(direction(4_200_000, 30_000, 226_400.0)),
        write: Some(idle()),
        trim: Some(idle()),
        cpu: Some(CpuUse {
            user_percent: 12.3,
            system_percent: 31.9,
            context_switches: 3_912_004,
            ..CpuUse::default()
        }),
        ..JobResult::default()
    }
}

fn disk(read_ios: u64) -> DiskUse {
    DiskUse {
        name: "nvme0n1".into(),
        read_ios,
        read_ticks_ms: 940_112,
        in_queue_ms: 940_112,
        util_percent: 99.71,
        ..DiskUse::default()
    }
}
